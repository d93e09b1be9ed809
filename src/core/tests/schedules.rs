//! Whatever happens in whatever order, every request of an agent is answered exactly once, or its process has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::world::World;
use crate::core::effect::{Effect, FileJob, GatherJob, Show, TerminalJob};
use crate::core::event::{Departure, Event, FileOutcome, KnownSession, Recalled, TimerKey, UserAction};
use crate::core::ids::{
    CallId, ChatId, ConnId, Millis, OpenId, PromptId, QuestionId, SessionId, SessionKey, TerminalId,
};
use crate::core::message::{
    AgentCall, AgentMessage, AgentRequest, Answer, Choices, PermissionOption, RpcError, SessionCapabilities,
    TerminalExit, TerminalVerb, TerminalWanted, Update,
};
use crate::core::permission::weigh::WeighJob;
use crate::core::prompt::{Found, PromptCapabilities, PromptPart, Source};
use crate::core::requests::ReplyToken;
use crate::core::text::GrowingText;
use crate::core::tool_call::{ToolCallPatch, ToolStatus};
use crate::core::transcript::{Entry, Speaker};

/// One thing that may happen; numbers choose among what there is at that moment.
#[derive(Debug, Clone)]
enum Happening {
    Open(u64),
    Reopen(u64, usize, bool),
    Recalled(usize),
    List,
    Close(u64),
    Prompt(u64, bool),
    TakeBack(u64, u64),
    Cancel(u64),
    Restart(u64),
    Respond(usize, usize),
    Spawned(usize),
    Dies(usize),
    AnswerCall(usize, bool),
    Chunk(usize, usize),
    Tool(usize, u8, u8),
    Asks(usize, usize, u8),
    TakesBack(usize, usize),
    FileDone(usize, u8),
    Gathered(usize),
    Weighed(usize),
    Timer(usize),
    TerminalStarted(usize, bool),
    TerminalRead(usize),
    TerminalExits(usize),
    UserKills(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let chat = 1u64..4;
    prop_oneof![
        2 => chat.clone().prop_map(Happening::Open),
        2 => (chat.clone(), any::<usize>(), any::<bool>()).prop_map(|(c, s, fork)| Happening::Reopen(c, s, fork)),
        2 => any::<usize>().prop_map(Happening::Recalled),
        1 => Just(Happening::List),
        1 => chat.clone().prop_map(Happening::Close),
        4 => (chat.clone(), any::<bool>()).prop_map(|(c, mentions)| Happening::Prompt(c, mentions)),
        1 => (chat.clone(), 0u64..20).prop_map(|(c, p)| Happening::TakeBack(c, p)),
        2 => chat.clone().prop_map(Happening::Cancel),
        1 => chat.prop_map(Happening::Restart),
        3 => (any::<usize>(), 0usize..4).prop_map(|(r, o)| Happening::Respond(r, o)),
        3 => any::<usize>().prop_map(Happening::Spawned),
        1 => any::<usize>().prop_map(Happening::Dies),
        8 => (any::<usize>(), prop::bool::weighted(0.9)).prop_map(|(c, ok)| Happening::AnswerCall(c, ok)),
        2 => (any::<usize>(), 0usize..3).prop_map(|(c, s)| Happening::Chunk(c, s)),
        2 => (any::<usize>(), 0u8..3, 0u8..5).prop_map(|(c, t, s)| Happening::Tool(c, t, s)),
        8 => (any::<usize>(), 0usize..3, 0u8..11).prop_map(|(c, s, k)| Happening::Asks(c, s, k)),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(c, r)| Happening::TakesBack(c, r)),
        3 => (any::<usize>(), 0u8..6).prop_map(|(r, o)| Happening::FileDone(r, o)),
        3 => any::<usize>().prop_map(Happening::Gathered),
        6 => any::<usize>().prop_map(Happening::Weighed),
        1 => any::<usize>().prop_map(Happening::Timer),
        3 => (any::<usize>(), prop::bool::weighted(0.8)).prop_map(|(t, ok)| Happening::TerminalStarted(t, ok)),
        2 => any::<usize>().prop_map(Happening::TerminalRead),
        2 => any::<usize>().prop_map(Happening::TerminalExits),
        1 => (1u64..6).prop_map(Happening::UserKills),
    ]
}

