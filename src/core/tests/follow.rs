//! Where the agent is, told as events: what is looked at, when, and what comes of it.

use std::path::PathBuf;

use proptest::prelude::*;

use super::world::{CHAT, World};
use crate::core::effect::{Effect, Show};
use crate::core::event::{Event, TimerKey};
use crate::core::follow::{Look, Visit, Whereabouts};
use crate::core::ids::Millis;
use crate::core::message::Update;
use crate::core::tool_call::{Location, ToolCallPatch, ToolStatus};

/// A chat whose turn runs, and can be ended.
fn at_work() -> World {
    let mut world = World::ready();
    world.prompt(1, "go");
    world
}

impl World {
    fn names(&mut self, call: &str, file: &str, line: Option<u64>) {
        let locations = Some(vec![Location { path: file.into(), line }]);
        let patch = ToolCallPatch { id: call.into(), locations, ..ToolCallPatch::default() };
        self.update(Update::Tool { patch, is_new: true });
    }

    /// What is to be looked at, if something is; a look is taken only once.
    fn take_look(&mut self) -> Option<Vec<Visit>> {
        let at = self.effects.iter().position(|effect| matches!(effect, Effect::Locate(_)))?;
        match self.effects.remove(at) {
            Effect::Locate(job) => Some(job.visits),
            _ => None,
        }
    }

    /// Takes the look that is wanted: all files are there but those named.
    fn look(&mut self, missing: &[&str]) -> Vec<PathBuf> {
        let visits = self.take_look().unwrap_or_default();
        let paths = visits.iter().map(|visit| visit.place.path.clone()).collect();
        let look = |visit: &Visit| {
            let is_missing = missing.iter().any(|path| visit.place.path == PathBuf::from(path));
            if is_missing { Look::Missing } else { Look::File { size: 1, line: visit.place.line } }
        };
        let looks = visits.into_iter().map(|visit| (visit.clone(), look(&visit))).collect();
        self.happen(Event::Looked(CHAT, looks));
        paths
    }

    fn news(&self) -> Vec<&Whereabouts> {
        let news = self.shows().filter_map(|show| match show {
            Show::Follow(CHAT, news) => Some(news),
            _ => None,
        });
        news.collect()
    }

    /// The files that were jumped to.
    fn jumps(&self) -> Vec<String> {
        self.news().iter().filter_map(|news| Some(news.newest.as_ref()?.path.display().to_string())).collect()
    }

    /// Lets time pass until the next look is due.
    fn follow_timer(&mut self) -> bool {
        let set = self.effects.iter().rposition(|effect| matches!(effect, Effect::SetTimer(TimerKey::Follow(_), _)));
        let Some(Effect::SetTimer(key, at)) = set.map(|set| self.effects.remove(set)) else { return false };
        self.now = self.now.max(at);
        self.happen(Event::Timer(key));
        true
    }
}

#[test]
fn a_place_is_looked_at_once_and_then_shown() {
    let mut world = at_work();
    world.names("t", "/p/a", Some(3));
    world.names("t", "/p/a", Some(3));
    assert_eq!(world.look(&[]), [PathBuf::from("/p/a")]);
    world.names("t", "/p/a", Some(3));
    assert!(world.take_look().is_none() && !world.follow_timer(), "nothing is new");
    let news = world.news();
    assert_eq!(news.len(), 1);
    assert_eq!((news[0].newest.as_ref().unwrap().line, news[0].places.len()), (Some(3), 1));
}

#[test]
fn a_thousand_places_are_two_looks_and_the_newest_wins() {
    let mut world = at_work();
    for i in 0..1000 {
        world.names(&format!("t{i}"), &format!("/p/{i}"), Some(1));
    }
    world.look(&[]);
    assert!(world.take_look().is_none(), "not before the interval is over");
    assert!(world.follow_timer());
    assert_eq!(world.now, Millis(250));
    assert_eq!(world.look(&[]).len(), 16);
    assert_eq!(world.jumps(), ["/p/0", "/p/999"]);
    assert_eq!(world.state.trail(CHAT).len(), 1000);
}

