//! Who changed a file on disk, as far as the agent's calls and the facts of the change tell. Pure.
//!
//! What is wrong here is worse in one direction than in the other: what is taken for the agent's can be undone, so nothing is
//! taken for the agent's that the user, a formatter of theirs, or git may have done.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::SystemTime;

use super::ids::Millis;
use super::tool_call::ToolCall;

/// How long before a command or a turn begins, or after it ends, in milliseconds, a change may be theirs. Little: it is when
/// the file changed that counts, not when that was noticed; but what an agent says is heard a moment later.
const GRACE: u64 = 100;
/// How far apart, in milliseconds, a change and a move of git may be to belong together.
const GIT_MOMENT: u64 = 2_000;

/// Kinds of calls that only look at the files that they name.
const LOOKS: [&str; 4] = ["read", "search", "fetch", "think"];

/// A file on disk that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskChange {
    /// The file, as a path below the folder of the chat, or as a call named it.
    pub path: PathBuf,
    /// When it changed.
    pub at: Millis,
    /// The same as the file itself has it, to tell this change from a later one; `None` if there is no such file.
    pub stamp: Option<SystemTime>,
    /// When git moved `HEAD` last, other than by a commit.
    pub head_moved: Option<Millis>,
    /// When git wrote its index last.
    pub index_written: Option<Millis>,
}

/// Who changed a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The agent, or a program that it ran.
    Agent,
    /// Somebody.
    Unknown,
}

/// What the calls of a turn, and those after it, tell about files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Doings {
    began: Millis,
    ended: Option<Millis>,
    named: BTreeSet<PathBuf>,
    commands: BTreeMap<String, Command>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Command {
    began: Millis,
    ended: Option<Millis>,
    runs_git: bool,
}

impl Doings {
    /// Those of a turn that begins.
    pub(super) fn begin(now: Millis) -> Self {
        Self { began: now, ..Self::default() }
    }

    /// The turn is over.
    pub(super) fn end(&mut self, now: Millis) {
        self.ended = Some(now);
        for command in self.commands.values_mut() {
            command.ended.get_or_insert(now);
        }
    }

    /// Takes over what is known of a call; the files that are new, and whether it is a command that just ended.
    pub(super) fn note(&mut self, call: &ToolCall, now: Millis) -> (Vec<PathBuf>, bool) {
        if call.kind == "execute" {
            let runs_git = call.command().unwrap_or_else(|| call.title.clone()).contains("git");
            let command = self.commands.entry(call.id.clone()).or_insert(Command { began: now, ended: None, runs_git });
            command.runs_git |= runs_git;
            let ends = call.status.is_final() && command.ended.is_none();
            if ends {
                command.ended = Some(now);
            }
            return (Vec::new(), ends);
        }
        if LOOKS.contains(&call.kind.as_str()) {
            return (Vec::new(), false);
        }
        let named = call.files().into_iter().filter(|path| path.is_absolute());
        (named.filter(|path| self.named.insert(path.clone())).collect(), false)
    }

    /// The files that calls named.
    pub(super) fn named(&self) -> impl Iterator<Item = &PathBuf> {
        self.named.iter()
    }

    /// Whether a change at that time may be one of this turn.
    pub(super) fn covers(&self, at: Millis) -> bool {
        at.plus(GRACE) >= self.began && self.ended.is_none_or(|ended| at <= ended.plus(GRACE))
    }