/// What is known outside of the core.
struct Outside {
    world: World,
    alive: Vec<ConnId>,
    calls: Vec<(ConnId, CallId, AgentCall)>,
    sessions: Vec<SessionId>,
    files: Vec<FileJob>,
    gathers: Vec<GatherJob>,
    weighs: Vec<WeighJob>,
    recalls: Vec<ChatId>,
    /// Commands that are to be started.
    starts: Vec<TerminalJob>,
    reads: Vec<(OpenId, TerminalId)>,
    running: Vec<TerminalId>,
    timers: BTreeSet<TimerKey>,
    permissions: Vec<(OpenId, Vec<String>)>,
    /// Requests that were sent, by raw id, and how often each was answered.
    asked: BTreeMap<String, (ConnId, usize)>,
    ended: BTreeSet<ConnId>,
    counter: u64,
}

fn pick<T: Clone>(list: &[T], at: usize) -> Option<T> {
    (!list.is_empty()).then(|| list[at % list.len()].clone())
}

impl Outside {
    fn new() -> Self {
        Self {
            world: World { weighs: false, ..World::new() },
            alive: Vec::new(),
            calls: Vec::new(),
            sessions: Vec::new(),
            files: Vec::new(),
            gathers: Vec::new(),
            weighs: Vec::new(),
            recalls: Vec::new(),
            starts: Vec::new(),
            reads: Vec::new(),
            running: Vec::new(),
            timers: BTreeSet::new(),
            permissions: Vec::new(),
            asked: BTreeMap::new(),
            ended: BTreeSet::new(),
            counter: 0,
        }
    }

    fn event(&mut self, event: Event) {
        self.world.now = Millis(self.world.now.0 + 7);
        self.world.happen(event);
        for effect in std::mem::take(&mut self.world.effects) {
            match effect {
                Effect::Spawn { conn, .. } => self.alive.push(conn),
                Effect::Call(conn, id, call) => self.calls.push((conn, id, call)),
                Effect::Reply(token, _) => {
                    let (conn, answers) = self.asked.get_mut(token.raw_id()).expect("a request that was sent");
                    assert_eq!(*conn, token.conn());
                    *answers += 1;
                }
                Effect::ReadFile(job, _) | Effect::WriteFile(job, _) => self.files.push(job),
                Effect::Gather(job) => self.gathers.push(job),
                Effect::StartTerminal(job) => self.starts.push(*job),
                Effect::ReadTerminal(request, terminal) => self.reads.push((request, terminal)),
                Effect::Weigh(job) => self.weighs.push(job),
                Effect::SetTimer(key, _) => {
                    self.timers.insert(key);
                }
                Effect::ClearTimer(key) => {
                    self.timers.remove(&key);
                }
                Effect::Show(Show::Permissions(views)) => {
                    self.permissions = views
                        .iter()
                        .map(|view| {
                            (view.request, view.choices.iter().map(|choice| choice.option.id.clone()).collect())
                        })
                        .collect();
                }
                Effect::Stop(_)
                | Effect::KillTerminal(_)
                | Effect::ReleaseTerminal(_)
                | Effect::ShowTerminal(_)
                | Effect::FeedTerminal(..)
                | Effect::EndTerminal(..)
                | Effect::Notify(..)
                | Effect::Remember(_)
                | Effect::Transcript(..)
                | Effect::Show(_)
                | Effect::Forget(_)
                | Effect::Survey(_)
                | Effect::BeginTurn(..)
                | Effect::EndTurn(_)
                | Effect::NameFiles(..)
                | Effect::Locate(_)
                | Effect::Look(..)
                | Effect::TakeIn(_)
                | Effect::Undo(_)
                | Effect::Keep(..)
                | Effect::ForgetKept { .. }
                | Effect::Listed { .. }
                | Effect::ForgetSession(..) => {}
                Effect::Recall(chat, ..) => self.recalls.push(chat),
            }
        }
    }

    fn session(&self, at: usize) -> SessionId {
        pick(&self.sessions, at).unwrap_or_else(|| SessionId::from("unknown"))
    }

