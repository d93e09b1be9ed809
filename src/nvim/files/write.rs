//! Writing: into the buffer of a file, merged with what the user has, or to the disk.

use std::path::Path;
use std::time::Duration;

use rmpv::Value;
use tokio::time::{Instant, timeout, timeout_at};

use super::buffer::Loaded;
use super::due::Follow;
use super::hunks::{Handover, Pending, Written};
use super::plan::{Base, Clash, Plan, Saving, Scene, plan, read_by_itself};
use super::seen::View;
use super::{Behind, Files, MODULE, PATIENCE, Trouble, blocking, is_true, read_disk};
use crate::checkpoint::look;
use crate::core::effect::FileJob;
use crate::core::ids::ChatId;
use crate::files::{disk, edits};
use crate::nvim::incoming::{get, integer, text};
use crate::nvim::{hand, wire};

/// The Lua module that shows what was refused.
pub(super) const CONFLICT: &str = "agentchat.conflict";
/// Text per call, in bytes, as in `buffer.rs`.
const PIECE: usize = 64 * 1024;

/// An edit of a buffer.
pub(super) struct Request {
    pub(super) edits: Vec<edits::BufferEdit>,
    /// Whether the text ends in a newline.
    pub(super) eol: bool,
    /// Whether the buffer is saved.
    pub(super) save: bool,
    /// The file that takes the place of the buffer's, which stays unsaved.
    pub(super) file: Option<disk::Replacement>,
    /// The table of hunks that holds then.
    pub(super) hunks: Option<Handover>,
    /// Whether this brings in what the file got ahead of the buffer by.
    pub(super) catches_up: bool,
}

/// A version that is in the file on disk, and not in its buffer: the user has to decide.
pub(super) struct Offer {
    /// Whose agent's it is.
    pub(super) chat: ChatId,
    /// Tells Lua whether the file is still that version.
    pub(super) seen: Value,
    /// Whether it ends in a newline.
    pub(super) eol: bool,
    /// Where the user's text is in its way.
    pub(super) row: usize,
}

/// What became of an edit.
pub(super) enum Edited {
    /// `changedtick` after the save.
    Done {
        tick: u64,
        /// What is pending after the edit, without what autocommands made of it on the save.
        pending: Option<Pending>,
    },
    Stale,
    Busy,
}

impl Files {
    pub(super) async fn write_buffer(
        &self,
        job: &FileJob,
        path: &Path,
        mut loaded: Loaded,
        content: &str,
        deadline: Instant,
    ) -> Result<String, Trouble> {
        loop {
            if let Some(why) = loaded.why_not {
                return Err(Trouble::not_writable(path, &why));
            }
            if let Some(current) = self.buffer_text(path, &loaded, deadline).await? {
                let lines = loaded.form.to_lines(&current);
                let written = edits::in_form_of(&current, loaded.form.without_mark(content));
                let theirs = loaded.form.to_lines(&written);
                let plan = match self.plan(job, path, &loaded, &lines, &theirs).await {
                    Ok(plan) => plan,
                    Err(clash) => {
                        self.show_refused(path, &theirs, None).await;
                        return Err(Trouble::Clash { path: path.to_owned(), clash });
                    }
                };
                match self.carry_out(job, path, &loaded, &lines, &plan).await? {
                    Edited::Done { tick, pending } => {
                        self.shared.due.remove(path);
                        self.put_refused_away(path);
                        let meant = loaded.form.to_file(&theirs, true);
                        // What the user has typed or saved meanwhile is no part of what the agent has seen.
                        let is_all = plan.is_as_meant && plan.saving == Saving::Buffer;
                        if !is_all {
                            return Ok(meant);
                        }
                        let left = self.left_by_save(path, tick, meant).await;
                        let after = loaded.form.to_lines(&left);
                        if let Some(pending) = pending.filter(|_| after != plan.text) {
                            let write = Written {
                                now: &plan.text,
                                before: &plan.text,
                                after: &after,
                                is_new: false,
                                is_on_disk: false,
                            };
                            let hunks = pending.written(&write).handover(job.chat);
                            self.claim_save(path, &Loaded { tick, ..loaded }, hunks, &after).await;
                        }
                        return Ok(left);
                    }
                    Edited::Stale => {}
                    Edited::Busy => {
                        if !self.wait_until_free(deadline - PATIENCE + self.busy_patience()).await {
                            self.write_ahead(job, path, &loaded, lines, &plan).await?;
                            self.put_refused_away(path);
                            return Ok(loaded.form.to_file(&theirs, true));
                        }
                    }
                }
            }
            loaded = match self.stat(path, deadline).await? {
                Some(loaded) => loaded,
                None => return self.write_unloaded(job, path, content).await,
            };
        }
    }

