//! Files without Neovim: paths that stay where they may, atomic writes, the smallest edits from one text to another, and
//! the names of a project's files.

pub mod disk;
pub mod edits;
pub mod finder;
pub mod fuzzy;
pub mod git;
pub mod heads;
pub mod index;
pub mod paths;
pub mod watch;
