//! What the core wants to know to decide about a request: where paths lead, and what was answered before.

use std::path::Path;

use super::{Finished, Owner};
use crate::core::event::Event;
use crate::core::permission::facts::Place;
use crate::core::permission::judge::{Kept, NewAnswer};
use crate::core::permission::weigh::{WeighJob, Weighed};
use crate::files::paths;

impl Owner {
    /// Resolves the paths of a request and looks up earlier answers.
    pub(super) fn weigh(&self, job: WeighJob) {
        let finish = self.finish.clone();
        let answers = self.answers.clone();
        tokio::spawn(async move {
            let WeighJob { request, root, candidates } = job;
            let resolved = tokio::task::spawn_blocking(move || {
                let root = resolved(&root);
                let places = candidates.iter().filter_map(|candidate| {
                    let place = Place { named: candidate.path.clone(), resolved: resolved(&candidate.path) };
                    let is_path = !candidate.is_word
                        || !place.resolved.starts_with(&root)
                        || std::fs::symlink_metadata(&candidate.path).is_ok();
                    is_path.then_some(place)
                });
                (places.collect(), root)
            });
            let (places, root) = match resolved.await {
                Ok(resolved) => resolved,
                Err(error) => {
                    tracing::error!(%error, "the paths of a request could not be resolved");
                    return;
                }
            };
            let kept = answers
                .lock()
                .iter()
                .rev()
                .filter(|(project, _)| *project == root)
                .map(|(_, kept)| kept.clone())
                .collect();
            // The owner is gone only when the helper ends.
            let _ = finish.send(Finished::Work(Event::Weighed(request, Weighed { root, places, kept })));
        });
    }

    /// Keeps an answer with "always".
    pub(super) fn remember(&self, answer: NewAnswer) {
        let NewAnswer { project, agent, action, rule, shown } = answer;
        let mut answers = self.answers.lock();
        let id = i64::try_from(answers.len()).unwrap_or(i64::MAX);
        answers.push((project, Kept { id, agent, action, rule, shown }));
    }
}

fn resolved(path: &Path) -> std::path::PathBuf {
    paths::resolve(path, None).unwrap_or_else(|path| path)
}
