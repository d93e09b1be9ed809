//! `elicitation/create` to the core's own types, field by field: one property of a kind that is not known must not cost the
//! others.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::tool_calls::{LABEL, array, cut, text};
use crate::core::elicitation::form::{Choice, Field, FieldKind, Form, Format, Given};
use crate::core::elicitation::{Ask, Elicitation, Scope};
use crate::core::ids::{CallId, SessionId};
use crate::core::message::AgentRequest;

/// Most fields of a form, and choices of a field, that are read.
const MAX_ITEMS: usize = 1_000;
/// Longest text beside a field that is kept, in bytes.
const MAX_TEXT: usize = 4_000;

/// The members of an object in the order in which they came, which is that of the form.
struct Ordered(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Ordered;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Ordered(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    mode: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    request_id: Option<Value>,
    #[serde(borrow, default)]
    requested_schema: Option<&'a RawValue>,
    #[serde(default)]
    elicitation_id: Option<String>,
    #[serde(default)]
    url: Option<String>,
}

#[derive(Deserialize)]
struct Schema {
    #[serde(default)]
    properties: Option<Ordered>,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

/// Decodes the parameters. It always gives a request, so that there is always something to answer.
pub(super) fn request(raw: &str) -> AgentRequest {
    match elicitation(raw) {
        Ok(elicitation) => AgentRequest::Elicit(elicitation),
        Err(problem) => AgentRequest::Invalid { problem: format!("Invalid params: {problem}") },
    }
}

fn elicitation(raw: &str) -> Result<Elicitation, String> {
    let params: Params<'_> = serde_json::from_str(raw).map_err(|error| error.to_string())?;
    let scope = match (params.session_id, params.request_id) {
        (Some(session), _) => Scope::Session(SessionId::from(session.as_str())),
        // Ours are numbers, and what is none of them names nothing.
        (None, Some(id)) => Scope::Request(CallId(id.as_u64().unwrap_or_default())),
        (None, None) => return Err("neither sessionId nor requestId is there".to_owned()),
    };
    let ask = match params.mode.as_str() {
        "form" => {
            let raw = params.requested_schema.ok_or("requestedSchema is missing")?;
            Ask::Form(form(serde_json::from_str(raw.get()).map_err(|error| error.to_string())?))
        }
        "url" => {
            let id = params.elicitation_id.ok_or("elicitationId is missing")?;
            Ask::Url(id, params.url.ok_or("url is missing")?)
        }
        other => return Err(format!("the mode {other:?} was not offered")),
    };
    Ok(Elicitation { scope, message: cut(params.message, MAX_TEXT), ask })
}

fn form(schema: Schema) -> Form {
    let rest = Value::Object(schema.rest);
    let required: Vec<&str> = array(&rest, "required").into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.properties.map(|properties| properties.0).unwrap_or_default();
    let fields = properties.into_iter().take(MAX_ITEMS).map(|(name, property)| {
        let is_required = required.contains(&name.as_str());
        field(name, &property, is_required)
    });
    let fields = fields.collect();
    Form { title: label(&rest, "title"), description: long(&rest, "description"), fields }
}

fn field(name: String, property: &Value, is_required: bool) -> Field {
    let kind = kind(property);
    let default = property.get("default").and_then(|default| given(&kind, default));
    let title = label(property, "title").unwrap_or_else(|| cut(name.clone(), LABEL));
    Field { title, description: long(property, "description"), is_required, default, kind, name }
}

fn kind(property: &Value) -> FieldKind {
    let number = |name| property.get(name).and_then(Value::as_f64);
    let integer = |name| property.get(name).and_then(Value::as_i64);
    let count = |name| property.get(name).and_then(Value::as_u64);
    match property.get("type").and_then(Value::as_str) {
        Some("string") => match choices(property, "oneOf") {
            Some(choices) => FieldKind::One(choices),
            None => FieldKind::Text {
                min: count("minLength"),
                max: count("maxLength"),
                pattern: text(property, "pattern"),
                format: match property.get("format").and_then(Value::as_str) {
                    Some("email") => Some(Format::Email),
                    Some("uri") => Some(Format::Uri),
                    Some("date") => Some(Format::Date),
                    Some("date-time") => Some(Format::DateTime),
                    _ => None,
                },
            },
        },
        Some("number") => FieldKind::Number(number("minimum"), number("maximum")),
        Some("integer") => FieldKind::Integer(integer("minimum"), integer("maximum")),
        Some("boolean") => FieldKind::Boolean,
        Some("array") => match property.get("items").and_then(|items| choices(items, "anyOf")) {
            Some(choices) => FieldKind::Many(choices, count("minItems"), count("maxItems")),
            None => FieldKind::Unknown("array of something else than choices".to_owned()),
        },
        Some(other) => FieldKind::Unknown(cut(other.to_owned(), LABEL)),
        None => FieldKind::Unknown("none".to_owned()),
    }
}

/// The choices of a list of values, or of values with titles below `titled`.
fn choices(of: &Value, titled: &str) -> Option<Vec<Choice>> {
    let with_title = |item: &Value| {
        let value = text(item, "const")?;
        let title = label(item, "title").unwrap_or_else(|| value.clone());
        Some(Choice { title, description: long(item, "description"), value })
    };
    let plain = |item: &Value| {
        let value = item.as_str()?.to_owned();
        Some(Choice { title: cut(value.clone(), LABEL), description: None, value })
    };
    let found: Vec<Choice> = match (array(of, titled), array(of, "enum")) {
        (Some(items), _) => items.iter().take(MAX_ITEMS).filter_map(with_title).collect(),
        (None, Some(items)) => items.iter().take(MAX_ITEMS).filter_map(plain).collect(),
        (None, None) => return None,
    };
    Some(found)
}

/// A default as if the user had given it; one that does not fit is none.
fn given(kind: &FieldKind, default: &Value) -> Option<Given> {
    let is_there = |choices: &[Choice], value: &str| choices.iter().any(|choice| choice.value == value);
    Some(match (kind, default) {
        (FieldKind::Text { .. }, Value::String(text)) => Given::Text(text.clone()),
        (FieldKind::One(choices), Value::String(text)) if is_there(choices, text) => Given::Text(text.clone()),
        (FieldKind::Number(..) | FieldKind::Integer(..), Value::Number(number)) => Given::Text(number.to_string()),
        (FieldKind::Boolean, Value::Bool(on)) => Given::Switch(*on),
        (FieldKind::Many(choices, ..), Value::Array(values)) => {
            let values = values.iter().filter_map(Value::as_str).filter(|value| is_there(choices, value));
            Given::Many(values.map(str::to_owned).collect())
        }
        _ => return None,
    })
}

fn label(value: &Value, name: &str) -> Option<String> {
    text(value, name).filter(|text| !text.trim().is_empty()).map(|text| cut(text, LABEL))
}

fn long(value: &Value, name: &str) -> Option<String> {
    text(value, name).filter(|text| !text.trim().is_empty()).map(|text| cut(text, MAX_TEXT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_form_keeps_the_agents_order_and_what_is_not_known() {
        let raw = r#"{"mode":"form","sessionId":"s","toolCallId":"t","message":"M","requestedSchema":{"type":"object","properties":{
            "z":{"type":"string","title":"Z","oneOf":[{"const":"1","title":"One","description":"first"},{"title":"no value"}],"default":"1"},
            "a":{"type":"array","items":{"type":"string","enum":["x","y"]},"minItems":1,"default":["y","nothing"]},
            "m":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]}},
            "c":{"type":"colour"}, "o":{}, "n":{"type":"integer","minimum":1,"default":3},
            "b":{"type":"boolean","default":true}, "d":{"type":"string","format":"date","default":7}},"required":["a"]}}"#;
        let Ok(Elicitation { scope: Scope::Session(session), message, ask: Ask::Form(form) }) = elicitation(raw) else {
            panic!("no form");
        };
        assert_eq!((&*session.0, message.as_str()), ("s", "M"));
        let names: Vec<&str> = form.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["z", "a", "m", "c", "o", "n", "b", "d"]);
        let choice = |value: &str, title: &str, description: Option<&str>| Choice {
            value: value.into(),
            title: title.into(),
            description: description.map(Into::into),
        };
        assert_eq!(form.fields[0].kind, FieldKind::One(vec![choice("1", "One", Some("first"))]));
        assert_eq!(form.fields[0].default, Some(Given::Text("1".into())));
        let two = vec![choice("x", "x", None), choice("y", "y", None)];
        assert_eq!(form.fields[1].kind, FieldKind::Many(two, Some(1), None));
        assert_eq!(form.fields[1].default, Some(Given::Many(vec!["y".into()])));
        assert!(form.fields[1].is_required && !form.fields[0].is_required);
        assert_eq!(form.fields[2].kind, FieldKind::Many(vec![choice("x", "X", None)], None, None));
        assert_eq!(form.fields[3].kind, FieldKind::Unknown("colour".into()));
        assert_eq!(form.fields[4].kind, FieldKind::Unknown("none".into()));
        assert_eq!(form.fields[5].default, Some(Given::Text("3".into())));
        assert_eq!(form.fields[6].default, Some(Given::Switch(true)));
        assert_eq!((form.fields[7].title.as_str(), &form.fields[7].default), ("d", &None));
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        for (params, problem) in [
            (json!({"mode": "dance", "sessionId": "s"}), "the mode \"dance\" was not offered"),
            (json!({"mode": "form", "sessionId": "s"}), "requestedSchema is missing"),
            (json!({"mode": "form", "requestedSchema": {}}), "neither sessionId nor requestId is there"),
            (json!({"mode": "url", "sessionId": "s", "url": "https://a"}), "elicitationId is missing"),
        ] {
            assert_eq!(elicitation(&params.to_string()), Err(problem.to_owned()));
        }
        assert!(matches!(request("[]"), AgentRequest::Invalid { .. }));
        let url = json!({"mode": "url", "requestId": 4, "elicitationId": "e", "url": "https://a", "message": ""});
        let Ok(Elicitation { scope, ask, .. }) = elicitation(&url.to_string()) else { panic!("no address") };
        assert_eq!((scope, ask), (Scope::Request(CallId(4)), Ask::Url("e".into(), "https://a".into())));
    }
}
