//! The table of an agent's pending hunks, which Lua keeps (`lua/agentchat/changes/`): read when the agent writes, and handed
//! back with what the write makes of it.

use std::fmt::Write;
use std::path::Path;

use rmpv::Value;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::{Files, Trouble, is_true};
use crate::changes::{Author, Hunk, Table, lines};
use crate::core::ids::ChatId;
use crate::files::edits;
use crate::nvim::incoming::{array, get, integer, string, text};
use crate::nvim::{hand, wire};

/// The Lua module that has the tables.
pub(super) const CHANGES: &str = "agentchat.changes";
/// Text per call, in bytes, as in `buffer.rs`.
const PIECE: usize = 64 * 1024;

/// What Lua knows of a file that an agent changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending {
    /// Another number after each change of the table; 0 if there is none.
    version: u64,
    created: bool,
    deleted: bool,
    renamed_from: Option<String>,
    /// Whether the last line ended in a newline before, if the agent changed that.
    eol_old: Option<bool>,
    /// The text that the table of a file that is not loaded belongs to.
    stamp: Option<String>,
    hunks: Vec<Hunk>,
}

/// The longest deleted file that is pending, in bytes: all of it is one value for Lua.
const MAX_DELETED: usize = 4 * 1024 * 1024;

/// A table as Lua takes it, in pieces.
pub(super) struct Handover {
    version: u64,
    facts: Value,
    first: Value,
    rest: Vec<Value>,
    /// The same, not for Lua.
    pub(super) pending: Pending,
}

/// A write of an agent: texts with `\n` for line breaks.
pub(super) struct Written<'a> {
    /// What the hunks were of.
    pub(super) now: &'a str,
    /// The same with what others than the agent have changed in the meantime.
    pub(super) before: &'a str,
    /// What the agent makes of that.
    pub(super) after: &'a str,
    /// Whether there was no such file.
    pub(super) is_new: bool,
    /// Whether the file is not loaded.
    pub(super) is_on_disk: bool,
}

impl Pending {
    /// The number of the table; 0 if there is none.
    pub(super) const fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn hunks(&self) -> &[Hunk] {
        &self.hunks
    }

    /// What the write makes of it.
    pub(super) fn written(self, write: &Written) -> Self {
        if self.deleted {
            return self.recreated(write);
        }
        let ((now, _), (before, eol_before), (after, eol_after)) =
            (lines(write.now), lines(write.before), lines(write.after));
        let is_known = !write.is_on_disk || self.stamp.as_deref() == Some(&stamp(write.now));
        // A text that nobody knows any more can be no base: what was pending in it stays as it is.
        let hunks = if is_known { self.hunks } else { Vec::new() };
        let mut table = Table::new(hunks, now.len()).unwrap_or_default();
        table.follow(&now, &before);
        let table = table.written(&before, &after);
        let eol_old = self.eol_old.filter(|_| is_known).unwrap_or(eol_before);
        Self {
            created: self.created || write.is_new,
            eol_old: (eol_old != eol_after).then_some(eol_old),
            stamp: write.is_on_disk.then(|| stamp(write.after)),
            hunks: table.hunks().to_vec(),
            ..self
        }
    }

    /// What a write makes of the table of a file that the agent had deleted: it is compared with what was there before.
    fn recreated(self, write: &Written) -> Self {
        let old = self.deleted_text();
        let ((before, eol_before), (after, eol_after)) = (lines(&old), lines(write.after));
        Self {
            deleted: false,
            created: false,
            eol_old: (eol_before != eol_after).then_some(eol_before),
            stamp: write.is_on_disk.then(|| stamp(write.after)),
            hunks: Table::default().written(&before, &after).hunks().to_vec(),
            ..self
        }
    }

    /// The text of a file that the agent deleted, without its pending changes, as Neovim would read it.
    fn deleted_text(&self) -> String {
        let old = self.hunks.first().map(|hunk| hunk.old.join("\n")).unwrap_or_default();
        let end = if self.hunks.is_empty() || self.eol_old == Some(false) { "" } else { "\n" };
        edits::as_read(&format!("{old}{end}")).into_owned()
    }

    /// The same of a file that has got another name, as Neovim would read it.
    fn base_before_move(&self, file: &str) -> String {
        match (self.deleted, self.created) {
            (true, _) => self.deleted_text(),
            (_, true) => String::new(),
            _ => edits::as_read(&self.base(file)).into_owned(),
        }
    }

