//! The owner's part in what outlives the helper.

use std::path::Path;

use super::{Finished, Owner};
use crate::core::effect::{Keep, MessageLevel, Show, UserEvent};
use crate::core::ids::ChatId;
use crate::store;

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

    /// What is said in this chat is kept from now on.
    pub(super) fn begin_record(&mut self, chat: ChatId, keep: Keep) {
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
