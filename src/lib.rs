//! agentchat.nvim: a coding agent joins your Neovim as a colleague whose every move you can see, follow, answer and undo.
//!
//! `doc/architecture.md` tells how the parts work together.

pub mod acp;
pub mod agent;
pub mod agents;
pub mod changes;
mod chat;
pub mod checkpoint;
pub mod cli;
pub mod core;
pub mod files;
pub mod helper;
pub mod logging;
pub mod nvim;
pub mod process;
pub mod profiles;
pub mod responses;
mod serving;
pub mod store;
pub mod terminal;
pub mod tour;
pub mod view;
