//! `session/update`: what the agent reports while it works, and at any other time.

use std::fmt::{self, Write};

use super::effect::{Effect, Show, UserEvent};
use super::event::TimerKey;
use super::ids::{ChatId, ConnId, SessionId};
use super::message::{Compaction, CompactionStatus, Update};
use super::reopen::Replay;
use super::state::{Session, State};
use super::tool_call::{ToolCall, ToolCallPatch, ToolStatus};
use super::transcript::{Change, Severity, Speaker};

/// How much is kept of what comes for sessions that the agent has not announced yet, in bytes. Its debug text is the
/// measure: that needs to know of no part of an update, and is never shorter than its texts.
pub(super) const MAX_EARLY: usize = 8 * 1024 * 1024;

/// Bytes that are left for a text, which itself is not kept.
struct Room(usize);

impl fmt::Write for Room {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.checked_sub(text.len()).ok_or(fmt::Error)?;
        Ok(())
    }
}

impl State {
    pub(super) fn update(&mut self, conn: ConnId, session: SessionId, update: Update) {
        let Some(chat) = self.chat_of(conn, &session) else {
            self.keep_early(conn, session, update);
            return;
        };
        let replay = self.chats.get(&chat).map(|chat| chat.replay).unwrap_or_default();
        if replay != Replay::None && self.replay(chat, replay, &update) {
            return;
        }
        match update {
            Update::Chunk { speaker, message_id, text } => {
                let change = self
                    .chats
                    .get_mut(&chat)
                    .and_then(|chat| chat.transcript.chunk(speaker, message_id.as_deref(), &text));
                self.transcript_changed(chat, change);
            }
            Update::Tool { patch, is_new } => self.update_tool(chat, patch, is_new),
            Update::Plan(plan_id, plan) => {
                let change = self.chats.get_mut(&chat).map(|chat| chat.transcript.put_plan(plan_id, plan));
                self.transcript_changed(chat, change);
                self.touch(chat);
            }
            Update::PlanRemoved(plan_id) => {
                let change = self.chats.get_mut(&chat).and_then(|chat| chat.transcript.remove_plan(&plan_id));
                self.transcript_changed(chat, change);
                self.touch(chat);
            }
            Update::Unknown { name, detail } => {
                self.note(chat, Severity::Info, format!("{name}: {detail}"));
            }
            Update::Commands(commands) => self.emit(Show::Commands(chat, commands)),
            Update::Silent => {}
            Update::Notice(severity, text) => self.note(chat, severity, text),
            Update::Compaction(news) => self.compaction(chat, news),
            Update::Mode(mode) => self.take_mode(chat, mode),
            Update::Choices(new) => {
                let known = self.chats.get(&chat).map(|chat| chat.choices.clone()).unwrap_or_default();
                self.take_choices(chat, known.replaced_by(new));
            }
            Update::Title(_) | Update::Usage(_) => self.update_facts(chat, update),
        }
    }

    /// An agent replays the history of a session: whether this part of it is not to be shown.
    fn replay(&mut self, id: ChatId, replay: Replay, update: &Update) -> bool {
        // It is at work, however long that takes.
        let due = self.now.plus(self.config.timeouts.session_new);
        self.effects.push(Effect::SetTimer(TimerKey::NewSession(id), due));
        if let Update::Chunk { speaker: Speaker::User, .. } = update
            && let Some(chat) = self.chats.get_mut(&id)
            && chat.transcript.is_turn_over()
        {
            chat.transcript.begin_turn();
        }
        let is_history = matches!(update, Update::Chunk { .. } | Update::Tool { .. } | Update::Plan(..));
        replay == Replay::Ignored && (is_history || matches!(update, Update::Unknown { .. }))
    }

    /// The agent's context is made shorter: the summary is like a thought, and how it went is said.
    fn compaction(&mut self, id: ChatId, news: Compaction) {
        let Compaction { id: compaction, status, summary, error } = news;
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let is_new = chat.compaction.as_ref() != Some(&compaction);
        if status == CompactionStatus::Running {
            if is_new {
                chat.compaction = Some(compaction);
                self.note(id, Severity::Info, "The agent makes its context shorter.");
            }
            return;
        }
        // What came in pieces is there already.
        if let Some(summary) = summary.filter(|_| !chat.transcript.has_thought(&compaction)) {
            let change = chat.transcript.chunk(Speaker::Thought, Some(&compaction), &summary);
            self.transcript_changed(id, change);
        }
        match (status, error) {
            (CompactionStatus::Failed, error) => {
                let why = error.map(|error| format!(": {error}")).unwrap_or_default();
                self.note(id, Severity::Warning, format!("The agent could not make its context shorter{why}."));
            }
            (CompactionStatus::Cancelled, _) => self.note(id, Severity::Info, "The context stays as it was."),
            _ => self.note(id, Severity::Info, "A summary takes the place of what was said, for the agent."),
        }
    }

