//! What an agent asks the user beside permissions: a form to be filled in, or an address to be opened
//! (`elicitation/create`). What is asked waits until the user wants to answer; nobody is taken out of what they are doing.

use std::collections::BTreeMap;

use url::Url;

use self::form::{Filled, Form, Given};
use super::effect::{Show, UserEvent};
use super::ids::{CallId, ChatId, ConnId, OpenId, SessionId};
use super::message::{Reply, RpcError};
use super::state::{PendingCall, State};
use super::transcript::Severity;

pub mod form;

/// What an agent asks, as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    /// The session, or the request of ours, that it is about.
    pub scope: Scope,
    /// What the user reads.
    pub message: String,
    /// What is to be done.
    pub ask: Ask,
}

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// A session.
    Session(SessionId),
    /// A request of ours, before there is a session.
    Request(CallId),
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// A form is to be filled in.
    Form(Form),
    /// An address is to be opened outside of Neovim: the agent's id for that, and the address.
    Url(String, String),
}

/// What is asked, for the user.
#[derive(Debug, Clone, PartialEq)]
pub struct ElicitationView {
    /// Names the request.
    pub request: OpenId,
    /// In which chat.
    pub chat: ChatId,
    /// The agent's name.
    pub agent: String,
    /// What the agent says.
    pub message: String,
    /// What is to be done.
    pub ask: AskView,
}

/// What is to be done, for the user.
#[derive(Debug, Clone, PartialEq)]
pub enum AskView {
    /// A form.
    Form(Form),
    /// An address.
    Url {
        /// All of it.
        url: String,
        /// Where it leads to, as the network knows it.
        host: String,
        /// What is remarkable about that.
        doubt: Option<&'static str>,
    },
}

/// What the user does about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitationAnswer {
    /// They have filled in the form, or have opened the address.
    Accept(BTreeMap<String, Given>),
    /// They do not want to.
    Decline,
    /// They want nothing of it.
    Cancel,
}

/// Something that waits for the user.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Open {
    request: OpenId,
    chat: ChatId,
    message: String,
    ask: AskView,
    /// The agent's id for what goes on outside.
    outside: Option<String>,
}

/// Everything of the kind.
#[derive(Debug, Default)]
pub(super) struct Elicitations {
    open: Vec<Open>,
    /// Addresses that were opened, by the agent's ids: the chat and the host.
    outside: BTreeMap<(ConnId, String), (ChatId, String)>,
}

/// Where an address leads to, and what is remarkable about that; `None` if it is none that a browser opens.
fn host_of(address: &str) -> Option<(String, Option<&'static str>)> {
    let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let host = url.host_str()?.to_owned();
    let doubt = if host.split('.').any(|part| part.starts_with("xn--")) {
        Some("the name has letters that look like others")
    } else if !url.username().is_empty() || url.password().is_some() {
        Some("what stands before the @ is no part of where it leads to")
    } else if url.scheme() == "http" && !matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]") {
        Some("the connection is not encrypted")
    } else {
        None
    };
    Some((host, doubt))
}

impl State {
    /// An agent asks the user something.
    pub(super) fn elicit(&mut self, conn: ConnId, request: OpenId, chat: Option<ChatId>, asked: Elicitation) {
        let chat = chat.or_else(|| self.chat_of_scope(conn, &asked.scope));
        let Some(chat) = chat.filter(|chat| !self.is_cancelling(*chat)) else {
            self.reply(request, Reply::ElicitationCancelled);
            return;
        };
        let agent = self.chats.get(&chat).map(|chat| chat.agent.clone()).unwrap_or_default();
        let (ask, outside) = match asked.ask {
            Ask::Form(form) => (AskView::Form(form), None),
            Ask::Url(id, url) => {
                let Some((host, doubt)) = host_of(&url) else {
                    let problem = "Invalid params: the url is no address of the web";
                    self.reply(request, Reply::Error(RpcError::new(RpcError::INVALID_PARAMS, problem)));
                    return;
                };
                (AskView::Url { url, host, doubt }, Some(id))
            }
        };
        let Elicitation { message, .. } = asked;
        self.note(chat, Severity::Warning, format!("{agent} asks: {message} (`:AgentChat answer`)"));
        self.elicitations.open.push(Open { request, chat, message, ask, outside });
        self.emit(Show::UserEvent(UserEvent::Elicitation(chat, request)));
        self.show_elicitations();
        self.touch(chat);
    }

    fn chat_of_scope(&self, conn: ConnId, scope: &Scope) -> Option<ChatId> {
        let Scope::Request(call) = scope else { return None };
        match self.connections.get(&conn)?.calls.get(call)? {
            PendingCall::NewSession(chat)
            | PendingCall::OpenSession(chat, _)
            | PendingCall::Authenticate(chat)
            | PendingCall::Logout(chat)
            | PendingCall::SetOption(chat, ..)
            | PendingCall::Prompt(chat, _) => Some(*chat),
            PendingCall::Initialize | PendingCall::List(_) | PendingCall::Delete | PendingCall::Close => {
                self.chats_of(conn).first().copied()
            }
        }
    }

