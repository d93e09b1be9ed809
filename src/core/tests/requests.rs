//! What agents ask for: permissions and files.

use std::path::{Path, PathBuf};

use super::world::{CHAT, CONN, World, permission, session, tool};
use crate::core::effect::{Effect, Show};
use crate::core::event::{Event, FileOutcome, TimerKey, UserAction};
use crate::core::ids::OpenId;
use crate::core::message::{AgentMessage, AgentRequest, Answer, Reply, RpcError, SessionCapabilities, Update};
use crate::core::permission::facts::Place;
use crate::core::permission::weigh::Weighed;
use crate::core::prompt::PromptCapabilities;
use crate::core::tool_call::{Location, ToolCallPatch, ToolContent, ToolStatus};

#[test]
fn permissions_queue_and_are_answered_with_the_chosen_option() {
    let mut world = World::running();
    world.asks("\"a\"", permission("t"));
    world.asks("\"b\"", permission("u"));
    let queue = world.asked();
    assert_eq!(queue.len(), 2);
    world.user(UserAction::Respond { request: queue[1], option: "no".into() });
    world.user(UserAction::Respond { request: queue[0], option: "nonsense".into() });
    world.user(UserAction::Respond { request: queue[0], option: "yes".into() });
    world.user(UserAction::Respond { request: queue[0], option: "yes".into() });
    assert_eq!(world.replies(), [("\"b\"", &Reply::Selected("no".into())), ("\"a\"", &Reply::Selected("yes".into()))]);
}

#[test]
fn a_call_that_completes_while_it_is_asked_about_closes_the_question() {
    let mut world = World::running();
    world.asks("1", permission("t"));
    world.update(tool("t", ToolStatus::Completed, false));
    assert_eq!(world.replies(), [("1", &Reply::Cancelled)]);
    assert_eq!(world.asked(), []);
}

#[test]
fn what_was_asked_in_a_turn_is_closed_with_it() {
    let mut world = World::ready();
    world.prompt(1, "go");
    world.asks("1", permission("t"));
    world.ended("end_turn");
    assert_eq!(world.asked(), []);
    assert!(world.state.nobody_waits());
}

#[test]
fn what_is_asked_outside_of_a_turn_outlives_the_next_one() {
    let mut world = World::ready();
    world.asks("1", permission("t"));
    world.prompt(1, "go");
    world.asks("2", permission("u"));
    world.ended("end_turn");
    assert_eq!(world.replies(), [("2", &Reply::Cancelled)]);
    assert_eq!(world.asked(), [OpenId(1)]);
}

#[test]
fn a_request_that_the_agent_takes_back_is_answered_once() {
    let mut world = World::running();
    world.asks("5", permission("t"));
    world.happen(Event::Agent(CONN, AgentMessage::CancelRequest { raw_id: "5".into() }));
    assert!(matches!(world.replies()[..], [("5", Reply::Error(RpcError { code: Some(RpcError::CANCELLED), .. }))]));
    assert_eq!(world.asked(), []);
    assert!(world.state.nobody_waits());
}

#[test]
fn a_request_before_the_session_is_announced_is_served() {
    let mut world = World::new();
    world.open(CHAT);
    world.initialized();
    let read = AgentRequest::ReadFile { session: session(), path: "/p/AGENTS.md".into(), line: None, limit: None };
    world.asks("1", read);
    assert!(world.effects.iter().any(|effect| matches!(effect, Effect::ReadFile(..))));
    world.happen(Event::FileDone(OpenId(1), FileOutcome::Read("x".into())));
    world.asks("2", permission("t"));
    world.user(UserAction::Cancel(CHAT));
    assert_eq!(world.replies(), [("1", &Reply::Content("x".into())), ("2", &Reply::Cancelled)]);
}

