//! A command in a pseudo terminal of its own.
//!
//! Its process leads a session and a process group, so that a kill reaches all of it. What left the group is the guard's part
//! (`crate::process::guard`). One thread reads what the command writes and another interprets it, much at once in a flood:
//! while that is slower than the command, the command waits, and nothing piles up. A third waits for its end.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use portable_pty::{CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::screen::Screen;
use crate::process::{Exit, SpawnError, find_program};

/// Columns and rows until a window shows it.
pub const FIRST_SIZE: (u16, u16) = (80, 24);
/// How long a command may take to end once it was asked to.
const GRACE: Duration = Duration::from_millis(500);
/// How long what a command wrote is waited for once it has ended and nothing more comes. Only what was started to outlive it
/// can hold it up.
const DRAIN: Duration = Duration::from_millis(300);
/// How often that is waited for while something still comes.
const DRAINS: usize = 16;
/// Bytes that are read at once; a system gives less.
const READ: usize = 16 * 1024;
/// Bytes that may wait to be interpreted.
const WAITING: usize = 256 * 1024;
/// Bytes that are interpreted at once, while nobody else sees the screen.
const PIECE: usize = 8 * 1024;
/// The same while they are plain lines, which cost a fraction.
const PLAIN_PIECE: usize = 64 * 1024;
/// Texts that the user typed and the command has not read.
const TYPED: usize = 1_024;
const STACK: usize = 256 * 1024;
/// What keeps programs from waiting for a key that nobody presses.
const DEFAULTS: [(&str, &str); 6] = [
    ("TERM", "xterm-256color"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
];
/// What would make programs believe that they run in another terminal.
const REMOVED: [&str; 5] = ["COLUMNS", "LINES", "TERMCAP", "TERM_PROGRAM", "COLORTERM"];

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// A program, or, without arguments, a whole line for the user's shell.
    pub command: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// Added to the helper's environment.
    pub env: Vec<(String, String)>,
    /// Absolute folder.
    pub cwd: PathBuf,
}

/// The variables of all commands beside those of the helper and those that an agent asks for; `None` removes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment(Vec<(String, Option<String>)>);

impl Default for Environment {
    fn default() -> Self {
        Self(DEFAULTS.map(|(name, value)| (name.to_owned(), Some(value.to_owned()))).to_vec())
    }
}