    /// The table of a file that is gone; `base` is what it held without the agent.
    fn gone(self, base: &[u8]) -> Self {
        let text = String::from_utf8_lossy(base);
        let (old, eol) = lines(&text);
        let hunk = |old: Vec<&str>| Hunk {
            id: 1,
            first: 0,
            authors: Vec::new(),
            old: old.into_iter().map(str::to_owned).collect(),
        };
        Self {
            deleted: true,
            eol_old: (!base.is_empty()).then_some(eol),
            stamp: Some(stamp("")),
            hunks: if base.is_empty() { Vec::new() } else { vec![hunk(old)] },
            ..self
        }
    }

    /// The text without the agent's pending changes, in the bytes that it would be saved with. `file` is what the table
    /// belongs to.
    fn base(&self, file: &str) -> String {
        let now = edits::as_read(file);
        let (rows, eol) = lines(&now);
        let is_known = self.stamp.as_ref().is_none_or(|known| *known == stamp(&now));
        let table = Table::new(self.hunks.clone(), rows.len()).filter(|_| is_known);
        let Some(table) = table.filter(|table| !table.hunks().is_empty() || self.eol_old.is_some()) else {
            return file.to_owned();
        };
        let end = if self.eol_old.unwrap_or(eol) { "\n" } else { "" };
        edits::in_form_of(file, &format!("{}{end}", table.base(&rows).join("\n"))).into_owned()
    }

    pub(super) fn handover(self, chat: ChatId) -> Handover {
        let mut facts = vec![
            ("chat".into(), chat.0.into()),
            ("created".into(), self.created.into()),
            ("deleted".into(), self.deleted.into()),
        ];
        let texts = [("renamed_from", self.renamed_from.clone()), ("stamp", self.stamp.clone())];
        facts.extend(texts.into_iter().filter_map(|(key, value)| Some((key.into(), value?.into()))));
        facts.extend(self.eol_old.map(|eol| ("eol_old".into(), eol.into())));
        let mut pieces: Vec<Vec<Value>> = vec![Vec::new()];
        let mut bytes = 0;
        for hunk in &self.hunks {
            let weight = hunk.authors.len() + 32 + hunk.old.iter().map(|line| line.len() + 5).sum::<usize>();
            if bytes > 0 && bytes + weight > PIECE {
                pieces.push(Vec::new());
                bytes = 0;
            }
            bytes += weight;
            if let Some(piece) = pieces.last_mut() {
                piece.push(to_lua(hunk));
            }
        }
        let mut pieces = pieces.into_iter().map(Value::Array);
        let first = pieces.next().unwrap_or_else(|| Value::Array(Vec::new()));
        Handover { version: self.version, facts: Value::Map(facts), first, rest: pieces.collect(), pending: self }
    }
}

impl Handover {
    /// The option of `file_edit`.
    pub(super) fn option(&self, path: &Path) -> Value {
        wire::map([
            ("path", shown(path)),
            ("facts", self.facts.clone()),
            ("hunks", self.first.clone()),
            ("more", (!self.rest.is_empty()).into()),
        ])
    }
}

impl Files {
    /// The table that holds after a write, for an edit of the buffer.
    pub(super) async fn hunks_after(
        &self,
        path: &Path,
        chat: ChatId,
        write: &Written<'_>,
        deadline: Instant,
    ) -> Result<Handover, Trouble> {
        let pending = self.pending(path, deadline).await?;
        Ok(pending.written(write).handover(chat))
    }

