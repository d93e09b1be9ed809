//! The program of agentchat.nvim; see the library's `cli` module.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentchat::cli::main()
}
