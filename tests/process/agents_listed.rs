//! `agentchat agents`: what is told of agents that answer, that want a sign-in, that end, and that are not there.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::executable;

/// Answers `initialize`, then `session/new` with `$1`; asks something itself in between.
const ANSWERS: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "codex-acp v2.6.0 (abc)"; exit; fi
echo 'Welcome!'
read -r line
echo '{"jsonrpc":"2.0","id":"mine","method":"client/look","params":{}}'
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"codex","title":"Codex","version":"2.6.1"},"authMethods":[{"id":"key","name":"Use a key"}],"agentCapabilities":{"sessionCapabilities":{"delete":{}}}}}'
while read -r line; do
  printf '%s\n' "$line" >>"$AGENT_LOG"
  case "$line" in
  *session/new*) echo "$AGENT_ANSWER" ;;
  *session/delete*) echo '{"jsonrpc":"2.0","id":3,"result":null}' ;;
  esac
done
"#;

const ENDS: &str = "#!/bin/sh\necho 'Loading...'\necho >&2 'error: no configuration'\necho >&2 \"$(printf '\\033[31mrun gemini setup\\033[0m')\"\nexit 3\n";

struct Machine {
    folder: TempDir,
}

impl Machine {
    /// With these programs in the only folder of `$PATH` beside the shell's.
    fn new(programs: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        for tool in ["sh", "printf"] {
            symlink(Path::new("/bin").join(tool), folder.path().join(tool)).unwrap();
        }
        for (name, text) in programs {
            executable(&folder.path().join(name), text);
        }
        Self { folder }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn run(&self, args: &[&str], configured: Option<Value>, session_answer: &str) -> String {
        let mut child = Command::new(env!("CARGO_BIN_EXE_agentchat"))
            .arg("agents")
            .args(args)
            .env("PATH", self.folder.path())
            .env("AGENT_LOG", self.folder.path().join("log"))
            .env("AGENT_ANSWER", session_answer)
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(configured.map(|value| value.to_string()).unwrap_or_default().as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    }

    /// The last that was told of this agent, and how many lines there were of it.
    fn told(&self, name: &str, args: &[&str], configured: Option<Value>, session_answer: &str) -> (Value, usize) {
        let text = self.run(args, configured, session_answer);
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of_it: Vec<&Value> = lines.iter().filter(|line| line["name"] == name).collect();
        (of_it.last().copied().cloned().unwrap_or_default(), of_it.len())
    }
}

#[test]
fn what_is_installed_is_told_with_its_version_and_the_rest_with_how_to_get_it() {
    let machine = Machine::new(&[("codex-acp", ANSWERS)]);
    let text = machine.run(&[], None, "");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("codex-acp ") && lines[0].contains("default, 2.6.0  [codex-acp]"), "{text}");
    for (line, name) in lines[1..].iter().zip(["agentchat ", "tour "]) {
        assert!(line.starts_with(name) && line.contains(env!("CARGO_PKG_VERSION")), "{text}");
    }
    let gemini = lines.iter().find(|line| line.starts_with("gemini-cli ")).unwrap();
    assert!(gemini.contains("not installed (npm install -g @google/gemini-cli)  [gemini --acp]"), "{text}");
    assert_eq!(machine.log(), "", "it was not started as an agent");
}

#[test]
fn an_agent_that_answers_is_checked_and_what_was_started_for_it_is_deleted() {
    let machine = Machine::new(&[("codex-acp", ANSWERS)]);
    let session = r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"look-1"}}"#;
    let (told, lines) = machine.told("codex-acp", &["--json", "--check"], None, session);
    assert_eq!(lines, 2, "what is known at once, and what the look has found");
    assert_eq!(
        told["checked"],
        json!({ "title": "Codex", "version": "2.6.1", "methods": ["Use a key"], "starts_session": true })
    );
    assert_eq!(told["version"], "2.6.1", "what the agent says of itself");
    let log = machine.log();
    assert!(log.contains(r#""id":"mine","error""#), "its question is answered: {log}");
    assert!(log.contains("session/delete") && log.contains("look-1"), "{log}");
    let asked_for_sign_in = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Authentication required"}}"#;
    let (told, _) = machine.told("codex-acp", &["--json", "--check"], None, asked_for_sign_in);
    assert_eq!((&told["checked"]["starts_session"], &told["checked"]["problem"]), (&json!(false), &Value::Null));
}

#[test]
fn an_agent_that_ends_is_quoted() {
    let machine = Machine::new(&[("gemini", ENDS)]);
    let (told, _) = machine.told("gemini-cli", &["--json", "--check"], None, "");
    assert_eq!(told["checked"]["problem"], "it ended without an answer; it says: run gemini setup");
}

#[test]
fn the_configured_agents_are_listed_first_and_not_asked_for_a_version() {
    let machine = Machine::new(&[("codex-acp", ANSWERS), ("ssh", ANSWERS)]);
    let configured = json!({
        "agents": {
            "far": { "command": ["ssh", "host", "agent"], "env": { "LEVEL": "2" } },
            "gone": { "command": ["no-such-program"] },
        },
        "default_agent": "gone",
    });
    let text = machine.run(&["--json", "--configured"], Some(configured.clone()), "");
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&first["name"], &first["is_default"], &first["path"]), (&json!("gone"), &json!(true), &Value::Null));
    assert!(first["problem"].as_str().unwrap().contains("`no-such-program` was not found in"), "{first}");
    let (told, _) = machine.told("far", &["--json", "--configured"], Some(configured), "");
    assert_eq!((&told["source"], &told["version"]), (&json!("configured"), &Value::Null));
}
