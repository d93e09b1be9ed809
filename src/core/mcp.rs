//! The user's MCP servers, which each session is told of as far as its agent can use them.

use super::message::SessionCapabilities;

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

impl McpServer {
    /// Whether an agent that can do this can use it.
    pub(super) const fn fits(&self, can: SessionCapabilities) -> bool {
        match self.transport {
            // Every agent has to.
            McpTransport::Stdio { .. } => true,
            McpTransport::Http { .. } => can.mcp_http,
            McpTransport::Sse { .. } => can.mcp_sse,
        }
    }
}
