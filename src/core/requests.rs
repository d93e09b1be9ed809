//! The ledger of requests that an agent waits for: each is answered exactly once, or its process has ended.
//!
//! A [`ReplyToken`] is not `Clone`. It lies in [`OpenRequests`] until [`OpenRequests::close`] hands it out, and the reply
//! effect consumes it: there is no way to answer twice, and what was not answered is still in the ledger.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ids::{ChatId, ConnId, OpenId};

/// The right to answer one request of an agent, once.
#[derive(Debug, PartialEq, Eq)]
pub struct ReplyToken {
    conn: ConnId,
    raw_id: Arc<str>,
}

impl ReplyToken {
    /// A token for the request with this id, which is raw JSON (a string, a number, `null`, or whatever the agent used).
    pub fn new(conn: ConnId, raw_id: impl Into<Arc<str>>) -> Self {
        Self { conn, raw_id: raw_id.into() }
    }

    /// The connection that the request came over.
    pub const fn conn(&self) -> ConnId {
        self.conn
    }

    /// The id as raw JSON, to be sent back as it is.
    pub fn raw_id(&self) -> &str {
        &self.raw_id
    }
}

/// One open request.
#[derive(Debug)]
struct Open {
    token: ReplyToken,
    chat: Option<ChatId>,
}

/// All requests that agents wait for.
#[derive(Debug, Default)]
pub struct OpenRequests {
    open: BTreeMap<OpenId, Open>,
    next: u64,
}

impl OpenRequests {
    /// Takes a request in, and names it.
    pub fn open(&mut self, token: ReplyToken, chat: Option<ChatId>) -> OpenId {
        self.next += 1;
        let id = OpenId(self.next);
        self.open.insert(id, Open { token, chat });
        id
    }

    /// Hands out the token of a request, which is no longer open then.
    pub fn close(&mut self, id: OpenId) -> Option<ReplyToken> {
        self.open.remove(&id).map(|open| open.token)
    }

    /// The request that the agent knows by this raw id, the newest if it used one twice.
    pub fn find(&self, conn: ConnId, raw_id: &str) -> Option<OpenId> {
        self.open
            .iter()
            .rev()
            .find(|(_, open)| open.token.conn == conn && &*open.token.raw_id == raw_id)
            .map(|(id, _)| *id)
    }

    /// The open requests of a chat, oldest first.
    pub fn of_chat(&self, chat: ChatId) -> Vec<OpenId> {
        self.open.iter().filter(|(_, open)| open.chat == Some(chat)).map(|(id, _)| *id).collect()
    }

    /// Forgets the requests of a connection whose process has ended: nobody waits for the answers any more.
    pub fn drop_connection(&mut self, conn: ConnId) -> Vec<OpenId> {
        let gone: Vec<OpenId> =
            self.open.iter().filter(|(_, open)| open.token.conn == conn).map(|(id, _)| *id).collect();
        for id in &gone {
            self.open.remove(id);
        }
        gone
    }

    /// The requests of all connections, oldest first.
    pub fn all(&self) -> Vec<OpenId> {
        self.open.keys().copied().collect()
    }

    /// Whether the request still waits for its answer.
    pub fn contains(&self, id: OpenId) -> bool {
        self.open.contains_key(&id)
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
