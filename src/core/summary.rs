//! What a turn took and brought: the line at its end.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::ids::{ChatId, Millis};
use super::message::Usage;
use super::state::State;
use super::tool_call::{ToolCall, ToolContent, ToolStatus};
use super::transcript::Severity;

/// What is noted while a turn runs.
#[derive(Debug)]
pub(super) struct TurnRecord {
    started: Millis,
    /// What the session had cost before: amount and currency.
    cost_before: Option<(f64, String)>,
    /// The files that it wrote, or that its calls say they changed.
    files: BTreeSet<PathBuf>,
    /// Tokens that it used up.
    tokens: u64,
}

impl TurnRecord {
    pub(super) fn new(now: Millis, usage: Option<&Usage>) -> Self {
        let cost_before = usage.and_then(|usage| usage.cost.clone());
        Self { started: now, cost_before, files: BTreeSet::new(), tokens: 0 }
    }

    /// A file was written for the agent.
    pub(super) fn wrote(&mut self, path: &Path) {
        self.files.insert(path.to_owned());
    }

    /// A call came to its end; its diffs tell what it changed.
    pub(super) fn call_ended(&mut self, call: &ToolCall) {
        if call.status != ToolStatus::Completed {
            return;
        }
        for content in &call.content {
            if let ToolContent::Diff { path, .. } = content {
                self.files.insert(PathBuf::from(path));
            }
        }
    }

    fn text(&self, now: Millis, usage: Option<&Usage>) -> String {
        let mut parts = vec![time_text(now.since(self.started))];
        match self.files.len() {
            0 => {}
            1 => parts.push("1 file changed".to_owned()),
            count => parts.push(format!("{count} files changed")),
        }
        if self.tokens > 0 {
            parts.push(format!("{} tokens", count_text(self.tokens)));
        }
        parts.extend(usage.and_then(|usage| self.cost_text(usage)));
        parts.join(" · ")
    }

    /// What the turn cost, if the agent tells what the session costs.
    fn cost_text(&self, usage: &Usage) -> Option<String> {
        let (amount, currency) = usage.cost.as_ref()?;
        let before =
            self.cost_before.as_ref().filter(|(_, known)| known == currency).map_or(0.0, |(amount, _)| *amount);
        let cost = amount - before;
        (cost > 0.0).then(|| format!("{cost:.4} {currency}"))
    }
}

/// A duration as people read it.
fn time_text(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..60 => format!("{seconds}.{} s", millis % 1000 / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// A number with its thousands apart.
fn count_text(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl State {
    /// Takes over the agent's count of the session's tokens at the end of a turn.
    pub(super) fn count_tokens(&mut self, id: ChatId, total: Option<u64>) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let (Some(total), Some(turn)) = (total, chat.turn.as_mut()) else { return };
        // The count is that of the session; an agent that counts each turn anew begins below it again.
        turn.record.tokens = total.checked_sub(chat.tokens).unwrap_or(total);
        chat.tokens = total;
    }

    /// Tells what a turn that has ended took and brought.
    pub(super) fn summarize(&mut self, id: ChatId, record: &TurnRecord) {
        let usage = self.chats.get(&id).and_then(|chat| chat.usage.as_ref());
        let text = record.text(self.now, usage);
        self.note(id, Severity::Summary, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_tells_what_is_known() {
        let usage = |amount| Usage { used: 1, size: 2, cost: Some((amount, "USD".into())) };
        let mut record = TurnRecord::new(Millis(1_000), Some(&usage(0.25)));
        assert_eq!(record.text(Millis(4_250), None), "3.2 s");
        record.wrote(Path::new("/p/a"));
        assert_eq!(record.text(Millis(126_000), Some(&usage(0.25))), "2 min 5 s · 1 file changed");
        let mut call = ToolCall::new("t".into(), Millis(0));
        call.content = ["/p/a", "/p/b"]
            .map(|path| ToolContent::Diff { path: path.into(), old: None, new: "x".into() })
            .into_iter()
            .collect();
        record.call_ended(&call);
        assert_eq!(record.files.len(), 1, "a call that is not done changed nothing");
        call.set_status(ToolStatus::Completed, Millis(1));
        record.call_ended(&call);
        record.tokens = 1_234_567;
        assert_eq!(
            record.text(Millis(7_201_000), Some(&usage(0.5))),
            "2 h 0 min · 2 files changed · 1,234,567 tokens · 0.2500 USD"
        );
    }
}
