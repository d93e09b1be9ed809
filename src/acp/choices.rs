//! Reading what a session can be set to: `configOptions`, and the `modes` and `models` of older agents.

use serde_json::Value;

use super::tool_calls::{array, text};
use crate::core::choices::{OptionSource, OptionValue, SessionOption};
use crate::core::message::Choices;

/// The configuration options of an update or an answer.
pub(super) fn config(options: &[Value]) -> Choices {
    Choices::new(options.iter().filter_map(option).collect())
}

/// All that an answer to a request for a session tells. Where there are both, the configuration options are what counts.
pub(super) fn of_session(value: &Value) -> Choices {
    let config = array(value, "configOptions").map(Vec::as_slice).unwrap_or_default();
    let mut options: Vec<SessionOption> = config.iter().filter_map(option).collect();
    let has = |options: &[SessionOption], category: &str| {
        options.iter().any(|option| option.category.as_deref() == Some(category))
    };
    if let Some(modes) = value.get("modes").filter(|_| !has(&options, "mode")) {
        options.extend(older(modes, OptionSource::Mode, "mode", "availableModes", &["currentModeId", "modeId"], "id"));
    }
    if let Some(models) = value.get("models").filter(|_| !has(&options, "model")) {
        options.extend(older(models, OptionSource::Model, "model", "availableModels", &["currentModelId"], "modelId"));
    }
    Choices::new(options)
}

/// One configuration option; of a type that is not known, none.
fn option(value: &Value) -> Option<SessionOption> {
    let id = text(value, "id").filter(|id| !id.is_empty())?;
    let (current, values) = match value.get("type").and_then(Value::as_str).unwrap_or("select") {
        "select" => {
            let values: Vec<OptionValue> = array(value, "options")?.iter().flat_map(values).collect();
            if values.is_empty() {
                return None;
            }
            (text(value, "currentValue")?, values)
        }
        "boolean" => (value.get("currentValue")?.as_bool()?.to_string(), Vec::new()),
        _ => return None,
    };
    Some(SessionOption {
        source: OptionSource::Config,
        name: text(value, "name").filter(|name| !name.is_empty()).unwrap_or_else(|| id.clone()),
        id,
        description: text(value, "description"),
        category: text(value, "category"),
        current,
        values,
    })
}

/// A value, or the values of a group.
fn values(item: &Value) -> Vec<OptionValue> {
    let read = |item: &Value, group: Option<&str>| {
        let id = text(item, "value")?;
        let name = text(item, "name").unwrap_or_else(|| id.clone());
        Some(OptionValue { id, name, description: text(item, "description"), group: group.map(str::to_owned) })
    };
    match array(item, "options") {
        Some(grouped) => {
            let group = text(item, "name").or_else(|| text(item, "group"));
            grouped.iter().filter_map(|item| read(item, group.as_deref())).collect()
        }
        None => read(item, None).into_iter().collect(),
    }
}

/// The modes or models of an agent that has no configuration options for them.
fn older(
    value: &Value,
    source: OptionSource,
    category: &str,
    list: &str,
    current: &[&str],
    id: &str,
) -> Option<SessionOption> {
    let read = |item: &Value| {
        let id = text(item, id).or_else(|| text(item, "id"))?;
        let name = text(item, "name").unwrap_or_else(|| id.clone());
        Some(OptionValue { id, name, description: text(item, "description"), group: None })
    };
    let values: Vec<OptionValue> = array(value, list)?.iter().filter_map(read).collect();
    let current = current.iter().find_map(|name| text(value, name))?;
    let title = if category == "mode" { "Mode" } else { "Model" };
    (!values.is_empty()).then(|| SessionOption {
        source,
        id: category.to_owned(),
        name: title.to_owned(),
        description: None,
        category: Some(category.to_owned()),
        current,
        values,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_of_every_form_are_read_and_unknown_ones_skipped() {
        let read = config(
            json!([
                {"id": "x", "name": "X", "type": "slider", "currentValue": 3},
                {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": true},
                {"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "b", "options": [
                    {"group": "g", "name": "Group", "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B", "description": "d"}]},
                    {"value": "c"}]},
                {"id": "", "type": "boolean", "currentValue": true},
                7,
            ])
            .as_array()
            .unwrap(),
        );
        let ids: Vec<&str> = read.options.iter().map(|option| option.id.as_str()).collect();
        assert_eq!((ids, read.model.as_deref()), (vec!["model", "fast"], Some("B")));
        let model = &read.options[0];
        assert_eq!(
            model.values.iter().map(|value| value.group.as_deref()).collect::<Vec<_>>(),
            [Some("Group"), Some("Group"), None]
        );
        assert_eq!((model.values[2].name.as_str(), read.options[1].current.as_str()), ("c", "true"));
    }

    #[test]
    fn modes_and_models_count_where_there_is_no_option_for_them() {
        let value = json!({
            "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]},
            "models": {"currentModelId": "m", "availableModels": [{"modelId": "m", "name": "M"}]},
            "configOptions": [{"id": "llm", "name": "Model", "category": "model", "type": "select", "currentValue": "x",
                "options": [{"value": "x", "name": "X"}]}],
        });
        let read = of_session(&value);
        let sources: Vec<OptionSource> = read.options.iter().map(|option| option.source).collect();
        assert_eq!(sources, [OptionSource::Mode, OptionSource::Config]);
        assert_eq!((read.mode.as_deref(), read.model.as_deref()), (Some("Ask"), Some("X")));
        let only = of_session(&json!({"models": value["models"], "configOptions": null}));
        assert_eq!(only.options[0].source, OptionSource::Model);
        assert_eq!(of_session(&Value::Null), Choices::default());
    }
}
