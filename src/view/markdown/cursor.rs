//! A place in a line, with columns as Markdown counts them: a tab reaches to the next multiple of four.

/// Reads a line from left to right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    column: usize,
    /// Columns of a tab that was consumed in part.
    left_of_tab: usize,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0, column: 0, left_of_tab: 0 }
    }

    /// The byte that comes next.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn is_blank(&self) -> bool {
        self.rest().bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
    }

    /// Columns of white space that come next.
    pub(super) fn indent(&self) -> usize {
        let mut after = *self;
        after.skip_white();
        after.column - self.column + self.left_of_tab
    }

    /// Skips all white space.
    pub(super) fn skip_white(&mut self) {
        self.left_of_tab = 0;
        while let Some(width) = self.white() {
            self.at += 1;
            self.column += width;
        }
    }

    /// Skips up to `columns` columns of white space; returns how many there were.
    pub(super) fn skip_columns(&mut self, columns: usize) -> usize {
        let mut left = columns;
        let from_tab = self.left_of_tab.min(left);
        self.left_of_tab -= from_tab;
        left -= from_tab;
        while left > 0
            && let Some(width) = self.white()
        {
            self.at += 1;
            self.column += width;
            self.left_of_tab = width.saturating_sub(left);
            left = left.saturating_sub(width);
        }
        columns - left
    }

    /// Skips `bytes` bytes that are one column each.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.left_of_tab = 0;
        self.at += bytes;
        self.column += bytes;
    }

    /// The width of the white space at `at`.
    fn white(&self) -> Option<usize> {
        match self.text.as_bytes().get(self.at)? {
            b' ' => Some(1),
            b'\t' => Some(4 - self.column % 4),
            _ => None,
        }
    }
}
