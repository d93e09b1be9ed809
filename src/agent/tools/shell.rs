//! Command lines, in a shell of our own where the client has no terminals.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

use crate::agent::client::{End, Ran};

/// The shell, and what makes it run a line.
pub(in crate::agent) const SHELL: [&str; 2] = if cfg!(windows) { ["cmd", "/C"] } else { ["sh", "-c"] };

/// A command and all that it has started, which end with this.
struct Group(Child);

impl Group {
    fn end(&self) {
        #[cfg(unix)]
        if let Some(pid) = self.0.id().and_then(|pid| i32::try_from(pid).ok()) {
            // It may have ended by itself.
            let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs a command line, for no longer than `limit`; the last `most` bytes of its output.
///
/// # Errors
/// Why it cannot be started.
pub(in crate::agent) async fn run(line: &str, cwd: &Path, limit: Duration, most: usize) -> Result<Ran, String> {
    let [program, flag] = SHELL;
    let mut command = Command::new(program);
    // Both streams in one pipe, so that lines keep their order.
    let line = if cfg!(windows) { line.to_owned() } else { format!("exec 2>&1\n{line}") };
    command
        .args([flag, &line])
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| format!("the command could not be started: {error}"))?;
    let mut stdout = child.stdout.take();
    let mut group = Group(child);
    let (mut output, mut is_cut) = (Vec::new(), false);
    let read = async {
        let Some(stdout) = stdout.as_mut() else { return };
        let mut piece = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = stdout.read(&mut piece).await {
            output.extend_from_slice(&piece[..count]);
            if output.len() > 2 * most {
                output.drain(..output.len() - most);
                is_cut = true;
            }
        }
    };
    let ended = async {
        read.await;
        group.0.wait().await
    };
    let end = match tokio::time::timeout(limit, ended).await {
        Ok(Ok(status)) => End::Exited(status.code().map(i64::from)),
        Ok(Err(error)) => return Err(format!("the command was lost: {error}")),
        Err(_) => End::TimedOut(limit),
    };
    group.end();
    let text = String::from_utf8_lossy(&output);
    let from = text.ceil_char_boundary(text.len().saturating_sub(most));
    Ok(Ran { output: text[from..].to_owned(), is_cut: is_cut || from > 0, end })
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking, also in its helper functions")]
mod tests {
    use super::*;

    async fn ran(line: &str, limit: Duration) -> Ran {
        run(line, Path::new("/"), limit, 1000).await.unwrap()
    }

    #[tokio::test]
    async fn output_and_end_are_told() {
        let done = ran("echo a; echo b >&2; exit 3", Duration::from_secs(10)).await;
        assert_eq!((done.output.as_str(), done.end), ("a\nb\n", End::Exited(Some(3))));
        let flood = ran("yes | head -c 100000; echo end", Duration::from_secs(10)).await;
        assert!(flood.is_cut && flood.output.len() <= 1000 && flood.output.ends_with("end\n"));
    }

    #[tokio::test]
    async fn what_takes_too_long_ends_with_all_that_it_started() {
        let limit = Duration::from_millis(300);
        let done = ran("sleep 1000 & echo $!; sleep 1000", limit).await;
        assert_eq!(done.end, End::TimedOut(limit));
        let pid: i32 = done.output.trim().parse().unwrap();
        let is_alive = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None).is_ok() && !stat.contains(") Z ")
        };
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        while is_alive() && std::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(!is_alive());
    }
}
