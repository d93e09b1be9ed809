//! What servers refuse, with their own words.

use serde_json::{Value, json};

use super::render::Kind;

/// A status and a body.
pub(super) type Refusal = (u16, Value);

fn refuse(kind: Kind, code: &str, message: &str) -> Refusal {
    if kind == Kind::LlamaCpp {
        return (400, json!({"error": {"code": 400, "message": message, "type": "invalid_request_error"}}));
    }
    (400, json!({"error": {"code": code, "message": message, "param": null, "type": "invalid_request_error"}}))
}

/// Checks a request. `history` are the items of the responses that it continues.
pub(super) fn check(kind: Kind, body: &Value, history: &[Value]) -> Result<(), Refusal> {
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err(refuse(kind, "missing_required_parameter", "Missing required parameter: 'model'."));
    }
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    for tool in tools {
        // `run` is what the client itself would run: no business of the endpoint's.
        if tool.get("function").is_some() || tool.get("run").is_some() || tool["type"].as_str().is_none() {
            return Err(refuse(kind, "invalid_tool", "Invalid tool."));
        }
    }
    let has_function = tools.iter().any(|tool| tool["type"] == "function");
    match kind {
        Kind::LlamaCpp => {
            if !body["previous_response_id"].is_null() {
                return Err(refuse(kind, "", "llama.cpp does not support 'previous_response_id'."));
            }
            for item in body["input"].as_array().into_iter().flatten() {
                if item["role"] == "assistant" && item["type"] != "message" {
                    return Err(refuse(kind, "", "Cannot determine type of 'item'"));
                }
                if item["type"] == "reasoning" && item["content"].as_array().is_none_or(Vec::is_empty) {
                    return Err(refuse(kind, "", "item['content'] is not an array"));
                }
            }
        }
        Kind::Ark => {
            if has_function && !body["max_tool_calls"].is_null() {
                return Err(refuse(kind, "InvalidParameter", "max_tool_calls only supported by build-in tools now"));
            }
            for field in ["truncation", "metadata", "user", "stream_options"] {
                if body.get(field).is_some() {
                    return Err(refuse(kind, "InvalidParameter", &format!("json: unknown field \"{field}\"")));
                }
            }
            if body["reasoning"].get("summary").is_some() {
                return Err(refuse(kind, "InvalidParameter", "json: unknown field \"summary\""));
            }
        }
        _ => {}
    }
    check_calls(kind, body, history)
}

/// Every output belongs to a call, and every call of the history has its output.
fn check_calls(kind: Kind, body: &Value, history: &[Value]) -> Result<(), Refusal> {
    let empty = Vec::new();
    let items: Vec<&Value> = history.iter().chain(body["input"].as_array().unwrap_or(&empty)).collect();
    let ids = |kinds: &[&str]| -> Vec<String> {
        let wanted = items.iter().filter(|item| item["type"].as_str().is_some_and(|name| kinds.contains(&name)));
        wanted.filter_map(|item| Some(item.get("call_id").or_else(|| item.get("id"))?.as_str()?.to_owned())).collect()
    };
    let calls = ids(&["function_call", "function_tool_call"]);
    let outputs = ids(&["function_call_output"]);
    if let Some(orphan) = outputs.iter().find(|id| !calls.contains(id)) {
        let message = format!("No tool call found for function call output with call_id {orphan}.");
        return Err(refuse(kind, "invalid_request_error", &message));
    }
    if let Some(open) = calls.iter().find(|id| !outputs.contains(id)) {
        return Err(refuse(kind, "invalid_request_error", &format!("No tool output found for function call {open}.")));
    }
    Ok(())
}

pub(super) fn not_found(kind: Kind, id: &str, previous: bool) -> Refusal {
    if kind == Kind::Ark {
        let message = format!("The specified previous response id {id} is not found.");
        let code = "InvalidParameter.PreviousResponseNotFound";
        return (
            if previous { 400 } else { 404 },
            json!({"error": {"code": code, "message": message, "param": "previous_response_id", "type": "BadRequest"}}),
        );
    }
    let message = format!("Response with id '{id}' not found.");
    let code = if previous { json!("previous_response_not_found") } else { Value::Null };
    (
        if previous { 400 } else { 404 },
        json!({"error": {"code": code, "message": message, "param": null, "type": "invalid_request_error"}}),
    )
}
