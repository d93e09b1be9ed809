//! An agent's standard output, which can be left alone for a moment.
//!
//! Whatever is written into a pipe that somebody listens to wakes them, whether they want to read it now or not: an agent
//! that streams a hundred words a second would wake the helper a hundred times to be read twenty times.

use std::io;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::ChildStdout;
use tokio::time::sleep;

#[cfg(unix)]
use tokio::net::unix::pipe::Receiver as Pipe;
#[cfg(not(unix))]
use tokio::process::ChildStdout as Pipe;

/// The reading end.
#[derive(Debug)]
pub(super) struct Output {
    /// None only after an error.
    pipe: Option<Pipe>,
}

impl Output {
    /// The output of a process that was started with a pipe.
    ///
    /// # Errors
    /// When the pipe cannot be waited for.
    pub(super) fn new(stdout: ChildStdout) -> io::Result<Self> {
        #[cfg(unix)]
        let stdout = Pipe::from_owned_fd(stdout.into_owned_fd()?)?;
        Ok(Self { pipe: Some(stdout) })
    }

    /// Reads what there is, waiting for it if there is nothing; 0 at the end.
    ///
    /// # Errors
    /// Those of the pipe.
    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.pipe {
            Some(pipe) => pipe.read(buffer).await,
            None => Ok(0),
        }
    }

    /// Waits without listening.
    ///
    /// # Errors
    /// When the pipe cannot be waited for any more.
    pub(super) async fn rest(&mut self, pause: Duration) -> io::Result<()> {
        #[cfg(unix)]
        if let Some(pipe) = self.pipe.take() {
            let fd = pipe.into_nonblocking_fd()?;
            sleep(pause).await;
            self.pipe = Some(Pipe::from_owned_fd(fd)?);
        }
        #[cfg(not(unix))]
        sleep(pause).await;
        Ok(())
    }
}
