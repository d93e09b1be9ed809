//! Notices that `HEAD` of a repository moved in which files have pending changes: what is committed is accepted.
//!
//! Only the git folder itself and its `logs` are watched, and only while something is pending; whatever happens there, the few
//! bytes that say what `HEAD` is are read and compared. git runs only once it has moved, and writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::git;

/// How long nothing happens before `HEAD` is read: git writes several files, one after the other.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// How often that begins anew, should something happen all the time.
const MOST_ROUNDS: u32 = 10;

/// Watches while changes are pending.
#[derive(Debug, Clone, Default)]
pub struct Heads {
    state: Arc<Mutex<State>>,
    news: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    /// By git folder.
    repositories: BTreeMap<PathBuf, Repository>,
    watcher: Option<RecommendedWatcher>,
}

#[derive(Debug)]
struct Repository {
    head: Option<String>,
    /// Files with pending changes.
    files: BTreeSet<PathBuf>,
}

impl Heads {
    /// Something is pending in a file, or nothing is any more. Waits for the disk.
    pub fn note(&self, path: &Path, is_pending: bool) {
        let Some(folder) = path.parent().and_then(git::folder_of) else { return };
        let mut state = self.state.lock();
        if is_pending {
            if !state.repositories.contains_key(&folder) {
                state.watch(&folder, &self.news);
                let head = git::head(&folder);
                state.repositories.insert(folder.clone(), Repository { head, files: BTreeSet::new() });
            }
            if let Some(repository) = state.repositories.get_mut(&folder) {
                repository.files.insert(path.to_owned());
            }
        } else {
            state.settle(&folder, path);
        }
    }

    /// Waits until `HEAD` of a repository has moved; its files with pending changes.
    pub async fn moved(&self) -> Vec<PathBuf> {
        loop {
            self.news.notified().await;
            for _ in 0..MOST_ROUNDS {
                if tokio::time::timeout(DEBOUNCE, self.news.notified()).await.is_err() {
                    break;
                }
            }
            let state = Arc::clone(&self.state);
            match tokio::task::spawn_blocking(move || state.lock().look()).await {
                Ok(files) if files.is_empty() => {}
                Ok(files) => return files,
                Err(error) => tracing::error!(%error, "what HEAD is could not be read"),
            }
        }
    }
}

impl State {
    fn watch(&mut self, folder: &Path, news: &Arc<Notify>) {
        if self.watcher.is_none() {
            let news = Arc::clone(news);
            match notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                if event.is_ok_and(|event| !event.kind.is_access()) {
                    news.notify_one();
                }
            }) {
                Ok(watcher) => self.watcher = Some(watcher),
                Err(error) => {
                    tracing::warn!(%error, "commits cannot be noticed");
                    return;
                }
            }
        }
        let Some(watcher) = self.watcher.as_mut() else { return };
        // Where there are no logs, the folder alone tells: git writes its index there after each commit.
        for folder in [folder.to_owned(), folder.join("logs")] {
            if let Err(error) = watcher.watch(&folder, RecursiveMode::NonRecursive) {
                tracing::debug!(%error, ?folder, "a git folder cannot be watched");
            }
        }
    }

    fn settle(&mut self, folder: &Path, path: &Path) {
        let Some(repository) = self.repositories.get_mut(folder) else { return };
        repository.files.remove(path);
        if repository.files.is_empty() {
            self.repositories.remove(folder);
            if let Some(watcher) = self.watcher.as_mut() {
                for folder in [folder.to_owned(), folder.join("logs")] {
                    // It may be gone, or never have been watched.
                    let _ = watcher.unwatch(&folder);
                }
            }
        }
        if self.repositories.is_empty() {
            self.watcher = None;
        }
    }

    /// The files of those repositories whose `HEAD` is not what it was.
    fn look(&mut self) -> Vec<PathBuf> {
        let mut moved = Vec::new();
        for (folder, repository) in &mut self.repositories {
            let head = git::head(folder);
            if head != repository.head {
                repository.head = head;
                moved.extend(repository.files.iter().cloned());
            }
        }
        moved
    }
}

/// What `HEAD` has of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// Its text.
    Text(String),
    /// No such file.
    Missing,
    /// Something else, or git could not tell.
    Unknown,
}

/// What `HEAD` has of a file now. Runs git, which reads only.
pub fn committed(path: &Path) -> Committed {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Committed::Unknown };
    let mut object = std::ffi::OsString::from("HEAD:./");
    object.push(name);
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("--no-optional-locks").arg("-C").arg(folder).args(arguments);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    };
    match git(&["cat-file", "blob"]).arg(&object).output() {
        Ok(done) if done.status.success() => String::from_utf8(done.stdout).map_or(Committed::Unknown, Committed::Text),
        // Either there is no such file, or no such commit.
        Ok(_) if git(&["cat-file", "-e", "HEAD"]).status().is_ok_and(|status| status.success()) => Committed::Missing,
        Ok(_) => Committed::Unknown,
        Err(error) => {
            tracing::debug!(%error, "git could not be run");
            Committed::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io;

    fn git(folder: &Path, arguments: &[&str]) -> io::Result<()> {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
        let done = Command::new("git").arg("-C").arg(folder).args(who).args(arguments).output()?;
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Ok(())
    }

    async fn moved(heads: &Heads) -> Vec<PathBuf> {
        tokio::time::timeout(Duration::from_secs(20), heads.moved()).await.unwrap_or_default()
    }

    #[tokio::test]
    async fn a_commit_is_noticed_while_something_is_pending() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let root = folder.path();
        git(root, &["init", "-q"])?;
        let path = root.join("sub/a");
        fs::create_dir_all(root.join("sub"))?;
        fs::write(&path, "one\n")?;
        let heads = Heads::default();
        heads.note(&path, true);
        assert_eq!(committed(&path), Committed::Unknown, "no commit yet");
        git(root, &["add", "."])?;
        git(root, &["commit", "-qm", "one"])?;
        assert_eq!(moved(&heads).await, std::slice::from_ref(&path));
        assert_eq!(committed(&path), Committed::Text("one\n".to_owned()));
        assert_eq!(committed(&root.join("sub/b")), Committed::Missing);
        fs::write(&path, "two\n")?;
        git(root, &["commit", "-qam", "two"])?;
        assert_eq!(moved(&heads).await, std::slice::from_ref(&path));
        heads.note(&path, false);
        assert!(heads.state.lock().watcher.is_none(), "nothing is watched for nothing");
        Ok(())
    }

    #[test]
    fn what_git_does_without_moving_head_is_no_news() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let root = folder.path();
        git(root, &["init", "-q"])?;
        fs::write(root.join("a"), "one\n")?;
        git(root, &["add", "."])?;
        git(root, &["commit", "-qm", "one"])?;
        let heads = Heads::default();
        heads.note(&root.join("a"), true);
        fs::write(root.join("a"), "two\n")?;
        git(root, &["add", "."])?;
        git(root, &["branch", "other"])?;
        assert_eq!(heads.state.lock().look(), Vec::<PathBuf>::new());
        git(root, &["pack-refs", "--all"])?;
        assert_eq!(heads.state.lock().look(), Vec::<PathBuf>::new());
        git(root, &["checkout", "-q", "--detach"])?;
        assert_eq!(heads.state.lock().look(), Vec::<PathBuf>::new(), "the same commit");
        git(root, &["commit", "-qm", "two"])?;
        assert_eq!(heads.state.lock().look(), [root.join("a")]);
        Ok(())
    }
}
