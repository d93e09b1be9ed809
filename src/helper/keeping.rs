//! The owner's part in what outlives the helper.

use std::path::Path;

use rmpv::Value;

use super::{Finished, HAND, Owner, export_to};
use crate::core::effect::{Effect, Keep, MessageLevel, SessionInfo, Show, UserEvent};
use crate::core::event::{Event, KnownSession, Recalled};
use crate::core::ids::{ChatId, QuestionId, SessionId, SessionKey};
use crate::nvim::incoming::Export;
use crate::nvim::{hand, sessions};
use crate::store::{self, KeptSession, Which};

/// Most kept sessions in a list.
const MAX_LISTED: u32 = 2_000;

impl Owner {
    /// Opens the store, and tells the user if something is wrong with it.
    pub(super) fn open_store(&mut self, state: &Path) {
        let store = store::Handle::new(state.join(store::FILE_NAME));
        let (finish, opened) = (self.finish.clone(), store.clone());
        tokio::spawn(async move {
            if let Some(notice) = opened.notice().await {
                // The owner is gone only when the helper ends.
                let _ = finish.send(Finished::Told(MessageLevel::Warn, notice));
            }
        });
        self.store = Some(store);
    }

    /// Does what the core wants done about sessions that are kept.
    pub(super) fn carry_out_in_store(&mut self, effect: Effect) {
        match effect {
            Effect::Keep(chat, keep) => self.begin_record(chat, keep),
            Effect::Recall(chat, agent, known) => self.recall(chat, agent, &known),
            Effect::ForgetKept { agent, session, key } => self.forget_kept(agent, session.as_ref(), key),
            Effect::Listed { question, agent, sessions, problem } => self.listed(question, agent, sessions, problem),
            _ => {}
        }
    }

    /// Looks up what is kept of a session that a chat is to have. There is an answer in any case.
    fn recall(&mut self, chat: ChatId, agent: String, known: &KnownSession) {
        // It may be one that is going on at this moment.
        self.keep_records(true);
        let which = match known.key {
            Some(key) => Which::Key(key),
            None => Which::Named { agent, id: known.session.to_string() },
        };
        let (store, finish) = (self.store.clone(), self.finish.clone());
        tokio::spawn(async move {
            let kept = match store {
                Some(store) => store.with(move |store| store.session(&which)).await,
                None => Ok(None),
            };
            let kept = kept.unwrap_or_else(|error| {
                tracing::warn!(%error, "a kept session could not be read");
                None
            });
            let recalled = kept.map(|KeptSession { row, entries }| {
                let title = row.about.title.or(row.opening);
                Recalled { key: row.key, title, entries }
            });
            // The owner is gone only when the helper ends.
            let _ = finish.send(Finished::Work(Box::new(Event::Recalled(chat, recalled))));
        });
    }

    /// Writes what is kept of a chat's session to a file, as lines of JSON.
    pub(super) fn export_lines(&mut self, chat: ChatId, wanted: Export) {
        self.keep_records(true);
        let (store, key, finish) = (self.store.clone(), self.records.key(chat), self.finish.clone());
        tokio::spawn(async move {
            let lines = match store.zip(key) {
                Some((store, key)) => store.with(move |store| store.session_lines(key)).await,
                None => Ok(Vec::new()),
            };
            let (level, text) = match lines {
                Ok(lines) => export_to(&wanted, lines.into_iter().map(|line| line + "\n").collect()).await,
                Err(error) => (MessageLevel::Error, error.to_string()),
            };
            // The owner is gone only when the helper ends.
            let _ = finish.send(Finished::Told(level, text));
        });
    }

    fn forget_kept(&self, agent: String, session: Option<&SessionId>, key: Option<SessionKey>) {
        let Some(store) = &self.store else { return };
        let named = session.map(|session| Which::Named { agent, id: session.to_string() });
        for which in key.map(Which::Key).into_iter().chain(named) {
            store.post(move |store| store.delete_session(&which).map(drop));
        }
    }

    /// Joins what an agent lists with what is kept, and tells whoever asked.
    fn listed(&mut self, question: QuestionId, agent: String, sessions: Vec<SessionInfo>, problem: Option<String>) {
        self.keep_records(true);
        let (store, nvim) = (self.store.clone(), self.nvim.clone());
        tokio::spawn(async move {
            let kept = match store {
                Some(store) => store.with(|store| store.sessions(None, MAX_LISTED)).await,
                None => Ok(Vec::new()),
            };
            let (kept, failed) = match kept {
                Ok(kept) => (kept, None),
                Err(error) => (Vec::new(), Some(error.to_string())),
            };
            let list = sessions::merged(&agent, sessions, &kept);
            let problem = problem.or(failed).map_or(Value::Nil, Value::from);
            let arguments = vec![question.0.into(), list, problem];
            if let Err(error) = hand::ask(&nvim, HAND, "sessions_listed", arguments).await {
                tracing::warn!(%error, "a list of sessions could not be shown");
            }
        });
    }

    /// What is said in this chat is kept from now on.
    fn begin_record(&mut self, chat: ChatId, keep: Keep) {
        // What is left of the session before.
        self.keep_records(true);
        let now = self.now();
        let Some(core) = self.core.as_ref() else { return };
        if let (Some(transcript), Some(cwd)) = (core.transcript(chat), core.cwd(chat)) {
            self.records.begin(chat, keep, cwd.to_owned(), transcript, now);
        }
    }

    /// Some of what is shown tells when something is to be kept.
    pub(super) fn note_shown(&mut self, show: &Show) {
        match show {
            Show::Status(chat, status) => self.records.rename(*chat, status.title.as_deref(), self.now()),
            Show::UserEvent(UserEvent::TurnEnd(..)) => self.keep_records(true),
            _ => {}
        }
    }

    /// Hands the store what is not kept yet; `is_last` if nothing more is expected for a while.
    pub(super) fn keep_records(&mut self, is_last: bool) {
        let now = self.now();
        let core = self.core.as_ref();
        let batches = self.records.take(|chat| core.and_then(|core| core.transcript(chat)), is_last, now);
        let Some(store) = &self.store else { return };
        for batch in batches {
            store.post(move |store| store.record(&batch));
        }
    }
}
