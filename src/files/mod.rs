//! Files without Neovim: paths that stay where they may, atomic writes, and the smallest edits from one text to another.

pub mod disk;
pub mod edits;
pub mod paths;
