//! A look at an agent: where its program is, which version it is, and whether it answers and starts a session.
//!
//! Nothing of a running chat is involved: each look is a process of its own, which is ended afterwards.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::acp::encode;
use crate::acp::lines::{Line, LineSplitter};
use crate::core::config::AgentSpec;
use crate::core::ids::CallId;
use crate::core::message::AgentCall;
use crate::core::setup::SessionSetup;
use crate::process::{self, AgentProcess, Spawn};

/// How long `program --version` may take; the slowest seen took 2 s.
const VERSION_PATIENCE: Duration = Duration::from_secs(8);
/// How long each answer of the agent may take; the slowest seen took 22 s on a busy machine.
const ANSWER_PATIENCE: Duration = Duration::from_secs(40);
/// What the deletion of the session that was started for the look may take.
const TIDY_PATIENCE: Duration = Duration::from_secs(2);
/// How long an agent may take to end.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Longest line of an agent that is looked at, in bytes.
const MAX_LINE: usize = 4 * 1024 * 1024;
/// What is read of standard error, in bytes.
const MOST_STDERR: u64 = 16 * 1024 * 1024;
/// Longest line of standard error that is told, in characters.
const COMPLAINT: usize = 300;
/// The error that asks for signing in (ACP, "Authentication").
const AUTH_REQUIRED: i64 = -32000;
/// The answer to whatever the agent asks us during a look (JSON-RPC 2.0).
const METHOD_NOT_FOUND: i64 = -32601;

/// What a started agent said.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// How it calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its version, by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The ways to sign in that it offers, as it names them.
    pub methods: Vec<String>,
    /// Whether it started a session; `false` if one has to sign in first. Some agents ask for that with the first prompt only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_session: Option<bool>,
    /// What went wrong, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The program of this command, as a chat in `cwd` would find it.
///
/// # Errors
/// One sentence that says why there is none.
pub fn find(spec: &AgentSpec, cwd: &Path) -> Result<PathBuf, String> {
    let program = spec.command.first().map(String::as_str).unwrap_or_default();
    let path = spec.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.into());
    let path: Option<std::ffi::OsString> = path.or_else(|| std::env::var_os("PATH"));
    let cwd = spec.cwd.as_deref().unwrap_or(cwd);
    process::find_program(program, cwd, path.as_deref()).map_err(|error| error.to_string())
}

/// What `program --version` says of its version, if it says anything like it.
pub async fn version(spec: &AgentSpec, cwd: &Path) -> Option<String> {
    let program = spec.command.first()?.clone();
    let command = vec![program, "--version".to_owned()];
    let spawn = Spawn { command, env: spec.env.clone(), cwd: spec.cwd.clone().unwrap_or_else(|| cwd.to_owned()) };
    let mut process = AgentProcess::spawn(&spawn).ok()?;
    // A program that does not know the option, and serves its input instead, comes to its end.
    process.stdin = None;
    let mut output = Vec::new();
    let stdout = process.stdout.take()?;
    // What came until the patience ended counts: some do not end.
    let _ = timeout(VERSION_PATIENCE, stdout.take(4096).read_to_end(&mut output)).await;
    version_in(&String::from_utf8_lossy(&output)).map(str::to_owned)
}

/// The first word that is a version: digits, a dot, digits.
fn version_in(text: &str) -> Option<&str> {
    text.split(|c: char| c.is_whitespace() || "(),;:\"'/@".contains(c)).find_map(|word| {
        let word = word.strip_prefix('v').unwrap_or(word);
        let (major, rest) = word.split_once('.')?;
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        (is_number(major) && is_number(minor)).then_some(word.trim_end_matches('.'))
    })
}

/// Starts the agent, greets it and starts a session in `cwd`, which is deleted again where the agent can.
pub async fn check(spec: &AgentSpec, cwd: &Path) -> Checked {
    let mut checked = Checked::default();
    let spawn = Spawn {
        command: spec.command.clone(),
        env: spec.env.clone(),
        cwd: spec.cwd.clone().unwrap_or_else(|| cwd.to_owned()),
    };
    let mut process = match AgentProcess::spawn(&spawn) {
        Ok(process) => process,
        Err(error) => {
            checked.problem = Some(error.to_string());
            return checked;
        }
    };
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (process.stdin.take(), process.stdout.take(), process.stderr.take())
    else {
        checked.problem = Some("its standard streams could not be opened".to_owned());
        return checked;
    };
    let complaint = tokio::spawn(last_line(stderr));
    let mut talk = Talk { stdin, stdout, splitter: LineSplitter::new(MAX_LINE), waiting: Vec::new(), noise: None };
    let greeted = greet(&mut talk, cwd, &mut checked).await;
    let noise = talk.noise.take();
    drop(talk);
    // Whether it ended in time is of no interest: its group is killed.
    let _ = process.terminate(STOP_GRACE).await;
    checked.problem = match greeted {
        Ok(()) => None,
        Err(Unanswered::Ended) => {
            let complaint = timeout(TIDY_PATIENCE, complaint).await.ok().and_then(Result::ok).flatten();
            let said = complaint.or(noise).map(|line| format!("; it says: {line}")).unwrap_or_default();
            Some(format!("it ended without an answer{said}"))
        }
        Err(Unanswered::Otherwise(problem)) => Some(problem),
    };
    checked
}

/// The last line that the agent wrote to standard error: where programs say why they end.
async fn last_line(stderr: ChildStderr) -> Option<String> {
    let mut lines = BufReader::new(stderr.take(MOST_STDERR)).split(b'\n');
    let mut last = None;
    while let Ok(Some(line)) = lines.next_segment().await {
        last = readable(&line).or(last);
    }
    last
}

