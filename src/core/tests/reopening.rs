//! Sessions from before: loaded, resumed, forked, listed, and what becomes of them when an agent dies.

use super::world::{CHAT, CONN, World, tool};
use crate::core::effect::{Effect, Keep, SessionInfo, Show};
use crate::core::event::{Event, KnownSession, Recalled, TimerKey, UserAction};
use crate::core::ids::{ChatId, ConnId, PromptId, QuestionId, SessionId, SessionKey};
use crate::core::message::{AgentCall, AgentMessage, Answer, Choices, RpcError, SessionCapabilities, Update};
use crate::core::plan::Plan;
use crate::core::prompt::{PromptBlock, PromptCapabilities, PromptPart};
use crate::core::text::GrowingText;
use crate::core::tool_call::ToolStatus;
use crate::core::transcript::{Entry, Speaker};

const NOTHING: SessionCapabilities = SessionCapabilities {
    load: false,
    resume: false,
    fork: false,
    list: false,
    close: false,
    delete: false,
    mcp_http: false,
    mcp_sse: false,
    additional_directories: false,
    system_prompt: false,
    logout: false,
};

impl World {
    fn open_known(&mut self, can: SessionCapabilities, is_fork: bool) {
        let known = KnownSession { session: SessionId::from("old"), key: None, title: Some("Old".into()), is_fork };
        let open = UserAction::Open { chat: CHAT, agent: None, cwd: "/p".into(), known: Some(known) };
        self.user(open);
        self.initialized_with(can);
    }

    fn initialized_with(&mut self, can: SessionCapabilities) {
        self.happen(Event::Spawned(self.newest_conn()));
        let takes = PromptCapabilities::default();
        self.answer_on_newest(
            "initialize",
            Ok(Answer::Initialized { protocol_version: 1, agent_name: None, takes, can, sign_in: Vec::new() }),
        );
    }

    fn newest_conn(&self) -> ConnId {
        let mut spawns = self.effects.iter().rev().filter_map(|effect| match effect {
            Effect::Spawn { conn, .. } => Some(*conn),
            _ => None,
        });
        spawns.next().unwrap_or(CONN)
    }

    fn answer_on_newest(&mut self, method: &str, result: Result<Answer, RpcError>) {
        let call = self.newest_call(method).unwrap_or_else(|| panic!("no {method} in {:?}", self.effects));
        self.happen(Event::Agent(self.newest_conn(), AgentMessage::Response { call, result }));
    }

    fn old_says(&mut self, speaker: Speaker, text: &str) {
        let update = Update::Chunk { speaker, message_id: None, text: text.into() };
        self.old_update(update);
    }

    fn old_update(&mut self, update: Update) {
        self.happen(Event::Agent(self.newest_conn(), AgentMessage::Update { session: SessionId::from("old"), update }));
    }

    fn recalled(&mut self, texts: &[&str]) {
        let entries = texts.iter().enumerate().map(|(nth, text)| {
            let mut grown = GrowingText::default();
            grown.push_str(text);
            if nth % 2 == 0 { Entry::User(grown) } else { Entry::Agent(grown) }
        });
        let kept = Recalled { key: SessionKey(7), title: None, entries: entries.collect() };
        self.happen(Event::Recalled(CHAT, (!texts.is_empty()).then_some(kept)));
    }

    fn opened(&mut self, method: &str) {
        self.answer_on_newest(method, Ok(Answer::SessionOpened { chosen: Choices::default() }));
    }

    fn keeps(&self) -> Vec<&Keep> {
        let keeps = self.effects.iter().filter_map(|effect| match effect {
            Effect::Keep(_, keep) => Some(keep),
            _ => None,
        });
        keeps.collect()
    }

    fn prompt_blocks(&self) -> Vec<PromptBlock> {
        let mut prompts = self.effects.iter().rev().filter_map(|effect| match effect {
            Effect::Call(_, _, AgentCall::Prompt { blocks, .. }) => Some(blocks.clone()),
            _ => None,
        });
        prompts.next().unwrap_or_default()
    }
}

