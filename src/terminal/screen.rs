//! What a program wrote to its terminal, as a reader of the screen has seen it.
//!
//! An emulator interprets the bytes. A row that leaves its screen at the top is finished: its text goes to what the agent
//! reads, the row itself to what waits to be shown. Both are bounded, and count what they lost.

use std::collections::VecDeque;

use avt::{Line, Observation, Observer, ScreenKind, Terminal};

/// Bytes of text that are kept for the agent when it names no limit, and the most that are kept if it does.
pub const MAX_TEXT: usize = 4 * 1024 * 1024;
/// Finished rows that may wait to be shown; older ones are counted only.
pub const MAX_ROWS: usize = 2_000;
/// Columns and rows up to which a size is taken over.
const MAX_SIZE: u16 = 1_000;
/// The longest start of a sequence that is held back until its rest comes, in bytes.
const MAX_HELD: usize = 8;
/// What programs send to leave the alternate screen, whose content is lost then.
const LEAVE: [&[u8]; 3] = [b"\x1b[?1049l", b"\x1b[?1047l", b"\x1b[?47l"];

/// The text that an agent reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Without escapes; lines end with `\n`.
    pub output: String,
    /// Whether its beginning was cut off.
    pub truncated: bool,
}

/// A terminal's screen, and what was on it before.
pub struct Screen {
    emulator: Terminal,
    done: Done,
    /// Bytes that may be the start of a character, or of a sequence that leaves the alternate screen.
    held: Vec<u8>,
    /// Most bytes of text for the agent.
    limit: usize,
}

/// What left the screen.
#[derive(Default)]
struct Done {
    /// Finished text, in pieces.
    text: VecDeque<String>,
    bytes: usize,
    cut: bool,
    keep: usize,
    /// Rows that wait to be shown.
    rows: VecDeque<Line>,
    /// How many rows were dropped before they were shown, since this was last asked.
    dropped: u64,
}

impl Observer for &mut Done {
    type Output = ();

    fn evicted(&mut self, _: &mut Observation<'_>, line: &Line) {
        self.push(line);
    }

    fn end(&mut self, _: &mut Observation<'_>) {}
}

impl Done {
    fn push(&mut self, line: &Line) {
        let mut text = row_text(line);
        if !line.is_wrapped() {
            text.push('\n');
        }
        self.push_text(text);
        self.push_row(line.clone());
    }

    fn push_text(&mut self, text: String) {
        self.bytes += text.len();
        self.text.push_back(text);
        while let Some(first) = self.text.front()
            && self.bytes - first.len() >= self.keep
        {
            self.bytes -= first.len();
            self.cut |= !first.is_empty();
            self.text.pop_front();
        }
    }

    fn push_row(&mut self, line: Line) {
        if self.rows.len() >= MAX_ROWS {
            self.rows.pop_front();
            self.dropped += 1;
        }
        self.rows.push_back(line);
    }
}

/// The text of a row; spaces behind it are only kept where the line goes on in the next row.
fn row_text(line: &Line) -> String {
    let mut text = line.text();
    if !line.is_wrapped() {
        text.truncate(text.trim_end_matches(' ').len());
    }
    text
}

impl Screen {
    /// An empty screen; `limit` is the most bytes of text that the agent wants, all that are kept if `None`.
    pub fn new(columns: u16, rows: u16, limit: Option<u64>) -> Self {
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MAX_TEXT).min(MAX_TEXT);
        let (columns, rows) = bounded(columns, rows);
        // Both numbers are at least one, which is all that is asked for.
        let emulator = Terminal::new(columns, rows).unwrap_or_else(|_| unreachable!("a size of at least 1 x 1"));
        Self { emulator, done: Done { keep: limit, ..Done::default() }, held: Vec::new(), limit }
    }

