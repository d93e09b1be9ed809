//! What a tool call proposes to do to files, wherever the agent put it: a diff in its content, or one of the forms that
//! agents use in a call's raw arguments. Often the old text is a fragment of the file.

use serde_json::Value;

use crate::core::tool_call::{ToolCall, ToolContent};

/// Proposals of one call that are looked for in files.
const MOST: usize = 50;
/// Bytes of all of them. Longer ones are seen in the transcript only.
const MOST_BYTES: usize = 256 * 1024;

/// A text that is to take the place of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// As the agent wrote it.
    pub path: String,
    /// The text that is replaced: the file's or a part of it. `None` for a whole file.
    pub old: Option<String>,
    /// What comes there.
    pub new: String,
}

/// All that a call proposes, as far as it is short enough.
pub fn proposals(tool: &ToolCall) -> Vec<Proposal> {
    let mut found: Vec<Proposal> = tool
        .content
        .iter()
        .filter_map(|content| match content {
            ToolContent::Diff { path, old, new } => {
                Some(Proposal { path: path.clone(), old: old.as_deref().map(str::to_owned), new: new.to_string() })
            }
            _ => None,
        })
        .collect();
    if found.is_empty()
        && let Some(input) = &tool.raw_input
    {
        let fallback = tool.locations.first().map_or("", |location| &location.path);
        found = from_input(input, fallback);
    }
    let mut bytes = 0;
    found.retain(|proposal| {
        bytes += proposal.old.as_ref().map_or(0, String::len) + proposal.new.len();
        !proposal.path.is_empty() && proposal.old.as_ref() != Some(&proposal.new) && bytes <= MOST_BYTES
    });
    found.truncate(MOST);
    found
}

/// The first of these fields that is a text.
fn field<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| value.get(name)?.as_str())
}

const PATH: &[&str] = &["file_path", "filePath", "path", "abs_path", "filename", "file"];
const OLD: &[&str] = &["old_string", "oldString", "old_str", "oldText", "old_text"];
const NEW: &[&str] = &["new_string", "newString", "new_str", "newText", "new_text"];

fn from_input(input: &Value, fallback: &str) -> Vec<Proposal> {
    let path = field(input, PATH).unwrap_or(fallback);
    if let Some(edits) = input.get("edits").and_then(Value::as_array) {
        return edits.iter().filter_map(|edit| replaced(edit, field(edit, PATH).unwrap_or(path))).collect();
    }
    if let Some(proposal) = replaced(input, path) {
        return vec![proposal];
    }
    if let Some(text) = field(input, &["diff", "patch", "unified_diff", "patchText", "input"]) {
        return from_diff(text, path);
    }
    if let Some(changes) = input.get("changes").and_then(Value::as_object) {
        return changes.iter().flat_map(|(path, change)| from_change(path, change)).collect();
    }
    let whole = field(input, &["content", "file_text"]);
    whole.map(|new| Proposal { path: path.to_owned(), old: None, new: new.to_owned() }).into_iter().collect()
}

fn replaced(edit: &Value, path: &str) -> Option<Proposal> {
    let new = field(edit, NEW)?;
    Some(Proposal { path: path.to_owned(), old: Some(field(edit, OLD)?.to_owned()), new: new.to_owned() })
}

/// One file of codex' `changes`: `{type: "update", unified_diff}`, or `{update: {unified_diff}}`, and so for `add`.
fn from_change(path: &str, change: &Value) -> Vec<Proposal> {
    let inner = change.get("update").or_else(|| change.get("add")).unwrap_or(change);
    if let Some(diff) = field(inner, &["unified_diff", "diff"]) {
        return from_diff(diff, path);
    }
    let whole = field(inner, &["content"]).filter(|_| change.get("type").is_none_or(|kind| kind == "add"));
    whole.map(|new| Proposal { path: path.to_owned(), old: None, new: new.to_owned() }).into_iter().collect()
}

/// The hunks of a unified diff, or of a patch with `*** Update File:` lines; `path` is the file where no line names one.
fn from_diff(diff: &str, path: &str) -> Vec<Proposal> {
    let mut reader = Reader { path: path.to_owned(), ..Reader::default() };
    for line in diff.lines() {
        reader.line(line);
    }
    reader.end_hunk();
    reader.found
}

