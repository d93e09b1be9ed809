//! What one read of an agent's output brought, in order. Chunks that continue each other are one: a flood of them costs
//! the core and the view what its text costs, however small the agent has cut it.

use super::decode::Chunk;
use crate::core::event::Event;
use crate::core::ids::ConnId;
use crate::core::message::{AgentMessage, Update};

/// Events of one connection.
#[derive(Debug)]
pub struct Batch {
    conn: ConnId,
    events: Vec<Event>,
}

impl Batch {
    /// Nothing yet of this connection.
    pub const fn new(conn: ConnId) -> Self {
        Self { conn, events: Vec::new() }
    }

    /// Adds a message.
    pub fn push(&mut self, message: AgentMessage) {
        self.events.push(Event::Agent(self.conn, message));
    }

    /// Adds a chunk; if it continues the last event, to that one.
    pub fn chunk(&mut self, chunk: Chunk<'_>) {
        if let Some(Event::Agent(_, AgentMessage::Update { session, update })) = self.events.last_mut()
            && *session.0 == *chunk.session
            && let Update::Chunk { speaker, message_id, text } = update
            && *speaker == chunk.speaker
            && message_id.as_deref() == chunk.message_id.as_deref()
        {
            text.push_str(&chunk.text);
            return;
        }
        self.push(chunk.into_message());
    }

    /// Whether there is text, and nothing but text.
    pub fn is_text(&self) -> bool {
        let is_chunk =
            |event: &Event| matches!(event, Event::Agent(_, AgentMessage::Update { update: Update::Chunk { .. }, .. }));
        !self.events.is_empty() && self.events.iter().all(is_chunk)
    }

    /// All events.
    pub fn into_events(self) -> Vec<Event> {
        self.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::transcript::Speaker;

    fn chunk(session: &'static str, speaker: Speaker, id: Option<&'static str>, text: &'static str) -> Chunk<'static> {
        Chunk { session: session.into(), speaker, message_id: id.map(Into::into), text: text.into() }
    }

    #[test]
    fn only_chunks_that_continue_each_other_are_joined() {
        let mut batch = Batch::new(ConnId(1));
        for chunk in [
            chunk("s", Speaker::Agent, None, "a"),
            chunk("s", Speaker::Agent, None, "b"),
            chunk("s", Speaker::Agent, Some("1"), "c"),
            chunk("s", Speaker::Thought, Some("1"), "d"),
            chunk("t", Speaker::Thought, Some("1"), "e"),
            chunk("t", Speaker::Thought, Some("1"), "f"),
        ] {
            batch.chunk(chunk);
        }
        assert!(batch.is_text());
        batch.push(AgentMessage::Unusable("problem".into()));
        batch.chunk(chunk("t", Speaker::Thought, Some("1"), "g"));
        assert!(!batch.is_text());
        let texts: Vec<String> = batch
            .into_events()
            .into_iter()
            .map(|event| match event {
                Event::Agent(ConnId(1), AgentMessage::Update { update: Update::Chunk { text, .. }, .. }) => text,
                other => format!("{other:?}").chars().filter(char::is_ascii_lowercase).take(4).collect(),
            })
            .collect();
        assert_eq!(texts, ["ab", "c", "d", "ef", "gent", "g"]);
    }
}
