//! Everything that is shown goes to Neovim in frames: one call each, never a second one before the first was acknowledged.
//!
//! What changes while a frame is in flight is coalesced: only the last status counts, and a message's text is taken from
//! where the buffer is. The size of a frame follows how fast Neovim acknowledges, so that no key waits for one.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::path::PathBuf;

use rmpv::Value;

use super::incoming::{array, get, integer};
use super::wire;
use crate::core::choices::SessionOption;
use crate::core::effect::{MessageLevel, Show, UserEvent};
use crate::core::follow::Whereabouts;
use crate::core::ids::{ChatId, Millis, PromptId};
use crate::core::message::AgentCommand;
use crate::core::permission::PermissionView;
use crate::core::status::{ChatState, Status};
use crate::core::tool_call::ToolCall;
use crate::core::transcript::{Change, EntryIndex, Transcript};
use crate::view::{Row, TranscriptView};

/// Bytes of text in a frame to begin with.
const FIRST_BUDGET: usize = 64 * 1024;
const MIN_BUDGET: usize = 4 * 1024;
const MAX_BUDGET: usize = 128 * 1024;
/// A frame that took longer than this, in milliseconds, is followed by smaller ones.
const SLOW: u64 = 12;
/// A full frame that took no longer than this may be followed by larger ones.
const FAST: u64 = 5;
/// Between frames while text trickles in. Faster than the eye needs costs a redraw each for nothing.
const CALM_INTERVAL: u64 = 75;
/// The same while text comes faster than anybody reads: a frame of so many bytes or more.
const FAST_INTERVAL: u64 = 120;
const FAST_TEXT: usize = 512;
/// Between frames while there is a backlog.
const BUSY_INTERVAL: u64 = 0;
/// Longest wait after frames that failed in a row.
const MAX_BACKOFF: u64 = 10_000;
/// Events of a frame. Each may run autocommands of the user.
const MAX_EVENTS: usize = 200;

/// All that waits to be shown.
#[derive(Debug)]
pub struct Frames {
    chats: BTreeMap<ChatId, Chat>,
    permissions: Option<Vec<PermissionView>>,
    /// What unfinished calls would do, where that changed.
    proposals: BTreeMap<ChatId, Vec<ToolCall>>,
    /// Texts that go back to the user, and messages: they wait for nothing.
    urgent: VecDeque<Value>,
    /// In order.
    events: VecDeque<WaitingEvent>,
    /// The last status of those tool calls.
    calls: HashMap<(ChatId, String), String>,
    /// Whether terminals have something to show.
    terminals: bool,
    /// Whether they have more than goes into a frame.
    terminal_backlog: bool,
    /// What was in a frame that failed, besides rows.
    again: Vec<Value>,
    /// The chat whose rows came last in a frame: the next one begins with the chat after it, so that none starves another.
    served: Option<ChatId>,
    inspections: VecDeque<Inspection>,
    in_flight: Option<InFlight>,
    budget: usize,
    /// No frame is sent before.
    not_before: Millis,
    /// Nor one before this that is not pressing.
    calm_before: Millis,
    failures: u32,
}

/// An event that was not told yet.
#[derive(Debug)]
enum WaitingEvent {
    Event(Value),
    /// That of a tool call in a flood of them: its status may change until it is told.
    ToolCall(ChatId, String),
}

#[derive(Debug)]
struct Chat {
    cwd: PathBuf,
    view: TranscriptView,
    /// The buffer's `changedtick` after our last edit.
    tick: u64,
    /// How often in a row its rows did not fit its buffer.
    stale: u32,
    /// No rows are sent before.
    not_before: Millis,
    status: Option<Status>,
    queue: Queue,
    commands: Option<Vec<AgentCommand>>,
    options: Option<Vec<SessionOption>>,
    whereabouts: Option<Whereabouts>,
    /// Told once all rows are in the buffer: that a turn is over is said after its text is there.
    after_rows: Vec<Value>,
}

