//! Takes secrets out of what is about to be kept.

use serde::de::IgnoredAny;
use serde_json::Value;

pub(super) use crate::logging::redact::redact as text;

/// JSON without secrets, which is JSON still. Text that is not JSON is treated as text.
pub(super) fn json(source: &str) -> String {
    let redacted = text(source);
    if redacted == source || is_json(&redacted) || !is_json(source) {
        return redacted.into_owned();
    }
    // A secret outside of a string, such as a number, left something that is not JSON. String by string, no number is
    // touched.
    match serde_json::from_str::<Value>(source) {
        Ok(mut value) => {
            strings(&mut value);
            value.to_string()
        }
        Err(_) => redacted.into_owned(),
    }
}

fn is_json(source: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(source).is_ok()
}

fn strings(value: &mut Value) {
    match value {
        Value::String(string) => *string = text(string).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(strings),
        Value::Object(fields) => fields.values_mut().for_each(strings),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_json() {
        for (source, expected) in [
            (r#"{"apiKey":"abc","n":1}"#, r#"{"apiKey":"[redacted]","n":1}"#),
            (r#"{"token":123,"text":"GH_TOKEN=abcdef"}"#, r#"{"text":"GH_TOKEN=[redacted]","token":123}"#),
            ("X_API_KEY=abc", "X_API_KEY=[redacted]"),
            (r#"{"n":12345678901234567890123}"#, r#"{"n":12345678901234567890123}"#),
        ] {
            let redacted = json(source);
            assert_eq!(serde_json::from_str::<Value>(&redacted).ok(), serde_json::from_str::<Value>(expected).ok());
            assert!(!redacted.contains("abc"), "{redacted}");
        }
    }
}
