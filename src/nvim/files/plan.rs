//! What becomes of a write into a buffer that the user may have changed: pure.
//!
//! All texts here are those of buffers: `\n` for line breaks, no byte order mark.

use crate::changes::merge::{Conflicts, merge_texts};
use crate::changes::{changes, lines};

/// What there is when an agent writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene<'a> {
    /// The buffer's text.
    pub(super) buffer: &'a str,
    /// The file's text; `None` if it is not there or in an encoding that only the buffer understands.
    pub(super) disk: Option<&'a str>,
    /// Whether the buffer has unsaved changes.
    pub(super) is_modified: bool,
    /// Whether somebody else changed the file since the buffer with unsaved changes was read or saved.
    pub(super) is_behind: bool,
    /// What the agent based its text on.
    pub(super) base: Base<'a>,
    /// Whether unsaved changes of the user's may be saved along.
    pub(super) save_dirty: bool,
}

/// What an agent based its text on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Base<'a> {
    /// It has neither read nor written the file through Neovim: what it knows, it has from the disk, as that is now or was
    /// when the turn began (if that is known).
    Nothing { at_start: Option<&'a str> },
    /// This text; `is_of_disk` if the disk had it, too.
    Text { text: &'a str, is_of_disk: bool },
    /// Something that is neither in the buffer nor on the disk, and not known any more.
    Forgotten,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// What the buffer is to hold.
    pub(super) text: String,
    /// The same without the agent's part.
    pub(super) before: String,
    /// How the file gets its text.
    pub(super) saving: Saving,
    /// Whether `text` is what the agent wrote and nothing else.
    pub(super) is_as_meant: bool,
}

/// How a file gets its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Saving {
    /// The buffer is saved.
    Buffer,
    /// The file gets this, and the buffer stays unsaved.
    File(String),
}

/// Why nothing is done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Clash {
    /// There is no base for a merge.
    #[error("it has changes of the user")]
    Unseen,
    /// The user changed the same lines; the rows are those of their text.
    #[error("the user changed {}, which you changed, too", places(.0))]
    Lines(Conflicts),
    /// The file was changed beside unsaved changes of the user that the agent's text is based on.
    #[error("another program changed the file while the user has unsaved changes in it")]
    Behind,
}

/// Where the user's side of a conflict is, for a reader who counts lines from 1.
fn places(conflicts: &Conflicts) -> String {
    const SHOWN: usize = 5;
    let mut places: Vec<String> = conflicts
        .0
        .iter()
        .take(SHOWN)
        .map(|conflict| match (conflict.ours.start + 1, conflict.ours.end) {
            (first, last) if last > first => format!("lines {first} to {last}"),
            (first, _) => format!("line {first}"),
        })
        .collect();
    if conflicts.0.len() > SHOWN {
        places.push(format!("{} more places", conflicts.0.len() - SHOWN));
    }
    places.join(", ")
}

/// What to do with `theirs`, the text that the agent writes.
pub(super) fn plan(scene: Scene, theirs: &str) -> Result<Plan, Clash> {
    let Scene { buffer, disk, is_modified, is_behind, base, save_dirty } = scene;
    // A buffer without changes of the user may be older than its file; what the user has is the file.
    let users = if is_modified { buffer } else { disk.unwrap_or(buffer) };
    let (base, is_of_disk) = match base {
        Base::Nothing { at_start } => (read_by_itself(at_start, disk.unwrap_or(users), theirs), disk.is_some()),
        Base::Text { text, is_of_disk } => (text, is_of_disk),
        Base::Forgotten => return Err(Clash::Unseen),
    };
    let others = disk.filter(|disk| is_modified && is_behind && *disk != base);
    if others.is_some() && !is_of_disk {
        return Err(Clash::Behind);
    }
    let before = match others {
        Some(disk) => merge_texts(base, users, disk).map_err(Clash::Lines)?,
        None => users.to_owned(),
    };
    let text = merge_texts(base, &before, theirs).map_err(Clash::Lines)?;
    let is_as_meant = text == theirs;
    let saving = if !is_modified || save_dirty || is_as_meant {
        Saving::Buffer
    } else {
        let on_disk = others.map(|disk| merge_texts(base, disk, theirs)).transpose();
        Saving::File(on_disk.map_err(Clash::Lines)?.unwrap_or_else(|| theirs.to_owned()))
    };
    Ok(Plan { text, before, saving, is_as_meant })
}

