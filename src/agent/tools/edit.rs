//! Replacing a piece of a text: pure.

use crate::files::edits::{as_read, in_form_of};

/// A replacement that is possible.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edited {
    /// The whole new text, in the form of the old one.
    pub(super) text: String,
    /// The first line that changes, from 1.
    pub(super) line: u32,
}

/// Replaces `old` by `new` in a text. Line breaks are those of the text, whichever the model wrote.
///
/// # Errors
/// Why not, for the model.
pub(super) fn replace(text: &str, old: &str, new: &str, all: bool) -> Result<Edited, String> {
    let lines = as_read(text);
    let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    if old.is_empty() {
        return Err(
            "old_text is empty: say which text is to be replaced, or use write_file for a whole file".to_owned()
        );
    }
    if old == new {
        return Err("old_text and new_text are the same".to_owned());
    }
    let places: Vec<usize> = lines.match_indices(&old).map(|(at, _)| at).collect();
    let (changed, at) = match places.as_slice() {
        [] => {
            let (range, indented) = alike(&lines, &old, &new)?;
            let mut changed = lines.to_string();
            changed.replace_range(range.clone(), &indented);
            (changed, range.start)
        }
        [at] => (lines.replacen(&old, &new, 1), *at),
        [at, ..] if all => (lines.replace(&old, &new), *at),
        many => {
            let at: Vec<String> = many.iter().take(10).map(|at| line_of(&lines, *at).to_string()).collect();
            return Err(format!(
                "old_text is there {} times, at the lines {}: add lines around it until it is unique, or say replace_all",
                many.len(),
                at.join(", ")
            ));
        }
    };
    let line = line_of(&lines, at);
    Ok(Edited { text: in_form_of(text, &changed).into_owned(), line })
}

fn line_of(text: &str, at: usize) -> u32 {
    u32::try_from(text[..at].matches('\n').count() + 1).unwrap_or(u32::MAX)
}

/// Where `old` is but for blanks at the ends of its lines and the indentation of all of them, and what is to take its place
/// there.
fn alike(text: &str, old: &str, new: &str) -> Result<(std::ops::Range<usize>, String), String> {
    let wanted: Vec<&str> = old.trim_end_matches('\n').split('\n').map(str::trim_end).collect();
    let mut rows: Vec<(usize, &str)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        rows.push((at, line.trim_end()));
        at += line.len();
    }
    let fits = |from: usize| {
        let here = rows.get(from..from + wanted.len())?;
        let shift = |here: &str, wanted: &str| (!wanted.is_empty()).then(|| shift(here, wanted)).flatten();
        let first = here.iter().zip(&wanted).find(|(_, wanted)| !wanted.is_empty());
        let by = shift(first?.0.1, first?.1)?;
        let is_same = here.iter().zip(&wanted).all(|((_, here), wanted)| {
            wanted.trim_start() == here.trim_start() && (wanted.is_empty() || shift(here, wanted) == Some(by.clone()))
        });
        is_same.then_some((from, by))
    };
    let found: Vec<(usize, Shift)> = (0..rows.len()).filter_map(fits).collect();
    match found.as_slice() {
        [(from, by)] => {
            let start = rows[*from].0;
            let end = rows.get(from + wanted.len()).map_or(text.len(), |(at, _)| *at);
            let mut indented =
                new.trim_end_matches('\n').split('\n').map(|line| by.apply(line)).collect::<Vec<_>>().join("\n");
            if text[start..end].ends_with('\n') && !(new.is_empty()) {
                indented.push('\n');
            }
            Ok((start..end, indented))
        }
        [] => Err(nearest(&rows, &wanted)),
        many => Err(format!(
            "old_text is not there exactly, and nearly {} times: read the file again and copy the lines as they are",
            many.len()
        )),
    }
}

/// How the indentation differs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shift {
    Add(String),
    Remove(String),
}

fn shift(here: &str, wanted: &str) -> Option<Shift> {
    let indent = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
    let (here, wanted) = (indent(here), indent(wanted));
    if let Some(more) = here.strip_suffix(&wanted) {
        return Some(Shift::Add(more.to_owned()));
    }
    wanted.strip_suffix(&here).map(|less| Shift::Remove(less.to_owned()))
}

impl Shift {
    fn apply(&self, line: &str) -> String {
        match self {
            _ if line.trim().is_empty() => line.to_owned(),
            Self::Add(more) => format!("{more}{line}"),
            Self::Remove(less) => line.strip_prefix(less.as_str()).unwrap_or_else(|| line.trim_start()).to_owned(),
        }
    }
}

/// What to tell about a text that is not there.
fn nearest(rows: &[(usize, &str)], wanted: &[&str]) -> String {
    let first = wanted.iter().map(|line| line.trim()).find(|line| !line.is_empty()).unwrap_or_default();
    let at = rows.iter().position(|(_, line)| line.trim() == first);
    match at {
        Some(at) => format!(
            "old_text is not there; its first line is line {}, and what follows differs: read the file from there and copy the lines as they are",
            at + 1
        ),
        None => "old_text is not there: read the file again and copy the lines as they are".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(of: &Result<Edited, String>) -> &str {
        of.as_ref().map_or_else(String::as_str, |edited| edited.text.as_str())
    }

    #[test]
    fn one_place_is_replaced_in_the_form_of_the_file() {
        let edited = replace("a\nb\nc\n", "b\n", "B\n", false).unwrap();
        assert_eq!((edited.text.as_str(), edited.line), ("a\nB\nc\n", 2));
        assert_eq!(text(&replace("\u{feff}a\r\nb\r\n", "a\nb", "a\nx\nb", false)), "\u{feff}a\r\nx\r\nb\r\n");
        assert_eq!(text(&replace("a b", "b", "c", false)), "a c");
        assert_eq!(text(&replace("x x", "x", "y", true)), "y y");
    }

    #[test]
    fn what_cannot_be_done_is_told_so_that_the_model_can_act_on_it() {
        let refused = |text: &str, old: &str, new: &str| replace(text, old, new, false).unwrap_err();
        assert!(refused("x\nx\n", "x", "y").contains("2 times, at the lines 1, 2"));
        assert!(refused("a\nb\n", "a\nc", "x").contains("its first line is line 1"));
        assert!(refused("a\n", "q", "x").contains("read the file again"));
        assert!(refused("a\n", "", "x").contains("write_file"));
        assert!(refused("a\n", "a", "a").contains("the same"));
    }

    #[test]
    fn indentation_and_blanks_at_the_end_that_differ_are_those_of_the_file() {
        let file = "fn f() {\n    if x {  \n        y();\n    }\n}\n";
        let edited = replace(file, "if x {\n    y();\n}", "if x {\n    z();\n\n    y();\n}", false).unwrap();
        assert_eq!(edited.text, "fn f() {\n    if x {\n        z();\n\n        y();\n    }\n}\n");
        assert_eq!(edited.line, 2);
        assert!(replace("  a\nb\n", "a\n b", "x", false).is_err(), "another shape is another text");
    }

    proptest! {
        #[test]
        fn all_else_stays(before in "[a-c\n]{0,20}", old in "[x-z\n]{1,6}", new in "[A-C\n]{0,6}", after in "[a-c\n]{0,20}") {
            prop_assume!(old.contains(['x', 'y', 'z']) && !old.starts_with('\n') && !old.ends_with('\n'));
            let edited = replace(&format!("{before}{old}{after}"), &old, &new, false);
            prop_assert_eq!(text(&edited), format!("{before}{new}{after}"));
        }
    }
}
