//! Files that changed on disk, and files that are put back: both get into loaded buffers by the smallest edits.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rmpv::Value;
use tokio::time::Instant;

use super::buffer::{Form, Loaded};
use super::hunks::Written;
use super::write::Edited;
use super::{FileJob, Files, PATIENCE, Trouble, blocking, is_true};
use crate::changes::merge::merge;
use crate::checkpoint::history::{self, Chapter, Restored, Was};
use crate::checkpoint::look;
use crate::core::attribution::Author;
use crate::core::effect::{DiskJob, UndoJob};
use crate::core::event::{Adopted, UndoReport};
use crate::files::{edits, paths};
use crate::nvim::hand;
use crate::nvim::incoming::{get, text};

/// The Lua module that lets buffers follow the disk.
const DISK: &str = "agentchat.disk";

/// How long an empty file may be one that is being written.
const EMPTY: Duration = Duration::from_millis(100);

/// What became of one file of an undo.
enum Fate {
    Restored,
    Conflict,
    Failed(String),
}

/// What was tried.
enum Tried<T> {
    Done(T),
    /// The user is in the middle of something there.
    Busy,
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
        let (mut news, mut base) = (None, None);
        loop {
            let freed = self.shared.freed.notified();
            {
                let _turn = self.shared.order.turn(&path).await;
                let (now, before) = self.note_news(&job, &path, &mut news).await?;
                // What was first there, should this not be the first try.
                base = base.or(before);
                match self.follow(&job, &path, &now, base.clone(), news.is_some()).await {
                    Ok(Tried::Done(how)) => {
                        let mut behind = self.shared.behind.lock();
                        match base {
                            Some(base) if how == Adopted::OnDisk => {
                                behind.insert(path.clone(), base);
                            }
                            _ => {
                                behind.remove(&path);
                            }
                        }
                        return news.map(|()| (job.path, how));
                    }
                    Ok(Tried::Busy) => {}
                    Err(trouble) => {
                        tracing::warn!(%trouble, ?path, "a buffer does not follow its file");
                        return news.map(|()| (job.path, Adopted::OnDisk));
                    }
                }
            }
            // However long the user takes: nobody else waits for this.
            freed.await;
        }
    }

    /// Finds out whether a change is one of the agent's, and keeps what it left. What is on disk, and what was there before;
    /// `None` if there is nothing to do.
    async fn note_news(&self, job: &DiskJob, path: &Path, news: &mut Option<()>) -> Option<(Was, Option<Was>)> {
        let (checkpoints, chat, author) = (self.checkpoints.clone(), job.chat, job.author);
        let (looked, is_known_news) = (path.to_owned(), news.is_some());
        if matches!(fs::metadata(path), Ok(metadata) if metadata.len() == 0) {
            // Most programs empty a file and then write it.
            tokio::time::sleep(EMPTY).await;
        }
        let (now, before, is_news) = blocking(move || {
            let now = look(&looked);
            // The buffer wrote it.
            if checkpoints.is_own(&looked) {
                return None;
            }
            if author == Author::Unknown {
                return Some((now, None, false));
            }
            checkpoints.name(chat, &looked);
            let known = checkpoints.last_known(chat, &looked);
            let is_news = known.as_ref().is_some_and(|known| !known.holds_what(&now));
            if is_news {
                checkpoints.left(chat, &looked, &now);
            }
            Some((now, known, is_news))
        })
        .await
        .ok()??;
        if is_news {
            *news = Some(());
            if let (Some(session), Some(text)) = (&job.session, as_text(&now)) {
                // It is what the agent's next write is based on.
                self.shared.seen.remember(session, path, text, true);
            }
        } else if author == Author::Agent && !is_known_news {
            return None;
        }
        // What a dirty buffer was before it fell behind is what both sides started from.
        let before = self.shared.behind.lock().get(path).cloned().or(before);
        Some((now, before))
    }

    /// The user saved a file: whatever they did not take over from the disk, they do not want.
    pub fn saved(&self, path: &Path) {
        self.shared.behind.lock().remove(path);
    }

    /// Lets the buffer of a file follow what is on disk. `base` is what both were before.
    async fn follow(
        &self,
        job: &DiskJob,
        path: &Path,
        now: &Was,
        base: Option<Was>,
        is_agents: bool,
    ) -> Result<Tried<Adopted>, Trouble> {
        loop {
            let deadline = Instant::now() + PATIENCE;
            let Some(loaded) = self.stat(path, deadline).await? else {
                if is_agents {
                    self.tell_hunks(job, path, now, base.as_ref(), deadline).await;
                }
                return Ok(Tried::Done(Adopted::There));
            };
            let Some(current) = self.buffer_text(path, &loaded, deadline).await? else { continue };
            let (new, how) = match (as_text(now), loaded.modified) {
                (Some(new), false) => (new.to_owned(), Adopted::There),
                (Some(theirs), true) => {
                    let ours = as_saved(&loaded.form, &current);
                    let merged = base.as_ref().filter(|_| is_agents).and_then(as_text);
                    match merged.and_then(|base| merge_texts(base, &ours, theirs)) {
                        Some(merged) => (merged, Adopted::Merged),
                        None => return Ok(Tried::Done(Adopted::OnDisk)),
                    }
                }
                // Deleted, or in an encoding that only Neovim understands.
                (None, _) => {
                    let function = if matches!(now, Was::Missing) { "gone" } else { "reload" };
                    hand::ask(&self.nvim, DISK, function, vec![loaded.buf.into(), loaded.tick.into()]).await?;
                    return Ok(Tried::Done(if loaded.modified { Adopted::OnDisk } else { Adopted::There }));
                }
            };
            let mut options =
                vec![("clean", (how == Adopted::There).into()), ("only_autoread", Value::from(!is_agents))];
            let mut hunks = None;
            if is_agents {
                let (before, after) = (loaded.form.to_lines(&current), loaded.form.to_lines(&new));
                let is_new = base == Some(Was::Missing);
                let written = Written { now: &before, before: &before, after: &after, is_new, is_on_disk: false };
                let handover = self.hunks_after(path, job.chat, &written, deadline).await?;
                options.push(("changes", handover.option(path)));
                hunks = Some(handover);
            }
            match self.put_text(DISK, "follow", &loaded, &current, &new, options).await? {
                Edited::Done { .. } => {
                    if let Some(hunks) = hunks {
                        self.hand_over_rest(path, hunks).await;
                    }
                    return Ok(Tried::Done(how));
                }
                Edited::Stale => {}
                Edited::Busy => return Ok(Tried::Busy),
            }
        }
    }

    /// Tells Lua what the agent did to a file that is not loaded, as far as that is text.
    async fn tell_hunks(&self, job: &DiskJob, path: &Path, now: &Was, base: Option<&Was>, deadline: Instant) {
        let is_new = base == Some(&Was::Missing);
        let before = if is_new { Some("") } else { base.and_then(as_text) };
        if let (Some(before), Some(after)) = (before, as_text(now)) {
            let (before, after) = (edits::as_read(before), edits::as_read(after));
            let written = Written { now: &before, before: &before, after: &after, is_new, is_on_disk: true };
            self.put_hunks(path, job.chat, &written, deadline).await;
        }
    }

    /// Has Lua turn a buffer with the text `current` into one with the text `new` of a file.
    async fn put_text(
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

    /// Puts back what the agent changed since a turn.
    pub async fn undo(self, job: UndoJob) -> UndoReport {
        let (checkpoints, chat, turn) = (self.checkpoints.clone(), job.chat, job.turn);
        let stories = blocking(move || checkpoints.stories(chat, turn)).await.ok().flatten();
        let Some((turn, stories)) = stories else { return UndoReport::default() };
        let mut report = UndoReport { turn: Some(turn), ..UndoReport::default() };
        let mut done = BTreeSet::new();
        for (path, chapters) in stories {
            let is_wanted = job.replace.is_empty() || job.replace.contains(&path);
            if !is_wanted {
                continue;
            }
            match self.put_back(&path, &chapters, !job.replace.is_empty()).await {
                Fate::Restored => {
                    done.insert(path.clone());
                    report.restored.push(path);
                }
                Fate::Conflict => report.conflicts.push(path),
                Fate::Failed(why) => report.failed.push((path, why)),
            }
        }
        self.checkpoints.undone(chat, turn, &done);
        report
    }

    /// Puts one file back; `by_force` also where that costs what the user did in it.
    async fn put_back(&self, path: &Path, chapters: &[Chapter], by_force: bool) -> Fate {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let _turn = self.shared.order.turn(path).await;
            match self.try_to_put_back(path, chapters, by_force, deadline).await {
                Ok(Some(fate)) => return fate,
                Ok(None) if Instant::now() >= deadline => return Fate::Failed("you are busy in it".to_owned()),
                Ok(None) => {}
                Err(trouble) => return Fate::Failed(trouble.to_string()),
            }
            self.wait_until_free(deadline).await;
        }
    }

    /// The same; `None` if it has to be tried again.
    async fn try_to_put_back(
        &self,
        path: &Path,
        chapters: &[Chapter],
        by_force: bool,
        deadline: Instant,
    ) -> Result<Option<Fate>, Trouble> {
        let loaded = self.stat(path, deadline).await?;
        let looked = path.to_owned();
        let on_disk = blocking(move || look(&looked)).await?;
        let mut current = None;
        if let Some(loaded) = &loaded {
            current = self.buffer_text(path, loaded, deadline).await?;
            if current.is_none() {
                return Ok(None);
            }
        }
        let unsaved = loaded.as_ref().filter(|loaded| loaded.modified).zip(current.as_ref());
        let now = unsaved.map_or_else(
            || on_disk.clone(),
            |(loaded, text)| Was::Bytes { bytes: as_saved(&loaded.form, text).into_bytes().into(), mode: 0 },
        );
        let target = match history::undo(&now, chapters, &merge_texts) {
            Restored::To(target) => target,
            Restored::Conflict(target) if by_force => target,
            Restored::Conflict(_) => return Ok(Some(Fate::Conflict)),
            Restored::Impossible(why) => return Ok(Some(Fate::Failed(why))),
        };
        if let (Some(loaded), Some(current)) = (&loaded, &current)
            && (!now.holds_what(&target) || !now.holds_what(&on_disk))
        {
            let text = match &target {
                Was::Missing => Some(""),
                other => as_text(other),
            };
            if let Some(text) = text {
                let is_gone = target == Was::Missing;
                let options = vec![("clean", is_gone.into()), ("restore", true.into()), ("save", (!is_gone).into())];
                match self.put_text(DISK, "follow", loaded, current, text, options).await? {
                    Edited::Done { .. } => {}
                    Edited::Stale | Edited::Busy => return Ok(None),
                }
            }
        }
        self.put_on_disk(path, target, loaded.as_ref()).await.map(Some)
    }

    /// Makes the file itself what it was, byte for byte, unless saving its buffer has done that.
    async fn put_on_disk(&self, path: &Path, target: Was, loaded: Option<&Loaded>) -> Result<Fate, Trouble> {
        let (owned, checkpoints) = (path.to_owned(), self.checkpoints.clone());
        let written = blocking(move || {
            let is_there = look(&owned).holds_what(&target) && mode_is(&owned, &target);
            let written = if is_there { Ok(false) } else { restore(&owned, &target).map(|()| true) };
            checkpoints.restored(&owned, &target);
            written
        })
        .await?;
        match (written, loaded) {
            (Err(error), _) => return Ok(Fate::Failed(error.to_string())),
            (Ok(true), Some(loaded)) => {
                hand::ask(&self.nvim, DISK, "settle", vec![loaded.buf.into()]).await?;
            }
            (Ok(_), _) => {}
        }
        let name = path.to_string_lossy().into_owned();
        hand::ask(&self.nvim, DISK, "drop_changes", vec![name.into()]).await?;
        Ok(Fate::Restored)
    }
}

