//! Edits of the transcript buffer, as Lua applies them.

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
        self.text.extend(text.chars().map(|c| if c == '\n' { '⏎' } else { c }));
        if !text.is_empty() {
            self.marks.push((start, self.text.len(), group));
        }
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
    /// Highlights a range. Text that is later inserted at its end belongs to it.
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
    },
    /// Removes the highlights that begin in the lines from `first` up to, without, `last`.
    Unmark {
        /// First line.
        first: usize,
        /// Line after the last.
        last: usize,
    },
}
