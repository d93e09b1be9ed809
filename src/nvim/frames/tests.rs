use super::*;
use crate::core::transcript::Speaker;

const ONE: ChatId = ChatId(1);
const TWO: ChatId = ChatId(2);

/// Frames of chats whose transcripts grow.
struct World {
    frames: Frames,
    transcripts: BTreeMap<ChatId, Transcript>,
    now: Millis,
}

impl World {
    fn new() -> Self {
        let mut world = Self { frames: Frames::default(), transcripts: BTreeMap::new(), now: Millis(1_000) };
        for chat in [ONE, TWO] {
            world.frames.open(chat, "/p".into());
            world.transcripts.insert(chat, Transcript::default());
        }
        world
    }

    fn says(&mut self, chat: ChatId, bytes: usize) {
        let transcript = self.transcripts.get_mut(&chat).expect("a chat");
        let change = transcript.chunk(Speaker::Agent, Some("m"), &"0123456789\n".repeat(bytes / 11 + 1));
        self.frames.note(chat, change.expect("a change"), transcript);
    }

    fn show(&mut self, show: Show) {
        let transcripts = &self.transcripts;
        self.frames.show(show, |chat| transcripts.get(&chat));
    }

    fn tool(&mut self, id: &str, status: &str) {
        self.show(Show::UserEvent(UserEvent::ToolCall(ONE, id.to_owned(), status.to_owned())));
    }

    /// The next frame, which is sent when it is due.
    fn take(&mut self) -> Vec<Value> {
        let due = self.frames.due().expect("something to send");
        self.now = self.now.max(due);
        let transcripts = &self.transcripts;
        self.frames.take(|chat| transcripts.get(&chat), self.now)
    }

    /// The next frame, which Neovim applies.
    fn frame(&mut self) -> Vec<Value> {
        let items = self.take();
        self.answer(&[("1", 1), ("2", 1)], &[]);
        items
    }

    fn answer(&mut self, ticks: &[(&str, u64)], stale: &[u64]) {
        let ticks = ticks.iter().map(|&(chat, tick)| (chat.into(), tick.into())).collect();
        let stale = stale.iter().copied().map(Value::from).collect();
        let answer = Value::Map(vec![("ticks".into(), Value::Map(ticks)), ("stale".into(), Value::Array(stale))]);
        self.frames.acknowledged(&answer, self.now);
    }
}

fn kinds(items: &[Value]) -> Vec<&str> {
    items.iter().filter_map(|item| item[0].as_str()).collect()
}

fn events(items: &[Value], name: &str) -> usize {
    items.iter().filter(|item| item[0].as_str() == Some("event") && item[1].as_str() == Some(name)).count()
}

fn chats_with_rows(items: &[Value]) -> Vec<u64> {
    items.iter().filter(|item| item[0].as_str() == Some("rows")).filter_map(|item| item[1].as_u64()).collect()
}

#[test]
fn a_chat_that_is_flooded_does_not_starve_another() {
    let mut world = World::new();
    world.says(ONE, 10 * MAX_BUDGET);
    world.says(TWO, 10);
    assert_eq!(chats_with_rows(&world.frame()), [1]);
    assert_eq!(chats_with_rows(&world.frame()), [2, 1]);
    world.says(TWO, 10 * MAX_BUDGET);
    assert_eq!(chats_with_rows(&world.frame()), [2]);
    assert_eq!(chats_with_rows(&world.frame()), [1]);
}

#[test]
fn events_of_a_call_are_coalesced_and_those_of_many_calls_come_in_pieces() {
    let mut world = World::new();
    for status in ["pending", "in_progress", "completed"] {
        for call in 0..1_000 {
            world.tool(&call.to_string(), status);
        }
    }
    let mut told = Vec::new();
    while world.frames.due().is_some() {
        let items = world.frame();
        assert!(items.len() <= MAX_EVENTS, "{}", items.len());
        told.extend(items);
    }
    // The first ones were told at once, before it was a flood.
    assert_eq!(told.len(), 1_000 + MAX_EVENTS);
    assert_eq!(told.iter().filter(|item| item.to_string().contains("completed")).count(), 1_000);
    for status in ["pending", "completed"] {
        world.tool("last", status);
    }
    let few = world.frame();
    assert_eq!(few.len(), 2, "{few:?}");
}