    /// What is to become of the buffer and the file.
    async fn plan(
        &self,
        job: &FileJob,
        path: &Path,
        loaded: &Loaded,
        lines: &str,
        theirs: &str,
    ) -> Result<Plan, Clash> {
        let form = &loaded.form;
        let mut disk = read_disk(path).await.ok().map(|disk| form.to_lines(&disk));
        if !loaded.modified && disk.as_deref() != Some(lines) {
            disk = self.read_saved(path).await.map(|disk| form.to_lines(&disk));
        }
        // What the buffer would hold if the user had not been busy.
        let due = self.shared.due.get(path);
        let buffer = match &due {
            Some(due) => crate::changes::merge::merge_texts(&due.base, lines, &due.text).map_err(Clash::Lines)?,
            None => lines.to_owned(),
        };
        let users = if loaded.modified { &buffer } else { disk.as_ref().unwrap_or(&buffer) };
        let view = self.known_to(job, path).await;
        let at_start = if view.is_none() { self.at_start(job, path).await } else { None };
        let at_start = at_start.map(|text| form.to_lines(&text));
        let seen = view.as_ref().and_then(|view| view.text.as_deref()).map(|text| form.to_lines(text));
        let base = match (&view, &seen) {
            (None, _) => Base::Nothing { at_start: at_start.as_deref() },
            (Some(view), Some(text)) => Base::Text { text, is_of_disk: view.is_of_disk },
            (Some(view), None) => {
                let is_seen = |text: &str| self.shared.seen.fingerprint(&form.to_file(text, false)) == view.fingerprint;
                let known = [Some(users), disk.as_ref()].into_iter().flatten().find(|text| is_seen(text));
                known.map_or(Base::Forgotten, |text| Base::Text { text, is_of_disk: view.is_of_disk })
            }
        };
        let scene = Scene {
            buffer: &buffer,
            disk: disk.as_deref(),
            is_modified: loaded.modified,
            is_behind: loaded.is_behind,
            base,
            save_dirty: self.save_dirty() || !form.is_utf8,
        };
        let plan = plan(scene, theirs)?;
        // What is due is the agent's, too.
        Ok(if due.is_some() { Plan { before: lines.to_owned(), ..plan } } else { plan })
    }

    /// What the session knows of the file through us. What it wrote in an earlier turn is no longer that, should the file have
    /// been another one when this turn began, and the agent read with its own tools.
    async fn known_to(&self, job: &FileJob, path: &Path) -> Option<View> {
        let seen = &self.shared.seen;
        let view = seen.get(&job.session, path)?;
        if view.turn == self.checkpoints.last_turn(job.chat) || seen.is_reader(&job.session) {
            return Some(view);
        }
        let at_start = self.at_start(job, path).await;
        let is_other = at_start.is_some_and(|text| seen.fingerprint(&text) != view.fingerprint);
        (!is_other).then_some(view)
    }

    /// What was on disk when the turn began, as far as that is known.
    async fn at_start(&self, job: &FileJob, path: &Path) -> Option<String> {
        let (checkpoints, chat, path) = (self.checkpoints.clone(), job.chat, path.to_owned());
        let bytes = blocking(move || checkpoints.at_start(chat, &path)).await.ok().flatten()?;
        String::from_utf8(bytes).ok()
    }

