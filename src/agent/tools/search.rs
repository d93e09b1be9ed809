//! Looking for files and lines, without what git ignores.

use std::fs;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use regex_lite::RegexBuilder;

/// A file with a longer text is not searched, in bytes.
const LARGEST: u64 = 4 * 1024 * 1024;
/// The most of a line that is told, in characters.
const LINE: usize = 300;

/// What lines are wanted.
#[derive(Debug, Clone, Default)]
pub(in crate::agent) struct Wanted {
    pub(super) pattern: String,
    pub(super) ignore_case: bool,
    /// Only in files of these names.
    pub(super) glob: Option<String>,
    /// Lines before and after each hit.
    pub(super) context: usize,
    /// The most hits.
    pub(super) limit: usize,
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// One line each, ready to be told.
    pub(super) lines: Vec<String>,
    /// The places of the hits: file, and line from 1.
    pub(super) places: Vec<(PathBuf, u32)>,
    /// Whether there are more.
    pub(super) is_more: bool,
}

fn files(root: &Path) -> impl Iterator<Item = PathBuf> {
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .require_git(false)
        .sort_by_file_path(Path::cmp)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    walk.filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .map(ignore::DirEntry::into_path)
}

/// A pattern for paths relative to a folder; one without a slash is for names.
fn matcher(pattern: &str) -> Result<impl Fn(&Path) -> bool, String> {
    let build = |pattern: &str| -> Result<GlobMatcher, String> {
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        glob.map(|glob| glob.compile_matcher()).map_err(|error| error.to_string())
    };
    let pattern = pattern.trim_start_matches("./");
    let glob = if pattern.contains('/') { build(pattern)? } else { build(&format!("**/{pattern}"))? };
    Ok(move |path: &Path| glob.is_match(path))
}

fn shown(path: &Path, root: &Path, folder: &Path) -> String {
    let path = path.strip_prefix(folder).or_else(|_| path.strip_prefix(root)).unwrap_or(path);
    path.to_string_lossy().replace('\\', "/")
}

/// Files below `root` whose path fits; names are told relative to `folder`.
///
/// # Errors
/// What is wrong with the pattern.
pub(super) fn glob(root: &Path, folder: &Path, pattern: &str, limit: usize) -> Result<(Vec<String>, bool), String> {
    let fits = matcher(pattern)?;
    let mut found =
        files(root).filter(|path| fits(path.strip_prefix(root).unwrap_or(path))).map(|path| shown(&path, root, folder));
    let paths: Vec<String> = found.by_ref().take(limit).collect();
    Ok((paths, found.next().is_some()))
}

/// Lines below `root`, which may be a file, that fit; names are told relative to `folder`.
///
/// # Errors
/// What is wrong with a pattern.
pub(super) fn grep(root: &Path, folder: &Path, wanted: &Wanted) -> Result<Found, String> {
    let build = |pattern: &str| RegexBuilder::new(pattern).case_insensitive(wanted.ignore_case).build();
    let regex = build(&wanted.pattern).map_err(|error| format!("the pattern is no regular expression ({error})"))?;
    let fits = wanted.glob.as_deref().map(matcher).transpose()?;
    let mut found = Found::default();
    for path in files(root) {
        if fits.as_ref().is_some_and(|fits| !fits(path.strip_prefix(root).unwrap_or(&path))) {
            continue;
        }
        let Some(text) = text_of(&path) else { continue };
        let lines: Vec<&str> = text.lines().collect();
        let name = shown(&path, root, folder);
        let mut told = 0;
        for (index, line) in lines.iter().enumerate() {
            if !regex.is_match(line) {
                continue;
            }
            if found.places.len() >= wanted.limit {
                found.is_more = true;
                return Ok(found);
            }
            found.places.push((path.clone(), u32::try_from(index + 1).unwrap_or(u32::MAX)));
            let first = index.saturating_sub(wanted.context).max(told);
            let last = (index + wanted.context + 1).min(lines.len());
            for (number, line) in lines.iter().enumerate().take(last).skip(first) {
                let mark = if number == index || regex.is_match(line) { ':' } else { '-' };
                let line: String = line.chars().take(LINE).collect();
                found.lines.push(format!("{name}{mark}{}{mark} {line}", number + 1));
            }
            told = last;
        }
    }
    Ok(found)
}

/// The text of a file that has one.
fn text_of(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    if bytes.iter().take(8 * 1024).any(|byte| *byte == 0) {
        return None;
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("src/a.rs", "one\nTwo\nthree\nfour two\n");
        write("src/deep/b.rs", "two\n");
        write("README.md", "two words\n");
        write("target/out.rs", "two\n");
        write(".gitignore", "target\n");
        write("image.bin", "two\0two");
        folder
    }

    #[test]
    fn lines_are_found_with_their_places() {
        let project = project();
        let root = project.path();
        let wanted = Wanted { pattern: "two".into(), limit: 100, ..Wanted::default() };
        let found = grep(root, root, &wanted).unwrap();
        assert_eq!(found.lines, ["README.md:1: two words", "src/a.rs:4: four two", "src/deep/b.rs:1: two"]);
        assert_eq!(found.places[1], (root.join("src/a.rs"), 4));
        let wanted = Wanted { ignore_case: true, glob: Some("*.rs".into()), context: 1, limit: 100, ..wanted };
        let found = grep(&root.join("src"), root, &wanted).unwrap();
        assert_eq!(
            found.lines,
            ["src/a.rs-1- one", "src/a.rs:2: Two", "src/a.rs-3- three", "src/a.rs:4: four two", "src/deep/b.rs:1: two"]
        );
        let found = grep(root, root, &Wanted { limit: 1, ..wanted.clone() }).unwrap();
        assert!(found.is_more && found.places.len() == 1);
        assert!(grep(root, root, &Wanted { pattern: "(".into(), ..wanted }).is_err());
        let file = Wanted { pattern: "one".into(), limit: 9, ..Wanted::default() };
        assert_eq!(grep(&root.join("src/a.rs"), root, &file).unwrap().lines, ["src/a.rs:1: one"]);
    }

    #[test]
    fn files_are_found_by_name_and_by_path() {
        let project = project();
        let root = project.path();
        let found = |pattern: &str| glob(root, root, pattern, 10).unwrap().0;
        assert_eq!(found("*.rs"), ["src/a.rs", "src/deep/b.rs"]);
        assert_eq!(found("src/*.rs"), ["src/a.rs"]);
        assert_eq!(found("src/**/*.rs"), ["src/a.rs", "src/deep/b.rs"]);
        assert_eq!(found("**/README.md"), ["README.md"]);
        assert!(glob(root, root, "*", 1).unwrap().1);
        assert_eq!(glob(&root.join("src"), root, "*.rs", 10).unwrap().0, ["src/a.rs", "src/deep/b.rs"]);
    }
}
