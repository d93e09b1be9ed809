//! Runs any command below the guard, for its tests and for trying it by hand.
//!
//! * `guard run PROGRAM [ARG…]`: the program takes the helper's place;
//! * `guard follow PROGRAM [ARG…]`: becomes that program after doing what the helper does to follow its guard;
//! * `guard again ARG…`: waits for a line on standard input, then runs itself with these arguments.

use std::process::{Command, ExitCode};

use agentchat::process::guard;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match act(&args) {
        Ok(code) => code,
        Err(error) => {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "guard: {error}");
            ExitCode::from(64)
        }
    }
}

fn act(args: &[String]) -> std::io::Result<ExitCode> {
    let [action, program, rest @ ..] = args else {
        return Err(std::io::Error::other("usage: guard run|follow|again PROGRAM [ARG…]"));
    };
    match action.as_str() {
        "run" => {
            let mut command = Command::new(program);
            command.args(rest);
            Ok(guard::run(command))
        }
        "follow" => {
            guard::follow_guard()?;
            become_program(Command::new(program).args(rest))
        }
        "again" => {
            std::io::stdin().read_line(&mut String::new())?;
            become_program(Command::new(guard::own_executable()?).args(&args[1..]))
        }
        other => Err(std::io::Error::other(format!("unknown action {other}"))),
    }
}

#[cfg(unix)]
fn become_program(command: &mut Command) -> std::io::Result<ExitCode> {
    Err(std::os::unix::process::CommandExt::exec(command))
}

#[cfg(not(unix))]
fn become_program(command: &mut Command) -> std::io::Result<ExitCode> {
    command.status()?;
    Ok(ExitCode::SUCCESS)
}