    async fn carry_out(
        &self,
        job: &FileJob,
        path: &Path,
        loaded: &Loaded,
        lines: &str,
        plan: &Plan,
    ) -> Result<Edited, Trouble> {
        let is_new = !loaded.is_on_disk;
        let write = Written { now: lines, before: &plan.before, after: &plan.text, is_new, is_on_disk: false };
        let hunks = self.hunks_after(path, job.chat, &write, Instant::now() + PATIENCE).await?;
        let file = match &plan.saving {
            Saving::Buffer => None,
            Saving::File(text) => Some(prepare(path, loaded.form.to_file(text, true)).await?),
        };
        let request = Request {
            edits: edits::buffer_edits(lines, &plan.text),
            eol: plan.text.ends_with('\n'),
            save: file.is_none(),
            file,
            hunks: Some(hunks),
            catches_up: false,
        };
        self.edit(path, loaded, request).await
    }

    /// Edits and saves. However long that takes (a formatter of the user's runs on save), it is waited for.
    pub(super) async fn edit(&self, path: &Path, loaded: &Loaded, request: Request) -> Result<Edited, Trouble> {
        let Request { edits, eol, save, file, hunks, catches_up } = request;
        let place = |number: usize| Value::from(number);
        let edits = edits
            .into_iter()
            .map(|edit| {
                let lines = edit.lines.into_iter().map(Value::from).collect();
                let [row, col, end_row, end_col] = [edit.row, edit.col, edit.end_row, edit.end_col].map(place);
                Value::Array(vec![row, col, end_row, end_col, Value::Array(lines)])
            })
            .collect();
        let shown = |path: &Path| Value::from(path.to_string_lossy().into_owned());
        let file_option = file.as_ref().map_or(Value::Nil, |file| {
            let temporary = file.temporary().map_or(Value::Nil, shown);
            wire::map([("path", shown(file.path())), ("temporary", temporary)])
        });
        let changes = hunks.as_ref().map_or(Value::Nil, |hunks| hunks.option(path));
        let options = wire::map([
            ("save", save.into()),
            ("eol", eol.into()),
            ("file", file_option),
            ("changes", changes),
            ("catches_up", catches_up.into()),
        ]);
        let arguments = vec![loaded.buf.into(), loaded.tick.into(), Value::Array(edits), options];
        let answer = hand::ask(&self.nvim, MODULE, "file_edit", arguments).await?;
        // Only now: until Neovim has answered it may still take the file's place.
        drop(file);
        if is_true(&answer, "ok") {
            let tick = integer(&answer, "tick").unwrap_or_default();
            let pending = hunks.as_ref().map(|hunks| hunks.pending.clone());
            if let Some(hunks) = hunks {
                self.hand_over_rest(path, hunks).await;
            }
            return Ok(Edited::Done { tick, pending });
        }
        if is_true(&answer, "stale") {
            return Ok(Edited::Stale);
        }
        if get(&answer, "busy").is_some() {
            return Ok(Edited::Busy);
        }
        let why = get(&answer, "error").and_then(text).unwrap_or_else(|| answer.to_string());
        Err(Trouble::Refused(why))
    }

    /// Waits for the user; not longer than until `deadline`. Whether it is worth another try.
    pub(super) async fn wait_until_free(&self, deadline: Instant) -> bool {
        // Also asked now and then, should the end of a mode go unnoticed.
        const AT_MOST: Duration = Duration::from_millis(500);
        let next = (Instant::now() + AT_MOST).min(deadline);
        timeout_at(next, self.shared.freed.notified()).await.is_ok() || Instant::now() < deadline
    }

