//! Escape sequences in the output that an agent tells as text: colours are shown, all others are left out.

/// A line in pieces of one colour, numbered from 0 to 15 as terminals do. `colour` is that at its beginning, and then that at
/// its end.
pub(super) fn pieces(line: &str, colour: &mut Option<u8>) -> Vec<(String, Option<u8>)> {
    let mut pieces: Vec<(String, Option<u8>)> = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find('\x1b') {
        push(&mut pieces, &rest[..at], *colour);
        rest = &rest[at + 1..];
        rest = match rest.as_bytes().first() {
            Some(b'[') => csi(&rest[1..], colour),
            // Text for the terminal itself, up to BEL or ST.
            Some(b']' | b'P' | b'X' | b'^' | b'_') => string(&rest[1..]),
            // An escape sequence of intermediate bytes and a final one.
            Some(_) => {
                let skipped = rest.find(|byte: char| !(' '..='/').contains(&byte)).unwrap_or(rest.len());
                rest[skipped..].chars().next().map_or("", |last| &rest[skipped + last.len_utf8()..])
            }
            None => "",
        };
    }
    push(&mut pieces, rest, *colour);
    pieces
}

fn push(pieces: &mut Vec<(String, Option<u8>)>, text: &str, colour: Option<u8>) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some((last, known)) if *known == colour => last.push_str(text),
        _ => pieces.push((text.to_owned(), colour)),
    }
}

/// Reads a control sequence, whose introducer is gone; what follows it.
fn csi<'a>(sequence: &'a str, colour: &mut Option<u8>) -> &'a str {
    let Some(end) = sequence.find(|byte: char| !(' '..='?').contains(&byte)) else { return "" };
    let (parameters, rest) = sequence.split_at(end);
    let Some(last) = rest.chars().next() else { return "" };
    if last == 'm' {
        *colour = coloured(parameters, *colour);
    }
    // What is no final byte belongs to the text.
    if ('@'..='~').contains(&last) { &rest[1..] } else { rest }
}

/// The colour of the text after `SGR` with these parameters.
fn coloured(parameters: &str, before: Option<u8>) -> Option<u8> {
    let mut numbers = parameters.split([';', ':']).map(|number| number.parse::<u16>().unwrap_or_default());
    let mut colour = before;
    while let Some(number) = numbers.next() {
        colour = match number {
            0 | 39 => None,
            30..=37 => u8::try_from(number - 30).ok(),
            90..=97 => u8::try_from(number - 90 + 8).ok(),
            38 | 48 => {
                let palette = numbers.next() == Some(5);
                let index = numbers.next();
                if !palette {
                    // Red, green and blue.
                    numbers.by_ref().take(2).for_each(drop);
                }
                let index = index.filter(|index| palette && *index < 16).and_then(|index| u8::try_from(index).ok());
                if number == 38 { index } else { colour }
            }
            _ => colour,
        };
    }
    colour
}

/// What follows a string, which ends with BEL or ST.
fn string(text: &str) -> &str {
    match (text.find('\x07'), text.find("\x1b\\")) {
        (Some(bell), st) if st.is_none_or(|st| bell < st) => &text[bell + 1..],
        (_, Some(st)) => &text[st + 2..],
        (_, None) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(line: &str) -> Vec<(String, Option<u8>)> {
        pieces(line, &mut None)
    }

    #[test]
    fn colours_are_pieces_and_the_rest_is_gone() {
        let piece = |text: &str, colour| (text.to_owned(), colour);
        assert_eq!(
            shown("a\x1b[31mb\x1b[0;1mc\x1b[92md\x1b[39me"),
            [piece("a", None), piece("b", Some(1)), piece("c", None), piece("d", Some(10)), piece("e", None)]
        );
        assert_eq!(shown("\x1b[38;5;3mx\x1b[38;2;1;2;3my\x1b[48;5;1mz"), [piece("x", Some(3)), piece("yz", None)]);
        assert_eq!(shown("\x1b]0;title\x07a\x1b]8;;url\x1b\\b\x1b(Bc\x1b[2K\x1b[1;2Hd"), [piece("abcd", None)]);
        for cut in ["\x1b", "\x1b[", "\x1b[31", "\x1b]0;x", "\x1b("] {
            assert_eq!(shown(cut), [], "{cut:?}");
        }
        let mut colour = None;
        pieces("\x1b[34mblue", &mut colour);
        assert_eq!(pieces("still", &mut colour), [piece("still", Some(4))]);
    }

    proptest! {
        #[test]
        fn no_escape_and_no_other_text_is_left(line in "([a-zä\x1b\\[\\]0-9;m\x07\\\\ ]){0,40}") {
            let text: String = shown(&line).into_iter().map(|(text, _)| text).collect();
            prop_assert!(!text.contains('\x1b'));
            // What is left stands there in that order.
            let mut from = line.chars();
            prop_assert!(text.chars().all(|wanted| from.any(|there| there == wanted)));
        }
    }
}
