//! What agents did, on disk under names, so that a helper that is started again can still undo it.
//!
//! Each Neovim has a folder of its own, named by an `instance` that Lua makes up once: a helper that died is followed by another
//! one of the same Neovim. In it are a line of JSON for each change of a file (`turns-1.jsonl`, the last line about a file and a
//! turn counts) and a file for each content. It goes with Neovim: when the helper ends because Neovim does, or, if both were
//! killed, with the next helper that starts and finds the process gone that begins the folder's name.
//!
//! One thread does all the writing, in order, so that no write of an agent waits for it. What does not fit into the bound, or
//! cannot be written, can be undone only as long as this helper lives; that is logged.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::packs::make_private;
use super::{Kept, MAX_TURNS};
use crate::core::ids::ChatId;

/// The number is that of the format: a helper of another format begins anew.
const LINES: &str = "turns-1.jsonl";

/// How long the helper's end waits for the folder to be removed.
const REMOVAL: Duration = Duration::from_secs(1);

/// Which change: the chat, its turn, the file.
pub(super) type Key = (ChatId, u64, PathBuf);

/// What a change was.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) root: PathBuf,
    pub(super) started: SystemTime,
    pub(super) before: Kept,
    pub(super) left: Kept,
}

/// Something to be noted.
#[derive(Debug)]
enum Note {
    Changed(Key, Change),
    /// These are nothing to be undone any more.
    Gone(Vec<Key>),
    /// Neovim goes away, and nothing can be undone any more; answered when the folder is gone.
    Over(mpsc::Sender<()>),
    /// Everything up to now is written once this is answered.
    #[cfg(test)]
    Flush(mpsc::Sender<()>),
}

/// Hands notes to the thread that writes.
#[derive(Debug)]
pub(super) struct Journal {
    notes: mpsc::Sender<Note>,
    folder: PathBuf,
    /// What is still to be written is not wanted any more.
    is_over: Arc<AtomicBool>,
}

/// A line.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line {
    chat: u64,
    turn: u64,
    path: PathBuf,
    /// Nothing if the change is gone.
    change: Option<Written>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Written {
    root: PathBuf,
    /// Milliseconds since 1970.
    started: u64,
    before: Content,
    left: Content,
}

/// What a file was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Content {
    Missing,
    /// The number of the file that has the bytes, and a mode.
    File(u64, u32),
    Unknown(String),
}

impl Journal {
    /// Goes on with the journal of this Neovim, and removes those of others that are gone. What was noted until now comes
    /// along, the newest turns only.
    ///
    /// # Errors
    /// When the folder cannot be used.
    pub(super) fn open(parent: &Path, instance: &str, limit: u64) -> io::Result<(Self, BTreeMap<Key, Change>)> {
        if instance.is_empty() || !instance.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(io::Error::other("the name of this Neovim is no name of a folder"));
        }
        clean(parent, instance);
        let folder = parent.join(instance);
        make_private(&folder)?;
        let known = load(&folder);
        let mut writer = Writer::new(&folder, limit, &known)?;
        let changes = known.iter().map(|(key, written)| (key.clone(), change(&folder, written))).collect();
        let (notes, inbox) = mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let is_over_there = Arc::clone(&is_over);
        std::thread::Builder::new().name("journal".into()).spawn(move || {
            for note in inbox {
                if matches!(note, Note::Over(_)) || !is_over_there.load(Ordering::Relaxed) {
                    writer.write(note);
                }
            }
        })?;
        Ok((Self { notes, folder, is_over }, changes))
    }

    pub(super) fn changed(&self, key: Key, change: Change) {
        // The thread lives as long as this does.
        let _ = self.notes.send(Note::Changed(key, change));
    }

    pub(super) fn gone(&self, keys: Vec<Key>) {
        if !keys.is_empty() {
            // As above.
            let _ = self.notes.send(Note::Gone(keys));
        }
    }

    /// Whether the Neovim lives whose turns these are.
    pub(super) fn is_neovim_alive(&self) -> bool {
        self.folder.file_name().and_then(|name| neovim_of(name.to_str()?)).is_some_and(is_alive)
    }

    /// Neovim goes away, and nothing can be undone any more. The thread removes the folder: whoever else did could meet a file
    /// that it makes.
    pub(super) fn remove(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let (done, answer) = mpsc::channel();
        let _ = self.notes.send(Note::Over(done));
        if answer.recv_timeout(REMOVAL).is_err() {
            tracing::debug!("the journal is not removed yet");
        }
    }

    /// Waits until all is written.
    #[cfg(test)]
    pub(super) fn flush(&self) {
        let (done, answer) = mpsc::channel();
        let _ = self.notes.send(Note::Flush(done));
        let _ = answer.recv();
    }
}

