//! Nothing is left behind, whoever ends first.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Mark, all_processes, example, kill, until};

/// The promise: all is gone this long after Neovim.
const PROMISE: Duration = Duration::from_secs(2);

/// Starts, as shell commands, what is hard to end: all of it ignores TERM, HUP and INT; one has a session of its own, one
/// was orphaned by a double fork in a session of its own, one is stopped.
const BROOD: &str = "trap '' TERM HUP INT
setsid sleep 1000 &
setsid sh -c 'sh -c \"sleep 1000; :\" & exit' &
sleep 1000 & kill -STOP $!
";

fn brood_is_there(mark: &Mark) -> bool {
    let processes = mark.processes();
    // The stopped one may have been stopped while it was still called `sh`.
    processes.iter().filter(|process| process.name == "sleep" && process.state != 'T').count() == 2
        && processes.iter().any(|process| process.state == 'T')
}

/// A helper that ends with its input, like the real one.
fn polite() -> String {
    format!("{BROOD} exec cat")
}

/// A helper that hangs.
fn wedged() -> String {
    format!("{BROOD} exec tail -f /dev/null")
}

/// Stands in for Neovim: starts a job in a session of its own, with pipes, and waits.
const FAKE_NEOVIM: &str = "
import subprocess, sys
stdin = subprocess.DEVNULL if sys.argv[1] == 'null' else subprocess.PIPE
subprocess.Popen(sys.argv[2:], stdin=stdin, stdout=subprocess.PIPE, start_new_session=True).wait()
";

fn kill_neovim_and_measure(stdin: &str, wrapper: &[&str], helper: &str) -> Duration {
    let mark = Mark::new();
    let mut neovim = mark
        .command("python3")
        .args(["-c", FAKE_NEOVIM, stdin])
        .args(wrapper)
        .arg(example("guard"))
        .arg("run")
        .arg(example("guard"))
        .args(["follow", "sh", "-c", helper])
        .spawn()
        .unwrap();
    until("the helper's brood", || brood_is_there(&mark));
    neovim.kill().unwrap();
    neovim.wait().unwrap();
    until("the end of all", || mark.processes().is_empty())
}

#[test]
fn killing_neovim_ends_all() {
    let time = kill_neovim_and_measure("pipe", &[], &polite());
    assert!(time < PROMISE, "{time:?}");
}

#[test]
fn killing_neovim_ends_all_when_the_helper_hangs() {
    let time = kill_neovim_and_measure("pipe", &[], &wedged());
    assert!(time < PROMISE, "{time:?}");
}

#[test]
fn killing_neovim_ends_all_when_only_the_parent_shows_it() {
    let time = kill_neovim_and_measure("null", &[], &wedged());
    assert!(time < PROMISE, "{time:?}");
}

#[test]
fn killing_neovim_ends_all_when_only_the_input_shows_it() {
    let time = kill_neovim_and_measure("pipe", &["sh", "-c", "\"$@\"; true", "sh"], &wedged());
    assert!(time < PROMISE, "{time:?}");
}

/// A guard that leads a process group, with `helper` below it.
struct Guard(Child);

impl Guard {
    fn start(mark: &Mark, helper: &[&str]) -> Self {
        let mut command = mark.command(example("guard"));
        command.args(["run", example("guard").to_str().unwrap(), "follow"]).args(helper);
        Self(command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }

    fn wait(&mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn output(command: &mut Command) -> String {
    String::from_utf8(command.stdin(Stdio::null()).output().unwrap().stdout).unwrap()
}

#[test]
fn the_guard_ends_with_the_helpers_code_and_leaves_nothing() {
    let mark = Mark::new();
    let mut guard = Guard::start(&mark, &["sh", "-c", &format!("{BROOD} read line; exit 7")]);
    until("the helper's brood", || brood_is_there(&mark));
    guard.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(guard.wait().code(), Some(7));
    assert!(mark.processes().is_empty(), "{:?}", mark.processes());
}

#[test]
fn killing_the_helper_ends_all_with_its_signal() {
    let mark = Mark::new();
    let mut guard = Guard::start(&mark, &["sh", "-c", &wedged()]);
    until("the helper", || mark.count("tail") == 1 && brood_is_there(&mark));
    kill(mark.pid_of("tail"), 9).unwrap();
    assert_eq!(guard.wait().code(), Some(128 + 9));
    assert!(mark.processes().is_empty(), "{:?}", mark.processes());
}

#[test]
fn sigterm_to_the_group_lets_the_helper_finish_first() {
    let mark = Mark::new();
    let helper = "trap 'sleep 0.5; echo finished; exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    let mut guard = Guard::start(&mark, &["sh", "-c", helper]);
    let mut stdout = guard.0.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 6]).unwrap();
    kill(-guard.pid(), 15).unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), guard.wait().code()), ("finished\n", Some(5)));
}

