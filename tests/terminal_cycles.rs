//! Commands in terminals, one after the other and many at once: what they leave behind in our own process, which is nothing.
//! A program of its own, since it counts what the whole process has. `AGENTCHAT_CYCLES` says how many commands are run (200).
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use agentchat::process::Exit;
use agentchat::terminal::pty::{Command, Environment, FIRST_SIZE, Pty};
use agentchat::terminal::screen::Screen;
use parking_lot::Mutex;

const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `condition` holds.
#[track_caller]
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "still waiting for: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn command(line: &str) -> Command {
    Command { command: "sh".into(), args: vec!["-c".into(), line.into()], env: Vec::new(), cwd: PathBuf::from("/") }
}

/// Starts a command; its end comes through the channel.
fn start(line: &str) -> (Pty, Arc<Mutex<Screen>>, mpsc::Receiver<Exit>) {
    let screen = Arc::new(Mutex::new(Screen::new(FIRST_SIZE.0, FIRST_SIZE.1, None)));
    let (tell, end) = mpsc::channel();
    let on_end = move |exit| tell.send(exit).expect("the test waits for it");
    let pty = Pty::start(&command(line), &Environment::default(), screen.clone(), || {}, on_end).expect("sh is there");
    (pty, screen, end)
}

fn count(folder: &str) -> usize {
    fs::read_dir(folder).expect("/proc is there").count()
}

/// Threads that serve a terminal.
fn terminal_threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("/proc is there").flatten();
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    tasks
        .filter(|task| fs::metadata(task.path()).is_ok())
        .map(name)
        .filter(|name| name.starts_with("terminal "))
        .count()
}

/// Resident memory in KiB.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("/proc is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its size is told");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn thousands_of_commands_leave_no_file_no_thread_and_no_memory() {
    let cycles = std::env::var("AGENTCHAT_CYCLES").ok().and_then(|count| count.parse().ok()).unwrap_or(200);
    let run = |number: usize| {
        let (_pty, screen, end) = start(&format!("echo number {number}"));
        assert_eq!(end.recv_timeout(PATIENCE).expect("it ends").code, Some(0));
        assert_eq!(screen.lock().text().output, format!("number {number}\n"));
    };
    (0..20).for_each(run);
    let (files, memory_before) = (count("/proc/self/fd"), memory());
    (0..cycles).for_each(run);

    // Fifty at once, each with something to say, then all are dropped while they run.
    let many: Vec<_> = (0..50).map(|number| start(&format!("echo number {number}; sleep 300"))).collect();
    let shown = |(_, screen, _): &(Pty, Arc<Mutex<Screen>>, mpsc::Receiver<Exit>)| screen.lock().text().output;
    until("all fifty to be seen", || many.iter().all(|one| shown(one).ends_with('\n')));
    for (number, one) in many.iter().enumerate() {
        assert_eq!(shown(one), format!("number {number}\n"));
    }
    let ends: Vec<_> = many.into_iter().map(|(_, _, end)| end).collect();
    for end in ends {
        assert_eq!(end.recv_timeout(PATIENCE).expect("dropping it kills it").signal, Some(9));
    }
    until("the threads and files to be gone", || terminal_threads() == 0 && count("/proc/self/fd") <= files);
    let grown = memory().saturating_sub(memory_before);
    assert!(grown < 16 * 1024, "{grown} KiB more than before");
}
