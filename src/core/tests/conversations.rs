use std::path::{Path, PathBuf};

use super::world::{CHAT, CONN, World, session};
use crate::core::effect::{Effect, Show, UserEvent};
use crate::core::event::{Departure, Event, FileOutcome, TimerKey, UserAction};
use crate::core::ids::{ChatId, Millis, OpenId, PromptId, SessionId};
use crate::core::message::{AgentMessage, AgentRequest, Answer, Choices, PermissionOption, Reply, RpcError, Update};
use crate::core::prompt::PromptCapabilities;
use crate::core::tool_call::{Location, ToolCallPatch, ToolContent, ToolStatus};
use crate::core::transcript::Speaker;

fn tool(id: &str, status: ToolStatus, is_new: bool) -> Update {
    Update::Tool { patch: ToolCallPatch { id: id.into(), status: Some(status), ..ToolCallPatch::default() }, is_new }
}

fn permission(tool: &str) -> AgentRequest {
    let option = |id: &str, kind: &str| PermissionOption { id: id.into(), name: id.into(), kind: kind.into() };
    AgentRequest::Permission {
        session: session(),
        tool: ToolCallPatch { id: tool.into(), ..ToolCallPatch::default() },
        options: vec![option("yes", "allow_once"), option("no", "reject_once")],
    }
}

/// The requests in the queue that was shown last.
fn asked(world: &World) -> Vec<OpenId> {
    let queue = world.shows().rev().find_map(|show| match show {
        Show::Permissions(views) => Some(views.iter().map(|view| view.request).collect()),
        _ => None,
    });
    queue.unwrap_or_default()
}

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

impl World {
    /// Ends the turn that [`World::running`] began, whose call is no longer among the effects.
    fn ended_turn_of_running(&mut self) {
        let call = crate::core::ids::CallId(3);
        let result = Ok(Answer::TurnEnded { stop_reason: "end_turn".into(), tokens: None });
        self.happen(Event::Agent(CONN, AgentMessage::Response { call, result }));
    }
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
    assert_eq!(asked(&world), []);
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
        Answer::Initialized { protocol_version: 9, agent_name: None, takes: PromptCapabilities::default() },
    );
    assert_eq!(world.shown_state(), Some("failed"));
    assert!(world.transcript()[0].contains("version 9"));
}

#[test]
fn permissions_queue_and_are_answered_with_the_chosen_option() {
    let mut world = World::running();
    world.asks("\"a\"", permission("t"));
    world.asks("\"b\"", permission("u"));
    let queue = asked(&world);
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
    assert_eq!(asked(&world), []);
}

