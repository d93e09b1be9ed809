//! Raw parts of a message to the core's own types.
//!
//! The types of the schema crate are used where a message fits them or is lost anyway. Where one of its closed enums would
//! throw a whole message away for one unknown word, the message is read field by field.

use std::borrow::Cow;

use agent_client_protocol_schema::v1;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::tool_calls::{LABEL, array, block, cut, options, patch, short, text};
use super::{choices, elicitation};
use crate::core::effect::SessionInfo;
use crate::core::ids::SessionId;
use crate::core::message::{
    AgentCommand, AgentMessage, AgentRequest, Answer, Compaction, CompactionStatus, RpcError, SessionCapabilities,
    TerminalVerb, TerminalWanted, Update, Usage,
};
use crate::core::plan::{Plan, PlanStatus, PlanStep};
use crate::core::prompt::PromptCapabilities;
use crate::core::sign_in::{SignInKind, SignInMethod};
use crate::core::transcript::{Severity, Speaker};

/// Longest error text of an agent that is kept, in bytes: some put a whole web page into it.
const MAX_ERROR: usize = 4_000;

/// The parameters of a `session/update`, the update itself still raw.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateParams<'a> {
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    #[serde(borrow)]
    update: &'a RawValue,
}

/// A piece of a message, still in the line that it came in.
#[derive(Debug)]
pub struct Chunk<'a> {
    /// The session it is for.
    pub session: Cow<'a, str>,
    /// Whose.
    pub speaker: Speaker,
    /// The message it belongs to, if the agent says so.
    pub message_id: Option<Cow<'a, str>>,
    /// Its text.
    pub text: Cow<'a, str>,
}

impl Chunk<'_> {
    /// As a message of its own.
    pub fn into_message(self) -> AgentMessage {
        let Self { session, speaker, message_id, text } = self;
        AgentMessage::Update {
            session: SessionId::from(&*session),
            update: Update::Chunk { speaker, message_id: message_id.map(Cow::into_owned), text: text.into_owned() },
        }
    }
}

/// A whole line with a text chunk.
#[derive(Deserialize)]
struct ChunkLine<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: ChunkParams<'a>,
    #[serde(default)]
    id: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChunkParams<'a> {
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    #[serde(borrow)]
    update: TextChunk<'a>,
}

/// The text chunk that almost every update is; anything that does not fit goes the long way.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TextChunk<'a> {
    #[serde(borrow)]
    session_update: Cow<'a, str>,
    #[serde(borrow)]
    content: TextBlock<'a>,
    #[serde(borrow, default)]
    message_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct TextBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// Decodes a line that is nothing but a text chunk, which almost every line is, in one pass. `None` means that the line
/// has to be read in parts.
pub fn chunk_line(line: &str) -> Option<Chunk<'_>> {
    let ChunkLine { method, params, id: None } = serde_json::from_str(line).ok()? else { return None };
    let ChunkParams { session_id: session, update } = params;
    let TextChunk { session_update, content, message_id } = update;
    (method == "session/update" && content.kind == "text").then_some(())?;
    Some(Chunk { session, speaker: speaker(&session_update)?, message_id, text: content.text })
}

/// Decodes the parameters of a `session/update`.
///
/// # Errors
/// Why nothing of it can be used.
pub fn update(params: &RawValue) -> Result<(SessionId, Update), String> {
    let UpdateParams { session_id, update } = serde_json::from_str(params.get()).map_err(|error| error.to_string())?;
    let session = SessionId::from(&*session_id);
    let value: Value = serde_json::from_str(update.get()).map_err(|error| error.to_string())?;
    Ok((session, any_update(&value)))
}

fn speaker(kind: &str) -> Option<Speaker> {
    Some(match kind {
        "user_message_chunk" => Speaker::User,
        "agent_message_chunk" => Speaker::Agent,
        "agent_thought_chunk" => Speaker::Thought,
        _ => return None,
    })
}

