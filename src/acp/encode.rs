//! The core's requests, notifications and answers to lines.

use std::collections::BTreeMap;

use agent_client_protocol_schema::{ProtocolVersion, v1};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::core::elicitation::form::FieldValue;
use crate::core::ids::{CallId, SessionId};
use crate::core::mcp::{McpServer, McpTransport};
use crate::core::message::{AgentCall, AgentNotice, Reply, RpcError, TerminalExit};
use crate::core::prompt::PromptBlock;
use crate::core::requests::ReplyToken;
use crate::core::setup::SessionSetup;

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: P,
}

#[derive(Serialize)]
struct Notification<'a, P> {
    jsonrpc: &'static str,
    method: &'a str,
    params: P,
}

#[derive(Serialize)]
struct Response<'a, R> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    #[serde(flatten)]
    outcome: Outcome<R>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome<R> {
    Result(R),
    Error { code: i64, message: String },
}

/// A request as one line, line break included.
pub fn call(id: CallId, call: &AgentCall) -> Vec<u8> {
    match call {
        AgentCall::Initialize => request(id, "initialize", initialize()),
        AgentCall::NewSession(setup) => {
            let new = v1::NewSessionRequest::new(setup.cwd.clone())
                .mcp_servers(servers(&setup.mcp))
                .additional_directories(setup.additional_directories.clone())
                .system_prompt(system_prompt(setup));
            request(id, "session/new", new)
        }
        AgentCall::LoadSession { session, setup } => {
            let load = v1::LoadSessionRequest::new(name(session), setup.cwd.clone())
                .mcp_servers(servers(&setup.mcp))
                .additional_directories(setup.additional_directories.clone())
                .system_prompt(system_prompt(setup));
            request(id, "session/load", load)
        }
        AgentCall::ResumeSession { session, setup } => {
            let resume = v1::ResumeSessionRequest::new(name(session), setup.cwd.clone())
                .mcp_servers(servers(&setup.mcp))
                .additional_directories(setup.additional_directories.clone())
                .system_prompt(system_prompt(setup));
            request(id, "session/resume", resume)
        }
        AgentCall::ForkSession { session, setup } => {
            let fork = v1::ForkSessionRequest::new(name(session), setup.cwd.clone())
                .mcp_servers(servers(&setup.mcp))
                .additional_directories(setup.additional_directories.clone())
                .system_prompt(system_prompt(setup));
            request(id, "session/fork", fork)
        }
        AgentCall::ListSessions { cwd, cursor } => {
            let list = v1::ListSessionsRequest::new().cwd(cwd.clone()).cursor(cursor.clone());
            request(id, "session/list", list)
        }
        AgentCall::CloseSession { session } => {
            request(id, "session/close", v1::CloseSessionRequest::new(name(session)))
        }
        AgentCall::DeleteSession { session } => {
            request(id, "session/delete", v1::DeleteSessionRequest::new(name(session)))
        }
        AgentCall::Logout => request(id, "logout", v1::LogoutRequest::new()),
        AgentCall::Authenticate { method } => request(id, "authenticate", v1::AuthenticateRequest::new(method.clone())),
        AgentCall::SetOption { session, option, value, is_switch } => {
            let value = if *is_switch {
                v1::SessionConfigOptionValue::Boolean { value: value == "true" }
            } else {
                v1::SessionConfigOptionValue::value_id(value.clone())
            };
            let set = v1::SetSessionConfigOptionRequest::new(name(session), option.clone(), value);
            request(id, "session/set_config_option", set)
        }
        AgentCall::SetMode { session, mode } => {
            request(id, "session/set_mode", v1::SetSessionModeRequest::new(name(session), mode.clone()))
        }
        AgentCall::SetModel { session, model } => {
            // Never part of the protocol, so no type of it.
            let set = serde_json::json!({ "sessionId": &*session.0, "modelId": model });
            request(id, "session/set_model", set)
        }
        AgentCall::Prompt { session, blocks } => {
            let blocks = blocks.iter().map(content).collect();
            request(id, "session/prompt", v1::PromptRequest::new(name(session), blocks))
        }
    }
}