#[test]
fn a_file_that_is_not_there_waits_until_it_is() {
    let mut world = at_work();
    world.names("t", "/p/new", Some(2));
    world.look(&["/p/new"]);
    assert_eq!(world.jumps(), Vec::<String>::new());
    assert!(world.follow_timer());
    world.look(&["/p/new"]);
    world.now = world.now.plus(1000);
    let patch = ToolCallPatch { id: "t".into(), status: Some(ToolStatus::Completed), ..ToolCallPatch::default() };
    world.update(Update::Tool { patch, is_new: false });
    world.look(&[]);
    assert_eq!(world.jumps(), ["/p/new"]);
}

#[test]
fn a_file_that_appears_after_a_newer_place_was_shown_is_not_gone_back_to() {
    let mut world = at_work();
    world.names("t", "/p/new", None);
    world.look(&["/p/new"]);
    world.now = world.now.plus(250);
    world.names("u", "/p/a", None);
    world.look(&["/p/new"]);
    assert!(world.follow_timer());
    assert_eq!(world.look(&[]), [PathBuf::from("/p/new")]);
    assert_eq!(world.jumps(), ["/p/a"]);
    assert_eq!(world.news().last().unwrap().places[0].path, PathBuf::from("/p/new"), "but it is marked");
}

#[test]
fn the_end_of_a_turn_clears_what_was_marked_and_ends_the_waiting() {
    let mut world = at_work();
    world.names("t", "/p/new", None);
    world.look(&["/p/new"]);
    world.now = world.now.plus(1000);
    world.ended("end_turn");
    assert!(world.news().last().unwrap().clear);
    world.look(&["/p/new"]);
    while world.follow_timer() {
        assert!(world.take_look().is_none(), "nobody waits for it any more");
    }
    assert_eq!(world.state.trail(CHAT).len(), 1);
    world.prompt(2, "again");
    assert_eq!(world.state.trail(CHAT), []);
}

#[test]
fn what_came_just_before_the_end_of_a_turn_is_still_shown_but_not_marked() {
    let mut world = at_work();
    world.names("t", "/p/a", None);
    world.look(&[]);
    world.names("u", "/p/b", None);
    world.ended("end_turn");
    assert!(world.follow_timer());
    world.look(&[]);
    assert_eq!(world.jumps(), ["/p/a", "/p/b"]);
    assert!(world.news().last().unwrap().places.is_empty());
}

#[test]
fn a_line_that_comes_to_be_known_does_not_make_two_places_of_one() {
    let mut world = at_work();
    world.names("t", "/p/a", None);
    world.names("t", "/p/a", Some(9));
    let lines: Vec<_> = world.state.trail(CHAT).into_iter().map(|visit| visit.place.line).collect();
    assert_eq!(lines, [Some(9)]);
}

proptest! {
    #[test]
    fn no_more_than_one_look_in_an_interval_and_the_last_place_is_shown_in_the_end(
        happenings in prop::collection::vec((0u8..4, 0u64..200), 1..60),
    ) {
        let mut world = at_work();
        let (mut looks, mut last) = (Vec::new(), None);
        for (file, pause) in happenings {
            world.now = world.now.plus(pause);
            let path = format!("/p/{file}");
            world.names(&format!("t{}", world.now.0), &path, Some(1));
            last = Some(path);
            if world.effects.iter().any(|effect| matches!(effect, Effect::Locate(_))) {
                looks.push(world.now.0);
                world.look(&[]);
            }
        }
        while world.follow_timer() {
            if world.effects.iter().any(|effect| matches!(effect, Effect::Locate(_))) {
                looks.push(world.now.0);
                world.look(&[]);
            }
        }
        prop_assert!(looks.windows(2).all(|pair| pair[1] - pair[0] >= 250), "{looks:?}");
        prop_assert_eq!(world.jumps().pop(), last);
    }
}
