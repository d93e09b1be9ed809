//! Files that changed on disk get into loaded buffers by the smallest edits.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rmpv::Value;
use tokio::time::Instant;

use super::buffer::{Form, Loaded};
use super::due::Follow;
use super::hunks::Written;
use super::write::{Edited, Offer};
use super::{Behind, FileJob, Files, Followed, PATIENCE, Trouble, blocking, is_true};
use crate::changes::merge::{Conflicts, merge};
use crate::checkpoint::history::Was;
use crate::checkpoint::{index, look};
use crate::core::attribution::Author;
use crate::core::effect::DiskJob;
use crate::core::event::Adopted;
use crate::core::ids::ChatId;
use crate::files::{edits, paths};
use crate::nvim::incoming::{get, text};
use crate::nvim::{hand, wire};

/// The Lua module that lets buffers follow the disk.
pub(super) const DISK: &str = "agentchat.disk";

/// How long an empty file may be one that is being written.
const EMPTY: Duration = Duration::from_millis(100);

/// How long is waited before a file is looked at again that somebody is just writing.
const UNSETTLED: Duration = Duration::from_millis(20);

/// What was tried.
enum Tried<T> {
    Done(T),
    /// The user is in the middle of something there.
    Busy,
    /// The file is another one by now.
    Outdated,
}

/// A file that may have changed.
struct News {
    now: Was,
    /// What both sides started from, if that is known.
    base: Option<Was>,
    /// Tells Lua whether the file is still the one that was read.
    seen: Value,
    /// Whether it holds what the agent left there before.
    is_same: bool,
}

/// Whether the agent has changed the file, as far as was found out until now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Somebodys,
    Agents,
}

impl Files {
    /// Keeps what a file is before it is written for an agent: with the user's unsaved changes, if it has any.
    pub(super) async fn keep_before(&self, job: &FileJob, path: &Path) {
        let deadline = Instant::now() + PATIENCE;
        let unsaved = match self.stat(path, deadline).await {
            Ok(Some(loaded)) if loaded.modified => self.buffer_text(path, &loaded, deadline).await.ok().flatten(),
            // Whatever the trouble is, the write will meet it, too.
            _ => None,
        };
        let (checkpoints, chat, path) = (self.checkpoints.clone(), job.chat, path.to_owned());
        let kept = blocking(move || match unsaved {
            Some(text) => checkpoints.name_with(chat, &path, &text),
            None => checkpoints.name(chat, &path),
        });
        if let Err(error) = kept.await {
            tracing::error!(%error, "a file could not be kept");
        }
    }

    /// Keeps what a write for an agent left on disk.
    pub(super) async fn keep_left(&self, job: &FileJob, path: &Path) {
        let (checkpoints, chat, path) = (self.checkpoints.clone(), job.chat, path.to_owned());
        if let Err(error) = blocking(move || checkpoints.left(chat, &path, &look(&path))).await {
            tracing::error!(%error, "a file could not be kept");
        }
    }

    /// Takes over a file that changed on disk; `None` if that is no news of the agent's.
    pub async fn take_in(self, job: DiskJob) -> Option<(PathBuf, Adopted)> {
        let path = paths::resolve(&job.path, None).unwrap_or_else(|path| path);
        let (mut whose, mut base) = (Whose::Somebodys, None);
        loop {
            let freed = self.shared.freed.notified();
            {
                let _turn = self.shared.order.turn(&path).await;
                let mut news = self.note_news(&job, &path, &mut whose).await?;
                // What was first there, should this not be the first try.
                base = base.or_else(|| news.base.take());
                news.base.clone_from(&base);
                let followed = if job.author == Author::Agent { self.followed(job.chat, &path) } else { None };
                if news.is_same || followed.is_some() {
                    // What a clean buffer has is what was there before, whatever is remembered of earlier turns.
                    let before = match followed {
                        Some(before) => before,
                        None => self.recognise(&path, &news).await?,
                    };
                    whose = Whose::Agents;
                    base = Some(before.clone());
                    news.base = Some(before);
                }
                let is_news = whose == Whose::Agents;
                match self.follow(&job, &path, &news, is_news).await {
                    Ok(Tried::Done(how)) => return is_news.then_some((job.path, how)),
                    Ok(Tried::Busy) => {}
                    Ok(Tried::Outdated) => continue,
                    Err(trouble) => {
                        tracing::warn!(%trouble, ?path, "a buffer does not follow its file");
                        return is_news.then_some((job.path, Adopted::Stuck));
                    }
                }
            }
            // However long the user takes: nobody else waits for this.
            freed.await;
        }
    }

