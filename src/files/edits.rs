//! From one text to another in the fewest lines, and parts of a text by line.

use std::borrow::Cow;
use std::ops::Range;

use crate::changes::{Change, changes, rows};
use crate::core::effect::ReadRange;

/// One replacement in a buffer, as `nvim_buf_set_text` takes it: rows and columns 0-based, columns in bytes, the end
/// exclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferEdit {
    /// First row.
    pub row: usize,
    /// First byte in it.
    pub col: usize,
    /// Last row.
    pub end_row: usize,
    /// Byte after the last in it.
    pub end_col: usize,
    /// The new text.
    pub lines: Vec<String>,
}

/// What begins some files; Neovim keeps it out of the buffer's text (`:help 'bomb'`).
pub const BYTE_ORDER_MARK: char = '\u{feff}';

/// `new` in the form of the file's text `old`: with its byte order mark, and with its line breaks where all of `old` are of
/// one kind. Agents see and write lines, and seldom mean to change these bytes.
pub fn in_form_of<'a>(old: &str, new: &'a str) -> Cow<'a, str> {
    let breaks = old.matches('\n').count();
    let carriage_returns = old.matches('\r').count();
    let mut text = if breaks > 0 && carriage_returns == breaks && old.matches("\r\n").count() == breaks {
        Cow::Owned(new.replace("\r\n", "\n").replace('\n', "\r\n"))
    } else if breaks > 0 && carriage_returns == 0 && new.contains("\r\n") {
        Cow::Owned(new.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(new)
    };
    if old.starts_with(BYTE_ORDER_MARK) && !text.starts_with(BYTE_ORDER_MARK) {
        text.to_mut().insert(0, BYTE_ORDER_MARK);
    }
    text
}

/// A file's text as the lines of a buffer hold it, joined by `\n`: `line_break` is what its 'fileformat' stands for.
/// Other line breaks are part of the lines.
pub fn in_buffer<'a>(text: &'a str, line_break: &str) -> Cow<'a, str> {
    match line_break {
        "\n" => Cow::Borrowed(text),
        "\r" => Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")),
        other => Cow::Owned(text.replace(other, "\n")),
    }
}

/// A file's text as Neovim would read it with its own settings: no byte order mark, and `\n` for line breaks where all are
/// of DOS.
pub fn as_read(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let breaks = text.matches('\n').count();
    let is_dos = breaks > 0 && text.matches("\r\n").count() == breaks;
    in_buffer(text, if is_dos { "\r\n" } else { "\n" })
}

/// The lines of a text as Neovim's buffer holds them: the last line break ends the last line.
fn buffer_lines(text: &str) -> Vec<&str> {
    let mut lines = rows(text);
    if lines.len() > 1 && lines.last() == Some(&"") {
        lines.pop();
    }
    lines
}

/// The edits that turn a buffer with the text `old` into one with the text `new`, from the bottom up. Both have `\n` for
/// line breaks. Lines that are the same in both are not touched.
pub fn buffer_edits(old: &str, new: &str) -> Vec<BufferEdit> {
    let (old, new) = (buffer_lines(old), buffer_lines(new));
    changes(&old, &new).into_iter().rev().map(|change| edit(&change, &old, &new)).collect()
}

fn edit(change: &Change, old: &[&str], new: &[&str]) -> BufferEdit {
    let Range { start, end } = change.old;
    let mut lines: Vec<String> = new[change.new.clone()].iter().map(|&line| line.to_owned()).collect();
    if start < end && !lines.is_empty() {
        let last = end - 1;
        return BufferEdit { row: start, col: 0, end_row: last, end_col: old[last].len(), lines };
    }
    if end < old.len() {
        // Before a line that stays.
        lines.push(String::new());
        return BufferEdit { row: start, col: 0, end_row: end, end_col: 0, lines };
    }
    // At the end, together with the line break before. There is one: a text has a line at least.
    lines.insert(0, String::new());
    let before = start.saturating_sub(1);
    let last = end - 1;
    BufferEdit { row: before, col: old[before].len(), end_row: last, end_col: old[last].len(), lines }
}

