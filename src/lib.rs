//! agentchat
