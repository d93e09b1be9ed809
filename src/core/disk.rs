//! What happens to files beside `fs/write_text_file`: agents that write the disk themselves, and taking a turn back.

use std::path::PathBuf;

use super::attribution::{Author, DiskChange};
use super::effect::{DiskJob, Effect, Lookout, MessageLevel, Show, UndoJob, UserEvent};
use super::event::{Adopted, UndoReport};
use super::ids::ChatId;
use super::state::{Session, State};
use super::transcript::Severity;

/// Files that are named in a message; of more, only their number is told.
const NAMED: usize = 20;

impl State {
    /// Takes over what a call tells about files; `ends` when it has just come to its end.
    pub(super) fn note_doings(&mut self, id: ChatId, tool: &str, ends: bool) {
        let now = self.now;
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let Some(call) = chat.transcript.tool(tool) else { return };
        let (named, command_ended) = chat.doings.note(call, now);
        let files = if ends { call.files() } else { Vec::new() };
        let root = chat.cwd.clone();
        if !named.is_empty() {
            self.effects.push(Effect::NameFiles(id, named));
        }
        if command_ended {
            self.effects.push(Effect::Look(id, Lookout::Project(root)));
        } else if !files.is_empty() {
            self.effects.push(Effect::Look(id, Lookout::Files(files)));
        }
    }

    /// The turn is over: whatever its calls named is looked at once more.
    pub(super) fn disk_at_end(&mut self, id: ChatId) {
        let now = self.now;
        let Some(chat) = self.chats.get_mut(&id) else { return };
        chat.doings.end(now);
        let named: Vec<PathBuf> = chat.doings.named().cloned().collect();
        if !named.is_empty() {
            self.effects.push(Effect::Look(id, Lookout::Files(named)));
        }
        self.effects.push(Effect::EndTurn(id));
    }

    /// Files on disk changed: finds out for each whose agent it was.
    pub(super) fn disk_changed(&mut self, changes: Vec<DiskChange>) {
        for change in changes {
            let concerned = || {
                self.chats.iter().filter(|(_, chat)| {
                    chat.doings.covers(change.at)
                        && (change.path.starts_with(&chat.cwd)
                            || chat.doings.named().any(|named| *named == change.path))
                })
            };
            let (found, author) = match concerned().find(|(_, chat)| chat.doings.author(&change) == Author::Agent) {
                Some(found) => (Some(found), Author::Agent),
                None => (concerned().next(), Author::Unknown),
            };
            let Some((&chat, facts)) = found else { continue };
            let session = match &facts.session {
                Session::Ready(conn, session) => Some((*conn, session.clone())),
                _ => None,
            };
            self.effects.push(Effect::TakeIn(DiskJob {
                chat,
                session,
                path: change.path,
                author,
                stamp: change.stamp,
            }));
        }
    }

    /// What the agent did to a file on disk is where the user can see it.
    pub(super) fn adopted(&mut self, id: ChatId, path: PathBuf, how: Adopted) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        if let Some(turn) = chat.turn.as_mut() {
            turn.record.wrote(&path);
        }
        let shown = path.strip_prefix(&chat.cwd).unwrap_or(&path).display().to_string();
        match how {
            Adopted::There => {}
            Adopted::Merged => {
                let text =
                    format!("The agent changed {shown} on disk; that is merged with your unsaved changes of it.");
                self.note(id, Severity::Info, text);
            }
            Adopted::OnDisk => {
                let text = format!(
                    "The agent changed {shown} on disk, where your unsaved changes are in its way; there \
                     `:AgentChat review diff` compares, `accept file` takes its text, `reject file` keeps yours."
                );
                self.note(id, Severity::Warning, text);
            }
            Adopted::Stuck => {
                let text = format!(
                    "The agent changed {shown} on disk, but its buffer cannot follow; \
                     `:edit!` takes its text, `:write!` keeps yours."
                );
                self.emit(Show::Message(MessageLevel::Warn, text.clone()));
                self.note(id, Severity::Warning, text);
            }
            Adopted::Gone => {
                let text = format!(
                    "The agent deleted {shown}; its buffer still has the text. `:AgentChat reject file` brings it back."
                );
                self.note(id, Severity::Info, text);
            }
        }
        self.emit(Show::UserEvent(UserEvent::FileChanged(id, path)));
    }

    /// Turns of the chat are known from before this helper.
    pub(super) fn turns_before(&mut self, id: ChatId, turns: u64) {
        if let Some(chat) = self.chats.get_mut(&id) {
            chat.turns = chat.turns.max(turns);
            self.touch(id);
        }
    }

    /// The user wants a turn back.
    pub(super) fn undo(&mut self, id: ChatId, turn: Option<u64>, replace: Vec<PathBuf>) {
        let Some(chat) = self.chats.get(&id) else {
            self.warn("There is nothing to undo.");
            return;
        };
        let last = chat.turns;
        if chat.turn.is_some() {
            self.warn("The agent is at work; `:AgentChat cancel` stops it, then its turn can be undone.");
        } else if let Some(turn) = turn.filter(|turn| *turn == 0 || *turn > last) {
            self.warn(format!("There is no turn {turn}; the last one is {last}."));
        } else {
            self.effects.push(Effect::Undo(UndoJob { chat: id, turn, replace }));
        }
    }

    /// Tells what became of an undo: in one line, and in the transcript file by file.
    pub(super) fn undone(&mut self, id: ChatId, report: UndoReport) {
        let Some(turn) = report.turn else {
            self.emit(Show::Message(MessageLevel::Info, "There is nothing to undo.".to_owned()));
            return;
        };
        let Some(root) = self.chats.get(&id).map(|chat| chat.cwd.clone()) else { return };
        let UndoReport { restored, conflicts, failed, .. } = report;
        let shown = |path: &PathBuf| path.strip_prefix(&root).unwrap_or(path).display().to_string();
        let mut parts = Vec::new();
        if !restored.is_empty() {
            parts.push(format!("restored: {}", list(restored.iter().map(shown))));
        }
        if !conflicts.is_empty() {
            parts.push(format!("left as you changed them: {}", list(conflicts.iter().map(shown))));
        }
        if !failed.is_empty() {
            parts.push(format!(
                "could not be restored: {}",
                list(failed.iter().map(|(path, why)| format!("{} ({why})", shown(path))))
            ));
        }
        if parts.is_empty() {
            parts.push("the agent changed no file in it".to_owned());
        }
        let text = format!("Undo of turn {turn}: {}.", parts.join("; "));
        let level = if failed.is_empty() { MessageLevel::Info } else { MessageLevel::Warn };
        self.emit(Show::Message(level, text.clone()));
        self.note(id, if failed.is_empty() { Severity::Info } else { Severity::Warning }, text);
        for path in restored {
            self.emit(Show::UserEvent(UserEvent::FileChanged(id, path)));
        }
        if !conflicts.is_empty() {
            self.emit(Show::UndoConflicts(id, turn, conflicts));
        }
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    let more = items.len().saturating_sub(NAMED);
    let shown = items.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}