    /// Finds out whether a change is one of the agent's, and keeps what it left; `None` if there is nothing to do.
    async fn note_news(&self, job: &DiskJob, path: &Path, whose: &mut Whose) -> Option<News> {
        let (checkpoints, chat, author) = (self.checkpoints.clone(), job.chat, job.author);
        let looked = path.to_owned();
        if matches!(fs::metadata(path), Ok(metadata) if metadata.len() == 0) {
            // Most programs empty a file and then write it.
            tokio::time::sleep(EMPTY).await;
        }
        let (now, seen) = self.look_at_news(path).await?;
        if job.stamp.is_some() && index::changed_at(path) != job.stamp {
            // A later change is told of by itself: whose it is, this one says nothing about.
            return None;
        }
        let (now, seen, base, has_changed) = blocking(move || {
            if author == Author::Unknown {
                return Some((now, seen, None, None));
            }
            checkpoints.name(chat, &looked);
            let known = checkpoints.last_known(chat, &looked);
            let is_news = known.as_ref().is_some_and(|known| !known.holds_what(&now));
            if is_news {
                checkpoints.left(chat, &looked, &now);
            }
            Some((now, seen, known, Some(is_news)))
        })
        .await
        .ok()??;
        let is_news = has_changed == Some(true);
        if is_news {
            *whose = Whose::Agents;
            if let (Some(session), Some(text)) = (&job.session, as_text(&now)) {
                // It is what the agent's next write is based on.
                self.shared.seen.remember(session, path, text, true, self.checkpoints.last_turn(chat));
            }
        }
        let is_same = has_changed == Some(false) && *whose == Whose::Somebodys;
        // What a dirty buffer was before it fell behind is what both sides started from.
        let base = self.shared.behind.lock().get(path).map(|behind| behind.base.clone()).or(base);
        Some(News { now, base, seen, is_same })
    }

    /// What a file has become, once it is no save of Neovim's that is still going on: that of a large file is many writes, and
    /// what is there in between is nobody's text. `None` if its buffer wrote it.
    async fn look_at_news(&self, path: &Path) -> Option<(Was, Value)> {
        loop {
            let (checkpoints, looked) = (self.checkpoints.clone(), path.to_owned());
            let found = blocking(move || (!checkpoints.is_own(&looked)).then(|| look_closely(&looked)));
            let (now, before) = found.await.ok()??;
            // Neovim answers, and has told of the save, when it is over. One that waits for a key saves nothing.
            let _ = self.stat(path, Instant::now() + PATIENCE).await;
            // The owner has been told by now, and takes note of it in its next turn.
            tokio::task::yield_now().await;
            if seen(path) == before {
                return (!self.checkpoints.is_own(path)).then_some((now, before));
            }
            tokio::time::sleep(UNSETTLED).await;
        }
    }

    /// The user saved a file: whatever they did not take over from the disk, they do not want.
    pub fn saved(&self, path: &Path) {
        self.shared.behind.lock().remove(path);
    }

    /// The agent wrote again what was there already: Neovim must not ask about it. What a buffer without unsaved changes
    /// has instead, if that is something else: then the buffer knows better.
    async fn recognise(&self, path: &Path, news: &News) -> Option<Was> {
        let told = async {
            let deadline = Instant::now() + PATIENCE;
            let Some(loaded) = self.stat(path, deadline).await? else { return Ok(None) };
            if loaded.modified && self.shared.refused.lock().contains(path) {
                // The user has not decided.
                return Ok(None);
            }
            let text = self.buffer_text(path, &loaded, deadline).await?;
            let text = text.map(|text| as_saved(&loaded.form, &text));
            let is_as_read = text.is_some() && as_text(&news.now) == text.as_deref();
            if is_as_read || loaded.modified {
                let arguments = vec![loaded.buf.into(), news.seen.clone()];
                self.ask_module(DISK, "known", arguments, deadline).await?;
                return Ok(None);
            }
            let is_readable = as_text(&news.now).is_some() && loaded.form.is_utf8;
            Ok::<_, Trouble>(text.filter(|_| is_readable))
        };
        match told.await {
            Ok(before) => before.map(|text| Was::Bytes { bytes: text.into_bytes().into(), mode: 0 }),
            Err(trouble) => {
                tracing::debug!(%trouble, ?path, "Neovim may ask about a file");
                None
            }
        }
    }

