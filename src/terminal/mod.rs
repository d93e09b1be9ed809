//! The terminals in which an agent's commands run.
//!
//! * [`screen`]: bytes of a program to what a reader of the screen has seen, bounded; pure;
//! * [`painter`]: what changed of it, as bytes that redraw it in a terminal buffer of Neovim; pure;
//! * [`pty`]: the process and its pseudo terminal.

pub mod painter;
pub mod pty;
pub mod screen;