#[test]
fn a_loaded_session_shows_its_history_in_order_as_it_comes_and_then_goes_on() {
    let mut world = World::new();
    world.open_known(SessionCapabilities { load: true, ..NOTHING }, false);
    assert!(!world.calls().contains(&"session/load"), "the store was not heard of yet");
    world.prompt(1, "and now");
    world.recalled(&["stale", "text"]);
    world.old_says(Speaker::User, "do it");
    world.old_update(Update::Plan(None, Plan::Steps(Vec::new())));
    world.old_says(Speaker::Thought, "hm");
    world.old_update(tool("t", ToolStatus::InProgress, true));
    world.old_says(Speaker::Agent, "done");
    world.old_says(Speaker::User, "again");
    world.old_update(Update::Plan(None, Plan::Steps(Vec::new())));
    let history =
        ["user: do it", "plan: 0", "thought: hm", "tool: t in_progress", "agent: done", "user: again", "plan: 0"];
    assert_eq!(world.transcript(), history);
    world.opened("session/load");
    assert_eq!(world.transcript()[3], "tool: t unfinished", "nothing runs any more");
    assert_eq!(world.transcript()[7..], ["user: and now"], "what was queued is sent");
    let told = |show: &&Show| matches!(show, Show::UserEvent(_));
    let events = world.shows().filter(told).map(|show| format!("{show:?}")).collect::<Vec<_>>();
    assert!(!events.iter().any(|event| event.contains("ToolCall")), "{events:?}");
    let keep = world.keeps()[0];
    assert_eq!((&*keep.session.0, keep.from, keep.replaces), ("old", 0, Some(SessionKey(7))));
    assert_eq!(keep.title.as_deref(), Some("Old"));
}

#[test]
fn a_resumed_session_shows_what_is_kept_of_it() {
    let mut world = World::new();
    world.open_known(SessionCapabilities { resume: true, ..NOTHING }, false);
    world.recalled(&["do it", "done"]);
    world.opened("session/resume");
    assert_eq!(world.transcript(), ["user: do it", "agent: done"]);
    world.old_says(Speaker::Agent, "more");
    assert_eq!(world.transcript()[2..], ["agent: more"], "what is kept is whole");
    assert_eq!(world.shown_state(), Some("idle"));
}

#[test]
fn where_the_agent_can_open_nothing_the_old_text_is_shown_and_goes_along_once() {
    for refused in [false, true] {
        let mut world = World::new();
        world.open_known(SessionCapabilities { load: refused, ..NOTHING }, false);
        world.recalled(&["do it", "done"]);
        if refused {
            let error = RpcError::new(RpcError::NOT_FOUND, "no such session");
            world.answer_on_newest("session/load", Err(error));
        }
        world.created("new");
        let shown = world.transcript();
        assert_eq!(shown[..2], ["user: do it", "agent: done"]);
        assert!(shown[2].starts_with("Warning: one c") && shown[2].contains("goes along"), "{shown:?}");
        world.prompt(1, "go on");
        let blocks = world.prompt_blocks();
        let PromptBlock::Text(first) = &blocks[0] else { panic!("{blocks:?}") };
        assert!(first.contains("do it") && first.contains("done"), "{first}");
        world.answer("session/prompt", Answer::TurnEnded { stop_reason: "end_turn".into(), tokens: None });
        world.prompt(2, "once more");
        assert_eq!(world.prompt_blocks(), [PromptBlock::Text("once more".into())]);
    }
}

#[test]
fn a_session_that_is_gone_everywhere_is_a_new_one_and_the_user_is_told() {
    let mut world = World::new();
    world.open_known(SessionCapabilities { load: true, ..NOTHING }, false);
    world.recalled(&[]);
    world.answer_on_newest("session/load", Err(RpcError::new(RpcError::NOT_FOUND, "no such session")));
    world.created("new");
    assert_eq!(world.shown_state(), Some("idle"));
    assert!(world.transcript()[0].contains("no such session") && world.transcript()[0].contains("new session begins"));
}

