//! The text of files and of the buffers that hold them.

use std::path::Path;

use rmpv::Value;
use tokio::time::Instant;

use super::mirror::Mirrored;
use super::{Files, Trouble, is_true, read_disk};
use crate::changes::merge::merge_texts;
use crate::files::{disk, edits};
use crate::nvim::incoming::{array, get, integer, text};

/// Text per answer of Neovim: larger ones cost nvim-rs more than their length.
pub(super) const PIECE: u64 = 64 * 1024;

/// A loaded buffer.
pub(super) struct Loaded {
    pub(super) buf: i64,
    pub(super) tick: u64,
    pub(super) modified: bool,
    /// Somebody else changed the file since a buffer with unsaved changes was read or saved.
    pub(super) is_behind: bool,
    /// Whether there is such a file.
    pub(super) is_on_disk: bool,
    pub(super) why_not: Option<String>,
    pub(super) form: Form,
}

/// How a buffer's lines make a text.
#[derive(Debug, Clone)]
pub(super) struct Form {
    /// Whether a line break follows the last line. It does not in a buffer that Neovim would write as an empty file.
    ends_in_break: bool,
    has_byte_order_mark: bool,
    line_break: &'static str,
    /// Whether the bytes of the file are those of the text.
    pub(super) is_utf8: bool,
}

/// What an agent reads.
pub(super) struct Current {
    pub(super) text: String,
    /// Whether the disk has it, too.
    pub(super) is_of_disk: bool,
}

impl Files {
    /// The text of a file as the user sees it.
    pub(super) async fn current_text(&self, path: &Path, deadline: Instant) -> Result<Current, Trouble> {
        loop {
            let Some(loaded) = self.stat(path, deadline).await? else {
                return Ok(Current { text: read_disk(path).await?, is_of_disk: true });
            };
            if !loaded.modified {
                // The disk holds the same, byte for byte, unless it is in an encoding that only the buffer understands.
                match read_disk(path).await {
                    Err(Trouble::Disk(disk::DiskError::NotText(_))) => {}
                    result => return result.map(|text| Current { text, is_of_disk: true }),
                }
            }
            if let Some(text) = self.buffer_text(path, &loaded, deadline).await? {
                let text = self.with_what_follows(path, &loaded.form, text);
                return Ok(Current { text, is_of_disk: !loaded.modified });
            }
        }
    }

    /// A buffer's text together with a write that it does not have yet because the user is busy there.
    fn with_what_follows(&self, path: &Path, form: &Form, text: String) -> String {
        let Some(due) = self.shared.due.get(path) else { return text };
        match merge_texts(&due.base, &form.to_lines(&text), &due.text) {
            Ok(merged) => form.to_file(&merged, false),
            // Once the user is free, they will be told.
            Err(_) => text,
        }
    }

    /// The text of a buffer, or `None` if it changed while it was read. Only what changed since the last time is read.
    pub(super) async fn buffer_text(
        &self,
        path: &Path,
        loaded: &Loaded,
        deadline: Instant,
    ) -> Result<Option<String>, Trouble> {
        let lines = match self.mirrored(loaded, deadline).await? {
            Mirrored::Lines(lines) => lines,
            Mirrored::Stale => return Ok(None),
            Mirrored::Unknown => {
                let Some(watch) = self.watch_buffer(loaded, deadline).await? else { return Ok(None) };
                let Some(lines) = self.read_lines(path, loaded, deadline).await? else { return Ok(None) };
                self.keep_mirror(loaded, watch, lines.clone());
                lines
            }
        };
        let mut whole =
            if loaded.form.line_break == "\n" { lines } else { lines.replace('\n', loaded.form.line_break) };
        if loaded.form.ends_in_break {
            whole.push_str(loaded.form.line_break);
        }
        Ok(Some(whole))
    }

