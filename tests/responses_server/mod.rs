//! A Responses server that says what a test tells it, in the dialect of a real one.
//!
//! ```ignore
//! let server = Server::start(Kind::LlamaCpp);
//! server.answer(Answer::new().text("Hello").call("call_1", "f", "{}"));
//! // … POST {server.base_url()}/responses …
//! assert_eq!(server.requests()[0].body["model"], "m");
//! ```
//!
//! [`Kind`] says which server it is like: what it leaves out of its events, which fields it drops, and what it refuses with
//! which error. Those that keep responses do (`GET`, `DELETE`, `input_items`, `previous_response_id`). What every server checks
//! is checked always: each call has its output and each output its call, since that is what a client gets wrong.
//!
//! Answers are taken in order, one for each `POST …/responses`; without one the request is refused. [`Answer::raw`] and
//! the other makers of misbehaviour (`status`, `cut_after`, `stall_after`, `gate`, …) are for what no dialect has.

#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test binary uses a part of the server")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's server fails loudly, with the cause in the message"
)]
#![allow(clippy::needless_pass_by_value, reason = "tests read better with json!(…) than with &json!(…)")]

mod answer;
mod http;
mod render;
mod rules;
mod server;

pub use answer::{Answer, Ending, Part};
pub use render::Kind;
pub use server::{Received, Server};
