//! The arguments of a call as models write them: JSON, or nearly.

use serde_json::{Map, Value};

/// Reads arguments. Small models fence them, write them twice as JSON, leave commas behind, or stop before the last brace.
///
/// # Errors
/// Why they cannot be read, for the model.
pub(super) fn parse(text: &str) -> Result<Map<String, Value>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Map::new());
    }
    let problem = match object(text) {
        Ok(arguments) => return Ok(arguments),
        Err(problem) => problem,
    };
    let inner = unfenced(text);
    [inner.to_owned(), completed(inner), completed(&without_trailing_commas(inner))]
        .iter()
        .find_map(|repaired| object(repaired).ok())
        .ok_or(problem)
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        // JSON in a string of JSON.
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(Value::Object(arguments)) => Ok(arguments),
            _ => Err("the arguments are a string, and have to be a JSON object".to_owned()),
        },
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err("the arguments have to be a JSON object".to_owned()),
        Err(error) => Err(format!("the arguments are not valid JSON ({error})")),
    }
}

/// What is between the first brace and the last, without a fence and words around it.
fn unfenced(text: &str) -> &str {
    let Some(start) = text.find('{') else { return text };
    match text.rfind('}') {
        Some(end) if end > start && !is_open(&text[start..=end]) => &text[start..=end],
        _ => text[start..].trim_end().trim_end_matches("```").trim_end(),
    }
}

fn is_open(text: &str) -> bool {
    !closing(text).is_empty()
}

/// What a piece of JSON lacks at its end.
fn closing(text: &str) -> String {
    let (mut stack, mut in_string, mut escaped) = (Vec::new(), false, false);
    for char in text.chars() {
        match char {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            '{' if !in_string => stack.push('}'),
            '[' if !in_string => stack.push(']'),
            '}' | ']' if !in_string => drop(stack.pop()),
            _ => {}
        }
    }
    let mut closing = String::new();
    if escaped {
        closing.push('\\');
    }
    if in_string {
        closing.push('"');
    }
    closing.extend(stack.into_iter().rev());
    closing
}

fn completed(text: &str) -> String {
    format!("{text}{}", closing(text))
}

/// Commas before a closing brace, outside of strings.
fn without_trailing_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for (at, char) in text.char_indices() {
        let is_trailing = char == ','
            && !in_string
            && text[at + 1..].trim_start().starts_with(['}', ']']) | text[at + 1..].trim_start().is_empty();
        if !is_trailing {
            out.push(char);
        }
        match char {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
    }
    out
}

/// Looks at arguments while they come.
#[derive(Debug, Default)]
pub(super) struct Partial {
    text: String,
    /// How long the text was when it was last looked at.
    looked: usize,
}

impl Partial {
    /// The longest text that is looked at before it is complete, in bytes: what names a file comes early.
    const LONGEST: usize = 4 * 1024;

    /// Takes in more; what is known so far, if it is worth a look.
    pub(super) fn push(&mut self, delta: &str) -> Option<Map<String, Value>> {
        if self.text.len() > Self::LONGEST {
            return None;
        }
        self.text.push_str(delta);
        // A value is known once it is closed.
        let is_worth_it = delta.contains(['"', ',', '}']) && self.text.len() > self.looked;
        self.looked = self.text.len();
        is_worth_it.then(|| self.known()).flatten()
    }

    /// The members that are complete.
    fn known(&self) -> Option<Map<String, Value>> {
        let text = &self.text;
        let (mut in_string, mut escaped, mut depth) = (false, false, 0_i32);
        let mut end = None;
        for (at, char) in text.char_indices() {
            match char {
                _ if escaped => escaped = false,
                '\\' if in_string => escaped = true,
                '"' => {
                    in_string = !in_string;
                    // The end of a value, or of a name, which the parser tells apart.
                    if !in_string && depth == 1 {
                        end = Some(at + 1);
                    }
                }
                '{' | '[' if !in_string => depth += 1,
                '}' | ']' if !in_string => depth -= 1,
                ',' if !in_string && depth == 1 => end = Some(at),
                _ => {}
            }
        }
        let mut end = end?;
        // From the longest beginning that is an object on.
        loop {
            if let Ok(Value::Object(known)) = serde_json::from_str(&format!("{}}}", &text[..end])) {
                return Some(known);
            }
            end = text[..end].rfind(',')?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(text: &str) -> Value {
        parse(text).map_or_else(Value::String, Value::Object)
    }

    #[test]
    fn what_models_write_is_read() {
        let wanted = json!({"path": "a.rs", "n": [1, 2]});
        for text in [
            r#"{"path":"a.rs","n":[1,2]}"#,
            "```json\n{\"path\":\"a.rs\",\"n\":[1,2]}\n```",
            r#"Sure: {"path":"a.rs","n":[1,2]} done"#,
            r#"{"path":"a.rs","n":[1,2,],}"#,
            r#"{"path":"a.rs","n":[1,2"#,
            "```\n{\"path\":\"a.rs\",\"n\":[1,2],",
            r#""{\"path\":\"a.rs\",\"n\":[1,2]}""#,
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
        assert_eq!(read(""), json!({}));
        assert_eq!(read("null"), json!({}));
        assert_eq!(read(r#"{"text":"a, } b"}"#), json!({"text": "a, } b"}));
        assert!(parse("[1]").is_err() && parse("no").is_err());
    }

    #[test]
    fn names_are_known_before_the_rest() {
        let mut partial = Partial::default();
        assert_eq!(partial.push("{\"pa"), None);
        assert_eq!(partial.push("th\":\"src/a"), None);
        assert_eq!(partial.push(".rs\""), Some(json!({"path": "src/a.rs"}).as_object().cloned().unwrap()));
        let known = partial.push(",\"old_text\":\"a \\\"b\\\"\",\"new").unwrap();
        assert_eq!(Value::Object(known), json!({"path": "src/a.rs", "old_text": "a \"b\""}));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(text in ".{0,80}", cut in any::<prop::sample::Index>()) {
            let _ = parse(&text);
            let mut partial = Partial::default();
            let at = text.char_indices().map(|(at, _)| at).nth(cut.index(text.chars().count() + 1)).unwrap_or(text.len());
            let _ = partial.push(&text[..at]);
            let _ = partial.push(&text[at..]);
        }

        #[test]
        fn what_is_cut_short_is_completed(path in "[a-z/]{1,20}", text in ".{0,40}", cut in 1..200_usize) {
            let whole = json!({"path": path, "text": text}).to_string();
            let end = whole.floor_char_boundary(cut.min(whole.len()));
            if let Ok(arguments) = parse(&whole[..end]) {
                let known = arguments.get("path").and_then(Value::as_str).unwrap_or_default();
                prop_assert!(path.starts_with(known));
            }
            prop_assert_eq!(parse(&whole).map(Value::Object), Ok(json!({"path": path, "text": text})));
        }
    }
}
