//! What Lua says. Everything comes as a notification with one map, so no key ever waits for us.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use async_trait::async_trait;
use nvim_rs::{Handler, Neovim};
use rmpv::Value;
use tokio::sync::mpsc;

use super::channel::Writer;
use crate::core::elicitation::ElicitationAnswer;
use crate::core::elicitation::form::Given;
use crate::core::event::{KnownSession, UserAction};
use crate::core::ids::{ChatId, OpenId, PromptId, QuestionId, SessionId, SessionKey, TerminalId};
use crate::core::message::TerminalWanted;
use crate::core::prompt::{PromptPart, Source};
use crate::core::rejections::Rejection;
use crate::core::transcript::EntryIndex;
use crate::files::finder::Wanted;
use crate::view::Row;

/// Something that Lua said.
#[derive(Debug, Clone, PartialEq)]
pub enum FromLua {
    /// The first message.
    Hello(Hello),
    /// Neovim quits.
    Leaving,
    /// The user did something.
    Action(UserAction),
    /// A transcript buffer is not what we think it is.
    Resync(ChatId),
    /// These rows of a transcript buffer are looked at.
    View(ChatId, Range<usize>),
    /// The user wants to see all of a tool call: the entry's index.
    Inspect(ChatId, EntryIndex),
    /// The transcript is to be written to a file.
    Export(ChatId, Export),
    /// The trail of a chat is wanted; the number names the question.
    Trail(ChatId, u64),
    /// Files are looked for; the number names the question.
    FindFiles(u64, Wanted),
    /// The user typed into a terminal.
    TerminalInput(TerminalId, Vec<u8>),
    /// A window shows a terminal with so many columns and rows.
    TerminalSize(TerminalId, u16, u16),
    /// Rules and remembered answers are wanted; the number names the question.
    Permissions {
        /// Names the question.
        id: u64,
        /// The user's folder.
        cwd: PathBuf,
        /// A remembered answer that is to be revoked first.
        revoke: Option<i64>,
    },
    /// The user saved a file: its absolute path.
    FileSaved(PathBuf),
    /// The user does not want the version of this file that is on disk.
    OfferRejected(PathBuf),
    /// What the user is asked, to be shown at the end of a transcript; no rows if nothing is.
    Asked(ChatId, Vec<Row>),
    /// The mode that kept us from editing this buffer has ended.
    FileFree(i64),
    /// The text of this buffer is gone, or another one than what its changes told.
    MirrorGone(i64),
    /// Whether a file has pending changes now.
    ChangesPending(PathBuf, bool),
}

/// Where a transcript is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The document's title.
    pub title: String,
    /// Absolute path.
    pub path: PathBuf,
    /// Whether a file of that name may be replaced.
    pub replace: bool,
}

/// What the plugin is, and how it is configured.
#[derive(Debug, Clone, PartialEq)]
pub struct Hello {
    /// The plugin's version.
    pub version: String,
    /// The number of the contract between Lua and the helper.
    pub interface: u64,
    /// The configuration, which Lua has checked.
    pub config: Value,
    /// Names this Neovim.
    pub instance: Option<String>,
}

/// Hands what Lua says to the owner task.
#[derive(Debug, Clone)]
pub struct Incoming {
    to_owner: mpsc::UnboundedSender<FromLua>,
}

impl Incoming {
    /// A handler that sends to `to_owner`.
    pub const fn new(to_owner: mpsc::UnboundedSender<FromLua>) -> Self {
        Self { to_owner }
    }
}

#[async_trait]
impl Handler for Incoming {
    type Writer = Writer;

    async fn handle_request(&self, name: String, _: Vec<Value>, _: Neovim<Writer>) -> Result<Value, Value> {
        Err(format!("agentchat answers no requests; {name} must be sent by vim.rpcnotify").into())
    }

    async fn handle_notify(&self, name: String, arguments: Vec<Value>, _: Neovim<Writer>) {
        if let Some(message) = parse(&name, arguments.first().unwrap_or(&Value::Nil)) {
            // The owner task is gone only when the helper ends.
            let _ = self.to_owner.send(message);
        } else {
            tracing::warn!(%name, "a notification that cannot be used");
        }
    }
}

