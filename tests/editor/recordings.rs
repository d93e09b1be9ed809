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
use agentchat::core::permission::facts::{Candidate, Place};
use agentchat::core::permission::judge::Rules;
use agentchat::core::permission::weigh::Weighed;
use agentchat::core::prompt::PromptPart;
use agentchat::core::transcript::{Entry, Transcript};
use agentchat::core::{State, step};

use crate::support::recording::Recording;

const CHAT: ChatId = ChatId(1);

/// Methods of the recorded client that this one sends too.
const OURS: [&str; 3] = ["initialize", "session/new", "session/prompt"];

/// The session of the recording's first `session/new`; a recorded client may have had others, which no chat here has.
pub(crate) fn first_session(recording: &Recording) -> Option<String> {
    recording.agent_messages().find_map(|message| message["result"]["sessionId"].as_str().map(str::to_owned))
}

/// What was recorded of the agent's first process; some were started again.
fn first_process(recording: &Recording) -> impl Iterator<Item = &Json> {
    let mut processes = 0;
    recording.entries().iter().take_while(move |entry| {
        processes += usize::from(entry["dir"] == "c2a" && entry["msg"]["method"] == "initialize");
        processes < 2
    })
}

/// The texts of that kind of chunk in a session, consecutive ones of one message joined.
pub(crate) fn runs(recording: &Recording, session: &str, kind: &str) -> Vec<String> {
    let mut runs: Vec<(Json, String)> = Vec::new();
    let mut joined = false;
    for entry in first_process(recording) {
        let message = &entry["msg"];
        if entry["dir"] != "a2c" || message["method"] != "session/update" {
            // What the user does in between, such as an answer, is shown in between.
            joined &= !message.is_object();
            continue;
        }
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
    /// Our answers, as they would be sent, with their raw ids.
    replies: Vec<(String, Json)>,
    permissions: Vec<PermissionView>,
    /// Raw ids and methods of the agent's requests.
    requests: Vec<(String, String)>,
    /// What was not understood.
    complaints: Vec<String>,
    prompts: u64,
}

impl Client {
    fn start() -> Self {
        let spec = AgentSpec { command: vec!["agent".into()], ..AgentSpec::default() };
        let agents = BTreeMap::from([("recorded".to_owned(), spec)]);
        let config = Config {
            agents,
            mcp_servers: Vec::new(),
            additional_directories: Vec::new(),
            system_prompt: None,
            default_agent: "recorded".into(),
            timeouts: Timeouts::default(),
            follow_interval: 250,
            tell_rejections: true,
            rules: Rules::default(),
        };
        let mut client = Self {
            state: State::new(config),
            protocol: Protocol::new(ConnId(1)),
            calls: BTreeMap::new(),
            replies: Vec::new(),
            permissions: Vec::new(),
            requests: Vec::new(),
            complaints: Vec::new(),
            prompts: 0,
        };
        let cwd = PathBuf::from("/home/user/project");
        client.happen(Event::User(UserAction::Open { chat: CHAT, agent: None, cwd, known: None }));
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
                        let reply: Json = serde_json::from_slice(&encode::reply(token, reply)).unwrap();
                        self.replies.push((reply["id"].to_string(), reply));
                    }
                    Effect::Weigh(job) => {
                        let named = job.candidates.into_iter().filter(|candidate| !candidate.is_word);
                        let places = named.map(|Candidate { path, .. }| Place { named: path.clone(), resolved: path });
                        let weighed = Weighed {
                            root: job.root,
                            additional: Vec::new(),
                            places: places.collect(),
                            is_complete: true,
                            kept: Vec::new(),
                        };
                        events.push_back(Event::Weighed(job.request, weighed));
                    }
                    Effect::ReadFile(job, _) => {
                        events.push_back(Event::FileDone(job.request, FileOutcome::Read("text\n".into())));
                    }
                    Effect::WriteFile(job, _) => events.push_back(Event::FileDone(job.request, FileOutcome::Written)),
                    Effect::Show(Show::Permissions(views)) => self.permissions = views,
                    _ => {}
                }
            }
        }
    }

    /// A line from the agent.
    fn line(&mut self, line: &str) {
        let json: Json = serde_json::from_str(line).unwrap_or_default();
        if let (Some(method), Some(id)) = (json["method"].as_str(), json.get("id")) {
            self.requests.push((id.to_string(), method.to_owned()));
        }
        match self.protocol.line(line.as_bytes()) {
            Incoming::Chunk(chunk) => {
                let message = chunk.into_message();
                self.happen(Event::Agent(ConnId(1), message));
            }
            Incoming::Noise(kind) => {
                let is_extension = json["method"].as_str().is_some_and(|method| method.starts_with('_'));
                // How agents say that a line of the client was no JSON.
                let is_parse_error = json["error"]["code"] == -32700;
                if json.is_object() && !is_extension && !is_parse_error {
                    self.complaints.push(format!("{kind}: {line}"));
                }
            }
            Incoming::Array(_) => self.complaints.push(format!("an array of messages: {line}")),
            Incoming::Message(message) => {
                match &message {
                    AgentMessage::Request { token, .. } if json.is_null() => {
                        self.requests.push((token.raw_id().to_owned(), "found in a line of other text".into()));
                    }
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
                self.happen(Event::User(UserAction::Prompt {
                    chat: CHAT,
                    id,
                    parts: vec![PromptPart::Text("prompt".into())],
                }));
            }
            Some("session/cancel") => self.happen(Event::User(UserAction::Cancel(CHAT))),
            None => {
                let option = message["result"]["outcome"]["optionId"].as_str();
                if let (Some(option), Some(asked)) = (option, self.permissions.first()) {
                    let (request, option) = (asked.request, option.to_owned());
                    self.happen(Event::User(UserAction::Respond { request, option }));
                }
            }
            Some(_) => {}
        }
    }

    fn texts(&self, of: fn(&Entry) -> Option<String>) -> String {
        let entries = self.state.transcript(CHAT).map(Transcript::entries).unwrap_or_default();
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
    for entry in first_process(recording) {
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

/// Whether the agent speaks the only version that this client does; else there is no session.
fn speaks_version_1(recording: &Recording) -> bool {
    recording.agent_messages().find_map(|message| message["result"]["protocolVersion"].as_u64()).is_none_or(|v| v == 1)
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
        let mut asked: Vec<&str> = client.requests.iter().map(|(id, _)| id.as_str()).collect();
        let mut answered: Vec<&str> = client.replies.iter().map(|(id, _)| id.as_str()).collect();
        asked.sort_unstable();
        answered.sort_unstable();
        assert_eq!(answered, asked, "{}", recording.name());
        for (id, method) in client.requests {
            let (_, reply) = client.replies.iter().find(|(answered, _)| *answered == id).unwrap();
            let families = ["fs/", "terminal/", "session/request_permission", "elicitation/create"];
            let is_served = families.iter().any(|family| method.starts_with(family));
            assert_eq!(reply["error"]["code"] == -32601, !is_served, "{} {method}: {reply}", recording.name());
            assert_ne!(reply["error"]["code"], -32602, "{} {method}: {reply}", recording.name());
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
        if !speaks_version_1(&recording) {
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
    for recording in Recording::all().into_iter().filter(speaks_version_1) {
        let client = play(&recording);
        for complaint in client.complaints {
            let (kind, _) = complaint.split_once(": ").unwrap_or((&complaint, ""));
            complaints.entry(kind.to_owned()).or_default().push(format!("{}: {complaint}", recording.name()));
        }
    }
    assert_eq!(json!(complaints), json!({}));
}
