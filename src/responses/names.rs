//! The two forms in which servers and gateways write names on the wire, brought to the one that the API documents.
//!
//! Ark's Go SDK names the variants of its messages, not the values on the wire, and gateways built on it send them:
//! `function_tool_call` for `function_call`, `response_output_text_delta` for `response.output_text.delta`, a call's id
//! as `id` instead of `call_id`.

use serde_json::{Map, Value};

const ITEM_TYPES: &[(&str, &str)] = &[
    ("function_tool_call", "function_call"),
    ("function_tool_call_output", "function_call_output"),
    ("function_web_search", "web_search_call"),
    ("function_image_process", "image_process_call"),
    ("function_knowledge_search", "knowledge_search_call"),
    ("function_mcp_call", "mcp_call"),
    ("function_mcp_list_tools", "mcp_list_tools"),
    ("function_mcp_approval_request", "mcp_approval_request"),
    ("input_message", "message"),
    ("output_message", "message"),
];

/// An item's `type` as the API documents it.
pub(super) fn item_type(name: &str) -> &str {
    ITEM_TYPES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, documented)| documented)
}

/// Brings an item to the documented form. Everything else in it stays as it came.
pub(super) fn normalize_item(item: &mut Value) {
    let Some(fields) = item.as_object_mut() else { return };
    if let Some(Value::String(name)) = fields.get_mut("type") {
        let documented = item_type(name);
        if documented != name {
            *name = documented.to_owned();
        }
    }
    let is_call = matches!(fields.get("type").and_then(Value::as_str), Some("function_call" | "function_call_output"));
    if is_call && !has_text(fields, "call_id") && has_text(fields, "id") {
        let id = fields["id"].clone();
        fields.insert("call_id".to_owned(), id);
    }
}

/// Brings the output items of a response to the documented form.
pub(super) fn normalize_response(response: &mut Value) {
    if let Some(Value::Array(output)) = response.get_mut("output") {
        output.iter_mut().for_each(normalize_item);
    }
}

fn has_text(fields: &Map<String, Value>, key: &str) -> bool {
    fields.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
}

/// Whether an event's type is `documented`, which is written with dots, in either form.
pub(super) fn is_event(name: &str, documented: &str) -> bool {
    name.len() == documented.len()
        && name.bytes().zip(documented.bytes()).all(|(byte, wanted)| byte == wanted || (byte == b'_' && wanted == b'.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_of_an_item_become_the_documented_one() {
        let mut gateway = json!({"type": "function_tool_call", "id": "call_1", "name": "f", "arguments": "{}"});
        normalize_item(&mut gateway);
        assert_eq!(
            gateway,
            json!({"type": "function_call", "id": "call_1", "call_id": "call_1", "name": "f", "arguments": "{}"})
        );
        let documented = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "x": [1]});
        let mut same = documented.clone();
        normalize_item(&mut same);
        assert_eq!(same, documented);
        let mut unknown = json!({"type": "novelty", "id": "n"});
        normalize_item(&mut unknown);
        assert_eq!(unknown, json!({"type": "novelty", "id": "n"}));
    }

    #[test]
    fn both_forms_of_an_event_are_the_same_event() {
        assert!(is_event("response.output_text.delta", "response.output_text.delta"));
        assert!(is_event("response_output_text_delta", "response.output_text.delta"));
        assert!(!is_event("response.output_text.done", "response.output_text.delta"));
        assert!(!is_event("response.output.text.delta", "response.output_text.delta"));
    }
}
