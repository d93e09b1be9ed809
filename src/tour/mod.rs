//! The guided tour: an ACP agent (protocol version 1) without a model, played from a script.
//!
//! It shows what an agent in Neovim can do on a machine that has nothing else: it thinks, plans, reads, proposes an
//! edit, asks, writes, runs a command and streams Markdown, all for real and through the client. What the client does
//! not offer it skips, and says so. It never writes or runs anything without permission.
//!
//! ```text
//! stdin ─► lines ─► agent ─► session (one task each) ─► chapters ─► stage ─► peer ─► stdout
//!                     └── answers to our requests ────────────────────────────┘
//! ```
//!
//! * `agent` knows the methods of ACP, `peer` the JSON-RPC below them.
//! * `session` plays prompts one after the other; a cancel drops the chapter wherever it is, and `stage` settles
//!   what it has left open.
//! * `chapters` is the script, `project` what there is to show in the user's folder, `text/` the longer texts.

mod agent;
mod chapters;
mod disk;
mod lines;
mod pace;
mod peer;
mod permission;
mod project;
mod session;
mod stage;
mod terminal;
mod text;

use std::io;
use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use self::agent::Agent;
use self::lines::{Line, next_line};
pub use self::pace::{PACE_VARIABLE, Pace};
use self::peer::Peer;

/// The longest line taken from the client, in bytes.
const LONGEST_LINE: usize = 64 * 1024 * 1024;
/// Lines that may wait for the client to read them.
const OUTBOUND_LINES: usize = 1024;
/// How long the last lines may take after the client has closed its end.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Why the tour could not go on.
#[derive(Debug, thiserror::Error)]
pub enum TourError {
    /// The client's messages cannot be read.
    #[error("The guided tour cannot read from its editor: {0}. Restart it with :AgentChat restart.")]
    Read(#[source] io::Error),
    /// Messages cannot be sent to the client, for another reason than that it is gone.
    #[error("The guided tour cannot write to its editor: {0}. Restart it with :AgentChat restart.")]
    Write(#[source] io::Error),
}

/// Serves one client at the pace of the environment (see [`Pace::from_env`]), until `input` ends.
///
/// # Errors
/// When reading or writing fails. A client that is gone is not an error.
pub async fn run<I, O>(input: I, output: O) -> Result<(), TourError>
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
pub async fn run_at<I, O>(pace: Pace, input: I, output: O) -> Result<(), TourError>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin,
{
    let (out, lines) = mpsc::channel(OUTBOUND_LINES);
    let mut agent = Agent::new(Peer::new(out), pace);
    let mut writer = pin!(write_lines(lines, output));
    let served = tokio::select! {
        served = serve(&mut agent, input) => served,
        written = &mut writer => return written,
    };
    // The turns are ended before the writer is waited for: it ends when nobody can send any more.
    let last_words = async {
        agent.end().await;
        writer.await
    };
    match tokio::time::timeout(LAST_WORDS, last_words).await {
        Ok(written) => served.and(written),
        Err(_) => served,
    }
}

async fn serve<I: AsyncRead + Unpin>(agent: &mut Agent, input: I) -> Result<(), TourError> {
    let mut input = BufReader::new(input);
    loop {
        let sent = match next_line(&mut input, LONGEST_LINE).await.map_err(TourError::Read)? {
            Line::Whole(line) => agent.on_line(&line).await,
            Line::TooLong => agent.on_too_long(LONGEST_LINE).await,
            Line::End => return Ok(()),
        };
        // The writer has ended, and says why.
        if sent.is_err() {
            return Ok(());
        }
    }
}

async fn write_lines<O: AsyncWrite + Unpin>(mut lines: mpsc::Receiver<String>, mut output: O) -> Result<(), TourError> {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        let written = async {
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        };
        match written.await {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(TourError::Write(error)),
        }
    }
    Ok(())
}
