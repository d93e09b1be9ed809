//! Tests in a real Neovim, with a real helper and a scripted agent. One binary, because linking is slow; one module a
//! topic. `support` says what the tests stand on.

#[path = "../support/mod.rs"]
mod support;

mod harness;
