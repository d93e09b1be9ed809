//! agentchat.nvim: a coding agent joins your Neovim as a colleague whose every move you can see, follow, answer and undo.
//!
//! `doc/architecture.md` tells how the parts work together.

pub mod acp;
pub mod core;
pub mod logging;
pub mod process;
