//! Bytes to lines, of bounded length.

/// Longest line that is kept unless configured otherwise: 64 MiB.
pub const DEFAULT_MAX_LINE: usize = 64 * 1024 * 1024;

/// One line of an agent's output, without its line break.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A whole line.
    Whole(&'a [u8]),
    /// A line longer than the limit, dropped.
    TooLong {
        /// Its length in bytes so far.
        length: usize,
        /// Its first bytes, at most [`HEAD`] of them: they tell who waits for an answer to it.
        head: &'a [u8],
    },
}

/// Bytes of a dropped line that are looked at.
pub const HEAD: usize = 4 * 1024;

/// Splits a stream into lines. A line over the limit costs its own bytes and no memory.
#[derive(Debug)]
pub struct LineSplitter {
    partial: Vec<u8>,
    /// Bytes of a line that is being dropped.
    dropping: usize,
    max: usize,
}

impl LineSplitter {
    /// A splitter that drops lines longer than `max` bytes.
    pub const fn new(max: usize) -> Self {
        Self { partial: Vec::new(), dropping: 0, max }
    }

    /// Takes the next bytes, and gives every line that they complete to `each`, in order.
    pub fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.dropping > 0 {
                self.dropping = 0;
            } else if self.partial.len() + line.len() > self.max {
                self.drop_line(line, &mut each);
            } else if self.partial.is_empty() {
                each(Line::Whole(line));
            } else {
                self.partial.extend_from_slice(line);
                each(Line::Whole(&self.partial));
                self.forget_partial();
            }
        }
        if self.dropping > 0 {
            self.dropping += bytes.len();
        } else if self.partial.len() + bytes.len() > self.max {
            // Told at once: the rest of the line may never come.
            self.dropping = self.drop_line(bytes, &mut each);
        } else {
            self.partial.extend_from_slice(bytes);
        }
    }

    /// What is left at the end of the stream: a last line without a line break.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.partial)
    }

    /// Tells of a line that is too long once `more` is added to it, and returns its length so far.
    fn drop_line(&mut self, more: &[u8], each: &mut impl FnMut(Line<'_>)) -> usize {
        let length = self.partial.len() + more.len();
        // The limit may be far below what came at once, and what is kept already may be far above what is looked at.
        let missing = HEAD.saturating_sub(self.partial.len()).min(more.len());
        self.partial.extend_from_slice(&more[..missing]);
        each(Line::TooLong { length, head: &self.partial[..HEAD.min(self.partial.len())] });
        self.forget_partial();
        length
    }

    fn forget_partial(&mut self) {
        // The room that one huge line needed is not kept for the small ones that follow.
        if self.partial.capacity() > 1024 * 1024 {
            self.partial = Vec::new();
        } else {
            self.partial.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(max: usize, pieces: &[&[u8]]) -> Vec<String> {
        let mut splitter = LineSplitter::new(max);
        let mut lines = Vec::new();
        for piece in pieces {
            splitter.feed(piece, |line| {
                lines.push(match line {
                    Line::Whole(line) => String::from_utf8_lossy(line).into_owned(),
                    Line::TooLong { length, head } => format!("<{length} {}>", String::from_utf8_lossy(head)),
                });
            });
        }
        lines
    }

    #[test]
    fn a_line_over_the_limit_costs_only_itself() {
        assert_eq!(split(4, &[b"ab\nabcdef\ncd\n"]), ["ab", "<6 abcdef>", "cd"]);
        assert_eq!(split(4, &[b"abc", b"def", b"ghi\ncd\n"]), ["<6 abcdef>", "cd"]);
        assert_eq!(split(4, &[b"abcd", b"\n", b"x\n"]), ["abcd", "x"]);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in "[a-c\n]{0,60}", cut in 1usize..9) {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
            let mut whole: Vec<&str> = text.split('\n').collect();
            whole.pop();
            prop_assert_eq!(split(1000, &pieces), whole);
        }
    }
}
