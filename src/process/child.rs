//! Agents as child processes, each the leader of its own process group.
//!
//! # What is guaranteed
//! * On Unix [`AgentProcess::terminate`] reaches everything in the agent's process group, also after the agent itself
//!   is gone, and so does dropping an [`AgentProcess`]. A process that left the group (`setsid`) is not reached here; the
//!   guard (`super::guard`) ends it when the helper ends.
//! * `SIGPIPE` ends the child as usual (the standard library resets it), and it inherits the calling thread's signal mask,
//!   in which nothing is blocked after [`follow_guard`](super::guard::follow_guard).
//! * The environment is passed on byte for byte: newlines, exported shell functions, invalid UTF-8.
//!
//! On Windows only the agent's own process is ended; what it started ends when it notices that its pipes are closed.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, timeout_at};

use super::lookup::find_program;

/// What to start, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spawn {
    /// The program, then its arguments. No shell is involved.
    pub command: Vec<String>,
    /// Added to the environment that the agent inherits; the last value of a name wins.
    pub env: Vec<(String, String)>,
    /// The agent's working directory; a relative program (`./agent`) is relative to it.
    pub cwd: PathBuf,
}

/// Why an agent could not be started. Each text says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// `command` has no element, or its first is empty.
    #[error("the agent's `command` is empty: give it a list of the program and its arguments")]
    EmptyCommand,
    /// No file of that name where a program is looked for.
    #[error("`{program}` was not found in {searched}: install it, or give its full path in the agent's `command`")]
    ProgramNotFound {
        /// The name as configured.
        program: String,
        /// The path, or the list of folders, that was searched.
        searched: String,
    },
    /// There is a file, but this user may not run it.
    #[error("{} may not be executed: make it executable (`chmod +x`), or correct the agent's `command`", path.display())]
    NotExecutable {
        /// The file that was found.
        path: PathBuf,
    },
    /// A script whose `#!` line names a program that does not exist, or a binary whose loader is missing.
    #[error(
        "{} could not be started because the interpreter in its first line is missing: install that interpreter",
        path.display()
    )]
    InterpreterMissing {
        /// The script.
        path: PathBuf,
    },
    /// The working directory does not exist.
    #[error("the working directory {} does not exist: create it, or open the chat in another folder", cwd.display())]
    CwdMissing {
        /// As given in [`Spawn::cwd`].
        cwd: PathBuf,
    },
    /// The working directory is not a folder, or may not be entered.
    #[error("the working directory {} cannot be used ({source}): open the chat in another folder", cwd.display())]
    CwdUnusable {
        /// As given in [`Spawn::cwd`].
        cwd: PathBuf,
        /// What the system says about it.
        source: io::Error,
    },
    /// A name or value that no environment can hold.
    #[error("the variable {name:?} in the agent's `env` is not valid: names have no `=`, and neither part a NUL")]
    InvalidEnvironment {
        /// The variable's name.
        name: String,
    },
    /// Anything else that the system reports.
    #[error("{} could not be started ({source}): run it in a terminal to see why", path.display())]
    Start {
        /// The program that was found.
        path: PathBuf,
        /// What the system says about it.
        source: io::Error,
    },
}

/// How a process ended. One of the two is set, except on systems that report neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The exit code, when the process ended by itself.
    pub code: Option<i32>,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
}

impl Exit {
    /// Whether the process ended with code 0.
    pub fn is_success(self) -> bool {
        self.code == Some(0)
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let signal = None;
        Self { code: status.code(), signal }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, Some(signal)) => match signal_name(signal) {
                Some(name) => write!(f, "signal {signal} ({name})"),
                None => write!(f, "signal {signal}"),
            },
            (None, None) => f.write_str("an unknown end"),
        }
    }
}

#[cfg(unix)]
fn signal_name(signal: i32) -> Option<&'static str> {
    nix::sys::signal::Signal::try_from(signal).ok().map(nix::sys::signal::Signal::as_str)
}

#[cfg(not(unix))]
fn signal_name(_signal: i32) -> Option<&'static str> {
    None
}

/// A running agent.
///
/// The pipes are there to be taken by the tasks that serve them. Dropping it kills the whole group at once.
#[derive(Debug)]
pub struct AgentProcess {
    /// The agent's standard input. Whoever takes it drops it before calling [`AgentProcess::terminate`], because its end
    /// is how an agent learns that it should leave.
    pub stdin: Option<ChildStdin>,
    /// The agent's standard output.
    pub stdout: Option<ChildStdout>,
    /// The agent's standard error.
    pub stderr: Option<ChildStderr>,
    child: Child,
    pid: u32,
    exit: Option<Exit>,
}

impl AgentProcess {
    /// Starts an agent. Must be called inside a tokio runtime with IO enabled.
    ///
    /// # Errors
    /// See [`SpawnError`]; nothing is left running after an error.
    pub fn spawn(spawn: &Spawn) -> Result<Self, SpawnError> {
        let (program, args) = spawn.command.split_first().ok_or(SpawnError::EmptyCommand)?;
        if program.is_empty() {
            return Err(SpawnError::EmptyCommand);
        }
        check_cwd(spawn)?;
        check_env(&spawn.env)?;
        let path = find_program(program, &spawn.cwd, child_path(&spawn.env).as_deref())?;

        let mut command = Command::new(&path);
        command
            .args(args)
            .envs(spawn.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&spawn.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        #[cfg(windows)]
        command.creation_flags(CREATE_NO_WINDOW);

        let mut child = command.spawn().map_err(|source| match source.kind() {
            // Program and folder were there a moment ago, so what is missing is what the program itself needs.
            io::ErrorKind::NotFound => SpawnError::InterpreterMissing { path: path.clone() },
            io::ErrorKind::PermissionDenied => SpawnError::NotExecutable { path: path.clone() },
            _ => SpawnError::Start { path: path.clone(), source },
        })?;
        let Some(pid) = child.id() else {
            return Err(SpawnError::Start { path, source: io::Error::other("the process has no id") });
        };
        Ok(Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
            pid,
            exit: None,
        })
    }