    /// Who changed the file.
    pub(super) fn author(&self, change: &DiskChange) -> Author {
        let at = change.at;
        let is_near = |moment: Option<Millis>| {
            moment.is_some_and(|moment| at.since(moment) <= GIT_MOMENT && moment.since(at) <= GIT_MOMENT)
        };
        if !self.covers(at) || is_near(change.head_moved) {
            return Author::Unknown;
        }
        if self.named.contains(&change.path) {
            return Author::Agent;
        }
        let running = |command: &&Command| {
            at.plus(GRACE) >= command.began && command.ended.is_none_or(|ended| at <= ended.plus(GRACE))
        };
        let mut commands = self.commands.values().filter(running).peekable();
        let some_command = commands.peek().is_some();
        // `git restore` writes its index and leaves HEAD alone. So does the `git add` of an agent, after its own change.
        let is_of_git = is_near(change.index_written) && !commands.any(|command| command.runs_git);
        if some_command && !is_of_git { Author::Agent } else { Author::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tool_call::{Location, ToolStatus};

    fn call(kind: &str, path: &str, status: ToolStatus) -> ToolCall {
        let mut call = ToolCall::new(kind.to_owned(), Millis(0));
        call.kind = kind.into();
        call.status = status;
        call.locations = vec![Location { path: path.into(), line: None }];
        call
    }

    fn change(path: &str, at: u64) -> DiskChange {
        DiskChange { path: path.into(), at: Millis(at), stamp: None, head_moved: None, index_written: None }
    }

    #[test]
    fn a_file_is_the_agents_when_a_call_that_may_write_named_it() {
        let mut doings = Doings::begin(Millis(500));
        let named =
            |doings: &mut Doings, kind, path| doings.note(&call(kind, path, ToolStatus::Pending), Millis(600)).0;
        assert_eq!(named(&mut doings, "edit", "/p/a"), [PathBuf::from("/p/a")]);
        assert!(named(&mut doings, "edit", "/p/a").is_empty(), "told once");
        assert!(named(&mut doings, "read", "/p/read").is_empty());
        assert!(named(&mut doings, "edit", "relative").is_empty());
        assert_eq!(doings.author(&change("/p/a", 550)), Author::Agent);
        assert_eq!(doings.author(&change("/p/a", 50)), Author::Unknown, "before the turn");
        assert_eq!(doings.author(&change("/p/read", 700)), Author::Unknown, "a formatter's");
        assert_eq!(doings.author(&change("/p/other", 700)), Author::Unknown);
        doings.end(Millis(1000));
        assert_eq!(doings.author(&change("/p/a", 1010)), Author::Agent);
        assert_eq!(doings.author(&change("/p/a", 2500)), Author::Unknown, "after the turn");
    }

    #[test]
    fn a_file_is_the_agents_while_a_command_of_its_runs() {
        let mut doings = Doings::begin(Millis(0));
        assert_eq!(doings.author(&change("/p/a", 90)), Author::Unknown);
        doings.note(&call("execute", "", ToolStatus::InProgress), Millis(300));
        assert_eq!(doings.author(&change("/p/a", 90)), Author::Unknown);
        assert_eq!(doings.author(&change("/p/a", 5000)), Author::Agent);
        assert!(doings.note(&call("execute", "", ToolStatus::Completed), Millis(5000)).1);
        assert!(!doings.note(&call("execute", "", ToolStatus::Completed), Millis(6000)).1, "told once");
        assert_eq!(doings.author(&change("/p/a", 5010)), Author::Agent);
        assert_eq!(doings.author(&change("/p/a", 6500)), Author::Unknown);
    }

    #[test]
    fn what_git_does_is_not_the_agents() {
        let mut doings = Doings::begin(Millis(0));
        let mut running = call("execute", "", ToolStatus::InProgress);
        running.title = "cargo test".into();
        doings.note(&running, Millis(100));
        let checked_out = DiskChange { head_moved: Some(Millis(5100)), ..change("/p/a", 5000) };
        assert_eq!(doings.author(&checked_out), Author::Unknown);
        let restored = DiskChange { index_written: Some(Millis(5100)), ..change("/p/a", 5000) };
        assert_eq!(doings.author(&restored), Author::Unknown);
        let long_before =
            DiskChange { head_moved: Some(Millis(1)), index_written: Some(Millis(1)), ..change("/p/a", 5000) };
        assert_eq!(doings.author(&long_before), Author::Agent);
        // The agent's own command: `sed … && git add .`.
        running.title = "sed -i s/a/b/ a && git add .".into();
        doings.note(&running, Millis(200));
        assert_eq!(doings.author(&restored), Author::Agent);
        assert_eq!(doings.author(&checked_out), Author::Unknown);
    }
}
