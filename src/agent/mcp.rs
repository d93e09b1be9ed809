//! The MCP servers that the client has named for a session. Their tools are functions of the model's, each with its server's
//! name before its own.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_client_protocol_schema::v1::{HttpHeader, McpServer, McpServerHttp, McpServerStdio};
use parking_lot::Mutex;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, ContentBlock, Implementation, JsonObject, ResourceContents,
};
use rmcp::service::{NotificationContext, RoleClient, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ServiceExt as _};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use super::tools::{Outcome, text_content};
use crate::responses::{self, BaseUrl, Function, Tool};

/// How long a server may take until its tools are known.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest name of a function that every endpoint takes, in bytes.
const LONGEST_NAME: usize = 64;
/// The most bytes that the model is told of one call.
const BYTES: usize = 50 * 1024;
/// What the name of every function of a server begins with.
const PREFIX: &str = "mcp__";
/// What is between a server's name and that of its tool.
const BETWEEN: &str = "__";

/// The servers that could be reached, and what became of the others.
#[derive(Default)]
pub(super) struct Servers {
    reached: Vec<Server>,
    functions: Mutex<Vec<Offered>>,
    /// What is wrong with a server, for the user.
    problems: Vec<String>,
}

struct Server {
    name: String,
    service: RunningService<RoleClient, Listener>,
    /// The server has said that its tools are others now.
    has_changed: Arc<AtomicBool>,
}

/// A function, and whose tool it is.
struct Offered {
    function: Function,
    /// For the user.
    title: String,
    server: usize,
    tool: String,
}

/// What servers say by themselves.
struct Listener {
    has_changed: Arc<AtomicBool>,
}

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.has_changed.store(true, Ordering::Relaxed);
    }

    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.client_info = Implementation::new("agentchat", env!("CARGO_PKG_VERSION"));
        config
    }
}

impl Servers {
    /// Starts or calls all of them, at the same time.
    pub(super) async fn connect(wanted: Vec<McpServer>, folder: &Path) -> Self {
        let all = wanted.into_iter().map(|server| async move {
            let name = name_of(&server).to_owned();
            let reached = timeout(PATIENCE, Server::reach(&name, server, folder)).await;
            let reached =
                reached.unwrap_or_else(|_| Err(format!("it does not answer within {} s", PATIENCE.as_secs())));
            reached.map_err(|reason| format!("the MCP server {name} cannot be used: {reason}"))
        });
        let mut servers = Self::default();
        for reached in futures::future::join_all(all).await {
            match reached {
                Ok(server) => servers.reached.push(server),
                Err(problem) => servers.problems.push(problem),
            }
        }
        let unlisted = servers.list().await;
        servers.problems.extend(unlisted);
        servers
    }

    /// Asks all of them for their tools; what went wrong.
    async fn list(&self) -> Vec<String> {
        let all = self.reached.iter().map(|server| timeout(PATIENCE, server.service.list_all_tools()));
        let (mut functions, mut problems) = (Vec::new(), Vec::new());
        for (number, listed) in futures::future::join_all(all).await.into_iter().enumerate() {
            let server = &self.reached[number];
            let listed = listed.map_err(|_| "it does not answer".to_owned());
            match listed.and_then(|listed| listed.map_err(|error| error.to_string())) {
                Ok(tools) => {
                    for tool in tools {
                        add(&mut functions, number, &server.name, tool);
                    }
                }
                Err(reason) => {
                    problems.push(format!("the MCP server {} does not tell its tools: {reason}", server.name));
                }
            }
        }
        *self.functions.lock() = functions;
        problems
    }

    /// Asks again if a server has said that its tools are others now.
    pub(super) async fn refresh(&self) {
        let changed: Vec<bool> =
            self.reached.iter().map(|server| server.has_changed.swap(false, Ordering::Relaxed)).collect();
        if changed.contains(&true) {
            for problem in self.list().await {
                tracing::warn!(problem, "the tools of MCP servers");
            }
        }
    }

    /// What could not be had.
    pub(super) fn problems(&self) -> &[String] {
        &self.problems
    }

    pub(super) fn offered(&self) -> Vec<Tool> {
        self.functions.lock().iter().map(|offered| Tool::Function(offered.function.clone())).collect()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.functions.lock().iter().map(|offered| offered.function.name.clone()).collect()
    }

