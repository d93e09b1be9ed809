//! The built-in agent: any endpoint of the Responses API as a coding agent of the Agent Client Protocol.
//!
//! ```text
//! serving ─► service ─► session (one task each) ─► turn ─► model ─► responses::Client
//!                                                   └─► tools ─► client (its files and terminals), else our own
//! ```
//!
//! | module | is |
//! |---|---|
//! | `service` | the methods of ACP, and the sessions |
//! | `session` | prompts one after the other; a cancel drops the turn wherever it is, and `turn` settles what it left open |
//! | `turn` | one prompt: ask the model, run what it calls, until it is done |
//! | `compaction` | a summary in the place of what was said |
//! | `history` | what was said, as the endpoint wants to hear it; pure |
//! | `arguments` | reading what models write as arguments, also while they write it; pure |
//! | `approval` | what may be done without asking; pure |
//! | `tools` | the functions |
//! | `model` | which endpoint and model |
//! | `mcp` | the MCP servers of a session |
//! | `commands` | slash commands |
//! | `options` | modes and configuration options |
//! | `failure` | what a failed request means for the user |
//! | `records` | sessions in the product's store |
//! | `client` | the client's files, terminals and permissions, and their substitutes |

mod approval;
mod arguments;
mod client;
mod commands;
mod compaction;
mod failure;
mod history;
mod instructions;
mod mcp;
mod model;
mod options;
mod records;
mod service;
mod session;
mod tools;
mod turn;

use tokio::io::{AsyncRead, AsyncWrite};

pub use crate::serving::ServeError;
use crate::serving::serve;

/// Serves one client until `input` ends. Must run inside a Tokio runtime with time and IO enabled.
///
/// # Errors
/// When reading or writing fails. A client that is gone is not an error.
pub async fn run<I, O>(input: I, output: O) -> Result<(), ServeError>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin,
{
    serve(input, output, service::Agent::new).await
}
