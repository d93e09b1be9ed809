//! The conversation as data: entries that are only ever added, grown or replaced in place.

use std::collections::HashMap;

use super::plan::{Plan, PlanProgress};
use super::text::GrowingText;
use super::tool_call::ToolCall;

/// Where an entry stands in the transcript, 0-based.
pub type EntryIndex = usize;

/// One thing in the transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// What the user sent, or what an agent replays as such.
    User(GrowingText),
    /// What the agent says.
    Agent(GrowingText),
    /// What the agent thinks.
    Thought(GrowingText),
    /// A tool call, updated in place.
    Tool(Box<ToolCall>),
    /// The agent's plan, replaced whole.
    Plan(Plan),
    /// A line of ours.
    Notice(Severity, String),
}

impl Entry {
    /// The text, if it is a message.
    pub const fn text(&self) -> Option<&GrowingText> {
        match self {
            Self::User(text) | Self::Agent(text) | Self::Thought(text) => Some(text),
            Self::Tool(_) | Self::Plan(_) | Self::Notice(..) => None,
        }
    }
}

/// How loud a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Something to know.
    Info,
    /// A turn's end that is not `end_turn`.
    Stop,
    /// Something that may need the user.
    Warning,
    /// Something failed.
    Error,
    /// What a turn took and brought, at its end.
    Summary,
}

/// What happened to the transcript, for the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// An entry was added at the end; its index.
    Added(EntryIndex),
    /// The text of a message grew at its end.
    Grew(EntryIndex),
    /// An entry that is not a message was replaced.
    Replaced(EntryIndex),
}

impl Change {
    /// The entry that it happened to.
    pub const fn index(self) -> EntryIndex {
        match self {
            Self::Added(index) | Self::Grew(index) | Self::Replaced(index) => index,
        }
    }
}

/// The three kinds of streamed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Speaker {
    /// The user.
    User,
    /// The agent, aloud.
    Agent,
    /// The agent, thinking.
    Thought,
}

impl Speaker {
    /// A message of theirs.
    pub const fn entry(self, text: GrowingText) -> Entry {
        match self {
            Self::User => Entry::User(text),
            Self::Agent => Entry::Agent(text),
            Self::Thought => Entry::Thought(text),
        }
    }
}

/// All entries of one chat.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    entries: Vec<Entry>,
    /// Messages by speaker and the agent's message id.
    messages: HashMap<(Speaker, String), EntryIndex>,
    /// Message id of the last entry, if it is a message that has one.
    last_message: Option<String>,
    /// The last entry is whole: an agent that says more of the kind, such as the user's prompt again, says something else.
    last_is_whole: bool,
    /// Tool calls of the session by the agent's id.
    tools: HashMap<String, EntryIndex>,
    /// Where the plans are, by the agent's id for those that have one.
    plans: HashMap<Option<String>, EntryIndex>,
    /// The plan of the running turn that changed last.
    plan: Option<EntryIndex>,
    /// Where the running turn begins.
    turn_start: EntryIndex,
    /// Where the session begins.
    session_start: EntryIndex,
}

impl Transcript {
    /// All entries, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds an entry at the end.
    pub fn add(&mut self, entry: Entry) -> Change {
        self.last_message = None;
        self.last_is_whole = false;
        self.entries.push(entry);
        Change::Added(self.entries.len() - 1)
    }

    /// Adds what the user sent.
    pub fn add_prompt(&mut self, text: &str) -> Change {
        let mut prompt = GrowingText::default();
        prompt.push_str(text);
        let change = self.add(Entry::User(prompt));
        self.last_is_whole = true;
        change
    }

    /// Appends a chunk to the message it belongs to: the one of the same `message_id`, else the last entry if it is of
    /// the same speaker and neither names an id that says otherwise, else a new one.
    pub fn chunk(&mut self, speaker: Speaker, message_id: Option<&str>, text: &str) -> Option<Change> {
        if text.is_empty() {
            return None;
        }
        let known = message_id.and_then(|id| self.messages.get(&(speaker, id.to_owned())).copied());
        let index = known.or_else(|| self.last_if_same(speaker, message_id));
        let Some(index) = index else {
            let mut first = GrowingText::default();
            first.push_str(text);
            let change = self.add(speaker.entry(first));
            self.remember_message(speaker, message_id, self.entries.len() - 1);
            return Some(change);
        };
        self.remember_message(speaker, message_id, index);
        if let Some(Entry::User(grown) | Entry::Agent(grown) | Entry::Thought(grown)) = self.entries.get_mut(index) {
            grown.push_str(text);
        }
        Some(Change::Grew(index))
    }

