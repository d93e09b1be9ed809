//! The guided tour: an ACP agent (protocol version 1) without a model, played from a script.
//!
//! It shows what an agent in Neovim can do on a machine that has nothing else: it thinks, plans, reads, proposes an
//! edit, asks, writes, runs a command and streams Markdown, all for real and through the client. What the client does
//! not offer it skips, and says so. It never writes or runs anything without permission.
//!
//! ```text
//! serving ─► agent ─► session (one task each) ─► chapters ─► stage ─► serving::Peer
//! ```
//!
//! * `agent` knows the methods of ACP; [`crate::serving`] the JSON-RPC below them.
//! * `session` plays prompts one after the other; a cancel drops the chapter wherever it is, and `stage` settles
//!   what it has left open.
//! * `chapters` is the script, `project` what there is to show in the user's folder, `text/` the longer texts.

mod agent;
mod chapters;
mod disk;
mod pace;
mod permission;
mod project;
mod session;
mod stage;
mod terminal;
mod text;

use tokio::io::{AsyncRead, AsyncWrite};

use self::agent::Agent;
pub use self::pace::{PACE_VARIABLE, Pace};
pub use crate::serving::ServeError;
use crate::serving::serve;

/// Serves one client at the pace of the environment (see [`Pace::from_env`]), until `input` ends.
///
/// # Errors
/// When reading or writing fails. A client that is gone is not an error.
pub async fn run<I, O>(input: I, output: O) -> Result<(), ServeError>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin,
{
    run_at(Pace::from_env(), input, output).await
}

/// Serves one client at the given pace, until `input` ends. Must run inside a Tokio runtime with time enabled.
///
/// # Errors
/// When reading or writing fails. A client that is gone is not an error.
pub async fn run_at<I, O>(pace: Pace, input: I, output: O) -> Result<(), ServeError>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin,
{
    serve(input, output, |peer| Agent::new(peer, pace)).await
}
