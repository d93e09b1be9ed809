//! Prompts, what comes in a turn, and how it ends.

use super::world::{CHAT, CONN, World, permission, tool};
use crate::core::effect::{Effect, Show, UserEvent};
use crate::core::event::{Event, TimerKey, UserAction};
use crate::core::ids::{Millis, PromptId};
use crate::core::message::{AgentMessage, Answer, Reply, RpcError, Update};
use crate::core::tool_call::ToolStatus;
use crate::core::transcript::Speaker;

#[test]
fn a_prompt_waits_for_the_session_and_then_goes_out() {
    let mut world = World::new();
    world.open(CHAT);
    world.prompt(1, "hello");
    assert!(matches!(world.effects[0], Effect::Spawn { .. }));
    assert_eq!(world.shown_state(), Some("starting"));
    world.initialized();
    assert_eq!(world.calls(), ["initialize", "session/new"]);
    world.created("s");
    assert_eq!(world.calls(), ["initialize", "session/new", "session/prompt"]);
    world.says("hi");
    world.ended("end_turn");
    assert_eq!(world.transcript(), ["user: hello", "agent: hi"]);
    assert_eq!(world.shown_state(), Some("idle"));
}

#[test]
fn a_prompt_in_a_running_turn_is_queued_and_can_be_taken_back() {
    let mut world = World::running();
    world.prompt(2, "second");
    world.prompt(3, "third");
    world.user(UserAction::TakeBack(CHAT, PromptId(2)));
    assert_eq!(world.taken_back(), ["second"]);
    assert_eq!(world.calls(), [""; 0]);
    world.ended_turn_of_running();
    assert_eq!(world.calls(), ["session/prompt"]);
    assert_eq!(world.transcript(), ["user: go", "user: third"]);
}

#[test]
fn cancel_settles_calls_answers_permissions_and_still_takes_late_updates() {
    let mut world = World::running();
    world.update(tool("t", ToolStatus::InProgress, true));
    world.asks("7", permission("t"));
    world.prompt(2, "queued before the cancel");
    world.user(UserAction::Cancel(CHAT));
    assert_eq!(world.calls(), ["session/cancel"]);
    assert_eq!(world.replies(), [("7", &Reply::Cancelled)]);
    assert_eq!(world.taken_back(), ["queued before the cancel"]);
    assert_eq!(world.shown_state(), Some("cancelling"));
    assert_eq!(world.transcript()[1], "tool: t cancelled");
    world.prompt(3, "after");
    world.says("late");
    world.update(tool("t", ToolStatus::InProgress, false));
    world.asks("8", permission("t"));
    assert_eq!(world.replies()[1], ("8", &Reply::Cancelled));
    assert_eq!(world.transcript()[1..], ["tool: t cancelled", "agent: late"]);
    world.update(tool("t", ToolStatus::Completed, false));
    assert_eq!(world.transcript()[1], "tool: t completed");
    let call = crate::core::ids::CallId(3);
    let result = Ok(Answer::TurnEnded { stop_reason: "cancelled".into(), tokens: None });
    world.happen(Event::Agent(CONN, AgentMessage::Response { call, result }));
    assert_eq!(world.calls(), ["session/cancel", "session/prompt"]);
    assert_eq!(world.transcript()[3..], ["Stop: Cancelled.", "user: after"]);
}

#[test]
fn a_second_cancel_or_the_grace_time_ends_the_turn_by_force() {
    for by_timer in [false, true] {
        let mut world = World::running();
        world.user(UserAction::Cancel(CHAT));
        if by_timer {
            world.now = Millis(500);
            world.happen(Event::Timer(TimerKey::CancelGrace(CHAT)));
        } else {
            world.user(UserAction::Cancel(CHAT));
        }
        assert_eq!(world.shown_state(), Some("idle"));
        assert!(world.transcript()[1].starts_with("Stop: Ended here"), "{:?}", world.transcript());
        world.prompt(2, "next");
        assert_eq!(world.calls(), ["session/cancel", "session/prompt"]);
        // The answer to the old prompt, when it comes at last, ends nothing.
        world.ended_turn_of_running();
        assert_eq!(world.shown_state(), Some("running"));
    }
}

#[test]
fn cancel_before_the_session_exists_means_that_the_prompt_is_never_sent() {
    let mut world = World::new();
    world.open(CHAT);
    world.prompt(1, "never");
    world.user(UserAction::Cancel(CHAT));
    assert_eq!(world.taken_back(), ["never"]);
    world.initialized();
    world.created("s");
    assert_eq!(world.calls(), ["initialize", "session/new"]);
    assert_eq!(world.shown_state(), Some("idle"));
}

#[test]
fn calls_left_open_at_the_end_of_a_turn_are_settled() {
    let mut world = World::running();
    world.update(tool("t", ToolStatus::Pending, true));
    world.ended_turn_of_running();
    assert_eq!(world.transcript(), ["user: go", "tool: t unfinished"]);
}

#[test]
fn a_call_id_that_comes_again_in_a_later_turn_is_a_new_call() {
    let mut world = World::running();
    world.update(tool("t", ToolStatus::Completed, true));
    world.ended_turn_of_running();
    world.prompt(2, "again");
    world.update(tool("t", ToolStatus::Pending, true));
    world.update(tool("t", ToolStatus::Failed, false));
    assert_eq!(world.transcript(), ["user: go", "tool: t completed", "user: again", "tool: t failed"]);
}

#[test]
fn nothing_of_a_bad_prompt_answer_is_lost() {
    let mut world = World::running();
    let error = RpcError { code: None, message: "overloaded".into() };
    let call = crate::core::ids::CallId(3);
    world.happen(Event::Agent(CONN, AgentMessage::Response { call, result: Err(error) }));
    assert_eq!(world.shown_state(), Some("idle"));
    assert_eq!(world.transcript()[1], "Error: The agent could not go on: overloaded.");
}

#[test]
fn scripts_are_told_of_a_calls_status_and_not_of_each_of_its_updates() {
    let mut world = World::running();
    for status in [ToolStatus::Pending, ToolStatus::InProgress, ToolStatus::InProgress, ToolStatus::Completed] {
        world.update(tool("t", status, false));
    }
    let told = world.shows().filter_map(|show| match show {
        Show::UserEvent(UserEvent::ToolCall(_, _, status)) => Some(status.as_str()),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), ["pending", "in_progress", "completed"]);
}

#[test]
fn what_an_agent_says_for_the_user_is_not_part_of_the_prompt() {
    let mut world = World::running();
    for text in ["as you ", "said"] {
        world.update(Update::Chunk { speaker: Speaker::User, message_id: None, text: text.into() });
    }
    assert_eq!(world.transcript(), ["user: go", "user: as you said"]);
}