#[test]
fn unknown_and_invalid_requests_get_the_error_that_is_due() {
    let mut world = World::ready();
    world.asks("1", AgentRequest::Unknown { method: "terminal/unheard_of".into() });
    world.asks("null", AgentRequest::Invalid { problem: "no".into() });
    world.asks("2", AgentRequest::TooLong { limit: 9 });
    let codes: Vec<_> = world
        .replies()
        .iter()
        .map(|(id, reply)| match reply {
            Reply::Error(RpcError { code, .. }) => (id.to_owned(), *code),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [RpcError::METHOD_NOT_FOUND, RpcError::INVALID_PARAMS, RpcError::INVALID_REQUEST].map(Some);
    assert_eq!(codes, [("1", expected[0]), ("null", expected[1]), ("2", expected[2])]);
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
fn what_the_user_allowed_is_the_file_that_they_were_asked_about() {
    let mut world = World::running();
    let path = PathBuf::from("/project/link");
    world.asks("1", AgentRequest::ReadFile { session: session(), path, line: None, limit: None });
    world.happen(Event::FileDone(OpenId(1), FileOutcome::Outside("/outside/file".into())));
    world.user(UserAction::Respond { request: OpenId(1), option: "agentchat-allow-once".into() });
    let allowed = world.effects.iter().any(|effect| {
        matches!(effect, Effect::ReadFile(job, _)
            if job.confined_to.is_none() && job.path == Path::new("/outside/file"))
    });
    assert!(allowed, "{:?}", world.effects);
}

#[test]
fn a_file_outside_needs_the_users_consent() {
    let read = || AgentRequest::ReadFile { session: session(), path: "/etc/hosts".into(), line: None, limit: None };
    for allowed in [true, false] {
        let mut world = World::running();
        world.asks("1", read());
        let request = OpenId(1);
        world.happen(Event::FileDone(request, FileOutcome::Outside("/etc/hosts".into())));
        assert_eq!(asked(&world), [request]);
        let option = if allowed { "agentchat-allow-once" } else { "agentchat-reject-once" };
        world.user(UserAction::Respond { request, option: option.into() });
        let unconfined = world
            .effects
            .iter()
            .filter(|effect| matches!(effect, Effect::ReadFile(job, _) if job.confined_to.is_none()))
            .count();
        assert_eq!(unconfined, usize::from(allowed));
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
fn a_missing_file_is_an_error_except_for_the_agent_that_cannot_take_one() {
    for (name, expected) in [("gemini-cli", None), ("other", Some(RpcError::NOT_FOUND))] {
        let mut world = World::new();
        world.open(CHAT);
        world.happen(Event::Spawned(CONN));
        world.answer(
            "initialize",
            Answer::Initialized {
                protocol_version: 1,
                agent_name: Some(name.into()),
                takes: PromptCapabilities::default(),
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
fn a_request_that_the_agent_takes_back_is_answered_once() {
    let mut world = World::running();
    world.asks("5", permission("t"));
    world.happen(Event::Agent(CONN, AgentMessage::CancelRequest { raw_id: "5".into() }));
    assert!(matches!(world.replies()[..], [("5", Reply::Error(RpcError { code: Some(RpcError::CANCELLED), .. }))]));
    assert_eq!(asked(&world), []);
    assert!(world.state.nobody_waits());
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
fn nothing_of_a_bad_prompt_answer_is_lost() {
    let mut world = World::running();
    let error = RpcError { code: None, message: "overloaded".into() };
    let call = crate::core::ids::CallId(3);
    world.happen(Event::Agent(CONN, AgentMessage::Response { call, result: Err(error) }));
    assert_eq!(world.shown_state(), Some("idle"));
    assert_eq!(world.transcript()[1], "Error: The agent could not go on: overloaded.");
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
    let result = Ok(Answer::Initialized { protocol_version: 1, agent_name: None, takes });
    world.happen(Event::Agent(new_conn, AgentMessage::Response { call: initialize, result }));
    let result = Err(RpcError::new(-32603, "shutting down"));
    world.happen(Event::Agent(CONN, AgentMessage::Response { call: old, result }));
    assert_eq!(world.shown_state(), Some("starting"), "{:?}", world.transcript());
}

#[test]
fn no_question_about_a_file_is_asked_while_the_turn_is_being_cancelled() {
    let mut world = World::running();
    let read = AgentRequest::ReadFile { session: session(), path: "/etc/passwd".into(), line: None, limit: None };
    world.asks("1", read);
    world.user(UserAction::Cancel(CHAT));
    world.happen(Event::FileDone(OpenId(1), FileOutcome::Outside("/etc/passwd".into())));
    assert_eq!(asked(&world), []);
}

#[test]
fn what_was_asked_in_a_turn_is_closed_with_it() {
    let mut world = World::ready();
    world.prompt(1, "go");
    world.asks("1", permission("t"));
    world.ended("end_turn");
    assert_eq!(asked(&world), []);
    assert!(world.state.nobody_waits());
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
    let result = Ok(Answer::SessionCreated { session, modes: Vec::new(), chosen: Choices::default() });
    world.happen(Event::Agent(CONN, AgentMessage::Response { call: old, result }));
    assert_eq!(world.shown_state(), Some("starting"), "{:?}", world.transcript());
}

#[test]
fn what_is_asked_outside_of_a_turn_outlives_the_next_one() {
    let mut world = World::ready();
    world.asks("1", permission("t"));
    world.prompt(1, "go");
    world.asks("2", permission("u"));
    world.ended("end_turn");
    assert_eq!(world.replies(), [("2", &Reply::Cancelled)]);
    assert_eq!(asked(&world), [OpenId(1)]);
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

#[test]
fn the_card_of_a_write_outside_shows_what_would_be_written() {
    let mut world = World::running();
    world.asks("1", AgentRequest::WriteFile { session: session(), path: "/etc/x".into(), content: "evil\n".into() });
    world.happen(Event::FileDone(OpenId(1), FileOutcome::Outside("/etc/x".into())));
    let shown = world.shows().rev().find_map(|show| match show {
        Show::Permissions(views) => views.first().map(|view| view.tool.content.clone()),
        _ => None,
    });
    assert_eq!(shown, Some(vec![ToolContent::Text("evil\n".into())]));
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
