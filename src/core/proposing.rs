//! Calls that have not come to their end and say what they would do to files: shown where it would be, until that is known.

use super::effect::Show;
use super::ids::ChatId;
use super::state::State;
use super::tool_call::{ToolCall, ToolContent};

/// Calls of one chat that are shown so; of more, the oldest.
const MOST: usize = 20;

/// Whether a call may say what it would do to files. What it says exactly is the view's to find.
fn may_propose(call: &ToolCall) -> bool {
    let has_diff = call.content.iter().any(|content| matches!(content, ToolContent::Diff { .. }));
    let is_edit = !matches!(call.kind.as_str(), "read" | "search" | "execute" | "fetch" | "think" | "switch_mode");
    !call.status.is_final() && (has_diff || (is_edit && call.raw_input.is_some()))
}

impl State {
    /// A call changed, in what it says (`says`) or in its status alone.
    pub(super) fn propose(&mut self, id: ChatId, tool: &str, says: bool) {
        let is_asked = self.is_asked_about(id, tool);
        let Some(chat) = self.chats.get_mut(&id) else { return };
        if is_asked {
            // The request shows it, and once that is answered nothing is only proposed any more.
            chat.asked_about.insert(tool.to_owned());
        }
        let call = chat.transcript.tool(tool);
        if !is_asked && !chat.asked_about.contains(tool) && call.is_some_and(may_propose) {
            let is_new = chat.proposing.len() < MOST && chat.proposing.insert(tool.to_owned());
            if is_new || (says && chat.proposing.contains(tool)) {
                self.show_proposals(id);
            }
        } else if chat.proposing.remove(tool) {
            self.show_proposals(id);
        }
    }

    /// The turn is over: nothing is only proposed any more.
    pub(super) fn end_proposals(&mut self, id: ChatId) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        chat.asked_about.clear();
        if !chat.proposing.is_empty() {
            chat.proposing.clear();
            self.show_proposals(id);
        }
    }

    fn show_proposals(&mut self, id: ChatId) {
        let Some(chat) = self.chats.get(&id) else { return };
        let calls = chat.proposing.iter().filter_map(|tool| chat.transcript.tool(tool).cloned()).collect();
        self.emit(Show::Proposals(id, calls));
    }
}
