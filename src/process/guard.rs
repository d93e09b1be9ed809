//! The guard: the small process between Neovim and the helper that leaves nothing behind.
//!
//! Neovim starts the guard, the guard starts the helper with its own standard streams and waits. It has one thread, no
//! runtime, and does not wake up while nothing happens.
//!
//! | what happens | what the guard does |
//! |---|---|
//! | the helper ends, or is killed | kills all that is left below it, ends with the helper's code (128 + signal) |
//! | `SIGTERM`, `SIGHUP` or `SIGINT` (`:qa!` sends `SIGTERM` to the group) | passes `SIGTERM` on to the helper, gives it [`GRACE`], then kills all |
//! | Neovim is gone (also by `kill -9`), or has closed the helper's standard input | the same |
//! | the guard itself is killed | nothing, of course; the helper gets `SIGTERM` ([`follow_guard`]) and the end of its input when Neovim closes it |
//!
//! # Guaranteed on Linux
//! All that the helper started directly or indirectly is gone within 2 s of Neovim's end: also what left its process
//! group or session, was orphaned by a double fork, ignores `SIGTERM`, or is stopped. The guard is the subreaper of
//! all of it, so each orphan becomes its child, and it kills children until it has none.
//!
//! # Not guaranteed
//! * What runs elsewhere on the helper's behalf: in a container, a remote shell, a `systemd-run` unit.
//! * What the guard may not kill: programs of another user (`sudo`), and processes that hang inside of the kernel. It
//!   stops trying after [`KILL_TIME`], so that Neovim never has to wait for it; a kill that was sent still holds.
//! * When the *guard* is killed with `SIGKILL`: then the helper ends the agents' process groups, but what left those
//!   groups lives on.
//! * On macOS and the BSDs there is no subreaper: the helper is killed like on Linux, but agents are ended by the
//!   helper. If that was killed, an agent only sees the end of its input.
//! * On Windows the guard only passes the exit code on: the helper and the agents see the end of their input.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

#[cfg(all(unix, not(target_os = "linux")))]
#[path = "guard/kqueue.rs"]
mod system;
#[cfg(target_os = "linux")]
#[path = "guard/linux.rs"]
mod system;
#[cfg(unix)]
mod unix;

/// How long the helper has to finish when Neovim is going or gone. Neovim itself kills its jobs 2 s after `:qa!`.
pub const GRACE: Duration = Duration::from_millis(1200);

/// How long the guard goes on killing what does not die.
pub const KILL_TIME: Duration = Duration::from_millis(600);

/// The exit code when the guard could not do its work; standard error says why.
const FAILED: u8 = 70;

/// Runs `helper` below the guard and returns its exit code, or 128 + the number of the signal that ended it.
///
/// Must be called by the only thread of the process. `helper`'s streams should be inherited, and its program has to call
/// [`follow_guard`]. Failures are told on standard error, which Neovim shows.
pub fn run(mut helper: Command) -> ExitCode {
    match supervise(&mut helper) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Nobody is left to tell when this fails.
            let _ = writeln!(io::stderr(), "agentchat: {error}");
            ExitCode::from(FAILED)
        }
    }
}

#[cfg(unix)]
use unix::supervise;

#[cfg(not(unix))]
fn supervise(helper: &mut Command) -> Result<u8, GuardError> {
    let status = helper.status().map_err(GuardError::Start)?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED))
}

/// Why the guard could not do its work.
#[derive(Debug, thiserror::Error)]
enum GuardError {
    #[error("the helper process could not be started ({0}): reinstall or rebuild the plugin")]
    Start(#[source] io::Error),
    #[cfg(unix)]
    #[error("the helper process cannot be watched ({0}), so it was not left running: please report this")]
    Watch(#[source] nix::errno::Errno),
}

/// Takes the helper's place below the guard. Call it first of all in the helper's main thread, which has to live as long
/// as the process, before any other thread is there.
///
/// * The guard's children inherit its mask of blocked signals (the standard library passes it on): all are unblocked
///   here, and so for the agents that the helper will start.
/// * On Linux the helper gets `SIGTERM` when the guard ends. Elsewhere the end of standard input is the only sign.
///
/// # Errors
/// When the system refuses. The helper can go on: the end of standard input remains as the sign.
pub fn follow_guard() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    system::follow_parent(nix::sys::signal::Signal::SIGTERM)?;
    #[cfg(unix)]
    nix::sys::signal::SigSet::empty().thread_set_mask()?;
    Ok(())
}

/// The path of the running executable, for starting it again.
///
/// On Linux this works also when the file was replaced or deleted since the start (by a build or an update), and then
/// means the old program, which fits the running one.
///
/// # Errors
/// Those of [`std::env::current_exe`].
pub fn own_executable() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    #[cfg(target_os = "linux")]
    if !system::is_running_executable(&path) {
        return Ok(PathBuf::from(system::RUNNING_EXECUTABLE));
    }
    Ok(path)
}
