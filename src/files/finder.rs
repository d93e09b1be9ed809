//! Finds files by what was typed of their names, on the pool of threads that may block. The list of a folder is made when it is first
//! asked for, and anew, in the background, when it is asked for later than [`FRESH`].

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::files::index::Index;

/// How old a list may be before it is made anew.
const FRESH: Duration = Duration::from_secs(3);
/// Lists that are kept; the one not used for longest goes first.
const MAX_LISTS: usize = 4;

/// What a chat looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The folder.
    pub root: PathBuf,
    /// What was typed.
    pub query: String,
    /// How many to find at most.
    pub limit: usize,
}

/// The lists of folders. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Finder {
    lists: Arc<Mutex<HashMap<PathBuf, Arc<List>>>>,
    newest: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct List {
    index: Mutex<Option<Arc<Index>>>,
    /// Held while the list is made.
    making: tokio::sync::Mutex<()>,
    used: Mutex<Option<Instant>>,
    made: Mutex<Option<Instant>>,
}

impl Finder {
    /// The paths that fit best, best first. `None` if a later question came meanwhile: nobody waits for this one.
    pub async fn find(&self, wanted: Wanted) -> Option<Vec<String>> {
        let number = self.newest.fetch_add(1, Ordering::Relaxed) + 1;
        let list = self.list(&wanted.root);
        let index = list.index(&wanted.root).await;
        if self.newest.load(Ordering::Relaxed) != number {
            return None;
        }
        let search =
            move || index.find(&wanted.query, wanted.limit).into_iter().map(str::to_owned).collect::<Vec<String>>();
        match tokio::task::spawn_blocking(search).await {
            Ok(found) => (self.newest.load(Ordering::Relaxed) == number).then_some(found),
            Err(error) => {
                tracing::error!(%error, "looking for files failed");
                Some(Vec::new())
            }
        }
    }

    fn list(&self, root: &Path) -> Arc<List> {
        let mut lists = self.lists.lock();
        let list = Arc::clone(lists.entry(root.to_owned()).or_default());
        *list.used.lock() = Some(Instant::now());
        if lists.len() > MAX_LISTS {
            let oldest = lists.iter().min_by_key(|(_, list)| *list.used.lock()).map(|(root, _)| root.clone());
            oldest.and_then(|root| lists.remove(&root));
        }
        list
    }
}

impl List {
    /// The list as it is; the first time, as soon as it is there.
    async fn index(self: &Arc<Self>, root: &Path) -> Arc<Index> {
        let known = self.index.lock().clone();
        let Some(index) = known else { return self.make(root, None).await };
        let made = *self.made.lock();
        if made.is_none_or(|made| made.elapsed() > FRESH) {
            let (list, root) = (Arc::clone(self), root.to_owned());
            tokio::spawn(async move { list.make(&root, made).await });
        }
        index
    }

    /// Makes the list, unless that was done while this waited for its turn.
    async fn make(&self, root: &Path, last_made: Option<Instant>) -> Arc<Index> {
        let _turn = self.making.lock().await;
        let known = self.index.lock().clone();
        if let Some(index) = known
            && *self.made.lock() != last_made
        {
            return index;
        }
        let folder = root.to_owned();
        let index = tokio::task::spawn_blocking(move || Index::of(&folder)).await.unwrap_or_else(|error| {
            tracing::error!(%error, "listing a folder failed");
            Index::default()
        });
        let index = Arc::new(index);
        *self.index.lock() = Some(Arc::clone(&index));
        *self.made.lock() = Some(Instant::now());
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[tokio::test]
    async fn a_new_file_is_found_soon() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("one.txt"), "")?;
        let finder = Finder::default();
        let find = |query: &str| {
            let wanted = Wanted { root: folder.path().to_owned(), query: query.to_owned(), limit: 5 };
            let finder = finder.clone();
            async move { finder.find(wanted).await.unwrap_or_default() }
        };
        assert_eq!(find("one").await, ["one.txt"]);
        fs::write(folder.path().join("two.txt"), "")?;
        assert_eq!(find("two").await, [""; 0], "the list is still fresh");
        let list = finder.list(folder.path());
        *list.made.lock() = Instant::now().checked_sub(FRESH * 2);
        // This one still gets the old list, and has a new one made.
        find("two").await;
        drop(list.making.lock().await);
        for _ in 0..1000 {
            if find("two").await == ["two.txt"] {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
        panic!("not found");
    }

    #[tokio::test]
    async fn only_the_newest_question_is_answered() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let wanted = Wanted { root: folder.path().to_owned(), query: "a".into(), limit: 5 };
        let finder = Finder::default();
        let (first, second) = tokio::join!(finder.find(wanted.clone()), finder.find(wanted));
        assert_eq!((first, second), (None, Some(Vec::new())));
        Ok(())
    }
}
