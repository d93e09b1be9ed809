//! What a session is begun, opened or copied with: its folder, and what the user configured for every session, as far as its
//! agent can use that.

use std::path::PathBuf;

use super::ids::{ChatId, ConnId};
use super::mcp::McpServer;
use super::message::SessionCapabilities;
use super::state::State;
use super::transcript::Severity;

/// The parts of `session/new` that `session/load`, `session/resume` and `session/fork` have as well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionSetup {
    /// Absolute working directory.
    pub cwd: PathBuf,
    /// MCP servers that it can use.
    pub mcp: Vec<McpServer>,
    /// Further folders of its workspace, absolute.
    pub additional_directories: Vec<PathBuf>,
    /// What is said to the model ahead of everything, behind what the agent says itself.
    pub system_prompt: Option<String>,
}

impl State {
    /// What a session of this chat is set up with.
    pub(super) fn setup(&self, id: ChatId, conn: ConnId) -> SessionSetup {
        let can = self.can(conn);
        SessionSetup {
            cwd: self.chats.get(&id).map(|chat| chat.cwd.clone()).unwrap_or_default(),
            mcp: self.config.mcp_servers.iter().filter(|server| server.fits(can)).cloned().collect(),
            additional_directories: if can.additional_directories {
                self.config.additional_directories.clone()
            } else {
                Vec::new()
            },
            system_prompt: self.config.system_prompt.clone().filter(|_| can.system_prompt),
        }
    }

    /// Says what of the configuration the agent was not told.
    pub(super) fn tell_what_was_dropped(&mut self, id: ChatId, conn: ConnId) {
        let can = self.can(conn);
        let agent = self.chats.get(&id).map(|chat| chat.agent.clone()).unwrap_or_default();
        let servers = self.config.mcp_servers.iter().filter(|server| !server.fits(can));
        let servers: Vec<&str> = servers.map(|server| server.name.as_str()).collect();
        let mut said = Vec::new();
        if !servers.is_empty() {
            let names = servers.join(", ");
            said.push(format!("{agent} cannot use these MCP servers, for want of their transport: {names}."));
        }
        if !self.config.additional_directories.is_empty() && !can.additional_directories {
            said.push(format!("{agent} takes no `additional_directories`; it knows of the chat's folder only."));
        }
        if self.config.system_prompt.is_some() && !can.system_prompt {
            said.push(format!("{agent} takes no `system_prompt`; it was not told."));
        }
        for text in said {
            self.note(id, Severity::Info, text);
        }
    }

    /// What the agent can do; nothing before it has said so.
    pub(super) fn can(&self, conn: ConnId) -> SessionCapabilities {
        self.connections.get(&conn).map(|connection| connection.can).unwrap_or_default()
    }
}