    fn update_facts(&mut self, id: ChatId, update: Update) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        match update {
            Update::Title(title) => chat.title = title,
            Update::Usage(usage) => chat.usage = Some(usage),
            Update::Chunk { .. }
            | Update::Tool { .. }
            | Update::Plan(..)
            | Update::PlanRemoved(_)
            | Update::Commands(_)
            | Update::Mode(_)
            | Update::Choices(_)
            | Update::Notice(..)
            | Update::Compaction(_)
            | Update::Silent
            | Update::Unknown { .. } => {}
        }
        self.touch(id);
    }

    /// Some agents report on a session before they have announced it by answering `session/new`.
    fn keep_early(&mut self, conn: ConnId, session: SessionId, update: Update) {
        // Of a session that nobody waits for, such as one whose chat was closed, nothing is wanted any more.
        let is_awaited = self.chats.values().any(|chat| matches!(chat.session, Session::Creating(of, _) if of == conn));
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if !is_awaited {
            connection.early.clear();
            connection.early_room = MAX_EARLY;
            return;
        }
        let Some(before) = connection.early_room.checked_sub(size_of::<(SessionId, Update)>()) else { return };
        let mut room = Room(before);
        if write!(room, "{update:?}").is_ok() {
            connection.early.push((session, update));
            connection.early_room = room.0;
            return;
        }
        connection.early_room = 0;
        let text = "The agent said so much before it had created the session that the rest of it was dropped.";
        for chat in self.chats_of(conn) {
            self.note(chat, Severity::Warning, text);
        }
    }

    /// Takes over what is said of a tool call; `is_new` when the agent announced a call rather than a change of one.
    pub(super) fn update_tool(&mut self, id: ChatId, mut patch: ToolCallPatch, is_new: bool) {
        let now = self.now;
        self.fill_tails(id, patch.content.as_deref_mut().unwrap_or_default());
        let reports = std::mem::take(&mut patch.terminals);
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let tool_id = patch.id.clone();
        let may_move = patch.locations.is_some() || patch.content.is_some() || patch.raw_input.is_some();
        let is_other = is_new && chat.transcript.is_tool_of_earlier_turn(&tool_id);
        let before = chat.transcript.tool(&tool_id).filter(|_| !is_other).map(|call| call.status.clone());
        let change = if before.is_some() {
            chat.transcript.update_tool(&tool_id, |call| call.apply(patch, now))
        } else {
            let mut call = ToolCall::new(tool_id.clone(), now);
            call.apply(patch, now);
            Some(chat.transcript.add_tool(call))
        };
        let status = chat.transcript.tool(&tool_id).map(|call| call.status.clone());
        let Some(status) = status else { return };
        if let Some(turn) = chat.turn.as_mut() {
            if status.is_final() {
                turn.unfinished.remove(&tool_id);
                if let Some(call) = chat.transcript.tool(&tool_id) {
                    turn.record.call_ended(call);
                }
            } else {
                turn.unfinished.insert(tool_id.clone());
            }
        }
        if self.chats.get(&id).is_some_and(|chat| chat.replay != Replay::None) {
            // What it did is long done, and where it was is no place to go to.
            self.transcript_changed(id, change);
            return;
        }
        self.note_doings(id, &tool_id, before.as_ref() != Some(&status) && status.is_final());
        self.transcript_changed(id, change);
        self.terminals_reported(id, &tool_id, reports);
        if before.as_ref() != Some(&status) {
            self.emit(Show::UserEvent(UserEvent::ToolCall(id, tool_id.clone(), status.as_str().to_owned())));
        }
        if may_move {
            self.visit(id, &tool_id);
            self.visit_terminal(id, &tool_id);
        }
        if status.is_final() {
            self.end_reported_terminals(id, &tool_id);
            self.look_again(id);
        }
        self.propose(id, &tool_id, may_move);
        if self.is_asked_about(id, &tool_id) {
            if status.is_final() {
                self.settle_permissions_of_tool(id, &tool_id);
            } else {
                self.reconsider(id, &tool_id);
            }
        }
    }

    /// A call whose turn is over, or cancelled, before it came to its own end.
    pub(super) fn settle_tool(&mut self, id: ChatId, tool: &str, status: ToolStatus) {
        let now = self.now;
        let change = self
            .chats
            .get_mut(&id)
            .and_then(|chat| chat.transcript.update_tool(tool, |call| call.set_status(status, now)));
        self.transcript_changed(id, change);
        self.end_reported_terminals(id, tool);
    }

    fn transcript_changed(&mut self, id: ChatId, change: Option<Change>) {
        self.effects.extend(change.map(|change| Effect::Transcript(id, change)));
    }
}
