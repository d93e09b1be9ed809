//! What is sent to a terminal buffer of Neovim so that it shows a [`Screen`]: text, colours and movements of the cursor.
//! Nothing that a program wrote gets there as it is, so that it can neither write the clipboard nor ask the terminal
//! anything.
//!
//! Rows that left the screen scroll away and are never drawn again; those on the screen are drawn from the first that changed.
//! While rows come faster than they can be shown, only the screen is.

use std::fmt::Write;

use avt::{Color, Line, Pen};

use super::screen::Screen;

/// Draws one terminal.
#[derive(Debug, Default)]
pub struct Painter {
    /// The rows of the screen as they were drawn; the cursor is in row `row`.
    drawn: Vec<String>,
    row: usize,
    column: usize,
    /// Rows that were never shown and were not told of yet.
    unseen: u64,
}

impl Painter {
    /// What to send, of about `budget` bytes, and whether that is all.
    pub fn paint(&mut self, screen: &mut Screen, budget: usize) -> (String, bool) {
        let mut out = String::new();
        let dropped = screen.take_dropped();
        self.unseen += dropped;
        // In a flood the finished rows wait until it is over: by then most of them are not there any more.
        let is_flood = dropped > 0;
        let mut finished = Vec::new();
        if !is_flood {
            let unseen = std::mem::take(&mut self.unseen);
            if unseen > 0 {
                finished.push(format!("\x1b[2m… {unseen} lines are not shown …\x1b[0m"));
            }
            let mut bytes = 0;
            while bytes < budget
                && let Some(line) = screen.take_row()
            {
                let row = row(&line);
                bytes += row.len() + 2;
                finished.push(row);
            }
        }
        let is_complete = !is_flood && screen.waiting() == 0;
        let wanted: Vec<String> = screen.lines().into_iter().map(row).collect();
        let cursor = screen.cursor();
        let now: Vec<&String> = finished.iter().chain(&wanted).collect();
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
        self.row -= finished.len().min(self.row);
        self.drawn = wanted;
        if (self.column, self.row) != cursor {
            self.go_to(&mut out, cursor.1);
            out.push('\r');
            if cursor.0 > 0 {
                push(&mut out, format_args!("\x1b[{}C", cursor.0));
            }
            self.column = cursor.0;
        }
        (out, is_complete)
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

/// Writing to a `String` cannot fail.
fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

/// A row with its colours, without what is blank at its end.
fn row(line: &Line) -> String {
    let cells = line.cells();
    let is_blank =
        |cell: &avt::Cell| cell.char() == ' ' && cell.pen().background().is_none() && !cell.pen().is_inverse();
    let end = cells.iter().rposition(|cell| !is_blank(cell)).map_or(0, |last| last + 1);
    let mut out = String::new();
    let mut before: Option<&Pen> = None;
    let mut is_plain = true;
    for cell in cells[..end].iter().filter(|cell| cell.width() > 0) {
        if before != Some(cell.pen()) {
            before = Some(cell.pen());
            let sgr = sgr(cell.pen());
            if !(is_plain && sgr.is_empty()) {
                push(&mut out, format_args!("\x1b[0{sgr}m"));
            }
            is_plain = sgr.is_empty();
        }
        out.extend(Some(cell.char()).filter(|char| !char.is_control()));
    }
    if !is_plain {
        out.push_str("\x1b[0m");
    }
    out
}

/// The parameters that set a pen after a reset, each with a `;` before it.
fn sgr(pen: &Pen) -> String {
    let mut out = String::new();
    let attributes = [
        (pen.is_bold(), 1),
        (pen.is_faint(), 2),
        (pen.is_italic(), 3),
        (pen.is_underline(), 4),
        (pen.is_blink(), 5),
        (pen.is_inverse(), 7),
        (pen.is_strikethrough(), 9),
    ];
    for (_, number) in attributes.iter().filter(|(is_set, _)| *is_set) {
        push(&mut out, format_args!(";{number}"));
    }
    for (color, base) in [(pen.foreground(), 38), (pen.background(), 48)] {
        match color {
            Some(Color::Indexed(index)) => push(&mut out, format_args!(";{base};5;{index}")),
            Some(Color::RGB(rgb)) => push(&mut out, format_args!(";{base};2;{};{};{}", rgb.r, rgb.g, rgb.b)),
            None => {}
        }
    }
    out
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
                let (bytes, is_complete) = painter.paint(&mut screen, BUDGET);
                shown.feed(bytes.as_bytes());
                !is_complete
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
        let (bytes, _) = painter.paint(&mut screen, BUDGET);
        assert_eq!(bytes, "\r\x1b[J\x1b[0;38;5;200mhi\x1b[0m\r\x1b[2C");
        assert_eq!(painter.paint(&mut screen, BUDGET).0, "");
    }

    #[test]
    fn a_flood_is_left_out_and_counted() {
        let (mut screen, mut painter) = (Screen::new(30, 6, None), Painter::default());
        screen.feed(b"head\r\n");
        painter.paint(&mut screen, BUDGET);
        let flood: String = (0..100_000).map(|n| format!("{n}\r\n")).collect();
        screen.feed(flood.as_bytes());
        let (bytes, is_complete) = painter.paint(&mut screen, BUDGET);
        assert!(bytes.len() < 1_000 && !is_complete);
        let mut rest = String::new();
        while {
            let (bytes, is_complete) = painter.paint(&mut screen, BUDGET);
            rest.push_str(&bytes);
            !is_complete
        } {}
        assert!(rest.contains("lines are not shown") && rest.contains("\n99000\r\n") && rest.contains("99999"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_painted_without_device_control(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..10),
        ) {
            let (mut screen, mut painter) = (Screen::new(30, 6, None), Painter::default());
            for piece in pieces {
                screen.feed(&piece);
                let (bytes, _) = painter.paint(&mut screen, BUDGET);
                for (at, _) in bytes.match_indices('\u{1b}') {
                    let rest = &bytes[at + 1..];
                    let end = rest.find(|char: char| char.is_ascii_alphabetic());
                    prop_assert!(rest.starts_with('[') && end.is_some_and(|end| "mACJ".contains(&rest[end..=end])));
                }
            }
        }
    }
}
