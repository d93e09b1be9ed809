//! Signing in: an agent says that it wants that (`-32000`), the user chooses one of its ways, and what was refused is done
//! again.

use super::effect::{MessageLevel, Show, UserEvent};
use super::ids::{ChatId, ConnId};
use super::message::{AgentCall, RpcError};
use super::prompt::PromptBlock;
use super::state::{PendingCall, Phase, Session, State};
use super::transcript::Severity;

/// A way to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInMethod {
    /// Its id.
    pub id: String,
    /// What the user reads.
    pub name: String,
    /// More about it.
    pub description: Option<String>,
    /// Who does it.
    pub kind: SignInKind,
}

/// Who lets the user sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInKind {
    /// The agent that runs, by `authenticate`.
    Agent,
    /// The agent's program, started once more in a terminal with these arguments and variables.
    Terminal {
        /// Arguments behind those of the agent.
        args: Vec<String>,
        /// Variables over those of the agent.
        env: Vec<(String, String)>,
    },
}

/// What the user is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInOffer {
    /// The agent's name.
    pub agent: String,
    /// Each way, with the command of a terminal, its variables, if it is of that kind.
    pub methods: Vec<(SignInMethod, Option<Launch>)>,
}

/// A program that is started in a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables.
    pub env: Vec<(String, String)>,
    /// Where.
    pub cwd: std::path::PathBuf,
}

/// What waits for the user to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SignIn {
    /// The process that said so.
    pub(super) conn: ConnId,
}

impl State {
    /// The agent refused because the user has to sign in. Whether they can do that from here; if not, the caller says so.
    pub(super) fn wants_sign_in(
        &mut self,
        id: ChatId,
        conn: ConnId,
        error: &RpcError,
        resend: Option<Vec<PromptBlock>>,
    ) -> bool {
        let methods = self.connections.get(&conn).map(|connection| connection.sign_in.clone()).unwrap_or_default();
        let Some(chat) = self.chats.get_mut(&id).filter(|_| !methods.is_empty()) else { return false };
        let agent = chat.agent.clone();
        let cwd = chat.cwd.clone();
        chat.sign_in = Some(SignIn { conn });
        chat.resend = resend;
        let spec = self.config.agents.get(&agent).cloned().unwrap_or_default();
        let launch = |method: &SignInMethod| match &method.kind {
            SignInKind::Agent => None,
            SignInKind::Terminal { args, env } => Some(Launch {
                command: [spec.command.as_slice(), args].concat(),
                env: [spec.env.as_slice(), env].concat(),
                cwd: spec.cwd.clone().unwrap_or_else(|| cwd.clone()),
            }),
        };
        let offered = methods.into_iter().map(|method| (method.clone(), launch(&method))).collect();
        let text = format!("{agent} wants you to sign in ({error}): `:AgentChat signin`.");
        self.note(id, Severity::Warning, text.clone());
        self.emit(Show::UserEvent(UserEvent::Error(id, text)));
        self.emit(Show::SignIn(id, SignInOffer { agent, methods: offered }));
        true
    }

    /// The user signs in by a way that the agent carries out.
    pub(super) fn authenticate(&mut self, id: ChatId, method: String) {
        let Some(sign_in) = self.chats.get(&id).and_then(|chat| chat.sign_in.clone()) else {
            self.emit(Show::Message(MessageLevel::Info, "Nobody wants you to sign in.".to_owned()));
            return;
        };
        let is_ready = self.connections.get(&sign_in.conn).is_some_and(|connection| connection.phase == Phase::Ready);
        if !is_ready {
            self.emit(Show::Message(
                MessageLevel::Warn,
                "The agent has ended; `:AgentChat restart` starts it.".to_owned(),
            ));
            return;
        }
        self.note(id, Severity::Info, "Signing in: the agent may open a browser.");
        self.call(sign_in.conn, PendingCall::Authenticate(id), AgentCall::Authenticate { method });
    }

