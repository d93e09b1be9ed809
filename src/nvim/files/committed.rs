//! What is committed needs no decision any more: hunks whose lines `HEAD` has are accepted.

use std::path::Path;

use rmpv::Value;
use tokio::time::Instant;

use super::hunks::{CHANGES, shown};
use super::{Files, PATIENCE, Trouble, blocking, is_true, read_disk};
use crate::changes::{Change, Hunk, changes, lines};
use crate::files::edits;
use crate::files::heads::{Committed, committed};

impl Files {
    /// Accepts the pending hunks of a file that `HEAD` has.
    pub async fn accept_committed(&self, path: &Path) {
        // Again when the user decided or typed at that moment.
        const TRIES: usize = 3;
        let _turn = self.shared.order.turn(path).await;
        for _ in 0..TRIES {
            match self.try_to_accept(path).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(trouble) => {
                    tracing::warn!(path = %path.display(), %trouble, "what is committed is not accepted");
                    return;
                }
            }
        }
    }

    /// The same; whether it is done.
    async fn try_to_accept(&self, path: &Path) -> Result<bool, Trouble> {
        let deadline = Instant::now() + PATIENCE;
        let pending = self.pending(path, deadline).await?;
        if pending.version() == 0 {
            return Ok(true);
        }
        let (file, looked) = (path.to_owned(), path.to_owned());
        let head = blocking(move || committed(&file)).await?;
        let is_there = blocking(move || looked.exists()).await?;
        let ids: Vec<u64> = match &head {
            // Whatever is pending in a file that is gone on both sides is that it is gone.
            Committed::Missing if !is_there => pending.hunks().iter().map(|hunk| hunk.id).collect(),
            Committed::Missing | Committed::Unknown => return Ok(true),
            Committed::Text(head) => {
                let now = match self.stat(path, deadline).await? {
                    Some(loaded) => match self.buffer_text(path, &loaded, deadline).await? {
                        Some(text) => loaded.form.to_lines(&text),
                        None => return Ok(false),
                    },
                    None => match read_disk(path).await {
                        Ok(text) => edits::as_read(&text).into_owned(),
                        Err(_) => return Ok(true),
                    },
                };
                let head = edits::as_read(head);
                let differences = changes(&lines(&now).0, &lines(&head).0);
                pending.hunks().iter().filter(|hunk| is_in(hunk, &differences)).map(|hunk| hunk.id).collect()
            }
        };
        if ids.is_empty() {
            return Ok(true);
        }
        let ids = Value::Array(ids.into_iter().map(Value::from).collect());
        let answer =
            self.ask_module(CHANGES, "committed", vec![shown(path), pending.version().into(), ids], deadline).await?;
        Ok(!is_true(&answer, "stale"))
    }
}

/// Whether a text has a hunk's lines, of which `differences` tell where it differs.
fn is_in(hunk: &Hunk, differences: &[Change]) -> bool {
    !differences.iter().any(|change| {
        let (first, last) = (change.old.start, change.old.end);
        if hunk.authors.is_empty() {
            // The deleted lines, or others, are there instead.
            first <= hunk.first && hunk.first <= last
        } else if first == last {
            hunk.first < first && first < hunk.end()
        } else {
            first < hunk.end() && hunk.first < last
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::between;

    /// Which of the hunks that lead from `base` to `now` are in `head`.
    fn found(base: &str, now: &str, head: &str) -> Vec<usize> {
        let of = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let hunks = between(&of(base), &of(now), 1);
        let differences = changes(&of(now), &of(head));
        hunks.iter().filter(|hunk| is_in(hunk, &differences)).map(|hunk| hunk.first).collect()
    }

    #[test]
    fn what_head_has_is_found_hunk_by_hunk() {
        let (base, now) = ("a b c d e f g", "a B c d f x g");
        assert_eq!(found(base, now, now), [1, 4, 5]);
        assert_eq!(found(base, now, base), Vec::<usize>::new());
        assert_eq!(found(base, now, "a B c d e f g"), [1], "only one was committed");
        assert_eq!(found(base, now, "a b c d f g"), [4], "a deletion");
        assert_eq!(found(base, now, "0 a B c d e f x g y"), [1, 5], "other lines are no matter");
        assert_eq!(found("a b c", "a x y z c", "a x z c"), Vec::<usize>::new(), "a part of it");
        assert_eq!(found("a b c", "a x z c", "a x y z c"), Vec::<usize>::new(), "more than it");
    }
}
