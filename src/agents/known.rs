//! The table of agents that are known by name. Data, in one place: everything else treats all agents alike, but for the
//! quirks that are named here.
//!
//! Commands are those that the agents' own documentation and the registry of the protocol (agentclientprotocol.com) name.

use crate::core::quirks::{CommandIn, Quirks};

/// An agent that is offered when its program is found.
#[derive(Debug)]
pub struct Known {
    /// How users name it.
    pub name: &'static str,
    /// Its program and arguments.
    pub command: &'static [&'static str],
    /// How it is installed: a command, or where to read about it.
    pub install: &'static str,
    /// What to do outside of Neovim to be signed in.
    pub sign_in: &'static str,
    /// How it calls itself in `agentInfo.name`, where something depends on that.
    calls_itself: &'static str,
    /// What is peculiar about it.
    quirks: Quirks,
}

impl Known {
    const fn new(
        name: &'static str,
        command: &'static [&'static str],
        install: &'static str,
        sign_in: &'static str,
    ) -> Self {
        Self { name, command, install, sign_in, calls_itself: "", quirks: Quirks::NONE }
    }

    const fn with_quirks(mut self, calls_itself: &'static str, quirks: Quirks) -> Self {
        self.calls_itself = calls_itself;
        self.quirks = quirks;
        self
    }
}

/// In the order in which one becomes the default.
pub const KNOWN: &[Known] = &[
    Known::new(
        "claude-agent-acp",
        &["claude-agent-acp"],
        "npm install -g @agentclientprotocol/claude-agent-acp",
        "run `claude` once and sign in, or set ANTHROPIC_API_KEY",
    ),
    Known::new(
        "codex-acp",
        &["codex-acp"],
        "npm install -g @agentclientprotocol/codex-acp",
        "run `codex login`, or set OPENAI_API_KEY",
    ),
    Known::new(
        "gemini-cli",
        &["gemini", "--acp"],
        "npm install -g @google/gemini-cli",
        "run `gemini` once and choose how to sign in, or set GEMINI_API_KEY",
    )
    // tests/recordings/gemini-cli-0.61.0-edit.jsonl: `fs/read_text_file` #5 answered -32002, then `write_file` failed with
    // "Error checking existing file"; gemini-cli-0.61.0-emptyread.jsonl: the same, answered with "", and the file is written.
    // gemini-cli-0.61.0-shell.jsonl: `session/request_permission` of a shell command has no `rawInput`, the title is the command.
    .with_quirks(
        "gemini-cli",
        Quirks { missing_file_reads_empty: true, lines_from_zero: false, command_in: CommandIn::Title },
    ),
    Known::new("opencode", &["opencode", "acp"], "npm install -g opencode-ai", "run `opencode auth login`"),
    Known::new(
        "copilot",
        &["copilot", "--acp"],
        "npm install -g @github/copilot",
        "run `copilot` and enter /login, or set GH_TOKEN",
    ),
    Known::new("kimi-code", &["kimi", "acp"], "npm install -g @moonshot-ai/kimi-code", "run `kimi` and enter /login")
        // kimi-code-2.1.0-edit.jsonl: `session/request_permission` #16 comes before the call's `rawInput`.
        .with_quirks(
            "Kimi Code CLI",
            Quirks {
                missing_file_reads_empty: false,
                lines_from_zero: false,
                command_in: CommandIn::TextAfter("Requesting approval to Running: "),
            },
        ),
    Known::new(
        "kimi-cli",
        &["kimi-cli", "acp"],
        "uv tool install --python 3.13 kimi-cli",
        "run `kimi-cli` and enter /login",
    ),
    Known::new(
        "qwen-code",
        &["qwen", "--acp"],
        "npm install -g @qwen-code/qwen-code",
        "run `qwen` and enter /auth, or set OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL",
    ),
    Known::new(
        "mistral-vibe",
        &["vibe-acp"],
        "uv tool install mistral-vibe",
        "run `vibe --setup`, or set MISTRAL_API_KEY",
    ),
    Known::new("goose", &["goose", "acp"], "see https://block.github.io/goose", "run `goose configure`"),
    Known::new("auggie", &["auggie", "--acp"], "npm install -g @augmentcode/auggie", "run `auggie login`"),
    Known::new("cline", &["cline", "--acp"], "npm install -g cline", "run `cline auth`"),
    Known::new(
        "pi-acp",
        &["pi-acp"],
        "npm install -g pi-acp @earendil-works/pi-coding-agent",
        "run `pi` and enter /login, or set the key of your provider",
    ),
    Known::new(
        "fast-agent",
        &["fast-agent-acp", "-x"],
        "uv tool install fast-agent-acp",
        "set the key of your provider, as ANTHROPIC_API_KEY or OPENAI_API_KEY",
    ),
];

/// The known agent that users name so.
pub fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// The quirks of the agent that calls itself `name` (`agentInfo.name`).
pub fn quirks_of(name: &str) -> Quirks {
    let called = KNOWN.iter().find(|known| !known.calls_itself.is_empty() && known.calls_itself == name);
    called.map(|known| known.quirks).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_agent_has_a_name_a_command_and_hints_of_its_own() {
        let names: BTreeSet<&str> = KNOWN.iter().map(|known| known.name).collect();
        let commands: BTreeSet<&[&str]> = KNOWN.iter().map(|known| known.command).collect();
        assert_eq!((names.len(), commands.len()), (KNOWN.len(), KNOWN.len()));
        for known in KNOWN {
            assert!(!known.command.is_empty() && !known.install.is_empty() && !known.sign_in.is_empty(), "{known:?}");
        }
    }

    #[test]
    fn quirks_are_those_of_the_agent_that_calls_itself_so() {
        assert!(quirks_of("gemini-cli").missing_file_reads_empty);
        assert_eq!(quirks_of("somebody else"), Quirks::NONE);
        assert_eq!(quirks_of(""), Quirks::NONE);
    }
}
