//! A core and what it wanted done, for tests to look at.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use crate::core::config::{AgentSpec, Config, Timeouts};
use crate::core::effect::{Effect, Show};
use crate::core::event::{Departure, Event, UserAction};
use crate::core::ids::{CallId, ChatId, ConnId, Millis, OpenId, PromptId, SessionId};
use crate::core::message::{
    AgentCall, AgentMessage, AgentRequest, Answer, Choices, PermissionOption, Reply, SessionCapabilities, Update,
};
use crate::core::permission::facts::{Place, normalized};
use crate::core::permission::judge::{Kept, Rules};
use crate::core::permission::weigh::{WeighJob, Weighed};
use crate::core::plan::Plan;
use crate::core::prompt::{PromptCapabilities, PromptPart};
use crate::core::requests::ReplyToken;
use crate::core::tool_call::{ToolCallPatch, ToolStatus};
use crate::core::transcript::{Entry, Severity, Speaker, Transcript};
use crate::core::{State, step};

pub(super) const CHAT: ChatId = ChatId(1);
pub(super) const CONN: ConnId = ConnId(1);

pub(super) struct World {
    pub(super) state: State,
    pub(super) now: Millis,
    pub(super) effects: Vec<Effect>,
    /// Whether requests are weighed at once, by the names of their paths.
    pub(super) weighs: bool,
    /// What was answered with "always" before, newest first.
    pub(super) kept: Vec<Kept>,
}

pub(super) fn session() -> SessionId {
    SessionId::from("s")
}

pub(super) fn tool(id: &str, status: ToolStatus, is_new: bool) -> Update {
    Update::Tool { patch: ToolCallPatch { id: id.into(), status: Some(status), ..ToolCallPatch::default() }, is_new }
}

pub(super) fn permission(tool: &str) -> AgentRequest {
    let option = |id: &str, kind: &str| PermissionOption { id: id.into(), name: id.into(), kind: kind.into() };
    AgentRequest::Permission {
        session: session(),
        tool: ToolCallPatch { id: tool.into(), ..ToolCallPatch::default() },
        options: vec![option("yes", "allow_once"), option("no", "reject_once")],
    }
}

impl World {
    pub(super) fn new() -> Self {
        let spec = AgentSpec { command: vec!["agent".into()], ..AgentSpec::default() };
        let config = Config {
            agents: BTreeMap::from([("one".to_owned(), spec.clone()), ("two".to_owned(), spec)]),
            default_agent: "one".into(),
            mcp_servers: Vec::new(),
            additional_directories: Vec::new(),
            system_prompt: None,
            timeouts: Timeouts { initialize: 1000, session_new: 1000, cancel_grace: 500 },
            follow_interval: 250,
            tell_rejections: true,
            rules: Rules::default(),
        };
        Self { state: State::new(config), now: Millis(0), effects: Vec::new(), weighs: true, kept: Vec::new() }
    }

    /// A chat with a session that is ready.
    pub(super) fn ready() -> Self {
        let mut world = Self::new();
        world.open(CHAT);
        world.initialized();
        world.created("s");
        world.effects.clear();
        world
    }

    /// A chat whose turn runs.
    pub(super) fn running() -> Self {
        let mut world = Self::ready();
        world.prompt(1, "go");
        world.effects.clear();
        world
    }

    /// Ends the turn that [`World::running`] began, whose call is no longer among the effects.
    pub(super) fn ended_turn_of_running(&mut self) {
        let result = Ok(Answer::TurnEnded { stop_reason: "end_turn".into(), tokens: None });
        self.happen(Event::Agent(CONN, AgentMessage::Response { call: CallId(3), result }));
    }