/// Decodes the inside of a `session/update`.
pub fn any_update(value: &Value) -> Update {
    let name = text(value, "sessionUpdate").unwrap_or_default();
    let known = match name.as_str() {
        "tool_call" => patch(value).map(|patch| Update::Tool { patch, is_new: true }),
        "tool_call_update" => patch(value).map(|patch| Update::Tool { patch, is_new: false }),
        "plan" => plan_steps(value).map(|plan| Update::Plan(None, plan)),
        "plan_update" => value.get("plan").and_then(plan_update),
        "plan_removed" => text(value, "planId").map(Update::PlanRemoved),
        // The documentation's example says `modeId`, the schema `currentModeId`.
        "current_mode_update" => text(value, "currentModeId").or_else(|| text(value, "modeId")).map(Update::Mode),
        "config_option_update" => array(value, "configOptions").map(|list| Update::Choices(choices::config(list))),
        "session_info_update" => Some(match value.get("title") {
            None => Update::Silent,
            Some(title) => Update::Title(title.as_str().map(|title| cut(title.to_owned(), LABEL))),
        }),
        "usage_update" => usage(value),
        "available_commands_update" => array(value, "availableCommands")
            .map(|commands| Update::Commands(commands.iter().filter_map(command).collect())),
        "notice" => notice(value),
        "compaction_update" => compaction(value),
        "compaction_summary_chunk" => value.get("content").map(|content| Update::Chunk {
            speaker: Speaker::Thought,
            message_id: text(value, "compactionId"),
            text: block(content),
        }),
        // A subagent's state is no news of this session.
        "state_update" => Some(Update::Silent),
        _ => None,
    };
    known.or_else(|| chunk(&name, value)).unwrap_or_else(|| Update::Unknown { name, detail: short(value) })
}

fn notice(value: &Value) -> Option<Update> {
    let title = text(value, "title").filter(|title| !title.trim().is_empty())?;
    let severity = match value.get("severity").and_then(Value::as_str) {
        Some("warning") => Severity::Warning,
        Some("error") => Severity::Error,
        _ => Severity::Info,
    };
    let said = match text(value, "description").filter(|description| !description.trim().is_empty()) {
        Some(description) => format!("{}: {description}", title.trim_end_matches(['.', ':'])),
        None => title,
    };
    Some(Update::Notice(severity, cut(said, MAX_ERROR)))
}

fn compaction(value: &Value) -> Option<Update> {
    let status = match value.get("status").and_then(Value::as_str).unwrap_or("in_progress") {
        "in_progress" => CompactionStatus::Running,
        "completed" => CompactionStatus::Completed,
        "failed" => CompactionStatus::Failed,
        "cancelled" => CompactionStatus::Cancelled,
        _ => return None,
    };
    let summary = array(value, "summary").map(|blocks| blocks.iter().map(block).collect::<Vec<_>>().join("\n\n"));
    let error = text(value, "error").map(|error| cut(error, MAX_ERROR));
    Some(Update::Compaction(Compaction { id: text(value, "compactionId")?, status, summary, error }))
}

fn chunk(name: &str, value: &Value) -> Option<Update> {
    let content = value.get("content")?;
    Some(Update::Chunk { speaker: speaker(name)?, message_id: text(value, "messageId"), text: block(content) })
}

fn plan_steps(value: &Value) -> Option<Plan> {
    array(value, "entries").map(|entries| Plan::Steps(entries.iter().map(plan_step).collect()))
}

/// A plan that has an id; one of a type that is not known is shown as it came.
fn plan_update(value: &Value) -> Option<Update> {
    let plan = match value.get("type").and_then(Value::as_str) {
        Some("items") => plan_steps(value)?,
        Some("markdown") => Plan::Document { text: text(value, "content")?, path: text(value, "path") },
        _ => return None,
    };
    Some(Update::Plan(Some(text(value, "planId")?), plan))
}

fn plan_step(entry: &Value) -> PlanStep {
    PlanStep {
        content: text(entry, "content").unwrap_or_else(|| short(entry)),
        status: match entry.get("status").and_then(Value::as_str) {
            Some("in_progress") => PlanStatus::InProgress,
            Some("completed") => PlanStatus::Completed,
            _ => PlanStatus::Pending,
        },
    }
}

