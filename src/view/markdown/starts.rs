//! How blocks begin: what a line is, seen on its own. All of these want the line without indentation.

use std::ops::Range;

/// A code fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    pub(super) sign: u8,
    pub(super) len: usize,
}

/// The fence that `text` opens, and the rest of the line.
pub(super) fn opening_fence(text: &str) -> Option<(Fence, &str)> {
    let sign = *text.as_bytes().first().filter(|sign| matches!(sign, b'`' | b'~'))?;
    let len = run(text, sign);
    let info = text[len..].trim();
    (len >= 3 && !(sign == b'`' && info.contains('`'))).then_some((Fence { sign, len }, info))
}

/// Whether `text` closes that fence.
pub(super) fn closes(text: &str, fence: Fence) -> bool {
    let len = run(text, fence.sign);
    len >= fence.len && text[len..].trim_matches([' ', '\t', '\r']).is_empty()
}

/// The level of the heading that `text` is.
pub(super) fn heading(text: &str) -> Option<u8> {
    let level = run(text, b'#');
    let follows = text.as_bytes().get(level);
    matches!(follows, None | Some(b' ' | b'\t' | b'\r'))
        .then(|| u8::try_from(level).ok())
        .flatten()
        .filter(|level| (1..=6).contains(level))
}

/// The level that a line below a paragraph gives it as a heading.
pub(super) fn underline(text: &str) -> Option<u8> {
    let text = text.trim_end_matches([' ', '\t', '\r']);
    let sign = *text.as_bytes().first()?;
    let level = match sign {
        b'=' => 1,
        b'-' => 2,
        _ => return None,
    };
    (run(text, sign) == text.len()).then_some(level)
}

/// Whether `text` is a line across.
pub(super) fn is_rule(text: &str) -> bool {
    let Some(&sign) = text.as_bytes().first().filter(|sign| matches!(sign, b'*' | b'-' | b'_')) else { return false };
    let signs = text.bytes().filter(|&byte| byte == sign).count();
    signs >= 3 && text.bytes().all(|byte| byte == sign || matches!(byte, b' ' | b'\t' | b'\r'))
}

/// The bullet or number of a list item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListMarker {
    pub(super) len: usize,
    /// Whether it may come right below a paragraph, which is then over.
    pub(super) interrupts: bool,
}

/// The marker that `text` begins with.
pub(super) fn list_marker(text: &str) -> Option<ListMarker> {
    let bytes = text.as_bytes();
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (len, interrupts) = match (digits, bytes.get(digits)?) {
        (0, b'-' | b'*' | b'+') => (1, true),
        (1..=9, b'.' | b')') => (digits + 1, text[..digits].trim_start_matches('0') == "1"),
        _ => return None,
    };
    matches!(bytes.get(len), None | Some(b' ' | b'\t' | b'\r')).then_some(ListMarker { len, interrupts })
}

/// The check box that `text` begins with: whether it is done.
pub(super) fn check_box(text: &str) -> Option<bool> {
    let done = match text.get(..3)? {
        "[ ]" => false,
        "[x]" | "[X]" => true,
        _ => return None,
    };
    matches!(text.as_bytes().get(3), Some(b' ' | b'\t')).then_some(done)
}

/// The cells of a table's row: each with the blanks around its text. Signs between cells stand between the ranges.
pub(super) fn cells(text: &str) -> Vec<Range<usize>> {
    let end = text.trim_end_matches([' ', '\t', '\r']).len();
    let bytes = &text.as_bytes()[..end];
    let mut cells = Vec::new();
    let mut start = usize::from(bytes.first() == Some(&b'|'));
    let mut escaped = false;
    for (at, &byte) in bytes.iter().enumerate().skip(start) {
        if byte == b'|' && !escaped {
            cells.push(start..at);
            start = at + 1;
        }
        escaped = byte == b'\\' && !escaped;
    }
    if start < end {
        cells.push(start..end);
    }
    cells
}

/// How the columns of a table are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alignment {
    Left,
    Center,
    Right,
}

/// The columns that a table's second line asks for.
pub(super) fn delimiters(text: &str) -> Option<Vec<Alignment>> {
    if !text.bytes().all(|byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t' | b'\r')) || !text.contains('|') {
        return None;
    }
    cells(text).into_iter().map(|cell| alignment(text[cell].trim())).collect()
}

fn alignment(cell: &str) -> Option<Alignment> {
    let (left, right) = (cell.starts_with(':'), cell.ends_with(':'));
    let dashes = cell.trim_matches(':');
    let is_one = !dashes.is_empty() && dashes.bytes().all(|byte| byte == b'-');
    let colons = cell.len() - dashes.len();
    (is_one && colons == usize::from(left) + usize::from(right)).then_some(match (left, right) {
        (true, true) => Alignment::Center,
        (false, true) => Alignment::Right,
        _ => Alignment::Left,
    })
}

/// How often `sign` stands at the beginning.
fn run(text: &str, sign: u8) -> usize {
    text.bytes().take_while(|&byte| byte == sign).count()
}
