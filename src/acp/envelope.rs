//! A line to a JSON-RPC message. The parts stay raw JSON: ids are echoed as they came, and only what is used is parsed.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::surrogates;

/// A JSON-RPC 2.0 message whose parts are not decoded yet.
#[derive(Debug)]
pub enum Envelope<'a> {
    /// A request; its id may be a string, a number, `null`, or anything else.
    Request {
        /// Raw JSON, to be sent back as it is.
        id: &'a RawValue,
        /// The method.
        method: Cow<'a, str>,
        /// The parameters, if there are any.
        params: Option<&'a RawValue>,
    },
    /// A notification.
    Notification {
        /// The method.
        method: Cow<'a, str>,
        /// The parameters, if there are any.
        params: Option<&'a RawValue>,
    },
    /// An answer to a request of ours.
    Response {
        /// The id that we sent, as raw JSON.
        id: &'a RawValue,
        /// `Err` with the raw error, which need not look like one.
        result: Result<&'a RawValue, &'a RawValue>,
    },
    /// JSON that is none of these.
    Neither,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// A value that is there, also when it is `null`: `"id": null` is a request, no id is a notification.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The text of a line: invalid UTF-8 replaced, lone surrogates repaired, a byte order mark and blanks taken off.
pub fn text_of(line: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(line);
    let trimmed = match text {
        Cow::Borrowed(text) => Cow::Borrowed(trim(text)),
        Cow::Owned(text) => Cow::Owned(trim(&text).to_owned()),
    };
    if !trimmed.contains("\\ud") && !trimmed.contains("\\uD") {
        return trimmed;
    }
    match surrogates::repair(&trimmed) {
        Cow::Borrowed(_) => trimmed,
        Cow::Owned(repaired) => Cow::Owned(repaired),
    }
}

fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

/// The message in a line, or `None` if the line is noise: a banner, log text, an array. A message with text before it on
/// the same line (an escape sequence, a prompt, the first half of a message that was never finished) is found, and so is
/// one that is followed by an escape sequence.
pub fn parse(text: &str) -> Option<Envelope<'_>> {
    let start = beginning(text)?;
    let wire = wire(&text[start..]).or_else(|| {
        // Within a string the quotes would be escaped: this is the beginning of an object.
        let last = text.rfind("{\"jsonrpc\"").filter(|&last| last > start)?;
        wire(&text[last..])
    })?;
    Some(envelope(wire))
}

/// The messages in a line that is an array of them, or `None` if it is none. What is no message in it is left out.
pub fn parse_array(text: &str) -> Option<Vec<Envelope<'_>>> {
    if !text.starts_with('[') {
        return None;
    }
    let values: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(values.into_iter().filter_map(|value| wire(value.get()).map(envelope)).collect())
}

fn envelope(wire: Wire<'_>) -> Envelope<'_> {
    let Wire { id, method, params, result, error } = wire;
    // An explicit `"error": null` beside a result, as some libraries write it, is no error.
    let error = error.filter(|error| error.get() != "null");
    match (id, method) {
        (Some(id), Some(method)) => Envelope::Request { id, method, params },
        (None, Some(method)) => Envelope::Notification { method, params },
        (Some(id), None) => match (error, result) {
            (Some(error), _) => Envelope::Response { id, result: Err(error) },
            (None, Some(result)) => Envelope::Response { id, result: Ok(result) },
            // JavaScript leaves out a member that is `undefined`: an answer without a result is still the answer.
            (None, None) if params.is_none() => Envelope::Response { id, result: Ok(RawValue::NULL) },
            (None, None) => Envelope::Neither,
        },
        (None, None) => Envelope::Neither,
    }
}

/// Where the object of a message begins: anything before it is noise.
fn beginning(text: &str) -> Option<usize> {
    if text.starts_with('{') { Some(0) } else { text.find("{\"") }
}

/// What the beginning of a message says of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The id as raw JSON.
    pub id: Option<Box<str>>,
    /// The method.
    pub method: Option<String>,
}

/// What is known of a message of which only the first bytes are there: its members up to the one that is cut off. Those
/// that lie deeper are not its own.
pub fn head(bytes: &[u8]) -> Head {
    let text = String::from_utf8_lossy(bytes);
    let mut head = Head::default();
    let Some(start) = beginning(&text) else { return head };
    let mut rest = &text[start + 1..];
    while let Some(name) = first_value::<Cow<'_, str>>(&mut rest) {
        let Some(after) = rest.trim_start().strip_prefix(':') else { break };
        rest = after;
        match &*name {
            "id" => head.id = first_value::<&RawValue>(&mut rest).map(|id| id.get().into()),
            "method" => head.method = first_value::<Cow<'_, str>>(&mut rest).map(Cow::into_owned),
            _ => {
                if first_value::<&RawValue>(&mut rest).is_none() {
                    break;
                }
            }
        }
        let Some(next) = rest.trim_start().strip_prefix(',') else { break };
        rest = next;
    }
    head
}

