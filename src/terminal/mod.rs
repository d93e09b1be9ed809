//! The terminals in which an agent's commands run.
//!
//! * [`screen`]: bytes of a program to what a reader of the screen has seen, bounded; pure;
//! * [`painter`]: what changed of it, as bytes that redraw it in a terminal buffer of Neovim; pure;
//! * [`row`] and `plain`: a row of it in colours; lines that need no emulator;
//! * [`pty`]: the process and its pseudo terminal.

#[cfg(test)]
mod captures;
pub mod painter;
mod plain;
pub mod pty;
pub mod row;
pub mod screen;
