//! The agent's side of ACP: what the client's messages mean.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, CancelNotification, ClientCapabilities, CloseSessionRequest, CloseSessionResponse, ContentBlock,
    Error, Implementation, InitializeRequest, InitializeResponse, NewSessionRequest, NewSessionResponse, PromptRequest,
    SessionCapabilities, SessionCloseCapabilities, SessionId,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::pace::Pace;
use super::session::{Session, announce_commands};
use super::stage::Setting;
use crate::serving::{Gone, Peer, Reply, Service, decode};

/// The guide as one client sees it.
pub(super) struct Agent {
    peer: Peer,
    pace: Pace,
    /// `None` until `initialize`.
    client: Option<ClientCapabilities>,
    sessions: HashMap<SessionId, Session>,
    tasks: JoinSet<()>,
    last_session: u64,
}

impl Agent {
    pub(super) fn new(peer: Peer, pace: Pace) -> Self {
        Self { peer, pace, client: None, sessions: HashMap::new(), tasks: JoinSet::new(), last_session: 0 }
    }

    fn initialize(&mut self, params: Value) -> Result<InitializeResponse, Error> {
        let request: InitializeRequest = decode(params)?;
        self.client = Some(request.client_capabilities);
        let sessions = SessionCapabilities::new().close(SessionCloseCapabilities::new());
        let name = Implementation::new("agentchat-tour", env!("CARGO_PKG_VERSION")).title("Guide".to_owned());
        // Version 1 whatever the client asked for: it is the newest that the guide speaks.
        Ok(InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(AgentCapabilities::new().session_capabilities(sessions))
            .agent_info(name))
    }

    async fn new_session(&mut self, params: Value, reply: Reply) -> Result<(), Gone> {
        let setting = match self.setting(params) {
            Ok(setting) => setting,
            Err(error) => return reply.send::<NewSessionResponse>(Err(error)).await,
        };
        // Sessions that have ended are only let go of here: one is never worth a wake-up.
        while self.tasks.try_join_next().is_some() {}
        let (session, task) = Session::new(setting.clone());
        self.tasks.spawn(task);
        self.sessions.insert(setting.session.clone(), session);
        reply.send(Ok(NewSessionResponse::new(setting.session.clone()))).await?;
        announce_commands(&setting).await
    }

    fn setting(&mut self, params: Value) -> Result<Setting, Error> {
        let not_yet = || Error::invalid_request().data(json!("initialize must come first"));
        let client = self.client.clone().ok_or_else(not_yet)?;
        let request: NewSessionRequest = decode(params)?;
        if !request.cwd.is_absolute() {
            return Err(Error::invalid_params().data(json!("cwd must be an absolute path")));
        }
        self.last_session += 1;
        Ok(Setting {
            peer: self.peer.clone(),
            session: session_id(self.last_session),
            folder: request.cwd,
            client,
            pace: self.pace,
        })
    }

    async fn prompt(&mut self, params: Value, reply: Reply) -> Result<(), Gone> {
        let request: PromptRequest = match decode(params) {
            Ok(request) => request,
            Err(error) => return reply.send::<Value>(Err(error)).await,
        };
        let Some(session) = self.sessions.get(&request.session_id) else {
            return reply.send::<Value>(Err(Error::session_not_found(request.session_id))).await;
        };
        match session.prompt(text_of(&request.prompt), reply) {
            Ok(()) => Ok(()),
            Err(reply) => {
                let error = Error::invalid_request().data(json!("too many prompts are waiting: cancel, or wait"));
                reply.send::<Value>(Err(error)).await
            }
        }
    }

    fn close_session(&mut self, params: Value) -> Result<CloseSessionResponse, Error> {
        let request: CloseSessionRequest = decode(params)?;
        match self.sessions.remove(&request.session_id) {
            Some(mut session) => {
                session.cancel();
                Ok(CloseSessionResponse::new())
            }
            None => Err(Error::session_not_found(request.session_id)),
        }
    }
}

impl Service for Agent {
    async fn on_request(&mut self, method: &str, params: Value, reply: Reply) -> Result<(), Gone> {
        match method {
            "initialize" => reply.send(self.initialize(params)).await,
            "session/new" => self.new_session(params, reply).await,
            "session/prompt" => self.prompt(params, reply).await,
            "session/close" => reply.send(self.close_session(params)).await,
            _ => {
                let error = Error::method_not_found().data(json!(method));
                reply.send::<Value>(Err(error)).await
            }
        }
    }

    fn on_notification(&mut self, method: &str, params: Value) {
        if method != "session/cancel" {
            tracing::debug!(method, "a notification that the guide does not know");
            return;
        }
        match decode::<CancelNotification>(params) {
            Ok(cancel) => {
                if let Some(session) = self.sessions.get_mut(&cancel.session_id) {
                    session.cancel();
                } else {
                    tracing::warn!(session = %cancel.session_id, "a cancel of no session");
                }
            }
            Err(error) => tracing::warn!(?error, "a session/cancel that cannot be read"),
        }
    }

    async fn end(mut self) {
        self.tasks.shutdown().await;
    }
}

/// The text blocks of a prompt, one below the other.
fn text_of(prompt: &[ContentBlock]) -> String {
    let texts = prompt.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// An id that no other session of any guide has had.
fn session_id(number: u64) -> SessionId {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    SessionId::new(format!("tour-{:x}-{:x}-{number}", started.as_millis(), std::process::id()))
}
