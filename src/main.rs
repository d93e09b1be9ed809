//! The command line of agentchat.nvim.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::SUCCESS
}