#[test]
fn what_goes_back_to_the_user_does_not_wait_for_events() {
    let mut world = World::new();
    for call in 0..10_000 {
        world.tool(&call.to_string(), "pending");
    }
    world.show(Show::TakenBack(ONE, PromptId(1), "my text".into()));
    assert_eq!(kinds(&world.frame())[0], "taken_back");
}

#[test]
fn a_turn_is_over_once_what_there_was_at_its_end_is_shown() {
    let mut world = World::new();
    world.says(ONE, 3 * FIRST_BUDGET);
    world.show(Show::UserEvent(UserEvent::TurnEnd(ONE, "cancelled".into())));
    let mut frames = 0;
    loop {
        let items = world.frame();
        frames += 1;
        if events(&items, "AgentChatTurnEnd") == 1 {
            break;
        }
        // The agent does not mind, and goes on with that very message.
        world.says(ONE, 4 * MAX_BUDGET);
        assert!(frames < 10, "the end is not told");
    }
    assert!(frames > 2, "told before the text was there");
}

#[test]
fn a_buffer_that_never_takes_its_rows_is_tried_less_and_less_often() {
    let mut world = World::new();
    world.says(ONE, 10);
    let mut waits = Vec::new();
    for _ in 0..10 {
        world.take();
        world.answer(&[], &[1]);
        waits.push(world.frames.due().expect("it is tried again").since(world.now));
    }
    assert!(waits[0] <= CALM_INTERVAL, "{waits:?}");
    assert!(waits[9] >= MAX_BACKOFF && waits.is_sorted(), "{waits:?}");
    // Nothing else has to wait for that.
    world.says(TWO, 10);
    assert!(world.frames.due().expect("rows").since(world.now) <= CALM_INTERVAL);
    assert_eq!(chats_with_rows(&world.frame()), [2]);
    let rows = world.frame();
    assert_eq!(chats_with_rows(&rows), [1]);
    world.says(ONE, 10);
    assert!(world.frames.due().expect("rows").since(world.now) <= CALM_INTERVAL);
}

#[test]
fn a_frame_that_fails_loses_nothing_and_comes_again() {
    let mut world = World::new();
    world.says(ONE, 10);
    world.show(Show::TakenBack(ONE, PromptId(1), "my text".into()));
    world.show(Show::UserEvent(UserEvent::TurnStart(ONE, 1)));
    let lost = world.take();
    assert_eq!(kinds(&lost), ["rows", "taken_back", "event"]);
    assert!(world.frames.failed(world.now));
    world.take();
    assert!(!world.frames.failed(world.now));
    let again = world.frame();
    assert!(chats_with_rows(&again).contains(&1));
    let besides_rows =
        |items: &[Value]| items.iter().filter(|item| item[0].as_str() != Some("rows")).cloned().collect();
    let (lost, again): (Vec<Value>, Vec<Value>) = (besides_rows(&lost), besides_rows(&again));
    assert_eq!(again, lost);
    assert!(world.frames.due().is_none());
}

#[test]
fn the_end_of_a_turn_is_told_although_its_chat_is_closed() {
    let mut world = World::new();
    world.says(ONE, 10 * MAX_BUDGET);
    world.show(Show::UserEvent(UserEvent::TurnEnd(ONE, "cancelled".into())));
    world.frame();
    world.frames.forget(ONE);
    assert_eq!(events(&world.frame(), "AgentChatTurnEnd"), 1);
}

#[test]
fn where_an_agent_is_comes_once_a_frame_and_the_newest_counts() {
    use crate::core::follow::{SeenPlace, Whereabouts};
    let mut world = World::new();
    let place =
        |path: &str| SeenPlace { path: path.into(), size: 1, line: None, kind: "read".into(), title: "Read".into() };
    let news =
        |path| Whereabouts { clear: false, places: vec![place(path)], newest: Some(place(path)), terminal: None };
    for path in ["/p/a", "/p/b", "/p/a"] {
        world.show(Show::Follow(ONE, news(path)));
    }
    let items = world.frame();
    let item = items[0].as_array().expect("an item");
    assert_eq!((items.len(), item[0].as_str(), item[2].as_bool()), (1, Some("follow"), Some(false)));
    let paths: Vec<_> = item[3].as_array().expect("places").iter().map(|place| get(place, "path")).collect();
    assert_eq!(paths, [Some(&Value::from("/p/b")), Some(&Value::from("/p/a"))]);
    assert_eq!(get(&item[4], "path"), Some(&Value::from("/p/a")));
    assert_eq!(world.frames.due(), None);
}
