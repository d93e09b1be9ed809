//! Agents that start, die and are started again, and the sessions that chats have with them.

use super::world::{CHAT, CONN, World, permission, tool};
use crate::core::effect::{Effect, Show};
use crate::core::event::{Departure, Event, TimerKey, UserAction};
use crate::core::ids::{ChatId, PromptId, SessionId};
use crate::core::message::{AgentMessage, Answer, Choices, Reply, RpcError, SessionCapabilities, Update};
use crate::core::prompt::PromptCapabilities;
use crate::core::tool_call::ToolStatus;

#[test]
fn updates_before_the_answer_to_session_new_are_applied_after_it() {
    let mut world = World::new();
    world.open(CHAT);
    world.initialized();
    world.says("early");
    world.update(Update::Mode("plan".into()));
    assert_eq!(world.transcript(), [""; 0]);
    world.created("s");
    assert_eq!(world.transcript(), ["agent: early"]);
    assert!(
        world.shows().any(|show| matches!(show, Show::Status(_, status) if status.mode.as_deref() == Some("plan")))
    );
}

#[test]
fn updates_of_sessions_that_nobody_waits_for_leave_room_for_those_of_new_ones() {
    let mut world = World::ready();
    for _ in 0..20_000 {
        let update = Update::Mode("x".into());
        world.happen(Event::Agent(CONN, AgentMessage::Update { session: SessionId::from("closed"), update }));
    }
    world.open(ChatId(2));
    let update = Update::Mode("plan".into());
    world.happen(Event::Agent(CONN, AgentMessage::Update { session: SessionId::from("s2"), update }));
    world.created("s2");
    let mode = |show: &Show| matches!(show, Show::Status(ChatId(2), status) if status.mode.as_deref() == Some("plan"));
    assert!(world.shows().any(mode));
}

#[test]
fn an_agent_with_one_session_for_all_chats_talks_to_the_newest() {
    let mut world = World::ready();
    world.open(ChatId(2));
    world.created("s");
    world.user(UserAction::Close(CHAT));
    world.says("still here");
    assert_eq!(world.state.transcript(ChatId(2)).map(|transcript| transcript.entries().len()), Some(1));
}

#[test]
fn a_start_can_be_cancelled_and_a_prompt_starts_it_again() {
    let mut world = World::new();
    world.open(CHAT);
    world.user(UserAction::Cancel(CHAT));
    assert_eq!(world.shown_state(), Some("stopped"));
    assert!(world.effects.iter().any(|effect| matches!(effect, Effect::Stop(CONN))));
    world.dies("ended on request", &[]);
    assert_eq!(world.shown_state(), Some("stopped"));
    world.effects.clear();
    world.prompt(1, "again");
    assert!(world.effects.iter().any(|effect| matches!(effect, Effect::Spawn { .. })));
}

#[test]
fn what_takes_too_long_is_said_and_can_be_tried_again() {
    let mut world = World::new();
    world.open(CHAT);
    world.happen(Event::Spawned(CONN));
    world.happen(Event::Timer(TimerKey::Initialize(CONN)));
    assert_eq!(world.shown_state(), Some("failed"));
    assert_eq!(
        world.transcript(),
        ["Error: one did not answer `initialize` within 1 s. `:AgentChat restart` tries again."]
    );
    let mut world = World::new();
    world.open(CHAT);
    world.initialized();
    world.happen(Event::Timer(TimerKey::NewSession(CHAT)));
    assert_eq!(world.shown_state(), Some("failed"));
    // The late answer opens no session.
    world.created("s");
    assert_eq!(world.shown_state(), Some("failed"));
    world.user(UserAction::Restart(CHAT));
    assert_eq!(world.shown_state(), Some("starting"));
}

#[test]
fn an_agent_that_dies_is_told_with_its_last_words() {
    let mut world = World::running();
    world.update(tool("t", ToolStatus::InProgress, true));
    world.asks("1", permission("t"));
    world.dies("exit code 3", &["boom"]);
    assert_eq!(world.shown_state(), Some("failed"));
    assert_eq!(world.transcript()[1], "tool: t unfinished");
    let notice = &world.transcript()[2];
    assert!(notice.contains("exit code 3") && notice.contains("boom") && notice.contains("restart"), "{notice}");
    assert!(world.state.nobody_waits());
    assert_eq!(world.asked(), []);
}

#[test]
fn an_agent_that_cannot_be_started_keeps_the_prompt() {
    let mut world = World::new();
    world.open(CHAT);
    world.prompt(1, "keep me");
    world.happen(Event::Gone(CONN, Departure::NotStarted("no such program.".into())));
    assert_eq!(world.shown_state(), Some("failed"));
    world.user(UserAction::TakeBack(CHAT, PromptId(1)));
    assert_eq!(world.taken_back(), ["keep me"]);
}

#[test]
fn a_wrong_protocol_version_is_reported() {
    let mut world = World::new();
    world.open(CHAT);
    world.happen(Event::Spawned(CONN));
    world.answer(
        "initialize",
        Answer::Initialized {
            sign_in: Vec::new(),
            protocol_version: 9,
            agent_name: None,
            takes: PromptCapabilities::default(),
            can: SessionCapabilities::default(),
        },
    );
    assert_eq!(world.shown_state(), Some("failed"));
    assert!(world.transcript()[0].contains("version 9"));
}