#[test]
fn what_is_kept_can_be_read_although_the_agent_does_not_start_and_is_not_shown_twice() {
    let mut world = World::new();
    let known = KnownSession { session: SessionId::from("old"), key: None, title: None, is_fork: false };
    world.user(UserAction::Open { chat: CHAT, agent: None, cwd: "/p".into(), known: Some(known) });
    world.recalled(&["do it", "done"]);
    world.dies("exit code 1", &[]);
    assert_eq!(world.transcript()[..2], ["user: do it", "agent: done"]);
    assert_eq!(world.shown_state(), Some("failed"));
    world.user(UserAction::Restart(CHAT));
    world.initialized_with(SessionCapabilities { load: true, ..NOTHING });
    world.old_says(Speaker::User, "do it");
    world.opened("session/load");
    assert_eq!(world.transcript().iter().filter(|line| *line == "user: do it").count(), 1);
    assert_eq!(world.shown_state(), Some("idle"));
}

#[test]
fn a_fork_is_a_session_of_its_own_that_begins_with_what_was_said() {
    let mut world = World::new();
    world.open_known(SessionCapabilities { load: true, fork: true, ..NOTHING }, true);
    world.recalled(&["do it", "done"]);
    let session = SessionId::from("copy");
    let created = Answer::SessionCreated { session, chosen: Choices::default() };
    world.answer_on_newest("session/fork", Ok(created));
    assert_eq!(world.transcript(), ["user: do it", "agent: done"]);
    let keep = world.keeps()[0];
    assert_eq!((&*keep.session.0, keep.from, keep.replaces), ("copy", 0, None));
}

#[test]
fn an_agent_that_died_goes_on_with_the_session_if_it_can() {
    for can in [SessionCapabilities { load: true, ..NOTHING }, SessionCapabilities { resume: true, ..NOTHING }] {
        let mut world = World::new();
        world.open(CHAT);
        world.initialized_with(can);
        world.created("old");
        world.prompt(1, "do it");
        world.old_says(Speaker::Agent, "half");
        world.dies("signal 9 (SIGKILL)", &[]);
        world.prompt(2, "go on");
        world.initialized_with(can);
        // The history is on the screen already.
        world.old_says(Speaker::User, "do it");
        world.opened(if can.load { "session/load" } else { "session/resume" });
        let shown = world.transcript();
        assert_eq!(shown[..2], ["user: do it", "agent: half"]);
        assert!(shown.iter().any(|line| line.contains("goes on with this session")), "{shown:?}");
        assert_eq!(shown.last().map(String::as_str), Some("user: go on"));
        assert_eq!(world.keeps().len(), 1, "it is kept as one session");
    }
}

#[test]
fn an_agent_that_died_and_refuses_the_session_says_that_the_talk_is_lost_and_can_be_told_of_it() {
    let can = SessionCapabilities { load: true, ..NOTHING };
    let mut world = World::new();
    world.open(CHAT);
    world.initialized_with(can);
    world.created("old");
    world.prompt(1, "do it");
    world.dies("signal 9 (SIGKILL)", &[]);
    world.prompt(2, "go on");
    world.initialized_with(can);
    world.answer_on_newest("session/load", Err(RpcError::new(RpcError::NOT_FOUND, "gone")));
    let session = SessionId::from("new");
    let created = Answer::SessionCreated { session, chosen: Choices::default() };
    world.user(UserAction::TakeAlong(CHAT));
    world.answer_on_newest("session/new", Ok(created));
    assert!(world.transcript().iter().any(|line| line.contains("does not know what was said above")));
    assert_eq!(world.taken_back(), [""; 0], "the prompt was written after the crash");
    let blocks = world.prompt_blocks();
    assert!(matches!(&blocks[0], PromptBlock::Text(text) if text.contains("do it")), "{blocks:?}");
}

#[test]
fn history_that_takes_long_is_waited_for_as_long_as_it_comes() {
    let mut world = World::new();
    world.open_known(SessionCapabilities { load: true, ..NOTHING }, false);
    world.recalled(&[]);
    world.effects.clear();
    world.old_says(Speaker::User, "do it");
    let prolonged = |effect: &Effect| matches!(effect, Effect::SetTimer(TimerKey::NewSession(CHAT), _));
    assert!(world.effects.iter().any(prolonged));
    world.happen(Event::Timer(TimerKey::NewSession(CHAT)));
    assert!(world.transcript().last().is_some_and(|line| line.contains("`session/load` within")));
}

