//! When git last did something to a working tree, as its own files tell. Nothing is ever written there, and git is not run.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The longest end of a log that is read, in bytes: its last line.
const LAST: u64 = 4096;

/// When git last changed files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moves {
    /// When `HEAD` moved last, other than by a commit: by a checkout, merge, reset, rebase or pull.
    pub head: Option<SystemTime>,
    /// When the index was written last.
    pub index: Option<SystemTime>,
}

/// What git did last to the working tree that a folder belongs to.
pub fn moves(folder: &Path) -> Moves {
    let Some(git) = folder_of(folder) else { return Moves::default() };
    let index = fs::metadata(git.join("index")).and_then(|metadata| metadata.modified()).ok();
    Moves { head: last_line(&git.join("logs/HEAD")).and_then(|line| moved(&line)), index }
}

/// The git folder of the working tree that a folder belongs to.
pub fn folder_of(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find_map(git_folder)
}

/// The commit that `HEAD` of a git folder is, or what else is known of it; `None` if nothing is, as before the first commit.
pub fn head(git: &Path) -> Option<String> {
    let head = fs::read_to_string(git.join("HEAD")).ok()?;
    let Some(name) = head.trim().strip_prefix("ref:").map(str::trim) else { return Some(head.trim().to_owned()) };
    // A worktree shares its references with others.
    let common =
        fs::read_to_string(git.join("commondir")).map_or_else(|_| git.to_owned(), |path| git.join(path.trim()));
    let loose = [git, &common].into_iter().find_map(|folder| fs::read_to_string(folder.join(name)).ok());
    let packed = || {
        let packed = fs::read_to_string(common.join("packed-refs")).ok()?;
        let line = packed.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' '))?;
        Some(line.to_owned())
    };
    // References that are kept in yet another way leave the log.
    let logged = || last_line(&git.join("logs/HEAD"))?.split(' ').nth(1).map(str::to_owned);
    loose.map(|commit| commit.trim().to_owned()).or_else(packed).or_else(logged)
}

/// The git folder of a working tree: also where that is elsewhere, as for worktrees and submodules.
fn git_folder(tree: &Path) -> Option<PathBuf> {
    let git = tree.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = fs::read_to_string(&git).ok()?;
    Some(tree.join(text.strip_prefix("gitdir:")?.trim()))
}

fn last_line(path: &Path) -> Option<String> {
    let mut file = fs::File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LAST))).ok()?;
    let mut end = Vec::new();
    file.take(LAST).read_to_end(&mut end).ok()?;
    String::from_utf8_lossy(&end).lines().last().map(str::to_owned)
}

/// When that line of a log of `HEAD` was written, if it tells of a move: `old new who <mail> seconds zone\twhat: …`.
fn moved(line: &str) -> Option<SystemTime> {
    let (facts, what) = line.split_once('\t')?;
    if what.starts_with("commit") {
        return None;
    }
    let seconds = facts.rsplit(' ').nth(1)?.parse().ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkout_moves_head_and_a_commit_does_not() {
        let line = |what: &str| format!("0000 1111 Some One <one@example.com> 1700000000 +0100\t{what}");
        let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(1_700_000_000));
        assert_eq!(moved(&line("checkout: moving from a to b")), at);
        assert_eq!(moved(&line("pull: Fast-forward")), at);
        assert_eq!(moved(&line("commit (initial): one")), None);
        assert_eq!(moved("garbage"), None);
    }

    #[test]
    fn the_git_folder_may_be_elsewhere() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let tree = folder.path().join("tree/sub");
        fs::create_dir_all(&tree)?;
        assert_eq!(moves(&tree), Moves::default());
        let git = folder.path().join("elsewhere");
        fs::create_dir_all(git.join("logs"))?;
        fs::write(git.join("index"), "")?;
        fs::write(git.join("logs/HEAD"), "a b c <d> 5 +0000\tcheckout: x\n")?;
        fs::write(folder.path().join("tree/.git"), "gitdir: ../elsewhere\n")?;
        let found = moves(&tree);
        assert_eq!(found.head, SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(5)));
        assert!(found.index.is_some());
        Ok(())
    }
}