fn command(value: &Value) -> Option<AgentCommand> {
    let name = text(value, "name")?;
    // Some write the slash into the name.
    let name = name.trim_start_matches('/').to_owned();
    let hint = value.get("input").and_then(|input| text(input, "hint")).filter(|hint| !hint.is_empty());
    Some(AgentCommand { name, description: text(value, "description").unwrap_or_default(), hint })
}

fn usage(value: &Value) -> Option<Update> {
    let cost = value.get("cost").and_then(|cost| Some((cost.get("amount")?.as_f64()?, text(cost, "currency")?)));
    Some(Update::Usage(Usage {
        used: value.get("used")?.as_u64()?,
        size: value.get("size").and_then(Value::as_u64).unwrap_or_default(),
        cost,
    }))
}

/// Decodes a request. It always gives one, so that there is always something to answer.
pub fn request(method: &str, params: Option<&RawValue>) -> AgentRequest {
    let raw = params.map_or("{}", RawValue::get);
    let invalid = |error: serde_json::Error| AgentRequest::Invalid { problem: format!("Invalid params: {error}") };
    match method {
        "session/request_permission" => {
            let params: Value = match serde_json::from_str(raw) {
                Ok(params) => params,
                Err(error) => return invalid(error),
            };
            let tool = params.get("toolCall").and_then(patch);
            match (text(&params, "sessionId"), tool) {
                (Some(session), Some(tool)) => AgentRequest::Permission {
                    session: SessionId::from(session.as_str()),
                    tool,
                    options: options(&params),
                },
                (None, _) => AgentRequest::Invalid { problem: "Invalid params: sessionId is missing".into() },
                (_, None) => AgentRequest::Invalid { problem: "Invalid params: toolCall.toolCallId is missing".into() },
            }
        }
        "fs/read_text_file" => match serde_json::from_str::<v1::ReadTextFileRequest>(raw) {
            Ok(read) => AgentRequest::ReadFile {
                session: SessionId::from(&*read.session_id.0),
                path: read.path,
                line: read.line.map(u64::from),
                limit: read.limit.map(u64::from),
            },
            Err(error) => invalid(error),
        },
        "fs/write_text_file" => match serde_json::from_str::<v1::WriteTextFileRequest>(raw) {
            Ok(write) => AgentRequest::WriteFile {
                session: SessionId::from(&*write.session_id.0),
                path: write.path,
                content: write.content.into(),
            },
            Err(error) => invalid(error),
        },
        "elicitation/create" => elicitation::request(raw),
        "terminal/create" => match serde_json::from_str::<v1::CreateTerminalRequest>(raw) {
            Ok(create) => AgentRequest::CreateTerminal {
                session: SessionId::from(&*create.session_id.0),
                wanted: TerminalWanted {
                    command: create.command,
                    args: create.args,
                    env: create.env.into_iter().map(|variable| (variable.name, variable.value)).collect(),
                    cwd: create.cwd,
                    output_byte_limit: create.output_byte_limit,
                },
            },
            Err(error) => invalid(error),
        },
        "terminal/output" => terminal(raw, TerminalVerb::Output),
        "terminal/wait_for_exit" => terminal(raw, TerminalVerb::WaitForExit),
        "terminal/kill" => terminal(raw, TerminalVerb::Kill),
        "terminal/release" => terminal(raw, TerminalVerb::Release),
        _ => AgentRequest::Unknown { method: method.to_owned() },
    }
}

/// Decodes the parameters of `elicitation/complete`: the agent's id.
pub fn elicitation_completed(params: &RawValue) -> Option<String> {
    text(&serde_json::from_str(params.get()).ok()?, "elicitationId")
}

/// The four requests about a terminal that exists have the same parameters.
fn terminal(raw: &str, verb: TerminalVerb) -> AgentRequest {
    match serde_json::from_str::<v1::TerminalOutputRequest>(raw) {
        Ok(about) => AgentRequest::Terminal {
            session: SessionId::from(&*about.session_id.0),
            id: about.terminal_id.0.to_string(),
            verb,
        },
        Err(error) => AgentRequest::Invalid { problem: format!("Invalid params: {error}") },
    }
}