fn name(session: &SessionId) -> v1::SessionId {
    v1::SessionId::new(&*session.0)
}

fn system_prompt(setup: &SessionSetup) -> Option<v1::SystemPrompt> {
    let text = setup.system_prompt.as_deref()?;
    let content = vec![v1::ContentBlock::Text(v1::TextContent::new(text))];
    Some(v1::SystemPrompt::new(content))
}

fn servers(servers: &[McpServer]) -> Vec<v1::McpServer> {
    servers.iter().map(server).collect()
}

fn server(server: &McpServer) -> v1::McpServer {
    let headers = |headers: &[(String, String)]| {
        headers.iter().map(|(name, value)| v1::HttpHeader::new(name.as_str(), value.as_str())).collect()
    };
    match &server.transport {
        McpTransport::Stdio { command, env } => {
            let program = command.first().map(String::as_str).unwrap_or_default();
            let env = env.iter().map(|(name, value)| v1::EnvVariable::new(name.as_str(), value.as_str())).collect();
            let args = command.iter().skip(1).cloned().collect();
            v1::McpServer::Stdio(v1::McpServerStdio::new(server.name.as_str(), program).args(args).env(env))
        }
        McpTransport::Http { url, headers: with } => {
            v1::McpServer::Http(v1::McpServerHttp::new(server.name.as_str(), url.as_str()).headers(headers(with)))
        }
        McpTransport::Sse { url, headers: with } => {
            v1::McpServer::Sse(v1::McpServerSse::new(server.name.as_str(), url.as_str()).headers(headers(with)))
        }
    }
}

/// A block of a prompt.
fn content(block: &PromptBlock) -> v1::ContentBlock {
    match block {
        PromptBlock::Text(text) => v1::ContentBlock::Text(v1::TextContent::new(text.as_str())),
        PromptBlock::Link { name, uri } => {
            v1::ContentBlock::ResourceLink(v1::ResourceLink::new(name.as_str(), uri.as_str()))
        }
        PromptBlock::Resource { uri, text } => {
            let contents = v1::TextResourceContents::new(text.as_str(), uri.as_str());
            let resource = v1::EmbeddedResourceResource::TextResourceContents(contents);
            v1::ContentBlock::Resource(v1::EmbeddedResource::new(resource))
        }
        PromptBlock::Image { uri, mime, data } => {
            v1::ContentBlock::Image(v1::ImageContent::new(data.as_str(), *mime).uri(uri.clone()))
        }
    }
}

/// That we show the terminals which an agent runs itself and reports on. codex-acp then tells the output as it comes, else
/// once at the end; claude-agent-acp tells how the command ended.
fn terminal_output() -> v1::Meta {
    [("terminal_output".to_owned(), true.into())].into_iter().collect()
}

/// What we can do, exactly.
fn initialize() -> v1::InitializeRequest {
    let files = v1::FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
    let options = v1::SessionConfigOptionsCapabilities::new().boolean(v1::BooleanConfigOptionCapabilities::new());
    let sessions = v1::ClientSessionCapabilities::new()
        .config_options(options)
        .notices(v1::NoticeCapabilities::new())
        .compaction(v1::CompactionCapabilities::new());
    let questions = v1::ElicitationCapabilities::new()
        .form(v1::ElicitationFormCapabilities::new())
        .url(v1::ElicitationUrlCapabilities::new());
    v1::InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(
            v1::ClientCapabilities::new()
                .fs(files)
                .terminal(true)
                .plan(v1::PlanCapabilities::new())
                .elicitation(questions)
                .session(sessions)
                .auth(v1::AuthCapabilities::new().terminal(true))
                .meta(terminal_output()),
        )
        .client_info(
            v1::Implementation::new("agentchat.nvim", env!("CARGO_PKG_VERSION")).title("agentchat.nvim".to_owned()),
        )
}