    /// The agent says whether that worked.
    pub(super) fn authenticated(&mut self, id: ChatId, result: Result<(), RpcError>) {
        if let Err(error) = result {
            let text = format!("Signing in did not work: {error}. `:AgentChat signin` tries again.");
            self.note(id, Severity::Error, text.clone());
            self.emit(Show::Message(MessageLevel::Error, text));
            return;
        }
        let Some(sign_in) = self.chats.get_mut(&id).and_then(|chat| chat.sign_in.take()) else { return };
        self.note(id, Severity::Info, "You are signed in.");
        match self.chats.get(&id).map(|chat| chat.session.clone()) {
            Some(Session::Ready(..)) => self.send_again(id),
            Some(Session::Failed(_) | Session::None) => {
                if let Some(chat) = self.chats.get_mut(&id) {
                    chat.session = Session::Waiting(sign_in.conn);
                }
                self.create_session(id, sign_in.conn);
            }
            _ => {}
        }
    }

    /// The user signs out of the agent of this chat, for all of its sessions.
    pub(super) fn sign_out(&mut self, id: ChatId) {
        let Some(conn) = self.chats.get(&id).and_then(|chat| chat.session.conn()) else {
            self.emit(Show::Message(MessageLevel::Warn, "The agent does not run: nobody is signed in.".to_owned()));
            return;
        };
        if self.can(conn).logout {
            self.call(conn, PendingCall::Logout(id), AgentCall::Logout);
        } else {
            let agent = self.chats.get(&id).map(|chat| chat.agent.clone()).unwrap_or_default();
            let text = format!("{agent} has no way to sign out from here; its own program may have one.");
            self.emit(Show::Message(MessageLevel::Warn, text));
        }
    }

    /// The agent says whether that worked. What it refuses from now on leads to [`State::wants_sign_in`].
    pub(super) fn signed_out(&mut self, id: ChatId, result: Result<(), RpcError>) {
        match result {
            Ok(()) => {
                let text = "You are signed out; with the next prompt the agent may want you to sign in again.";
                self.note(id, Severity::Info, text);
            }
            Err(error) => {
                let text = format!("Signing out did not work: {error}.");
                self.note(id, Severity::Error, text.clone());
                self.emit(Show::Message(MessageLevel::Error, text));
            }
        }
    }

    /// The user has signed in in a terminal: only a new process knows of it.
    pub(super) fn signed_in(&mut self, id: ChatId) {
        let Some(sign_in) = self.chats.get_mut(&id).and_then(|chat| chat.sign_in.take()) else { return };
        self.note(id, Severity::Info, "You are signed in; the agent is started anew.");
        let is_its = self.chats.get(&id).is_some_and(|chat| chat.session.conn() == Some(sign_in.conn));
        if !is_its {
            self.stop_connection(sign_in.conn);
        }
        self.restart(id);
    }

    /// Sends the prompt again that was refused, once; whether there was one.
    pub(super) fn send_again(&mut self, id: ChatId) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        if chat.turn.is_some() {
            return;
        }
        if let (Session::Ready(conn, session), Some(blocks)) = (chat.session.clone(), chat.resend.take()) {
            self.note(id, Severity::Info, "The prompt is sent again.");
            self.open_turn(id, true);
            self.send_turn(id, conn, session, blocks);
        }
    }

    /// A session was refused: the agent's process stays, for the user to sign in.
    pub(super) fn session_wants_sign_in(&mut self, id: ChatId, conn: ConnId, error: &RpcError) -> bool {
        if error.code != Some(RpcError::AUTH_REQUIRED) || !self.wants_sign_in(id, conn, error, None) {
            return false;
        }
        let agent = self.chats.get(&id).map(|chat| chat.agent.clone()).unwrap_or_default();
        self.set_failed(id, format!("{agent} wants you to sign in: `:AgentChat signin`"));
        true
    }
}
