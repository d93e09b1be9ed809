//! The agent's side of ACP: what the client's messages mean.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, CancelNotification, ClientCapabilities, CloseSessionRequest, CloseSessionResponse,
    DeleteSessionRequest, DeleteSessionResponse, Error, ForkSessionRequest, ForkSessionResponse, Implementation,
    InitializeRequest, InitializeResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest,
    LoadSessionResponse, McpCapabilities, McpServer, NewSessionRequest, NewSessionResponse, PromptCapabilities,
    PromptRequest, ResumeSessionRequest, ResumeSessionResponse, SessionCapabilities, SessionCloseCapabilities,
    SessionConfigOption, SessionConfigOptionValue, SessionDeleteCapabilities, SessionForkCapabilities, SessionId,
    SessionInfo, SessionListCapabilities, SessionModeState, SessionResumeCapabilities, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::SetOnce;
use tokio::task::JoinSet;

use super::client::Client;
use super::model::Finder;
use super::options::{Mode, Options};
use super::records::{Record, Records};
use super::session::{Session, Setting, State, replay};
use super::tools::Programs;
use crate::profiles::config_path;
use crate::serving::{Gone, Peer, Reply, Service, decode};

/// Sessions of one answer to `session/list`.
const PAGE: u32 = 50;

/// The agent as one client sees it.
pub(super) struct Agent {
    peer: Peer,
    /// `None` until `initialize`.
    client: Option<ClientCapabilities>,
    sessions: HashMap<SessionId, Session>,
    tasks: JoinSet<()>,
    last_session: u64,
    finder: Finder,
    records: Records,
}

impl Agent {
    pub(super) fn new(peer: Peer) -> Self {
        Self {
            peer,
            client: None,
            sessions: HashMap::new(),
            tasks: JoinSet::new(),
            last_session: 0,
            finder: Finder::default(),
            records: Records::default(),
        }
    }