#[test]
fn pages_are_asked_for_until_there_is_no_cursor_or_one_comes_again() {
    let info = |id: &str| SessionInfo { id: SessionId::from(id), cwd: "/p".into(), title: None, updated_at: None };
    let page = |ids: &[&str], next: Option<&str>| Answer::Sessions {
        sessions: ids.iter().map(|id| info(id)).collect(),
        next: next.map(str::to_owned),
    };
    for last in [None, Some("1")] {
        let mut world = World::new();
        let question = QuestionId(5);
        world.user(UserAction::ListSessions { question, agent: None, cwd: None, at: "/p".into() });
        world.initialized_with(SessionCapabilities { list: true, ..NOTHING });
        world.answer("session/list", page(&["a", "b"], Some("1")));
        world.answer("session/list", page(&["b", "c"], Some("2")));
        world.answer("session/list", page(&["d"], last));
        assert_eq!(world.calls().iter().filter(|method| **method == "session/list").count(), 3);
        let listed = world.effects.iter().find_map(|effect| match effect {
            Effect::Listed { question: QuestionId(5), sessions, problem: None, .. } => Some(sessions.clone()),
            _ => None,
        });
        let ids: Vec<_> = listed.expect("a list").iter().map(|session| session.id.to_string()).collect();
        assert_eq!(ids, ["a", "b", "c", "d"]);
        world.happen(Event::Timer(TimerKey::Unused(CONN)));
        assert!(world.effects.iter().any(|effect| matches!(effect, Effect::Stop(CONN))), "nobody used the agent");
    }
}

#[test]
fn a_list_is_answered_whatever_the_agent_does() {
    let list = || {
        let mut world = World::new();
        let question = QuestionId(5);
        world.user(UserAction::ListSessions { question, agent: None, cwd: None, at: "/p".into() });
        world
    };
    let problem = |world: &World| {
        world.effects.iter().find_map(|effect| match effect {
            Effect::Listed { problem, .. } => Some(problem.clone()),
            _ => None,
        })
    };
    let mut world = list();
    world.initialized_with(NOTHING);
    assert_eq!(problem(&world), Some(None), "an agent that cannot list is no problem");
    let mut world = list();
    world.dies("exit code 1", &[]);
    assert!(problem(&world).flatten().is_some_and(|text| text.contains("exit code 1")));
    let mut world = list();
    world.happen(Event::Timer(TimerKey::List(QuestionId(5))));
    assert!(problem(&world).flatten().is_some_and(|text| text.contains("too long")));
    let mut world = list();
    world.initialized_with(SessionCapabilities { list: true, ..NOTHING });
    world.answer_on_newest("session/list", Err(RpcError::new(-32603, "broken")));
    assert!(problem(&world).flatten().is_some_and(|text| text.contains("broken")));
}

#[test]
fn a_session_is_closed_and_deleted_where_the_agent_can() {
    let can = SessionCapabilities { close: true, delete: true, ..NOTHING };
    let mut world = World::new();
    world.open(CHAT);
    world.initialized_with(can);
    world.created("one");
    world.open(ChatId(2));
    world.created("two");
    let delete = |session: &str| UserAction::DeleteSession {
        agent: "one".into(),
        session: Some(SessionId::from(session)),
        key: None,
    };
    world.user(delete("one"));
    assert!(!world.calls().contains(&"session/delete"), "it is open");
    world.user(UserAction::Close(CHAT));
    assert!(world.calls().contains(&"session/close"));
    world.user(delete("one"));
    assert!(world.calls().contains(&"session/delete"));
    assert!(world.effects.iter().any(|effect| matches!(effect, Effect::ForgetKept { .. })));
    world.user(UserAction::Prompt { chat: ChatId(2), id: PromptId(9), parts: vec![PromptPart::Text("x".into())] });
    assert!(world.calls().contains(&"session/prompt"), "the other chat goes on");
}