    /// Takes note of what a buffer had before it followed a change of which nobody knew yet whose it is.
    fn note_followed(&self, chat: ChatId, path: &Path, before: String) {
        let (turn, stamp) = (self.checkpoints.last_turn(chat), index::changed_at(path));
        let mut followed = self.shared.followed.lock();
        followed.retain(|_, other| other.chat != chat || other.turn == turn);
        followed.insert(path.to_owned(), Followed { chat, turn, stamp, before });
    }

    /// What the buffer had before it followed the last change of its file, if that was in the turn that still is the last.
    fn followed(&self, chat: ChatId, path: &Path) -> Option<Was> {
        let Followed { chat: of, turn, stamp, before } = self.shared.followed.lock().remove(path)?;
        let is_it = of == chat && turn == self.checkpoints.last_turn(chat) && stamp == index::changed_at(path);
        is_it.then(|| Was::Bytes { bytes: before.into_bytes().into(), mode: 0 })
    }

    /// Some agents write the disk by themselves and send the same text as well: the change on disk comes first. Whether that is
    /// all there is to do.
    pub(super) async fn take_in_same(&self, job: &FileJob, path: &Path, content: &str) -> Result<bool, Trouble> {
        let Ok(disk) = super::read_disk(path).await else { return Ok(false) };
        if edits::in_form_of(&disk, content) != disk {
            return Ok(false);
        }
        let session = Some(job.session.clone());
        let job = DiskJob { chat: job.chat, session, path: path.to_owned(), author: Author::Agent, stamp: None };
        let mut whose = Whose::Somebodys;
        let news = self.note_news(&job, path, &mut whose).await.filter(|_| whose == Whose::Agents);
        let Some(news) = news else { return Ok(false) };
        match self.follow(&job, path, &news, true).await? {
            Tried::Done(Adopted::OnDisk | Adopted::Stuck) => Ok(true),
            Tried::Done(_) | Tried::Outdated => Ok(false),
            // The user is busy there: the buffer follows when they are free.
            Tried::Busy => {
                let deadline = Instant::now() + PATIENCE;
                let Some(loaded) = self.stat(path, deadline).await? else { return Ok(false) };
                let base = news.base.as_ref().and_then(as_text).unwrap_or(&disk);
                let (base, text) = (loaded.form.to_lines(base), loaded.form.to_lines(&disk));
                if let Some(base) = news.base {
                    let behind = Behind { base, offered: None };
                    self.shared.behind.lock().entry(path.to_owned()).or_insert(behind);
                }
                drop(hand::call(&self.nvim, super::MODULE, "file_synced", vec![loaded.buf.into(), true.into()]));
                self.follow_later(path, Follow { chat: job.chat, base, text });
                Ok(true)
            }
        }
    }

    /// Lets the buffer of a file follow what is on disk.
    async fn follow(
        &self,
        job: &DiskJob,
        path: &Path,
        news: &News,
        is_agents: bool,
    ) -> Result<Tried<Adopted>, Trouble> {
        loop {
            let deadline = Instant::now() + PATIENCE;
            let Some(loaded) = self.stat(path, deadline).await? else {
                if is_agents {
                    self.tell_hunks(job, path, news, deadline).await;
                }
                self.shared.behind.lock().remove(path);
                return Ok(Tried::Done(Adopted::There));
            };
            let Some(current) = self.buffer_text(path, &loaded, deadline).await? else { continue };
            let (new, how) = match (as_text(&news.now), loaded.modified) {
                (Some(new), false) => (new.to_owned(), Adopted::There),
                (Some(theirs), true) => {
                    let ours = as_saved(&loaded.form, &current);
                    match Self::merged(news, is_agents, &ours, theirs) {
                        Ok(merged) if merged == theirs => (merged, Adopted::There),
                        Ok(merged) => (merged, Adopted::Merged),
                        Err(row) => {
                            if is_agents {
                                self.offer(job.chat, path, &loaded.form, news, theirs, row).await;
                            }
                            return Ok(Tried::Done(Adopted::OnDisk));
                        }
                    }
                }
                // Deleted, or in an encoding that only Neovim understands.
                (None, _) => return self.lose(job, path, &loaded, news, is_agents).await.map(Tried::Done),
            };
            let mut options = vec![
                ("clean", (how == Adopted::There).into()),
                ("seen", news.seen.clone()),
                ("only_autoread", Value::from(!is_agents)),
            ];
            let mut hunks = None;
            if is_agents {
                let (before, after) = (loaded.form.to_lines(&current), loaded.form.to_lines(&new));
                let is_new = news.base == Some(Was::Missing);
                let pending = self.pending(path, deadline).await?;
                // What followed the disk before it was known whose doing that is has the agent's text already.
                let base = news.base.as_ref().and_then(as_text).map(|base| loaded.form.to_lines(base));
                let is_there = before == after && !loaded.modified && pending.hunks().is_empty();
                let before = base.filter(|_| is_there).unwrap_or(before);
                let written = Written { now: &before, before: &before, after: &after, is_new, is_on_disk: false };
                let handover = pending.written(&written).handover(job.chat);
                options.push(("changes", handover.option(path)));
                hunks = Some(handover);
            }
            match self.put_text(DISK, "follow", &loaded, &current, &new, options).await? {
                Edited::Done { .. } => {
                    if let Some(hunks) = hunks {
                        self.hand_over_rest(path, hunks).await;
                    }
                    if !is_agents && how == Adopted::There {
                        self.note_followed(job.chat, path, as_saved(&loaded.form, &current));
                    }
                    self.shared.behind.lock().remove(path);
                    self.put_refused_away(path);
                    return Ok(Tried::Done(how));
                }
                // Somebody has saved it since it was read: what was read must not get over that into the buffer.
                Edited::Stale if seen(path) != news.seen => return Ok(Tried::Outdated),
                Edited::Stale => {}
                Edited::Busy => return Ok(Tried::Busy),
            }
        }
    }

