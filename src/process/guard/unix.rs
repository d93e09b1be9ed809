//! What all Unix systems have in common: wait, give time, kill, reap.

use std::io::{self, Write as _};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::system::{self, Watch};
use super::{GRACE, GuardError, KILL_TIME};

/// Why [`Watch::wait`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// A child ended, or may have.
    Child,
    /// A signal asks for the end, or Neovim is gone.
    End,
    /// Neither, until the deadline.
    Deadline,
}

/// How often the children are looked for again while killing, if none of them ends meanwhile.
const KILL_PAUSE: Duration = Duration::from_millis(10);

/// See [`super::run`].
pub(super) fn supervise(helper: &mut Command) -> Result<u8, GuardError> {
    // Before the start, so that no signal and no child's end is missed.
    let mut watch = Watch::start().map_err(GuardError::Watch)?;
    // Dropping a `Child` leaves the process alone; it is reaped below, with all others.
    let pid = helper.spawn().map_err(GuardError::Start)?.id();
    let mut helper = Helper { pid: Pid::from_raw(pid.cast_signed()), code: None };

    let watched = until_end(&mut watch, &mut helper);
    let deadline = Instant::now() + KILL_TIME;
    loop {
        system::children(helper.alive()).into_iter().for_each(kill_process);
        if helper.reap() == Reaped::All || Instant::now() >= deadline {
            break;
        }
        watch.wait(Some(Instant::now() + KILL_PAUSE)).map_err(GuardError::Watch)?;
    }
    watched.map_err(GuardError::Watch)?;
    Ok(helper.code.unwrap_or(UNKNOWN_END))
}

/// Waits until the helper ended, or has had its time after being asked to.
fn until_end(watch: &mut Watch, helper: &mut Helper) -> nix::Result<()> {
    let mut deadline = None;
    loop {
        let wake = watch.wait(deadline)?;
        // Whatever it was: a child's end may have come at the same time.
        helper.reap();
        if helper.code.is_some() {
            return Ok(());
        }
        match wake {
            Wake::Child => {}
            Wake::End => {
                if deadline.is_none() {
                    deadline = Some(Instant::now() + GRACE);
                    helper.ask_to_end();
                }
            }
            Wake::Deadline => return Ok(()),
        }
    }
}

/// 128 + `SIGKILL`: what is said of a helper whose end was not seen, because it was killed and hangs.
const UNKNOWN_END: u8 = 128 + 9;

/// The helper, while it is a child of this process.
struct Helper {
    pid: Pid,
    code: Option<u8>,
}

#[derive(PartialEq, Eq)]
enum Reaped {
    All,
    SomeAreLeft,
}

impl Helper {
    /// The helper's id, as long as it cannot belong to another process.
    fn alive(&self) -> Option<Pid> {
        self.code.is_none().then_some(self.pid)
    }

    /// Also when the whole group got the signal already: a helper takes the second like the first.
    fn ask_to_end(&self) {
        match kill(self.pid, Signal::SIGTERM) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => complain(&format!("the helper could not be asked to end ({error})")),
        }
    }

    /// Reaps every child that has ended, orphans included, and keeps the helper's code.
    fn reap(&mut self) -> Reaped {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return Reaped::SomeAreLeft,
                Ok(WaitStatus::Exited(pid, code)) if pid == self.pid => {
                    self.code = Some(u8::try_from(code).unwrap_or(UNKNOWN_END));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.pid => {
                    self.code = Some(u8::try_from(128 + signal as i32).unwrap_or(UNKNOWN_END));
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(Errno::ECHILD) => {
                    self.code.get_or_insert(UNKNOWN_END);
                    return Reaped::All;
                }
                // A real-time signal, for which `nix` has no name: somebody was reaped, perhaps the helper.
                Err(_) => {
                    if kill(self.pid, None) == Err(Errno::ESRCH) {
                        self.code.get_or_insert(UNKNOWN_END);
                    }
                }
            }
        }
    }
}

/// `pid` is a child that was not reaped, so the number cannot belong to another process by now.
fn kill_process(pid: Pid) {
    match kill(pid, Signal::SIGKILL) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => complain(&format!("process {pid} could not be ended ({error})")),
    }
}

pub(super) fn complain(text: &str) {
    // Neovim may have closed it; there is nobody else to tell.
    let _ = writeln!(io::stderr(), "agentchat: {text}");
}
