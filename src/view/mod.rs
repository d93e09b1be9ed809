//! What is shown, computed without Neovim: entries to rows, and rows to the smallest edits of the transcript buffer.

mod cards;
mod counts;
mod diff;
pub mod export;
pub mod inspect;
pub mod ops;
pub mod permission;
pub mod structure;
pub mod transcript;

pub use ops::{Op, Row};
pub use structure::Mark;
pub use transcript::TranscriptView;