/// Decodes the answer to `initialize`.
///
/// # Errors
/// What is missing in it.
pub fn initialized(result: &RawValue) -> Result<Answer, RpcError> {
    let value: Value = parse(result)?;
    let protocol_version = value
        .get("protocolVersion")
        .and_then(Value::as_u64)
        .ok_or_else(|| RpcError { code: None, message: "the answer names no protocolVersion".into() })?;
    let info = value.get("agentInfo").unwrap_or(&Value::Null);
    let capabilities = value.get("agentCapabilities").and_then(|all| all.get("promptCapabilities"));
    let takes = |kind| capabilities.and_then(|all| all.get(kind)).and_then(Value::as_bool).unwrap_or_default();
    let takes = PromptCapabilities { image: takes("image"), embedded_context: takes("embeddedContext") };
    let of_sessions = value.pointer("/agentCapabilities/sessionCapabilities");
    // Anything but nothing and `null` is a yes.
    let can = |name| of_sessions.and_then(|all| all.get(name)).is_some_and(|is| !is.is_null() && *is != false);
    let load = value.pointer("/agentCapabilities/loadSession").and_then(Value::as_bool).unwrap_or_default();
    let mcp = |name| {
        value
            .pointer("/agentCapabilities/mcpCapabilities")
            .and_then(|all| all.get(name))
            .and_then(Value::as_bool)
            .unwrap_or_default()
    };
    let can = SessionCapabilities {
        load,
        resume: can("resume"),
        fork: can("fork"),
        list: can("list"),
        close: can("close"),
        delete: can("delete"),
        mcp_http: mcp("http"),
        mcp_sse: mcp("sse"),
        additional_directories: can("additionalDirectories"),
        system_prompt: can("systemPrompt"),
        logout: value.pointer("/agentCapabilities/auth/logout").is_some_and(|is| !is.is_null() && *is != false),
    };
    Ok(Answer::Initialized { protocol_version, agent_name: text(info, "name"), takes, can, sign_in: sign_in(&value) })
}

/// The ways to sign in. One of a kind that is not known is none: an agent would be called for what it does not do.
fn sign_in(value: &Value) -> Vec<SignInMethod> {
    let method = |item: &Value| {
        let kind = match item.get("type").and_then(Value::as_str) {
            None | Some("agent") => SignInKind::Agent,
            Some("terminal") => {
                let args = array(item, "args").map(Vec::as_slice).unwrap_or_default();
                let env = item.get("env").and_then(Value::as_object);
                SignInKind::Terminal {
                    args: args.iter().filter_map(|arg| arg.as_str().map(str::to_owned)).collect(),
                    env: env
                        .into_iter()
                        .flatten()
                        .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
                        .collect(),
                }
            }
            Some(_) => return None,
        };
        let id = text(item, "id")?;
        let name = text(item, "name").filter(|name| !name.is_empty()).unwrap_or_else(|| id.clone());
        Some(SignInMethod { id, name, description: text(item, "description"), kind })
    };
    array(value, "authMethods").into_iter().flatten().filter_map(method).collect()
}

/// Decodes the answer to `session/new`.
///
/// # Errors
/// What is missing in it.
pub fn session_created(result: &RawValue) -> Result<Answer, RpcError> {
    let value: Value = parse(result)?;
    let session = text(&value, "sessionId")
        .ok_or_else(|| RpcError { code: None, message: "the answer names no sessionId".into() })?;
    Ok(Answer::SessionCreated { session: SessionId::from(session.as_str()), chosen: choices::of_session(&value) })
}

/// Decodes the answer to `session/load` or `session/resume`, which may be `null`.
///
/// # Errors
/// When it is not JSON.
pub fn session_opened(result: &RawValue) -> Result<Answer, RpcError> {
    Ok(Answer::SessionOpened { chosen: choices::of_session(&parse(result)?) })
}

/// Decodes the answer to `session/set_config_option`: all options as they are then, if the agent tells them.
///
/// # Errors
/// When it is not JSON.
pub fn option_set(result: &RawValue) -> Result<Answer, RpcError> {
    let value: Value = parse(result)?;
    Ok(Answer::OptionSet(array(&value, "configOptions").map(|list| choices::config(list))))
}

