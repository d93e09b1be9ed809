//! Standard output and standard error.

use std::io::{self, IsTerminal as _, Write as _};

/// The most that a pipe takes without waiting when it is ready at all (`PIPE_BUF` of POSIX is at least 512; Linux has 4096).
const READY_BYTES: usize = 512;

/// Standard output, buffered until [`Output::flush`]. A reader that does not read is waited for on another thread, so that
/// Ctrl-C still works.
pub(crate) struct Output {
    buffer: Vec<u8>,
    is_terminal: bool,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self { buffer: Vec::new(), is_terminal: io::stdout().is_terminal() }
    }

    /// Adds text. At a terminal, control characters that could do something to it are shown instead of sent.
    pub(crate) fn push(&mut self, text: &str) {
        if self.is_terminal {
            self.buffer.extend_from_slice(harmless(text).as_bytes());
        } else {
            self.buffer.extend_from_slice(text.as_bytes());
        }
    }

    /// Writes everything out.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        let mut rest = std::mem::take(&mut self.buffer);
        let mut at = 0;
        while at < rest.len() && is_ready() {
            let end = rest.len().min(at + READY_BYTES);
            write(&rest[at..end])?;
            at = end;
        }
        if at < rest.len() {
            rest.drain(..at);
            let written = tokio::task::spawn_blocking(move || write(&rest)).await;
            written.map_err(io::Error::other)??;
        }
        Ok(())
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Whether writing a little will not wait.
#[cfg(unix)]
fn is_ready() -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd as _;
    let stdout = io::stdout();
    let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::POLLOUT)];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

#[cfg(not(unix))]
fn is_ready() -> bool {
    false
}

/// `text` without what a terminal would take for a command.
pub(crate) fn harmless(text: &str) -> String {
    let is_harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(is_harmful) {
        return text.to_owned();
    }
    text.chars().map(|c| if is_harmful(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// A line on standard error. That nobody reads it is no reason to fail.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{}", harmless(line));
}

/// Something that the user should know although the command goes on.
pub(crate) fn warn(text: &str) {
    say(&format!("warn: {text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_given_commands() {
        assert_eq!(
            harmless("a\tb\n\u{1b}]52;c;eA==\u{7}\u{9b}2J日本\r"),
            "a\tb\n\u{fffd}]52;c;eA==\u{fffd}\u{fffd}2J日本\u{fffd}"
        );
    }
}
