use serde_json::{Value, json};

use super::*;

fn event(data: Value) -> Event {
    Event { kind: data["type"].as_str().unwrap_or_default().to_owned(), data, raw: String::new() }
}

/// What the events mean, and the response that they make.
fn play(events: &[Value]) -> (Vec<Update>, Response) {
    let mut assembly = Assembly::default();
    let mut updates = Vec::new();
    for data in events {
        assembly.apply(&event(data.clone()), &mut updates).unwrap();
    }
    (updates, assembly.response())
}

fn text(updates: &[Update]) -> String {
    updates
        .iter()
        .filter_map(|update| if let Update::Text { delta, .. } = update { Some(delta.as_str()) } else { None })
        .collect()
}

fn arguments(updates: &[Update]) -> String {
    let of = |update: &Update| if let Update::Arguments { delta, .. } = update { Some(delta.clone()) } else { None };
    updates.iter().filter_map(of).collect()
}

fn calls(updates: &[Update]) -> Vec<FunctionCall> {
    let of = |update: &Update| if let Update::CallDone { call, .. } = update { Some(call.clone()) } else { None };
    updates.iter().filter_map(of).collect()
}

/// A whole conversation as the API documents it: reasoning, text, and a call.
fn documented() -> Vec<Value> {
    vec![
        json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "model": "m", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1", "summary": []}}),
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0, "summary_index": 0, "delta": "think"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "think"}]}}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "id": "msg_1", "role": "assistant", "content": []}}),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "delta": "Let me "}),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "delta": "check."}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Let me check."}]}}),
        json!({"type": "response.output_item.added", "output_index": 2, "item": {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": ""}}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 2, "delta": "{\"a\":"}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 2, "delta": "1}"}),
        json!({"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 2, "arguments": "{\"a\":1}"}),
        json!({"type": "response.output_item.done", "output_index": 2, "item": {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{\"a\":1}"}}),
        json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 2}, "output": []}}),
    ]
}

fn expected_call() -> FunctionCall {
    FunctionCall { call_id: "call_1".into(), name: "f".into(), arguments: "{\"a\":1}".into() }
}

#[track_caller]
fn assert_same_answer(events: &[Value]) {
    let (updates, response) = play(events);
    assert_eq!(text(&updates), "Let me check.");
    assert_eq!(arguments(&updates), "{\"a\":1}");
    assert_eq!(calls(&updates), [expected_call()]);
    assert_eq!(updates.last(), Some(&Update::Finished));
    assert_eq!(response.output_text(), "Let me check.");
    assert_eq!(response.reasoning_text(), "think");
    assert_eq!(response.function_calls(), [expected_call()]);
}

#[test]
fn a_documented_stream_is_read() {
    assert_same_answer(&documented());
    let (updates, response) = play(&documented());
    assert_eq!(updates[0], Update::Started);
    assert!(updates.contains(&Update::CallStarted { item: 2, call_id: "call_1".into(), name: "f".into() }));
    assert_eq!((response.id(), response.model(), response.usage().unwrap().total), ("resp_1", "m", 3));
}

#[test]
fn any_kind_of_field_may_be_missing_everywhere() {
    for missing in ["item_id", "output_index", "sequence_number", "summary_index", "response"] {
        let mut events = documented();
        for event in &mut events {
            event.as_object_mut().unwrap().remove(missing);
        }
        assert_same_answer(&events);
    }
    let mut events = documented();
    for event in &mut events {
        event.as_object_mut().unwrap().remove("item_id");
        event.as_object_mut().unwrap().remove("output_index");
    }
    assert_same_answer(&events);
}

#[test]
fn any_kind_of_event_but_the_last_may_be_missing() {
    for missing in [
        "created",
        "output_item.added",
        "function_call_arguments.done",
        "output_text.delta",
        "reasoning_summary_text.delta",
        "function_call_arguments.delta",
    ] {
        let left = |event: &Value| event["type"] != format!("response.{missing}");
        assert_same_answer(&documented().into_iter().filter(left).collect::<Vec<_>>());
    }
}

#[test]
fn items_may_be_told_by_the_last_event_only() {
    let output = play(&documented()).1.output().to_vec();
    let last = json!({"type": "response.completed", "response": {"id": "resp_1", "output": output}});
    assert_same_answer(std::slice::from_ref(&last));
    // Or by both, which is told once.
    let mut events = documented();
    events.pop();
    events.push(last.clone());
    assert_same_answer(&events);
    // Or by deltas and the last event.
    let without_done = |event: &Value| event["type"] != "response.output_item.done";
    let mut events: Vec<Value> = documented().into_iter().filter(without_done).collect();
    events.pop();
    events.push(last);
    assert_same_answer(&events);
}