    fn happen(&mut self, happening: &Happening) {
        self.counter += 1;
        match *happening {
            Happening::Open(chat) => {
                self.event(Event::User(UserAction::Open {
                    chat: ChatId(chat),
                    agent: None,
                    cwd: "/p".into(),
                    known: None,
                }));
            }
            Happening::Reopen(chat, session, is_fork) => {
                let known = Some(KnownSession { session: self.session(session), key: None, title: None, is_fork });
                let cwd = "/p".into();
                self.event(Event::User(UserAction::Open { chat: ChatId(chat), agent: None, cwd, known }));
            }
            Happening::Recalled(at) => {
                if let Some(chat) = pick(&self.recalls, at) {
                    self.recalls.retain(|of| *of != chat);
                    let mut said = GrowingText::default();
                    said.push_str("before");
                    let entries = vec![Entry::User(said)];
                    let kept = Recalled { key: SessionKey(1), title: None, entries };
                    self.event(Event::Recalled(chat, self.counter.is_multiple_of(2).then_some(kept)));
                }
            }
            Happening::List => {
                let question = QuestionId(self.counter);
                let (agent, cwd, at) = (None, None, "/p".into());
                self.event(Event::User(UserAction::ListSessions { question, agent, cwd, at }));
            }
            Happening::Close(chat) => self.event(Event::User(UserAction::Close(ChatId(chat)))),
            Happening::Prompt(chat, mentions) => {
                let source = Source::File { path: "/p/a".into(), lines: None };
                let mention = PromptPart::Mention { label: "@a".into(), source };
                let parts = if mentions { vec![mention] } else { vec![PromptPart::Text("p".into())] };
                let (chat, id) = (ChatId(chat), PromptId(self.counter));
                self.event(Event::User(UserAction::Prompt { chat, id, parts }));
            }
            Happening::Gathered(at) => {
                if !self.gathers.is_empty() {
                    let job = self.gathers.remove(at % self.gathers.len());
                    self.event(Event::Gathered(job.chat, job.prompt, vec![Found::Text("A".into())]));
                }
            }
            Happening::Weighed(at) => {
                if !self.weighs.is_empty() {
                    let job = self.weighs.remove(at % self.weighs.len());
                    self.event(self.world.weighed(&job));
                }
            }
            Happening::TakeBack(chat, id) => {
                self.event(Event::User(UserAction::TakeBack(ChatId(chat), PromptId(id))));
            }
            Happening::Cancel(chat) => self.event(Event::User(UserAction::Cancel(ChatId(chat)))),
            Happening::Restart(chat) => self.event(Event::User(UserAction::Restart(ChatId(chat)))),
            Happening::Respond(at, option) => {
                if let Some((request, options)) = pick(&self.permissions, at) {
                    let option = pick(&options, option).unwrap_or_default();
                    self.event(Event::User(UserAction::Respond { request, option }));
                }
            }
            Happening::FileDone(at, outcome) => {
                if !self.files.is_empty() {
                    let job = self.files.remove(at % self.files.len());
                    self.finish_file(&job, outcome);
                }
            }
            Happening::TerminalStarted(at, ok) => {
                if !self.starts.is_empty() {
                    let job = self.starts.remove(at % self.starts.len());
                    self.start(&job, ok);
                }
            }
            Happening::TerminalRead(at) => {
                if !self.reads.is_empty() {
                    let (request, terminal) = self.reads.remove(at % self.reads.len());
                    self.event(Event::TerminalRead(request, terminal, "text".into(), false));
                }
            }
            Happening::TerminalExits(at) => {
                if !self.running.is_empty() {
                    let terminal = self.running.remove(at % self.running.len());
                    self.exit(terminal);
                }
            }
            Happening::UserKills(terminal) => {
                self.event(Event::User(UserAction::KillTerminal(TerminalId(terminal))));
            }
            Happening::Timer(at) => {
                let timers: Vec<TimerKey> = self.timers.iter().copied().collect();
                if let Some(key) = pick(&timers, at) {
                    self.timers.remove(&key);
                    self.event(Event::Timer(key));
                }
            }
            _ => self.agent_does(happening),
        }
    }