    /// What comes of the user's text and the agent's, or the row of the user's that is in the way.
    fn merged(news: &News, is_agents: bool, ours: &str, theirs: &str) -> Result<String, usize> {
        let base = news.base.as_ref().filter(|_| is_agents).and_then(as_text).ok_or(0_usize)?;
        let first = |conflicts: Conflicts| conflicts.0.first().map_or(0, |conflict| conflict.ours.start);
        merge_lines(base, ours, theirs).map_err(first)
    }

    /// The agent's version stays on disk and is pending as a whole; the buffer stays as it is.
    async fn offer(&self, chat: ChatId, path: &Path, form: &Form, news: &News, theirs: &str, row: usize) {
        if let Some(base) = &news.base {
            let behind = Behind { base: base.clone(), offered: Some(news.now.clone()) };
            self.shared.behind.lock().insert(path.to_owned(), behind);
        }
        let lines = form.to_lines(theirs);
        let offer = Offer { chat, seen: news.seen.clone(), eol: lines.ends_with('\n'), row };
        self.show_refused(path, &lines, Some(offer)).await;
    }

    /// The file is gone, or Neovim has to read it itself. Its buffer's text stays as text that is not saved.
    async fn lose(
        &self,
        job: &DiskJob,
        path: &Path,
        loaded: &Loaded,
        news: &News,
        is_agents: bool,
    ) -> Result<Adopted, Trouble> {
        let is_gone = matches!(news.now, Was::Missing);
        if is_gone && is_agents {
            let deadline = Instant::now() + PATIENCE;
            if self.tell_gone(job, path, news, !loaded.modified, deadline).await {
                // Its buffer has the new name.
                return Ok(Adopted::There);
            }
        }
        let function = if is_gone { "gone" } else { "reload" };
        hand::ask(&self.nvim, DISK, function, vec![loaded.buf.into(), loaded.tick.into()]).await?;
        if let Some(base) = news.base.as_ref().filter(|_| is_gone || loaded.modified) {
            let behind = Behind { base: base.clone(), offered: None };
            self.shared.behind.lock().insert(path.to_owned(), behind);
        }
        Ok(match (is_gone, loaded.modified) {
            (true, _) => Adopted::Gone,
            (false, true) => Adopted::Stuck,
            (false, false) => Adopted::There,
        })
    }

    /// The agent deleted a file, or gave it another name; whether it did the latter.
    async fn tell_gone(&self, job: &DiskJob, path: &Path, news: &News, has_table: bool, deadline: Instant) -> bool {
        let Some(Was::Bytes { bytes, .. }) = &news.base else { return false };
        if self.moved(job, path, news).await.is_none() {
            self.put_deletion(path, job.chat, bytes, has_table, deadline).await;
        }
        // Asked again: the other name may have been noticed in the meantime.
        let moved = self.moved(job, path, news).await;
        if let Some(to) = &moved {
            self.put_rename(path, to, job.chat, bytes, deadline).await;
        }
        moved.is_some()
    }

    /// The other name of a file that the agent has moved, in this turn, to or from this path.
    async fn moved(&self, job: &DiskJob, path: &Path, news: &News) -> Option<PathBuf> {
        let (checkpoints, chat, path) = (self.checkpoints.clone(), job.chat, path.to_owned());
        let is_gone = news.now == Was::Missing;
        let other = blocking(move || checkpoints.moved(chat, &path, is_gone));
        other.await.ok().flatten()
    }