    /// The user answers.
    pub(super) fn answer_elicitation(&mut self, request: OpenId, answer: ElicitationAnswer) {
        let Some(open) = self.elicitations.open.iter().find(|open| open.request == request).cloned() else {
            self.warn("That question is not open any more.");
            return;
        };
        let said = match (answer, &open.ask) {
            (ElicitationAnswer::Decline, _) => {
                self.reply(request, Reply::ElicitationDeclined);
                "You declined to answer.".to_owned()
            }
            (ElicitationAnswer::Cancel, _) => {
                self.reply(request, Reply::ElicitationCancelled);
                "You did not answer.".to_owned()
            }
            (ElicitationAnswer::Accept(given), AskView::Form(form)) => match form.check(&given) {
                Ok(filled) => {
                    let said = said(form, &filled);
                    self.reply(request, Reply::ElicitationAccepted(filled));
                    said
                }
                Err(problems) => {
                    self.emit(Show::ElicitationProblems(request, problems));
                    return;
                }
            },
            (ElicitationAnswer::Accept(_), AskView::Url { host, .. }) => {
                let conn = self.chats.get(&open.chat).and_then(|chat| chat.session.conn());
                if let (Some(conn), Some(id)) = (conn, open.outside) {
                    self.elicitations.outside.insert((conn, id), (open.chat, host.clone()));
                }
                self.reply(request, Reply::ElicitationAccepted(Filled::new()));
                format!("You opened {host}.")
            }
        };
        self.note(open.chat, Severity::Info, said);
    }

    /// What went on outside is over, as the agent says.
    pub(super) fn elicitation_completed(&mut self, conn: ConnId, id: String) {
        if let Some((chat, host)) = self.elicitations.outside.remove(&(conn, id)) {
            self.note(chat, Severity::Info, format!("What there was to do on {host} is done."));
        }
    }

    /// The request is no longer open: nobody is to answer it any more.
    pub(super) fn forget_elicitation(&mut self, request: OpenId) {
        if let Some(at) = self.elicitations.open.iter().position(|open| open.request == request) {
            let chat = self.elicitations.open.remove(at).chat;
            self.show_elicitations();
            self.touch(chat);
        }
    }

    /// Nobody answers what was asked in this chat any more.
    pub(super) fn cancel_elicitations(&mut self, chat: ChatId) {
        let of_chat = self.elicitations.open.iter().filter(|open| open.chat == chat);
        for request in of_chat.map(|open| open.request).collect::<Vec<_>>() {
            self.reply(request, Reply::ElicitationCancelled);
        }
    }

    /// How many questions of a chat wait for the user.
    pub(super) fn waiting_elicitations(&self, chat: ChatId) -> usize {
        self.elicitations.open.iter().filter(|open| open.chat == chat).count()
    }

    fn show_elicitations(&mut self) {
        let view = |open: &Open| {
            let agent = self.chats.get(&open.chat)?.agent.clone();
            let Open { request, chat, message, ask, .. } = open.clone();
            Some(ElicitationView { request, chat, agent, message, ask })
        };
        let views: Vec<ElicitationView> = self.elicitations.open.iter().filter_map(view).collect();
        self.emit(Show::Elicitations(views));
    }
}

/// What the user answered, for the transcript.
fn said(form: &Form, filled: &Filled) -> String {
    use form::{FieldKind, FieldValue};
    let title = |name: &str, value: &str| {
        let kind = form.fields.iter().find(|field| field.name == name).map(|field| &field.kind);
        let choices = match kind {
            Some(FieldKind::One(choices) | FieldKind::Many(choices, ..)) => choices.as_slice(),
            _ => &[],
        };
        choices.iter().find(|choice| choice.value == value).map_or(value, |choice| &choice.title).to_owned()
    };
    let line = |(name, value): &(String, FieldValue)| {
        let value = match value {
            FieldValue::Text(text) => title(name, text),
            FieldValue::Number(number) => number.to_string(),
            FieldValue::Integer(number) => number.to_string(),
            FieldValue::Boolean(on) => if *on { "yes" } else { "no" }.to_owned(),
            FieldValue::Many(values) => values.iter().map(|value| title(name, value)).collect::<Vec<_>>().join(", "),
        };
        let field = form.fields.iter().find(|field| field.name == *name);
        format!("{}: {value}", field.map_or(name.as_str(), |field| &field.title))
    };
    let lines: Vec<String> = filled.iter().map(line).collect();
    if lines.is_empty() { "You answered with nothing filled in.".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_tells_where_it_leads_and_what_is_odd_about_it() {
        let host = |address: &str| host_of(address).map(|(host, doubt)| (host, doubt.is_some()));
        assert_eq!(host("https://example.org/login?x=1"), Some(("example.org".into(), false)));
        assert_eq!(host("http://localhost:8080/"), Some(("localhost".into(), false)));
        assert_eq!(host("http://example.org/"), Some(("example.org".into(), true)));
        assert_eq!(host("https://example.org@evil.test/"), Some(("evil.test".into(), true)));
        assert_eq!(host("https://ex\u{430}mple.org/"), Some(("xn--exmple-4nf.org".into(), true)));
        for no in ["file:///etc/passwd", "javascript:alert(1)", "example.org", "ssh://host"] {
            assert_eq!(host(no), None, "{no}");
        }
    }
}