/// A line for the user, unless it is empty.
fn readable(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let mut characters = text.chars();
    let mut readable = String::new();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            // Colours and the like end with a letter.
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else if !character.is_control() {
            readable.push(character);
        }
    }
    let readable: String = readable.trim().chars().take(COMPLAINT).collect();
    (!readable.is_empty()).then_some(readable)
}

async fn greet(talk: &mut Talk, cwd: &Path, checked: &mut Checked) -> Result<(), Unanswered> {
    let hello = talk.ask(CallId(1), &AgentCall::Initialize, ANSWER_PATIENCE).await?;
    let refused = |what: &str, error: &Refusal| Unanswered::Otherwise(format!("it refused {what}: {}", error.message));
    let result = hello.map_err(|error| refused("`initialize`", &error))?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let info = &result["agentInfo"];
    checked.title = text(&info["title"]).or_else(|| text(&info["name"]));
    checked.version = text(&info["version"]);
    let methods = result["authMethods"].as_array().into_iter().flatten();
    checked.methods = methods.filter_map(|method| text(&method["name"]).or_else(|| text(&method["id"]))).collect();
    if result["protocolVersion"].as_u64() != Some(1) {
        let spoken = &result["protocolVersion"];
        return Err(Unanswered::Otherwise(format!(
            "it speaks version {spoken} of the protocol, and we speak version 1"
        )));
    }
    let setup = SessionSetup { cwd: cwd.to_owned(), ..SessionSetup::default() };
    match talk.ask(CallId(2), &AgentCall::NewSession(setup), ANSWER_PATIENCE).await? {
        Ok(session) => {
            checked.starts_session = Some(true);
            let can_delete = result["agentCapabilities"]["sessionCapabilities"]["delete"].is_object();
            if let (true, Some(id)) = (can_delete, session["sessionId"].as_str()) {
                let delete = AgentCall::DeleteSession { session: id.into() };
                // A session that stays is no problem of the agent's.
                let _ = talk.ask(CallId(3), &delete, TIDY_PATIENCE).await;
            }
        }
        Err(error) if error.code == AUTH_REQUIRED => checked.starts_session = Some(false),
        Err(error) => return Err(refused("`session/new`", &error)),
    }
    Ok(())
}

/// Why there is no answer.
enum Unanswered {
    /// The agent has closed its output.
    Ended,
    /// Anything else, in one sentence.
    Otherwise(String),
}

/// An error of the agent's.
struct Refusal {
    code: i64,
    message: String,
}

/// A talk of a few questions, one after the other.
struct Talk {
    stdin: ChildStdin,
    stdout: ChildStdout,
    splitter: LineSplitter,
    /// Messages that were read and not looked at yet.
    waiting: Vec<Value>,
    /// The last line that was no message.
    noise: Option<String>,
}

impl Talk {
    /// Sends a request and waits for its answer, refusing what the agent asks meanwhile.
    async fn ask(
        &mut self,
        id: CallId,
        call: &AgentCall,
        patience: Duration,
    ) -> Result<Result<Value, Refusal>, Unanswered> {
        let line = encode::call(id, call);
        let exchange = async {
            self.send(&line).await?;
            loop {
                for message in std::mem::take(&mut self.waiting) {
                    if message["method"].is_string() {
                        self.refuse(&message).await?;
                    } else if message["id"].as_u64() == Some(id.0) {
                        return Ok(answer(&message));
                    }
                }
                self.read().await?;
            }
        };
        match timeout(patience, exchange).await {
            Ok(answered) => answered,
            Err(_) => Err(Unanswered::Otherwise(format!("it did not answer within {} s", patience.as_secs()))),
        }
    }

    async fn send(&mut self, line: &[u8]) -> Result<(), Unanswered> {
        // Whoever does not read any more has ended, or is about to.
        self.stdin.write_all(line).await.map_err(|_| Unanswered::Ended)
    }

    async fn refuse(&mut self, message: &Value) -> Result<(), Unanswered> {
        let Some(id) = message.get("id") else { return Ok(()) };
        let error = json!({ "code": METHOD_NOT_FOUND, "message": "only a look, no session" });
        let mut line = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
        line.push('\n');
        self.send(line.as_bytes()).await
    }

    /// Reads what is there. Lines that are not messages are noise, as agents make it.
    async fn read(&mut self) -> Result<(), Unanswered> {
        let mut bytes = vec![0; 64 * 1024];
        let count = self.stdout.read(&mut bytes).await.map_err(|_| Unanswered::Ended)?;
        if count == 0 {
            return Err(Unanswered::Ended);
        }
        let Self { splitter, waiting, noise, .. } = self;
        splitter.feed(&bytes[..count], |line| {
            let Line::Whole(line) = line else { return };
            match serde_json::from_slice::<Value>(line) {
                Ok(message) => waiting.push(message),
                Err(_) => *noise = readable(line).or(noise.take()),
            }
        });
        Ok(())
    }
}

fn answer(message: &Value) -> Result<Value, Refusal> {
    match message.get("error") {
        Some(error) if !error.is_null() => Err(Refusal {
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"].as_str().unwrap_or("it gave no reason").to_owned(),
        }),
        _ => Ok(message["result"].clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        assert_eq!(version_in("codex-acp 2.6.0\n"), Some("2.6.0"));
        assert_eq!(version_in("GitHub Copilot CLI v1.0.102 (abc)"), Some("1.0.102"));
        assert_eq!(version_in("kimi, version 1.3"), Some("1.3"));
        assert_eq!(version_in("@scope/name@0.61.0-nightly.1"), Some("0.61.0-nightly.1"));
        assert_eq!(version_in("usage: agent [--acp]. See v2."), None);
        assert_eq!(version_in(""), None);
    }
}