    /// Tells Lua what the agent did to a file whose text no buffer has, or that is gone, as far as that is text.
    async fn tell_hunks(&self, job: &DiskJob, path: &Path, news: &News, deadline: Instant) {
        let base = news.base.as_ref();
        if news.now == Was::Missing {
            self.tell_gone(job, path, news, true, deadline).await;
            return;
        }
        if let (Was::Bytes { bytes, .. }, Some(from)) = (&news.now, self.moved(job, path, news).await) {
            self.put_rename(&from, path, job.chat, bytes, deadline).await;
            return;
        }
        let is_new = base == Some(&Was::Missing);
        let before = if is_new { Some("") } else { base.and_then(as_text) };
        if let (Some(before), Some(after)) = (before, as_text(&news.now)) {
            let (before, after) = (edits::as_read(before), edits::as_read(after));
            let written = Written { now: &before, before: &before, after: &after, is_new, is_on_disk: true };
            self.put_hunks(path, job.chat, &written, deadline).await;
        }
    }

    /// Has Lua turn a buffer with the text `current` into one with the text `new` of a file.
    pub(super) async fn put_text(
        &self,
        module: &str,
        function: &str,
        loaded: &Loaded,
        current: &str,
        new: &str,
        mut options: Vec<(&'static str, Value)>,
    ) -> Result<Edited, Trouble> {
        let old = loaded.form.to_lines(current);
        let new = loaded.form.to_lines(new);
        let edits = edits::buffer_edits(&old, &new).into_iter().map(edit_value).collect();
        options.push(("eol", new.ends_with('\n').into()));
        let options = Value::Map(options.into_iter().map(|(key, value)| (key.into(), value)).collect());
        let arguments = vec![loaded.buf.into(), loaded.tick.into(), Value::Array(edits), options];
        let answer = hand::ask(&self.nvim, module, function, arguments).await?;
        if is_true(&answer, "ok") {
            return Ok(Edited::Done { tick: 0, pending: None });
        }
        if is_true(&answer, "stale") {
            return Ok(Edited::Stale);
        }
        if get(&answer, "busy").is_some() {
            return Ok(Edited::Busy);
        }
        Err(Trouble::Refused(get(&answer, "error").and_then(text).unwrap_or_else(|| answer.to_string())))
    }
}

fn edit_value(edit: edits::BufferEdit) -> Value {
    let lines = edit.lines.into_iter().map(Value::from).collect();
    Value::Array(vec![edit.row.into(), edit.col.into(), edit.end_row.into(), edit.end_col.into(), Value::Array(lines)])
}

/// A buffer's text, byte for byte as Neovim would write it.
pub(super) fn as_saved(form: &Form, text: &str) -> String {
    form.to_file(&form.to_lines(text), true)
}

pub(super) fn as_text(was: &Was) -> Option<&str> {
    match was {
        Was::Bytes { bytes, .. } => std::str::from_utf8(bytes).ok(),
        Was::Missing | Was::Unknown(_) => None,
    }
}

/// Merges texts by lines, which have their line breaks with them.
pub(super) fn merge_lines(base: &str, ours: &str, theirs: &str) -> Result<String, Conflicts> {
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<&str>>();
    merge(&lines(base), &lines(ours), &lines(theirs)).map(|merged| merged.concat())
}

/// What a file is, and what tells Lua that it is still the same: both of one moment, if somebody is just writing it.
fn look_closely(path: &Path) -> (Was, Value) {
    const TRIES: usize = 5;
    let mut known = seen(path);
    for _ in 0..TRIES {
        let now = look(path);
        let after = seen(path);
        if after == known {
            return (now, known);
        }
        known = after;
    }
    // Whoever does not come to an end is noticed again.
    (look(path), Value::Nil)
}

/// What tells a file from what others make of it, for Lua; nil if there is none.
pub(super) fn seen(path: &Path) -> Value {
    let Ok(metadata) = fs::metadata(path) else { return Value::Nil };
    #[cfg(unix)]
    let (seconds, nanos) = {
        use std::os::unix::fs::MetadataExt;
        (metadata.mtime(), metadata.mtime_nsec())
    };
    #[cfg(not(unix))]
    let (seconds, nanos) = {
        let since = metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        since.map_or((0, 0), |since| (since.as_secs(), since.subsec_nanos()))
    };
    wire::map([("sec", seconds.into()), ("nsec", nanos.into()), ("size", metadata.len().into())])
}
