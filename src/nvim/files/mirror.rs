//! Copies of the texts of buffers that agents work on: of a buffer whose text is known, only what changed since is read.
//!
//! Lua notes the rows that change (`lua/agentchat/mirror.lua`) and is asked for them when a text is needed, so a user who
//! types costs nothing here. A copy holds only for the changedtick that it was brought up to, and Neovim tells the size of
//! the text along with what changed: a copy of which that is not so is dropped, and the buffer read as a whole.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;
use rmpv::Value;
use tokio::time::Instant;

use super::buffer::{Loaded, PIECE};
use super::{Files, Trouble, is_true};
use crate::changes::rows;
use crate::nvim::hand;
use crate::nvim::incoming::{array, get, integer};

/// The Lua module that notes what changes.
const MIRROR: &str = "agentchat.mirror";
/// As many buffers as have a copy; of others, and of those that were not used for longest, the text is read.
const MOST: usize = 16;
/// As much text as is kept of all buffers, in bytes.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// How long reading a buffer that may be written soon goes on; a write of it waits.
const AHEAD: Duration = Duration::from_secs(1);

/// What the copy of a buffer was good for.
pub(super) enum Mirrored {
    /// The buffer's lines with `\n` between them.
    Lines(String),
    /// The buffer has changed since it was looked at.
    Stale,
    /// There is no copy, or what changed since cannot be told.
    Unknown,
}

/// The text of a buffer as it was at a changedtick.
#[derive(Debug)]
struct Mirror {
    /// Lua's number for what it notes.
    watch: u64,
    tick: u64,
    lines: String,
    /// When it was used, on a clock that counts uses.
    used: u64,
}

/// All copies, by buffer.
#[derive(Debug, Default)]
pub(super) struct Mirrors(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    of: HashMap<i64, Mirror>,
    uses: u64,
}

impl Mirrors {
    fn take(&self, buf: i64) -> Option<Mirror> {
        self.0.lock().of.remove(&buf)
    }

    fn has(&self, buf: i64) -> bool {
        self.0.lock().of.contains_key(&buf)
    }

    /// Keeps a copy; the buffers whose copies had to go for that.
    fn keep(&self, buf: i64, watch: u64, tick: u64, lines: String) -> Vec<i64> {
        let mut kept = self.0.lock();
        kept.uses += 1;
        let used = kept.uses;
        kept.of.insert(buf, Mirror { watch, tick, lines, used });
        let mut gone = Vec::new();
        while kept.of.len() > MOST || kept.of.values().map(|mirror| mirror.lines.len()).sum::<usize>() > MOST_BYTES {
            let Some(oldest) = kept.of.iter().min_by_key(|(_, mirror)| mirror.used).map(|(buf, _)| *buf) else { break };
            kept.of.remove(&oldest);
            gone.push(oldest);
        }
        gone
    }

    /// The buffer is unloaded, or its text was read anew.
    pub(super) fn forget(&self, buf: i64) {
        self.0.lock().of.remove(&buf);
    }
}

impl Files {
    /// The text of a buffer from its copy, brought up to date.
    pub(super) async fn mirrored(&self, loaded: &Loaded, deadline: Instant) -> Result<Mirrored, Trouble> {
        // Taken out: should this end early, Lua may have been asked already, and there is no copy any more.
        let Some(mirror) = self.shared.mirrors.take(loaded.buf) else { return Ok(Mirrored::Unknown) };
        let arguments =
            vec![loaded.buf.into(), loaded.tick.into(), mirror.watch.into(), mirror.tick.into(), PIECE.into()];
        let answer = self.ask_module(MIRROR, "changed", arguments, deadline).await?;
        if is_true(&answer, "stale") {
            // Nothing was asked for: it is as good as before.
            self.shared.mirrors.keep(loaded.buf, mirror.watch, mirror.tick, mirror.lines);
            return Ok(Mirrored::Stale);
        }
        let regions = array(&answer, "regions").iter().map(Region::from_lua).collect::<Option<Vec<_>>>();
        let lines = match regions {
            _ if is_true(&answer, "unknown") => None,
            Some(regions) if regions.is_empty() => Some(mirror.lines),
            Some(regions) => patched(&mirror.lines, &regions),
            None => None,
        };
        let Some(lines) = lines.filter(|lines| has_size(lines, &answer)) else { return Ok(Mirrored::Unknown) };
        self.keep_mirror(loaded, mirror.watch, lines.clone());
        Ok(Mirrored::Lines(lines))
    }

    /// Takes a copy of a buffer that an agent has read the file of: it may be about to write it.
    pub(super) fn mirror_ahead(&self, path: PathBuf) {
        let files = self.clone();
        tokio::spawn(async move {
            let _turn = files.shared.order.turn(&path).await;
            let deadline = Instant::now() + AHEAD;
            if let Ok(Some(loaded)) = files.stat(&path, deadline).await
                && !files.shared.mirrors.has(loaded.buf)
            {
                // Whatever the trouble is, a write will meet it, too.
                let _ = files.buffer_text(&path, &loaded, deadline).await;
            }
        });
    }