/// A notification as one line, line break included.
pub fn notice(notice: &AgentNotice) -> Vec<u8> {
    match notice {
        AgentNotice::Cancel { session } => line(&Notification {
            jsonrpc: "2.0",
            method: "session/cancel",
            params: v1::CancelNotification::new(name(session)),
        }),
        AgentNotice::CancelRequest { call } => line(&Notification {
            jsonrpc: "2.0",
            method: "$/cancel_request",
            params: serde_json::json!({ "requestId": call.0 }),
        }),
    }
}

/// An answer as one line, line break included. It consumes the token: there is no second one.
#[expect(clippy::needless_pass_by_value, reason = "the token is consumed by the answer")]
pub fn reply(token: ReplyToken, reply: Reply) -> Vec<u8> {
    match reply {
        Reply::Selected(option) => answer(
            &token,
            v1::RequestPermissionResponse::new(v1::RequestPermissionOutcome::Selected(
                v1::SelectedPermissionOutcome::new(v1::PermissionOptionId::new(option)),
            )),
        ),
        Reply::Cancelled => answer(&token, v1::RequestPermissionResponse::new(v1::RequestPermissionOutcome::Cancelled)),
        Reply::ElicitationAccepted(filled) => {
            let content =
                filled.into_iter().map(|(name, value)| (name, filled_value(value))).collect::<BTreeMap<_, _>>();
            let accepted = v1::ElicitationAcceptAction::new().content((!content.is_empty()).then_some(content));
            elicited(&token, v1::ElicitationAction::Accept(accepted))
        }
        Reply::ElicitationDeclined => elicited(&token, v1::ElicitationAction::Decline),
        Reply::ElicitationCancelled => elicited(&token, v1::ElicitationAction::Cancel),
        Reply::Content(text) => answer(&token, v1::ReadTextFileResponse::new(text)),
        Reply::TerminalCreated(id) => answer(&token, v1::CreateTerminalResponse::new(v1::TerminalId::new(id))),
        Reply::TerminalOutput(output, truncated, exit) => {
            answer(&token, v1::TerminalOutputResponse::new(output, truncated).exit_status(exit.map(exit_status)))
        }
        Reply::TerminalExited(exit) => answer(&token, v1::WaitForTerminalExitResponse::new(exit_status(exit))),
        Reply::Done => answer(&token, v1::WriteTextFileResponse::new()),
        Reply::Error(RpcError { code, message }) => {
            let code = code.unwrap_or(RpcError::INTERNAL);
            respond::<()>(&token, Outcome::Error { code, message })
        }
    }
}

fn elicited(token: &ReplyToken, action: v1::ElicitationAction) -> Vec<u8> {
    answer(token, v1::CreateElicitationResponse::new(action))
}

fn filled_value(value: FieldValue) -> v1::ElicitationContentValue {
    match value {
        FieldValue::Text(text) => v1::ElicitationContentValue::String(text),
        FieldValue::Number(number) => v1::ElicitationContentValue::Number(number),
        FieldValue::Integer(number) => v1::ElicitationContentValue::Integer(number),
        FieldValue::Boolean(on) => v1::ElicitationContentValue::Boolean(on),
        FieldValue::Many(values) => v1::ElicitationContentValue::StringArray(values),
    }
}

fn exit_status(exit: TerminalExit) -> v1::TerminalExitStatus {
    v1::TerminalExitStatus::new().exit_code(exit.code).signal(exit.signal)
}

fn answer(token: &ReplyToken, result: impl Serialize) -> Vec<u8> {
    respond(token, Outcome::Result(result))
}

fn respond<R: Serialize>(token: &ReplyToken, outcome: Outcome<R>) -> Vec<u8> {
    let id: &RawValue = serde_json::from_str(token.raw_id()).unwrap_or(RawValue::NULL);
    line(&Response { jsonrpc: "2.0", id, outcome })
}

fn request(id: CallId, method: &str, params: impl Serialize) -> Vec<u8> {
    line(&Request { jsonrpc: "2.0", id: id.0, method, params })
}