    /// What the user sees of a call; `None` if no server has that function.
    pub(super) fn title(&self, function: &str) -> Option<String> {
        let functions = self.functions.lock();
        functions.iter().find(|offered| offered.function.name == function).map(|offered| offered.title.clone())
    }

    /// Has a server do something. Dropped, the server is told that nobody waits any more.
    pub(super) async fn call(&self, function: &str, arguments: JsonObject) -> Outcome {
        let found = {
            let functions = self.functions.lock();
            let offered = functions.iter().find(|offered| offered.function.name == function);
            offered.map(|offered| (offered.server, offered.tool.clone()))
        };
        let Some((server, tool)) = found else {
            return Outcome::failed(format!("there is no function {function} any more"));
        };
        let server = &self.reached[server];
        match server.service.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await {
            Ok(result) => outcome(result),
            Err(rmcp::ServiceError::TransportClosed) => {
                Outcome::failed(format!("the MCP server {} has ended; a new session starts it again", server.name))
            }
            Err(error) => Outcome::failed(format!("the MCP server {} answered: {error}", server.name)),
        }
    }
}

impl Server {
    async fn reach(name: &str, server: McpServer, folder: &Path) -> Result<Self, String> {
        let has_changed = Arc::new(AtomicBool::new(false));
        let listener = Listener { has_changed: Arc::clone(&has_changed) };
        let service = match server {
            McpServer::Stdio(server) => {
                let connected = listener.serve(program(&server, folder)?).await;
                connected.map_err(|error| plain(&error.to_string()))?
            }
            McpServer::Http(server) => {
                let connected = listener.serve(over_http(&server)?).await;
                connected.map_err(|error| plain(&error.to_string()))?
            }
            _ => return Err("it is reached in a way that this agent does not know; stdio and http are".to_owned()),
        };
        Ok(Self { name: name.to_owned(), service, has_changed })
    }
}

fn name_of(server: &McpServer) -> &str {
    match server {
        McpServer::Stdio(server) => &server.name,
        McpServer::Http(server) => &server.name,
        McpServer::Sse(server) => &server.name,
        _ => "of an unknown kind",
    }
}

fn program(server: &McpServerStdio, folder: &Path) -> Result<TokioChildProcess, String> {
    let mut command = Command::new(&server.command);
    command.args(&server.args).current_dir(folder).kill_on_drop(true);
    command.envs(server.env.iter().map(|variable| (&variable.name, &variable.value)));
    // What it has to say besides is in the agent's log.
    let started = TokioChildProcess::builder(command).stderr(Stdio::inherit()).spawn();
    let (process, _) = started.map_err(|error| format!("{} cannot be started: {error}", server.command.display()))?;
    Ok(process)
}

