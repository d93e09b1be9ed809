//! What is decided about a request: a rule that denies wins, then the newest answer that was remembered, then the first rule,
//! then the default.

use std::path::PathBuf;

use super::facts::Facts;
use super::rule::{Action, Remembered, Rule};

/// The rules of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// In the user's order.
    pub rules: Vec<Rule>,
    /// Some of what was configured could not be used. Then nothing is allowed by itself: it may have been what denies it.
    pub is_broken: bool,
}

/// An answer with "always", as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The agent that asked.
    pub agent: String,
    /// What was answered.
    pub action: Action,
    /// What was remembered, as JSON ([`Remembered`]).
    pub rule: String,
    /// The same, in words.
    pub shown: String,
}

/// An answer with "always" that is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAnswer {
    /// The project's folder, without links.
    pub project: PathBuf,
    /// The agent that asked.
    pub agent: String,
    /// What was answered.
    pub action: Action,
    /// What is remembered, as JSON ([`Remembered`]).
    pub rule: String,
    /// The same, in words.
    pub shown: String,
}

/// What decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum By {
    /// A rule of the configuration; in one line.
    Rule(String),
    /// An answer given before; in one line.
    Answer(String),
}

impl By {
    /// The rule in one line.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Rule(text) | Self::Answer(text) => text,
        }
    }

    /// Whose rule it is, and which.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Rule(text) => format!("the rule \"{text}\""),
            Self::Answer(text) => format!("your earlier answer \"{text}\""),
        }
    }
}

/// What is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Allow(By),
    Deny(By),
    /// A rule wants the user to be asked.
    Ask,
    /// No rule is about it.
    Default,
}

/// Decides about a request. `kept`: newest first.
pub(super) fn judge(facts: &Facts, rules: &Rules, kept: &[Kept]) -> Verdict {
    let remembered: Vec<(&Kept, Remembered)> = kept
        .iter()
        .filter(|kept| kept.agent == facts.agent)
        .filter_map(|kept| Some((kept, serde_json::from_str(&kept.rule).ok()?)))
        .filter(|(kept, rule): &(&Kept, Remembered)| rule.fits(kept.action, facts))
        .collect();
    let fitting: Vec<&Rule> = rules.rules.iter().filter(|rule| rule.fits(facts)).collect();
    if let Some(rule) = fitting.iter().find(|rule| rule.action() == Action::Deny) {
        return Verdict::Deny(By::Rule(rule.text()));
    }
    if let Some((kept, _)) = remembered.iter().find(|(kept, _)| kept.action == Action::Deny) {
        return Verdict::Deny(By::Answer(kept.shown.clone()));
    }
    let allowed = |by| if rules.is_broken { Verdict::Ask } else { Verdict::Allow(by) };
    if let Some((kept, _)) = remembered.first() {
        return allowed(By::Answer(kept.shown.clone()));
    }
    match fitting.first() {
        Some(rule) if rule.action() == Action::Allow => allowed(By::Rule(rule.text())),
        Some(_) => Verdict::Ask,
        None => Verdict::Default,
    }
}
