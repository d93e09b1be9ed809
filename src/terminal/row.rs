//! A row of a screen as it is sent to Neovim: text and colours, nothing else.

use std::fmt::Write;

use avt::{Cell, Color, Line, Pen};

/// A row with its colours, without what is blank at its end.
pub fn painted(line: &Line) -> String {
    let cells = line.cells();
    let is_blank = |cell: &Cell| cell.char() == ' ' && cell.pen().background().is_none() && !cell.pen().is_inverse();
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

/// Writing to a `String` cannot fail.
pub(super) fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
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

/// The text of a row in pieces of one colour each, from 0 to 15 as terminals number them.
pub fn coloured(line: &Line) -> Vec<(String, Option<u8>)> {
    let mut pieces: Vec<(String, Option<u8>)> = Vec::new();
    for cell in line.cells().iter().filter(|cell| cell.width() > 0 && !cell.char().is_control()) {
        let colour = cell.pen().foreground().map(basic);
        match pieces.last_mut() {
            Some((text, last)) if *last == colour => text.push(cell.char()),
            _ => pieces.push((cell.char().to_string(), colour)),
        }
    }
    while let Some((text, _)) = pieces.last_mut() {
        text.truncate(text.trim_end_matches(' ').len());
        if !text.is_empty() {
            break;
        }
        pieces.pop();
    }
    pieces
}

/// The one of the 16 basic colours that is nearest.
fn basic(color: Color) -> u8 {
    match color {
        Color::Indexed(index @ 0..=15) => index,
        Color::Indexed(index @ 16..=231) => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + step * 40 };
            let at = index - 16;
            nearest(level(at / 36), level(at / 6 % 6), level(at % 6))
        }
        Color::Indexed(index) => {
            let level = 8 + (index - 232) * 10;
            nearest(level, level, level)
        }
        Color::RGB(rgb) => nearest(rgb.r, rgb.g, rgb.b),
    }
}

fn nearest(red: u8, green: u8, blue: u8) -> u8 {
    let highest = red.max(green).max(blue);
    let lowest = red.min(green).min(blue);
    if highest - lowest < 32 {
        return match highest {
            0..=63 => 0,
            64..=159 => 8,
            160..=223 => 7,
            _ => 15,
        };
    }
    let is_strong = |level: u8| level > lowest + (highest - lowest) / 2;
    let hue = u8::from(is_strong(red)) | u8::from(is_strong(green)) << 1 | u8::from(is_strong(blue)) << 2;
    if highest > 223 { hue + 8 } else { hue }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_told_as_one_of_sixteen() {
        assert_eq!(basic(Color::Indexed(3)), 3);
        assert_eq!([196, 46, 21, 232, 255, 124].map(|index| basic(Color::Indexed(index))), [9, 10, 12, 0, 15, 1]);
        let rgb = |r, g, b| basic(Color::rgb(r, g, b));
        assert_eq!([rgb(200, 30, 30), rgb(250, 250, 20), rgb(128, 128, 128), rgb(0, 0, 0)], [1, 11, 8, 0]);
    }
}
