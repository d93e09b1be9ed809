//! What the integration tests stand on: a real Neovim with a UI attached, and an agent that does what a test says.
//!
//! ```ignore
//! #[path = "../support/mod.rs"]
//! mod support;
//! use support::{Editor, ScriptedAgent, Setup, scenario::{Scenario, chunk, end_turn}};
//!
//! let agent = ScriptedAgent::new(&Scenario::new().on_prompt([chunk("Hello"), end_turn()]));
//! let editor = Editor::start(Setup::new().agent("scripted", &agent).file("a.txt", "one\n"));
//! editor.command("AgentChat open");
//! editor.prompt("hi");
//! editor.wait_transcript("Hello");
//! ```
//!
//! # The editor
//!
//! [`Editor::start`] runs the Neovim named in `$AGENTCHAT_NVIM` (`make test` sets it) with `--embed`, this plugin on
//! 'runtimepath', its own home and XDG folders, the project folder [`Editor::project`] as its working directory, and a
//! UI of 120x40 whose grid is kept from the redraw events. Values go in and out as JSON.
//!
//! * **Act**: [`Editor::input`] (keys as the user types them), [`command`](Editor::command), [`lua`](Editor::lua),
//!   [`prompt`](Editor::prompt).
//! * **Look**: [`screen`](Editor::screen) (text, cursor, and the highlight groups of a cell),
//!   [`transcript`](Editor::transcript), [`status`](Editor::status), [`messages`](Editor::messages),
//!   [`events`](Editor::events) (the `User AgentChat…` autocommands so far).
//! * **Wait**: [`wait`](Editor::wait), [`wait_until`](Editor::wait_until), [`wait_screen`](Editor::wait_screen),
//!   [`wait_transcript`](Editor::wait_transcript), [`wait_state`](Editor::wait_state) ask over and over until the
//!   deadline. On
//!   failure they show the screen, the transcript, the messages, every log and what the agents saw. There is no sleep
//!   in this API: what a test waits for is always a condition.
//! * **Measure**: [`rtt`](Editor::rtt), the longest time that a key press would have waited while a closure ran.
//! * **End**: [`quit`](Editor::quit), [`restart`](Editor::restart) (the same folders again), [`kill9`](Editor::kill9),
//!   and [`processes`](Editor::processes) / [`wait_gone`](Editor::wait_gone) for what is left over. Dropping the editor
//!   kills all that it started, also daemons in sessions of their own: they are found by a variable in their
//!   environment (Linux).
//!
//! Nothing hangs: before every call the editor is asked whether it waits for a key (hit-enter, a half-typed command), in
//! which case a call would not be answered; every wait has a deadline ([`PATIENCE`], or [`Editor::set_patience`]).
//!
//! # The agent
//!
//! [`ScriptedAgent`] is a process of its own (`tests/scripted_agent/agent.py`), so pipes, exits, signals and floods are
//! real. [`scenario::Scenario`] says what it does; each item of `scenario` documents one step. It logs all that happens
//! to it: [`received`](ScriptedAgent::received), [`answers`](ScriptedAgent::answers),
//! [`unanswered`](ScriptedAgent::unanswered), [`stray_answers`](ScriptedAgent::stray_answers),
//! [`wait_received`](ScriptedAgent::wait_received), [`wait_answer`](ScriptedAgent::wait_answer),
//! [`spawned`](ScriptedAgent::spawned). Order in time is made with gates, not delays: the step `gate("x")` holds the
//! agent until the test calls [`ScriptedAgent::open_gate`].
//!
//! # Recordings
//!
//! [`recording::Recording`] is the traffic of a real agent (`tests/recordings/`); [`ScriptedAgent::replay`] says its
//! side again, and [`recording::play`] does in the editor what the recorded user did.

#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test binary uses a part of the harness")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's harness fails loudly, with the cause in the message"
)]
#![allow(clippy::needless_pass_by_value, reason = "tests read better with json!(…) than with &json!(…)")]

mod agent;
mod deadline;
mod editor;
mod launch;
pub mod processes;
pub mod recording;
mod report;
mod rpc;
pub mod scenario;
mod screen;
mod setup;

pub use agent::{Entry, ScriptedAgent};
pub use deadline::{PATIENCE, poll};
pub use editor::{Editor, KeyDelay};
pub use screen::Screen;
pub use setup::Setup;
