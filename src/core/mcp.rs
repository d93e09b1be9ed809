//! The user's MCP servers, which each session is told of as far as its agent can use them.

use super::ids::{ChatId, ConnId};
use super::state::State;
use super::transcript::Severity;

/// An MCP server of the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// What the user calls it.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
}

/// How an MCP server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// The agent starts it.
    Stdio {
        /// The program and its arguments.
        command: Vec<String>,
        /// Variables.
        env: Vec<(String, String)>,
    },
    /// Over HTTP.
    Http {
        /// Where.
        url: String,
        /// What goes along.
        headers: Vec<(String, String)>,
    },
    /// Over server-sent events.
    Sse {
        /// Where.
        url: String,
        /// What goes along.
        headers: Vec<(String, String)>,
    },
}

impl State {
    /// The servers that this agent can use.
    pub(super) fn mcp_servers(&self, conn: ConnId) -> Vec<McpServer> {
        self.config.mcp_servers.iter().filter(|server| self.takes_mcp(conn, server)).cloned().collect()
    }

    fn takes_mcp(&self, conn: ConnId, server: &McpServer) -> bool {
        let can = self.connections.get(&conn).map(|connection| connection.can).unwrap_or_default();
        match server.transport {
            // Every agent has to.
            McpTransport::Stdio { .. } => true,
            McpTransport::Http { .. } => can.mcp_http,
            McpTransport::Sse { .. } => can.mcp_sse,
        }
    }

    /// Says which of the servers the agent was not told of.
    pub(super) fn tell_dropped_mcp_servers(&mut self, id: ChatId, conn: ConnId) {
        let dropped: Vec<&str> = self
            .config
            .mcp_servers
            .iter()
            .filter(|server| !self.takes_mcp(conn, server))
            .map(|server| server.name.as_str())
            .collect();
        if dropped.is_empty() {
            return;
        }
        let agent = self.chats.get(&id).map(|chat| chat.agent.clone()).unwrap_or_default();
        let text =
            format!("{agent} cannot use these MCP servers, for want of their transport: {}.", dropped.join(", "));
        self.note(id, Severity::Info, text);
    }
}