    /// Writes the file; the buffer, in which the user is busy, follows.
    async fn write_ahead(
        &self,
        job: &FileJob,
        path: &Path,
        loaded: &Loaded,
        lines: String,
        plan: &Plan,
    ) -> Result<(), Trouble> {
        if !loaded.form.is_utf8 {
            return Err(Trouble::Refused(
                "The user is editing that file right now; nothing was written. Try again later".to_owned(),
            ));
        }
        let on_disk = match &plan.saving {
            Saving::Buffer => &plan.text,
            Saving::File(text) => text,
        };
        let (target, text) = (path.to_owned(), loaded.form.to_file(on_disk, true));
        self.stop_saves(loaded).await;
        let before = blocking(move || {
            let before = look(&target);
            disk::write(&target, &text).map(|()| before)
        });
        let before = before.await.and_then(|written| written.map_err(Trouble::from));
        // Nobody waits for that: Neovim is only told, lest it ask the user about a file that changed.
        drop(hand::call(&self.nvim, MODULE, "file_synced", vec![loaded.buf.into(), before.is_ok().into()]));
        // Of several writes, what was there before the first.
        let behind = Behind { base: before?, offered: None };
        self.shared.behind.lock().entry(path.to_owned()).or_insert(behind);
        self.follow_later(path, Follow { chat: job.chat, base: lines, text: plan.text.clone() });
        Ok(())
    }

    /// Stops saves of a buffer whose file is about to get ahead of it. Neovim may be waiting for a key and not hear of that now;
    /// then it hears of it before the user's next command.
    pub(super) async fn stop_saves(&self, loaded: &Loaded) {
        const AT_MOST: Duration = Duration::from_millis(100);
        let stopped = hand::call(&self.nvim, MODULE, "file_ahead", vec![loaded.buf.into()]);
        let _ = timeout(AT_MOST, stopped).await;
    }

    /// Writes a file that is not loaded, in the form that it has; what it holds then.
    pub(super) async fn write_unloaded(&self, job: &FileJob, path: &Path, content: &str) -> Result<String, Trouble> {
        let (old, is_new) = match read_disk(path).await {
            Ok(old) => (Some(old), false),
            Err(Trouble::Disk(disk::DiskError::Missing(_))) => (Some(String::new()), true),
            // There is no form to keep, or writing says what is wrong.
            Err(_) => (None, false),
        };
        let meant = old.as_ref().map_or_else(|| content.to_owned(), |old| edits::in_form_of(old, content).into_owned());
        let text = match old.as_ref().filter(|_| !is_new) {
            Some(old) => self.merged_on_disk(job, path, old, &meant).await?,
            None => meant.clone(),
        };
        let target = path.to_owned();
        let text = blocking(move || disk::write(&target, &text).map(|()| text)).await??;
        self.put_refused_away(path);
        if let Some(old) = old {
            let now = edits::as_read(&old);
            let after = edits::as_read(&text);
            let write = Written { now: &now, before: &now, after: &after, is_new, is_on_disk: true };
            self.put_hunks(path, job.chat, &write, Instant::now() + PATIENCE).await;
        }
        Ok(meant)
    }

    /// What a write makes of a file that nobody has open: the user may have changed it, and closed it, since the agent read.
    async fn merged_on_disk(&self, job: &FileJob, path: &Path, disk: &str, theirs: &str) -> Result<String, Trouble> {
        let read = match self.known_to(job, path).await {
            Some(view) if view.fingerprint == self.shared.seen.fingerprint(disk) => return Ok(theirs.to_owned()),
            Some(view) => view.text.map(|text| text.to_string()),
            None => self.at_start(job, path).await,
        };
        let base = read_by_itself(read.as_deref(), disk, theirs);
        let merged = crate::changes::merge::merge_texts(base, disk, theirs);
        match merged {
            Ok(text) => Ok(text),
            Err(conflicts) => {
                self.show_refused(path, &edits::as_read(theirs), None).await;
                Err(Trouble::Clash { path: path.to_owned(), clash: Clash::Lines(conflicts) })
            }
        }
    }