/// Decodes a page of sessions. One that cannot be opened, for want of an id, is left out.
///
/// # Errors
/// When it is not JSON, or has no list.
pub fn sessions(result: &RawValue) -> Result<Answer, RpcError> {
    let value: Value = parse(result)?;
    let sessions = array(&value, "sessions")
        .ok_or_else(|| RpcError { code: None, message: "the answer has no list of sessions".into() })?;
    let session = |item: &Value| {
        Some(SessionInfo {
            id: SessionId::from(text(item, "sessionId")?.as_str()),
            cwd: text(item, "cwd").unwrap_or_default().into(),
            title: text(item, "title").filter(|title| !title.is_empty()).map(|title| cut(title, LABEL)),
            updated_at: text(item, "updatedAt"),
        })
    };
    Ok(Answer::Sessions { sessions: sessions.iter().filter_map(session).collect(), next: text(&value, "nextCursor") })
}

/// Decodes the answer to `session/prompt`.
///
/// # Errors
/// When it is not JSON.
pub fn turn_ended(result: &RawValue) -> Result<Answer, RpcError> {
    let value: Value = parse(result)?;
    // An answer without a stop reason still ends the turn.
    let stop_reason = text(&value, "stopReason").unwrap_or_else(|| "end_turn".into());
    let tokens = value.get("usage").and_then(|usage| usage.get("totalTokens")).and_then(Value::as_u64);
    Ok(Answer::TurnEnded { stop_reason, tokens })
}

fn parse(raw: &RawValue) -> Result<Value, RpcError> {
    serde_json::from_str(raw.get()).map_err(|error| RpcError { code: None, message: error.to_string() })
}

