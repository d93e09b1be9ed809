//! Edits of the transcript buffer, as Lua applies them.

use std::borrow::Cow;

/// Longest row of ours, in bytes: a tool may report megabytes in one line, and one such line would stop the editor. A
/// message's text is no row of ours and is never cut.
const MAX_ROW: usize = 1_000;

/// A line of the transcript that is not a message's text, with its highlights.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// The line, without line breaks.
    pub text: String,
    /// Highlights: first byte, byte after the last, group.
    pub marks: Vec<(usize, usize, &'static str)>,
}

impl Row {
    /// A line in one group. Line breaks, which an agent may send anywhere, are made visible.
    pub fn of(text: impl AsRef<str>, group: &'static str) -> Self {
        let mut row = Self::default();
        row.push(text.as_ref(), group);
        row
    }

    /// Appends text in a group.
    pub fn push(&mut self, text: &str, group: &'static str) {
        let start = self.text.len();
        let text = fit(text, MAX_ROW.saturating_sub(start));
        self.text.extend(text.chars().map(|c| if c == '\n' { '⏎' } else { c }));
        if !text.is_empty() {
            self.marks.push((start, self.text.len(), group));
        }
    }
}

/// A line that is short enough to be shown.
pub fn short_line(line: &str) -> Cow<'_, str> {
    fit(line, MAX_ROW)
}

/// At most `room` bytes of `text`, and a sign where something is missing; nothing if there is no room at all.
pub(super) fn fit(text: &str, room: usize) -> Cow<'_, str> {
    if text.len() <= room {
        Cow::Borrowed(text)
    } else if room == 0 {
        Cow::Borrowed("")
    } else {
        Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(room)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_cut_between_characters_and_says_so() {
        let mut row = Row::of("ä".repeat(MAX_ROW), "A");
        assert_eq!(row.text, format!("{}…", "ä".repeat(MAX_ROW / 2)));
        row.push("more", "B");
        assert_eq!(row.marks, [(0, row.text.len(), "A")]);
        assert_eq!(Row::of("a\nb", "A").text, "a⏎b");
    }
}

/// One edit. Rows and columns are 0-based, columns are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Replaces the lines from `first` up to, without, `last`; −1 is the end of the buffer.
    SetLines {
        /// First line.
        first: usize,
        /// Line after the last.
        last: i64,
        /// What stands there then.
        lines: Vec<String>,
    },
    /// Inserts text in a line; the first of `lines` continues it, the others are new lines.
    InsertText {
        /// The line.
        row: usize,
        /// The byte in it.
        col: usize,
        /// The text, split at line breaks.
        lines: Vec<String>,
    },
    /// Highlights a range that may span lines.
    Mark {
        /// First line.
        row: usize,
        /// First byte in it.
        col: usize,
        /// Last line.
        end_row: usize,
        /// Byte after the last in it.
        end_col: usize,
        /// Highlight group.
        group: &'static str,
        /// Whether text that is later inserted at its end belongs to it.
        grows: bool,
    },
    /// Highlights ranges within lines, to which nothing is added when text is inserted at their ends.
    Highlight {
        /// Highlight group.
        group: &'static str,
        /// Whether the group is for whole lines, below others.
        is_block: bool,
        /// Line, first byte, byte after the last.
        ranges: Vec<[usize; 3]>,
    },
    /// Shows columns that are not in the text.
    Pad {
        /// What they are filled with, one column wide.
        fill: &'static str,
        /// Line, the byte before which they stand, how many.
        places: Vec<[usize; 3]>,
    },
    /// A code block is complete.
    Code {
        /// First line of the code.
        first: usize,
        /// Line after the last.
        end: usize,
        /// Its language.
        language: String,
    },
    /// Removes the highlights and paddings that begin in the lines from `first` up to, without, `last`.
    Unmark {
        /// First line.
        first: usize,
        /// Line after the last.
        last: usize,
        /// First byte in the first line.
        col: usize,
    },
}
