//! `fs/read_text_file` and `fs/write_text_file`: checked here, done by an edge.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::effect::{Effect, FileJob, ReadRange, Show, UserEvent};
use super::event::{FileOutcome, TimerKey};
use super::ids::{ChatId, ConnId, OpenId, SessionId};
use super::message::{Reply, RpcError};
use super::state::State;
use super::transcript::Severity;

/// After this time, in milliseconds, the user is told what the agent waits for.
const LONG: u64 = 1_000;

/// A file operation and what it needs.
#[derive(Debug, Clone)]
pub(super) enum FileWork {
    Read(ReadRange),
    Write(Arc<str>),
}

/// A file operation that an agent waits for.
#[derive(Debug, Clone)]
pub(super) struct FileTask {
    chat: ChatId,
    session: (ConnId, SessionId),
    /// The path as the agent sent it.
    asked: PathBuf,
    work: FileWork,
    progress: Progress,
}

/// How far a file operation is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Progress {
    /// It is found out whether it may be done.
    Weighed,
    /// The user is asked.
    Asked,
    /// It may be done to this path, once what came before it is.
    Cleared(PathBuf),
    /// An edge does it.
    Running,
}

impl State {
    pub(super) fn read_file(
        &mut self,
        chat: ChatId,
        request: OpenId,
        session: (ConnId, SessionId),
        path: PathBuf,
        line: Option<u64>,
        limit: Option<u64>,
    ) {
        self.begin_file_work(chat, request, session, path, FileWork::Read(ReadRange { line, limit }));
    }

    pub(super) fn write_file(
        &mut self,
        chat: ChatId,
        request: OpenId,
        session: (ConnId, SessionId),
        path: PathBuf,
        content: Arc<str>,
    ) {
        self.begin_file_work(chat, request, session, path, FileWork::Write(content));
    }

    fn begin_file_work(
        &mut self,
        chat: ChatId,
        request: OpenId,
        session: (ConnId, SessionId),
        path: PathBuf,
        work: FileWork,
    ) {
        if !path.is_absolute() {
            let error = RpcError::new(
                RpcError::INVALID_PARAMS,
                format!("The path must be absolute, and {} is not", path.display()),
            );
            self.reply(request, Reply::Error(error));
            return;
        }
        let content = match &work {
            FileWork::Read(_) => None,
            FileWork::Write(content) => Some(content.clone()),
        };
        self.gate_file(chat, request, &path, content);
        let task = FileTask { chat, session, asked: path, work, progress: Progress::Weighed };
        self.file_work.insert(request, task);
        self.effects.push(Effect::SetTimer(TimerKey::FileWait(request), self.now.plus(LONG)));
    }

    /// The user is asked about a file operation: they need not be told that the agent waits.
    pub(super) fn file_is_asked(&mut self, request: OpenId) {
        if let Some(task) = self.file_work.get_mut(&request) {
            task.progress = Progress::Asked;
            self.effects.push(Effect::ClearTimer(TimerKey::FileWait(request)));
        }
    }

    /// A file operation may be done, to this path without links.
    pub(super) fn clear_file(&mut self, request: OpenId, resolved: PathBuf) {
        if let Some(task) = self.file_work.get_mut(&request) {
            if task.progress == Progress::Asked {
                self.effects.push(Effect::SetTimer(TimerKey::FileWait(request), self.now.plus(LONG)));
            }
            task.progress = Progress::Cleared(resolved);
        }
    }

    /// Starts what may be done. Operations on one path are done in the order in which they came: what is still
    /// weighed holds up those behind it, but a question to the user does not.
    pub(super) fn start_file_work(&mut self) {
        let mut held_up: Vec<PathBuf> = Vec::new();
        for (request, task) in &mut self.file_work {
            match &task.progress {
                Progress::Weighed => held_up.push(task.asked.clone()),
                Progress::Asked | Progress::Running => {}
                Progress::Cleared(_) if held_up.contains(&task.asked) => {}
                Progress::Cleared(path) => {
                    let job = FileJob {
                        chat: task.chat,
                        request: *request,
                        session: task.session.clone(),
                        path: path.clone(),
                    };
                    task.progress = Progress::Running;
                    self.effects.push(match &task.work {
                        FileWork::Read(range) => Effect::ReadFile(job, *range),
                        FileWork::Write(content) => Effect::WriteFile(job, content.clone()),
                    });
                }
            }
        }
    }