#[test]
fn unknown_and_invalid_requests_get_the_error_that_is_due() {
    let mut world = World::ready();
    world.asks("1", AgentRequest::Unknown { method: "terminal/unheard_of".into() });
    world.asks("null", AgentRequest::Invalid { problem: "no".into() });
    world.asks("2", AgentRequest::TooLong { limit: 9 });
    world.asks("3", AgentRequest::Batched);
    let codes: Vec<_> = world
        .replies()
        .iter()
        .map(|(id, reply)| match reply {
            Reply::Error(RpcError { code, .. }) => (id.to_owned(), *code),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [RpcError::METHOD_NOT_FOUND, RpcError::INVALID_PARAMS, RpcError::INVALID_REQUEST].map(Some);
    assert_eq!(codes, [("1", expected[0]), ("null", expected[1]), ("2", expected[2]), ("3", expected[2])]);
}

#[test]
fn what_the_user_allowed_is_the_file_that_they_were_asked_about() {
    let mut world = World::running();
    world.weighs = false;
    let path = PathBuf::from("/p/link");
    world.asks("1", AgentRequest::ReadFile { session: session(), path: path.clone(), line: None, limit: None });
    let places = vec![Place { named: path, resolved: "/outside/file".into() }];
    let weighed = Weighed { root: "/p".into(), additional: Vec::new(), places, is_complete: true, kept: Vec::new() };
    world.happen(Event::Weighed(OpenId(1), weighed));
    assert_eq!(world.asked(), [OpenId(1)]);
    world.user(UserAction::Respond { request: OpenId(1), option: "agentchat-allow-once".into() });
    let is_allowed =
        |effect: &Effect| matches!(effect, Effect::ReadFile(job, _) if job.path == Path::new("/outside/file"));
    let allowed = world.effects.iter().any(is_allowed);
    assert!(allowed, "{:?}", world.effects);
}

#[test]
fn a_file_outside_needs_the_users_consent() {
    let read = || AgentRequest::ReadFile { session: session(), path: "/etc/hosts".into(), line: None, limit: None };
    for allowed in [true, false] {
        let mut world = World::running();
        world.asks("1", read());
        let request = OpenId(1);
        assert_eq!(world.asked(), [request]);
        let option = if allowed { "agentchat-allow-once" } else { "agentchat-reject-once" };
        world.user(UserAction::Respond { request, option: option.into() });
        let reads = world.effects.iter().filter(|effect| matches!(effect, Effect::ReadFile(..))).count();
        assert_eq!(reads, usize::from(allowed));
        if allowed {
            world.happen(Event::FileDone(request, FileOutcome::Read("x".into())));
            assert_eq!(world.replies(), [("1", &Reply::Content("x".into()))]);
        } else {
            assert!(matches!(world.replies()[..], [("1", Reply::Error(_))]));
        }
        assert!(world.state.nobody_waits());
    }
}

#[test]
fn no_question_about_a_file_is_asked_while_the_turn_is_being_cancelled() {
    let mut world = World::running();
    let read = AgentRequest::ReadFile { session: session(), path: "/etc/passwd".into(), line: None, limit: None };
    world.user(UserAction::Cancel(CHAT));
    world.asks("1", read);
    assert_eq!(world.asked(), []);
    assert!(matches!(world.replies()[..], [("1", Reply::Error(RpcError { code: Some(RpcError::CANCELLED), .. }))]));
}

#[test]
fn the_card_of_a_write_outside_shows_what_would_be_written() {
    let mut world = World::running();
    world.asks("1", AgentRequest::WriteFile { session: session(), path: "/etc/x".into(), content: "evil\n".into() });
    let shown = world.shows().rev().find_map(|show| match show {
        Show::Permissions(views) => views.first().map(|view| view.tool.content.clone()),
        _ => None,
    });
    assert_eq!(shown, Some(vec![ToolContent::Text("evil\n".into())]));
}

#[test]
fn a_missing_file_is_an_error_except_for_the_agent_that_cannot_take_one() {
    for (name, expected) in [("gemini-cli", None), ("other", Some(RpcError::NOT_FOUND))] {
        let mut world = World::new();
        world.open(CHAT);
        world.happen(Event::Spawned(CONN));
        world.answer(
            "initialize",
            Answer::Initialized {
                sign_in: Vec::new(),
                protocol_version: 1,
                agent_name: Some(name.into()),
                takes: PromptCapabilities::default(),
                can: SessionCapabilities::default(),
            },
        );
        world.created("s");
        let read = AgentRequest::ReadFile { session: session(), path: "/p/new".into(), line: None, limit: None };
        world.asks("1", read);
        world.happen(Event::FileDone(OpenId(1), FileOutcome::Missing("/p/new does not exist".into())));
        match (world.replies()[0].1, expected) {
            (Reply::Content(text), None) => assert_eq!(text, ""),
            (Reply::Error(error), Some(code)) => assert_eq!(error.code, Some(code)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn file_operations_that_no_call_tells_of_leave_a_trace() {
    let write = || AgentRequest::WriteFile { session: session(), path: "/p/a".into(), content: "x".into() };
    let mut world = World::running();
    world.asks("1", write());
    world.happen(Event::Timer(TimerKey::FileWait(OpenId(1))));
    world.happen(Event::FileDone(OpenId(1), FileOutcome::Written));
    world.asks("2", write());
    world.happen(Event::FileDone(OpenId(2), FileOutcome::Refused("read it again".into())));
    assert_eq!(
        world.transcript()[1..],
        [
            "Info: The agent waits to write a: you are typing in it, or Neovim waits for you.",
            "Info: The agent wrote a.",
            "Warning: The agent did not get a written: read it again",
        ]
    );
    let mut world = World::running();
    let location = Location { path: "/p/a".into(), line: None };
    let patch = ToolCallPatch { id: "t".into(), locations: Some(vec![location]), ..ToolCallPatch::default() };
    world.update(Update::Tool { patch, is_new: true });
    world.asks("1", write());
    world.happen(Event::FileDone(OpenId(1), FileOutcome::Written));
    assert_eq!(world.transcript()[1..], ["tool: t pending"]);
}
