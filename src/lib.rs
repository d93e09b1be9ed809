//! agentchat

pub mod tour;