#[test]
fn the_names_of_gateways_are_understood() {
    let mut events = documented();
    for event in &mut events {
        let name = event["type"].as_str().unwrap().replace('.', "_");
        event["type"] = name.into();
        if let Some(item) = event.get_mut("item").filter(|item| item["type"] == "function_call") {
            item["type"] = "function_tool_call".into();
            item["id"] = item["call_id"].take();
            item.as_object_mut().unwrap().remove("call_id");
        } else if event["item_id"] == "fc_1" {
            event["item_id"] = "call_1".into();
        }
    }
    assert_same_answer(&events);
    assert_eq!(play(&events).1.output()[2]["type"], "function_call");
}

#[test]
fn two_calls_at_once_are_kept_apart() {
    let added = |n: u32| json!({"type": "response.output_item.added", "output_index": n, "item": {"type": "function_call", "id": format!("fc_{n}"), "call_id": format!("call_{n}"), "name": "f", "arguments": ""}});
    let delta = |n: u32, text: &str| json!({"type": "response.function_call_arguments.delta", "item_id": format!("fc_{n}"), "output_index": n, "delta": text});
    let events = [
        added(0),
        added(1),
        delta(1, "{\"b\""),
        delta(0, "{\"a\""),
        delta(1, ":2}"),
        delta(0, ":1}"),
        json!({"type": "response.completed", "response": {}}),
    ];
    let (updates, _) = play(&events);
    let arguments: Vec<String> = calls(&updates).into_iter().map(|call| call.arguments).collect();
    assert_eq!(arguments, ["{\"a\":1}", "{\"b\":2}"]);
}

#[test]
fn calls_that_only_have_ends_are_kept_apart() {
    // llama.cpp: no output_index, no arguments.done.
    let done = |n: u32| json!({"type": "response.output_item.done", "item": {"type": "function_call", "id": format!("fc_{n}"), "call_id": format!("call_{n}"), "name": "f", "arguments": format!("{{\"n\":{n}}}")}});
    let (updates, response) = play(&[
        done(0),
        done(1),
        json!({"type": "response.completed", "response": {"id": "r", "object": "response", "status": "completed"}}),
    ]);
    assert_eq!(calls(&updates).len(), 2);
    assert_eq!(response.function_calls().len(), 2);
}

#[test]
fn errors_are_read_in_all_three_shapes() {
    let begin = json!({"type": "response.output_text.delta", "item_id": "m", "delta": "Hel"});
    for failure in [
        json!({"type": "error", "code": "server_error", "message": "broken", "param": null, "sequence_number": 4}),
        json!({"type": "response.failed", "response": {"id": "r", "status": "failed", "error": {"code": "server_error", "message": "broken"}}}),
        json!({"error": {"code": "server_error", "message": "broken", "type": "x"}}),
    ] {
        let mut assembly = Assembly::default();
        assembly.apply(&event(begin.clone()), &mut Vec::new()).unwrap();
        let error = assembly.apply(&event(failure), &mut Vec::new()).unwrap_err();
        assert_eq!((error.code.as_deref(), error.message.as_str()), (Some("server_error"), "broken"));
        assert_eq!(error.partial.unwrap().output_text(), "Hel");
    }
}

#[test]
fn what_is_unknown_or_wrong_means_nothing() {
    let (updates, _) = play(&[
        json!({"type": "keepalive"}),
        json!({"type": "response.novelty.delta", "delta": 5}),
        json!({"type": "response.output_text.delta", "delta": 5}),
        json!({"type": "response.output_item.added"}),
        json!({"type": "response.output_item.done", "item": "text"}),
        json!({"object": "something"}),
        json!({"type": "response.created", "response": null}),
    ]);
    assert_eq!(updates, [Update::Started]);
}

#[test]
fn tools_of_the_endpoint_tell_how_far_they_are() {
    let (updates, response) = play(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}}),
        json!({"type": "response.web_search_call.searching", "item_id": "ws_1", "output_index": 0}),
        json!({"type": "response.web_search_call.completed", "item_id": "ws_1", "output_index": 0}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}}),
        json!({"type": "response.completed", "response": {}}),
    ]);
    let of =
        |update: &Update| if let Update::Tool { item: 0, status, .. } = update { Some(status.clone()) } else { None };
    let statuses: Vec<String> = updates.iter().filter_map(of).collect();
    assert_eq!(statuses, ["in_progress", "searching", "completed", "completed"]);
    assert_eq!(response.calls()[0]["action"]["query"], "x");
}

#[test]
fn done_without_a_last_event_completes_what_came() {
    let mut assembly = Assembly::default();
    let mut updates = Vec::new();
    for data in documented().iter().take(11) {
        assembly.apply(&event(data.clone()), &mut updates).unwrap();
    }
    assembly.done_without_end(&mut updates);
    assert_eq!(calls(&updates), [expected_call()]);
    assert_eq!(assembly.response().function_calls(), [expected_call()]);
    assert_eq!(assembly.response().status(), super::super::Status::Completed);
}
