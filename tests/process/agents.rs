//! Agents start with clear errors, end as a group, and say how they ended.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use agentchat::process::{AgentProcess, Exit, Spawn, SpawnError};
use tokio::io::AsyncReadExt as _;

use crate::support::{Mark, executable, until};

fn spawn_in(cwd: &Path, command: &[&str], env: &[(&str, &str)]) -> Result<AgentProcess, SpawnError> {
    AgentProcess::spawn(&Spawn {
        command: command.iter().map(ToString::to_string).collect(),
        env: env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        cwd: cwd.to_owned(),
    })
}

fn spawn(mark: &Mark, script: &str) -> AgentProcess {
    let (name, value) = mark.env();
    spawn_in(Path::new("/"), &["sh", "-c", script], &[(&name, &value)]).unwrap()
}

async fn output(mut agent: AgentProcess) -> String {
    let mut text = String::new();
    agent.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    agent.wait().await.unwrap();
    text
}

#[tokio::test]
async fn each_failure_to_start_says_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("plain"), "").unwrap();
    executable(&path.join("script"), "#!/no/such/interpreter\n");
    let here = path.display();
    let error =
        |cwd: &Path, command: &[&str], env: &[(&str, &str)]| spawn_in(cwd, command, env).unwrap_err().to_string();

    assert_eq!(
        error(path, &["no-such-agent"], &[("PATH", "/bin:/nowhere")]),
        "`no-such-agent` was not found in /bin:/nowhere: install it, or give its full path in the agent's `command`"
    );
    assert!(
        error(path, &["bin/agent"], &[])
            .starts_with(&format!("`bin/agent` was not found in {here}/bin/agent: install"))
    );
    assert!(error(path, &["./plain"], &[]).starts_with(&format!("{here}/./plain may not be executed: ")));
    assert!(error(path, &["./script"], &[]).contains("/script could not be started because the interpreter"));
    assert!(
        error(&path.join("gone"), &["sh"], &[])
            .starts_with(&format!("the working directory {here}/gone does not exist"))
    );
    assert!(
        error(&path.join("plain"), &["sh"], &[])
            .starts_with(&format!("the working directory {here}/plain cannot be used (not a directory)"))
    );
    assert!(matches!(spawn_in(path, &[], &[]), Err(SpawnError::EmptyCommand)));
    assert!(matches!(spawn_in(path, &[""], &[]), Err(SpawnError::EmptyCommand)));
    assert!(
        error(path, &["sh"], &[("A=B", "c")]).starts_with("the variable \"A=B\" in the agent's `env` is not valid")
    );
}

#[tokio::test]
async fn a_program_is_found_in_the_agents_own_path_and_folder() {
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    fs::create_dir(cwd.join("bin")).unwrap();
    executable(&cwd.join("bin/agent"), "#!/bin/sh\nexec /bin/pwd\n");
    let path = cwd.join("bin").display().to_string();
    for (command, path) in [("agent", path.as_str()), ("./bin/agent", "/bin"), ("agent", "bin:/usr/bin")] {
        let agent = spawn_in(&cwd, &[command], &[("PATH", path)]).unwrap();
        assert_eq!(output(agent).await.trim_end(), cwd.display().to_string());
    }
}

#[tokio::test]
async fn the_environment_reaches_the_agent_unharmed() {
    let env = [("BASH_FUNC_ml%%", "() { echo\n }"), ("TWO_LINES", "one\ntwo\n"), ("TWICE", "first"), ("TWICE", "last")];
    let environment = output(spawn_in(Path::new("/"), &["env", "-0"], &env).unwrap()).await;
    for entry in ["BASH_FUNC_ml%%=() { echo\n }", "TWO_LINES=one\ntwo\n", "TWICE=last"] {
        assert!(environment.split('\0').any(|line| line == entry), "{environment:?}");
    }
}

#[tokio::test]
async fn an_end_is_told_in_words() {
    let mark = Mark::new();
    let exit = spawn(&mark, "exit 3").wait().await.unwrap();
    assert_eq!((exit, exit.to_string().as_str()), (Exit { code: Some(3), signal: None }, "exit code 3"));
    let mut agent = spawn(&mark, "kill -9 $$");
    let exit = agent.wait().await.unwrap();
    assert_eq!((exit, exit.to_string().as_str()), (Exit { code: None, signal: Some(9) }, "signal 9 (SIGKILL)"));
    assert_eq!(agent.wait().await.unwrap(), exit);
    let exit = spawn(&mark, "kill -40 $$").wait().await.unwrap();
    assert_eq!(exit.to_string(), "signal 40");
}

#[tokio::test]
async fn the_output_ends_with_the_agent_although_it_left_a_child() {
    let mark = Mark::new();
    let mut agent = spawn(&mark, "echo text; sleep 1000 & exit 1");
    let mut stdout = agent.stdout.take().unwrap();
    let (exit, text) = tokio::join!(agent.wait(), async {
        let mut text = String::new();
        stdout.read_to_string(&mut text).await.unwrap();
        text
    });
    assert_eq!((exit.unwrap().code, text.as_str()), (Some(1), "text\n"));
}

#[tokio::test]
async fn an_agent_is_asked_before_it_is_killed() {
    let grace = Duration::from_secs(1);
    let mark = Mark::new();
    let start = Instant::now();
    let mut polite = spawn(&mark, "cat; exit 4");
    assert_eq!(polite.terminate(grace).await.unwrap().unwrap().code, Some(4));
    assert!(start.elapsed() < grace / 2, "the end of the input was enough, but it took {:?}", start.elapsed());

    let mut deaf = spawn(&mark, "exec sleep 1000");
    assert_eq!(deaf.terminate(grace).await.unwrap().unwrap().signal, Some(15));

    let mut stubborn = spawn(&mark, "trap '' TERM; sleep 1000 & sleep 1000; sleep 1000");
    until("the trap", || mark.count("sleep") == 2);
    let start = Instant::now();
    assert_eq!(stubborn.terminate(grace).await.unwrap().unwrap().signal, Some(9));
    assert!(start.elapsed() < grace + Duration::from_millis(100), "{:?}", start.elapsed());
    until("the end of the group", || mark.processes().is_empty());
}

#[tokio::test]
async fn without_any_grace_the_group_is_killed_at_once() {
    let mark = Mark::new();
    let mut agent = spawn(&mark, "trap '' TERM; sleep 1000 & sleep 1000; sleep 1000");
    until("the trap", || mark.count("sleep") == 2);
    let start = Instant::now();
    agent.terminate(Duration::ZERO).await.unwrap();
    assert!(start.elapsed() < Duration::from_millis(100), "{:?}", start.elapsed());
    until("the end of the group", || mark.processes().is_empty());
}

#[tokio::test]
async fn an_agent_that_is_dropped_takes_its_group_along() {
    let mark = Mark::new();
    let agent = spawn(&mark, "trap '' TERM; sleep 1000 & sleep 1000; sleep 1000");
    until("the trap", || mark.count("sleep") == 2);
    drop(agent);
    until("the end of the group", || mark.processes().is_empty());
}