    /// Hands over what had no room in the first call.
    pub(super) async fn hand_over_rest(&self, path: &Path, handover: Handover) {
        let count = handover.rest.len();
        for (index, piece) in handover.rest.into_iter().enumerate() {
            let arguments = vec![shown(path), piece, (index + 1 < count).into()];
            match hand::ask(&self.nvim, CHANGES, "put_more", arguments).await {
                Ok(answer) if is_true(&answer, "ok") => {}
                // Replaced by a later one.
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(%error, "pending changes could not be handed over");
                    return;
                }
            }
        }
    }

    /// Tells Lua what was written into a file that is not loaded. That failing costs the hunks, not the write.
    pub(super) async fn put_hunks(&self, path: &Path, chat: ChatId, write: &Written<'_>, deadline: Instant) {
        // Again when the user decided about a hunk at that moment.
        const TRIES: usize = 3;
        for _ in 0..TRIES {
            let handover = match self.hunks_after(path, chat, write, deadline).await {
                Ok(handover) => handover,
                Err(trouble) => {
                    tracing::warn!(path = %path.display(), %trouble, "a file's pending changes are not known");
                    return;
                }
            };
            let more = !handover.rest.is_empty();
            let arguments =
                vec![shown(path), handover.version.into(), handover.facts.clone(), handover.first.clone(), more.into()];
            match self.ask_module(CHANGES, "put", arguments, deadline).await {
                Ok(answer) if is_true(&answer, "stale") => {}
                Ok(_) => return self.hand_over_rest(path, handover).await,
                Err(trouble) => {
                    tracing::warn!(path = %path.display(), %trouble, "pending changes could not be handed over");
                    return;
                }
            }
        }
    }

    /// Tells Lua that the agent deleted a file with these bytes. `has_table`: what is pending in it belongs to them.
    pub(super) async fn put_deletion(
        &self,
        path: &Path,
        chat: ChatId,
        bytes: &[u8],
        has_table: bool,
        deadline: Instant,
    ) {
        let told = async {
            let mut pending = self.pending(path, deadline).await?;
            if pending.deleted {
                return Ok(());
            }
            // What the agent made and took away again is nothing; what is too long for a table can still be undone.
            if pending.created || bytes.len() > MAX_DELETED {
                return self.drop_hunks(path, deadline).await;
            }
            if !has_table {
                pending.hunks.clear();
                pending.eol_old = None;
            }
            let handover = match std::str::from_utf8(bytes) {
                Ok(text) => {
                    let base = pending.base(text);
                    pending.gone(base.as_bytes()).handover(chat)
                }
                Err(_) => Handover { first: bytes_of(bytes), ..pending.gone(bytes).handover(chat) },
            };
            let arguments = vec![
                shown(path),
                handover.version.into(),
                handover.facts.clone(),
                handover.first.clone(),
                false.into(),
            ];
            self.ask_module(CHANGES, "put", arguments, deadline).await.map(drop)
        };
        if let Err(trouble) = told.await {
            tracing::warn!(path = %path.display(), %trouble, "a deletion could not be handed over");
        }
    }

    /// Tells Lua that the agent gave a file with these bytes another name.
    pub(super) async fn put_rename(&self, from: &Path, to: &Path, chat: ChatId, bytes: &[u8], deadline: Instant) {
        let told = async {
            let mut pending = self.pending(from, deadline).await?;
            if let Ok(text) = std::str::from_utf8(bytes) {
                let (now, base) = (edits::as_read(text), pending.base_before_move(text));
                let ((now, _), (base, base_eol)) = (lines(&now), lines(&base));
                let eol = text.ends_with('\n');
                pending.hunks = Table::default().written(&base, &now).hunks().to_vec();
                pending.eol_old = (base_eol != eol).then_some(base_eol);
                pending.stamp = Some(stamp(&edits::as_read(text)));
            }
            pending.deleted = false;
            if !pending.created {
                pending.renamed_from.get_or_insert_with(|| from.to_string_lossy().into_owned());
            }
            pending.version = self.pending(to, deadline).await?.version;
            let handover = pending.handover(chat);
            self.drop_hunks(from, deadline).await?;
            let more = !handover.rest.is_empty();
            let arguments =
                vec![shown(to), handover.version.into(), handover.facts.clone(), handover.first.clone(), more.into()];
            self.ask_module(CHANGES, "put", arguments, deadline).await?;
            self.hand_over_rest(to, handover).await;
            hand::ask(&self.nvim, super::takeover::DISK, "renamed", vec![shown(from), shown(to)]).await?;
            Ok::<_, Trouble>(())
        };
        if let Err(trouble) = told.await {
            tracing::warn!(path = %to.display(), %trouble, "a new name could not be handed over");
        }
    }

    /// Nothing is pending in the file any more.
    pub(super) async fn drop_hunks(&self, path: &Path, deadline: Instant) -> Result<(), Trouble> {
        self.ask_module(super::takeover::DISK, "drop_changes", vec![shown(path)], deadline).await.map(drop)
    }

    /// What Lua knows of the file.
    pub(super) async fn pending(&self, path: &Path, deadline: Instant) -> Result<Pending, Trouble> {
        'anew: loop {
            let mut pending = Pending::default();
            loop {
                let arguments = vec![shown(path), pending.hunks.len().into(), PIECE.into()];
                let answer = self.ask_module(CHANGES, "get", arguments, deadline).await?;
                let version = integer(&answer, "version").unwrap_or_default();
                if pending.hunks.is_empty() {
                    pending.version = version;
                } else if pending.version != version {
                    continue 'anew;
                }
                if let Some(facts) = get(&answer, "facts") {
                    pending.created = is_true(facts, "created");
                    pending.deleted = is_true(facts, "deleted");
                    pending.renamed_from = string(facts, "renamed_from");
                    pending.eol_old = get(facts, "eol_old").and_then(Value::as_bool);
                    pending.stamp = string(facts, "stamp");
                }
                let before = pending.hunks.len();
                for hunk in array(&answer, "hunks") {
                    pending.hunks.push(from_lua(hunk).ok_or_else(|| Trouble::Odd(hunk.to_string()))?);
                }
                if is_true(&answer, "done") || pending.hunks.len() == before {
                    return Ok(pending);
                }
            }
        }
    }
}

