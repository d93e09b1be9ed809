//! Real processes: what the guard leaves behind (nothing), how agents start and end, what is in the log afterwards.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod agents;
mod agents_listed;
mod guard;
mod logging;
mod support;