    fn initialize(&mut self, params: Value) -> Result<InitializeResponse, Error> {
        let request: InitializeRequest = decode(params)?;
        self.client = Some(request.client_capabilities);
        let sessions = SessionCapabilities::new()
            .close(SessionCloseCapabilities::new())
            .list(SessionListCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .fork(SessionForkCapabilities::new())
            .delete(SessionDeleteCapabilities::new());
        let prompts = PromptCapabilities::new().image(true).embedded_context(true);
        let name = Implementation::new("agentchat", env!("CARGO_PKG_VERSION")).title("agentchat".to_owned());
        // Version 1 whatever the client asked for: it is the newest that the agent speaks.
        Ok(InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(
                AgentCapabilities::new()
                    .load_session(true)
                    .prompt_capabilities(prompts)
                    .session_capabilities(sessions)
                    .mcp_capabilities(McpCapabilities::new().http(true)),
            )
            .agent_info(name))
    }

    fn client(&self, session: SessionId, folder: PathBuf, more_folders: Vec<PathBuf>) -> Result<Client, Error> {
        let not_yet = || Error::invalid_request().data(json!("initialize must come first"));
        let capabilities = self.client.clone().ok_or_else(not_yet)?;
        if !folder.is_absolute() {
            return Err(Error::invalid_params().data(json!("cwd must be an absolute path")));
        }
        Ok(Client { peer: self.peer.clone(), session, folder, more_folders, capabilities })
    }

    /// Lets a session begin, or go on from what was kept.
    fn start(
        &mut self,
        client: Client,
        state: State,
        options: Options,
        mcp: Vec<McpServer>,
    ) -> (SessionModeState, Vec<SessionConfigOption>) {
        // Sessions that have ended are only let go of here: one is never worth a wake-up.
        while self.tasks.try_join_next().is_some() {}
        let told = (options.modes(), options.config(&self.finder.possible()));
        let config = config_path().ok().and_then(|path| path.parent().map(PathBuf::from));
        let session = client.session.clone();
        let setting = Setting {
            programs: Programs::load(config.as_deref(), &client.folder),
            client,
            finder: self.finder.clone(),
            config,
            options: Arc::new(Mutex::new(options)),
            records: self.records.clone(),
            mcp,
            servers: SetOnce::new(),
        };
        let (handle, task) = Session::new(setting, state);
        self.tasks.spawn(task);
        self.sessions.insert(session, handle);
        told
    }

    fn new_session(&mut self, params: Value) -> Result<NewSessionResponse, Error> {
        let request: NewSessionRequest = decode(params)?;
        let id = self.new_id();
        let client = self.client(id.clone(), request.cwd, request.additional_directories)?;
        let (modes, options) = self.start(client, State::default(), Options::default(), request.mcp_servers);
        Ok(NewSessionResponse::new(id).modes(modes).config_options(options))
    }

    async fn kept(&self, id: &SessionId) -> Result<(Option<String>, Record), Error> {
        let found = self.records.find(id.to_string()).await;
        let found = found.map_err(|reason| Error::internal_error().data(json!(reason)))?;
        let (session, record) = found.ok_or_else(|| Error::session_not_found(id.clone()))?;
        Ok((session.title, record))
    }

    async fn load_session(&mut self, params: Value) -> Result<LoadSessionResponse, Error> {
        let request: LoadSessionRequest = decode(params)?;
        let (title, record) = self.kept(&request.session_id).await?;
        let client = self.client(request.session_id, request.cwd, request.additional_directories)?;
        replay(&client, &record).await.map_err(|_| Error::internal_error())?;
        let options = options_of(&record);
        let (modes, options) = self.start(client, State::of_record(record, title), options, request.mcp_servers);
        Ok(LoadSessionResponse::new().modes(modes).config_options(options))
    }

    async fn resume_session(&mut self, params: Value) -> Result<ResumeSessionResponse, Error> {
        let request: ResumeSessionRequest = decode(params)?;
        let (title, record) = self.kept(&request.session_id).await?;
        let client = self.client(request.session_id, request.cwd, request.additional_directories)?;
        let options = options_of(&record);
        let (modes, options) = self.start(client, State::of_record(record, title), options, request.mcp_servers);
        Ok(ResumeSessionResponse::new().modes(modes).config_options(options))
    }

    async fn fork_session(&mut self, params: Value) -> Result<ForkSessionResponse, Error> {
        let request: ForkSessionRequest = decode(params)?;
        let (_, record) = self.kept(&request.session_id).await?;
        let id = self.new_id();
        let client = self.client(id.clone(), request.cwd, request.additional_directories)?;
        let options = options_of(&record);
        let (modes, options) = self.start(client, State::of_record(record, None), options, request.mcp_servers);
        Ok(ForkSessionResponse::new(id).modes(modes).config_options(options))
    }

    async fn list_sessions(&self, params: Value) -> Result<ListSessionsResponse, Error> {
        let request: ListSessionsRequest = decode(params)?;
        let invalid = || Error::invalid_params().data(json!("there is no such cursor"));
        let offset: u32 = request.cursor.map_or(Ok(0), |cursor| cursor.parse().map_err(|_| invalid()))?;
        let found = self.records.list(request.cwd, offset, PAGE).await;
        let found = found.map_err(|reason| Error::internal_error().data(json!(reason)))?;
        let next = (found.len() == PAGE as usize).then(|| (offset + PAGE).to_string());
        let info = |session: crate::store::AgentSession| {
            let mut info = SessionInfo::new(session.id, session.cwd);
            info.title = session.title;
            info.updated_at = Some(session.updated_at);
            info
        };
        let mut response = ListSessionsResponse::new(found.into_iter().map(info).collect());
        response.next_cursor = next;
        Ok(response)
    }

    async fn delete_session(&mut self, params: Value) -> Result<DeleteSessionResponse, Error> {
        let request: DeleteSessionRequest = decode(params)?;
        let was_open = self.sessions.remove(&request.session_id).map(|mut session| session.cancel()).is_some();
        let deleted = self.records.delete(request.session_id.to_string()).await;
        match deleted {
            Ok(false) if !was_open => Err(Error::session_not_found(request.session_id)),
            Ok(_) => Ok(DeleteSessionResponse::new()),
            Err(reason) => Err(Error::internal_error().data(json!(reason))),
        }
    }

    async fn prompt(&mut self, params: Value, reply: Reply) -> Result<(), Gone> {
        let request: PromptRequest = match decode(params) {
            Ok(request) => request,
            Err(error) => return reply.send::<Value>(Err(error)).await,
        };
        let Some(session) = self.sessions.get(&request.session_id) else {
            return reply.send::<Value>(Err(Error::session_not_found(request.session_id))).await;
        };
        match session.prompt(request.prompt, reply) {
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

    fn set_mode(&self, params: Value) -> Result<SetSessionModeResponse, Error> {
        let request: SetSessionModeRequest = decode(params)?;
        let session = self.sessions.get(&request.session_id);
        let session = session.ok_or_else(|| Error::session_not_found(request.session_id))?;
        let unknown = || Error::invalid_params().data(json!(format!("there is no mode {:?}", &*request.mode_id.0)));
        session.options.lock().mode = Mode::from_id(&request.mode_id.0).ok_or_else(unknown)?;
        Ok(SetSessionModeResponse::new())
    }

    fn set_option(&self, params: Value) -> Result<SetSessionConfigOptionResponse, Error> {
        let request: SetSessionConfigOptionRequest = decode(params)?;
        let session = self.sessions.get(&request.session_id);
        let session = session.ok_or_else(|| Error::session_not_found(request.session_id))?;
        let SessionConfigOptionValue::ValueId { value } = &request.value else {
            return Err(Error::invalid_params().data(json!("this option takes the id of a value")));
        };
        let mut options = session.options.lock();
        let set = options.set(&request.config_id.0, &value.0);
        set.map_err(|problem| Error::invalid_params().data(json!(problem)))?;
        Ok(SetSessionConfigOptionResponse::new(options.config(&self.finder.possible())))
    }

    /// An id that no other session of any agent has had.
    fn new_id(&mut self) -> SessionId {
        self.last_session += 1;
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        SessionId::new(format!("chat-{:x}-{:x}-{}", started.as_millis(), std::process::id(), self.last_session))
    }
}

fn options_of(record: &Record) -> Options {
    let mode = record.mode.as_deref().and_then(Mode::from_id).unwrap_or_default();
    // Whoever allowed everything did so for the session that they were looking at.
    let mode = if mode == Mode::Full { Mode::Ask } else { mode };
    Options { mode, model: record.model.clone(), ..Options::default() }
}

impl Service for Agent {
    async fn on_request(&mut self, method: &str, params: Value, reply: Reply) -> Result<(), Gone> {
        match method {
            "initialize" => reply.send(self.initialize(params)).await,
            "session/new" => reply.send(self.new_session(params)).await,
            "session/load" => reply.send(self.load_session(params).await).await,
            "session/resume" => reply.send(self.resume_session(params).await).await,
            "session/fork" => reply.send(self.fork_session(params).await).await,
            "session/list" => reply.send(self.list_sessions(params).await).await,
            "session/delete" => reply.send(self.delete_session(params).await).await,
            "session/close" => reply.send(self.close_session(params)).await,
            "session/set_mode" => reply.send(self.set_mode(params)).await,
            "session/set_config_option" => reply.send(self.set_option(params)).await,
            "session/prompt" => self.prompt(params, reply).await,
            _ => reply.send::<Value>(Err(Error::method_not_found().data(json!(method)))).await,
        }
    }

    fn on_notification(&mut self, method: &str, params: Value) {
        if method != "session/cancel" {
            tracing::debug!(method, "a notification that the agent does not know");
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