    /// All lines of a buffer with `\n` between them, or `None` if it changed while they were read.
    async fn read_lines(&self, path: &Path, loaded: &Loaded, deadline: Instant) -> Result<Option<String>, Trouble> {
        let mut whole = String::new();
        let mut next = 0_u64;
        loop {
            let arguments = vec![loaded.buf.into(), loaded.tick.into(), next.into(), PIECE.into()];
            let answer = self.ask("file_lines", arguments, deadline).await?;
            if is_true(&answer, "stale") {
                return Ok(None);
            }
            for line in array(&answer, "lines") {
                if next > 0 {
                    whole.push('\n');
                }
                // Bytes that are no text, which a buffer can hold, must not be replaced behind the user's back.
                let line = line.as_str().ok_or_else(|| disk::DiskError::NotText(path.to_owned()))?;
                // Neovim's API gives a NUL in a line as a line break.
                whole.push_str(&line.replace('\n', "\0"));
                next += 1;
            }
            if whole.len() > disk::MAX_TEXT {
                return Err(disk::DiskError::TooLarge(path.to_owned()).into());
            }
            if is_true(&answer, "done") {
                return Ok(Some(whole));
            }
            if array(&answer, "lines").is_empty() {
                return Err(Trouble::Odd(answer.to_string()));
            }
        }
    }

    /// What Neovim knows of a file; `None` if no buffer has it.
    pub(super) async fn stat(&self, path: &Path, deadline: Instant) -> Result<Option<Loaded>, Trouble> {
        self.stat_for(path, false, deadline).await
    }

    /// The same before a write, for which other editors count as well.
    pub(super) async fn stat_to_write(&self, path: &Path, deadline: Instant) -> Result<Option<Loaded>, Trouble> {
        self.stat_for(path, true, deadline).await
    }

    async fn stat_for(&self, path: &Path, to_write: bool, deadline: Instant) -> Result<Option<Loaded>, Trouble> {
        let arguments = vec![path.to_string_lossy().into_owned().into(), to_write.into()];
        let answer = self.ask("file_stat", arguments, deadline).await?;
        if !is_true(&answer, "loaded") {
            return match get(&answer, "why_not").and_then(text) {
                Some(why) => Err(Trouble::not_writable(path, &why)),
                None => Ok(None),
            };
        }
        let (Some(buf), Some(tick)) = (get(&answer, "buf").and_then(Value::as_i64), integer(&answer, "tick")) else {
            return Err(Trouble::Odd(answer.to_string()));
        };
        let line_break = match get(&answer, "fileformat").and_then(Value::as_str) {
            Some("dos") => "\r\n",
            Some("mac") => "\r",
            _ => "\n",
        };
        Ok(Some(Loaded {
            buf,
            tick,
            modified: is_true(&answer, "modified"),
            is_behind: is_true(&answer, "behind"),
            is_on_disk: is_true(&answer, "on_disk"),
            why_not: get(&answer, "why_not").and_then(text),
            form: Form {
                ends_in_break: is_true(&answer, "eol") && integer(&answer, "line_count") != Some(0),
                has_byte_order_mark: is_true(&answer, "bomb"),
                line_break,
                is_utf8: matches!(get(&answer, "fileencoding").and_then(Value::as_str), None | Some("" | "utf-8")),
            },
        }))
    }
}

impl Form {
    /// A file's text without the byte order mark that this buffer keeps out of its lines.
    pub(super) fn without_mark<'a>(&self, text: &'a str) -> &'a str {
        if self.has_byte_order_mark { text.strip_prefix(edits::BYTE_ORDER_MARK).unwrap_or(text) } else { text }
    }

    /// A file's text as this buffer holds it: `\n` for line breaks, no byte order mark.
    pub(super) fn to_lines(&self, text: &str) -> String {
        edits::in_buffer(self.without_mark(text), self.line_break).into_owned()
    }

    /// A buffer's text as Neovim writes it; without the byte order mark if that is not wanted.
    pub(super) fn to_file(&self, lines: &str, with_mark: bool) -> String {
        let text = if self.line_break == "\n" { lines.to_owned() } else { lines.replace('\n', self.line_break) };
        if with_mark && self.has_byte_order_mark { format!("{}{text}", edits::BYTE_ORDER_MARK) } else { text }
    }
}