    fn agent_does(&mut self, happening: &Happening) {
        let (Happening::Spawned(at)
        | Happening::Dies(at)
        | Happening::AnswerCall(at, _)
        | Happening::Chunk(at, _)
        | Happening::Tool(at, ..)
        | Happening::Asks(at, ..)
        | Happening::TakesBack(at, _)) = *happening
        else {
            return;
        };
        let Some(conn) = pick(&self.alive, at) else { return };
        match *happening {
            Happening::Spawned(_) => self.event(Event::Spawned(conn)),
            Happening::Dies(_) => self.die(conn),
            Happening::AnswerCall(at, ok) => {
                if let Some((conn, call, what)) = pick(&self.calls, at) {
                    self.calls.retain(|(_, other, _)| *other != call);
                    let result = if ok { Ok(self.answer(&what)) } else { Err(RpcError::new(-1, "no")) };
                    if self.alive.contains(&conn) {
                        self.event(Event::Agent(conn, AgentMessage::Response { call, result }));
                    }
                }
            }
            Happening::Chunk(_, session) => {
                let update = Update::Chunk { speaker: Speaker::Agent, message_id: None, text: "x".into() };
                let session = self.session(session);
                self.event(Event::Agent(conn, AgentMessage::Update { session, update }));
            }
            Happening::Tool(_, tool, status) => {
                let status = [
                    ToolStatus::Pending,
                    ToolStatus::InProgress,
                    ToolStatus::Completed,
                    ToolStatus::Failed,
                    ToolStatus::Other("odd".into()),
                ][usize::from(status)]
                .clone();
                let patch = ToolCallPatch { id: tool.to_string(), status: Some(status), ..ToolCallPatch::default() };
                let session = self.session(at);
                let update = Update::Tool { patch, is_new: at % 2 == 0 };
                self.event(Event::Agent(conn, AgentMessage::Update { session, update }));
            }
            Happening::Asks(_, session, kind) => {
                let raw_id = self.counter.to_string();
                let request = self.request(session, kind);
                self.asked.insert(raw_id.clone(), (conn, 0));
                let token = ReplyToken::new(conn, raw_id);
                self.event(Event::Agent(conn, AgentMessage::Request { token, request }));
            }
            Happening::TakesBack(_, which) => {
                let ids: Vec<String> = self.asked.keys().cloned().collect();
                if let Some(raw_id) = pick(&ids, which) {
                    self.event(Event::Agent(conn, AgentMessage::CancelRequest { raw_id: raw_id.into() }));
                }
            }
            _ => {}
        }
    }

    fn answer(&mut self, call: &AgentCall) -> Answer {
        match call {
            AgentCall::Initialize => Answer::Initialized {
                sign_in: Vec::new(),
                protocol_version: 1,
                agent_name: None,
                takes: PromptCapabilities { image: true, embedded_context: self.counter.is_multiple_of(2) },
                can: SessionCapabilities {
                    load: self.counter.is_multiple_of(3),
                    resume: self.counter.is_multiple_of(2),
                    fork: self.counter.is_multiple_of(5),
                    list: true,
                    close: self.counter.is_multiple_of(2),
                    delete: true,
                    ..SessionCapabilities::default()
                },
            },
            AgentCall::NewSession { .. } => {
                let session = SessionId(Arc::from(format!("s{}", self.counter)));
                self.sessions.push(session.clone());
                Answer::SessionCreated { session, chosen: Choices::default() }
            }
            AgentCall::LoadSession { .. } | AgentCall::ResumeSession { .. } => {
                Answer::SessionOpened { chosen: Choices::default() }
            }
            AgentCall::ForkSession { .. } => {
                let session = SessionId(Arc::from(format!("f{}", self.counter)));
                self.sessions.push(session.clone());
                Answer::SessionCreated { session, chosen: Choices::default() }
            }
            AgentCall::SetOption { .. } => Answer::OptionSet(None),
            AgentCall::ListSessions { .. } => Answer::Sessions { sessions: Vec::new(), next: Some("c".into()) },
            AgentCall::CloseSession { .. }
            | AgentCall::DeleteSession { .. }
            | AgentCall::Logout
            | AgentCall::Authenticate { .. }
            | AgentCall::SetMode { .. }
            | AgentCall::SetModel { .. } => Answer::Done,
            AgentCall::Prompt { .. } => Answer::TurnEnded { stop_reason: "end_turn".into(), tokens: None },
        }
    }

