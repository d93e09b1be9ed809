//! The processes of the machine, by what is in their environment: daemons in sessions of their own are found too.

use std::fmt;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

#[cfg(not(target_os = "linux"))]
compile_error!("these tests look for left-over processes in /proc: run them on Linux");

/// One living process.
#[derive(Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its command line, the arguments separated by blanks.
    pub command: String,
}

impl fmt::Debug for Process {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.pid, self.command)
    }
}

/// The living processes that were started with `variable` (`NAME=value`) in their environment; zombies are not living.
pub fn with_variable(variable: &str) -> Vec<Process> {
    let folders = fs::read_dir("/proc").expect("/proc can be listed");
    folders
        .filter_map(|folder| {
            let path = folder.ok()?.path();
            let pid = path.file_name()?.to_str()?.parse().ok()?;
            let environment = fs::read(path.join("environ")).ok()?;
            if !environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes()) {
                return None;
            }
            let command = String::from_utf8_lossy(&fs::read(path.join("cmdline")).ok()?).replace('\0', " ");
            Some(Process { pid, command: command.trim_end().to_owned() })
        })
        .collect()
}

/// Whether a process of that id lives; a zombie does not.
pub fn is_alive(pid: i32) -> bool {
    // The state follows the program's name, which stands in parentheses and may hold anything.
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X'])))
}

/// Sends SIGKILL; a process that is gone already is what was wanted.
pub fn kill9(pid: i32) {
    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
}
