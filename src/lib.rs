//! agentchat

pub mod logging;
pub mod process;