fn over_http(server: &McpServerHttp) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let url = BaseUrl::parse(&server.url).map_err(|error| error.to_string())?;
    let client = responses::without_key(&url).map_err(|error| error.to_string())?;
    let mut headers = HashMap::new();
    for HttpHeader { name, value, .. } in &server.headers {
        let wrong = || format!("its header {name} is none that can be sent");
        let value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        headers.insert(HeaderName::from_str(name).map_err(|_| wrong())?, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str()).custom_headers(headers);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// The first line of an error: the rest is what was sent.
fn plain(error: &str) -> String {
    error.lines().next().unwrap_or_default().chars().take(300).collect()
}

/// Makes a tool a function, under a name that every endpoint takes and no other has.
fn add(functions: &mut Vec<Offered>, number: usize, server: &str, tool: rmcp::model::Tool) {
    let wanted = function_name(server, &tool.name);
    let is_taken = |name: &str| functions.iter().any(|other| other.function.name == name);
    let name =
        (1..=functions.len() + 1).map(|time| numbered(&wanted, time)).find(|name| !is_taken(name)).unwrap_or_default();
    let title = tool.title.clone().or_else(|| tool.annotations.as_ref().and_then(|hints| hints.title.clone()));
    let title =
        format!("{server}: {}", title.filter(|title| !title.is_empty()).unwrap_or_else(|| tool.name.to_string()));
    let function = Function {
        name,
        description: tool.description.map(|text| text.to_string()),
        parameters: Some(Value::Object(tool.input_schema.as_ref().clone())),
        // Its schema is not ours to change.
        strict: Some(false),
    };
    functions.push(Offered { function, title, server: number, tool: tool.name.to_string() });
}

fn function_name(server: &str, tool: &str) -> String {
    let plain = |text: &str| -> String {
        text.chars().map(|char| if char.is_ascii_alphanumeric() || "-_".contains(char) { char } else { '_' }).collect()
    };
    let mut name = format!("{PREFIX}{}{BETWEEN}{}", plain(server), plain(tool));
    name.truncate(LONGEST_NAME);
    name
}

fn numbered(name: &str, time: usize) -> String {
    if time == 1 {
        return name.to_owned();
    }
    let end = format!("_{time}");
    format!("{}{end}", &name[..name.len().min(LONGEST_NAME - end.len())])
}

/// A function of a server's by its name alone, for the user.
pub(super) fn by_name(function: &str) -> Option<String> {
    let (server, tool) = function.strip_prefix(PREFIX)?.split_once(BETWEEN)?;
    Some(format!("{server}: {tool}"))
}

fn outcome(result: CallToolResult) -> Outcome {
    let mut text = String::new();
    let mut picture = None;
    for block in &result.content {
        let said = match block {
            ContentBlock::Text(said) => said.text.clone(),
            ContentBlock::Image(image) if picture.is_none() => {
                picture = Some(format!("data:{};base64,{}", image.mime_type, image.data));
                "(the picture follows)".to_owned()
            }
            ContentBlock::Resource(resource) => match &resource.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}\n{text}"),
                _ => "(a resource that is no text)".to_owned(),
            },
            ContentBlock::ResourceLink(link) => format!("{} ({})", link.uri, link.name),
            _ => "(something that is no text)".to_owned(),
        };
        let _ = writeln!(text, "{said}");
    }
    if let Some(structured) = result.structured_content.filter(|_| result.content.is_empty()) {
        text = structured.to_string();
    }
    let whole = text.trim_end().len();
    text.truncate(text.floor_char_boundary(whole.min(BYTES)));
    if whole > BYTES {
        let _ = write!(text, "\n({} bytes more are left out: ask for less)", whole - BYTES);
    } else if text.is_empty() {
        text.push_str("(no output)");
    }
    let content = Some(vec![text_content(&text)]);
    Outcome { text, is_failure: result.is_error == Some(true), content, picture, ..Outcome::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_such_that_every_endpoint_takes_them_and_each_is_there_once() {
        assert_eq!(function_name("git hub", "list.issues"), "mcp__git_hub__list_issues");
        assert_eq!(by_name("mcp__git_hub__list_issues").as_deref(), Some("git_hub: list_issues"));
        assert_eq!(by_name("read_file"), None);
        let mut functions = Vec::new();
        for _ in 0..12 {
            let tool = rmcp::model::Tool::new("x".repeat(80), "", Arc::new(JsonObject::new()));
            add(&mut functions, 0, "s", tool);
        }
        let names: std::collections::BTreeSet<&str> =
            functions.iter().map(|offered| offered.function.name.as_str()).collect();
        assert_eq!(names.len(), 12);
        assert!(names.iter().all(|name| name.len() <= LONGEST_NAME), "{names:?}");
    }

    #[test]
    fn what_a_server_answers_is_told_within_bounds() {
        let told = |value: Value| outcome(serde_json::from_value(value).unwrap());
        let text = |text: &str| serde_json::json!({"content": [{"type": "text", "text": text}]});
        assert_eq!(told(text("one")).text, "one");
        assert_eq!(told(text("")).text, "(no output)");
        let long = told(text(&"é".repeat(BYTES)));
        assert!(long.text.len() < BYTES + 100 && long.text.ends_with("bytes more are left out: ask for less)"));
        assert_eq!(told(serde_json::json!({"content": [], "structuredContent": {"a": 1}})).text, r#"{"a":1}"#);
        let failed = told(serde_json::json!({"content": [{"type": "text", "text": "no"}], "isError": true}));
        assert!(failed.is_failure && failed.text == "no");
        let image = serde_json::json!({"content": [{"type": "image", "data": "AQID", "mimeType": "image/png"}]});
        assert_eq!(told(image).picture.as_deref(), Some("data:image/png;base64,AQID"));
    }
}
