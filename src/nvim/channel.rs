//! Standard input and output as an RPC session.

use std::io;

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
    {
        unix::open()
    }
    #[cfg(not(unix))]
    {
        Ok((Box::new(tokio::io::stdin().compat()), Box::new(tokio::io::stdout().compat_write())))
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