/// Decodes an error answer; whatever it looks like, it ends the call.
pub fn error(raw: &RawValue) -> RpcError {
    let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    let message =
        text(&value, "message").or_else(|| value.as_str().map(str::to_owned)).unwrap_or_else(|| short(&value));
    let details = value.get("data").filter(|data| !data.is_null()).map(|data| {
        text(data, "details")
            .or_else(|| text(data, "message"))
            .or_else(|| data.as_str().map(str::to_owned))
            .unwrap_or_else(|| short(data))
    });
    let message = match details {
        Some(details) if !message.contains(&details) => format!("{message}: {details}"),
        _ => message,
    };
    RpcError { code: value.get("code").and_then(Value::as_i64), message: cut(message, MAX_ERROR) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn decoded(update_value: impl serde::Serialize) -> Update {
        let params = json!({ "sessionId": "s", "update": update_value, "_meta": null });
        let raw = RawValue::from_string(params.to_string()).expect("JSON");
        update(&raw).expect("an update").1
    }

    #[test]
    fn chunks_are_text_whatever_their_block() {
        let chunk = |content: Value| match decoded(json!({"sessionUpdate": "agent_message_chunk", "content": content}))
        {
            Update::Chunk { speaker: Speaker::Agent, message_id: None, text } => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(chunk(json!({"type": "text", "text": "a\nb", "annotations": null})), "a\nb");
        assert_eq!(chunk(json!({"type": "resource_link", "uri": "file:///a", "name": "a"})), "[a](file:///a)");
        assert_eq!(
            chunk(json!({"type": "image", "data": "AAAA", "mimeType": "image/png"})),
            "[image image/png, 3 bytes]"
        );
        assert_eq!(chunk(json!({"type": "hologram", "x": 1})), r#"{"type":"hologram","x":1}"#);
    }

    #[test]
    fn the_short_way_and_the_long_way_agree() {
        for line in [
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\nä\u00e4"}}}}"#,
            r#" {"params":{"update":{"content":{"text":"b","type":"text","_meta":{}},"messageId":"m","sessionUpdate":"agent_thought_chunk"},"sessionId":"s\"x"},"method":"session/update"} "#,
        ] {
            let params: Value = serde_json::from_str::<Value>(line).expect("JSON")["params"].take();
            let raw = RawValue::from_string(params.to_string()).expect("JSON");
            let Some(AgentMessage::Update { session, update: chunk }) = chunk_line(line).map(Chunk::into_message)
            else {
                panic!("{line}")
            };
            assert_eq!((session, chunk), update(&raw).expect("an update"));
        }
        for line in [
            r#"{"id":1,"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}}}"#,
            r#"{"method":"other","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}}}"#,
            r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"image","text":"a"}}}}"#,
            r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","content":{"type":"text","text":"a"}}}}"#,
            "noise",
        ] {
            assert!(chunk_line(line).is_none(), "{line}");
        }
    }

    #[test]
    fn unknown_updates_and_words_are_kept() {
        assert_eq!(
            decoded(json!({"sessionUpdate": "dance", "steps": 3})),
            Update::Unknown { name: "dance".into(), detail: r#"{"sessionUpdate":"dance","steps":3}"#.into() }
        );
        let Update::Tool { patch, is_new: false } = decoded(json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "napping", "kind": "juggle", "title": null,
            "content": [{"type": "diff", "path": "/a", "newText": "n"}, {"type": "smell"}], "locations": [{"line": 3}, {"path": "/b", "line": null}],
        })) else {
            panic!("no tool call");
        };
        assert_eq!(patch.status.map(|status| status.as_str().to_owned()).as_deref(), Some("napping"));
        assert_eq!(patch.kind.as_deref(), Some("juggle"));
        assert_eq!(patch.title, None);
        assert_eq!(patch.content.map(|content| content.len()), Some(2));
        assert_eq!(patch.locations.map(|locations| locations.len()), Some(1));
    }

    #[test]
    fn commands_have_names_without_a_slash_and_perhaps_a_hint() {
        let commands = json!([
            {"name": "/test", "description": "Run them", "input": {"hint": "which"}},
            {"name": "plan", "input": null},
            {"description": "no name"},
        ]);
        let command = |name: &str, description: &str, hint: Option<&str>| AgentCommand {
            name: name.into(),
            description: description.into(),
            hint: hint.map(str::to_owned),
        };
        assert_eq!(
            decoded(json!({"sessionUpdate": "available_commands_update", "availableCommands": commands})),
            Update::Commands(vec![command("test", "Run them", Some("which")), command("plan", "", None)])
        );
    }

    #[test]
    fn what_an_agent_does_not_name_it_does_not_take() {
        let takes = |capabilities: Value| {
            let result = json!({"protocolVersion": 1, "agentCapabilities": capabilities});
            match initialized(&RawValue::from_string(result.to_string()).expect("JSON")) {
                Ok(Answer::Initialized { takes, .. }) => (takes.image, takes.embedded_context),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(takes(json!({"promptCapabilities": {"image": true, "embeddedContext": true}})), (true, true));
        assert_eq!(takes(json!({"promptCapabilities": {"image": null, "embeddedContext": false}})), (false, false));
        assert_eq!(takes(Value::Null), (false, false));
    }

    #[test]
    fn both_spellings_of_a_mode_update_are_taken() {
        for key in ["currentModeId", "modeId"] {
            assert_eq!(
                decoded(json!({"sessionUpdate": "current_mode_update", key: "plan"})),
                Update::Mode("plan".into())
            );
        }
    }

    #[test]
    fn a_permission_request_survives_unknown_option_kinds() {
        let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": [
            {"optionId": "a", "name": "A", "kind": "foo"}, {"name": "no id"}, {"optionId": "b", "kind": "allow_once"}]});
        let raw = RawValue::from_string(params.to_string()).expect("JSON");
        let AgentRequest::Permission { options, .. } = request("session/request_permission", Some(&raw)) else {
            panic!("no permission");
        };
        assert_eq!(options.iter().map(|option| option.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn an_error_of_any_shape_is_an_error() {
        for (raw, code, message) in [
            (r#"{"code":-32000,"message":"Authentication required"}"#, Some(-32000), "Authentication required"),
            (r#"{"message":"m","data":{"details":"d"}}"#, None, "m: d"),
            (r#""just text""#, None, "just text"),
            ("17", None, "17"),
        ] {
            let raw = RawValue::from_string(raw.into()).expect("JSON");
            assert_eq!(error(&raw), RpcError { code, message: message.into() });
        }
    }
}