    /// Whether there is a thought of this id.
    pub fn has_thought(&self, message_id: &str) -> bool {
        self.messages.contains_key(&(Speaker::Thought, message_id.to_owned()))
    }

    fn last_if_same(&self, speaker: Speaker, message_id: Option<&str>) -> Option<EntryIndex> {
        let same_speaker = matches!(
            (self.entries.last()?, speaker),
            (Entry::User(_), Speaker::User) | (Entry::Agent(_), Speaker::Agent) | (Entry::Thought(_), Speaker::Thought)
        );
        let same_message = match (&self.last_message, message_id) {
            (Some(last), Some(id)) => last == id,
            _ => true,
        };
        (same_speaker && same_message && !self.last_is_whole).then(|| self.entries.len() - 1)
    }

    fn remember_message(&mut self, speaker: Speaker, message_id: Option<&str>, index: EntryIndex) {
        let Some(id) = message_id else { return };
        if index + 1 == self.entries.len() && self.last_message.as_deref() != Some(id) {
            self.last_message = Some(id.to_owned());
            self.messages.insert((speaker, id.to_owned()), index);
        }
    }

    /// Adds a tool call; its id names this one from now on.
    pub fn add_tool(&mut self, call: ToolCall) -> Change {
        let id = call.id.clone();
        let change = self.add(Entry::Tool(Box::new(call)));
        self.tools.insert(id, self.entries.len() - 1);
        change
    }

    /// The tool call of that id, if it was reported.
    pub fn tool(&self, id: &str) -> Option<&ToolCall> {
        match self.entries.get(*self.tools.get(id)?)? {
            Entry::Tool(call) => Some(call),
            _ => None,
        }
    }

    /// Whether the id names a call of an earlier turn: some agents count their calls anew in every turn.
    pub fn is_tool_of_earlier_turn(&self, id: &str) -> bool {
        self.tools.get(id).is_some_and(|&index| index < self.turn_start)
    }

    /// Changes the tool call of that id in place.
    pub fn update_tool(&mut self, id: &str, change: impl FnOnce(&mut ToolCall)) -> Option<Change> {
        let index = *self.tools.get(id)?;
        match self.entries.get_mut(index)? {
            Entry::Tool(call) => {
                change(call);
                Some(Change::Replaced(index))
            }
            _ => None,
        }
    }

    /// Replaces the plan of that id in the running turn, or adds it.
    pub fn put_plan(&mut self, id: Option<String>, plan: Plan) -> Change {
        let change = match self.plans.get(&id) {
            Some(&index) if index >= self.turn_start => {
                self.entries[index] = Entry::Plan(plan);
                Change::Replaced(index)
            }
            _ => self.add(Entry::Plan(plan)),
        };
        let index = change.index();
        self.plans.insert(id, index);
        self.plan = Some(index);
        change
    }

    /// The agent takes back the plan of that id; `None` if there is none.
    pub fn remove_plan(&mut self, id: &str) -> Option<Change> {
        let index = self.plans.remove(&Some(id.to_owned()))?;
        self.plan = self.plan.filter(|plan| *plan != index);
        *self.entries.get_mut(index)? = Entry::Plan(Plan::Removed);
        Some(Change::Replaced(index))
    }

    /// How far the running turn's plan is, if it has one with steps; after the turn, that of the last one.
    pub fn plan_progress(&self) -> Option<PlanProgress> {
        match self.entries.get(self.plan?)? {
            Entry::Plan(plan) => plan.progress(),
            _ => None,
        }
    }

    /// A new turn begins: its plan will be an entry of its own.
    pub fn begin_turn(&mut self) {
        self.plan = None;
        self.turn_start = self.entries.len();
    }

    /// A new session begins: message and tool call ids of the old one name nothing any more.
    pub fn begin_session(&mut self) {
        self.begin_turn();
        self.messages.clear();
        self.tools.clear();
        self.plans.clear();
        self.last_message = None;
        self.session_start = self.entries.len();
    }

    /// The first entry of the session.
    pub const fn session_start(&self) -> EntryIndex {
        self.session_start
    }

