//! What is shown, computed without Neovim: entries to rows, and rows to the smallest edits of the transcript buffer.

mod cards;
mod counts;
pub mod ops;
pub mod permission;
pub mod transcript;

pub use ops::{Op, Row};
pub use transcript::TranscriptView;
