//! Output that is nothing but lines of text and colours can be taken line by line, without an emulator: that is what floods
//! are made of, and an emulator would take many times as long for rows that nobody will ever see.

/// The longest line that is taken so, in bytes.
const MAX_LINE: usize = 4 * 1024;
/// The most bytes of colours that may be set without a reset.
const MAX_STYLE: usize = 200;

/// What is known of the state of a terminal as long as it has seen nothing but text, colours and what stays on its line.
#[derive(Debug, Clone, Default)]
pub(super) struct Tame {
    /// Whether it has seen something else.
    is_over: bool,
    /// The sequences that set the colours of what comes next, since the last reset.
    style: String,
}

/// A line of output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlainLine {
    /// Without colours and without blanks at its end.
    pub(super) text: String,
    /// As it can be sent to a terminal.
    pub(super) painted: String,
}

/// What a byte begins.
enum Token<'a> {
    /// A line break.
    Break,
    /// A sequence that sets colours.
    Style(&'a str),
    Text(&'a str),
    /// Anything else that leaves the cursor in its row.
    InLine,
    Other,
}

impl Tame {
    /// Takes note of what an emulator is about to interpret.
    pub(super) fn note(&mut self, text: &str) {
        let mut rest = text;
        while !self.is_over && !rest.is_empty() {
            let (token, length) = token(rest);
            match token {
                Token::Style(style) => self.set_style(style),
                Token::Other => self.is_over = true,
                Token::Break | Token::Text(_) | Token::InLine => {}
            }
            rest = &rest[length..];
        }
    }

    /// Whether lines may be taken without an emulator.
    pub(super) const fn holds(&self) -> bool {
        !self.is_over
    }

    /// The colours that are set, as a sequence.
    pub(super) fn style(&self) -> &str {
        &self.style
    }

    fn set_style(&mut self, style: &str) {
        let parameters = &style[2..style.len() - 1];
        let first = parameters.split([';', ':']).next().unwrap_or_default();
        if first.bytes().all(|byte| byte == b'0') {
            self.style.clear();
        }
        if !parameters.bytes().all(|byte| byte == b'0') {
            self.style.push_str(style);
        }
        self.is_over |= self.style.len() > MAX_STYLE;
    }

    /// The lines of a text that ends with a line break; `None`, and nothing is changed, if there is more in it than text and
    /// colours.
    pub(super) fn lines(&mut self, text: &str) -> Option<Vec<PlainLine>> {
        let mut tame = self.clone();
        let mut lines = Vec::new();
        let mut line = PlainLine { text: String::new(), painted: tame.style.clone() };
        let mut rest = text;
        while !rest.is_empty() {
            let (token, length) = token(rest);
            match token {
                Token::Text(text) => {
                    line.text.push_str(text);
                    line.painted.push_str(text);
                    if line.painted.len() > MAX_LINE {
                        return None;
                    }
                }
                Token::Style(style) => {
                    tame.set_style(style);
                    line.painted.push_str(style);
                }
                Token::Break => {
                    line.text.truncate(line.text.trim_end_matches(' ').len());
                    if line.painted.contains('\x1b') {
                        line.painted.push_str("\x1b[0m");
                    }
                    let next = PlainLine { text: String::new(), painted: tame.style.clone() };
                    lines.push(std::mem::replace(&mut line, next));
                }
                Token::InLine | Token::Other => return None,
            }
            if tame.is_over {
                return None;
            }
            rest = &rest[length..];
        }
        if !line.text.is_empty() {
            return None;
        }
        *self = tame;
        Some(lines)
    }
}

/// The first token of a text that is not empty, and its length in bytes.
fn token(text: &str) -> (Token<'_>, usize) {
    let bytes = text.as_bytes();
    match bytes[0] {
        b'\r' if bytes.get(1) == Some(&b'\n') => (Token::Break, 2),
        b'\r' | b'\t' | 0x07 | 0x08 => (Token::InLine, 1),
        0x1b if bytes.get(1) == Some(&b'[') => {
            let is_parameter = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b';' | b':');
            let end = bytes[2..].iter().position(|byte| !is_parameter(byte)).map(|at| at + 2);
            match end.map(|end| (end + 1, bytes[end])) {
                Some((length, b'm')) => (Token::Style(&text[..length]), length),
                Some((length, b'K')) => (Token::InLine, length),
                _ => (Token::Other, text.len()),
            }
        }
        _ => {
            // A control character of two bytes begins with 0xc2.
            let is_text = |at: usize| match bytes[at] {
                0x20..=0x7e => true,
                0xc2 => bytes.get(at + 1).is_some_and(|&next| next >= 0xa0),
                byte => byte >= 0x80,
            };
            let end = (0..bytes.len()).find(|&at| !is_text(at)).unwrap_or(bytes.len());
            if end == 0 { (Token::Other, text.len()) } else { (Token::Text(&text[..end]), end) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> Option<Vec<(String, String)>> {
        let lines = Tame::default().lines(text)?;
        Some(lines.into_iter().map(|line| (line.text, line.painted)).collect())
    }

    fn pair(text: &str, painted: &str) -> (String, String) {
        (text.to_owned(), painted.to_owned())
    }

    #[test]
    fn lines_of_text_and_colours_are_taken() {
        let lines = taken("a \r\n\x1b[31mred\r\nstill\x1b[0m é完\r\n").unwrap();
        let wanted =
            [pair("a", "a "), pair("red", "\x1b[31mred\x1b[0m"), pair("still é完", "\x1b[31mstill\x1b[0m é完\x1b[0m")];
        assert_eq!(lines, wanted);
    }

    #[test]
    fn anything_else_is_left_to_the_emulator() {
        for text in
            ["10%\r20%\r\n", "a\tb\r\n", "\x1b[2Jx\r\n", "a\nb\r\n", "\x1b]0;t\x07\r\n", "a\u{85}b\r\n", "no end"]
        {
            assert_eq!(taken(text), None, "{text:?}");
        }
        let mut tame = Tame::default();
        tame.note("ok \x1b[K\x1b[1;32mgreen\rmore");
        assert!(tame.holds());
        assert_eq!(tame.style(), "\x1b[1;32m");
        tame.note("\x1b[0;4m");
        assert_eq!(tame.style(), "\x1b[0;4m");
        tame.note("\x1b[m\x1b[?1049h");
        assert!(!tame.holds());
    }
}