    /// What is on disk once no save of Neovim's is going on: that of a large file is many writes, and what is there in between
    /// is nobody's text.
    async fn read_saved(&self, path: &Path) -> Option<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut before = read_disk(path).await.ok();
        loop {
            // Neovim answers when it is done with what it does.
            let answered = self.stat(path, deadline).await;
            let now = read_disk(path).await.ok();
            if now == before || answered.is_err() {
                return now;
            }
            before = now;
        }
    }

    /// What a save left in the file: what was written, or what the user's autocommands made of it, on which the agent's next
    /// write is based. What the user has typed since is no part of that.
    async fn left_by_save(&self, path: &Path, tick: u64, written: String) -> String {
        if read_disk(path).await.is_ok_and(|disk| disk == written) {
            return written;
        }
        let disk = self.read_saved(path).await;
        let deadline = Instant::now() + PATIENCE;
        // As long as the buffer has not changed since, nobody but the save and its autocommands has written the file.
        match self.stat(path, deadline).await {
            Ok(Some(now)) if now.tick == tick => match disk {
                Some(disk) => disk,
                // In an encoding that only the buffer understands.
                None if !now.modified => self.buffer_text(path, &now, deadline).await.ok().flatten().unwrap_or(written),
                None => written,
            },
            _ => written,
        }
    }

    /// What a formatter of the user's made of a write is as pending as the write. Should the user have typed since, it counts
    /// as theirs.
    async fn claim_save(&self, path: &Path, loaded: &Loaded, hunks: Handover, after: &str) {
        let eol = after.ends_with('\n');
        let request =
            Request { edits: Vec::new(), eol, save: false, file: None, hunks: Some(hunks), catches_up: false };
        if let Err(trouble) = self.edit(path, loaded, request).await {
            tracing::warn!(path = %path.display(), %trouble, "what a save changed is not pending");
        }
    }

    /// How long a user who is busy in the buffer is waited for.
    fn busy_patience(&self) -> Duration {
        Duration::from_millis(self.shared.busy_patience.load(std::sync::atomic::Ordering::Relaxed)).min(PATIENCE)
    }

    /// Whether a write may save what the user has not saved themselves.
    pub(super) fn save_dirty(&self) -> bool {
        self.shared.save_dirty.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Lays the agent's version beside the user's text and tells them. `text` has `\n` for line breaks. With an offer it is
    /// on disk and pending, else it is nowhere.
    pub(super) async fn show_refused(&self, path: &Path, text: &str, offer: Option<Offer>) {
        self.shared.refused.lock().insert(path.to_owned());
        let offer = offer.map_or(Value::Nil, |offer| {
            wire::map([
                ("chat", offer.chat.0.into()),
                ("seen", offer.seen),
                ("eol", offer.eol.into()),
                ("row", offer.row.into()),
            ])
        });
        let shown = Value::from(path.to_string_lossy().into_owned());
        let (lines, _) = crate::changes::lines(text);
        let mut rest = lines.as_slice();
        let mut is_first = true;
        loop {
            let mut bytes = 0;
            let fits = |line: &&&str| {
                let fits = bytes < PIECE;
                bytes += line.len() + 1;
                fits
            };
            let (piece, more) = rest.split_at(rest.iter().take_while(fits).count());
            let piece = piece.iter().map(|line| Value::from(*line)).collect();
            let arguments =
                vec![shown.clone(), Value::Array(piece), is_first.into(), more.is_empty().into(), offer.clone()];
            let answer = hand::call(&self.nvim, CONFLICT, "piece", arguments);
            // The agent's answer does not wait for a user who keeps Neovim busy; what is sent arrives in order.
            if let Ok(Ok(Err(error))) = timeout_at(Instant::now() + Duration::from_secs(1), answer).await {
                tracing::warn!(%error, "the agent's version could not be shown");
                return;
            }
            if more.is_empty() {
                return;
            }
            rest = more;
            is_first = false;
        }
    }

    /// A later write went well: what was refused before is of no use any more.
    pub(super) fn put_refused_away(&self, path: &Path) {
        if self.shared.refused.lock().remove(path) {
            let shown = path.to_string_lossy().into_owned();
            drop(hand::call(&self.nvim, CONFLICT, "put_away", vec![shown.into()]));
        }
    }
}

/// A complete file beside the one whose place it is to take.
async fn prepare(path: &Path, text: String) -> Result<disk::Replacement, Trouble> {
    let path = path.to_owned();
    Ok(blocking(move || disk::prepare(&path, &text)).await??)
}
