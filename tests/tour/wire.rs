//! Messages that no well-behaved client would send.

use agentchat::tour::Pace;
use serde_json::{Value, json};

use crate::client::{Client, Editor};
use crate::{everything, sample_project};

async fn error_code(client: &mut Client, id: &Value) -> i64 {
    let response = client.until(|message| message.get("method").is_none()).await;
    assert_eq!(response["id"], *id);
    response["error"]["code"].as_i64().unwrap()
}

#[tokio::test]
async fn garbage_costs_only_itself() {
    let folder = sample_project();
    let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
    let asked = client.prompt(&session, "ask").await;
    let question = client.until_request("session/request_permission").await;
    for (line, code) in [
        (&b"this is not JSON"[..], -32700),
        (b"{\"jsonrpc\":\"2.0\",", -32700),
        (b"\xff\xfe{}", -32700),
        (b"[]", -32600),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}]", -32600),
        (b"42", -32600),
        (b"{}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"method\":7}", -32600),
    ] {
        client.send_raw(line).await;
        client.send_raw(b"\r\n\n  \n").await;
        assert_eq!(error_code(&mut client, &Value::Null).await, code, "{}", line.escape_ascii());
    }
    let unsuspected = [
        json!({"jsonrpc": "2.0", "id": 99_999, "result": {}}),
        json!({"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "?"}}),
        json!({"jsonrpc": "2.0", "id": null, "result": null}),
        json!({"jsonrpc": "2.0", "method": "$/unknown", "params": [1, 2]}),
        json!({"jsonrpc": "2.0", "method": "session/cancel"}),
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "another"}}),
    ];
    for message in unsuspected {
        client.send(message).await;
    }
    client.respond(&question, Err(json!("an error is an object, but not here"))).await;
    assert_eq!(client.finish(&asked, &mut Editor::choosing("allow_once")).await, "end_turn");
    assert!(client.said().contains("I take that for a no"), "{}", client.said());
}

#[tokio::test]
async fn requests_are_refused_with_the_code_that_fits_and_the_id_they_had() {
    let mut client = Client::start(Pace::AT_ONCE);
    let folder = sample_project();
    let new_session = json!({"cwd": folder.path(), "mcpServers": []});
    let prompt = json!({"sessionId": "nobody", "prompt": []});
    for (id, method, params, code) in [
        (json!(1), "session/new", new_session, -32600),
        (json!("one"), "initialize", json!({"protocolVersion": "new"}), -32602),
        (json!(null), "initialize", json!(null), -32602),
        (json!(1.5), "no/such/method", json!({}), -32601),
        (json!(-3), "session/load", json!({}), -32601),
        (json!({"odd": [1]}), "_vendor/thing", json!({}), -32601),
        (json!(1), "session/prompt", json!({"sessionId": "nobody"}), -32602),
        (json!(1), "session/prompt", prompt, -32002),
        (json!(1), "session/close", json!({"sessionId": "nobody"}), -32002),
    ] {
        client.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        assert_eq!(error_code(&mut client, &id).await, code, "{method}");
    }
    let ready = json!({"protocolVersion": 9, "clientCapabilities": {"fs": null, "terminal": "yes"}, "extra": 1});
    assert_eq!(client.ask("initialize", ready).await["protocolVersion"], 1);
    let relative = json!({"cwd": "here", "mcpServers": []});
    let id = client.request("session/new", relative).await;
    assert_eq!(error_code(&mut client, &id).await, -32602);
    client.new_session(folder.path()).await;
}

#[tokio::test]
async fn a_message_may_come_in_pieces() {
    let mut client = Client::start(Pace::AT_ONCE);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}});
    for byte in format!("{message}\n").into_bytes() {
        client.send_raw(&[byte]).await;
        tokio::task::yield_now().await;
    }
    let response = client.until(|message| message["id"] == 1).await;
    assert_eq!(response["result"]["agentInfo"]["title"], "Guide");
}