    /// The request is answered, or nobody waits for the answer any more.
    pub(super) fn forget_file_work(&mut self, request: OpenId) {
        if self.file_work.remove(&request).is_some() {
            self.effects.push(Effect::ClearTimer(TimerKey::FileWait(request)));
        }
    }

    /// The agent waits for a file, and the user should know that it may be up to them.
    pub(super) fn file_takes_long(&mut self, request: OpenId) {
        let Some(FileTask { chat, asked, work, .. }) = self.file_work.get(&request) else { return };
        let (chat, verb) = (*chat, if matches!(work, FileWork::Read(_)) { "read" } else { "write" });
        let path = self.shown_path(chat, asked);
        let text = format!("The agent waits to {verb} {path}: you are typing in it, or Neovim waits for you.");
        self.note(chat, Severity::Info, text);
    }

    /// The path as seen from the project, if it lies in there.
    fn shown_path(&self, chat: ChatId, path: &Path) -> String {
        let inside = self.chats.get(&chat).and_then(|chat| path.strip_prefix(&chat.cwd).ok());
        inside.unwrap_or(path).display().to_string()
    }

    /// Leaves a trace of a write that nothing else in the chat tells of.
    fn trace_write(&mut self, chat: ChatId, path: &Path, outcome: &FileOutcome) {
        let shown = self.shown_path(chat, path);
        match outcome {
            FileOutcome::Written => {
                let is_announced = self
                    .chats
                    .get(&chat)
                    .is_some_and(|chat| chat.transcript.tools_of_turn().any(|call| call.concerns(path)));
                if !is_announced {
                    self.note(chat, Severity::Info, format!("The agent wrote {shown}."));
                }
            }
            FileOutcome::Missing(why) | FileOutcome::Refused(why) | FileOutcome::Failed(why) => {
                self.note(chat, Severity::Warning, format!("The agent did not get {shown} written: {why}"));
            }
            FileOutcome::Read(_) => {}
        }
    }

    fn reads_missing_as_empty(&self, conn: ConnId, work: &FileWork) -> bool {
        let quirks = self.connections.get(&conn).map(|connection| connection.quirks).unwrap_or_default();
        quirks.missing_file_reads_empty && matches!(work, FileWork::Read(_))
    }

    pub(super) fn file_done(&mut self, request: OpenId, outcome: FileOutcome) {
        // Answered meanwhile: the agent took the request back, or the session was closed.
        let Some(FileTask { chat, session, asked, work, .. }) = self.file_work.get(&request).cloned() else { return };
        if matches!(work, FileWork::Write(_)) {
            self.trace_write(chat, &asked, &outcome);
        }
        let reply = match outcome {
            FileOutcome::Read(text) => Reply::Content(text),
            FileOutcome::Written => {
                if let Some(turn) = self.chats.get_mut(&chat).and_then(|chat| chat.turn.as_mut()) {
                    turn.record.wrote(&asked);
                }
                self.emit(Show::UserEvent(UserEvent::FileChanged(chat, asked)));
                self.look_again(chat);
                Reply::Done
            }
            FileOutcome::Missing(_) if self.reads_missing_as_empty(session.0, &work) => Reply::Content(String::new()),
            FileOutcome::Missing(text) => Reply::Error(RpcError::new(RpcError::NOT_FOUND, text)),
            FileOutcome::Refused(text) => Reply::Error(RpcError::new(RpcError::INVALID_PARAMS, text)),
            FileOutcome::Failed(text) => Reply::Error(RpcError::new(RpcError::INTERNAL, text)),
        };
        self.reply(request, reply);
    }
}
