//! Child processes: starting an agent in a group of its own, ending that group, and the guard that outlives the helper.

pub mod child;
pub mod guard;
mod lookup;

pub use child::{AgentProcess, Exit, Spawn, SpawnError};
pub use lookup::find_program;