/// One line of JSON. Nothing that is sent can fail to serialize; if it did, an empty line would be ignored by the peer.
fn line(message: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(message).unwrap_or_else(|error| {
        tracing::error!(%error, "a message could not be serialized");
        Vec::new()
    });
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    use crate::core::ids::ConnId;

    fn text(line: Vec<u8>) -> String {
        String::from_utf8(line).expect("UTF-8")
    }

    #[test]
    fn what_is_sent_is_what_the_protocol_says() {
        let initialize = text(call(CallId(1), &AgentCall::Initialize));
        assert!(
            initialize.starts_with(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"#),
            "{initialize}"
        );
        assert!(initialize.contains(r#""readTextFile":true,"writeTextFile":true"#), "{initialize}");
        assert!(initialize.contains(r#""terminal":true"#), "{initialize}");
        assert!(initialize.contains(r#""_meta":{"terminal_output":true}"#), "{initialize}");
        assert_eq!(
            text(call(CallId(2), &AgentCall::NewSession(SessionSetup { cwd: "/p".into(), ..SessionSetup::default() }))),
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/new\",\"params\":{\"cwd\":\"/p\",\"mcpServers\":[]}}\n"
        );
        assert_eq!(
            text(call(
                CallId(3),
                &AgentCall::Prompt { session: SessionId::from("s"), blocks: vec![PromptBlock::Text("hi".into())] }
            )),
            "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s\",\"prompt\":[{\"type\":\"text\",\"text\":\"hi\"}]}}\n"
        );
        let (session, cwd) = (SessionId::from("s"), std::path::PathBuf::from("/p"));
        assert_eq!(
            text(call(
                CallId(4),
                &AgentCall::LoadSession {
                    session: session.clone(),
                    setup: SessionSetup { cwd: cwd.clone(), ..SessionSetup::default() }
                }
            )),
            "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"session/load\",\"params\":{\"mcpServers\":[],\"cwd\":\"/p\",\"sessionId\":\"s\"}}\n"
        );
        assert_eq!(
            text(call(CallId(5), &AgentCall::ListSessions { cwd: Some(cwd), cursor: Some("c".into()) })),
            "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"session/list\",\"params\":{\"cwd\":\"/p\",\"cursor\":\"c\"}}\n"
        );
        assert_eq!(
            text(notice(&AgentNotice::Cancel { session: SessionId::from("s") })),
            "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"s\"}}\n"
        );
        assert_eq!(
            text(notice(&AgentNotice::CancelRequest { call: CallId(7) })),
            "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":7}}\n"
        );
    }

    #[test]
    fn blocks_are_what_the_protocol_says() {
        let json = |block: &PromptBlock| serde_json::to_value(content(block)).expect("JSON");
        let (uri, name) = ("file:///a".to_owned(), "a".to_owned());
        assert_eq!(
            json(&PromptBlock::Link { uri: uri.clone(), name }),
            json!({"type": "resource_link", "name": "a", "uri": "file:///a"})
        );
        assert_eq!(
            json(&PromptBlock::Resource { uri: uri.clone(), text: "t".into() }),
            json!({"type": "resource", "resource": {"uri": "file:///a", "text": "t"}})
        );
        assert_eq!(
            json(&PromptBlock::Image { uri, mime: "image/png", data: "AAAA".into() }),
            json!({"type": "image", "mimeType": "image/png", "data": "AAAA", "uri": "file:///a"})
        );
    }

    #[test]
    fn answers_echo_the_id_as_it_came() {
        let token = |id: &str| ReplyToken::new(ConnId(1), id);
        assert_eq!(
            text(reply(token(r#""a/b""#), Reply::Selected("x".into()))),
            "{\"jsonrpc\":\"2.0\",\"id\":\"a/b\",\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"x\"}}}\n"
        );
        assert_eq!(
            text(reply(token("null"), Reply::Cancelled)),
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}}\n"
        );
        assert_eq!(text(reply(token("1.50"), Reply::Done)), "{\"jsonrpc\":\"2.0\",\"id\":1.50,\"result\":{}}\n");
        assert_eq!(
            text(reply(token("7"), Reply::Error(RpcError::new(-32601, "no")))),
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n"
        );
    }
}