impl Environment {
    /// The same with other values for some of them, or none.
    #[must_use]
    pub fn with(mut self, changes: impl IntoIterator<Item = (String, Option<String>)>) -> Self {
        for (name, value) in changes {
            self.0.retain(|(known, _)| *known != name);
            self.0.push((name, value));
        }
        self
    }
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum PtyError {
    /// No such program or folder.
    #[error(transparent)]
    Program(#[from] SpawnError),
    /// A folder that is not there, or is none.
    #[error("The working directory {} does not exist or is no folder", .0.display())]
    Cwd(PathBuf),
    /// The system refused.
    #[error("{program} could not be started in a terminal: {reason}")]
    Start {
        /// The program that was asked for.
        program: String,
        /// What the system says.
        reason: String,
    },
}

/// A running command, or one that has ended. Dropping it kills the group.
pub struct Pty {
    master: Mutex<Box<dyn MasterPty + Send>>,
    typed: Mutex<Option<SyncSender<Vec<u8>>>>,
    group: Option<i32>,
    ended: Arc<AtomicBool>,
}

impl Pty {
    /// Starts a command on a screen of [`FIRST_SIZE`]. `changed` is called from other threads whenever that is another;
    /// `ended` once, when all that the command wrote is on it.
    ///
    /// # Errors
    /// See [`PtyError`]; nothing is left running then.
    pub fn start(
        command: &Command,
        environment: &Environment,
        screen: Arc<Mutex<Screen>>,
        changed: impl Fn() + Send + 'static,
        ended: impl FnOnce(Exit) + Send + 'static,
    ) -> Result<Self, PtyError> {
        let failed = |reason: String| PtyError::Start { program: command.command.clone(), reason };
        let builder = builder(command, environment)?;
        let size = PtySize { cols: FIRST_SIZE.0, rows: FIRST_SIZE.1, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).map_err(|error| failed(error.to_string()))?;
        let mut reader = pair.master.try_clone_reader().map_err(|error| failed(error.to_string()))?;
        let child = pair.slave.spawn_command(builder).map_err(|error| failed(error.to_string()))?;
        // Ours would keep the terminal open beyond the command's end.
        drop(pair.slave);
        let group = child.process_id().and_then(|pid| i32::try_from(pid).ok());
        let has_ended = Arc::new(AtomicBool::new(false));
        let pty = Self { master: Mutex::new(pair.master), typed: Mutex::new(None), group, ended: has_ended.clone() };
        let (interpreted, all_done) = mpsc::sync_channel::<()>(1);
        let pipe = Arc::new(Pipe::default());
        let (from, on_screen) = (pipe.clone(), screen.clone());
        thread("terminal screen", move || {
            while let Some(bytes) = from.take() {
                show(&bytes, &on_screen);
                changed();
                // One in there is enough of a sign of life; that nothing more comes is the end of the channel.
                let _ = interpreted.try_send(());
            }
        })
        .map_err(|error| failed(error.to_string()))?;
        thread("terminal output", move || read(&mut reader, &pipe)).map_err(|error| failed(error.to_string()))?;
        thread("terminal end", move || {
            let exit = wait(child);
            has_ended.store(true, Ordering::Release);
            signal(group, Signal::Kill);
            for _ in 0..DRAINS {
                if all_done.recv_timeout(DRAIN).is_err() {
                    break;
                }
            }
            screen.lock().finish();
            ended(exit);
        })
        .map_err(|error| failed(error.to_string()))?;
        Ok(pty)
    }

    /// The window that shows it has this many columns and rows.
    pub fn resize(&self, columns: u16, rows: u16) {
        let size = PtySize { cols: columns.max(2), rows: rows.max(1), pixel_width: 0, pixel_height: 0 };
        if let Err(error) = self.master.lock().resize(size) {
            tracing::debug!(%error, "a terminal could not be resized");
        }
    }

    /// The user typed this. A command that reads nothing loses what does not fit; keys never wait for it.
    pub fn write(&self, bytes: Vec<u8>) {
        if self.ended.load(Ordering::Acquire) {
            return;
        }
        let mut typed = self.typed.lock();
        if typed.is_none() {
            let Ok(mut writer) = self.master.lock().take_writer() else { return };
            let (sender, receiver) = mpsc::sync_channel::<Vec<u8>>(TYPED);
            let started = thread("terminal input", move || {
                while let Ok(bytes) = receiver.recv() {
                    if writer.write_all(&bytes).and_then(|()| writer.flush()).is_err() {
                        return;
                    }
                }
            });
            if started.is_ok() {
                *typed = Some(sender);
            }
        }
        if let Some(sender) = typed.as_ref()
            && sender.try_send(bytes).is_err()
        {
            tracing::debug!("a command in a terminal does not read what is typed");
        }
    }

    /// Ends the whole group: asks, and after a moment kills. Must be called inside a tokio runtime.
    pub fn kill(&self) {
        if self.ended.load(Ordering::Acquire) {
            return;
        }
        signal(self.group, Signal::Terminate);
        let (group, ended) = (self.group, self.ended.clone());
        tokio::spawn(async move {
            tokio::time::sleep(GRACE).await;
            if !ended.load(Ordering::Acquire) {
                signal(group, Signal::Kill);
            }
        });
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        if !self.ended.load(Ordering::Acquire) {
            signal(self.group, Signal::Kill);
        }
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(work).map(drop)
}

/// What was read and not interpreted.
#[derive(Default)]
struct Pipe {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    is_over: bool,
}

impl Pipe {
    /// Adds bytes, as soon as there is room for them.
    fn put(&self, bytes: &[u8]) {
        let mut waiting = self.waiting.lock();
        while waiting.bytes.len() >= WAITING {
            self.changed.wait(&mut waiting);
        }
        waiting.bytes.extend_from_slice(bytes);
        self.changed.notify_all();
    }

    fn end(&self) {
        self.waiting.lock().is_over = true;
        self.changed.notify_all();
    }

    /// All that waits, as soon as there is something; `None` once nothing more will come.
    fn take(&self) -> Option<Vec<u8>> {
        let mut waiting = self.waiting.lock();
        while waiting.bytes.is_empty() && !waiting.is_over {
            self.changed.wait(&mut waiting);
        }
        let bytes = std::mem::take(&mut waiting.bytes);
        self.changed.notify_all();
        (!bytes.is_empty()).then_some(bytes)
    }
}

fn read(reader: &mut dyn Read, pipe: &Pipe) {
    let mut buffer = [0; READ];
    loop {
        match reader.read(&mut buffer) {
            Ok(count) if count > 0 => pipe.put(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            // The end of a terminal is an error on Linux (EIO).
            Ok(_) | Err(_) => return pipe.end(),
        }
    }
}

/// In pieces, so that whoever draws the screen does not wait.
fn show(mut bytes: &[u8], screen: &Mutex<Screen>) {
    while !bytes.is_empty() {
        let mut screen = screen.lock();
        let most = if screen.is_tame() { PLAIN_PIECE } else { PIECE };
        let (piece, rest) = bytes.split_at(most.min(bytes.len()));
        screen.feed(piece);
        bytes = rest;
    }
}

fn wait(child: Box<dyn portable_pty::Child>) -> Exit {
    match child.downcast::<std::process::Child>() {
        Ok(mut child) => child.wait().map_or(Exit { code: None, signal: None }, Exit::from),
        Err(mut other) => {
            let code = other.wait().ok().and_then(|status| i32::try_from(status.exit_code()).ok());
            Exit { code, signal: None }
        }
    }
}

#[derive(Clone, Copy)]
enum Signal {
    Terminate,
    Kill,
}

#[cfg(unix)]
fn signal(group: Option<i32>, signal: Signal) {
    use nix::sys::signal::{Signal as Unix, killpg};
    let signal = match signal {
        Signal::Terminate => Unix::SIGTERM,
        Signal::Kill => Unix::SIGKILL,
    };
    if let Some(group) = group
        && let Err(error) = killpg(nix::unistd::Pid::from_raw(group), signal)
        && !matches!(error, nix::errno::Errno::ESRCH | nix::errno::Errno::EPERM)
    {
        tracing::warn!(group, %error, "the processes of a terminal could not be signalled");
    }
}

#[cfg(not(unix))]
fn signal(_: Option<i32>, _: Signal) {}

/// The command with its environment; a line for a shell becomes the shell's.
fn builder(command: &Command, environment: &Environment) -> Result<CommandBuilder, PtyError> {
    if !command.cwd.is_dir() {
        return Err(PtyError::Cwd(command.cwd.clone()));
    }
    let own_path = command.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| OsString::from(path));
    let path = own_path.or_else(|| std::env::var_os("PATH"));
    let find = |program: &str| find_program(program, &command.cwd, path.as_deref());
    let found = if command.command.trim().is_empty() { Err(SpawnError::EmptyCommand) } else { find(&command.command) };
    let is_line = command.args.is_empty() && command.command.trim().contains(|char: char| !is_plain(char));
    let mut builder = match found {
        Ok(program) => {
            let mut builder = CommandBuilder::new(program);
            builder.args(&command.args);
            builder
        }
        Err(SpawnError::ProgramNotFound { .. }) if is_line => {
            let shell = std::env::var("SHELL").ok().and_then(|shell| find(&shell).ok());
            let shell = shell.map_or_else(|| find("sh"), Ok)?;
            let mut builder = CommandBuilder::new(shell);
            builder.args(["-c", &command.command]);
            builder
        }
        Err(error) => return Err(error.into()),
    };
    for name in REMOVED {
        builder.env_remove(name);
    }
    for (name, value) in &environment.0 {
        match value {
            Some(value) => builder.env(name, value),
            None => builder.env_remove(name),
        }
    }
    for (name, value) in &command.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(SpawnError::InvalidEnvironment { name: name.clone() }.into());
        }
        builder.env(name, value);
    }
    builder.cwd(Path::new(&command.cwd));
    Ok(builder)
}

/// Whether a name of a program may have it: what has anything else in it is a line for a shell.
fn is_plain(char: char) -> bool {
    char.is_alphanumeric() || "-_./+:@%,~".contains(char)
}
