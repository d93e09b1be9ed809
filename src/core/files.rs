//! `fs/read_text_file` and `fs/write_text_file`: checked here, done by an edge.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::effect::{Effect, FileJob, ReadRange, Show, UserEvent};
use super::event::{FileOutcome, TimerKey};
use super::ids::{ChatId, ConnId, OpenId, SessionId};
use super::message::{Reply, RpcError};
use super::permission::FileWork;
use super::state::State;
use super::transcript::Severity;

/// After this time, in milliseconds, the user is told what the agent waits for.
const LONG: u64 = 1_000;

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
        let confined_to = self.chats.get(&chat).map(|chat| chat.cwd.clone());
        let job = FileJob { chat, request, session, path, confined_to };
        self.file_work.insert(request, (chat, job.clone(), work));
        self.start_file_work(job);
    }

    /// Starts the operation, or does the same again without the confinement once the user allowed it.
    pub(super) fn start_file_work(&mut self, job: FileJob) {
        let request = job.request;
        if let Some((_, kept, work)) = self.file_work.get_mut(&request) {
            *kept = job.clone();
            self.effects.push(work.effect(job));
            self.effects.push(Effect::SetTimer(TimerKey::FileWait(request), self.now.plus(LONG)));
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
        let Some((chat, job, work)) = self.file_work.get(&request) else { return };
        let (chat, verb) = (*chat, if matches!(work, FileWork::Read(_)) { "read" } else { "write" });
        let path = self.shown_path(chat, &job.path);
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
            FileOutcome::Read(_) | FileOutcome::Outside(_) => {}
        }
    }

    fn reads_missing_as_empty(&self, job: &FileJob, work: &FileWork) -> bool {
        let quirks = self.connections.get(&job.session.0).map(|connection| connection.quirks).unwrap_or_default();
        quirks.missing_file_reads_empty && matches!(work, FileWork::Read(_))
    }

    pub(super) fn file_done(&mut self, request: OpenId, outcome: FileOutcome) {
        // Answered meanwhile: the agent took the request back, or the session was closed.
        let Some((chat, job, work)) = self.file_work.get(&request).cloned() else { return };
        if matches!(work, FileWork::Write(_)) {
            self.trace_write(chat, &job.path, &outcome);
        }
        let reply = match outcome {
            // Nobody is asked anything about what is being cancelled.
            FileOutcome::Outside(_) if self.is_cancelling(chat) => {
                Reply::Error(RpcError::new(RpcError::CANCELLED, "The turn is being cancelled"))
            }
            FileOutcome::Outside(resolved) => {
                self.effects.push(Effect::ClearTimer(TimerKey::FileWait(request)));
                self.ask_gate(chat, job, &work, &resolved);
                return;
            }
            FileOutcome::Read(text) => Reply::Content(text),
            FileOutcome::Written => {
                if let Some(turn) = self.chats.get_mut(&chat).and_then(|chat| chat.turn.as_mut()) {
                    turn.record.wrote(&job.path);
                }
                self.emit(Show::UserEvent(UserEvent::FileChanged(chat, job.path)));
                self.look_again(chat);
                Reply::Done
            }
            FileOutcome::Missing(_) if self.reads_missing_as_empty(&job, &work) => Reply::Content(String::new()),
            FileOutcome::Missing(text) => Reply::Error(RpcError::new(RpcError::NOT_FOUND, text)),
            FileOutcome::Refused(text) => Reply::Error(RpcError::new(RpcError::INVALID_PARAMS, text)),
            FileOutcome::Failed(text) => Reply::Error(RpcError::new(RpcError::INTERNAL, text)),
        };
        self.reply(request, reply);
    }
}
