//! Taking turns of an agent back: every file that it changed gets back what it was, in its buffer or on disk.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::time::Instant;

use super::takeover::{DISK, as_saved, as_text, merge_lines};
use super::write::{CONFLICT, Edited};
use super::{Behind, Files, PATIENCE, Trouble, blocking};
use crate::checkpoint::history::{self, Chapter, Restored, Was};
use crate::checkpoint::look;
use crate::core::effect::UndoJob;
use crate::core::event::UndoReport;
use crate::nvim::files::buffer::Loaded;
use crate::nvim::hand;

/// What became of one file of an undo.
enum Fate {
    Restored,
    Conflict,
    Failed(String),
}

impl Files {
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

    /// The user rejected what they were offered: the file on disk becomes again what it was before, unless it is another by
    /// now. Their unsaved text stays as it is.
    pub async fn take_offer_back(self, path: PathBuf) {
        let _turn = self.shared.order.turn(&path).await;
        let behind = self.shared.behind.lock().remove(&path);
        let Some(Behind { base, offered: Some(offered) }) = behind else {
            return self.tell_taken_back(&path, false).await;
        };
        let (checkpoints, target) = (self.checkpoints.clone(), path.clone());
        let restored = blocking(move || {
            let is_untouched = look(&target).holds_what(&offered);
            if is_untouched {
                restore(&target, &base)?;
                checkpoints.restored(&target, &base);
            }
            Ok::<_, io::Error>(is_untouched)
        });
        let is_back = match restored.await {
            Ok(Ok(is_back)) => is_back,
            Ok(Err(error)) => {
                tracing::warn!(%error, ?path, "what was rejected is still on disk");
                false
            }
            Err(trouble) => {
                tracing::warn!(%trouble, ?path, "what was rejected is still on disk");
                false
            }
        };
        self.tell_taken_back(&path, is_back).await;
    }

    /// Lets the user's saves go through again.
    async fn tell_taken_back(&self, path: &Path, is_back: bool) {
        let name = path.to_string_lossy().into_owned();
        if let Err(error) = hand::ask(&self.nvim, CONFLICT, "taken_back", vec![name.into(), is_back.into()]).await {
            tracing::warn!(%error, ?path, "Neovim does not know that a rejected version is gone");
        }
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
        let target = match history::undo(&now, chapters, &|base, ours, theirs| merge_lines(base, ours, theirs).ok()) {
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
