//! What a session can be set to, and setting it: configuration options, and the modes and models of older agents.

use super::effect::{MessageLevel, Show};
use super::ids::{ChatId, ConnId};
use super::message::{AgentCall, Choices, RpcError};
use super::state::{PendingCall, Session, State};

/// How an option is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionSource {
    /// `configOptions`, by `session/set_config_option`.
    Config,
    /// `modes`, by `session/set_mode`.
    Mode,
    /// `models`, by `session/set_model`: never stable, and some agents still have only that.
    Model,
}

/// A value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionValue {
    /// What is sent for it.
    pub id: String,
    /// What the user reads.
    pub name: String,
    /// More about it.
    pub description: Option<String>,
    /// The heading that it stands below.
    pub group: Option<String>,
}

/// An option of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOption {
    /// How it is set.
    pub source: OptionSource,
    /// Its id.
    pub id: String,
    /// What the user reads.
    pub name: String,
    /// More about it.
    pub description: Option<String>,
    /// `mode`, `model`, `model_config`, `thought_level`, or anything.
    pub category: Option<String>,
    /// The id of its value; `true` or `false` of one that is on or off.
    pub current: String,
    /// Its values; none of one that is on or off.
    pub values: Vec<OptionValue>,
}

impl SessionOption {
    /// Whether it is on or off, and nothing else.
    pub const fn is_switch(&self) -> bool {
        self.values.is_empty()
    }

    /// What the user reads for its value.
    fn current_name(&self) -> String {
        let value = self.values.iter().find(|value| value.id == self.current);
        value.map_or_else(|| self.current.clone(), |value| value.name.clone())
    }

    fn is_of(&self, category: &str) -> bool {
        self.category.as_deref() == Some(category)
    }

    /// The id of a value that was named by its id or by what the user reads.
    fn value(&self, wanted: &str) -> Option<String> {
        if self.is_switch() {
            return match wanted {
                "on" | "true" | "yes" => Some("true".to_owned()),
                "off" | "false" | "no" => Some("false".to_owned()),
                _ => None,
            };
        }
        let by_id = self.values.iter().find(|value| value.id == wanted);
        let by_name = || self.values.iter().find(|value| value.name.eq_ignore_ascii_case(wanted));
        by_id.or_else(by_name).map(|value| value.id.clone())
    }
}

/// Categories that come before all others, in this order.
const FIRST: [&str; 4] = ["mode", "model", "model_config", "thought_level"];

impl Choices {
    /// Options as the user sees them: what most want to set first, the rest in the agent's order.
    pub fn new(mut options: Vec<SessionOption>) -> Self {
        let rank =
            |option: &SessionOption| FIRST.iter().position(|category| option.is_of(category)).unwrap_or(FIRST.len());
        options.sort_by_key(rank);
        let name =
            |category: &str| options.iter().find(|option| option.is_of(category)).map(SessionOption::current_name);
        Self { mode: name("mode"), model: name("model"), options }
    }

    /// Those that are left of an earlier set once the agent has told its configuration options anew.
    pub(super) fn replaced_by(&self, new: Self) -> Self {
        let is_new = |category: &str| new.options.iter().any(|option| option.is_of(category));
        let is_left =
            |old: &&SessionOption| old.source != OptionSource::Config && !old.category.as_deref().is_some_and(is_new);
        let left: Vec<SessionOption> = self.options.iter().filter(is_left).cloned().collect();
        Self::new(left.into_iter().chain(new.options).collect())
    }

    /// The agent has changed the mode by itself.
    fn with_mode(&self, mode: &str) -> Self {
        let mut options = self.options.clone();
        for option in options.iter_mut().filter(|option| option.is_of("mode")) {
            if option.values.iter().any(|value| value.id == mode) {
                mode.clone_into(&mut option.current);
            }
        }
        Self::new(options)
    }
}

