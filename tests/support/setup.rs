//! What a test's Neovim starts with.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Map, Value as Json, json};

use super::agent::ScriptedAgent;

/// What a test's Neovim starts with; see [`super::Editor::start`].
pub struct Setup {
    pub(super) size: (u32, u32),
    pub(super) agents: Vec<ScriptedAgent>,
    pub(super) config: Map<String, Json>,
    pub(super) init: String,
    pub(super) files: Vec<(String, Vec<u8>)>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) arguments: Vec<String>,
}

impl Default for Setup {
    fn default() -> Self {
        Self::new()
    }
}

impl Setup {
    /// 120x40, an empty project folder, no agent, the helper that cargo built for this test run.
    pub fn new() -> Self {
        let helper = PathBuf::from(env!("CARGO_BIN_EXE_agentchat"));
        Self {
            size: (120, 40),
            agents: Vec::new(),
            config: Map::from_iter([("binary".to_owned(), json!(helper))]),
            init: String::new(),
            files: Vec::new(),
            environment: Vec::new(),
            arguments: Vec::new(),
        }
    }

    /// Configures an agent; the first one becomes the default.
    #[must_use]
    pub fn agent(mut self, name: &str, agent: &ScriptedAgent) -> Self {
        self.agents.push(agent.clone());
        self.agent_command(name, &agent.command())
    }

    /// Configures an agent by its command line; the first one becomes the default.
    #[must_use]
    pub fn agent_command(mut self, name: &str, command: &[String]) -> Self {
        let agents = self.config.entry("agents").or_insert_with(|| json!({}));
        agents[name] = json!({ "command": command });
        self.config.entry("default_agent").or_insert_with(|| json!(name));
        self
    }

    /// Sets one key of `vim.g.agentchat`.
    #[must_use]
    pub fn config(mut self, key: &str, value: Json) -> Self {
        self.config.insert(key.to_owned(), value);
        self
    }

    /// Adds Lua code to the end of the user's `init.lua`.
    #[must_use]
    pub fn init(mut self, code: &str) -> Self {
        self.init.push_str(code);
        self.init.push('\n');
        self
    }

    /// Puts a file into the project folder; its folders are made.
    #[must_use]
    pub fn file(mut self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.files.push((path.to_owned(), content.as_ref().to_vec()));
        self
    }

    /// Sets an environment variable of Neovim.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Adds a command-line argument of Neovim, such as a file to open.
    #[must_use]
    pub fn arg(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// The size of the UI in columns and rows.
    #[must_use]
    pub fn size(mut self, columns: u32, rows: u32) -> Self {
        self.size = (columns, rows);
        self
    }
}
