//! The files of a project as they were at a moment: who they are by their facts, and their bytes as far as limits allow.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use ignore::WalkBuilder;

use super::packs::Blob;

/// A walk that takes longer ends with what it has found.
const MAX_WALK: Duration = Duration::from_secs(10);

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    modified: Option<SystemTime>,
    /// When anything about it changed last, in nanoseconds, where the system tells: nobody can set that back.
    changed: i128,
    size: u64,
    inode: u64,
}

impl Stamp {
    /// The stamp of a file with these facts.
    pub fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let (changed, inode) = {
            use std::os::unix::fs::MetadataExt;
            (i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec()), metadata.ino())
        };
        #[cfg(not(unix))]
        let (changed, inode) = (0, 0);
        Self { modified: metadata.modified().ok(), changed, size: metadata.len(), inode }
    }

    /// When the file changed last.
    pub fn time(&self) -> Option<SystemTime> {
        let changed = u64::try_from(self.changed).ok().filter(|nanos| *nanos > 0);
        changed.map(|nanos| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos)).or(self.modified)
    }

    /// Bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }
}

/// When a file changed last; `None` where there is none.
pub fn changed_at(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok().and_then(|metadata| Stamp::of(&metadata).time())
}

/// The bytes of a file, unless it is not what `stamp` tells of any more.
pub fn read(path: &Path, stamp: Stamp) -> Option<Vec<u8>> {
    let bytes = fs::read(path).ok()?;
    (Stamp::of(&fs::metadata(path).ok()?) == stamp).then_some(bytes)
}

/// The mode of a file, 0 where there is none.
pub fn mode(metadata: &Metadata) -> u32 {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        metadata.permissions().mode() & 0o7777
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        0
    }
}

/// One file of an index.
#[derive(Debug, Clone)]
pub struct Indexed {
    /// What it looked like from outside.
    pub stamp: Stamp,
    /// Its mode.
    pub mode: u32,
    /// Its bytes, if they were kept.
    pub bytes: Option<Blob>,
}

/// The files of a project at a moment, without what git ignores.
#[derive(Debug, Clone, Default)]
pub struct Index {
    files: BTreeMap<Arc<Path>, Indexed>,
    /// Whether every file is listed.
    complete: bool,
}

/// How much an index may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files that are listed.
    pub files: usize,
    /// The longest file whose bytes are kept, in bytes.
    pub file_bytes: u64,
    /// Bytes that are kept in all.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { files: 20_000, file_bytes: 1024 * 1024, bytes: 256 * 1024 * 1024 }
    }
}

impl Index {
    /// Lists the files below `root` and keeps the bytes of those that are not in `old` as they are now. `is_late`
    /// tells of which files what is there now is not wanted: then what `old` knows is what was there before. Of those that
    /// it does not know, `was_there` tells whether there was something; of those that are not listed any more, `is_lost` whether
    /// they were, too.
    pub fn take(
        root: &Path,
        old: &Self,
        is_late: impl Fn(&Path, &Stamp) -> bool,
        was_there: impl Fn(&Metadata) -> bool,
        is_lost: impl Fn(&Path) -> bool,
        limits: Limits,
        mut keep: impl FnMut(&Path, Stamp) -> Option<Blob>,
    ) -> Self {
        let mut index = Self { files: BTreeMap::new(), complete: true };
        let end = Instant::now() + MAX_WALK;
        for (path, metadata) in list(root) {
            if index.files.len() >= limits.files || Instant::now() > end {
                index.complete = false;
                break;
            }
            let stamp = Stamp::of(&metadata);
            let known = old.files.get_key_value(path.as_path());
            let (path, file) = match known {
                Some((path, file)) if file.stamp == stamp || is_late(path, &stamp) => (Arc::clone(path), file.clone()),
                None if is_late(&path, &stamp) => {
                    if old.complete || !was_there(&metadata) {
                        continue;
                    }
                    (path.into(), Indexed { stamp: Stamp::default(), mode: mode(&metadata), bytes: None })
                }
                _ => {
                    let bytes = (metadata.len() <= limits.file_bytes).then(|| keep(&path, stamp)).flatten();
                    (path.into(), Indexed { stamp, mode: mode(&metadata), bytes })
                }
            };
            index.files.insert(path, file);
        }
        for (path, file) in &old.files {
            if path.starts_with(root) && !index.files.contains_key(path) && is_lost(path) {
                index.files.insert(Arc::clone(path), file.clone());
            }
        }
        index
    }