#[test]
fn sigterm_to_the_guard_alone_reaches_the_helper() {
    let mark = Mark::new();
    let mut guard = Guard::start(&mark, &["tail", "-f", "/dev/null"]);
    until("the helper", || mark.count("tail") == 1);
    kill(guard.pid(), 15).unwrap();
    assert_eq!(guard.wait().code(), Some(128 + 15));
}

#[test]
fn sigterm_to_the_group_ends_all_in_time_when_the_helper_hangs() {
    let mark = Mark::new();
    let mut guard = Guard::start(&mark, &["sh", "-c", &wedged()]);
    until("the helper", || mark.count("tail") == 1 && brood_is_there(&mark));
    let start = Instant::now();
    kill(-guard.pid(), 15).unwrap();
    assert_eq!(guard.wait().code(), Some(128 + 9));
    assert!(start.elapsed() < PROMISE, "{:?}", start.elapsed());
    assert!(mark.processes().is_empty(), "{:?}", mark.processes());
}

#[test]
fn killing_the_guard_ends_the_helper() {
    let mark = Mark::new();
    let mut guard = Guard::start(&mark, &["tail", "-f", "/dev/null"]);
    until("the helper", || mark.count("tail") == 1);
    guard.0.kill().unwrap();
    assert_eq!(guard.wait().signal(), Some(9));
    let time = until("the helper's end", || mark.processes().is_empty());
    assert!(time < PROMISE, "{time:?}");
}

#[test]
fn orphans_that_end_do_not_stay_as_zombies() {
    let mark = Mark::new();
    let script =
        "i=0; while [ $i -lt 20 ]; do sh -c 'setsid true & exit' & i=$((i+1)); done; wait; exec tail -f /dev/null";
    let guard = Guard::start(&mark, &["sh", "-c", script]);
    until("the helper", || mark.count("tail") == 1);
    let own = guard.pid();
    until("the orphans to be reaped", || all_processes().iter().filter(|process| process.parent == own).count() == 1);
}

#[test]
fn the_helper_starts_with_the_usual_signals_and_the_unharmed_environment() {
    let mark = Mark::new();
    let guard = example("guard");
    let follow = ["run", guard.to_str().unwrap(), "follow"];
    let mut command = mark.command(&guard);
    let status = output(command.args(follow).args(["sh", "-c", "cat /proc/self/status"]));
    let field = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(value.trim(), 16).unwrap()
    };
    let sigpipe = 1 << (13 - 1);
    assert_eq!((field("SigBlk:"), field("SigIgn:") & sigpipe), (0, 0));

    let mut command = mark.command(&guard);
    command.env("BASH_FUNC_ml%%", "() { echo\n }").env("TWO_LINES", "one\ntwo\n");
    let environment = output(command.args(follow).args(["env", "-0"]));
    for entry in ["BASH_FUNC_ml%%=() { echo\n }", "TWO_LINES=one\ntwo\n"] {
        assert!(environment.split('\0').any(|line| line == entry), "{environment:?}");
    }
}

#[test]
fn the_guard_is_small_and_sleeps() {
    let mark = Mark::new();
    let guard = Guard::start(&mark, &["tail", "-f", "/dev/null"]);
    until("the helper", || mark.count("tail") == 1);
    let status = || fs::read_to_string(format!("/proc/{}/status", guard.pid())).unwrap();
    let field = |name: &str| -> u64 {
        let status = status();
        let value = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        value.split_ascii_whitespace().next().unwrap().parse().unwrap()
    };
    until("the guard to wait", || status().contains("State:\tS"));
    let wake_ups = field("voluntary_ctxt_switches:");
    // Not a wait for something to happen, but the time in which nothing may.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(field("voluntary_ctxt_switches:"), wake_ups);
    assert_eq!(field("Threads:"), 1);
    let kib = field("VmRSS:");
    assert!(kib < 4096, "{kib} KiB");
}

#[test]
fn a_missing_helper_is_told() {
    let mark = Mark::new();
    let output = mark.command(example("guard")).args(["run", "/no/such/helper"]).output().unwrap();
    assert_eq!(output.status.code(), Some(70));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("agentchat: the helper process could not be started (No such file"), "{text}");
}

#[test]
fn a_replaced_executable_can_still_start_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("guard");
    // By another process: see `agents::executable`.
    assert!(Command::new("cp").arg(example("guard")).arg(&path).status().unwrap().success());
    let mut process = Command::new(&path)
        .args(["again", "run", "echo", "still here"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "another build").unwrap();
    process.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let output = process.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "still here\n");
}
