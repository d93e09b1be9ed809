//! What a session can be set to: its mode, and its configuration options.

use agent_client_protocol_schema::v1::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionMode, SessionModeState,
};

use crate::responses::{Dialect, ToolChoice};

/// What the agent may do without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mode {
    /// It asks before it changes or runs anything.
    #[default]
    Ask,
    /// It changes files without asking.
    AcceptEdits,
    /// It only reads.
    Plan,
    /// It asks nothing.
    Full,
}

impl Mode {
    const ALL: [Self; 4] = [Self::Ask, Self::AcceptEdits, Self::Plan, Self::Full];

    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Plan => "plan",
            Self::Full => "full",
        }
    }

    pub(super) fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.id() == id)
    }

    const fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::Ask => ("Ask", "Asks before it changes a file or runs a command"),
            Self::AcceptEdits => ("Accept edits", "Changes files without asking, and asks before it runs a command"),
            Self::Plan => ("Plan", "Only reads, and says what it would do"),
            Self::Full => ("Full", "Changes files and runs commands without asking"),
        }
    }
}

/// How a session is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Options {
    pub(super) mode: Mode,
    /// `None` for the endpoint's default.
    pub(super) model: Option<String>,
    /// `None` for the model's default.
    pub(super) effort: Option<&'static str>,
    pub(super) web_search: bool,
    pub(super) tool_choice: Choice,
}

/// Whether the model has to call a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Choice {
    #[default]
    Auto,
    Required,
    None,
}

impl Choice {
    const fn id(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Required => "required",
            Self::None => "none",
        }
    }

    pub(super) const fn to_wire(self) -> Option<ToolChoice> {
        match self {
            Self::Auto => None,
            Self::Required => Some(ToolChoice::Required),
            Self::None => Some(ToolChoice::None),
        }
    }
}

const EFFORTS: [&str; 4] = ["minimal", "low", "medium", "high"];
const DEFAULT: &str = "default";

/// What the endpoint makes possible.
#[derive(Debug, Clone, Default)]
pub(super) struct Possible {
    pub(super) dialect: Option<Dialect>,
    pub(super) models: Vec<String>,
}

impl Options {
    /// The modes, as the protocol has them.
    pub(super) fn modes(&self) -> SessionModeState {
        let mode = |mode: Mode| {
            let (name, description) = mode.described();
            SessionMode::new(mode.id(), name).description(description.to_owned())
        };
        SessionModeState::new(self.mode.id(), Mode::ALL.into_iter().map(mode).collect::<Vec<_>>())
    }

    /// The configuration options, as the protocol has them.
    pub(super) fn config(&self, possible: &Possible) -> Vec<SessionConfigOption> {
        let value = |id: &str, name: &str| SessionConfigSelectOption::new(id.to_owned(), name.to_owned());
        let kinds: Vec<_> = Mode::ALL
            .into_iter()
            .map(|mode| value(mode.id(), mode.described().0).description(mode.described().1.to_owned()))
            .collect();
        let mut all = vec![
            SessionConfigOption::select("mode", "Mode", self.mode.id(), kinds)
                .category(SessionConfigOptionCategory::Mode),
        ];
        let mut models = possible.models.clone();
        if let Some(model) = self.model.as_ref().filter(|model| !models.contains(model)) {
            models.insert(0, model.clone());
        }
        if let Some(current) = self.model.clone().or_else(|| models.first().cloned()) {
            let values: Vec<_> = models.iter().map(|model| value(model, model)).collect();
            all.push(
                SessionConfigOption::select("model", "Model", current, values)
                    .category(SessionConfigOptionCategory::Model),
            );
        }
        let efforts: Vec<_> = [(DEFAULT, "The model's default")]
            .into_iter()
            .chain(EFFORTS.map(|effort| (effort, effort)))
            .map(|(id, name)| value(id, name))
            .collect();
        all.push(
            SessionConfigOption::select("effort", "Reasoning effort", self.effort.unwrap_or(DEFAULT), efforts)
                .category(SessionConfigOptionCategory::ThoughtLevel),
        );
        if possible.dialect.is_some_and(|dialect| dialect.capabilities().web_search) {
            let values = vec![value("off", "Off"), value("on", "On")];
            let current = if self.web_search { "on" } else { "off" };
            all.push(SessionConfigOption::select("web_search", "Web search", current, values));
        }
        if possible.dialect.is_none_or(|dialect| dialect.capabilities().tool_choice) {
            let values: Vec<_> = [Choice::Auto, Choice::Required, Choice::None]
                .into_iter()
                .map(|choice| value(choice.id(), choice.id()))
                .collect();
            all.push(SessionConfigOption::select("tool_choice", "Tool choice", self.tool_choice.id(), values));
        }
        all
    }

    /// Sets an option; what is wrong with it, if it cannot be.
    pub(super) fn set(&mut self, id: &str, value: &str) -> Result<(), String> {
        let unknown = || format!("{value:?} is no value of {id:?}");
        match id {
            "mode" => self.mode = Mode::from_id(value).ok_or_else(unknown)?,
            "model" if value.is_empty() => return Err(unknown()),
            "model" => self.model = Some(value.to_owned()),
            "effort" if value == DEFAULT => self.effort = None,
            "effort" => self.effort = Some(EFFORTS.into_iter().find(|effort| *effort == value).ok_or_else(unknown)?),
            "web_search" => {
                self.web_search = match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err(unknown()),
                }
            }
            "tool_choice" => {
                let all = [Choice::Auto, Choice::Required, Choice::None];
                self.tool_choice = all.into_iter().find(|choice| choice.id() == value).ok_or_else(unknown)?;
            }
            _ => return Err(format!("there is no option {id:?}")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_value_that_is_offered_can_be_set() {
        let possible = Possible { dialect: Some(Dialect::OpenAi), models: vec!["a".to_owned(), "b".to_owned()] };
        let mut options = Options::default();
        for option in json!(options.config(&possible)).as_array().unwrap() {
            for value in option["options"].as_array().unwrap() {
                let (id, value) = (option["id"].as_str().unwrap(), value["value"].as_str().unwrap());
                options.set(id, value).unwrap();
                let now = json!(options.config(&possible));
                let now = now.as_array().unwrap().iter().find(|option| option["id"] == id).unwrap();
                assert_eq!(now["currentValue"], value, "{id}");
            }
        }
        assert!(options.set("mode", "x").is_err() && options.set("x", "y").is_err());
    }
}
