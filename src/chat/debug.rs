//! `--debug`.

use std::io;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::{Layer as _, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::logging::redact::redact;

/// Sends what this program traces to standard error, without secrets.
pub(super) fn to_stderr() {
    let ours = tracing_subscriber::filter::Targets::new().with_target("agentchat", LevelFilter::TRACE);
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Stderr).with_filter(ours);
    // A second one in a process changes nothing.
    let _ = tracing_subscriber::registry().with(layer).try_init();
}

struct Stderr;

struct Line;

impl<'writer> MakeWriter<'writer> for Stderr {
    type Writer = Line;

    fn make_writer(&'writer self) -> Line {
        Line
    }
}

impl io::Write for Line {
    /// One event comes in one piece.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = String::from_utf8_lossy(bytes);
        let text = redact(&written);
        io::stderr().lock().write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