/// Reads a notification; `None` if it is unknown or lacks something.
fn parse(name: &str, arguments: &Value) -> Option<FromLua> {
    let chat = || Some(ChatId(integer(arguments, "chat")?));
    Some(match name {
        "hello" => FromLua::Hello(Hello {
            version: string(arguments, "version")?,
            interface: integer(arguments, "interface")?,
            config: get(arguments, "config").cloned().unwrap_or(Value::Nil),
            instance: string(arguments, "instance"),
        }),
        "leaving" => FromLua::Leaving,
        "resync" => FromLua::Resync(chat()?),
        "view" => FromLua::View(chat()?, index(arguments, "first")?..index(arguments, "last")?),
        "inspect" => FromLua::Inspect(chat()?, usize::try_from(integer(arguments, "entry")?).ok()?),
        "export" => FromLua::Export(
            chat()?,
            Export {
                title: string(arguments, "title")?,
                path: PathBuf::from(string(arguments, "path")?),
                replace: get(arguments, "replace").and_then(Value::as_bool).unwrap_or(false),
            },
        ),
        "permissions" => FromLua::Permissions {
            id: integer(arguments, "id")?,
            cwd: PathBuf::from(string(arguments, "cwd")?),
            revoke: get(arguments, "revoke").and_then(Value::as_i64),
        },
        "trail" => FromLua::Trail(chat()?, integer(arguments, "id")?),
        "asked" => FromLua::Asked(chat()?, array(arguments, "rows").iter().filter_map(asked_row).collect()),
        "file_free" => FromLua::FileFree(get(arguments, "buf")?.as_i64()?),
        "mirror_gone" => FromLua::MirrorGone(get(arguments, "buf")?.as_i64()?),
        "find_files" => FromLua::FindFiles(
            integer(arguments, "id")?,
            Wanted {
                root: PathBuf::from(string(arguments, "cwd")?),
                query: string(arguments, "query")?,
                limit: usize::try_from(integer(arguments, "limit")?).ok()?,
            },
        ),
        "terminal_input" => FromLua::TerminalInput(
            TerminalId(integer(arguments, "terminal")?),
            match get(arguments, "data")? {
                Value::String(data) => data.as_bytes().to_vec(),
                Value::Binary(data) => data.clone(),
                _ => return None,
            },
        ),
        "terminal_size" => FromLua::TerminalSize(
            TerminalId(integer(arguments, "terminal")?),
            u16::try_from(integer(arguments, "columns")?).ok()?,
            u16::try_from(integer(arguments, "rows")?).ok()?,
        ),
        "changes_pending" => FromLua::ChangesPending(
            PathBuf::from(string(arguments, "path")?),
            integer(arguments, "pending").is_some_and(|count| count > 0),
        ),
        "file_saved" => FromLua::FileSaved(PathBuf::from(string(arguments, "path")?)),
        "offer_rejected" => FromLua::OfferRejected(PathBuf::from(string(arguments, "path")?)),
        _ => FromLua::Action(action(name, arguments)?),
    })
}

/// Reads what the user did; `None` if it is unknown or lacks something.
fn action(name: &str, arguments: &Value) -> Option<UserAction> {
    let chat = || Some(ChatId(integer(arguments, "chat")?));
    Some(match name {
        "open" => UserAction::Open {
            chat: chat()?,
            agent: string(arguments, "agent"),
            cwd: PathBuf::from(string(arguments, "cwd")?),
            known: known(arguments),
        },
        "sessions" => UserAction::ListSessions {
            question: QuestionId(integer(arguments, "id")?),
            agent: string(arguments, "agent"),
            cwd: string(arguments, "cwd").map(PathBuf::from),
            at: PathBuf::from(string(arguments, "at")?),
        },
        "delete_session" => UserAction::DeleteSession {
            agent: string(arguments, "agent")?,
            session: string(arguments, "session").map(|id| SessionId::from(id.as_str())),
            key: integer(arguments, "key").map(SessionKey),
        },
        "take_along" => UserAction::TakeAlong(chat()?),
        "close" => UserAction::Close(chat()?),
        "prompt" => UserAction::Prompt {
            chat: chat()?,
            id: PromptId(integer(arguments, "id")?),
            parts: array(arguments, "parts").iter().filter_map(part).collect(),
        },
        "take_back" => UserAction::TakeBack(chat()?, PromptId(integer(arguments, "id")?)),
        "cancel" => UserAction::Cancel(chat()?),
        "authenticate" => UserAction::Authenticate(chat()?, string(arguments, "method")?),
        "sign_out" => UserAction::SignOut(chat()?),
        "signed_in" => UserAction::SignedIn(chat()?),
        "set_option" => UserAction::SetOption {
            chat: chat()?,
            option: string(arguments, "option")?,
            value: string(arguments, "value")?,
        },
        "respond" => UserAction::Respond {
            request: OpenId(integer(arguments, "request")?),
            option: string(arguments, "option")?,
        },
        "elicitation" => UserAction::Elicitation(OpenId(integer(arguments, "request")?), elicitation(arguments)?),
        "run_command" => UserAction::RunCommand {
            run: integer(arguments, "run")?,
            chat: chat()?,
            wanted: Box::new(wanted(arguments)),
            cwd: PathBuf::from(string(arguments, "cwd")?),
        },
        "terminal_kill" => UserAction::KillTerminal(TerminalId(integer(arguments, "terminal")?)),
        "undo" => UserAction::Undo {
            chat: chat()?,
            turn: integer(arguments, "turn"),
            replace: array(arguments, "replace").iter().filter_map(text).map(PathBuf::from).collect(),
        },
        "changes_decided" => UserAction::Decided {
            chat: chat()?,
            path: PathBuf::from(string(arguments, "path")?),
            rejected: array(arguments, "rejected").iter().filter_map(rejection).collect(),
            pending: array(arguments, "pending").iter().filter_map(Value::as_u64).collect(),
        },
        "restart" => UserAction::Restart(chat()?),
        _ => return None,
    })
}

