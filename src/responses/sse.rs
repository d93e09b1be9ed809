//! Server-sent events from bytes, in whatever pieces they come (the format is in the HTML standard, section 9.2).
//!
//! Lines end with LF, CRLF or CR; a byte order mark at the beginning, comments, `id` and `retry` are skipped. A piece may
//! end anywhere, also within a character or between CR and LF. What is not UTF-8 becomes U+FFFD, so that it costs itself
//! only.

/// The most that one event may have, in bytes. A server that sends more within one event is broken or hostile.
pub const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;

/// One event as it was framed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    /// The `event` field, which servers may leave out.
    pub event: Option<String>,
    /// The `data` lines, joined by line feeds.
    pub data: String,
}

/// An event was larger than [`MAX_EVENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event has more than {} MiB", MAX_EVENT_BYTES / 1024 / 1024)]
pub struct TooLarge;

/// Cuts a stream of bytes into events.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
    /// The last byte was a CR, so that a LF is the rest of that line's end.
    after_cr: bool,
    past_first_line: bool,
    event: Option<String>,
    data: Option<String>,
}

impl Decoder {
    /// Takes the next piece and appends the events that are complete to `frames`.
    ///
    /// # Errors
    /// [`TooLarge`]; nothing that follows can be understood then.
    pub fn push(&mut self, mut piece: &[u8], frames: &mut Vec<Frame>) -> Result<(), TooLarge> {
        while let Some(&first) = piece.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                piece = &piece[1..];
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', piece) else {
                self.check(piece.len())?;
                self.partial.extend_from_slice(piece);
                return Ok(());
            };
            self.check(end)?;
            if self.partial.is_empty() {
                self.line(&piece[..end], frames);
            } else {
                let mut line = std::mem::take(&mut self.partial);
                line.extend_from_slice(&piece[..end]);
                self.line(&line, frames);
                line.clear();
                self.partial = line;
            }
            self.after_cr = piece[end] == b'\r';
            piece = &piece[end + 1..];
        }
        Ok(())
    }

    /// The stream has ended. An event that only lacks its empty line counts, since some servers close without it; the
    /// standard would drop it.
    pub fn finish(&mut self, frames: &mut Vec<Frame>) {
        let line = std::mem::take(&mut self.partial);
        if !line.is_empty() {
            self.line(&line, frames);
        }
        self.dispatch(frames);
    }

    fn check(&self, more: usize) -> Result<(), TooLarge> {
        let bytes = self.partial.len() + self.data.as_ref().map_or(0, String::len) + more;
        if bytes > MAX_EVENT_BYTES { Err(TooLarge) } else { Ok(()) }
    }

    fn line(&mut self, mut line: &[u8], frames: &mut Vec<Frame>) {
        if !std::mem::replace(&mut self.past_first_line, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(frames);
            return;
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(&String::from_utf8_lossy(value));
                }
                None => self.data = Some(String::from_utf8_lossy(value).into_owned()),
            },
            b"event" => self.event = Some(String::from_utf8_lossy(value).into_owned()),
            _ => {}
        }
    }

    fn dispatch(&mut self, frames: &mut Vec<Frame>) {
        let event = self.event.take();
        if let Some(data) = self.data.take() {
            frames.push(Frame { event, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames_of(pieces: &[&[u8]]) -> Vec<Frame> {
        let mut decoder = Decoder::default();
        let mut frames = Vec::new();
        for piece in pieces {
            decoder.push(piece, &mut frames).unwrap();
        }
        decoder.finish(&mut frames);
        frames
    }

    fn frame(event: &str, data: &str) -> Frame {
        Frame { event: Some(event.to_owned()).filter(|event| !event.is_empty()), data: data.to_owned() }
    }

    #[test]
    fn every_cut_of_a_stream_gives_the_same_events() {
        let stream = "\u{feff}event: a\r\ndata: {\"x\":\"é日本🙂\"}\r\n\r\n: comment\ndata:one\ndata: two\n\nretry: 5\n\revent: b\r\
                      data\r\rdata: [DONE]\n\n";
        let whole = vec![frame("a", "{\"x\":\"é日本🙂\"}"), frame("", "one\ntwo"), frame("b", ""), frame("", "[DONE]")];
        let bytes = stream.as_bytes();
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                assert_eq!(frames_of(&[&bytes[..first], &bytes[first..second], &bytes[second..]]), whole);
            }
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(frames_of(&single), whole);
    }

    #[test]
    fn an_event_without_its_empty_line_counts_at_the_end() {
        assert_eq!(frames_of(&[b"data: {}\n"]), [frame("", "{}")]);
        assert_eq!(frames_of(&[b"data: {}"]), [frame("", "{}")]);
        assert_eq!(frames_of(&[b"event: a\n"]), []);
    }

    #[test]
    fn bytes_that_are_no_text_cost_themselves_only() {
        assert_eq!(frames_of(&[b"data: a\xff\xfeb\n\n"]), [frame("", "a\u{fffd}\u{fffd}b")]);
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut decoder = Decoder::default();
        let piece = vec![b'a'; MAX_EVENT_BYTES / 2 + 1];
        assert_eq!(decoder.push(&piece, &mut Vec::new()), Ok(()));
        assert_eq!(decoder.push(&piece, &mut Vec::new()), Err(TooLarge));
    }
}