    fn request(&self, session: usize, kind: u8) -> AgentRequest {
        let session = self.session(session);
        let option = |id: &str| PermissionOption { id: id.into(), name: id.into(), kind: "allow_once".into() };
        match kind {
            0 => AgentRequest::Unknown { method: "x".into() },
            1 => AgentRequest::ReadFile {
                session,
                path: if self.counter.is_multiple_of(2) { "/p/a" } else { "/x" }.into(),
                line: None,
                limit: None,
            },
            2 => AgentRequest::WriteFile { session, path: "/p/a".into(), content: "x".into() },
            3 => AgentRequest::ReadFile { session, path: "relative".into(), line: None, limit: None },
            4 => AgentRequest::CreateTerminal {
                session,
                wanted: TerminalWanted {
                    command: "make".into(),
                    args: Vec::new(),
                    env: Vec::new(),
                    cwd: None,
                    output_byte_limit: None,
                },
            },
            5..=8 => AgentRequest::Terminal {
                session,
                id: format!("terminal-{}", self.counter % 4 + 1),
                verb: [TerminalVerb::Output, TerminalVerb::WaitForExit, TerminalVerb::Kill, TerminalVerb::Release]
                    [usize::from(kind - 5)],
            },
            _ => AgentRequest::Permission {
                session,
                tool: ToolCallPatch {
                    id: (kind % 3).to_string(),
                    kind: Some("execute".into()),
                    raw_input: Some(Arc::new(serde_json::json!({ "command": "make" }))),
                    ..ToolCallPatch::default()
                },
                options: vec![option("a"), option("b")],
            },
        }
    }

    fn start(&mut self, job: &TerminalJob, ok: bool) {
        let result = if ok { Ok(()) } else { Err("no such program".to_owned()) };
        if ok {
            self.running.push(job.terminal);
        }
        self.event(Event::TerminalStarted(job.request, job.terminal, result));
    }

    fn exit(&mut self, terminal: TerminalId) {
        self.event(Event::TerminalExited(terminal, TerminalExit { code: Some(0), signal: None }));
    }

    fn finish_file(&mut self, job: &FileJob, outcome: u8) {
        let outcome = match outcome {
            0 => FileOutcome::Missing("m".into()),
            1 => FileOutcome::Refused("r".into()),
            2 => FileOutcome::Failed("f".into()),
            3 => FileOutcome::Written,
            _ => FileOutcome::Read("text".into()),
        };
        self.event(Event::FileDone(job.request, outcome));
    }

    fn die(&mut self, conn: ConnId) {
        self.alive.retain(|other| *other != conn);
        self.ended.insert(conn);
        self.event(Event::Gone(conn, Departure::Ended { how: "exit code 1".into(), stderr: Vec::new() }));
    }

    /// What the edges and the user do at the very least: file operations and commands come to an end, and what is shown is
    /// answered.
    fn settle(&mut self) {
        for round in 0..4 {
            for job in std::mem::take(&mut self.weighs) {
                self.event(self.world.weighed(&job));
            }
            for job in std::mem::take(&mut self.files) {
                self.finish_file(&job, if round == 0 { 3 } else { 4 });
            }
            for job in std::mem::take(&mut self.starts) {
                self.start(&job, true);
            }
            for (request, terminal) in std::mem::take(&mut self.reads) {
                self.event(Event::TerminalRead(request, terminal, "text".into(), false));
            }
            for terminal in std::mem::take(&mut self.running) {
                self.exit(terminal);
            }
            for (request, options) in self.permissions.clone() {
                self.event(Event::User(UserAction::Respond { request, option: options[0].clone() }));
            }
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        prop_assert!(self.world.state.nobody_waits(), "somebody waits");
        for (raw_id, (conn, answers)) in &self.asked {
            prop_assert!(*answers <= 1, "request {raw_id} was answered {answers} times");
            prop_assert!(*answers == 1 || self.ended.contains(conn), "request {raw_id} was not answered");
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn nobody_is_left_waiting(happenings in prop::collection::vec(happening(), 0..80), ending in 0u8..4) {
        let mut outside = Outside::new();
        outside.happen(&Happening::Open(1));
        for happening in &happenings {
            outside.happen(happening);
        }
        match ending {
            0 => outside.settle(),
            1 => outside.event(Event::User(UserAction::Shutdown)),
            2 => for chat in 1..4 {
                outside.event(Event::User(UserAction::Close(ChatId(chat))));
            },
            _ => for conn in outside.alive.clone() {
                outside.die(conn);
            },
        }
        outside.check()?;
    }
}