    /// Has Lua note what changes in a buffer from now on: its number for that, or `None` if the buffer has changed already.
    pub(super) async fn watch_buffer(&self, loaded: &Loaded, deadline: Instant) -> Result<Option<u64>, Trouble> {
        let arguments = vec![loaded.buf.into(), loaded.tick.into()];
        let answer = self.ask_module(MIRROR, "watch", arguments, deadline).await?;
        Ok(integer(&answer, "id"))
    }

    /// Keeps the text of a buffer for the next time.
    pub(super) fn keep_mirror(&self, loaded: &Loaded, watch: u64, lines: String) {
        for gone in self.shared.mirrors.keep(loaded.buf, watch, loaded.tick, lines) {
            // Nobody waits for that.
            drop(hand::call(&self.nvim, MIRROR, "forget", vec![gone.into()]));
        }
    }

    /// A buffer's text is not what it was, and Neovim cannot tell what changed.
    pub fn mirror_gone(&self, buf: i64) {
        self.shared.mirrors.forget(buf);
    }
}

/// Rows that are not what they were.
#[derive(Debug, PartialEq, Eq)]
struct Region {
    /// The first row, in the text as it is now.
    first: usize,
    /// How many rows were there before.
    before: usize,
    /// The rows that are there now.
    now: Vec<String>,
}

impl Region {
    /// `None` if it is no such thing, or not text.
    fn from_lua(value: &Value) -> Option<Self> {
        let [first, before, now] = value.as_array()?.as_slice() else { return None };
        let number = |value: &Value| usize::try_from(value.as_u64()?).ok();
        // Neovim's API gives a NUL in a line as a line break.
        let line = |line: &Value| Some(line.as_str()?.replace('\n', "\0"));
        let now = now.as_array()?.iter().map(line).collect::<Option<_>>()?;
        Some(Self { first: number(first)?, before: number(before)?, now })
    }
}

/// A text with other rows in some regions, from the top down; `None` if they do not fit it.
fn patched(text: &str, regions: &[Region]) -> Option<String> {
    let old = rows(text);
    let mut new: Vec<&str> = Vec::with_capacity(old.len());
    let mut row = 0;
    for region in regions {
        let same = region.first.checked_sub(new.len())?;
        new.extend_from_slice(old.get(row..row + same)?);
        new.extend(region.now.iter().map(String::as_str));
        row += same + region.before;
    }
    new.extend_from_slice(old.get(row..)?);
    Some(new.join("\n"))
}

/// Whether a text has as many rows, and above the last one as many bytes, as Neovim says.
fn has_size(text: &str, answer: &Value) -> bool {
    let rows = memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1;
    let bytes = text.rfind('\n').map_or(0, |end| end + 1);
    let said = |key| get(answer, key).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
    said("rows") == Some(rows) && said("bytes") == Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvim::wire;

    fn region(first: usize, before: usize, now: &[&str]) -> Region {
        Region { first, before, now: now.iter().map(|&line| line.to_owned()).collect() }
    }

    #[test]
    fn rows_that_changed_take_the_place_of_what_was_there() {
        let patched = |regions: &[Region]| patched("a\nb\nc\nd", regions);
        assert_eq!(patched(&[region(0, 1, &["A"])]).as_deref(), Some("A\nb\nc\nd"));
        assert_eq!(patched(&[region(1, 0, &["x", "y"]), region(5, 1, &[])]).as_deref(), Some("a\nx\ny\nb\nc"));
        assert_eq!(patched(&[region(0, 2, &[]), region(1, 1, &["D", ""])]).as_deref(), Some("c\nD\n"));
        assert_eq!(patched(&[region(9, 0, &["x"])]), None, "below the end");
        assert_eq!(patched(&[region(3, 2, &["x"])]), None, "more than there is");
        assert_eq!(patched(&[region(2, 1, &["x"]), region(1, 1, &["x"])]), None, "not in order");
    }

    #[test]
    fn a_copy_of_another_size_is_none() {
        let size = |rows: u64, bytes: u64| wire::map([("rows", rows.into()), ("bytes", bytes.into())]);
        assert!(has_size("a\nbc\nd", &size(3, 5)));
        assert!(has_size("", &size(1, 0)));
        assert!(!has_size("a\nbc\nd", &size(3, 4)));
        assert!(!has_size("a\nbc\nd", &size(2, 5)));
    }

    #[test]
    fn copies_are_bounded_in_number_and_in_bytes() {
        let mirrors = Mirrors::default();
        for buf in 0..16 {
            assert!(mirrors.keep(buf, 1, 1, String::new()).is_empty());
        }
        let first = mirrors.take(0).expect("it is there");
        assert!(mirrors.keep(0, first.watch, first.tick, first.lines).is_empty());
        assert_eq!(mirrors.keep(16, 1, 1, String::new()), [1], "the one that was not used for longest");
        let gone = mirrors.keep(17, 1, 1, "x".repeat(MOST_BYTES));
        assert_eq!((gone.len(), mirrors.take(17).is_some()), (1, true));
        assert_eq!(mirrors.keep(17, 1, 1, "x".repeat(MOST_BYTES + 1)).len(), 16);
    }
}
