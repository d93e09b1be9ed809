//! What is sent to a terminal buffer of Neovim so that it shows a [`Screen`]: text, colours and movements of the cursor.
//! Nothing that a program wrote gets there as it is, so that it can neither write the clipboard nor ask the terminal
//! anything.
//!
//! Rows that left the screen scroll away and are never drawn again; those on the screen are drawn from the first that changed.
//! While rows come faster than they can be shown, only the screen is.

use super::row::{self, push};
use super::screen::Screen;

/// What is to be sent.
#[derive(Debug)]
pub struct Paint {
    /// Text, colours and movements of the cursor.
    pub bytes: String,
    /// Whether nothing is left to be sent.
    pub is_complete: bool,
    /// Whether more could be sent at once: rows that will not change any more.
    pub has_backlog: bool,
    /// The rows of the head that were taken from the screen, to be given back if the bytes cannot be shown.
    pub head: Vec<String>,
    /// The rows behind them; the same.
    pub taken: Vec<String>,
    /// How many rows the screen had dropped; the same.
    pub dropped: u64,
}

/// Draws one terminal.
#[derive(Debug, Clone, Default)]
pub struct Painter {
    /// The rows of the screen as they were drawn; the cursor is in row `row`.
    drawn: Vec<String>,
    row: usize,
    column: usize,
    /// Rows that were never shown and were not told of yet.
    unseen: u64,
}

impl Painter {
    /// What to send, of about `budget` bytes.
    pub fn paint(&mut self, screen: &mut Screen, budget: usize) -> Paint {
        let mut out = String::new();
        let dropped = screen.take_dropped();
        self.unseen += dropped;
        // In a flood the finished rows wait until it is over: by then most of them are not there any more.
        let is_flood = dropped > 0;
        let (mut head, mut note, mut taken) = (Vec::new(), None, Vec::new());
        let mut left = budget;
        take_rows(&mut head, &mut left, || screen.take_head());
        if !is_flood && left > 0 {
            let unseen = std::mem::take(&mut self.unseen);
            note = (unseen > 0).then(|| format!("\x1b[2m… {unseen} lines are not shown …\x1b[0m"));
            take_rows(&mut taken, &mut left, || screen.take_row());
        }
        let is_complete = !is_flood && self.unseen == 0 && screen.waiting() == 0;
        let has_backlog = !is_flood && !is_complete;
        if is_complete {
            screen.shown();
        }
        let wanted: Vec<String> = screen.lines().into_iter().map(row::painted).collect();
        let cursor = screen.cursor();
        let finished = head.len() + usize::from(note.is_some()) + taken.len();
        let now: Vec<&String> = head.iter().chain(&note).chain(&taken).chain(&wanted).collect();
        let same = self.drawn.iter().zip(&now).take_while(|(drawn, now)| drawn == *now).count();
        let first = same.min(now.len().saturating_sub(1));
        if same < now.len() || same < self.drawn.len() {
            self.go_to(&mut out, first);
            out.push_str("\r\x1b[J");
            for (at, row) in now.iter().enumerate().skip(first) {
                out.push_str(row);
                if at + 1 < now.len() {
                    out.push_str("\r\n");
                }
            }
            self.row = now.len().saturating_sub(1);
            self.column = usize::MAX;
        }
        self.row -= finished.min(self.row);
        self.drawn = wanted;
        if (self.column, self.row) != cursor {
            self.go_to(&mut out, cursor.1);
            out.push('\r');
            if cursor.0 > 0 {
                push(&mut out, format_args!("\x1b[{}C", cursor.0));
            }
            self.column = cursor.0;
        }
        Paint { bytes: out, is_complete, has_backlog, head, taken, dropped }
    }

    fn go_to(&mut self, out: &mut String, row: usize) {
        match row.cmp(&self.row) {
            std::cmp::Ordering::Less => push(out, format_args!("\x1b[{}A", self.row - row)),
            std::cmp::Ordering::Greater => out.extend(std::iter::repeat_n("\r\n", row - self.row)),
            std::cmp::Ordering::Equal => {}
        }
        self.row = row;
    }
}

