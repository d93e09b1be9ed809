//! Who may work on which file, and when.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedMutexGuard, oneshot};

/// Keeps operations apart, and those of one path in the order in which they were asked for.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Ends when the last one that asked for a path, as it was written, is done.
    last: Mutex<HashMap<PathBuf, oneshot::Receiver<()>>>,
    /// One at a time for each file, whatever path leads there.
    turns: Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
}

/// A place in the line of a path, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    before: Option<oneshot::Receiver<()>>,
    _end: oneshot::Sender<()>,
}

impl Order {
    /// Takes the next place. At once, since looking where a path leads takes a different time for each.
    pub(super) fn place(&self, path: &Path) -> Place {
        let (end, ended) = oneshot::channel();
        let mut last = self.last.lock();
        last.retain(|_, ended| matches!(ended.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
        Place { before: last.insert(path.to_owned(), ended), _end: end }
    }

    /// Waits until nobody works on this file, whose path has no links in it.
    pub(super) async fn turn(&self, path: &Path) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns.lock();
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(path.to_owned()).or_default())
        };
        turn.lock_owned().await
    }
}

impl Place {
    /// Waits for whoever came before.
    pub(super) async fn wait(&mut self) {
        if let Some(before) = self.before.take() {
            // Nothing is ever sent: it ends when that place is dropped.
            let _ = before.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn whoever_comes_first_is_first_and_other_paths_do_not_wait() {
        let order = Order::default();
        let (mut first, mut second, mut third) =
            (order.place(Path::new("/a")), order.place(Path::new("/a")), order.place(Path::new("/a")));
        let mut other = order.place(Path::new("/b"));
        let is_free = async |place: &mut Place| timeout(Duration::from_millis(1), place.wait()).await.is_ok();
        assert!(is_free(&mut first).await && is_free(&mut other).await);
        let still_waits = tokio::spawn(async move {
            third.wait().await;
            third
        });
        drop(first);
        assert!(is_free(&mut second).await);
        assert!(!still_waits.is_finished());
        drop((second, other));
        drop(still_waits.await);
        assert!(is_free(&mut order.place(Path::new("/a"))).await);
        assert_eq!(order.last.lock().len(), 1, "what is done is forgotten");
    }
}