/// The thread's part.
struct Writer {
    folder: PathBuf,
    lines: File,
    known: BTreeMap<Key, Written>,
    next: u64,
    bytes: u64,
    limit: u64,
}

impl Writer {
    /// Begins a new file of lines with what is known, and removes contents that nobody needs.
    fn new(folder: &Path, limit: u64, known: &BTreeMap<Key, Written>) -> io::Result<Self> {
        let numbers: Vec<u64> = known.values().flat_map(numbers).collect();
        let (mut next, mut bytes) = (1, 0);
        for entry in fs::read_dir(folder)?.flatten() {
            let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok()) else { continue };
            next = next.max(number + 1);
            if numbers.contains(&number) {
                bytes += entry.metadata().map_or(0, |metadata| metadata.len());
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        let mut text = Vec::new();
        for (key, written) in known {
            text.extend(line(key, Some(written))?);
        }
        let new = folder.join("turns-1.new");
        fs::write(&new, text)?;
        fs::rename(&new, folder.join(LINES))?;
        let lines = OpenOptions::new().append(true).open(folder.join(LINES))?;
        Ok(Self { folder: folder.to_owned(), lines, known: known.clone(), next, bytes, limit })
    }

    fn write(&mut self, note: Note) {
        let written = match note {
            Note::Changed(key, change) => self.changed(key, &change),
            Note::Gone(keys) => keys.into_iter().try_for_each(|key| self.gone(&key)),
            Note::Over(done) => {
                if let Err(error) = fs::remove_dir_all(&self.folder) {
                    tracing::debug!(%error, "the journal could not be removed");
                }
                // Whoever asked may not have waited.
                let _ = done.send(());
                Ok(())
            }
            #[cfg(test)]
            Note::Flush(done) => {
                let _ = done.send(());
                Ok(())
            }
        };
        if let Err(error) = written {
            tracing::warn!(%error, "a change can only be undone as long as this helper lives");
        }
    }

    fn changed(&mut self, key: Key, change: &Change) -> io::Result<()> {
        let old = self.known.get(&key).cloned();
        let before = match &old {
            Some(old) => old.before.clone(),
            None => self.keep(&change.before)?,
        };
        let left = self.keep(&change.left)?;
        let started = change.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
        let started = u64::try_from(started).unwrap_or(u64::MAX);
        let written = Written { root: change.root.clone(), started, before, left };
        self.lines.write_all(&line(&key, Some(&written))?)?;
        self.known.insert(key, written);
        // Only once no line needs it any more.
        if let Some(old) = old {
            self.drop_content(&old.left);
        }
        Ok(())
    }

    fn gone(&mut self, key: &Key) -> io::Result<()> {
        let Some(old) = self.known.remove(key) else { return Ok(()) };
        self.lines.write_all(&line(key, None)?)?;
        self.drop_content(&old.before);
        self.drop_content(&old.left);
        Ok(())
    }

    /// Writes bytes into a file of their own.
    fn keep(&mut self, kept: &Kept) -> io::Result<Content> {
        let (bytes, mode) = match kept {
            Kept::Missing => return Ok(Content::Missing),
            Kept::Unknown(why) => return Ok(Content::Unknown(why.clone())),
            Kept::Bytes(blob, mode) => (blob.read()?, *mode),
            Kept::Named(path, mode) => (fs::read(path)?, *mode),
        };
        let len = bytes.len() as u64;
        if self.bytes + len > self.limit {
            return Ok(Content::Unknown("the checkpoints had no room left".to_owned()));
        }
        let number = self.next;
        self.next += 1;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        options.open(self.folder.join(number.to_string()))?.write_all(&bytes)?;
        self.bytes += len;
        Ok(Content::File(number, mode))
    }

    fn drop_content(&mut self, content: &Content) {
        let Content::File(number, _) = content else { return };
        let path = self.folder.join(number.to_string());
        let len = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        if fs::remove_file(path).is_ok() {
            self.bytes = self.bytes.saturating_sub(len);
        }
    }
}

fn line((chat, turn, path): &Key, change: Option<&Written>) -> io::Result<Vec<u8>> {
    let line = Line { chat: chat.0, turn: *turn, path: path.clone(), change: change.cloned() };
    let mut bytes = serde_json::to_vec(&line)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn numbers(written: &Written) -> impl Iterator<Item = u64> + use<> {
    let number = |content: &Content| match content {
        Content::File(number, _) => Some(*number),
        Content::Missing | Content::Unknown(_) => None,
    };
    [number(&written.before), number(&written.left)].into_iter().flatten()
}

fn change(folder: &Path, written: &Written) -> Change {
    let kept = |content: &Content| match content {
        Content::Missing => Kept::Missing,
        Content::File(number, mode) => Kept::Named(folder.join(number.to_string()), *mode),
        Content::Unknown(why) => Kept::Unknown(why.clone()),
    };
    Change {
        root: written.root.clone(),
        started: SystemTime::UNIX_EPOCH + Duration::from_millis(written.started),
        before: kept(&written.before),
        left: kept(&written.left),
    }
}

/// What a journal says, as far as it can be read: the last line may be cut.
fn load(folder: &Path) -> BTreeMap<Key, Written> {
    let mut known = BTreeMap::new();
    let Ok(file) = File::open(folder.join(LINES)) else { return known };
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        let Ok(Line { chat, turn, path, change }) = serde_json::from_str(&line) else { continue };
        let key = (ChatId(chat), turn, path);
        match change {
            Some(change) => drop(known.insert(key, change)),
            None => drop(known.remove(&key)),
        }
    }
    let mut turns: Vec<(u64, ChatId, u64)> =
        known.iter().map(|((chat, turn, _), written): (&Key, &Written)| (written.started, *chat, *turn)).collect();
    turns.sort_unstable();
    turns.dedup();
    let old: Vec<_> = turns.iter().rev().skip(MAX_TURNS).map(|(_, chat, turn)| (*chat, *turn)).collect();
    known.retain(|(chat, turn, _), _| !old.contains(&(*chat, *turn)));
    known
}

/// Removes the journals of Neovims that are no more.
fn clean(parent: &Path, instance: &str) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| *name != instance) else { continue };
        let pid = neovim_of(name);
        if pid.is_some_and(|pid| !is_alive(pid)) && entry.path().join(LINES).exists() {
            // Another helper may be faster.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The process of the Neovim that a journal's folder is named after.
fn neovim_of(instance: &str) -> Option<i32> {
    instance.split_once('-').and_then(|(pid, _)| pid.parse().ok())
}

fn is_alive(pid: i32) -> bool {
    #[cfg(unix)]
    {
        use nix::errno::Errno;
        use nix::sys::signal::kill;
        use nix::unistd::Pid;
        kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH)
    }
    #[cfg(not(unix))]
    {
        let _ = pid;
        true
    }
}
