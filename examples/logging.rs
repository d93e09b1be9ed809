//! Logs, then panics in a thread and goes on: `logging FOLDER`. For the tests of what a process leaves behind in its log.

use std::path::Path;
use std::process::ExitCode;

use agentchat::logging;

fn main() -> ExitCode {
    logging::install_panic_hook();
    let folder = std::env::args_os().nth(1).unwrap_or_default();
    if logging::init(Path::new(&folder), "agentchat.log").is_err() {
        return ExitCode::from(64);
    }
    tracing::info!(api_key = "s3cret", "with a key");
    tracing::debug!("only at debug");
    let thread = std::thread::Builder::new().name("worker".to_owned());
    let outcome = thread.spawn(|| panic!("it broke\nOPENAI_API_KEY=s3cret")).map(std::thread::JoinHandle::join);
    tracing::info!("after the panic");
    if matches!(outcome, Ok(Err(_))) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
