//! What a program wrote to its terminal, as a reader of the screen has seen it.
//!
//! An emulator interprets the bytes. A row that leaves its screen at the top is finished: its text goes to what the agent
//! reads, the row itself to what waits to be shown. Both are bounded, and count what they lost. What comes in a flood of plain
//! lines is finished without the emulator, up to the last screen of it (see [`super::plain`]).

use std::collections::VecDeque;

use avt::{Line, Observation, Observer, ScreenKind, Terminal};

use super::plain::Tame;
use super::row;

/// Bytes of text that are kept for the agent when it names no limit, and the most that are kept if it does.
pub const MAX_TEXT: usize = 4 * 1024 * 1024;
/// Finished rows that may wait to be shown, besides those at the head; older ones are counted only.
pub const MAX_ROWS: usize = 2_000;
/// The first rows of a flood, which are kept and shown whatever follows.
pub const HEAD: usize = 200;
/// Columns and rows up to which a size is taken over.
const MAX_SIZE: u16 = 1_000;
/// The longest start of a sequence that is held back until its rest comes, in bytes.
const MAX_HELD: usize = 32;
/// Bytes from which on it is worth looking for plain lines.
const FLOOD: usize = 2 * 1024;
/// Bytes of a piece of the finished text.
const PIECE: usize = 4 * 1024;
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

/// A line in pieces of one colour each.
pub type ColouredLine = Vec<(String, Option<u8>)>;

/// A terminal's screen, and what was on it before.
pub struct Screen {
    emulator: Terminal,
    done: Done,
    /// Bytes that may be the start of a character, or of a sequence.
    held: Vec<u8>,
    tame: Tame,
    /// Most bytes of text for the agent.
    limit: usize,
}

/// What left the screen.
#[derive(Default)]
struct Done {
    /// Finished text, in pieces of about the same length.
    text: VecDeque<String>,
    bytes: usize,
    cut: bool,
    keep: usize,
    /// Spaces at the end of the last row, whose line goes on in the next one. They count once something follows them.
    blanks: usize,
    /// The first rows that wait to be shown, painted.
    head: VecDeque<String>,
    /// How many more of them may follow, until all that waits was shown.
    head_filled: usize,
    /// The rows after them.
    rows: VecDeque<String>,
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
        let mut text = String::new();
        push_row_text(&mut text, &mut self.blanks, line, true);
        self.push_text(&text);
        self.push_row(row::painted(line));
    }

    fn push_text(&mut self, text: &str) {
        self.bytes += text.len();
        match self.text.back_mut() {
            Some(last) if last.len() + text.len() <= PIECE => last.push_str(text),
            _ => {
                let mut piece = String::with_capacity(PIECE.max(text.len()));
                piece.push_str(text);
                self.text.push_back(piece);
            }
        }
        while let Some(first) = self.text.front()
            && self.bytes - first.len() >= self.keep
        {
            self.bytes -= first.len();
            self.cut |= !first.is_empty();
            self.text.pop_front();
        }
    }

    fn push_row(&mut self, row: String) {
        if self.head_filled < HEAD && self.rows.is_empty() {
            self.head_filled += 1;
            self.head.push_back(row);
            return;
        }
        if self.rows.len() >= MAX_ROWS {
            self.rows.pop_front();
            self.dropped += 1;
        }
        self.rows.push_back(row);
    }
}

/// Whether a row has nothing but spaces.
fn is_blank(line: &Line) -> bool {
    line.text().bytes().all(|byte| byte == b' ')
}

/// Adds the text of a row to what is above it, without the spaces at the end of a line, wherever that is wrapped. `blanks` are
/// those that may be such, from row to row.
fn push_row_text(output: &mut String, blanks: &mut usize, line: &Line, ends: bool) {
    let row = line.text();
    let text = row.trim_end_matches(' ');
    if !text.is_empty() {
        output.extend(std::iter::repeat_n(' ', std::mem::take(blanks)));
        output.push_str(text);
    }
    if line.is_wrapped() {
        *blanks += row.len() - text.len();
    } else {
        *blanks = 0;
        if ends {
            output.push('\n');
        }
    }
}