/// The prompts that wait, and how much of that Neovim knows.
#[derive(Debug, Default)]
struct Queue {
    prompts: Vec<PromptId>,
    changed: bool,
    /// The newest prompt that came.
    newest: Option<PromptId>,
    /// The newest one that was told to be in the buffer: Lua keeps the text of any later one, in case that we end.
    told: Option<PromptId>,
}

impl Queue {
    /// What Neovim is to be told, if anything.
    fn take(&mut self, id: ChatId, rows_are_complete: bool) -> Option<Value> {
        let told = if rows_are_complete { self.newest } else { self.told };
        let is_news = std::mem::take(&mut self.changed) || told != self.told;
        self.told = told;
        is_news.then(|| wire::queued(id, &self.prompts, told))
    }
}

/// What is known of a tool call, on its way to a window.
#[derive(Debug)]
struct Inspection {
    chat: ChatId,
    entry: EntryIndex,
    title: String,
    lines: std::vec::IntoIter<String>,
    is_first: bool,
}

#[derive(Debug)]
struct InFlight {
    sent: Millis,
    full: bool,
    /// Of text.
    bytes: usize,
    /// All but rows, which are made anew when a frame failed.
    items: Vec<Value>,
}

/// How long to wait after this many failures in a row.
fn backoff(failures: u32) -> u64 {
    (100 << failures.min(10)).min(MAX_BACKOFF)
}

impl Chat {
    /// Whether the status may be told: that a turn is over is said after its text is there.
    fn has_news(&self) -> bool {
        self.status.as_ref().is_some_and(|status| self.view.has_turn() || status.state != ChatState::Idle)
    }

    /// When something of it should be sent.
    fn due(&self) -> Option<Millis> {
        let is_told_now = self.has_news()
            || self.queue.changed
            || self.commands.is_some()
            || self.options.is_some()
            || self.whereabouts.is_some()
            || (self.view.has_turn() && !self.after_rows.is_empty());
        if is_told_now {
            return Some(Millis::default());
        }
        (!self.view.is_clean()).then_some(self.not_before)
    }
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            chats: BTreeMap::new(),
            permissions: None,
            proposals: BTreeMap::new(),
            urgent: VecDeque::new(),
            events: VecDeque::new(),
            calls: HashMap::new(),
            terminals: false,
            terminal_backlog: false,
            again: Vec::new(),
            served: None,
            inspections: VecDeque::new(),
            in_flight: None,
            budget: FIRST_BUDGET,
            not_before: Millis::default(),
            calm_before: Millis::default(),
            failures: 0,
        }
    }
}

impl Frames {
    /// A chat whose transcript buffer is still empty.
    pub fn open(&mut self, chat: ChatId, cwd: PathBuf) {
        self.chats.entry(chat).or_insert_with(|| Chat {
            view: TranscriptView::new(cwd.clone()),
            cwd,
            tick: 0,
            stale: 0,
            not_before: Millis::default(),
            status: None,
            queue: Queue::default(),
            commands: None,
            options: None,
            whereabouts: None,
            after_rows: Vec::new(),
        });
    }

    /// The chat is gone. That its turn is over need not wait for rows any more.
    pub fn forget(&mut self, chat: ChatId) {
        if let Some(chat) = self.chats.remove(&chat) {
            self.events.extend(chat.after_rows.into_iter().map(WaitingEvent::Event));
        }
    }

    /// The transcript of a chat changed, and is this now.
    pub fn note(&mut self, chat: ChatId, change: Change, transcript: &Transcript) {
        if let Some(chat) = self.chats.get_mut(&chat) {
            chat.view.note(change, transcript);
        }
    }

    /// The buffer of a chat is not what it should be.
    pub fn resync(&mut self, chat: ChatId) {
        if let Some(chat) = self.chats.get_mut(&chat) {
            chat.tick = 0;
            chat.view.resync();
        }
    }

    /// These rows of a chat's buffer are looked at.
    pub fn see(&mut self, chat: ChatId, rows: Range<usize>) {
        if let Some(chat) = self.chats.get_mut(&chat) {
            chat.view.see(rows);
        }
    }

