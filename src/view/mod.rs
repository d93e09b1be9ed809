//! What is shown, computed without Neovim: entries to rows, and rows to the smallest edits of the transcript buffer.

mod cards;
mod counts;
mod highlights;
pub mod markdown;
pub mod ops;
pub mod permission;
mod rowset;
pub mod transcript;

pub use ops::{Op, Row};
pub use transcript::TranscriptView;