#[derive(Default)]
struct Reader {
    path: String,
    is_new_file: bool,
    in_hunk: bool,
    old: String,
    new: String,
    found: Vec<Proposal>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let add = |text: &mut String, line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        if let Some(path) = line.strip_prefix("*** Update File: ") {
            self.file(path, false);
        } else if let Some(path) = line.strip_prefix("*** Add File: ") {
            self.file(path, true);
            self.in_hunk = true;
        } else if line.starts_with("*** ") || line.starts_with("diff --git ") {
            self.end_hunk();
        } else if let Some(path) = line.strip_prefix("+++ ").filter(|_| !self.in_hunk) {
            let path = path.split('\t').next().unwrap_or(path);
            if self.path.is_empty() {
                path.strip_prefix("b/").unwrap_or(path).clone_into(&mut self.path);
            }
        } else if line.starts_with("@@") {
            self.end_hunk();
            self.in_hunk = true;
        } else if !self.in_hunk {
            self.is_new_file |= line == "--- /dev/null";
        } else if let Some(added) = line.strip_prefix('+') {
            add(&mut self.new, added);
        } else if let Some(removed) = line.strip_prefix('-') {
            add(&mut self.old, removed);
        } else if !line.starts_with('\\') {
            let kept = line.strip_prefix(' ').unwrap_or(line);
            add(&mut self.old, kept);
            add(&mut self.new, kept);
        }
    }

    fn file(&mut self, path: &str, is_new: bool) {
        self.end_hunk();
        path.trim().clone_into(&mut self.path);
        self.is_new_file = is_new;
    }

    fn end_hunk(&mut self) {
        let (old, new) = (std::mem::take(&mut self.old), std::mem::take(&mut self.new));
        if self.in_hunk && old != new {
            let old = (!self.is_new_file).then_some(old);
            self.found.push(Proposal { path: self.path.clone(), old, new });
        }
        self.in_hunk = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(input: &Value) -> Vec<(String, Option<String>, String)> {
        from_input(input, "/f").into_iter().map(|found| (found.path, found.old, found.new)).collect()
    }

    fn expected(path: &str, old: &str, new: &str) -> Vec<(String, Option<String>, String)> {
        vec![(path.into(), Some(old.into()), new.into())]
    }

    #[test]
    fn the_names_that_agents_give_to_old_and_new_text_are_known() {
        for (path, old, new) in [
            ("file_path", "old_string", "new_string"),
            ("filePath", "oldString", "newString"),
            ("path", "old_str", "new_str"),
        ] {
            assert_eq!(of(&json!({ path: "/a", old: "x", new: "y" })), expected("/a", "x", "y"));
        }
        let edits = json!({ "file_path": "/a", "edits": [{ "old_string": "x", "new_string": "y" }] });
        assert_eq!(of(&edits), expected("/a", "x", "y"));
        assert_eq!(of(&json!({ "file_path": "/a", "content": "x" })), [("/a".into(), None, "x".into())]);
        assert!(of(&json!({ "command": "ls" })).is_empty());
    }

    #[test]
    fn the_hunks_of_diffs_and_patches_are_fragments() {
        let unified = "--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";
        assert_eq!(of(&json!({ "diff": unified })), expected("/f", "one\ntwo\nthree\n", "one\nTWO\nthree\n"));
        let named = from_diff(unified, "");
        assert_eq!(named[0].path, "f.txt");
        let codex = json!({ "changes": { "/a": { "type": "update", "unified_diff": "@@ -1 +1 @@\n-x\n+y\n" } } });
        assert_eq!(of(&codex), expected("/a", "x\n", "y\n"));
        let patch = "*** Begin Patch\n*** Update File: /a\n@@\n-x\n+y\n*** Add File: /b\n+new\n*** End Patch\n";
        let mut both = expected("/a", "x\n", "y\n");
        both.push(("/b".into(), None, "new\n".into()));
        assert_eq!(of(&json!({ "patch": patch })), both);
    }

    #[test]
    fn what_is_no_diff_proposes_nothing() {
        for input in [json!(null), json!([1]), json!({ "diff": "+x\n-y" }), json!({ "changes": { "/a": 3 } })] {
            assert!(of(&input).is_empty(), "{input}");
        }
    }
}
