//! Putting a summary into the place of what was said, when the context gets full or the user wants it.

use std::time::{SystemTime, UNIX_EPOCH};

use agent_client_protocol_schema::MaybeUndefined;
use agent_client_protocol_schema::v1::{
    CompactionId, CompactionStatus, CompactionUpdate, ContentBlock, SessionUpdate, StopReason,
};
use serde_json::Value;

use super::client::Step;
use super::failure;
use super::history::History;
use super::model::Connected;
use super::turn::{Ended, Turn};
use crate::responses::{Input, Request, Response, item, part};

/// What of the context may be used before it is made shorter, in hundredths.
const FULL: u64 = 80;

const COMPACT: &str = "Summarize this conversation for yourself, so that you can go on without it: what the user wants, what was \
found out and decided, which files were changed and how, what is left to do. Name files and places. Do not call functions.";

impl Turn<'_> {
    /// Makes the history shorter because the user wants it.
    pub(super) async fn compact_now(&mut self) -> Step<Ended> {
        if self.state.history.is_empty() {
            self.tell("There is nothing to make shorter yet.").await?;
            return Ok(self.ended(StopReason::EndTurn));
        }
        match self.setting.finder.find().await {
            Ok(connected) => {
                self.compact(&connected, 0).await?;
                Ok(self.ended(StopReason::EndTurn))
            }
            Err(error) => self.fail(failure::of_model(&error)).await,
        }
    }

    /// Whether the context is so full that it has to be made shorter.
    pub(super) fn is_full(connected: &Connected, response: &Response) -> bool {
        let used = response.usage().map_or(0, |usage| usage.total);
        connected.context.is_some_and(|size| used * 100 >= size * FULL)
    }

    /// Puts a summary into the place of what was said, and shows that. What fails leaves the history as it was.
    pub(super) async fn compact(&mut self, connected: &Connected, recent: usize) -> Step {
        let id = CompactionId::new(format!("compaction-{}", stamp()));
        let tell = |status, summary: Option<&str>, error: Option<String>| {
            let mut update = CompactionUpdate::new(id.clone(), status);
            if let Some(summary) = summary {
                update.summary = MaybeUndefined::Value(vec![ContentBlock::from(summary.to_owned())]);
            }
            if let Some(error) = error {
                update.error = MaybeUndefined::Value(error);
            }
            SessionUpdate::CompactionUpdate(update)
        };
        let is_told = self.setting.client.capabilities.session.as_ref().is_some_and(|has| has.compaction.is_some());
        if is_told {
            self.setting.client.update(tell(CompactionStatus::InProgress, None, None)).await?;
        }
        let summary = self.summary(connected).await;
        let update = match &summary {
            Ok(summary) => {
                let recent = self.recent(recent);
                self.state.history.compact(summary);
                for item in recent {
                    self.state.history.push(item);
                }
                self.state.history.settle();
                tell(CompactionStatus::Completed, Some(summary), None)
            }
            Err(reason) => tell(CompactionStatus::Failed, None, Some(reason.clone())),
        };
        if is_told {
            return self.setting.client.update(update).await;
        }
        match summary {
            Ok(_) => Ok(()),
            Err(reason) => self.tell(&format!("*The context could not be made shorter: {reason}.*")).await,
        }
    }

    /// The last items that make sense without those before them.
    fn recent(&self, count: usize) -> Vec<Value> {
        self.state.history.recent(count)
    }

    async fn summary(&self, connected: &Connected) -> Result<String, String> {
        let options = self.setting.options.lock().clone();
        let model = connected.model(&options).map_err(|error| error.to_string())?;
        let mut history: History = self.state.history.clone();
        history.settle();
        history.shorten(0);
        history.push(item::user(vec![part::text(COMPACT)]));
        let request = Request {
            model,
            input: Input::Items(history.input(connected.client.endpoint().dialect)),
            store: Some(false),
            ..Request::default()
        };
        let response = connected.client.create(&request).await.map_err(|error| error.to_string())?;
        let text = response.output_text();
        if text.trim().is_empty() { Err("the model gave no summary".to_owned()) } else { Ok(text) }
    }
}

/// A number that no other compaction has.
fn stamp() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}
