//! What a process leaves in its log.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::support::example;

fn run(level: &str, stderr: Stdio) -> (std::process::Output, String) {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("state/agentchat");
    let process = Command::new(example("logging")).arg(&logs).env("AGENTCHAT_LOG", level).stderr(stderr).spawn();
    let output = process.unwrap().wait_with_output().unwrap();
    let path = logs.join("agentchat.log");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    (output, fs::read_to_string(path).unwrap())
}

#[test]
fn a_panic_leaves_a_line_and_a_backtrace_and_no_secret() {
    let (output, log) = run("", Stdio::piped());
    assert!(output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("agentchat: panic in thread `worker` at "), "{stderr}");
    assert!(log.contains("ERROR panic in thread `worker` at ") && log.contains("it broke"), "{log}");
    assert!(log.contains("logging::main"), "no backtrace in {log}");
    assert!(log.contains("with a key") && log.contains("after the panic"), "{log}");
    assert!(!log.contains("s3cret") && !stderr.contains("s3cret"), "{log}");
    assert!(!log.contains("only at debug"), "{log}");
}

#[test]
fn a_closed_standard_error_harms_nobody() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let (output, log) = run("", writer.into());
    assert!(output.status.success());
    assert!(log.contains("after the panic"), "{log}");
}

#[test]
fn the_level_comes_from_the_environment() {
    let (_, log) = run("debug", Stdio::null());
    assert!(log.contains("only at debug"), "{log}");
    let (_, log) = run("a=b=c", Stdio::null());
    assert!(log.contains("WARN") && log.contains("AGENTCHAT_LOG is not understood"), "{log}");
}