fn edit_value(edit: edits::BufferEdit) -> Value {
    let lines = edit.lines.into_iter().map(Value::from).collect();
    Value::Array(vec![edit.row.into(), edit.col.into(), edit.end_row.into(), edit.end_col.into(), Value::Array(lines)])
}

/// A buffer's text, byte for byte as Neovim would write it.
fn as_saved(form: &Form, text: &str) -> String {
    form.to_file(&form.to_lines(text), true)
}

fn as_text(was: &Was) -> Option<&str> {
    match was {
        Was::Bytes { bytes, .. } => std::str::from_utf8(bytes).ok(),
        Was::Missing | Was::Unknown(_) => None,
    }
}

/// Merges texts by lines, which have their line breaks with them.
fn merge_texts(base: &str, ours: &str, theirs: &str) -> Option<String> {
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<&str>>();
    merge(&lines(base), &lines(ours), &lines(theirs)).ok().map(|merged| merged.concat())
}

fn mode_is(path: &Path, target: &Was) -> bool {
    match (target, fs::metadata(path)) {
        (Was::Bytes { mode, .. }, Ok(metadata)) => *mode == 0 || *mode == crate::checkpoint::index::mode(&metadata),
        _ => true,
    }
}

/// Makes a file what it was. Like any write, so that a reader sees either the one or the other.
fn restore(path: &Path, target: &Was) -> io::Result<()> {
    match target {
        Was::Missing => match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        },
        Was::Unknown(why) => Err(io::Error::other(why.clone())),
        Was::Bytes { bytes, mode } => write_bytes(path, bytes, *mode),
    }
}

fn write_bytes(path: &Path, bytes: &Arc<[u8]>, mode: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    let old = fs::metadata(path).ok().map(|metadata| metadata.permissions());
    match tempfile::Builder::new().prefix(".agentchat-").tempfile_in(folder) {
        Ok(mut file) => {
            file.write_all(bytes)?;
            if let Some(permissions) = permissions(mode).or(old) {
                file.as_file().set_permissions(permissions)?;
            }
            file.as_file().sync_all()?;
            file.persist(path).map(drop).map_err(|error| error.error)
        }
        // The folder lets nothing be put into it.
        Err(_) => fs::write(path, bytes),
    }
}

fn permissions(mode: u32) -> Option<fs::Permissions> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        (mode != 0).then(|| fs::Permissions::from_mode(mode))
    }
    #[cfg(not(unix))]
    {
        let _ = mode;
        None
    }
}
