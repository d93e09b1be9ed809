//! `agentchat agent` as any client of the Agent Client Protocol sees it: the real program against scripted models.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, also in its helper functions")]
#![allow(clippy::needless_pass_by_value, reason = "tests read better with json!(…) than with &json!(…)")]

#[path = "../responses_server/mod.rs"]
mod responses_server;

mod cancel;
mod client;
mod failures;
mod mcp;
mod sdk;
mod sessions;
mod settings;
mod tools;
mod turns;

use client::Client;
use responses_server::{Kind, Server};

/// A client of an agent whose model is that server, with all that clients can offer.
#[track_caller]
fn ready(server: &Server, kind: Kind) -> Client {
    Client::start(Some((server, kind)), client::everything())
}
