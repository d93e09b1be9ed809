//! Finding processes by a mark in their environment, and waiting for conditions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Long enough for any machine; only a failing test waits this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until `condition` holds and returns how long that took; fails with `what` after [`PATIENCE`].
#[track_caller]
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "still waiting for: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
    start.elapsed()
}

/// The program `examples/{name}.rs`, which `cargo test` builds.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is missing: run `cargo build --examples`", path.display());
    path
}

/// Written by another process: a file that this one has open for writing while another test's thread forks could not be
/// started (`ETXTBSY`).
pub(crate) fn executable(path: &Path, text: &str) {
    let script = "printf %s \"$2\" >\"$1\" && chmod +x \"$1\"";
    assert!(Command::new("sh").args(["-c", script, "sh"]).arg(path).arg(text).status().unwrap().success());
}

/// A value of the environment that every process started below a test inherits. Whatever is left is killed at the end.
pub(crate) struct Mark(String);

const VARIABLE: &str = "AGENTCHAT_TEST_MARK";

impl Mark {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(format!("{}.{}.", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env(VARIABLE, &self.0);
        command
    }

    pub(crate) fn env(&self) -> (String, String) {
        (VARIABLE.to_owned(), self.0.clone())
    }

    /// All marked processes that run (or are stopped), by what `/proc` calls them.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let mark = format!("{VARIABLE}={}", self.0);
        let holds_mark = |pid: i32| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environment| environment.split(|&byte| byte == 0).any(|entry| entry == mark.as_bytes()))
        };
        all_processes().into_iter().filter(|process| process.state != 'Z' && holds_mark(process.pid)).collect()
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.processes().iter().filter(|process| process.name == name).count()
    }

    pub(crate) fn pid_of(&self, name: &str) -> i32 {
        self.processes().iter().find(|process| process.name == name).unwrap().pid
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        for process in self.processes() {
            let _ = kill(process.pid, 9);
        }
    }
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) name: String,
    pub(crate) state: char,
    pub(crate) parent: i32,
}

pub(crate) fn all_processes() -> Vec<Process> {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(process).collect()
}

fn process(pid: i32) -> Option<Process> {
    let stat = String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?).into_owned();
    let (before, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Process { pid, name: before.split_once('(')?.1.to_owned(), state, parent })
}

pub(crate) fn kill(pid: i32, signal: i32) -> nix::Result<()> {
    use nix::sys::signal::Signal;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::try_from(signal)?)
}