    /// The program wrote this. Bytes that are no UTF-8 are replaced.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut bytes = [std::mem::take(&mut self.held).as_slice(), bytes].concat();
        let held = held_back(&bytes);
        self.held = bytes.split_off(bytes.len() - held);
        let mut rest = bytes.as_slice();
        while let Some((at, length)) = find_leave(rest) {
            self.interpret(&rest[..at]);
            self.keep_alternate();
            self.interpret(&rest[at..at + length]);
            rest = &rest[at + length..];
        }
        self.interpret(rest);
    }

    /// Nothing more will come: what was held back is taken as it is.
    pub fn finish(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.interpret(&held);
    }

    fn interpret(&mut self, bytes: &[u8]) {
        self.emulator.feed_with(&*String::from_utf8_lossy(bytes), &mut self.done);
    }

    /// The program leaves the alternate screen: what was on it stays, as the last that it had to show.
    fn keep_alternate(&mut self) {
        if self.emulator.active_screen_kind() == ScreenKind::Alternate {
            let lines: Vec<Line> = self.lines().into_iter().cloned().collect();
            let is_blank = lines.iter().all(|line| row_text(line).is_empty());
            for line in lines.iter().filter(|_| !is_blank) {
                self.done.push(line);
            }
        }
    }

    /// Another size, in columns and rows.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let (columns, rows) = bounded(columns, rows);
        self.emulator.resize_with(columns, rows, &mut self.done);
    }

    /// The rows on the screen, down to the cursor or the last one with text.
    pub fn lines(&self) -> Vec<&Line> {
        let screen = self.emulator.screen();
        let lines: Vec<&Line> = screen.visible_lines().collect();
        let written = lines.iter().rposition(|line| !row_text(line).is_empty()).map_or(0, |last| last + 1);
        let end = written.max(self.emulator.cursor().row + 1).min(lines.len());
        lines.into_iter().take(end).collect()
    }

    /// Where the cursor is: column and row on the screen, both 0-based.
    pub fn cursor(&self) -> (usize, usize) {
        let cursor = self.emulator.cursor();
        (cursor.col, cursor.row)
    }

    /// The text so far, its beginning cut at a character so that it fits the limit.
    pub fn text(&self) -> Text {
        let mut output: String = self.done.text.iter().map(String::as_str).collect();
        let lines = self.lines();
        for (at, line) in lines.iter().enumerate() {
            output.push_str(&row_text(line));
            if at + 1 < lines.len() && !line.is_wrapped() {
                output.push('\n');
            }
        }
        let mut truncated = self.done.cut;
        if output.len() > self.limit {
            let from = output.ceil_char_boundary(output.len() - self.limit);
            output.drain(..from);
            truncated = true;
        }
        Text { output, truncated }
    }

    /// The last `count` lines with text.
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let shown = self.lines().into_iter().rev().map(row_text);
        let gone = self.done.text.iter().rev().map(|piece| piece.trim_end().to_owned());
        let mut lines: Vec<String> = shown.chain(gone).filter(|line| !line.is_empty()).take(count).collect();
        lines.reverse();
        lines
    }

    /// How many finished rows wait to be shown.
    pub fn waiting(&self) -> usize {
        self.done.rows.len()
    }

    /// The oldest finished row that was not shown yet.
    pub fn take_row(&mut self) -> Option<Line> {
        self.done.rows.pop_front()
    }

    /// How many rows were dropped unseen since this was last called.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.done.dropped)
    }
}

fn bounded(columns: u16, rows: u16) -> (usize, usize) {
    (usize::from(columns.clamp(2, MAX_SIZE)), usize::from(rows.clamp(1, MAX_SIZE)))
}

fn find_leave(bytes: &[u8]) -> Option<(usize, usize)> {
    LEAVE.iter().filter_map(|leave| Some((memchr::memmem::find(bytes, leave)?, leave.len()))).min()
}