    /// The agent's process id, which on Unix is the id of its process group too.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for the agent's end; once it ended, answers the same at once. Cancel-safe.
    ///
    /// What the agent leaves behind in its process group is killed, so that its pipes come to their end.
    ///
    /// # Errors
    /// When the system cannot say how the process ended.
    pub async fn wait(&mut self) -> io::Result<Exit> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        // tokio's own `wait` would close a standard input that nobody took; ours is already outside of `child`.
        let exit = Exit::from(self.child.wait().await?);
        self.exit = Some(exit);
        // The number of a group stays taken while it has a member, and was the agent's own until just now.
        self.signal_group(GroupSignal::Kill);
        Ok(exit)
    }

    /// Ends the agent and its process group: closes its standard input and waits, asks with `SIGTERM` and waits, then
    /// kills. The three steps together take at most `grace` (two fifths, two fifths, one fifth).
    ///
    /// `None` means that the group was killed, but the system has not reported the end within `grace`.
    ///
    /// # Errors
    /// When the system cannot say how the process ended; the group was killed all the same.
    pub async fn terminate(&mut self, grace: Duration) -> io::Result<Option<Exit>> {
        let start = Instant::now();
        self.stdin = None;
        if let Ok(exit) = timeout_at(start + grace * 2 / 5, self.wait()).await {
            return exit.map(Some).inspect_err(|_| self.signal_group(GroupSignal::Kill));
        }
        self.signal_group(GroupSignal::Terminate);
        if let Ok(exit) = timeout_at(start + grace * 4 / 5, self.wait()).await {
            return exit.map(Some).inspect_err(|_| self.signal_group(GroupSignal::Kill));
        }
        self.signal_group(GroupSignal::Kill);
        match timeout_at(start + grace, self.wait()).await {
            Ok(exit) => exit.map(Some),
            Err(_) => Ok(None),
        }
    }

    #[cfg(unix)]
    fn signal_group(&self, signal: GroupSignal) {
        use nix::sys::signal::{Signal, killpg};
        let signal = match signal {
            GroupSignal::Terminate => Signal::SIGTERM,
            GroupSignal::Kill => Signal::SIGKILL,
        };
        let Ok(group) = i32::try_from(self.pid) else {
            return;
        };
        match killpg(nix::unistd::Pid::from_raw(group), signal) {
            // ESRCH: nobody is left. EPERM: only zombies are left (macOS).
            Ok(()) | Err(nix::errno::Errno::ESRCH | nix::errno::Errno::EPERM) => {}
            Err(error) => {
                tracing::warn!(pid = self.pid, %error, "the agent's process group could not be signalled");
            }
        }
    }

    #[cfg(not(unix))]
    fn signal_group(&mut self, signal: GroupSignal) {
        // There is no gentle signal: the closed standard input was the request to leave.
        if matches!(signal, GroupSignal::Kill)
            && self.exit.is_none()
            && let Err(error) = self.child.start_kill()
        {
            tracing::warn!(pid = self.pid, %error, "the agent could not be ended");
        }
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.signal_group(GroupSignal::Kill);
        }
    }
}

#[derive(Clone, Copy)]
enum GroupSignal {
    Terminate,
    Kill,
}

/// Keeps a console window from flashing up for each agent (`CreateProcess`, process creation flags).
#[cfg(windows)]
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

fn check_cwd(spawn: &Spawn) -> Result<(), SpawnError> {
    let cwd = || spawn.cwd.clone();
    match std::fs::metadata(&spawn.cwd) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => {
            return Err(SpawnError::CwdUnusable { cwd: cwd(), source: io::ErrorKind::NotADirectory.into() });
        }
        Err(source) if source.kind() == io::ErrorKind::NotFound => {
            return Err(SpawnError::CwdMissing { cwd: cwd() });
        }
        Err(source) => return Err(SpawnError::CwdUnusable { cwd: cwd(), source }),
    }
    #[cfg(unix)]
    nix::unistd::access(&spawn.cwd, nix::unistd::AccessFlags::X_OK)
        .map_err(|errno| SpawnError::CwdUnusable { cwd: cwd(), source: errno.into() })?;
    Ok(())
}

fn check_env(env: &[(String, String)]) -> Result<(), SpawnError> {
    let valid = |name: &str, value: &str| !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0');
    match env.iter().find(|(name, value)| !valid(name, value)) {
        Some((name, _)) => Err(SpawnError::InvalidEnvironment { name: name.clone() }),
        None => Ok(()),
    }
}

/// The `PATH` that the child will have.
fn child_path(env: &[(String, String)]) -> Option<OsString> {
    let is_path = |name: &str| {
        if cfg!(windows) { name.eq_ignore_ascii_case("PATH") } else { name == "PATH" }
    };
    match env.iter().rev().find(|(name, _)| is_path(name)) {
        Some((_, value)) => Some(value.into()),
        None => std::env::var_os("PATH"),
    }
}
