//! Questions of agents, for Lua.

use rmpv::Value;

use super::{map, optional, text};
use crate::core::elicitation::form::{Choice, Field, FieldKind, Format, Given};
use crate::core::elicitation::{AskView, ElicitationView};

/// A question.
pub(super) fn view(view: &ElicitationView) -> Value {
    let mut parts = vec![
        ("request", view.request.0.into()),
        ("chat", view.chat.0.into()),
        ("agent", text(view.agent.as_str())),
        ("message", text(view.message.as_str())),
    ];
    match &view.ask {
        AskView::Form(form) => parts.extend([
            ("title", optional(form.title.as_deref())),
            ("description", optional(form.description.as_deref())),
            ("fields", Value::Array(form.fields.iter().map(field).collect())),
        ]),
        AskView::Url { url, host, doubt } => {
            parts.extend([("url", text(url.as_str())), ("host", text(host.as_str())), ("doubt", optional(*doubt))]);
        }
    }
    map(parts)
}

fn field(field: &Field) -> Value {
    let (kind, choices) = match &field.kind {
        FieldKind::Text { .. } | FieldKind::Number(..) | FieldKind::Integer(..) => ("text", [].as_slice()),
        FieldKind::Boolean => ("boolean", [].as_slice()),
        FieldKind::One(choices) => ("one", choices.as_slice()),
        FieldKind::Many(choices, ..) => ("many", choices.as_slice()),
        FieldKind::Unknown(_) => ("unknown", [].as_slice()),
    };
    let default = match &field.default {
        None => Value::Nil,
        Some(Given::Text(given)) => text(given.as_str()),
        Some(Given::Switch(on)) => (*on).into(),
        Some(Given::Many(values)) => Value::Array(values.iter().map(|value| text(value.as_str())).collect()),
    };
    map([
        ("name", text(field.name.as_str())),
        ("title", text(field.title.as_str())),
        ("description", optional(field.description.as_deref())),
        ("required", field.is_required.into()),
        ("kind", kind.into()),
        ("hint", optional(hint(&field.kind).as_deref())),
        ("choices", Value::Array(choices.iter().map(choice).collect())),
        ("default", default),
    ])
}

fn choice(choice: &Choice) -> Value {
    map([
        ("value", text(choice.value.as_str())),
        ("title", text(choice.title.as_str())),
        ("description", optional(choice.description.as_deref())),
    ])
}

/// What the user may put in, in a few words.
fn hint(kind: &FieldKind) -> Option<String> {
    match kind {
        FieldKind::Text { min, max, format, .. } => {
            let format = format.map(|format| match format {
                Format::Email => "an email address",
                Format::Uri => "a URI",
                Format::Date => "a day: YYYY-MM-DD",
                Format::DateTime => "a moment: YYYY-MM-DDThh:mm:ssZ",
            });
            format.map(str::to_owned).or_else(|| bounds(*min, *max).map(|bounds| format!("{bounds} characters")))
        }
        FieldKind::Number(min, max) => Some(with_bounds("a number", bounds(*min, *max))),
        FieldKind::Integer(min, max) => Some(with_bounds("a whole number", bounds(*min, *max))),
        FieldKind::Many(_, min, max) => bounds(*min, *max).map(|bounds| format!("{bounds} of these")),
        FieldKind::Unknown(kind) => Some(format!("of the unknown type {kind}: this cannot be asked for here")),
        FieldKind::Boolean | FieldKind::One(_) => None,
    }
}

fn with_bounds(what: &str, bounds: Option<String>) -> String {
    bounds.map_or_else(|| what.to_owned(), |bounds| format!("{what}, {bounds}"))
}

fn bounds<T: std::fmt::Display>(min: Option<T>, max: Option<T>) -> Option<String> {
    Some(match (min, max) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => return None,
    })
}