#[test]
fn what_comes_before_the_session_is_kept_within_bounds_and_the_loss_is_told_once() {
    let mut world = World::new();
    world.open(CHAT);
    world.initialized();
    for _ in 0..20 {
        world.says(&"x".repeat(1024 * 1024));
    }
    let told = world.transcript().iter().filter(|text| text.contains("was dropped")).count();
    assert_eq!(told, 1);
    world.created("s");
    let length: usize = world.transcript().iter().map(String::len).sum();
    assert!((6 * 1024 * 1024..9 * 1024 * 1024).contains(&length), "{length} bytes were kept");
}

#[test]
fn two_chats_share_the_agents_process_and_not_their_fate() {
    let mut world = World::ready();
    world.open(ChatId(2));
    assert_eq!(world.calls(), ["session/new"]);
    world.created("other");
    world.user(UserAction::Close(CHAT));
    assert!(!world.effects.iter().any(|effect| matches!(effect, Effect::Stop(_))));
    world.user(UserAction::Close(ChatId(2)));
    assert!(world.effects.iter().any(|effect| matches!(effect, Effect::Stop(CONN))));
}

#[test]
fn a_restart_says_that_the_context_is_lost() {
    let mut world = World::running();
    world.asks("1", permission("t"));
    world.user(UserAction::Restart(CHAT));
    assert_eq!(world.replies(), [("1", &Reply::Cancelled)]);
    assert_eq!(world.shown_state(), Some("starting"));
    assert!(world.transcript().last().is_some_and(|line| line.contains("does not know what was said above")));
}

#[test]
fn a_late_error_of_the_old_process_does_not_fail_the_new_session() {
    let mut world = World::new();
    world.open(CHAT);
    world.initialized();
    let old = world.newest_call("session/new").expect("a call");
    world.user(UserAction::Restart(CHAT));
    let new_conn = crate::core::ids::ConnId(2);
    world.happen(Event::Spawned(new_conn));
    let initialize = world.newest_call("initialize").expect("a call");
    let takes = PromptCapabilities::default();
    let result = Ok(Answer::Initialized {
        sign_in: Vec::new(),
        protocol_version: 1,
        agent_name: None,
        takes,
        can: SessionCapabilities::default(),
    });
    world.happen(Event::Agent(new_conn, AgentMessage::Response { call: initialize, result }));
    let result = Err(RpcError::new(-32603, "shutting down"));
    world.happen(Event::Agent(CONN, AgentMessage::Response { call: old, result }));
    assert_eq!(world.shown_state(), Some("starting"), "{:?}", world.transcript());
}

#[test]
fn a_session_that_was_cancelled_is_not_the_new_one() {
    let mut world = World::new();
    world.open(CHAT);
    world.initialized();
    let old = world.newest_call("session/new").expect("a call");
    world.open(ChatId(2));
    world.user(UserAction::Cancel(CHAT));
    world.user(UserAction::Restart(CHAT));
    let session = SessionId::from("old");
    let result = Ok(Answer::SessionCreated { session, chosen: Choices::default() });
    world.happen(Event::Agent(CONN, AgentMessage::Response { call: old, result }));
    assert_eq!(world.shown_state(), Some("starting"), "{:?}", world.transcript());
}

#[test]
fn an_agent_that_does_not_get_ready_is_told_with_its_last_words() {
    for refuses_session in [false, true] {
        let mut world = World::new();
        world.open(CHAT);
        if refuses_session {
            world.initialized();
            let call = world.newest_call("session/new").expect("a call");
            let result = Err(RpcError::new(-32603, "no"));
            world.happen(Event::Agent(CONN, AgentMessage::Response { call, result }));
        } else {
            world.happen(Event::Spawned(CONN));
            world.happen(Event::Timer(TimerKey::Initialize(CONN)));
        }
        assert!(world.effects.iter().any(|effect| matches!(effect, Effect::Stop(CONN))));
        world.dies("ended on request", &["set the key first"]);
        let notice = world.transcript().last().cloned().unwrap_or_default();
        assert!(notice.starts_with("Error: ") && notice.contains("set the key first"), "{notice}");
    }
}

#[test]
fn what_was_queued_in_a_talk_is_not_sent_to_an_agent_that_knows_nothing_of_it() {
    for crashes in [false, true] {
        let mut world = World::running();
        world.prompt(2, "and now the other one");
        if crashes {
            world.dies("exit code 1", &[]);
            world.prompt(3, "written after the end");
        } else {
            world.user(UserAction::Restart(CHAT));
        }
        assert_eq!(world.taken_back(), ["and now the other one"]);
        assert!(world.transcript().last().is_some_and(|line| line.contains("is back in the prompt")));
        assert_eq!(world.shown_state(), Some("starting"));
        // Only what was written after that is sent.
        let queued = world.shows().rev().find_map(|show| match show {
            Show::Queued(_, prompts, _) => Some(prompts.iter().map(|(id, _)| id.0).collect::<Vec<_>>()),
            _ => None,
        });
        assert_eq!(queued.unwrap_or_default(), if crashes { vec![3] } else { vec![] });
    }
}

#[test]
fn a_restart_after_a_start_that_failed_loses_nothing() {
    let mut world = World::new();
    world.open(CHAT);
    world.prompt(1, "hello");
    world.happen(Event::Gone(CONN, Departure::NotStarted("no such program.".into())));
    world.user(UserAction::Restart(CHAT));
    assert_eq!(world.taken_back(), [""; 0]);
    assert_eq!(world.transcript().len(), 1, "nothing was said that the agent could not know: {:?}", world.transcript());
}