/// How a question is answered; what is no value of a field is none.
fn elicitation(arguments: &Value) -> Option<ElicitationAnswer> {
    let given = |value: &Value| match value {
        Value::Boolean(on) => Some(Given::Switch(*on)),
        Value::Array(values) => Some(Given::Many(values.iter().filter_map(text).collect())),
        other => text(other).map(Given::Text),
    };
    Some(match string(arguments, "action")?.as_str() {
        "accept" => ElicitationAnswer::Accept(
            named(arguments, "values").into_iter().filter_map(|(name, value)| Some((name, given(value)?))).collect(),
        ),
        "decline" => ElicitationAnswer::Decline,
        "cancel" => ElicitationAnswer::Cancel,
        _ => return None,
    })
}

/// The session that a chat is to have, if it is not to be a new one.
fn known(arguments: &Value) -> Option<KnownSession> {
    Some(KnownSession {
        session: SessionId::from(string(arguments, "session")?.as_str()),
        key: integer(arguments, "key").map(SessionKey),
        title: string(arguments, "title"),
        is_fork: get(arguments, "fork").and_then(Value::as_bool).unwrap_or(false),
    })
}

/// Highlight groups of the rows that show a permission request.
const ASKED_GROUPS: [&str; 5] = [
    "AgentChatPermissionTitle",
    "AgentChatPermissionDanger",
    "AgentChatPermissionKey",
    "AgentChatAdded",
    "AgentChatRemoved",
];

/// A row of a permission request: its text, and the group of its first bytes. It is as long as Lua made it, so that a
/// command is seen whole.
fn asked_row(value: &Value) -> Option<Row> {
    let [line, group, bytes] = value.as_array()?.as_slice() else { return None };
    let line = text(line)?.replace('\n', "⏎");
    let end = line.floor_char_boundary(usize::try_from(bytes.as_u64()?).ok()?);
    let group = ASKED_GROUPS.into_iter().find(|known| Some(*known) == group.as_str());
    let marks = group.filter(|_| end > 0).map(|group| (0, end, group)).into_iter().collect();
    Some(Row { text: line, marks })
}

/// A change that the user rejected.
fn rejection(value: &Value) -> Option<Rejection> {
    let lines = array(value, "lines");
    Some(Rejection {
        hunk: integer(value, "id")?,
        row: index(value, "first")?,
        line: lines.first().and_then(text),
        lines: lines.len(),
        old_lines: array(value, "old").len(),
    })
}

/// A piece of a prompt.
fn part(value: &Value) -> Option<PromptPart> {
    let source = match get(value, "type")?.as_str()? {
        "text" => return string(value, "text").map(PromptPart::Text),
        "file" => Source::File {
            path: PathBuf::from(string(value, "path")?),
            lines: integer(value, "first").zip(integer(value, "last")),
        },
        "context" => Source::Text { name: string(value, "name")?, text: string(value, "text")? },
        "diff" => Source::Diff,
        _ => return None,
    };
    Some(PromptPart::Mention { label: string(value, "label")?, source })
}

/// The value of a key of a map.
/// A command of the user.
fn wanted(arguments: &Value) -> TerminalWanted {
    let env = named(arguments, "env").into_iter().filter_map(|(name, value)| Some((name, text(value)?))).collect();
    TerminalWanted {
        command: string(arguments, "command").unwrap_or_default(),
        args: array(arguments, "args").iter().filter_map(text).collect(),
        env,
        cwd: None,
        output_byte_limit: Some(0),
    }
}

pub(crate) fn get<'a>(map: &'a Value, key: &str) -> Option<&'a Value> {
    map.as_map()?.iter().find(|(known, _)| known.as_str() == Some(key)).map(|(_, value)| value)
}

/// A text; bytes that are no UTF-8 are replaced, as Neovim's strings may hold anything.
pub(crate) fn string(map: &Value, key: &str) -> Option<String> {
    get(map, key).and_then(text)
}

/// A value as text.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(String::from_utf8_lossy(text.as_bytes()).into_owned()),
        _ => None,
    }
}

/// A whole number that is not negative. Lua may send it as a float.
pub(crate) fn integer(map: &Value, key: &str) -> Option<u64> {
    let value = get(map, key)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and in range")]
    value.as_u64().or_else(|| {
        value.as_f64().filter(|float| float.fract() == 0.0 && (0.0..9e15).contains(float)).map(|float| float as u64)
    })
}

/// A row number.
fn index(map: &Value, key: &str) -> Option<usize> {
    usize::try_from(integer(map, key)?).ok()
}

/// A list; an empty one if there is none.
pub(crate) fn array<'a>(map: &'a Value, key: &str) -> &'a [Value] {
    get(map, key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A map with names for keys; empty if there is none. An empty Lua table arrives as a list.
pub(crate) fn named<'a>(map: &'a Value, key: &str) -> BTreeMap<String, &'a Value> {
    let pairs = get(map, key).and_then(Value::as_map).map(Vec::as_slice).unwrap_or_default();
    pairs.iter().filter_map(|(name, value)| Some((text(name)?, value))).collect()
}