/// The lines of `text` that `range` asks for, with their line breaks.
///
/// # Errors
/// One sentence when the first line lies beyond the end.
pub fn lines(text: &str, range: ReadRange) -> Result<&str, String> {
    // Line 0, which some agents send, is taken as the first.
    let skip = range.line.unwrap_or(1).max(1) - 1;
    let start = match nth_line(text, skip) {
        Ok(start) => start,
        Err(count) => return Err(format!("line {} is beyond the end, the file has {count} lines", skip + 1)),
    };
    let end = match range.limit {
        Some(limit) => nth_line(&text[start..], limit).map_or(text.len(), |length| start + length),
        None => text.len(),
    };
    Ok(&text[start..end])
}

/// The byte at which the line with this 0-based number begins, or the number of lines.
fn nth_line(text: &str, number: u64) -> Result<usize, u64> {
    let mut start = 0;
    for line in 0..number {
        match text[start..].find('\n') {
            Some(length) => start += length + 1,
            None => return Err(line + u64::from(start < text.len())),
        }
    }
    if start == text.len() && number > 0 { Err(number) } else { Ok(start) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn apply(old: &str, edits: &[BufferEdit]) -> Vec<String> {
        let mut lines: Vec<String> = buffer_lines(old).iter().map(|&line| line.to_owned()).collect();
        for edit in edits {
            let before = lines[edit.row][..edit.col].to_owned();
            let after = lines[edit.end_row][edit.end_col..].to_owned();
            let mut new = edit.lines.clone();
            new[0].insert_str(0, &before);
            let last = new.len() - 1;
            new[last].push_str(&after);
            lines.splice(edit.row..=edit.end_row, new);
        }
        lines
    }

    proptest! {
        #[test]
        fn edits_lead_from_old_to_new(old in "[abc\n]{0,24}", new in "[abc\n]{0,24}") {
            prop_assert_eq!(apply(&old, &buffer_edits(&old, &new)), buffer_lines(&new));
        }

        #[test]
        fn lines_are_those_of_the_text(text in "[ab\n]{0,20}", line in 1u64..8, limit in 0u64..8) {
            let all: Vec<&str> = text.split_inclusive('\n').collect();
            let skip = usize::try_from(line - 1).expect("small");
            let expected: String = all.iter().skip(skip).take(usize::try_from(limit).expect("small")).copied().collect();
            match lines(&text, ReadRange { line: Some(line), limit: Some(limit) }) {
                Ok(part) => prop_assert_eq!(part, expected),
                Err(problem) => {
                    prop_assert!(skip >= all.len().max(1), "{}", problem);
                    let counted = format!("has {} lines", all.len());
                    prop_assert!(problem.contains(&counted), "{}", problem);
                }
            }
        }
    }

    #[test]
    fn one_changed_line_is_one_edit() {
        let edits = buffer_edits("a\nb\nc\n", "a\nX\nc\n");
        assert_eq!(edits, [BufferEdit { row: 1, col: 0, end_row: 1, end_col: 1, lines: vec!["X".into()] }]);
        assert_eq!(buffer_edits("a\nb\n", "a\nb\n"), []);
    }

    #[test]
    fn a_text_takes_the_form_of_the_file() {
        assert_eq!(in_form_of("a\r\nb\r\n", "x\ny\r\nz"), "x\r\ny\r\nz");
        assert_eq!(in_form_of("a\nb\n", "x\r\ny\n"), "x\ny\n");
        assert_eq!(in_form_of("a\r\nb\n", "x\r\ny\n"), "x\r\ny\n", "a mixture is the agent's to keep");
        assert_eq!(in_form_of("no line break", "x\r\ny"), "x\r\ny");
        assert_eq!(in_form_of("\u{feff}a", "x"), "\u{feff}x");
        assert_eq!(in_form_of("\u{feff}a", "\u{feff}x"), "\u{feff}x");
        assert_eq!(in_form_of("a", "\u{feff}x"), "\u{feff}x");
    }

    #[test]
    fn a_buffer_has_the_line_breaks_of_its_format_only() {
        assert_eq!(in_buffer("a\r\nb\rc\n", "\n"), "a\r\nb\rc\n");
        assert_eq!(in_buffer("a\r\nb\rc\r\n", "\r\n"), "a\nb\rc\n");
        assert_eq!(in_buffer("a\rb\rc", "\r"), "a\nb\nc");
    }
}