    /// What is known of a file that is listed is this from now on; `None` if it is gone.
    pub fn renew(&mut self, path: &Path, file: Option<&Indexed>) {
        match file {
            Some(file) => {
                self.files.insert(path.into(), file.clone());
            }
            None => {
                self.files.remove(path);
            }
        }
    }

    /// What is known of a file.
    pub fn get(&self, path: &Path) -> Option<&Indexed> {
        self.files.get(path)
    }

    /// What is known at a path and below it.
    pub fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Path> {
        let from = self.files.range::<Path, _>((std::ops::Bound::Included(path), std::ops::Bound::Unbounded));
        from.map(|(known, _)| &**known).take_while(move |known| known.starts_with(path))
    }

    /// Whether a file that is not in here, but would be listed, was not there.
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    /// The files that are not as they are in here, those that are new, and those that are gone.
    pub fn changed(&self, root: &Path, limits: Limits) -> Vec<PathBuf> {
        let mut gone: BTreeSet<&Path> = self.files.keys().map(|path| &**path).collect();
        let mut changed = Vec::new();
        let mut seen = 0;
        for (path, metadata) in list(root) {
            seen += 1;
            if seen > limits.files {
                // What was not reached is not gone.
                gone.clear();
                break;
            }
            gone.remove(path.as_path());
            if self.files.get(path.as_path()).is_none_or(|file| file.stamp != Stamp::of(&metadata)) {
                changed.push(path);
            }
        }
        // A folder that cannot be listed any more says nothing about its files; one that is ignored by now neither.
        changed.extend(gone.into_iter().filter(|path| fs::symlink_metadata(path).is_err()).map(Path::to_owned));
        changed
    }
}

/// The regular files below a folder with their facts, without what git ignores; links are not followed.
fn list(root: &Path) -> impl Iterator<Item = (PathBuf, Metadata)> + use<> {
    // What cannot be read is not listed.
    walk(root).build().flatten().filter_map(|entry| {
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let metadata = is_file.then(|| entry.metadata().ok()).flatten()?;
        Some((entry.into_path(), metadata))
    })
}

/// Walks a project as git sees it.
pub fn walk(root: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    builder.hidden(false).require_git(false).filter_entry(|entry| entry.file_name() != ".git");
    builder
}