    /// What the user is asked is to be at the end of a chat's transcript.
    pub fn ask(&mut self, chat: ChatId, rows: Vec<Row>) {
        if let Some(chat) = self.chats.get_mut(&chat) {
            chat.view.set_asked(rows);
        }
    }

    /// Something is to be shown besides rows. `transcript` is that of a chat as it is now.
    pub fn show<'a>(&mut self, show: Show, transcript: impl Fn(ChatId) -> Option<&'a Transcript>) {
        match show {
            Show::Status(chat, status) => {
                if let Some(chat) = self.chats.get_mut(&chat) {
                    chat.status = Some(*status);
                }
            }
            Show::Commands(chat, commands) => {
                if let Some(chat) = self.chats.get_mut(&chat) {
                    chat.commands = Some(commands);
                }
            }
            Show::Options(chat, options) => {
                if let Some(chat) = self.chats.get_mut(&chat) {
                    chat.options = Some(options);
                }
            }
            Show::Follow(chat, news) => {
                if let Some(chat) = self.chats.get_mut(&chat) {
                    chat.whereabouts.get_or_insert_default().extend(news);
                }
            }
            Show::Permissions(views) => self.permissions = Some(views),
            Show::Proposals(chat, calls) => {
                self.proposals.insert(chat, calls);
            }
            Show::Queued(chat, prompts, newest) => {
                if let Some(chat) = self.chats.get_mut(&chat) {
                    let (ids, lines): (Vec<PromptId>, Vec<String>) = prompts.into_iter().unzip();
                    chat.view.set_queued(&lines);
                    chat.queue = Queue { prompts: ids, changed: true, newest, ..chat.queue };
                }
            }
            Show::UserEvent(UserEvent::TurnEnd(id, _)) if self.chats.contains_key(&id) => {
                if let (Some(chat), Some(item)) = (self.chats.get_mut(&id), wire::item(&show)) {
                    if let Some(transcript) = transcript(id) {
                        chat.view.end_turn(transcript);
                    }
                    chat.after_rows.push(item);
                }
            }
            Show::UserEvent(UserEvent::ToolCall(chat, id, status)) => {
                self.call_changed(chat, id, status);
            }
            Show::UserEvent(_) => self.events.extend(wire::item(&show).map(WaitingEvent::Event)),
            Show::TakenBack(..)
            | Show::Message(..)
            | Show::UndoConflicts(..)
            | Show::SignIn(..)
            | Show::Elicitations(_)
            | Show::ElicitationProblems(..) => {
                self.urgent.extend(wire::item(&show));
            }
        }
    }

    /// Every status of a call is told, unless there are more than Neovim gets to: then the last one counts.
    fn call_changed(&mut self, chat: ChatId, id: String, status: String) {
        let key = (chat, id);
        if let Some(waiting) = self.calls.get_mut(&key) {
            *waiting = status;
        } else if self.events.len() < MAX_EVENTS {
            let event = UserEvent::ToolCall(chat, key.1, status);
            self.events.extend(wire::item(&Show::UserEvent(event)).map(WaitingEvent::Event));
        } else {
            self.calls.insert(key.clone(), status);
            self.events.push_back(WaitingEvent::ToolCall(chat, key.1));
        }
    }

    /// A message for the user.
    pub fn tell(&mut self, level: MessageLevel, text: String) {
        self.urgent.extend(wire::item(&Show::Message(level, text)));
    }

    /// Terminals have something to show, which is asked for with the next frame; or no longer.
    pub const fn set_terminals(&mut self, have_news: bool) {
        self.terminals = have_news;
    }

    /// Whether the next frame repeats what was in one that failed.
    pub const fn repeats(&self) -> bool {
        !self.again.is_empty()
    }

    /// Items for terminals that go into the next frame, and whether the one after it is to follow at once.
    pub fn add_terminals(&mut self, items: Vec<Value>, has_backlog: bool) {
        self.urgent.extend(items);
        self.terminal_backlog = has_backlog;
    }

    /// All that is known of a tool call is to be shown.
    pub fn inspect(&mut self, chat: ChatId, entry: EntryIndex, title: String, lines: Vec<String>) {
        self.inspections.push_back(Inspection { chat, entry, title, lines: lines.into_iter(), is_first: true });
    }

    /// Pieces of the inspections, of about `left` bytes.
    fn take_inspections(&mut self, mut left: usize) -> Vec<Value> {
        let mut items = Vec::new();
        while left > 0
            && let Some(inspection) = self.inspections.front_mut()
        {
            let mut lines = Vec::new();
            while left > 0
                && let Some(line) = inspection.lines.next()
            {
                left = left.saturating_sub(line.len() + 1);
                lines.push(line);
            }
            let Inspection { chat, entry, title, is_first, .. } = inspection;
            items.push(wire::inspection(*chat, *entry, std::mem::take(is_first), title, lines));
            if inspection.lines.len() == 0 {
                self.inspections.pop_front();
            }
        }
        items
    }

    /// When a frame should be sent: `None` if there is nothing to send, or one is in flight. What somebody looks at does
    /// not wait.
    pub fn due(&self) -> Option<Millis> {
        if self.in_flight.is_some() {
            return None;
        }
        let is_seen = |chat: &Chat| chat.view.is_seen() && chat.stale == 0;
        if self.failures == 0 && self.chats.values().any(is_seen) {
            return Some(Millis::default());
        }
        let waits = self.permissions.is_some()
            || !self.proposals.is_empty()
            || !self.urgent.is_empty()
            || !self.events.is_empty()
            || !self.again.is_empty()
            || self.terminals
            || !self.inspections.is_empty();
        let others = waits.then_some(self.calm_before);
        let of_chat = |chat: &Chat| {
            let calm = if chat.view.is_pressing() { Millis::default() } else { self.calm_before };
            chat.due().map(|due| due.max(calm))
        };
        let due = others.into_iter().chain(self.chats.values().filter_map(of_chat)).min();
        due.map(|due| due.max(self.not_before))
    }

    /// The items of the next frame, which is in flight from now on. Call it when it is [`due`](Self::due).
    pub fn take<'a>(&mut self, transcript: impl Fn(ChatId) -> Option<&'a Transcript>, now: Millis) -> Vec<Value> {
        let mut items = std::mem::take(&mut self.again);
        items.extend(self.urgent.drain(..));
        let mut rows = Vec::new();
        let mut left = self.budget;
        for id in self.in_turn() {
            let Some(chat) = self.chats.get_mut(&id) else { continue };
            if left > 0
                && !chat.view.is_clean()
                && chat.not_before <= now
                && let Some(transcript) = transcript(id)
            {
                let ops = chat.view.take(transcript, left);
                let marks = chat.view.take_marks(transcript);
                left = left.saturating_sub(ops.iter().map(cost).sum());
                if !ops.is_empty() || !marks.is_empty() {
                    self.served = Some(id);
                    rows.push(wire::rows(id, chat.tick, ops, marks));
                }
            }
            if chat.has_news()
                && let Some(status) = chat.status.take()
            {
                items.push(wire::status(id, &status));
            }
            items.extend(chat.queue.take(id, chat.view.is_clean()));
            if let Some(commands) = chat.commands.take() {
                items.push(wire::commands(id, &commands));
            }
            if let Some(options) = chat.options.take() {
                items.push(wire::options(id, &options));
            }
            items.extend(chat.whereabouts.take().map(|news| wire::whereabouts(id, news)));
            if chat.view.has_turn() {
                self.events.extend(chat.after_rows.drain(..).map(WaitingEvent::Event));
            }
        }
        // The user waits for it, but a flood of rows must not starve it, nor it the rows.
        items.extend(self.take_inspections(left.max(MIN_BUDGET)));
        // Before the events, so that a script can answer a request in the event that tells of it.
        if let Some(views) = self.permissions.take() {
            let cwd_of = |chat| self.chats.get(&chat).map(|chat: &Chat| chat.cwd.clone()).unwrap_or_default();
            items.push(wire::permissions(&views, cwd_of));
        }
        for (chat, calls) in std::mem::take(&mut self.proposals) {
            let cwd = self.chats.get(&chat).map(|chat| chat.cwd.clone()).unwrap_or_default();
            items.push(wire::proposals(chat, &calls, &cwd));
        }
        items.extend(self.take_events());
        let full = left == 0 || !self.events.is_empty() || std::mem::take(&mut self.terminal_backlog);
        rows.extend(items.iter().cloned());
        self.in_flight = Some(InFlight { sent: now, full, bytes: self.budget - left, items });
        rows
    }

    /// All chats, those that did not have their turn in the last frame first.
    fn in_turn(&self) -> Vec<ChatId> {
        let mut ids: Vec<ChatId> = self.chats.keys().copied().collect();
        let first = ids.partition_point(|&id| self.served.is_some_and(|served| id <= served));
        ids.rotate_left(first);
        ids
    }

    fn take_events(&mut self) -> Vec<Value> {
        let count = self.events.len().min(MAX_EVENTS);
        let calls = &mut self.calls;
        let told = self.events.drain(..count).filter_map(|event| match event {
            WaitingEvent::Event(item) => Some(item),
            WaitingEvent::ToolCall(chat, id) => {
                let (key, status) = calls.remove_entry(&(chat, id))?;
                wire::item(&Show::UserEvent(UserEvent::ToolCall(chat, key.1, status)))
            }
        });
        told.collect()
    }

    /// Neovim answered the frame.
    pub fn acknowledged(&mut self, answer: &Value, now: Millis) {
        let Some(frame) = self.in_flight.take() else { return };
        self.failures = 0;
        let took = now.since(frame.sent);
        if took > SLOW {
            self.budget = (self.budget / 2).max(MIN_BUDGET);
        } else if took <= FAST && frame.full {
            self.budget = (self.budget * 3 / 2).min(MAX_BUDGET);
        }
        self.not_before = now.plus(BUSY_INTERVAL);
        let interval = if frame.bytes < FAST_TEXT { CALM_INTERVAL } else { FAST_INTERVAL };
        self.calm_before = if frame.full { self.not_before } else { frame.sent.plus(interval) };
        for (&id, chat) in &mut self.chats {
            let tick = get(answer, "ticks").and_then(|ticks| integer(ticks, &id.to_string()));
            if let Some(tick) = tick {
                (chat.tick, chat.stale) = (tick, 0);
            }
        }
        for id in array(answer, "stale").iter().filter_map(Value::as_u64).map(ChatId) {
            self.resync(id);
            // Somebody changed the buffer: the rows come at once. If they do not get in then, later each time.
            if let Some(chat) = self.chats.get_mut(&id) {
                chat.not_before = if chat.stale == 0 { now } else { now.plus(backoff(chat.stale - 1)) };
                chat.stale += 1;
            }
        }
    }

    /// Neovim could not apply the frame. Everything is sent anew, later each time; returns whether this is the first
    /// failure in a row, which is worth telling.
    pub fn failed(&mut self, now: Millis) -> bool {
        self.again = self.in_flight.take().map(|frame| frame.items).unwrap_or_default();
        let first = self.failures == 0;
        self.not_before = now.plus(backoff(self.failures));
        self.failures += 1;
        let chats: Vec<ChatId> = self.chats.keys().copied().collect();
        for chat in chats {
            self.resync(chat);
        }
        first
    }
}

/// What an edit costs, in bytes of text.
fn cost(op: &crate::view::Op) -> usize {
    use crate::view::Op;
    match op {
        Op::SetLines { lines, .. } | Op::InsertText { lines, .. } => lines.iter().map(|line| line.len() + 1).sum(),
        Op::Mark { .. } | Op::Highlight { .. } | Op::Pad { .. } | Op::Code { .. } | Op::Unmark { .. } => 0,
    }
}

#[cfg(test)]
mod tests;
