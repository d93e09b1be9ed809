//! Tests in a real Neovim, with a real helper and a scripted agent. One binary, because linking is slow; one module a
//! topic. `support` says what the tests stand on.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, also in its helper functions")]

#[path = "../responses_server/mod.rs"]
mod responses_server;
#[path = "../support/mod.rs"]
mod support;

mod attention;
mod bar;
mod built_in_agent;
mod changed_by_others;
mod changes;
mod changes_preview;
mod changes_proposed;
mod changes_random;
mod chat;
mod choices;
mod code_colours;
mod commands;
mod conversation;
mod decisions;
mod disk_edits;
mod drafts;
mod file_bytes;
mod file_merges;
mod file_writes;
mod files;
mod folds;
mod follow;
mod framing;
mod harness;
mod helper_life;
mod interrupt;
mod load;
mod markdown;

mod messages;
mod mirror;
mod moments;
mod navigate;
mod order;
mod permission_float;
mod permission_inline;
mod permission_rules;
mod permissions;
mod prompting;
mod prompts;
mod questions;
mod recordings;
mod replay;
mod scripted_agent;
mod scrolling;
mod session_setup;
mod sessions;
mod sign_in;
mod snapshots;
mod soak;
mod start;
mod terminal_commands;
mod terminal_ends;
mod terminal_windows;
mod terminals;
mod tour;
mod undo;
mod views;
mod windows;
mod windows_changed;
