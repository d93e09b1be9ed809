//! Child processes: starting an agent in a group of its own, ending that group, and the guard that outlives the helper.

pub mod child;
mod lookup;

pub use child::{AgentProcess, Exit, Spawn, SpawnError};
