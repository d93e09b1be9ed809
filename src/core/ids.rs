//! Identifiers. Each is a type of its own, so that they cannot be mixed up.

use std::fmt;
use std::sync::Arc;

macro_rules! numeric_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

numeric_id!(
    /// A conversation as the user sees it: one transcript and one prompt. Chosen by Lua.
    ChatId
);
numeric_id!(
    /// One run of an agent's process. Never reused, so that a late message of an old run is known as such.
    ConnId
);
numeric_id!(
    /// A request of ours to an agent: the JSON-RPC `id` that we send.
    CallId
);
numeric_id!(
    /// A request of an agent that is still open, as the core, the edges and Lua name it.
    OpenId
);
numeric_id!(
    /// A prompt, chosen by Lua; it can be taken back by this id while it is queued.
    PromptId
);
numeric_id!(
    /// A terminal in which we run a command for an agent. Never reused.
    TerminalId
);
numeric_id!(
    /// One turn of a chat, from `session/prompt` to its answer. Never reused.
    TurnId
);

numeric_id!(
    /// A question of Lua's that is answered by a call of its own; chosen there.
    QuestionId
);
numeric_id!(
    /// A session that is kept, as the store names it; chosen at random, and below 2^53, so that Lua can hold it.
    /// An agent's own id will not do: some begin to count anew with every start.
    SessionKey
);

/// The agent's name for a session, opaque to us.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub Arc<str>);

impl From<&str> for SessionId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Milliseconds since the helper started. The core has no clock: every event carries one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Millis(pub u64);

impl Millis {
    /// The point of time `ms` milliseconds later.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to `self`, 0 if that is in the future.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