/// Whether a file below `root` would be listed: no rule of git's ignores it.
pub fn is_listed(root: &Path, path: &Path) -> bool {
    let (Ok(inside), wanted) = (path.strip_prefix(root), path.to_owned()) else { return false };
    let depth = inside.components().count();
    // Only the folders on the way are looked into.
    let mut builder = walk(root);
    builder.max_depth(Some(depth)).filter_entry(move |entry| {
        entry.file_name() != ".git" && (wanted.starts_with(entry.path()) || entry.path() == wanted)
    });
    builder.build().flatten().any(|entry| entry.path() == path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::packs::Packs;

    fn keeping(packs: &mut Packs) -> impl FnMut(&Path, Stamp) -> Option<Blob> + '_ {
        |path, stamp| packs.keep(&read(path, stamp)?).ok()
    }

    #[test]
    fn only_what_changed_is_read_again() -> Result<(), Box<dyn std::error::Error>> {
        let state = tempfile::tempdir()?;
        let mut packs = Packs::new(state.path().to_owned(), u64::MAX);
        let folder = tempfile::tempdir()?;
        let root = folder.path();
        for (path, text) in [("a", "1"), ("sub/b", "2"), ("ignored.log", "3"), (".git/config", "4"), ("large", "12345")]
        {
            fs::create_dir_all(root.join(path).parent().unwrap_or(root))?;
            fs::write(root.join(path), text)?;
        }
        fs::write(root.join(".gitignore"), "*.log\n")?;
        let limits = Limits { file_bytes: 4, ..Limits::default() };
        let first =
            Index::take(root, &Index::default(), |_, _| false, |_| true, |_| false, limits, keeping(&mut packs));
        assert!(first.is_complete());
        let bytes = |index: &Index, path: &str| {
            let blob = index.get(&root.join(path))?.bytes.as_ref()?.read().ok()?;
            String::from_utf8(blob).ok()
        };
        assert_eq!(bytes(&first, "a").as_deref(), Some("1"));
        assert_eq!(bytes(&first, "sub/b").as_deref(), Some("2"));
        assert!(first.get(&root.join("ignored.log")).is_none() && first.get(&root.join(".git/config")).is_none());
        assert!(first.get(&root.join("large")).is_some_and(|file| file.bytes.is_none()));

        fs::write(root.join("a"), "changed")?;
        fs::write(root.join("new"), "n")?;
        fs::remove_file(root.join("sub/b"))?;
        let mut changed = first.changed(root, limits);
        changed.sort();
        assert_eq!(changed, [root.join("a"), root.join("new"), root.join("sub/b")]);

        let mut seen = Vec::new();
        let second = Index::take(
            root,
            &first,
            |_, _| false,
            |_| true,
            |_| false,
            limits,
            |path, _| {
                seen.push(path.to_owned());
                None
            },
        );
        assert_eq!(seen, [root.join("new")], "`a` is too long by now");
        assert!(second.get(&root.join("sub/b")).is_none());

        // What changed after the turn had begun is known as it was before.
        let late = Index::take(root, &first, |_, _| true, |_| true, |_| false, limits, keeping(&mut packs));
        assert_eq!(bytes(&late, "a").as_deref(), Some("1"));
        assert!(late.get(&root.join("new")).is_none());
        assert!(late.get(&root.join("sub/b")).is_none());
        let lost = |path: &Path| path.ends_with("sub/b");
        let late = Index::take(root, &first, |_, _| true, |_| true, lost, limits, keeping(&mut packs));
        assert_eq!(bytes(&late, "sub/b").as_deref(), Some("2"), "deleted after the turn had begun");

        // Without an index from before the turn only that it was there is known, of a file that was.
        let late = Index::take(root, &Index::default(), |_, _| true, |_| true, |_| false, limits, keeping(&mut packs));
        assert!(late.get(&root.join("a")).is_some_and(|file| file.bytes.is_none()));
        let late = Index::take(root, &Index::default(), |_, _| true, |_| false, |_| false, limits, keeping(&mut packs));
        assert!(late.get(&root.join("a")).is_none());
        Ok(())
    }

    #[test]
    fn a_large_project_is_not_listed_whole() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        for name in ["a", "b", "c"] {
            fs::write(folder.path().join(name), "")?;
        }
        let limits = Limits { files: 2, ..Limits::default() };
        let index =
            Index::take(folder.path(), &Index::default(), |_, _| false, |_| true, |_| false, limits, |_, _| None);
        assert!(!index.is_complete());
        assert_eq!(index.files.len(), 2);
        assert_eq!(index.changed(folder.path(), limits), [""; 0].map(PathBuf::from));
        Ok(())
    }

    #[test]
    fn what_git_ignores_is_known_as_such() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let root = folder.path();
        for path in ["target/debug/x", "src/deep/y", "z.log", "z"] {
            fs::create_dir_all(root.join(path).parent().unwrap_or(root))?;
            fs::write(root.join(path), "")?;
        }
        fs::write(root.join(".gitignore"), "/target\n*.log\n")?;
        let listed = |path: &str| is_listed(root, &root.join(path));
        assert!(listed("src/deep/y") && listed("z"));
        assert!(!listed("target/debug/x") && !listed("z.log") && !listed("missing"));
        assert!(!is_listed(&root.join("src"), &root.join("z")));
        Ok(())
    }
}