/// Takes rows until there are about so many bytes.
fn take_rows(rows: &mut Vec<String>, left: &mut usize, mut next: impl FnMut() -> Option<String>) {
    while *left > 0
        && let Some(row) = next()
    {
        *left = left.saturating_sub(row.len() + 2);
        rows.push(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BUDGET: usize = 16 * 1024;

    /// What a terminal shows that is sent what the painter says.
    fn painted(pieces: &[&[u8]]) -> (String, String) {
        let (mut screen, mut painter) = (Screen::new(30, 6, None), Painter::default());
        let mut shown = Screen::new(30, 6, None);
        for piece in pieces {
            screen.feed(piece);
            while {
                let paint = painter.paint(&mut screen, BUDGET);
                shown.feed(paint.bytes.as_bytes());
                !paint.is_complete
            } {}
        }
        (screen.text().output, shown.text().output)
    }

    #[test]
    fn what_is_shown_is_what_the_program_wrote() {
        let lines: String = (1..=50).map(|n| format!("\x1b[3{}mline {n}\x1b[0m\r\n", n % 8)).collect();
        let (wanted, shown) =
            painted(&[b"start\r\n", lines.as_bytes(), b"10%", b"\r90%", b"\x1b[2A\rup", "\r\n\r\n完了".as_bytes()]);
        assert_eq!(shown, wanted);
    }

    #[test]
    fn nothing_but_text_colours_and_movements_is_sent() {
        let (mut screen, mut painter) = (Screen::new(30, 6, None), Painter::default());
        screen.feed(b"\x1b]52;c;ZXZpbA==\x07\x1bP+q\x1b\\\x1b[6n\x1b[38;5;200mhi\x1b[0m\x1b]0;title\x07");
        let bytes = painter.paint(&mut screen, BUDGET).bytes;
        assert_eq!(bytes, "\r\x1b[J\x1b[0;38;5;200mhi\x1b[0m\r\x1b[2C");
        assert_eq!(painter.paint(&mut screen, BUDGET).bytes, "");
    }

    #[test]
    fn a_flood_is_left_out_and_counted() {
        let (mut screen, mut painter) = (Screen::new(30, 6, None), Painter::default());
        screen.feed(b"head\r\n");
        painter.paint(&mut screen, BUDGET);
        let flood: String = (0..100_000).map(|n| format!("{n}\r\n")).collect();
        screen.feed(flood.as_bytes());
        let Paint { bytes, is_complete, .. } = painter.paint(&mut screen, BUDGET);
        assert!(bytes.len() < 2_000 && !is_complete);
        let mut rest = String::new();
        while {
            let paint = painter.paint(&mut screen, BUDGET);
            rest.push_str(&paint.bytes);
            !paint.is_complete
        } {}
        let rest = [bytes, rest].concat();
        assert!(rest.contains("lines are not shown") && rest.contains("\n99000\r\n") && rest.contains("99999"));
        assert!(rest.contains("\n150\r\n") && !rest.contains("\n300\r\n"), "the beginning is kept");
    }

    #[test]
    fn what_could_not_be_shown_is_shown_later() {
        let (mut screen, mut painter) = (Screen::new(30, 6, None), Painter::default());
        let mut shown = Screen::new(30, 6, None);
        let mut show = |bytes: &str| shown.feed(bytes.as_bytes());
        screen.feed(b"one\r\ntwo\r\n");
        show(&painter.paint(&mut screen, BUDGET).bytes);
        let before = painter.clone();
        let lines: String = (0..3_000).map(|n| format!("{n}\r\n")).collect();
        screen.feed(lines.as_bytes());
        let lost = painter.paint(&mut screen, BUDGET);
        assert!(!lost.head.is_empty() && lost.dropped > 0);
        screen.give_back(lost.head, lost.taken, lost.dropped);
        painter = before;
        while {
            let paint = painter.paint(&mut screen, BUDGET);
            show(&paint.bytes);
            !paint.is_complete
        } {}
        let text = shown.text().output;
        assert!(text.starts_with("one\ntwo\n") && text.ends_with("2998\n2999\n"), "{text}");
        let (head, tail) = text.split_once("…").unwrap();
        let numbers = |text: &str| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>();
        assert_eq!(numbers(head), (0..198).collect::<Vec<u32>>());
        let tail = numbers(tail);
        assert_eq!(tail, (tail[0]..3_000).collect::<Vec<u32>>());
        assert!(text.contains(&format!("{} lines are not shown", tail[0] - 198)), "{text}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_painted_without_device_control(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..10),
        ) {
            let (mut screen, mut painter) = (Screen::new(30, 6, None), Painter::default());
            for piece in pieces {
                screen.feed(&piece);
                let bytes = painter.paint(&mut screen, BUDGET).bytes;
                for (at, _) in bytes.match_indices('\u{1b}') {
                    let rest = &bytes[at + 1..];
                    let end = rest.find(|char: char| char.is_ascii_alphabetic());
                    prop_assert!(rest.starts_with('[') && end.is_some_and(|end| "mACJ".contains(&rest[end..=end])));
                }
            }
        }
    }
}
