//! Every recording of a real agent through the decoder and the core, without an editor: what the agents said is
//! understood whole. `replay` does the same with some of them in a real Neovim.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use serde_json::{Value as Json, json};

use agentchat::acp::encode;
use agentchat::acp::protocol::{Incoming, Protocol};
use agentchat::core::config::{AgentSpec, Config, Timeouts};
use agentchat::core::effect::{Effect, Show};
use agentchat::core::event::{Event, FileOutcome, UserAction};
use agentchat::core::ids::{ChatId, ConnId, Millis, PromptId};
use agentchat::core::message::{AgentMessage, Update};
use agentchat::core::permission::PermissionView;
use agentchat::core::transcript::Entry;
use agentchat::core::{State, step};

use crate::support::recording::Recording;

const CHAT: ChatId = ChatId(1);

/// Methods of the recorded client that this one sends too.
const OURS: [&str; 3] = ["initialize", "session/new", "session/prompt"];

/// The session of the recording's first `session/new`; a recorded client may have had others, which no chat here has.
pub(crate) fn first_session(recording: &Recording) -> Option<String> {
    recording.agent_messages().find_map(|message| message["result"]["sessionId"].as_str().map(str::to_owned))
}

/// The texts of that kind of chunk in a session, consecutive ones of one message joined.
pub(crate) fn runs(recording: &Recording, session: &str, kind: &str) -> Vec<String> {
    let mut runs: Vec<(Json, String)> = Vec::new();
    let mut joined = false;
    for message in recording.agent_messages().filter(|message| message["method"] == "session/update") {
        let update = &message["params"]["update"];
        if message["params"]["sessionId"] != session || update["sessionUpdate"] != kind {
            joined = false;
            continue;
        }
        let text = update["content"]["text"].as_str().unwrap_or_default();
        match runs.last_mut().filter(|(id, _)| joined && *id == update["messageId"]) {
            Some((_, run)) => run.push_str(text),
            None => runs.push((update["messageId"].clone(), text.to_owned())),
        }
        joined = true;
    }
    runs.into_iter().map(|(_, run)| run).filter(|run| !run.is_empty()).collect()
}

/// A client without an editor, on whose files everything succeeds.
struct Client {
    state: State,
    protocol: Protocol,
    /// Ids of our calls, by method.
    calls: BTreeMap<String, Vec<Json>>,
    /// Our answers, as they would be sent.
    replies: Vec<Json>,
    asked: Vec<PermissionView>,
    /// What was not understood.
    complaints: Vec<String>,
    prompts: u64,
}

impl Client {
    fn start() -> Self {
        let spec = AgentSpec { command: vec!["agent".into()], ..AgentSpec::default() };
        let agents = BTreeMap::from([("recorded".to_owned(), spec)]);
        let config = Config { agents, default_agent: "recorded".into(), timeouts: Timeouts::default() };
        let mut client = Self {
            state: State::new(config),
            protocol: Protocol::new(ConnId(1)),
            calls: BTreeMap::new(),
            replies: Vec::new(),
            asked: Vec::new(),
            complaints: Vec::new(),
            prompts: 0,
        };
        let cwd = PathBuf::from("/home/user/project");
        client.happen(Event::User(UserAction::Open { chat: CHAT, agent: None, cwd }));
        client
    }

    fn happen(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for effect in step(&mut self.state, event, Millis(0)) {
                match effect {
                    Effect::Spawn { conn, .. } => events.push_back(Event::Spawned(conn)),
                    Effect::Call(_, id, call) => {
                        let line: Json = serde_json::from_slice(&self.protocol.call(id, &call)).unwrap();
                        let method = line["method"].as_str().unwrap().to_owned();
                        self.calls.entry(method).or_default().push(line["id"].clone());
                    }
                    Effect::Reply(token, reply) => {
                        self.replies.push(serde_json::from_slice(&encode::reply(token, reply)).unwrap());
                    }
                    Effect::ReadFile(job, _) => {
                        events.push_back(Event::FileDone(job.request, FileOutcome::Read("text\n".into())));
                    }
                    Effect::WriteFile(job, _) => events.push_back(Event::FileDone(job.request, FileOutcome::Written)),
                    Effect::Show(Show::Permissions(views)) => self.asked = views,
                    _ => {}
                }
            }
        }
    }

    /// A line from the agent.
    fn line(&mut self, line: &str) {
        match self.protocol.line(line.as_bytes()) {
            Incoming::Noise(kind) => {
                let is_message = serde_json::from_str::<Json>(line).is_ok_and(|json| json["jsonrpc"] == "2.0");
                let is_extension = line.contains("\"method\":\"_");
                if is_message && !is_extension {
                    self.complaints.push(format!("{kind}: {line}"));
                }
            }
            Incoming::Message(message) => {
                match &message {
                    AgentMessage::Unusable(problem) => self.complaints.push(problem.clone()),
                    AgentMessage::Update { update: Update::Unknown { name, .. }, .. } => {
                        self.complaints.push(format!("unknown update {name}"));
                    }
                    _ => {}
                }
                self.happen(Event::Agent(ConnId(1), message));
            }
        }
    }

    /// What the recorded user did.
    fn recorded_client(&mut self, message: &Json) {
        match message["method"].as_str() {
            Some("session/prompt") => {
                self.prompts += 1;
                let id = PromptId(self.prompts);
                self.happen(Event::User(UserAction::Prompt { chat: CHAT, id, blocks: vec!["prompt".into()] }));
            }
            Some("session/cancel") => self.happen(Event::User(UserAction::Cancel(CHAT))),
            None => {
                let option = message["result"]["outcome"]["optionId"].as_str();
                if let (Some(option), Some(asked)) = (option, self.asked.first()) {
                    let (request, option) = (asked.request, option.to_owned());
                    self.happen(Event::User(UserAction::Respond { request, option }));
                }
            }
            Some(_) => {}
        }
    }

    fn texts(&self, of: fn(&Entry) -> Option<String>) -> String {
        let entries = self.state.transcript(CHAT).map(|transcript| transcript.entries()).unwrap_or_default();
        entries.iter().filter_map(of).collect::<Vec<_>>().join("\0")
    }
}