impl Screen {
    /// An empty screen; `limit` is the most bytes of text that the agent wants, all that are kept if `None`.
    pub fn new(columns: u16, rows: u16, limit: Option<u64>) -> Self {
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MAX_TEXT).min(MAX_TEXT);
        let (columns, rows) = bounded(columns, rows);
        // Both numbers are at least one, which is all that is asked for.
        let emulator = Terminal::new(columns, rows).unwrap_or_else(|_| unreachable!("a size of at least 1 x 1"));
        let done = Done { keep: limit, ..Done::default() };
        Self { emulator, done, held: Vec::new(), tame: Tame::default(), limit }
    }

    /// The program wrote this. Bytes that are no UTF-8 are replaced.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut bytes = [std::mem::take(&mut self.held).as_slice(), bytes].concat();
        let held = held_back(&bytes);
        self.held = bytes.split_off(bytes.len() - held);
        let mut rest = bytes.as_slice();
        if let Some(taken) = self.take_plain(rest) {
            rest = &rest[taken..];
        }
        while let Some((at, length)) = find_leave(rest) {
            self.interpret(&rest[..at]);
            self.keep_alternate();
            self.interpret(&rest[at..at + length]);
            rest = &rest[at + length..];
        }
        self.interpret(rest);
    }

    /// Whether it takes plain lines in a flood at little cost.
    pub const fn is_tame(&self) -> bool {
        self.tame.holds()
    }

    /// Nothing more will come: what was held back is taken as it is.
    pub fn finish(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.interpret(&held);
    }

    fn interpret(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        self.tame.note(&text);
        self.emulator.feed_with(&*text, &mut self.done);
    }

    /// Takes plain lines without the emulator, except for the last ones, which fill its screen; returns how many bytes that
    /// were, `None` if nothing was taken.
    fn take_plain(&mut self, bytes: &[u8]) -> Option<usize> {
        if bytes.len() < FLOOD || !self.tame.holds() {
            return None;
        }
        let first = memchr::memchr(b'\n', bytes)? + 1;
        let (_, rows) = self.emulator.size();
        // The line break before the last `rows` lines that are complete.
        let end = memchr::memrchr_iter(b'\n', bytes).nth(rows)? + 1;
        if end <= first {
            return None;
        }
        let text = std::str::from_utf8(&bytes[first..end]).ok()?;
        // With the first line the cursor gets to the beginning of one, and the colours are known from there on.
        let mut tame = self.tame.clone();
        tame.note(std::str::from_utf8(&bytes[..first]).ok()?);
        let lines = tame.holds().then(|| tame.lines(text))??;
        // What follows fills the screen again only if it does nothing else.
        let mut rest = tame.clone();
        rest.note(std::str::from_utf8(&bytes[end..]).ok()?);
        if !rest.holds() {
            return None;
        }
        self.interpret(&bytes[..first]);
        let (column, row) = self.cursor();
        if column != 0 {
            return Some(first);
        }
        let above: Vec<Line> = self.emulator.screen().visible_lines().take(row).cloned().collect();
        for line in &above {
            self.done.push(line);
        }
        for mut line in lines {
            line.text.push('\n');
            self.done.push_text(&line.text);
            self.done.push_row(line.painted);
        }
        self.tame = tame;
        let start = ["\x1b[m\x1b[H\x1b[J", self.tame.style()].concat();
        self.emulator.feed_with(start.as_str(), &mut self.done);
        Some(end)
    }

    /// The program leaves the alternate screen: what was on it stays, as the last that it had to show.
    fn keep_alternate(&mut self) {
        if self.emulator.active_screen_kind() == ScreenKind::Alternate {
            let lines: Vec<Line> = self.lines().into_iter().cloned().collect();
            if !lines.iter().all(is_blank) {
                for line in &lines {
                    self.done.push(line);
                }
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
        let written = lines.iter().rposition(|line| !is_blank(line)).map_or(0, |last| last + 1);
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
        let mut blanks = self.done.blanks;
        for (at, line) in lines.iter().enumerate() {
            push_row_text(&mut output, &mut blanks, line, at + 1 < lines.len());
        }
        let mut truncated = self.done.cut;
        if output.len() > self.limit {
            let from = output.ceil_char_boundary(output.len() - self.limit);
            output.drain(..from);
            truncated = true;
        }
        Text { output, truncated }
    }

    /// The last `count` lines with text. Those that left the screen have lost their colours.
    pub fn last_lines(&self, count: usize) -> Vec<ColouredLine> {
        let shown = self.lines().into_iter().rev().map(row::coloured);
        let gone = self.done.text.iter().rev().flat_map(|piece| piece.lines().rev());
        let gone = gone.map(|line| vec![(line.to_owned(), None)]);
        let has_text = |line: &ColouredLine| line.iter().any(|(text, _)| !text.is_empty());
        let mut lines: Vec<ColouredLine> = shown.chain(gone).filter(has_text).take(count).collect();
        lines.reverse();
        lines
    }

    /// How many finished rows wait to be shown.
    pub fn waiting(&self) -> usize {
        self.done.head.len() + self.done.rows.len()
    }

    /// The oldest finished row that was not shown yet and is never dropped, painted.
    pub fn take_head(&mut self) -> Option<String> {
        self.done.head.pop_front()
    }

    /// The oldest finished row behind those, painted.
    pub fn take_row(&mut self) -> Option<String> {
        self.done.rows.pop_front()
    }

    /// All that there was is shown: what comes next has a head of its own.
    pub const fn shown(&mut self) {
        self.done.head_filled = 0;
    }

    /// How many rows were dropped unseen since this was last called.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.done.dropped)
    }

    /// What was taken could not be shown: these rows of the head, those behind them, and so many that were dropped.
    pub fn give_back(&mut self, head: Vec<String>, rows: Vec<String>, dropped: u64) {
        self.done.dropped += dropped;
        self.done.head_filled = HEAD;
        for row in head.into_iter().rev() {
            self.done.head.push_front(row);
        }
        for row in rows.into_iter().rev() {
            if self.done.rows.len() < MAX_ROWS {
                self.done.rows.push_front(row);
            } else {
                self.done.dropped += 1;
            }
        }
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
    let tail = &bytes[bytes.len().saturating_sub(MAX_HELD)..];
    if let Some(at) = tail.iter().rposition(|&byte| byte == 0x1b)
        && is_unfinished(&tail[at..])
    {
        return tail.len() - at;
    }
    if tail.last() == Some(&b'\r') {
        return 1;
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

/// Whether a control sequence has not come to its end.
fn is_unfinished(sequence: &[u8]) -> bool {
    match sequence {
        [0x1b] => true,
        [0x1b, b'[', rest @ ..] => rest.iter().all(|byte| matches!(byte, 0x20..=0x3f)),
        _ => false,
    }
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
    fn spaces_at_the_end_of_a_line_are_gone_also_where_they_are_wrapped() {
        let flood = "end   \r\n".repeat(400);
        for blanks in [1, 10, 30] {
            let bytes = format!("0123456789abcdef{}\r\n{flood}", " ".repeat(blanks));
            let pieces: Vec<&[u8]> = bytes.as_bytes().chunks(7).collect();
            assert!(output(bytes.as_bytes()).starts_with("0123456789abcdef\nend\n"));
            assert_eq!(shown(&pieces, None), shown(&[bytes.as_bytes()], None));
        }
        assert_eq!(output(b"0123456789abcdef        end"), "0123456789abcdef        end");
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
        assert_eq!(screen.waiting(), HEAD + MAX_ROWS);
        assert!(screen.take_dropped() > 2_900_000);
        let text = screen.text();
        assert!(text.truncated && text.output.len() <= MAX_TEXT);
        assert_eq!(screen.last_lines(2), [[("y".to_owned(), None)], [("y".to_owned(), None)]]);
    }

    #[test]
    fn a_flood_of_plain_lines_leaves_what_an_emulator_leaves() {
        let line = |n: usize| format!("\x1b[3{}m{n} é完 word\x1b[0m end {}\r\n", n % 8, " ".repeat(n % 3));
        let flood: String = (0..2_000).map(line).collect();
        let all = [b"begin".as_slice(), b" here\r\n", flood.as_bytes(), b"last \x1b[1mline"].concat();
        for size in [1, 7, 1_000, 5_000, 100_000] {
            let (mut screen, mut slow) = (Screen::new(40, 5, None), Screen::new(40, 5, None));
            for piece in all.chunks(size) {
                screen.feed(piece);
            }
            for byte in all.chunks(FLOOD - 1) {
                slow.feed(byte);
            }
            assert_eq!(screen.text(), slow.text(), "in pieces of {size}");
            assert_eq!(screen.cursor(), slow.cursor());
            assert_eq!(screen.last_lines(3), slow.last_lines(3));
            assert_eq!(screen.waiting() + usize::try_from(screen.take_dropped()).unwrap(), 2_002 - 5);
        }
    }

    #[test]
    fn a_flood_that_ends_on_another_screen_takes_no_short_cut() {
        let flood: String = (0..500).map(|n| format!("{n}\r\n")).collect();
        let bytes = [flood.as_bytes(), b"\x1b[?1049ha\r\nb\r\n\x1b[?1049l\x1b[Htop"].concat();
        let pieces: Vec<&[u8]> = bytes.chunks(10).collect();
        assert_eq!(shown(&[&bytes], None), shown(&pieces, None));
    }

    #[test]
    fn what_moves_the_cursor_ends_the_short_cut() {
        let flood: String = (0..500).map(|n| format!("{n}\r\n")).collect();
        let bytes = [b"\x1b[2;3r".as_slice(), flood.as_bytes()].concat();
        let text = shown(&[&bytes], None).output;
        assert!(text.ends_with("499\n") && text.lines().count() < 10, "only two rows scroll: {text:?}");
    }

    /// How many cases are tried: `PROPTEST_CASES` says, else a few.
    fn cases() -> u32 {
        std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(60)
    }

    /// What programs write, in parts.
    fn part() -> impl Strategy<Value = Vec<u8>> {
        const FIXED: &[&[u8]] = &[
            b"\r\n",
            b"\r",
            b"\x1b[31m",
            b"\x1b[1;38;5;200m",
            b"\x1b[0m",
            b"\x1b[m",
            b"\x1b[K",
            b"\x1b]0;title\x07",
            b"\x1b[2A",
            b"\x1b[H",
            b"\x1b[2J",
            b"\x1b[?1049h",
            b"\x1b[?1049l",
            b"\x08",
            b"\t",
            "完了 é e\u{301} 🎉".as_bytes(),
            b"\xff",
        ];
        prop_oneof![
            4 => "[ -~]{0,40}".prop_map(String::into_bytes),
            4 => (0..FIXED.len()).prop_map(|at| FIXED[at].to_vec()),
            1 => (1usize..200, "[a-z ]{0,30}").prop_map(|(count, line)| format!("{line}\r\n").repeat(count).into_bytes()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

        #[test]
        fn it_does_not_matter_how_the_bytes_are_cut(
            parts in prop::collection::vec(part(), 0..30),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let all = parts.concat();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len() + 1)).collect();
            cuts.extend([0, all.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &all[cut[0]..cut[1]]).collect();
            let bytewise: Vec<&[u8]> = all.chunks(1).collect();
            prop_assert_eq!(shown(&pieces, None), shown(&bytewise, None));
        }

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
