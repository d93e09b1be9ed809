//! A change to a file, as lines.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use similar::{ChangeTag, TextDiff};

use super::cards::relative;
use super::ops::short_line;

/// A diff that takes longer is cut coarser.
const DEADLINE: Duration = Duration::from_millis(50);
/// Unchanged lines around each change.
const CONTEXT: usize = 2;
/// Lines that are kept.
const MAX_LINES: usize = 2_000;
/// Lines of a change that a permission request shows.
const PREVIEW_LINES: usize = 12;

/// A change, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct DiffLines {
    /// The path and how many lines are added and removed.
    pub(super) heading: String,
    /// The changed lines and some around them, with their groups.
    pub(super) lines: Vec<(String, &'static str)>,
    /// How many more lines there are.
    pub(super) hidden: usize,
}

/// The lines of a change; `old` is `None` for a new file, and often only a part of the file.
fn diff(path: &str, old: Option<&str>, new: &str, cwd: &Path, context: usize, limit: usize) -> DiffLines {
    let before = old.unwrap_or_default();
    let changes = TextDiff::configure().deadline(Instant::now() + DEADLINE).diff_lines(before, new);
    let (mut added, mut removed, mut hidden, mut lines) = (0, 0, 0, Vec::new());
    for (nth, group) in changes.grouped_ops(context).iter().enumerate() {
        if nth > 0 && context > 0 && lines.len() < limit {
            lines.push(("⋯".to_owned(), "AgentChatDim"));
        }
        for change in group.iter().flat_map(|op| changes.iter_changes(op)) {
            let (sign, group) = match change.tag() {
                ChangeTag::Equal => (' ', "AgentChatDim"),
                ChangeTag::Insert => {
                    added += 1;
                    ('+', "AgentChatAdded")
                }
                ChangeTag::Delete => {
                    removed += 1;
                    ('-', "AgentChatRemoved")
                }
            };
            if lines.len() < limit {
                lines.push((format!("{sign} {}", short_line(change.value().trim_end_matches(['\n', '\r']))), group));
            } else {
                hidden += 1;
            }
        }
    }
    let new_file = if old.is_none() { " (new file)" } else { "" };
    let heading = format!("± {}{new_file}  +{added} −{removed}", relative(path, cwd));
    DiffLines { heading, lines, hidden }
}

/// The beginning of a change, without what is around it.
pub(super) fn preview(path: &str, old: Option<&str>, new: &str, cwd: &Path) -> Vec<String> {
    let DiffLines { heading, lines, hidden } = diff(path, old, new, cwd, 0, PREVIEW_LINES);
    let mut shown = vec![heading];
    shown.extend(lines.into_iter().map(|(line, _)| line));
    if hidden > 0 {
        shown.push(format!("… {hidden} more changed lines"));
    }
    shown
}

/// The diffs of one call, so that an update which repeats them costs a comparison of texts, and not a diff.
#[derive(Debug, Default)]
pub(super) struct DiffCache {
    /// By the position among the call's content.
    known: BTreeMap<usize, Known>,
}

#[derive(Debug)]
struct Known {
    path: String,
    old: Option<Arc<str>>,
    new: Arc<str>,
    lines: DiffLines,
}

impl DiffCache {
    /// The lines of the call's content number `nth`.
    pub(super) fn lines(
        &mut self,
        nth: usize,
        path: &str,
        old: Option<&Arc<str>>,
        new: &Arc<str>,
        cwd: &Path,
    ) -> &DiffLines {
        let render = || {
            let lines = diff(path, old.map(AsRef::as_ref), new, cwd, CONTEXT, MAX_LINES);
            Known { path: path.to_owned(), old: old.cloned(), new: Arc::clone(new), lines }
        };
        let known = self.known.entry(nth).or_insert_with(render);
        if known.path != path || known.old.as_ref() != old || known.new != *new {
            *known = render();
        }
        &known.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(old: &str, new: &str) -> Vec<String> {
        let shown = diff("/p/a", Some(old), new, Path::new("/p"), CONTEXT, 6);
        [shown.heading].into_iter().chain(shown.lines.into_iter().map(|(line, _)| line)).collect()
    }

    #[test]
    fn a_change_is_shown_with_what_is_around_it() {
        assert_eq!(lines("a\nb\nc\nd\ne\n", "a\nb\nc\nX\ne\n"), ["± a  +1 −1", "  b", "  c", "- d", "+ X", "  e"]);
        let far = lines("a\nb\nc\nd\ne\nf\ng\n", "X\nb\nc\nd\ne\nf\nY\n");
        assert_eq!(far, ["± a  +2 −2", "- a", "+ X", "  b", "  c", "⋯", "  e"]);
    }

    #[test]
    fn the_cache_gives_what_was_asked_for() {
        let mut cache = DiffCache::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a\n".into(), "b\n".into());
        let mut heading = |nth, path: &str, old: Option<&Arc<str>>, new: &Arc<str>| {
            cache.lines(nth, path, old, new, Path::new("/p")).heading.clone()
        };
        assert_eq!(heading(0, "/p/x", None, &a), "± x (new file)  +1 −0");
        assert_eq!(heading(2, "/p/y", Some(&a), &b), "± y  +1 −1");
        assert_eq!(heading(0, "/p/x", Some(&a), &a), "± x  +0 −0");
        assert_eq!(heading(2, "/p/z", Some(&a), &b), "± z  +1 −1");
    }
}