    /// Adds entries of an earlier time at the end. They are whole.
    pub fn restore(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            match entry {
                Entry::Tool(call) => self.add_tool(*call),
                other => self.add(other),
            };
        }
        self.end_history();
    }

    /// What was said up to here is history: nothing of what follows belongs to its last message, or to its last turn.
    pub fn end_history(&mut self) {
        self.begin_turn();
        self.last_message = None;
        self.last_is_whole = true;
    }

    /// Whether what the user says now begins a turn, in a history that an agent replays.
    pub fn is_turn_over(&self) -> bool {
        !matches!(self.entries.last(), None | Some(Entry::User(_)))
    }

    /// The ids of the session's tool calls that did not come to their end.
    pub fn unfinished_tools(&self) -> impl Iterator<Item = &str> {
        self.entries[self.session_start..].iter().filter_map(|entry| match entry {
            Entry::Tool(call) if !call.status.is_final() => Some(call.id.as_str()),
            _ => None,
        })
    }

    /// Whether anything was said or done in the session.
    pub fn has_talk(&self) -> bool {
        self.entries[self.session_start..].iter().any(|entry| !matches!(entry, Entry::Notice(..)))
    }

    /// The tool calls of the running turn, or since the last one.
    pub fn tools_of_turn(&self) -> impl Iterator<Item = &ToolCall> {
        self.entries[self.turn_start..].iter().filter_map(|entry| match entry {
            Entry::Tool(call) => Some(&**call),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::plan::{PlanStatus, PlanStep};

    fn texts(transcript: &Transcript) -> Vec<String> {
        transcript
            .entries()
            .iter()
            .map(|entry| match entry {
                Entry::User(text) => format!("user: {text}"),
                Entry::Agent(text) => format!("agent: {text}"),
                Entry::Thought(text) => format!("thought: {text}"),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn chunks_join_until_the_speaker_changes() {
        let mut transcript = Transcript::default();
        assert_eq!(transcript.chunk(Speaker::Agent, None, "a"), Some(Change::Added(0)));
        assert_eq!(transcript.chunk(Speaker::Agent, None, "b"), Some(Change::Grew(0)));
        assert_eq!(transcript.chunk(Speaker::Thought, None, "c"), Some(Change::Added(1)));
        assert_eq!(transcript.chunk(Speaker::Agent, None, "d"), Some(Change::Added(2)));
        assert_eq!(transcript.chunk(Speaker::Agent, None, ""), None);
        assert_eq!(texts(&transcript), ["agent: ab", "thought: c", "agent: d"]);
    }

    #[test]
    fn message_ids_join_and_split() {
        let mut transcript = Transcript::default();
        transcript.chunk(Speaker::Agent, Some("1"), "a");
        transcript.chunk(Speaker::Agent, Some("2"), "b");
        transcript.chunk(Speaker::Agent, None, "c");
        transcript.chunk(Speaker::Thought, Some("1"), "t");
        transcript.chunk(Speaker::Agent, Some("1"), "d");
        assert_eq!(texts(&transcript), ["agent: ad", "agent: bc", "thought: t"]);
    }

    #[test]
    fn a_plan_is_replaced_within_a_turn_and_new_in_the_next() {
        let step = |content: &str| Plan::Steps(vec![PlanStep { content: content.into(), status: PlanStatus::Pending }]);
        let mut transcript = Transcript::default();
        assert_eq!(transcript.put_plan(None, step("a")), Change::Added(0));
        assert_eq!(transcript.put_plan(None, step("b")), Change::Replaced(0));
        assert_eq!(transcript.plan_progress().and_then(|plan| plan.step).as_deref(), Some("b"));
        transcript.begin_turn();
        assert_eq!(transcript.plan_progress(), None);
        assert_eq!(transcript.put_plan(None, step("c")), Change::Added(1));
    }

    #[test]
    fn plans_with_ids_stand_beside_each_other_and_go_by_their_id() {
        let step = |content: &str| Plan::Steps(vec![PlanStep { content: content.into(), status: PlanStatus::Pending }]);
        let id = |id: &str| Some(id.to_owned());
        let mut transcript = Transcript::default();
        assert_eq!(transcript.put_plan(id("x"), step("a")), Change::Added(0));
        assert_eq!(transcript.put_plan(id("y"), step("b")), Change::Added(1));
        let document = Plan::Document { text: "# A".into(), path: None };
        assert_eq!(transcript.put_plan(id("x"), document), Change::Replaced(0));
        assert_eq!(transcript.plan_progress(), None);
        assert_eq!(transcript.remove_plan("z"), None);
        // Also one of an earlier turn.
        transcript.begin_turn();
        assert_eq!(transcript.remove_plan("y"), Some(Change::Replaced(1)));
        assert_eq!(transcript.remove_plan("y"), None);
        assert_eq!(transcript.entries()[1], Entry::Plan(Plan::Removed));
        assert_eq!(transcript.put_plan(id("x"), step("c")), Change::Added(2));
    }
}
