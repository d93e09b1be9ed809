//! Writes that are on disk already, and not yet in the buffer because the user is busy in it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use super::buffer::Form;
use super::hunks::Written;
use super::write::{Edited, Offer, Request};
use super::{Files, PATIENCE, Trouble, read_disk, takeover};
use crate::changes::merge::merge_texts;
use crate::checkpoint::look;
use crate::core::ids::ChatId;
use crate::files::edits;

/// What a buffer is to hold once the user is free: in the form of buffers, `\n` for line breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Follow {
    /// Whose agent wrote it.
    pub(super) chat: ChatId,
    /// The buffer's text when that was decided.
    pub(super) base: String,
    /// What was to come of it.
    pub(super) text: String,
}

/// Everything of that kind, by file.
#[derive(Debug, Default)]
pub(super) struct Due(Mutex<HashMap<PathBuf, Follow>>);

impl Due {
    pub(super) fn get(&self, path: &Path) -> Option<Follow> {
        self.0.lock().get(path).cloned()
    }

    /// Whether there was nothing before for this file.
    fn insert(&self, path: &Path, follow: Follow) -> bool {
        self.0.lock().insert(path.to_owned(), follow).is_none()
    }

    pub(super) fn remove(&self, path: &Path) {
        self.0.lock().remove(path);
    }
}

impl Files {
    /// Lets the buffer follow when the user is free.
    pub(super) fn follow_later(&self, path: &Path, follow: Follow) {
        if !self.shared.due.insert(path, follow) {
            return;
        }
        let (files, path) = (self.clone(), path.to_owned());
        tokio::spawn(async move {
            // Should the end of a mode go unnoticed.
            const AT_MOST: Duration = Duration::from_secs(5);
            loop {
                let freed = files.shared.freed.notified();
                tokio::pin!(freed);
                freed.as_mut().enable();
                let done = {
                    let _turn = files.shared.order.turn(&path).await;
                    files.catch_up(&path).await
                };
                match done {
                    Ok(true) => break,
                    Ok(false) | Err(Trouble::Busy) => {}
                    Err(trouble) => {
                        tracing::warn!(path = %path.display(), %trouble, "a buffer could not follow its file");
                        // A save of the buffer would write over what is on disk, and Neovim would not ask.
                        if let Some(follow) = files.shared.due.get(&path) {
                            files.offer_due(&path, None, &follow, 0).await;
                        }
                        files.shared.due.remove(&path);
                        break;
                    }
                }
                // Either way it is tried again.
                let _ = timeout(AT_MOST, freed).await;
            }
        });
    }

    /// Brings into the buffer what is due. Whether nothing is due any more.
    async fn catch_up(&self, path: &Path) -> Result<bool, Trouble> {
        let deadline = Instant::now() + PATIENCE;
        let Some(follow) = self.shared.due.get(path) else { return Ok(true) };
        let Some(loaded) = self.stat(path, deadline).await? else {
            self.shared.due.remove(path);
            return Ok(true);
        };
        let Some(current) = self.buffer_text(path, &loaded, deadline).await? else { return Ok(false) };
        let current = loaded.form.to_lines(&current);
        let text = match merge_texts(&follow.base, &current, &follow.text) {
            Ok(text) => text,
            Err(conflicts) => {
                // The user typed where the agent wrote: the buffer stays as it is, the agent's version is at hand.
                self.shared.due.remove(path);
                let row = conflicts.0.first().map_or(0, |conflict| conflict.ours.start);
                self.offer_due(path, Some(&loaded.form), &follow, row).await;
                return Ok(true);
            }
        };
        let is_on_disk = read_disk(path).await.is_ok_and(|disk| loaded.form.to_lines(&disk) == text);
        let save = !loaded.modified || is_on_disk || self.save_dirty();
        let write = Written { now: &current, before: &current, after: &text, is_new: false, is_on_disk: false };
        let hunks = self.hunks_after(path, follow.chat, &write, deadline).await?;
        let request = Request {
            edits: edits::buffer_edits(&current, &text),
            eol: text.ends_with('\n'),
            save,
            file: None,
            hunks: Some(hunks),
            catches_up: true,
        };
        match self.edit(path, &loaded, request).await? {
            Edited::Done { .. } => {
                self.shared.due.remove(path);
                self.shared.behind.lock().remove(path);
                Ok(true)
            }
            Edited::Stale | Edited::Busy => Ok(false),
        }
    }

    /// What is on disk is pending as a whole: it does not go into the buffer.
    async fn offer_due(&self, path: &Path, form: Option<&Form>, follow: &Follow, row: usize) {
        let seen = takeover::seen(path);
        // The file has the agent's text without what the user had not saved.
        let on_disk = match (read_disk(path).await, form) {
            (Ok(disk), Some(form)) => form.to_lines(&disk),
            (Ok(disk), None) => edits::as_read(&disk).into_owned(),
            (Err(_), _) => follow.text.clone(),
        };
        if let Some(behind) = self.shared.behind.lock().get_mut(path) {
            behind.offered = Some(look(path));
        }
        let offer = Offer { chat: follow.chat, seen, eol: on_disk.ends_with('\n'), row };
        self.show_refused(path, &on_disk, Some(offer)).await;
    }
}