/// How many bytes at the end are the start of something that is only known with its rest.
fn held_back(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(MAX_HELD - 1)..];
    if let Some(at) = tail.iter().rposition(|&byte| byte == 0x1b)
        && LEAVE.iter().any(|leave| leave.len() > tail.len() - at && leave.starts_with(&tail[at..]))
    {
        return tail.len() - at;
    }
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    for at in (0..tail.len()).rev() {
        let wanted = match tail[at] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => return 0,
        };
        let have = tail.len() - at;
        return if have < wanted && std::str::from_utf8(&tail[at..]).is_err_and(|error| error.error_len().is_none()) {
            have
        } else {
            0
        };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(pieces: &[&[u8]], limit: Option<u64>) -> Text {
        let mut screen = Screen::new(20, 4, limit);
        for piece in pieces {
            screen.feed(piece);
        }
        screen.finish();
        screen.text()
    }

    fn output(bytes: &[u8]) -> String {
        shown(&[bytes], None).output
    }

    #[test]
    fn lines_come_out_as_they_went_in() {
        let text: String = (1..=100).map(|n| format!("{n}\r\n")).collect();
        assert_eq!(output(text.as_bytes()), text.replace('\r', ""));
        assert_eq!(output(b"no line break"), "no line break");
        assert_eq!(output(b"a\r\n\r\nb\r\n"), "a\n\nb\n");
    }

    #[test]
    fn escapes_are_gone_and_progress_is_what_it_was_at_last() {
        assert_eq!(output(b"\x1b[31mred\x1b[0m\x1b]52;c;ZXZpbA==\x07 done\r\n"), "red done\n");
        assert_eq!(output(b"10%\r50%\r100%\r\nok"), "100%\nok");
    }

    #[test]
    fn a_line_that_was_wrapped_is_one_line() {
        let long = "0123456789".repeat(13);
        assert_eq!(output(format!("{long}\r\nend").as_bytes()), format!("{long}\nend"));
    }

    #[test]
    fn wide_and_combining_characters_stay_whole_however_they_come() {
        let text = "完了 é e\u{301} 🎉\r\n".as_bytes();
        for at in 0..text.len() {
            assert_eq!(shown(&[&text[..at], &text[at..]], None).output, "完了 é e\u{301} 🎉\n", "cut at {at}");
        }
        assert_eq!(output(b"a\xffb\xc3"), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn a_limit_cuts_the_beginning_at_a_character() {
        let text = shown(&["äöü".as_bytes()], Some(3));
        assert_eq!((text.output.as_str(), text.truncated), ("ü", true));
        let text = shown(&["äöü".as_bytes()], Some(6));
        assert_eq!((text.output.as_str(), text.truncated), ("äöü", false));
        let lines: String = (0..1000).map(|n| format!("{n}\r\n")).collect();
        let text = shown(&[lines.as_bytes()], Some(8));
        assert_eq!((text.output.as_str(), text.truncated), ("998\n999\n", true));
        assert_eq!(shown(&[b"abc"], Some(0)), Text { output: String::new(), truncated: true });
        assert_eq!(shown(&[b""], Some(0)), Text { output: String::new(), truncated: false });
    }

    #[test]
    fn a_program_on_the_alternate_screen_leaves_its_last_screen() {
        let bytes = b"before\r\n\x1b[?1049h\x1b[2J\x1b[Hfull screen\x1b[?1049lafter";
        for at in 0..bytes.len() {
            let text = shown(&[&bytes[..at], &bytes[at..]], None).output;
            assert!(text.contains("full screen") && text.contains("before") && text.ends_with("after"), "{text:?}");
        }
    }

    #[test]
    fn a_flood_is_bounded_and_says_what_it_lost() {
        let mut screen = Screen::new(20, 4, None);
        let line = "y\r\n".repeat(10_000);
        for _ in 0..300 {
            screen.feed(line.as_bytes());
        }
        assert_eq!(screen.waiting(), MAX_ROWS);
        assert!(screen.take_dropped() > 2_900_000);
        let text = screen.text();
        assert!(text.truncated && text.output.len() <= MAX_TEXT);
        assert_eq!(screen.last_lines(2), ["y", "y"]);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_give_bounded_text(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20),
            limit in prop::option::of(0_u64..500),
            size in (1_u16..300, 1_u16..100),
        ) {
            let mut screen = Screen::new(30, 5, limit);
            for (at, piece) in pieces.iter().enumerate() {
                screen.feed(piece);
                if at == 3 {
                    screen.resize(size.0, size.1);
                }
            }
            screen.finish();
            let text = screen.text();
            prop_assert!(limit.is_none_or(|limit| text.output.len() as u64 <= limit));
            prop_assert!(text.output.chars().all(|char| char != '\x1b'));
            prop_assert!(screen.held.is_empty());
        }
    }
}
