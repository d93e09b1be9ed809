//! Lines of a stream, of bounded length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// What [`next_line`] found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line, or the rest of the stream, without its `\n`.
    Whole(Vec<u8>),
    /// A line longer than the limit. Its bytes are dropped up to the next `\n`.
    TooLong,
    /// The stream has ended.
    End,
}

/// Reads one line of at most `limit` bytes.
///
/// # Errors
/// Those of the stream.
pub(super) async fn next_line<R: AsyncBufRead + Unpin>(input: &mut R, limit: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            return Ok(match (too_long, line.is_empty()) {
                (true, _) => Line::TooLong,
                (false, true) => Line::End,
                (false, false) => Line::Whole(line),
            });
        }
        let newline = available.iter().position(|&byte| byte == b'\n');
        let end = newline.unwrap_or(available.len());
        too_long |= line.len() + end > limit;
        if too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(&available[..end]);
        }
        input.consume(newline.map_or(end, |at| at + 1));
        if newline.is_some() {
            return Ok(if too_long { Line::TooLong } else { Line::Whole(line) });
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    async fn lines_of(bytes: &[u8], buffer: usize, limit: usize) -> io::Result<Vec<Line>> {
        let mut input = BufReader::with_capacity(buffer, bytes);
        let mut lines = Vec::new();
        loop {
            match next_line(&mut input, limit).await? {
                Line::End => return Ok(lines),
                line => lines.push(line),
            }
        }
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.into())
    }

    #[tokio::test]
    async fn a_long_line_costs_only_itself() -> io::Result<()> {
        for buffer in [1, 3, 64] {
            let lines = lines_of(b"one\n\nmuch too long\ntwo\nlast", buffer, 5).await?;
            assert_eq!(lines, [whole("one"), whole(""), Line::TooLong, whole("two"), whole("last")]);
        }
        Ok(())
    }

    #[tokio::test]
    async fn the_limit_itself_is_allowed() -> io::Result<()> {
        assert_eq!(lines_of(b"12345\n", 2, 5).await?, [whole("12345")]);
        assert_eq!(lines_of(b"123456", 2, 5).await?, [Line::TooLong]);
        Ok(())
    }
}
