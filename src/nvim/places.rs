//! Looking at the places that an agent's calls name: is there a text, and which line is it about?

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rmpv::Value;
use tokio::time::timeout;

use super::files::Files;
use super::wire;
use crate::core::follow::{Look, PlaceChange, Visit};
use crate::files::disk;

/// Bytes at the beginning of a file by which text is told from other things.
const HEAD: u64 = 8 * 1024;
/// The largest text that a change is looked for in, in bytes.
const MAX_SEARCHED: u64 = 10 * 1024 * 1024;
/// How long the text of a buffer is waited for: while the user is in the middle of something, the disk has to do.
const BUFFER_PATIENCE: Duration = Duration::from_millis(200);
/// A line that is shorter than this, without its blanks, is in too many places to be looked for on its own.
const TELLING: usize = 5;

/// Looks at all of them, in order.
pub async fn look(files: Files, visits: Vec<Visit>) -> Vec<(Visit, Look)> {
    let mut looks = Vec::with_capacity(visits.len());
    for visit in visits {
        let look = look_at(&files, &visit).await;
        looks.push((visit, look));
    }
    looks
}

async fn look_at(files: &Files, visit: &Visit) -> Look {
    let path = visit.place.path.clone();
    let on_disk = tokio::task::spawn_blocking(move || kind_of(&path)).await.unwrap_or(Look::NoText);
    let Look::File { size, .. } = on_disk else { return on_disk };
    let line = match (&visit.place.line, &visit.place.change) {
        (Some(line), _) => Some(*line),
        (None, Some(change)) if size <= MAX_SEARCHED => {
            let text = text_of(files, &visit.place.path).await;
            text.and_then(|text| changed_line(&text, change))
        }
        (None, _) => None,
    };
    Look::File { size, line }
}

/// The text as the user sees it, or else what is on the disk.
async fn text_of(files: &Files, path: &Path) -> Option<String> {
    if let Ok(Ok(text)) = timeout(BUFFER_PATIENCE, files.text(path)).await {
        return Some(text);
    }
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || disk::read(&path)).await.ok()?.ok()
}

/// What a path leads to.
fn kind_of(path: &Path) -> Look {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Look::Missing,
        Err(_) => return Look::NoText,
    };
    // Opening a FIFO would wait for whoever writes to it.
    if !metadata.is_file() {
        return Look::NoText;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    // Text in UTF-16 has such bytes too, but begins with a mark.
    let is_wide = head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]);
    if read.is_err() || (head.contains(&0) && !is_wide) {
        return Look::NoText;
    }
    Look::File { size: metadata.len(), line: None }
}

/// The first line that a change changes, 1-based: found by the text after it, else by that before it.
fn changed_line(text: &str, change: &PlaceChange) -> Option<u64> {
    let text = text.replace("\r\n", "\n");
    let old = change.old.as_deref().unwrap_or_default().replace("\r\n", "\n");
    let new = change.new.as_deref().unwrap_or_default().replace("\r\n", "\n");
    let same = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
    for part in [&new, &old] {
        if let Some(start) = find_lines(&text, part) {
            let lines = text[..start].matches('\n').count() + same.min(part.lines().count().saturating_sub(1));
            return u64::try_from(lines + 1).ok();
        }
    }
    let is_telling = |line: &&str| line.trim().len() >= TELLING;
    let wanted = [&new, &old].into_iter().filter_map(|part| part.lines().nth(same).filter(is_telling));
    wanted.filter_map(|wanted| text.lines().position(|line| line == wanted)).map(|row| row as u64 + 1).next()
}

/// Where a part begins in a text: at the beginning of a line if it is there at all.
fn find_lines(text: &str, part: &str) -> Option<usize> {
    if part.trim().is_empty() {
        return None;
    }
    let starts = text.match_indices(part).map(|(start, _)| start);
    let is_line = |start: &usize| *start == 0 || text.as_bytes()[start - 1] == b'\n';
    starts.clone().find(is_line).or_else(|| starts.clone().next())
}

/// The trail as Lua takes it: each place with the text of its line, as it is on the disk.
pub async fn trail(visits: Vec<Visit>) -> Value {
    let work = tokio::task::spawn_blocking(move || {
        let mut texts: HashMap<PathBuf, Option<String>> = HashMap::new();
        let places = visits.into_iter().map(|mut visit| {
            let path = visit.place.path.clone();
            let text = texts.entry(path).or_insert_with_key(|path| small_text(path)).as_deref();
            let change = visit.place.change.as_ref();
            visit.place.line = visit.place.line.or_else(|| changed_line(text?, change?));
            let line = visit.place.line.unwrap_or(1);
            let row = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
            wire::visit(&visit, text.and_then(|text| text.lines().nth(row)))
        });
        Value::Array(places.collect())
    });
    work.await.unwrap_or_else(|_| Value::Array(Vec::new()))
}

fn small_text(path: &Path) -> Option<String> {
    match kind_of(path) {
        Look::File { size, .. } if size <= MAX_SEARCHED => disk::read(path).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(old: Option<&str>, new: &str) -> PlaceChange {
        PlaceChange { old: old.map(Into::into), new: Some(new.into()) }
    }

    #[test]
    fn the_first_changed_line_is_found_before_and_after_the_change() {
        let before = "a\nb\nc\nfn d() {\n}\n";
        let after = "a\nb\nC!\nfn d() {\n}\n";
        // A fragment with a line around it, and the whole file.
        for (old, new) in [("b\nc\n", "b\nC!\n"), (before, after)] {
            for text in [before, after, &after.replace('\n', "\r\n")] {
                assert_eq!(changed_line(text, &change(Some(old), new)), Some(3), "{old:?} in {text:?}");
            }
        }
    }

    #[test]
    fn a_new_file_begins_with_its_change_and_what_is_not_there_is_nowhere() {
        assert_eq!(changed_line("one\ntwo\n", &change(None, "one\ntwo\n")), Some(1));
        assert_eq!(changed_line("one\ntwo\n", &change(Some("three"), "four")), None);
        assert_eq!(changed_line("one\n", &change(Some(""), "")), None);
    }

    #[test]
    fn lines_that_were_deleted_are_where_the_rest_is() {
        assert_eq!(changed_line("a\nb\nc\n", &change(Some("b\nx\n"), "b\n")), Some(2));
        assert_eq!(changed_line("a\nb\nx\nc\n", &change(Some("x\n"), "")), Some(3));
    }

    #[test]
    fn a_fragment_that_begins_within_a_line_is_found_too() {
        assert_eq!(changed_line("x = foo(1)\ny = foo(2)\n", &change(Some("foo(2)"), "bar(2)")), Some(2));
    }

    #[test]
    fn only_regular_files_of_text_are_places() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("text"), "one\n").unwrap();
        fs::write(at("binary"), b"\x7fELF\0\0").unwrap();
        fs::write(at("wide"), b"\xff\xfea\0\n\0").unwrap();
        assert_eq!(kind_of(&at("text")), Look::File { size: 4, line: None });
        assert_eq!(kind_of(&at("binary")), Look::NoText);
        assert!(matches!(kind_of(&at("wide")), Look::File { .. }));
        assert_eq!(kind_of(folder.path()), Look::NoText);
        assert_eq!(kind_of(&at("text/below")), Look::Missing);
        assert_eq!(kind_of(&at("none")), Look::Missing);
        #[cfg(unix)]
        assert_eq!(kind_of(Path::new("/dev/null")), Look::NoText);
    }
}
