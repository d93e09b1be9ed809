//! A text that only grows at its end, at a cost that does not depend on its length.

/// Bytes a piece may hold before the next one is begun.
const PIECE: usize = 64 * 1024;

/// The text of a streamed message: pieces of about 64 KiB, never moved once full.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrowingText {
    pieces: Vec<String>,
    /// Byte offset at which each piece begins.
    starts: Vec<usize>,
    len: usize,
}

impl GrowingText {
    /// Appends `text`. Costs its own length.
    pub fn push_str(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.pieces.last_mut() {
            Some(last) if last.len() + text.len() <= PIECE => last.push_str(text),
            _ => {
                // Of a text that is long already, the next piece will be full.
                let room = if self.pieces.is_empty() { text.len() } else { text.len().max(PIECE) };
                let mut piece = String::with_capacity(room);
                piece.push_str(text);
                self.starts.push(self.len);
                self.pieces.push(piece);
            }
        }
        self.len += text.len();
    }

    /// Length in bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was pushed yet.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The text from byte `from`, about `limit` bytes of it (up to 3 more or fewer, so that no character is cut), in
    /// slices.
    /// `from` must be 0 or a value reached by adding up the lengths of earlier slices.
    pub fn slices(&self, from: usize, limit: usize) -> impl Iterator<Item = &str> {
        let first = self.starts.partition_point(|&start| start <= from).saturating_sub(1);
        let mut left = limit;
        self.pieces.iter().zip(&self.starts).skip(first).map_while(move |(piece, &start)| {
            let rest = piece.get(from.saturating_sub(start)..).unwrap_or_default();
            if left == 0 {
                return None;
            }
            let slice = floor_slice(rest, left);
            // A slice cut short ends the iteration, whatever is left of the limit.
            left = if slice.len() < rest.len() { 0 } else { left.saturating_sub(slice.len()) };
            Some(slice)
        })
    }
}

impl std::fmt::Display for GrowingText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pieces.iter().try_for_each(|piece| f.write_str(piece))
    }
}

/// The longest prefix of `text` of at most `limit` bytes that cuts no character, but at least one character.
fn floor_slice(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let end = text.floor_char_boundary(limit);
    let end = if end == 0 { text.chars().next().map_or(0, char::len_utf8) } else { end };
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slices_give_back_what_was_pushed(chunks in proptest::collection::vec(".{0,40}", 0..50), limit in 1usize..64) {
            let whole: String = chunks.concat();
            let mut text = GrowingText::default();
            for chunk in &chunks {
                text.push_str(chunk);
            }
            prop_assert_eq!(text.to_string(), whole.clone());
            prop_assert_eq!(text.len(), whole.len());
            let mut from = 0;
            let mut read = String::new();
            while from < text.len() {
                let before = read.len();
                text.slices(from, limit).for_each(|slice| read.push_str(slice));
                prop_assert!(read.len() - before <= limit + 3);
                prop_assert!(read.len() > before);
                from += read.len() - before;
            }
            prop_assert_eq!(read, whole);
        }
    }

    #[test]
    fn a_slice_may_begin_in_a_later_piece() {
        let mut text = GrowingText::default();
        text.push_str(&"a".repeat(PIECE));
        text.push_str("bcd");
        assert_eq!(text.slices(PIECE + 1, 10).collect::<String>(), "cd");
        assert_eq!(text.slices(PIECE + 3, 10).collect::<String>(), "");
    }
}
