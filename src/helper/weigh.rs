//! What the core wants to know to decide about a request: where paths lead, and what was answered before. And what the user
//! wants to know about it: which rules and answers there are.

use std::path::{Path, PathBuf};

use rmpv::Value;

use super::{Finished, HAND, Owner};
use crate::core::effect::MessageLevel;
use crate::core::event::Event;
use crate::core::permission::facts::{Candidate, Place};
use crate::core::permission::judge::{Kept, NewAnswer};
use crate::core::permission::rule::Action;
use crate::core::permission::weigh::{WeighJob, Weighed};
use crate::files::paths;
use crate::nvim::{hand, wire};
use crate::store::{self, Answer, AnswerId};

impl Owner {
    /// Resolves the paths of a request, and looks up earlier answers: also those that were given in another Neovim meanwhile.
    pub(super) fn weigh(&self, job: WeighJob) {
        let (finish, store) = (self.finish.clone(), self.store.clone());
        tokio::spawn(async move {
            let WeighJob { request, root, additional, candidates } = job;
            let named_root = root.clone();
            let resolved = tokio::task::spawn_blocking(move || {
                let (root, places) = places(&root, candidates);
                (root, additional.iter().map(|folder| self::resolved(folder)).collect(), places)
            });
            let resolved = resolved.await;
            // A panic there is none of the request: what is not resolved is asked about.
            let (root, additional, places, is_complete) = match resolved {
                Ok((root, additional, places)) => (root, additional, places, true),
                Err(error) => {
                    tracing::error!(%error, "the paths of a request could not be resolved");
                    (named_root, Vec::new(), Vec::new(), false)
                }
            };
            let kept = match &store {
                Some(store) => store.answers(Some(&root)).await,
                None => Ok(Vec::new()),
            };
            let kept = kept.unwrap_or_else(|error| {
                // The user was told when the store was opened.
                tracing::warn!(%error, "answers that were remembered cannot be read");
                Vec::new()
            });
            let kept = kept.into_iter().map(kept_answer).collect();
            // The owner is gone only when the helper ends.
            let weighed = Weighed { root, additional, places, is_complete, kept };
            let _ = finish.send(Finished::Work(Box::new(Event::Weighed(request, weighed))));
        });
    }

    /// Keeps an answer with "always". It was given all the same if that is not possible.
    pub(super) fn remember(&self, answer: NewAnswer) {
        let NewAnswer { project, agent, action, rule, shown } = answer;
        let action = if action == Action::Allow { store::Action::Allow } else { store::Action::Deny };
        let answer = store::NewAnswer { project, agent, action, rule, shown };
        let (finish, store) = (self.finish.clone(), self.store.clone());
        tokio::spawn(async move {
            let kept = match store {
                Some(store) => store.remember(answer).await.map_err(|error| error.to_string()),
                None => Err("there is no folder to keep it in".to_owned()),
            };
            if let Err(problem) = kept {
                let text = format!("The answer holds, but it is not remembered for the next time: {problem}.");
                // As above.
                let _ = finish.send(Finished::Told(MessageLevel::Warn, text));
            }
        });
    }

    /// Tells Lua which rules and answers there are, those of the project in `cwd` first; after revoking one of them.
    pub(super) fn list_permissions(&self, id: u64, cwd: PathBuf, revoke: Option<i64>) {
        let rules: Vec<String> = self.settings.rule_texts();
        let (nvim, finish, store) = (self.nvim.clone(), self.finish.clone(), self.store.clone());
        tokio::spawn(async move {
            let root = tokio::task::spawn_blocking(move || resolved(&cwd)).await.unwrap_or_default();
            let answers = async {
                let Some(store) = store else { return Ok(Vec::new()) };
                if let Some(answer) = revoke {
                    store.revoke(AnswerId(answer)).await?;
                }
                store.answers(None).await
            };
            let answers = answers.await.unwrap_or_else(|error: store::StoreError| {
                // The owner is gone only when the helper ends.
                let _ = finish.send(Finished::Told(MessageLevel::Error, error.to_string()));
                Vec::new()
            });
            let list = wire::permission_list(&rules, &answers, &root);
            if let Err(error) = hand::ask(&nvim, HAND, "permissions_listed", vec![Value::from(id), list]).await {
                tracing::warn!(%error, "rules and answers could not be listed");
            }
        });
    }
}

fn kept_answer(answer: Answer) -> Kept {
    let Answer { agent, action, rule, shown, .. } = answer;
    let action = if action == store::Action::Allow { Action::Allow } else { Action::Deny };
    Kept { agent, action, rule, shown }
}

/// Where the paths lead; of the words of a command, only those that are paths.
fn places(root: &Path, candidates: Vec<Candidate>) -> (PathBuf, Vec<Place>) {
    let root = resolved(root);
    let place = |Candidate { path, is_word }: Candidate| {
        let place = Place { resolved: resolved(&path), named: path };
        let is_path = !is_word || !place.resolved.starts_with(&root) || std::fs::symlink_metadata(&place.named).is_ok();
        is_path.then_some(place)
    };
    let places = candidates.into_iter().filter_map(place).collect();
    (root, places)
}

fn resolved(path: &Path) -> PathBuf {
    paths::resolve(path, None).unwrap_or_else(|path| path)
}