/// Plays a recording; what the agent answered to calls that this client does not make is left out.
fn play(recording: &Recording) -> Client {
    let mut client = Client::start();
    let session = first_session(recording);
    // Recorded id of a call -> its method and how many of that method came before.
    let mut recorded: BTreeMap<String, (String, usize)> = BTreeMap::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    // Answers to prompts that still wait in our queue.
    let mut held: Vec<Json> = Vec::new();
    for entry in recording.entries() {
        let message = &entry["msg"];
        match entry["dir"].as_str() {
            Some("c2a") if message.is_object() => {
                let method = message["method"].as_str().unwrap_or_default();
                let is_elsewhere =
                    message["params"]["sessionId"].as_str().is_some_and(|id| Some(id) != session.as_deref());
                if OURS.contains(&method) && !is_elsewhere {
                    let count = counts.entry(method.to_owned()).or_default();
                    recorded.insert(message["id"].to_string(), (method.to_owned(), *count));
                    *count += 1;
                }
                if !is_elsewhere {
                    client.recorded_client(message);
                }
            }
            Some("a2c") if message.is_object() && (message.get("method").is_some() || message["id"].is_null()) => {
                client.line(&message.to_string());
            }
            Some("a2c") if message.is_object() => held.push(message.clone()),
            Some("a2c") => client.line(entry["raw"].as_str().unwrap_or_default()),
            _ => {}
        }
        held.retain(|answer| {
            let Some((method, count)) = recorded.get(&answer["id"].to_string()) else { return false };
            let Some(id) = client.calls.get(method).and_then(|ids| ids.get(*count)) else { return true };
            let mut answer = answer.clone();
            answer["id"] = id.clone();
            client.line(&answer.to_string());
            false
        });
    }
    client
}

/// Takes `runs` out of `text`; each must be there.
fn remainder(name: &str, mut text: String, runs: &[String]) -> String {
    for run in runs {
        let at = text.find(run).unwrap_or_else(|| panic!("{name}: {run:?} is not in {text:?}"));
        text.replace_range(at..at + run.len(), "");
    }
    text.replace('\0', "")
}

#[test]
fn every_request_of_every_recorded_agent_is_answered_once() {
    let mut methods: BTreeMap<String, usize> = BTreeMap::new();
    for recording in Recording::all() {
        let mut client = play(&recording);
        client.happen(Event::User(UserAction::Shutdown));
        assert!(client.state.nobody_waits(), "{}", recording.name());
        let requests: Vec<&Json> = recording
            .agent_messages()
            .filter(|message| message.get("method").is_some() && message.get("id").is_some())
            .collect();
        let mut asked: Vec<String> = requests.iter().map(|request| request["id"].to_string()).collect();
        let mut answered: Vec<String> = client.replies.iter().map(|reply| reply["id"].to_string()).collect();
        asked.sort();
        answered.sort();
        assert_eq!(answered, asked, "{}", recording.name());
        for request in requests {
            let method = request["method"].as_str().unwrap().to_owned();
            let reply = client.replies.iter().find(|reply| reply["id"] == request["id"]).unwrap();
            if method.starts_with("terminal/") || method.starts_with("elicitation/") {
                assert_eq!(reply["error"]["code"], -32601, "{}", recording.name());
            } else {
                assert_ne!(reply["error"]["code"], -32601, "{}", recording.name());
                assert_ne!(reply["error"]["code"], -32602, "{}: {reply}", recording.name());
            }
            *methods.entry(method).or_default() += 1;
        }
    }
    assert!(methods["session/request_permission"] > 100, "{methods:?}");
}

#[test]
fn every_word_of_every_recorded_agent_is_in_the_transcript() {
    let mut words = 0;
    for recording in Recording::all() {
        let client = play(&recording);
        let Some(session) = first_session(&recording) else { continue };
        let is_refused = recording
            .agent_messages()
            .any(|message| message["result"]["protocolVersion"].as_u64().is_some_and(|version| version != 1));
        if is_refused {
            continue;
        }
        let name = recording.name();
        let agent = runs(&recording, &session, "agent_message_chunk");
        let thought = runs(&recording, &session, "agent_thought_chunk");
        words += agent.len() + thought.len();
        let said = client.texts(|entry| match entry {
            Entry::Agent(text) => Some(text.to_string()),
            _ => None,
        });
        let thinking = client.texts(|entry| match entry {
            Entry::Thought(text) => Some(text.to_string()),
            _ => None,
        });
        assert_eq!(remainder(&name, said, &agent), "", "{name}");
        assert_eq!(remainder(&name, thinking, &thought), "", "{name}");
    }
    assert!(words > 300, "{words}");
}

#[test]
fn every_message_of_every_recorded_agent_is_understood() {
    let mut complaints: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for recording in Recording::all() {
        let client = play(&recording);
        for complaint in client.complaints {
            let (kind, _) = complaint.split_once(": ").unwrap_or((&complaint, ""));
            complaints.entry(kind.to_owned()).or_default().push(format!("{}: {complaint}", recording.name()));
        }
    }
    assert_eq!(json!(complaints), json!({}));
}