/// Which text of the disk an agent has read that reads with its own tools: nobody tells, but it writes most of it again. If
/// in doubt the older one, with which the user's changes since are kept or are a clash.
pub(super) fn read_by_itself<'a>(at_start: Option<&'a str>, now: &'a str, theirs: &str) -> &'a str {
    let Some(at_start) = at_start.filter(|at_start| *at_start != now) else { return now };
    let distance = |from: &str| -> usize {
        let ((from, _), (to, _)) = (lines(from), lines(theirs));
        changes(&from, &to).iter().map(|change| change.old.len() + change.new.len()).sum()
    };
    if distance(at_start) <= distance(now) { at_start } else { now }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: &str = "a\nb\nc\nd\ne\n";

    fn scene(buffer: &'static str, disk: &'static str) -> Scene<'static> {
        Scene {
            buffer,
            disk: Some(disk),
            is_modified: buffer != disk,
            is_behind: false,
            base: Base::Text { text: READ, is_of_disk: true },
            save_dirty: false,
        }
    }

    fn file(text: &str) -> Saving {
        Saving::File(text.to_owned())
    }

    #[test]
    fn unsaved_changes_stay_unsaved_and_the_file_is_as_the_agent_meant_it() {
        let dirty = scene("A\nb\nc\nd\ne\n", READ);
        let done = plan(dirty, "a\nb\nc\nd\nE\n").expect("it merges");
        assert_eq!((done.text.as_str(), done.saving), ("A\nb\nc\nd\nE\n", file("a\nb\nc\nd\nE\n")));
        let done = plan(Scene { save_dirty: true, ..dirty }, "a\nb\nc\nd\nE\n").expect("it merges");
        assert_eq!((done.text.as_str(), done.saving), ("A\nb\nc\nd\nE\n", Saving::Buffer));
    }

    #[test]
    fn what_the_agent_has_seen_is_its_to_change() {
        let base = Base::Text { text: "A\nb\n", is_of_disk: false };
        let done = plan(Scene { base, ..scene("A\nb\n", "a\nb\n") }, "A!\nb\n").expect("nothing is in the way");
        assert!(done.is_as_meant && done.saving == Saving::Buffer);
    }

    #[test]
    fn changes_that_were_saved_meanwhile_are_kept() {
        let saved = scene("A\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n");
        let done = plan(saved, "a\nb\nc\nd\nE\n").expect("it merges");
        assert_eq!((done.text.as_str(), done.saving, done.is_as_meant), ("A\nb\nc\nd\nE\n", Saving::Buffer, false));
    }

    #[test]
    fn what_another_program_did_behind_unsaved_changes_is_kept_on_both_sides() {
        let behind = Scene { is_behind: true, ..scene("A\nb\nc\nd\ne\n", "a\nb\nC\nd\ne\n") };
        let done = plan(behind, "a\nb\nc\nd\nE\n").expect("it merges");
        assert_eq!((done.text.as_str(), done.saving), ("A\nb\nC\nd\nE\n", file("a\nb\nC\nd\nE\n")));
        let base = Base::Text { text: "A\nb\nc\nd\ne\n", is_of_disk: false };
        assert_eq!(plan(Scene { base, ..behind }, READ), Err(Clash::Behind));
    }

    #[test]
    fn the_same_lines_are_a_clash_that_names_them() {
        let clash = plan(scene("a\nB\nc\nd\ne\n", READ), "a\nbb\nc\nd\ne\n").expect_err("both changed a line");
        assert_eq!(clash.to_string(), "the user changed line 2, which you changed, too");
        let base = Base::Forgotten;
        assert_eq!(plan(Scene { base, ..scene("A\n", READ) }, READ), Err(Clash::Unseen));
    }

    #[test]
    fn an_agent_that_never_read_is_taken_to_know_the_disk() {
        let base = Base::Nothing { at_start: None };
        let done = plan(Scene { base, ..scene("A\nb\nc\n", "a\nb\nc\n") }, "a\nb\nC\n").expect("it merges");
        assert_eq!(done.text, "A\nb\nC\n");
        assert!(plan(Scene { base, ..scene("A\nb\nc\n", "a\nb\nc\n") }, "x\nb\nc\n").is_err());
    }

    #[test]
    fn what_the_user_saved_after_an_agent_read_with_its_own_tools_is_kept() {
        let base = Base::Nothing { at_start: Some(READ) };
        let saved = Scene { base, ..scene("A\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n") };
        let done = plan(saved, "a\nb\nc\nd\nE\n").expect("it merges");
        assert_eq!(done.text, "A\nb\nc\nd\nE\n", "it read before the save");
        assert!(plan(saved, "x\nb\nc\nd\ne\n").is_err(), "it read before the save and changed the same line");
        let done = plan(saved, "A\nB\nc\nd\ne\n").expect("nothing is in the way");
        assert_eq!(done.text, "A\nB\nc\nd\ne\n", "it read after the save");
    }
}