/// The JSON value at the beginning of `rest`, which is moved behind it. A value that may go on behind the end is none.
fn first_value<'a, T: Deserialize<'a>>(rest: &mut &'a str) -> Option<T> {
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<T>();
    let value = values.next()?.ok()?;
    let end = values.byte_offset();
    *rest = &rest[end..];
    (!rest.is_empty()).then_some(value)
}

fn wire(text: &str) -> Option<Wire<'_>> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    let wire = values.next()?.ok()?;
    // Anything else, such as the end of an array or a second object, says that this is not the message it looks like.
    let rest = text[values.byte_offset()..].trim_start();
    (rest.is_empty() || rest.starts_with('\u{1b}')).then_some(wire)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> String {
        match parse(&text_of(line.as_bytes())) {
            None => "noise".into(),
            Some(Envelope::Request { id, method, .. }) => format!("request {method} {}", id.get()),
            Some(Envelope::Notification { method, .. }) => format!("notification {method}"),
            Some(Envelope::Response { id, result: Ok(result) }) => format!("result {} {}", id.get(), result.get()),
            Some(Envelope::Response { id, result: Err(error) }) => format!("error {} {}", id.get(), error.get()),
            Some(Envelope::Neither) => "neither".into(),
        }
    }

    #[test]
    fn every_kind_of_message_is_told_apart() {
        for (line, expected) in [
            (r#"{"id":1,"method":"m","params":{}}"#, "request m 1"),
            (r#"{"id":null,"method":"m"}"#, "request m null"),
            (r#"{"id":"a/b","method":"m"}"#, r#"request m "a/b""#),
            (r#"{"id":1.5,"method":"m"}"#, "request m 1.5"),
            (r#"{"id":99999999999999999999,"method":"m"}"#, "request m 99999999999999999999"),
            (r#"{"method":"m"}"#, "notification m"),
            (r#"{"id":3,"result":null}"#, "result 3 null"),
            (r#"{"id":3,"result":{},"error":null}"#, "result 3 {}"),
            (r#"{"id":3,"error":{"message":"no code"}}"#, r#"error 3 {"message":"no code"}"#),
            (r#"{"id":3}"#, "result 3 null"),
            (r#"{"id":3,"error":null}"#, "result 3 null"),
            (r#"{"id":3,"params":{}}"#, "neither"),
            (r#"{"params":{}}"#, "neither"),
            ("\u{feff}{\"method\":\"m\"}\r", "notification m"),
            ("\x1b[2J> {\"method\":\"m\"}", "notification m"),
            ("{\"method\":\"m\"}\x1b[0m", "notification m"),
            (r#"{"jsonrpc":"2.0","meth{"jsonrpc":"2.0","id":1,"method":"m"}"#, "request m 1"),
            (r#"{"log":1} {"jsonrpc":"2.0","id":1,"method":"m"}"#, "request m 1"),
            (r#"sent {"message":{"jsonrpc":"2.0","id":1,"method":"m"}}"#, "neither"),
            (r#"{"method":"m"}}"#, "noise"),
            (r#"[{"method":"m"}]"#, "noise"),
            (r#"{"method":"m""#, "noise"),
            ("hello", "noise"),
            ("", "noise"),
        ] {
            assert_eq!(kind(line), expected, "{line}");
        }
    }

    #[test]
    fn the_beginning_of_a_message_tells_whose_it_is() {
        for (line, id, method) in [
            (r#"{"jsonrpc":"2.0","id":12,"method":"fs/x","params":{"id":9,"text":"aaa"#, Some("12"), Some("fs/x")),
            (r#"{ "method" : "m" , "id" : "a" , "params" : ["#, Some("\"a\""), Some("m")),
            (r#"> {"id":null,"method":"m","params":"#, Some("null"), Some("m")),
            (r#"{"jsonrpc":"2.0","id":3,"result":{"x":"aaa"#, Some("3"), None),
            (r#"{"id":3"#, None, None),
            (r#"{"id":3,"method":"cut of"#, Some("3"), None),
            (r#"{"params":{"method":"inner","id":7,"a":"#, None, None),
            ("xxxx", None, None),
            ("", None, None),
        ] {
            let expected = Head { id: id.map(Into::into), method: method.map(Into::into) };
            assert_eq!(head(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_cost_only_themselves() {
        assert_eq!(kind("{\"method\":\"m\\ud83d\"}"), "notification m\u{fffd}");
        let text = text_of(b"{\"method\":\"m\xff\"}");
        assert!(matches!(parse(&text), Some(Envelope::Notification { method, .. }) if method == "m\u{fffd}"));
    }
}
