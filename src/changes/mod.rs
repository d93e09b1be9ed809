//! What the agent changed in a text, hunk by hunk, while the user edits the same text: pure, on lines as Neovim has them.
//!
//! This is the specification of the hunk table. The table itself lives in Lua (`lua/agentchat/changes/`), which follows
//! the same rules, so that keys act at once; the helper makes a new one from it whenever the agent writes.
//!
//! **The base is implicit**: it is the text as it is now with every pending hunk rejected. What the user edits outside of
//! hunks is therefore part of the base by itself, and what they edit inside of one makes it a mixed hunk, of which a
//! rejection takes the agent's lines only.
//!
//! Rows are 0-based and count lines of the text as it is now; a range of rows does not contain its end.

mod diff;
pub mod merge;
mod table;
#[cfg(test)]
mod tests;

pub use diff::{Change, between, changes};
pub use table::{Hunk, Replacement, Table};

/// Whose a line of a hunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The agent wrote it.
    Agent,
    /// The user wrote it, inside of what the agent had changed.
    User,
}

impl Author {
    /// The letter that stands for it on the wire.
    pub const fn letter(self) -> char {
        match self {
            Self::Agent => 'a',
            Self::User => 'u',
        }
    }

    /// The author of that letter.
    pub const fn from_letter(letter: char) -> Option<Self> {
        match letter {
            'a' => Some(Self::Agent),
            'u' => Some(Self::User),
            _ => None,
        }
    }
}

/// The lines of a text, and whether a newline is at its end. An empty text is one empty line without a newline.
pub fn lines(text: &str) -> (Vec<&str>, bool) {
    let without = text.strip_suffix('\n');
    (rows(without.unwrap_or(text)), without.is_some())
}

/// What is between the line breaks of a text.
pub fn rows(text: &str) -> Vec<&str> {
    // Several times as fast as `split`, which counts with files of 50,000 lines.
    let breaks = memchr::memchr_iter(b'\n', text.as_bytes());
    let mut rows = Vec::with_capacity(breaks.clone().count() + 1);
    let mut start = 0;
    for end in breaks {
        rows.push(&text[start..end]);
        start = end + 1;
    }
    rows.push(&text[start..]);
    rows
}
