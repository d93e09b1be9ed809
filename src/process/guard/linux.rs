//! Linux: signals are read from a `signalfd(2)`, orphans come to the subreaper (`prctl(2)`).

use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getppid};

use super::unix::{Wake, complain};

/// The signals, the parent and the standard input of this process.
pub(super) struct Watch {
    signals: SignalFd,
    /// Whether the other end of standard input is still open, as far as is known.
    input_open: bool,
}

impl Watch {
    /// Blocks the signals in the calling thread, which has to be the only one.
    pub(super) fn start() -> nix::Result<Self> {
        let mut mask = SigSet::empty();
        for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGCHLD] {
            mask.add(signal);
        }
        mask.thread_block()?;
        let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        if let Err(error) = prctl::set_child_subreaper(true) {
            complain(&format!("processes that detach themselves will not be ended ({error})"));
        }
        follow_parent(Signal::SIGTERM)?;
        Ok(Self { signals, input_open: true })
    }

    /// Waits for one of the things that [`Wake`] lists; without a deadline for as long as it takes.
    pub(super) fn wait(&mut self, deadline: Option<Instant>) -> nix::Result<Wake> {
        loop {
            if let Some(wake) = self.read_signals()? {
                return Ok(wake);
            }
            let timeout = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => return Ok(Wake::Deadline),
                // Rounded up, so that it does not become a busy loop in the last millisecond.
                Some(left) => PollTimeout::from(u16::try_from(left.as_millis() + 1).unwrap_or(u16::MAX)),
                None => PollTimeout::NONE,
            };
            let input = io::stdin();
            // Without any requested event only the hang-up is reported, and the helper's input stays unread.
            let mut fds =
                [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN), PollFd::new(input.as_fd(), PollFlags::empty())];
            let watched = if self.input_open { 2 } else { 1 };
            match poll(&mut fds[..watched], timeout) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(error),
            }
            if self.input_open && fds[1].any().unwrap_or(false) {
                self.input_open = false;
                return Ok(Wake::End);
            }
        }
    }

    /// Takes all pending signals; a wish for the end outranks a child's end.
    fn read_signals(&mut self) -> nix::Result<Option<Wake>> {
        let mut wake = None;
        while let Some(signal) = self.signals.read_signal()? {
            let is_child = i32::try_from(signal.ssi_signo) == Ok(Signal::SIGCHLD as i32);
            wake = match wake {
                Some(Wake::End) => wake,
                _ if is_child => Some(Wake::Child),
                _ => Some(Wake::End),
            };
        }
        Ok(wake)
    }
}

/// Has `signal` sent to this process when its parent ends, at once if it already has.
pub(super) fn follow_parent(signal: Signal) -> nix::Result<()> {
    let parent = getppid();
    prctl::set_pdeathsig(signal)?;
    // The parent may have ended before the call. (If it ended even before the first line, the standard input shows it.)
    if getppid() != parent {
        nix::sys::signal::raise(signal)?;
    }
    Ok(())
}

/// The children of this process, orphans that came to it included; those that ended but were not reaped may be among
/// them. Only `helper` when `/proc` cannot be read.
pub(super) fn children(helper: Option<Pid>) -> Vec<Pid> {
    children_in_proc().unwrap_or_else(|error| {
        complain(&format!("processes may be left behind, because /proc cannot be read ({error})"));
        helper.into_iter().collect()
    })
}

fn children_in_proc() -> io::Result<Vec<Pid>> {
    let own = Pid::this();
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process that ended since is not a child any more.
        let Ok(stat) = fs::read(Path::new("/proc").join(name).join("stat")) else {
            continue;
        };
        if parent_in_stat(&stat) == Some(own) {
            children.push(Pid::from_raw(pid));
        }
    }
    Ok(children)
}

/// `ppid` in `/proc/pid/stat` (proc(5)): the second field after the program's name, which may contain anything.
fn parent_in_stat(stat: &[u8]) -> Option<Pid> {
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let parent = std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace().nth(1)?;
    parent.parse().ok().map(Pid::from_raw)
}

/// A link to the running executable that holds also when its file is gone. In a process that is being started it means
/// the starter's program until the new one runs.
pub(super) const RUNNING_EXECUTABLE: &str = "/proc/self/exe";

/// Whether `path` is still the file that this process was started from.
pub(super) fn is_running_executable(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |path: &Path| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()));
    matches!((id(path), id(Path::new(RUNNING_EXECUTABLE))), (Ok(there), Ok(running)) if there == running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_any_program_name() {
        assert_eq!(parent_in_stat(b"12 (a) R 7) S 34 12 12"), Some(Pid::from_raw(34)));
        assert_eq!(parent_in_stat(b"12 (\xff) S 34 12"), Some(Pid::from_raw(34)));
        assert_eq!(parent_in_stat(b"12"), None);
    }
}