    pub(super) fn happen(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for effect in step(&mut self.state, event, self.now) {
                match effect {
                    Effect::Weigh(job) if self.weighs => events.push_back(self.weighed(&job)),
                    effect => self.effects.push(effect),
                }
            }
        }
    }

    /// What an edge finds out where no path is a link.
    pub(super) fn weighed(&self, job: &WeighJob) -> Event {
        let places = job
            .candidates
            .iter()
            .filter(|candidate| !candidate.is_word)
            .map(|candidate| Place { named: candidate.path.clone(), resolved: normalized(&candidate.path) });
        let weighed = Weighed {
            root: job.root.clone(),
            additional: job.additional.clone(),
            places: places.collect(),
            is_complete: true,
            kept: self.kept.clone(),
        };
        Event::Weighed(job.request, weighed)
    }

    pub(super) fn user(&mut self, action: UserAction) {
        self.happen(Event::User(action));
    }

    pub(super) fn open(&mut self, chat: ChatId) {
        self.user(UserAction::Open { chat, agent: None, cwd: PathBuf::from("/p"), known: None });
    }

    pub(super) fn prompt(&mut self, id: u64, text: &str) {
        self.user(UserAction::Prompt { chat: CHAT, id: PromptId(id), parts: vec![PromptPart::Text(text.to_owned())] });
    }

    /// The agent's process runs, and answers `initialize`.
    pub(super) fn initialized(&mut self) {
        self.happen(Event::Spawned(CONN));
        self.answer(
            "initialize",
            Answer::Initialized {
                sign_in: Vec::new(),
                protocol_version: 1,
                agent_name: None,
                takes: PromptCapabilities::default(),
                can: SessionCapabilities::default(),
            },
        );
    }

    /// The agent answers `session/new`.
    pub(super) fn created(&mut self, session: &str) {
        let session = SessionId::from(session);
        self.answer("session/new", Answer::SessionCreated { session, chosen: Choices::default() });
    }

    pub(super) fn ended(&mut self, stop_reason: &str) {
        self.answer("session/prompt", Answer::TurnEnded { stop_reason: stop_reason.into(), tokens: None });
    }

    /// The agent answers the newest call of that method.
    pub(super) fn answer(&mut self, method: &str, answer: Answer) {
        let call = self.newest_call(method).unwrap_or_else(|| panic!("no {method} in {:?}", self.effects));
        self.happen(Event::Agent(CONN, AgentMessage::Response { call, result: Ok(answer) }));
    }

    pub(super) fn newest_call(&self, method: &str) -> Option<CallId> {
        self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Call(_, id, call) if method_of(call) == method => Some(*id),
            _ => None,
        })
    }

    pub(super) fn says(&mut self, text: &str) {
        let update = Update::Chunk { speaker: Speaker::Agent, message_id: None, text: text.into() };
        self.update(update);
    }

    pub(super) fn update(&mut self, update: Update) {
        self.happen(Event::Agent(CONN, AgentMessage::Update { session: session(), update }));
    }

    pub(super) fn asks(&mut self, raw_id: &str, request: AgentRequest) {
        let token = ReplyToken::new(CONN, raw_id);
        self.happen(Event::Agent(CONN, AgentMessage::Request { token, request }));
    }

    pub(super) fn dies(&mut self, how: &str, stderr: &[&str]) {
        let stderr = stderr.iter().map(|&line| line.to_owned()).collect();
        self.happen(Event::Gone(CONN, Departure::Ended { how: how.into(), stderr }));
    }

    /// The calls that were sent, by method.
    pub(super) fn calls(&self) -> Vec<&'static str> {
        let methods = self.effects.iter().filter_map(|effect| match effect {
            Effect::Call(_, _, call) => Some(method_of(call)),
            Effect::Notify(..) => Some("session/cancel"),
            _ => None,
        });
        methods.collect()
    }

    /// The answers that were sent: raw id and answer.
    pub(super) fn replies(&self) -> Vec<(&str, &Reply)> {
        let replies = self.effects.iter().filter_map(|effect| match effect {
            Effect::Reply(token, reply) => Some((token.raw_id(), reply)),
            _ => None,
        });
        replies.collect()
    }

    pub(super) fn shows(&self) -> impl DoubleEndedIterator<Item = &Show> {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::Show(show) => Some(show),
            _ => None,
        })
    }

    /// The word for the state that was shown last.
    pub(super) fn shown_state(&self) -> Option<&'static str> {
        self.shows().rev().find_map(|show| match show {
            Show::Status(CHAT, status) => Some(status.state.as_str()),
            _ => None,
        })
    }

    /// The texts that went back into the prompt.
    pub(super) fn taken_back(&self) -> Vec<String> {
        let texts = self.shows().filter_map(|show| match show {
            Show::TakenBack(_, _, text) => Some(text.clone()),
            _ => None,
        });
        texts.collect()
    }

    /// The requests in the queue that was shown last.
    pub(super) fn asked(&self) -> Vec<OpenId> {
        let queue = self.shows().rev().find_map(|show| match show {
            Show::Permissions(views) => Some(views.iter().map(|view| view.request).collect()),
            _ => None,
        });
        queue.unwrap_or_default()
    }

    /// The transcript, a line for each entry but the summaries of turns.
    pub(super) fn transcript(&self) -> Vec<String> {
        let entries = self.state.transcript(CHAT).map(Transcript::entries).unwrap_or_default();
        let told = entries.iter().filter(|entry| !matches!(entry, Entry::Notice(Severity::Summary, _)));
        let lines = told.map(|entry| match entry {
            Entry::User(text) => format!("user: {text}"),
            Entry::Agent(text) => format!("agent: {text}"),
            Entry::Thought(text) => format!("thought: {text}"),
            Entry::Tool(call) => format!("tool: {} {}", call.id, call.status.as_str()),
            Entry::Plan(Plan::Steps(steps)) => format!("plan: {}", steps.len()),
            Entry::Plan(other) => format!("plan: {other:?}"),
            Entry::Notice(severity, text) => format!("{severity:?}: {text}"),
        });
        lines.collect()
    }
}

fn method_of(call: &AgentCall) -> &'static str {
    match call {
        AgentCall::Initialize => "initialize",
        AgentCall::NewSession { .. } => "session/new",
        AgentCall::LoadSession { .. } => "session/load",
        AgentCall::ResumeSession { .. } => "session/resume",
        AgentCall::ForkSession { .. } => "session/fork",
        AgentCall::ListSessions { .. } => "session/list",
        AgentCall::CloseSession { .. } => "session/close",
        AgentCall::DeleteSession { .. } => "session/delete",
        AgentCall::Logout => "logout",
        AgentCall::Authenticate { .. } => "authenticate",
        AgentCall::SetOption { .. } => "session/set_config_option",
        AgentCall::SetMode { .. } => "session/set_mode",
        AgentCall::SetModel { .. } => "session/set_model",
        AgentCall::Prompt { .. } => "session/prompt",
    }
}