impl State {
    /// Takes over what a session can be set to.
    pub(super) fn take_choices(&mut self, id: ChatId, choices: Choices) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        chat.mode = choices.mode.clone().or(chat.mode.take());
        chat.model = choices.model.clone().or(chat.model.take());
        chat.choices = choices;
        self.emit_choices(id);
        self.touch(id);
    }

    /// The agent has changed the mode by itself.
    pub(super) fn take_mode(&mut self, id: ChatId, mode: String) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let choices = chat.choices.with_mode(&mode);
        chat.mode = choices.mode.clone().or(Some(mode));
        chat.choices = choices;
        self.emit_choices(id);
        self.touch(id);
    }

    fn emit_choices(&mut self, id: ChatId) {
        let options = self.chats.get(&id).map(|chat| chat.choices.options.clone()).unwrap_or_default();
        self.emit(Show::Options(id, options));
    }

    /// The user sets an option of a session.
    pub(super) fn set_option(&mut self, id: ChatId, option: &str, value: &str) {
        let Some(chat) = self.chats.get(&id) else { return };
        let Session::Ready(conn, session) = chat.session.clone() else {
            self.warn("There is no session yet: wait until the agent is ready, then set it.");
            return;
        };
        let Some(known) = chat.choices.options.iter().find(|known| known.id == option) else {
            self.warn(format!("This session has no option {option:?}."));
            return;
        };
        let Some(value) = known.value(value) else {
            self.warn(format!("{value:?} is no value of {}.", known.name));
            return;
        };
        let (source, option, is_switch) = (known.source, known.id.clone(), known.is_switch());
        let call = match source {
            OptionSource::Config => {
                AgentCall::SetOption { session, option: option.clone(), value: value.clone(), is_switch }
            }
            OptionSource::Mode => AgentCall::SetMode { session, mode: value.clone() },
            OptionSource::Model => AgentCall::SetModel { session, model: value.clone() },
        };
        self.call(conn, PendingCall::SetOption(id, option, value), call);
    }

    /// An option is set; the agent tells all of them, or nothing.
    pub(super) fn option_is_set(&mut self, id: ChatId, option: &str, value: &str, all: Option<Choices>) {
        let Some(chat) = self.chats.get(&id) else { return };
        let choices = if let Some(all) = all {
            chat.choices.replaced_by(all)
        } else {
            let mut options = chat.choices.options.clone();
            for known in options.iter_mut().filter(|known| known.id == option) {
                value.clone_into(&mut known.current);
            }
            Choices::new(options)
        };
        self.take_choices(id, choices);
    }

    pub(super) fn option_is_not_set(&mut self, id: ChatId, option: &str, error: &RpcError) {
        let name = self.chats.get(&id).and_then(|chat| {
            chat.choices.options.iter().find(|known| known.id == option).map(|known| known.name.clone())
        });
        let text = format!("The agent did not set {}: {error}.", name.as_deref().unwrap_or(option));
        self.emit(Show::Message(MessageLevel::Warn, text));
    }

    /// A session begins: what the user has configured for its agent is set before the first prompt.
    pub(super) fn set_defaults(&mut self, conn: ConnId, id: ChatId) {
        let Some(chat) = self.chats.get(&id).filter(|chat| chat.session.conn() == Some(conn)) else { return };
        let Some(spec) = self.config.agents.get(&chat.agent) else { return };
        let mut unknown = Vec::new();
        let mut wanted = Vec::new();
        for (option, value) in &spec.options {
            let known = chat.choices.options.iter().find(|known| known.id == *option || known.is_of(option));
            match known.map(|known| (known, known.value(value))) {
                Some((known, Some(value))) if value == known.current => {}
                Some((known, Some(value))) => wanted.push((known.id.clone(), value)),
                _ => unknown.push(format!("{option} = {value}")),
            }
        }
        let agent = chat.agent.clone();
        for (option, value) in wanted {
            self.set_option(id, &option, &value);
        }
        if !unknown.is_empty() {
            self.warn(format!("{agent} has no such options: {} (agents.{agent}.options).", unknown.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(source: OptionSource, id: &str, category: Option<&str>, values: &[&str]) -> SessionOption {
        let value =
            |id: &&str| OptionValue { id: (*id).to_owned(), name: id.to_uppercase(), description: None, group: None };
        SessionOption {
            source,
            id: id.to_owned(),
            name: id.to_owned(),
            description: None,
            category: category.map(str::to_owned),
            current: values.first().map_or("false", |first| first).to_string(),
            values: values.iter().map(value).collect(),
        }
    }

    fn ids(choices: &Choices) -> Vec<&str> {
        choices.options.iter().map(|option| option.id.as_str()).collect()
    }

    #[test]
    fn what_most_want_to_set_comes_first_and_the_rest_as_the_agent_has_it() {
        let choices = Choices::new(vec![
            option(OptionSource::Config, "z", None, &["1"]),
            option(OptionSource::Config, "effort", Some("thought_level"), &["low"]),
            option(OptionSource::Config, "a", Some("_own"), &[]),
            option(OptionSource::Config, "model", Some("model"), &["m", "n"]),
            option(OptionSource::Config, "mode", Some("mode"), &["ask"]),
        ]);
        assert_eq!(ids(&choices), ["mode", "model", "effort", "z", "a"]);
        assert_eq!((choices.mode.as_deref(), choices.model.as_deref()), (Some("ASK"), Some("M")));
    }

    #[test]
    fn configuration_options_replace_all_of_them_and_what_is_older_of_their_kind() {
        let old = Choices::new(vec![
            option(OptionSource::Mode, "mode", Some("mode"), &["ask", "code"]),
            option(OptionSource::Model, "model", Some("model"), &["m"]),
            option(OptionSource::Config, "gone", None, &["1"]),
        ]);
        assert_eq!(old.with_mode("code").mode.as_deref(), Some("CODE"));
        let new = Choices::new(vec![option(OptionSource::Config, "llm", Some("model"), &["x"])]);
        let all = old.replaced_by(new);
        assert_eq!(ids(&all), ["mode", "llm"]);
    }

    #[test]
    fn values_are_named_by_id_or_as_the_user_reads_them() {
        let known = option(OptionSource::Config, "model", None, &["gpt", "o"]);
        assert_eq!(known.value("gpt").as_deref(), Some("gpt"));
        assert_eq!(known.value("Gpt").as_deref(), Some("gpt"));
        assert_eq!(known.value("x"), None);
        let switch = option(OptionSource::Config, "fast", None, &[]);
        assert_eq!((switch.value("on").as_deref(), switch.value("false").as_deref()), (Some("true"), Some("false")));
    }
}
