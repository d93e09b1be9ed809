//! Neovim's side: the RPC channel, what Lua says, what Lua is told, and the buffers of files.
//!
//! * [`channel`]: stdin and stdout as an nvim-rs session;
//! * [`incoming`]: notifications of Lua to the core's events;
//! * [`frames`]: everything that is shown, one bounded frame in flight;
//! * [`wire`]: values for Lua;
//! * [`context`]: what a prompt mentions;
//! * [`places`]: a look at where an agent is;
//! * [`terminals`]: the terminals of agents and their buffers;
//! * [`hand`]: calls of Lua functions;
//! * [`files`]: reading and writing files through Neovim's buffers.

pub mod channel;
pub mod context;
pub mod files;
pub mod frames;
pub mod hand;
pub mod incoming;
pub mod places;
pub mod sessions;
pub mod terminals;
pub(crate) mod wire;
