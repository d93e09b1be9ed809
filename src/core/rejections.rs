//! What the user rejected of an agent's changes, which the agent hears with the next prompt: its own text is no more what is in
//! the files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Changes that are told one by one; of more, only their number is.
const TOLD: usize = 12;
/// Bytes of a line that are told.
const LINE_BYTES: usize = 100;

/// A change of the agent's that the user took back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Its number in the file.
    pub hunk: u64,
    /// The row of the file where it was, 0-based.
    pub row: usize,
    /// The first line that the agent had written; `None` if it had only deleted.
    pub line: Option<String>,
    /// How many lines it had written.
    pub lines: usize,
    /// How many lines came back.
    pub old_lines: usize,
}

/// Everything of that kind since the last prompt, in order.
#[derive(Debug, Default)]
pub(super) struct Rejections(Vec<(PathBuf, Rejection)>);

impl Rejections {
    pub(super) fn add(&mut self, path: &Path, rejected: Vec<Rejection>) {
        self.0.extend(rejected.into_iter().map(|rejection| (path.to_owned(), rejection)));
    }

    /// These are pending again: the user undid the rejection.
    pub(super) fn withdraw(&mut self, path: &Path, hunks: &[u64]) {
        self.0.retain(|(of, rejection)| of != path || !hunks.contains(&rejection.hunk));
    }

    /// What the agent is told, and the same in short for the user; nothing the next time.
    pub(super) fn take(&mut self, cwd: &Path) -> Option<(String, String)> {
        let rejected = std::mem::take(&mut self.0);
        let shown = |path: &Path| path.strip_prefix(cwd).unwrap_or(path).display().to_string();
        let first = shown(&rejected.first()?.0);
        let mut text =
            "Note from the editor: since your last turn the user rejected these changes of yours, and the files \
                        do not have them any more:"
                .to_owned();
        for (path, rejection) in rejected.iter().take(TOLD) {
            let place = format!("{}:{}", shown(path), rejection.row + 1);
            // Writing to a string cannot fail.
            let _ = match &rejection.line {
                Some(line) if rejection.lines > 1 => {
                    write!(text, "\n- {place}: {} lines from `{}` on", rejection.lines, short(line))
                }
                Some(line) => write!(text, "\n- {place}: `{}`", short(line)),
                None => write!(text, "\n- {place}: the deletion of {}", counted(rejection.old_lines, "line")),
            };
        }
        if let Some(more @ 1..) = rejected.len().checked_sub(TOLD) {
            let _ = write!(text, "\n- and {more} more");
        }
        let is_one_file = rejected.iter().all(|(path, _)| shown(path) == first);
        let place = if is_one_file { format!(" in {first}") } else { String::new() };
        let what = counted(rejected.len(), "rejected change");
        Some((text, format!("The agent is told of {what}{place}.")))
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The beginning of a line.
fn short(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().find(|(at, letter)| at + letter.len_utf8() > LINE_BYTES) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection(hunk: u64, line: Option<&str>, lines: usize) -> Rejection {
        Rejection { hunk, row: 6, line: line.map(str::to_owned), lines, old_lines: 2 }
    }

    #[test]
    fn each_change_is_told_once_with_its_place() {
        let mut rejections = Rejections::default();
        assert_eq!(rejections.take(Path::new("/p")), None);
        rejections.add(Path::new("/p/a.rs"), vec![rejection(1, Some("  new();"), 1), rejection(2, None, 0)]);
        rejections.add(Path::new("/q/b.rs"), vec![rejection(1, Some("one"), 3)]);
        rejections.withdraw(Path::new("/q/b.rs"), &[2, 3]);
        let (text, note) = rejections.take(Path::new("/p")).expect("there is something to tell");
        let told: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            told,
            ["- a.rs:7: `new();`", "- a.rs:7: the deletion of 2 lines", "- /q/b.rs:7: 3 lines from `one` on"]
        );
        assert_eq!(note, "The agent is told of 3 rejected changes.");
        assert_eq!(rejections.take(Path::new("/p")), None);
    }

    #[test]
    fn what_is_pending_again_is_not_told_and_much_is_told_in_short() {
        let mut rejections = Rejections::default();
        let path = Path::new("/p/a");
        rejections.add(path, (0..20).map(|hunk| rejection(hunk, Some(&"é".repeat(99)), 1)).collect());
        rejections.withdraw(path, &[0, 1]);
        let (text, note) = rejections.take(Path::new("/p")).expect("there is something to tell");
        assert!(text.ends_with("\n- and 6 more") && text.len() < 2_000, "{text}");
        assert_eq!(note, "The agent is told of 18 rejected changes in a.");
        rejections.add(path, vec![rejection(1, None, 0)]);
        rejections.withdraw(path, &[1]);
        assert_eq!(rejections.take(Path::new("/p")), None);
    }
}
