//! `agentchat chat` and `agentchat profile` as a user and a script see them: the real program against scripted servers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../responses_server/mod.rs"]
mod responses_server;

mod cancel;
mod errors;
mod inputs;
mod output;
mod profiles;
mod program;
mod requests;
mod run_tools;
mod stored;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use responses_server::{Kind, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A user: a home of their own, with a configuration, and nothing of this machine's.
struct User {
    home: TempDir,
}

/// What a command gave.
#[derive(Debug)]
struct Outcome {
    code: i32,
    stdout: String,
    stderr: String,
}

impl User {
    /// One without any configuration.
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    /// One whose only profile is that server.
    fn of(server: &Server, kind: Kind) -> Self {
        Self::with_config(&format!(
            "[profiles.test]\ndialect = \"{}\"\nbase_url = \"{}\"\nmodel = \"m\"\n",
            kind.dialect(),
            server.base_url()
        ))
    }

    fn with_config(text: &str) -> Self {
        let user = Self::new();
        fs::create_dir_all(user.config().parent().unwrap()).unwrap();
        fs::write(user.config(), text).unwrap();
        user
    }

    fn config(&self) -> PathBuf {
        self.home.path().join(".config/agentchat/config.toml")
    }

    /// Writes a file into the home and returns its path.
    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.home.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn tools(&self, tools: &Value) -> String {
        self.file("tools.json", tools.to_string())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentchat"));
        command.args(arguments).env_clear().env("HOME", self.home.path()).current_dir(self.home.path());
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs `agentchat` and waits for its end.
    fn run(&self, arguments: &[&str]) -> Outcome {
        outcome(self.command(arguments).output().unwrap())
    }

    /// Runs `agentchat chat`.
    fn chat(&self, arguments: &[&str]) -> Outcome {
        self.run(&[&["chat"], arguments].concat())
    }

    /// The same with a text on its standard input.
    fn chat_with_stdin(&self, arguments: &[&str], stdin: &str) -> Outcome {
        let file = self.file("stdin.txt", stdin);
        let mut command = self.command(&[&["chat"], arguments].concat());
        outcome(command.stdin(fs::File::open(file).unwrap()).output().unwrap())
    }

    fn store(&self) -> PathBuf {
        self.home.path().join(".local/state/nvim/agentchat/store.db")
    }
}

fn outcome(output: Output) -> Outcome {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Outcome { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl Outcome {
    /// The result, of a command that worked.
    #[track_caller]
    fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:#?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The text, of a command that worked.
    #[track_caller]
    fn text(&self) -> &str {
        assert_eq!(self.code, 0, "{self:#?}");
        &self.stdout
    }

    /// The error of the envelope, which is the last line of standard error.
    #[track_caller]
    fn error(&self, code: i32) -> Value {
        assert_eq!(self.code, code, "{self:#?}");
        let line = self.stderr.lines().last().unwrap_or_default();
        let envelope: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:#?}"));
        assert_eq!(envelope["ok"], false);
        envelope["error"].clone()
    }

    /// The message of a command line that is refused before anything is sent.
    #[track_caller]
    fn refused(&self) -> String {
        let error = self.error(2);
        assert_eq!(error["type"], "validation", "{error}");
        assert_eq!(self.stdout, "");
        error["message"].as_str().unwrap().to_owned()
    }
}

/// A function without a program.
fn weather() -> Value {
    json!({"type": "function", "name": "query_weather", "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}})
}

fn shell(script: &str) -> Value {
    json!(["sh", "-c", script])
}

fn write_script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
