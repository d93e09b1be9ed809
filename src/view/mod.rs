//! What is shown, computed without Neovim: entries to rows, and rows to the smallest edits of the transcript buffer.

mod ansi;
mod cards;
mod counts;
mod diff;
pub mod export;
mod highlights;
pub mod inspect;
pub mod markdown;
pub mod ops;
pub mod permission;
pub mod proposal;
mod rowset;
pub mod structure;
pub mod transcript;

pub use ops::{Op, Row, short_line};
pub use structure::Mark;
pub use transcript::TranscriptView;