pub(super) fn shown(path: &Path) -> Value {
    Value::from(path.to_string_lossy().into_owned())
}

fn to_lua(hunk: &Hunk) -> Value {
    let flags: String = hunk.authors.iter().map(|author| author.letter()).collect();
    let old = hunk.old.iter().map(|line| Value::from(line.as_str())).collect();
    wire::map([
        ("id", hunk.id.into()),
        ("first", hunk.first.into()),
        ("flags", flags.into()),
        ("old", Value::Array(old)),
    ])
}

fn from_lua(hunk: &Value) -> Option<Hunk> {
    Some(Hunk {
        id: integer(hunk, "id")?,
        first: usize::try_from(integer(hunk, "first")?).ok()?,
        authors: string(hunk, "flags")?.chars().map(Author::from_letter).collect::<Option<_>>()?,
        old: array(hunk, "old").iter().map(text).collect::<Option<_>>()?,
    })
}

/// The only hunk of a deleted file that is no text.
fn bytes_of(bytes: &[u8]) -> Value {
    let old = bytes.strip_suffix(b"\n").unwrap_or(bytes).split(|byte| *byte == b'\n');
    let old = old.map(|line| Value::Binary(line.to_vec())).collect();
    let hunk = [("id", 1.into()), ("first", 0.into()), ("flags", "".into()), ("old", Value::Array(old))];
    Value::Array(vec![wire::map(hunk)])
}

/// Stands for a text, as Neovim reads it, also for the next helper; `stamp_of` in `lua/agentchat/changes/buffer.lua` is the
/// same. Neovim has a line break for each NUL, and one empty line where there is none.
fn stamp(text: &str) -> String {
    let mut hasher = Sha256::new();
    for (index, part) in text.split('\0').enumerate().filter(|_| text != "\n") {
        if index > 0 {
            hasher.update(b"\n");
        }
        hasher.update(part);
    }
    hasher.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write<'a>(now: &'a str, after: &'a str) -> Written<'a> {
        Written { now, before: now, after, is_new: false, is_on_disk: true }
    }

    #[test]
    fn the_table_of_a_file_that_is_not_loaded_belongs_to_its_text() {
        let one = Pending::default().written(&write("a\nb\nc\n", "A\nb\nc\n"));
        assert_eq!(one.stamp.as_deref(), Some(stamp("A\nb\nc\n").as_str()));
        let two = one.clone().written(&write("A\nb\nc\n", "A\nb\nC\n"));
        assert_eq!(
            two.hunks.iter().map(|hunk| (hunk.first, hunk.old.join(" "))).collect::<Vec<_>>(),
            [(0, "a".to_owned()), (2, "c".to_owned())]
        );
        let other = one.written(&write("x\nA\nb\nc\n", "x\nA\nb\nC\n"));
        assert_eq!(other.hunks.iter().map(|hunk| hunk.first).collect::<Vec<_>>(), [3], "of an unknown text nothing");
    }

    #[test]
    fn the_last_newline_is_a_fact_of_the_file() {
        let one = Pending::default().written(&write("a", "a\n"));
        assert_eq!((one.eol_old, one.hunks.len()), (Some(false), 0));
        assert_eq!(one.written(&write("a\n", "a")).eol_old, None);
    }

    #[test]
    fn a_hunk_goes_to_lua_and_comes_back() {
        let one = Pending::default().written(&write("a\nb\nc\n", "A\nb\nc\nd\n"));
        for hunk in &one.hunks {
            assert_eq!(from_lua(&to_lua(hunk)).as_ref(), Some(hunk));
        }
        let hunk = |row: u64| Hunk {
            id: row,
            first: 2 * usize::try_from(row).unwrap_or_default(),
            authors: vec![Author::Agent],
            old: vec![format!("{row} before")],
        };
        let handover = Pending { hunks: (0..20_000).map(hunk).collect(), ..Pending::default() }.handover(ChatId(1));
        assert!(handover.rest.len() > 5);
    }
}
