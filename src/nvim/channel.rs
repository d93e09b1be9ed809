//! Standard input and output as an RPC session.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::io::{AsyncRead, AsyncWrite};
use nvim_rs::Neovim;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

/// What we read from.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// What we write to.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;
/// The session.
pub type Nvim = Neovim<Writer>;

/// Standard input and output, which Neovim gave us, without a thread in between where that is possible.
///
/// Neovim 0.11 gives its children sockets, 0.12 pipes; both can be polled. Anything else (a file in a test, Windows)
/// goes through tokio's blocking threads.
///
/// # Errors
/// When a descriptor cannot be used.
pub fn open() -> io::Result<(Reader, Writer)> {
    #[cfg(unix)]
    let (reader, writer) = unix::open()?;
    #[cfg(not(unix))]
    let (reader, writer): (Reader, Writer) =
        (Box::new(tokio::io::stdin().compat()), Box::new(tokio::io::stdout().compat_write()));
    Ok((Box::new(HeardOut { reader, is_told: false }), writer))
}

/// A reader that tells its end a turn of its task later. nvim-rs reads and handles messages in one task, reading first, and
/// lets go of all that is not handled yet when it reads the end: what Neovim says just before it goes away would be lost.
struct HeardOut<R> {
    reader: R,
    is_told: bool,
}

impl<R: AsyncRead + Unpin> AsyncRead for HeardOut<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.reader).poll_read(cx, buffer) {
            Poll::Ready(Ok(0) | Err(_)) if !self.is_told => {
                self.is_told = true;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            other => other,
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::FileTypeExt;

    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use super::{Reader, TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt, Writer};

    /// What a descriptor is.
    enum Kind {
        Socket,
        Pipe,
        Other,
    }

    fn kind(fd: &OwnedFd) -> io::Result<Kind> {
        let kind = File::from(fd.try_clone()?).metadata()?.file_type();
        Ok(if kind.is_socket() {
            Kind::Socket
        } else if kind.is_fifo() {
            Kind::Pipe
        } else {
            Kind::Other
        })
    }

    fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
        let stream = std::os::unix::net::UnixStream::from(fd);
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    }

    pub(super) fn open() -> io::Result<(Reader, Writer)> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        let reader: Reader = match kind(&input)? {
            Kind::Socket => Box::new(socket(input)?.compat()),
            Kind::Pipe => Box::new(pipe::Receiver::from_owned_fd(input)?.compat()),
            Kind::Other => Box::new(tokio::io::stdin().compat()),
        };
        let writer: Writer = match kind(&output)? {
            Kind::Socket => Box::new(socket(output)?.compat_write()),
            Kind::Pipe => Box::new(pipe::Sender::from_owned_fd(output)?.compat_write()),
            Kind::Other => Box::new(tokio::io::stdout().compat_write()),
        };
        Ok((reader, writer))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::io::{AllowStdIo, Cursor};
    use rmpv::Value;
    use tokio::sync::mpsc;

    use super::*;
    use crate::nvim::incoming::{FromLua, Incoming};

    #[tokio::test]
    async fn what_is_said_just_before_the_end_is_heard() {
        let mut said = Vec::new();
        let notification = Value::Array(vec![2.into(), "leaving".into(), Value::Array(Vec::new())]);
        rmpv::encode::write_value(&mut said, &notification).unwrap();
        let reader: Reader = Box::new(HeardOut { reader: Cursor::new(said), is_told: false });
        let writer: Writer = Box::new(AllowStdIo::new(io::sink()));
        let (to_owner, mut from_lua) = mpsc::unbounded_channel();
        let (_nvim, io_loop) = Neovim::new(reader, writer, Incoming::new(to_owner));
        assert!(io_loop.await.is_err(), "the channel has an end");
        let heard = tokio::time::timeout(Duration::from_secs(10), from_lua.recv()).await;
        assert_eq!(heard.unwrap(), Some(FromLua::Leaving));
    }
}
