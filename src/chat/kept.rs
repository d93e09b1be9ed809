//! Responses in the product's own store: for endpoints that keep none, and for the list, which no endpoint has.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::responses::Response;
use crate::store::{self, KeptResponse, NewResponse, Store, StoreError};

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// An id for a response that has none.
pub(crate) fn new_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("resp_{:x}{:08x}{:x}", now.as_secs(), now.subsec_nanos(), std::process::id())
}

/// How many responses one may continue. More of them are a ring, or no conversation.
const MAX_CHAIN: usize = 1000;

/// Opens the store.
pub(crate) fn open() -> Result<Store, StoreError> {
    let folder = store::state_folder(|name| std::env::var_os(name))
        .ok_or_else(|| StoreError::Unavailable("neither XDG_STATE_HOME nor HOME says where the store is".to_owned()))?;
    Store::open(&folder.join(store::FILE_NAME))
}

/// Keeps a response, with the items that were its input beyond those of the response that it continues.
pub(crate) fn keep(
    store: &mut Store,
    endpoint: &str,
    previous_id: Option<&str>,
    input: &[Value],
    response: &Response,
    expires_at: Option<i64>,
) -> Result<(), StoreError> {
    let created_at = response.as_map().get("created_at").and_then(Value::as_f64);
    #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970, which some servers send with a fraction")]
    let created_at = created_at.filter(|at| *at > 0.0).map_or_else(now, |at| at as i64);
    store.keep_response(&NewResponse {
        id: response.id().to_owned(),
        endpoint: endpoint.to_owned(),
        previous_id: previous_id.map(str::to_owned),
        created_at,
        input: Value::from(input.to_vec()).to_string(),
        output: Value::Object(response.as_map().clone()).to_string(),
        expires_at,
    })
}

/// The response itself.
pub(crate) fn response_of(kept: &KeptResponse) -> Option<Response> {
    Response::from_json(serde_json::from_str(&kept.output).ok()?)
}

/// What a response was given: input and output of all that it continues, oldest first, then its own input. `None` if it
/// is not kept.
pub(crate) fn input_of(store: &Store, id: &str) -> Result<Option<Vec<Value>>, StoreError> {
    let Some(kept) = store.response(id)? else { return Ok(None) };
    let mut items = match kept.previous_id.as_deref() {
        Some(previous) => conversation(store, previous)?.unwrap_or_default(),
        None => Vec::new(),
    };
    items.extend(own_input(&kept));
    Ok(Some(items))
}

/// Everything that was said up to a response and in it, oldest first. `None` if it is not kept.
pub(crate) fn conversation(store: &Store, id: &str) -> Result<Option<Vec<Value>>, StoreError> {
    let mut chain = Vec::new();
    let mut next = Some(id.to_owned());
    while let Some(id) = next.take().filter(|_| chain.len() < MAX_CHAIN) {
        let Some(kept) = store.response(&id)? else { break };
        next.clone_from(&kept.previous_id);
        chain.push(kept);
    }
    if chain.is_empty() {
        return Ok(None);
    }
    let of = |kept: KeptResponse| {
        let output = response_of(&kept).map(|response| response.output().to_vec()).unwrap_or_default();
        own_input(&kept).into_iter().chain(output)
    };
    Ok(Some(chain.into_iter().rev().flat_map(of).collect()))
}

/// The items of this request alone, each with an id by which it can be named.
fn own_input(kept: &KeptResponse) -> Vec<Value> {
    let items: Vec<Value> = serde_json::from_str(&kept.input).unwrap_or_default();
    let with_id = |(number, mut item): (usize, Value)| {
        if item.get("id").and_then(Value::as_str).is_none_or(str::is_empty) && item.is_object() {
            item["id"] = format!("in_{}_{number}", kept.id).into();
        }
        item
    };
    (1..).zip(items).map(with_id).collect()
}

/// Makes a conversation one that endpoints accept: a call that was never answered gets an output that says so, and ids of
/// ours are taken off.
pub(crate) fn as_input(items: Vec<Value>) -> Vec<Value> {
    let field = |item: &Value, name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let answered: Vec<String> = items
        .iter()
        .filter(|item| field(item, "type") == "function_call_output")
        .map(|item| field(item, "call_id"))
        .collect();
    let mut input = Vec::with_capacity(items.len());
    for mut item in items {
        let open = field(&item, "type") == "function_call" && !answered.contains(&field(&item, "call_id"));
        let call_id = field(&item, "call_id");
        if field(&item, "id").starts_with("in_")
            && let Some(fields) = item.as_object_mut()
        {
            fields.remove("id");
        }
        input.push(item);
        if open {
            input.push(
                json!({"type": "function_call_output", "call_id": call_id, "output": "This function was not run."}),
            );
        }
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(id: &str, output: &Value) -> Response {
        Response::from_json(json!({"id": id, "status": "completed", "created_at": 1.5, "output": output})).unwrap()
    }

    #[test]
    fn a_conversation_is_put_together_from_its_responses() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("store.db")).unwrap();
        let call = json!([{"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"}]);
        keep(&mut store, "e", None, &[json!({"role": "user", "content": "hi"})], &response("r1", &call), None).unwrap();
        let output = json!({"type": "function_call_output", "call_id": "c", "output": "1"});
        keep(&mut store, "e", Some("r1"), &[output], &response("r2", &json!([{"type": "message", "id": "m"}])), None)
            .unwrap();

        let ids = |items: Option<Vec<Value>>| -> Vec<String> {
            items.unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(ids(conversation(&store, "r2").unwrap()), ["in_r1_1", "fc", "in_r2_1", "m"]);
        assert_eq!(ids(input_of(&store, "r2").unwrap()), ["in_r1_1", "fc", "in_r2_1"]);
        assert_eq!(conversation(&store, "r3").unwrap(), None);
        let kept = store.response("r2").unwrap().unwrap();
        assert_eq!(response_of(&kept).unwrap().id(), "r2");
    }

    #[test]
    fn a_call_that_was_not_answered_gets_an_answer() {
        let call = |id: &str| json!({"type": "function_call", "id": id, "call_id": id, "name": "f"});
        let items = vec![
            json!({"id": "in_r_1", "role": "user"}),
            call("a"),
            call("b"),
            json!({"type": "function_call_output", "call_id": "b", "output": "1"}),
        ];
        let input = as_input(items);
        assert_eq!(input.len(), 5);
        assert_eq!(input[0], json!({"role": "user"}));
        assert_eq!((input[2]["call_id"].as_str(), input[3]["call_id"].as_str()), (Some("a"), Some("b")));
    }
}
