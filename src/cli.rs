//! The command line.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::agents::list::ListArgs;
use crate::chat::args::{ChatArgs, EXAMPLES, StoredCommand};
use crate::chat::profiles::ProfileCommand;
use crate::process::guard;
use crate::{agent, agents, changes, chat, helper, logging, tour};

/// A coding agent in your Neovim. The plugin starts this program by itself; `agentchat agent` can be used from any
/// editor that speaks the Agent Client Protocol.
#[derive(Debug, Parser)]
#[command(name = "agentchat", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Serve a Neovim on standard input and output (started by the plugin)
    Nvim {
        /// Folder of the log file
        #[arg(long, value_name = "FOLDER")]
        log: Option<PathBuf>,
        /// Run as the process below the guard
        #[arg(long, hide = true)]
        helper: bool,
    },
    /// Be a coding agent of the Agent Client Protocol on standard input and output, with the model of a profile
    #[command(after_help = "The model is that of the profile (`agentchat profile`), or of AGENTCHAT_MODEL.")]
    Agent,
    /// Be an agent of the Agent Client Protocol without a model: a guided tour of the plugin
    Tour,
    /// List the agents that are known by name: which are installed, which version, and how to get the others
    #[command(after_help = "For example: agentchat agents --check")]
    Agents(ListArgs),
    /// Ask a model and print its answer: tools, files, structured output, kept responses
    #[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
    Chat {
        #[command(subcommand)]
        stored: Option<StoredCommand>,
        #[command(flatten)]
        ask: Box<ChatArgs>,
    },
    /// The same as chat, without its commands, so that every word is a prompt
    #[command(name = "+chat", hide = true, after_help = EXAMPLES)]
    PlusChat(Box<ChatArgs>),
    /// List, add and try endpoints
    #[command(after_help = chat::profiles::EXAMPLES)]
    Profile {
        #[command(subcommand)]
        command: ProfileCommand,
    },
    /// Print completions for a shell
    #[command(
        after_help = "For example: agentchat completions bash > ~/.local/share/bash-completion/completions/agentchat"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write those of all commands into a folder
    #[command(after_help = "For example: agentchat man | man -l -, or agentchat man ~/.local/share/man/man1")]
    Man {
        /// Where to write all pages
        folder: Option<PathBuf>,
    },
    /// Print how many nanoseconds it took from two files to hunks, and how many there are (`make bench`)
    #[command(hide = true)]
    Hunks { old: PathBuf, new: PathBuf },
}

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    if asks_for_version_only() {
        return finish(print(concat!("agentchat ", env!("CARGO_PKG_VERSION"), "\n").as_bytes()));
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misused(&error),
    };
    match cli.command {
        Action::Nvim { log, helper: false } => run_guard(log),
        Action::Nvim { log, helper: true } => run_helper(log),
        Action::Agent => finish(block_on(async {
            agent::run(tokio::io::stdin(), tokio::io::stdout()).await.map_err(io::Error::other)
        })),
        Action::Tour => finish(block_on(async {
            tour::run(tokio::io::stdin(), tokio::io::stdout()).await.map_err(io::Error::other)
        })),
        Action::Agents(args) => finish(block_on(agents::list::run(args))),
        Action::Chat { stored: Some(command), .. } => run_to_exit_code(chat::stored(command)),
        Action::Chat { stored: None, ask } | Action::PlusChat(ask) => run_to_exit_code(chat::ask(*ask)),
        Action::Profile { command } => run_to_exit_code(chat::profiles::run(command)),
        Action::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "agentchat", &mut text);
            finish(print(&text))
        }
        Action::Man { folder: Some(folder) } => finish(clap_mangen::generate_to(Cli::command(), folder)),
        Action::Man { folder: None } => {
            let mut text = Vec::new();
            finish(clap_mangen::Man::new(Cli::command()).render(&mut text).and_then(|()| print(&text)))
        }
        Action::Hunks { old, new } => finish(time_to_hunks(&old, &new)),
    }
}

/// Whether `--version` is all that there is. Programs ask it often, and knowing every option takes longer than the answer.
fn asks_for_version_only() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    arguments.next().is_none() && first.is_some_and(|first| first == "--version" || first == "-V")
}

/// Help and version are no mistakes. `chat` and `profile` tell mistakes in the way of their other failures, for scripts.
fn misused(error: &clap::Error) -> ExitCode {
    let is_mistake = error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    let command = std::env::args_os().nth(1);
    let tells_scripts = ["chat", "+chat", "profile"].iter().any(|name| command.as_deref() == Some(name.as_ref()));
    if is_mistake && tells_scripts {
        return chat::misused(error);
    }
    // That nobody reads it is no failure.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Standard output may be closed early, as by `head`.
fn print(text: &[u8]) -> io::Result<()> {
    match io::stdout().write_all(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

fn run_to_exit_code(future: impl Future<Output = ExitCode>) -> ExitCode {
    let mut code = ExitCode::FAILURE;
    let run = block_on(async {
        code = future.await;
        Ok(())
    });
    if run.is_err() { finish(run) } else { code }
}

/// Times the code that runs when an agent writes, for the bench that has git beside it.
fn time_to_hunks(old: &Path, new: &Path) -> io::Result<()> {
    let start = Instant::now();
    let (old, new) = (fs::read_to_string(old)?, fs::read_to_string(new)?);
    let hunks = changes::between(&changes::lines(&old).0, &changes::lines(&new).0, 1);
    writeln!(io::stdout(), "{} {}", start.elapsed().as_nanos(), hunks.len())
}

/// Becomes the guard, with this same program as the helper below it.
fn run_guard(log: Option<PathBuf>) -> ExitCode {
    let program = match guard::own_executable() {
        Ok(program) => program,
        Err(error) => return finish(Err(error)),
    };
    let mut command = Command::new(program);
    command.args(["nvim", "--helper"]);
    if let Some(folder) = log {
        command.args([OsString::from("--log"), folder.into()]);
    }
    guard::run(command)
}

fn run_helper(log: Option<PathBuf>) -> ExitCode {
    // Both failures leave a helper that works: without its log, or with the end of its input as the only sign.
    let followed = guard::follow_guard();
    let logged = log.map(|folder| logging::init(&folder, "helper.log"));
    logging::install_panic_hook();
    if let Err(error) = followed {
        tracing::warn!(%error, "the guard cannot be followed");
    }
    if let Some(Err(error)) = logged {
        say(&error);
    }
    finish(block_on(helper::run()))
}

/// Runs a future on a runtime of one thread, and ends the process without waiting for reads of standard input.
fn block_on<T>(future: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(future);
    runtime.shutdown_background();
    result
}

fn finish(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error);
            ExitCode::FAILURE
        }
    }
}

/// One line on standard error. That Neovim may have closed it is no reason to panic.
fn say(error: &dyn std::error::Error) {
    let _ = writeln!(io::stderr(), "agentchat: {error}");
}
