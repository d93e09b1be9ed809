//! The files of a project by name, for completing them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::time::{Duration, Instant};

use ignore::WalkBuilder;

use super::fuzzy;

/// More files are not listed.
const MAX_ENTRIES: usize = 500_000;
/// A walk that takes longer ends with what it has found.
const MAX_WALK: Duration = Duration::from_secs(20);

/// The files and folders below a folder, as one text: a path a line, folders with a slash at the end.
#[derive(Debug, Default)]
pub struct Index {
    paths: String,
}

impl Index {
    /// Lists the folder, without what `.gitignore` and the like exclude. Takes as long as the disk takes.
    pub fn of(root: &Path) -> Self {
        let end = Instant::now() + MAX_WALK;
        let mut paths = String::new();
        let walk = WalkBuilder::new(root)
            .hidden(false)
            .require_git(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .build();
        // What cannot be read is not listed.
        for entry in walk.flatten().skip(1).take(MAX_ENTRIES) {
            let Some(path) = entry.path().strip_prefix(root).ok().and_then(Path::to_str) else { continue };
            // Neither can be written as a mention.
            if path.contains(['\n', '"']) {
                continue;
            }
            paths.push_str(path);
            if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                paths.push('/');
            }
            paths.push('\n');
            if Instant::now() > end {
                tracing::info!(?root, "the folder is too large to be listed whole");
                break;
            }
        }
        paths.shrink_to_fit();
        Self { paths }
    }

    /// The paths that fit best, best first; for an empty query those nearest to the root.
    pub fn find(&self, query: &str, limit: usize) -> Vec<&str> {
        // The worst of the best is on top.
        let mut best = BinaryHeap::with_capacity(limit + 1);
        for path in self.paths.lines() {
            let score = if query.is_empty() { Some(-depth(path)) } else { fuzzy::score(path, query) };
            let Some(score) = score else { continue };
            best.push(Reverse((score, Reverse(path))));
            if best.len() > limit {
                best.pop();
            }
        }
        best.into_sorted_vec().into_iter().map(|Reverse((_, Reverse(path)))| path).collect()
    }
}

fn depth(path: &str) -> i32 {
    let slashes = path.trim_end_matches('/').bytes().filter(|byte| *byte == b'/').count();
    i32::try_from(slashes).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_ignored_is_not_listed() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let root = folder.path();
        for path in ["src/main.rs", "src/a b.rs", "target/debug/main", ".git/config", ".github/ci.yml", "sub/x.log"] {
            fs::create_dir_all(root.join(path).parent().unwrap_or(root))?;
            fs::write(root.join(path), "")?;
        }
        fs::write(root.join(".gitignore"), "/target\n*.log\n")?;
        let index = Index::of(root);
        assert_eq!(
            index.find("", 20),
            [".github/", ".gitignore", "src/", "sub/", ".github/ci.yml", "src/a b.rs", "src/main.rs"]
        );
        assert_eq!(index.find("main", 20), ["src/main.rs"]);
        assert_eq!(index.find("", 2), [".github/", ".gitignore"]);
        assert_eq!(Index::of(&root.join("none")).find("", 9), [""; 0]);
        Ok(())
    }
}
