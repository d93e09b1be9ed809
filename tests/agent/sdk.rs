//! The agent through the client side of the official SDK, by the protocol's JSON Schema.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::ready;
use crate::responses_server::{Answer, Kind, Server};

/// Where the SDK is installed; the script does that once.
#[track_caller]
fn sdk() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/deps.py");
    let output = Command::new(script).arg("acp-sdk").stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "the SDK cannot be had; it needs npm");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_official_sdk_drives_it_and_every_message_is_valid() {
    let modules = sdk();
    let server = Server::start(Kind::OpenAi);
    server
        .answer(Answer::new().thought("Hm.").text("I look.").call("c1", "read_file", r#"{"path":"a.txt"}"#).call(
            "c2",
            "update_plan",
            r#"{"plan":[{"step":"edit","status":"in_progress"}]}"#,
        ))
        .answer(
            Answer::new()
                .call("c3", "edit_file", r#"{"path":"a.txt","old_text":"one","new_text":"1"}"#)
                .call("c4", "grep", r#"{"pattern":"1"}"#)
                .call("c5", "run_command", r#"{"command":"cat a.txt"}"#)
                .call("c6", "read_file", r#"{"path":"missing"}"#),
        )
        .answer(Answer::new().text("Done."));
    // Its home and its project, and not its process.
    let client = ready(&server, Kind::OpenAi);
    client.file("a.txt", "one\n");
    let output = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent/sdk.mjs"))
        .args([&modules, env!("CARGO_BIN_EXE_agentchat"), "agent"])
        .env_clear()
        .env("HOME", client.home.path())
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .current_dir(client.project())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let saw: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
    assert_eq!(
        (&saw["agent"], &saw["stopReason"], &saw["sessions"]),
        (&json!("agentchat"), &json!("end_turn"), &json!(1))
    );
    assert_eq!(client.text("a.txt"), "1\n");
    assert_eq!((&saw["requests"]["session/request_permission"], &saw["updates"]["plan"]), (&json!(2), &json!(1)));
    assert_eq!(saw["updates"]["tool_call"], json!(5), "{saw}");
}
