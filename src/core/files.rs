//! `fs/read_text_file` and `fs/write_text_file`: checked here, done by an edge.

use std::path::PathBuf;
use std::sync::Arc;

use super::effect::{FileJob, ReadRange, Show, UserEvent};
use super::event::FileOutcome;
use super::ids::{ChatId, ConnId, OpenId, SessionId};
use super::message::{Reply, RpcError};
use super::permission::FileWork;
use super::state::State;

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
        let job = FileJob { request, session, path, confined_to };
        self.effects.push(work.effect(job.clone()));
        self.file_work.insert(request, (chat, job, work));
    }

    /// The user allowed it: the same again, without the confinement.
    pub(super) fn start_file_work(&mut self, job: FileJob) {
        if let Some((_, kept, work)) = self.file_work.get_mut(&job.request) {
            *kept = job.clone();
            self.effects.push(work.effect(job));
        }
    }

    fn reads_missing_as_empty(&self, job: &FileJob, work: &FileWork) -> bool {
        let quirks = self.connections.get(&job.session.0).map(|connection| connection.quirks).unwrap_or_default();
        quirks.missing_file_reads_empty && matches!(work, FileWork::Read(_))
    }

    pub(super) fn file_done(&mut self, request: OpenId, outcome: FileOutcome) {
        // Answered meanwhile: the agent took the request back, or the session was closed.
        let Some((chat, job, work)) = self.file_work.get(&request).cloned() else { return };
        let reply = match outcome {
            FileOutcome::Outside(resolved) => {
                self.ask_gate(chat, job, &work, &resolved);
                return;
            }
            FileOutcome::Read(text) => Reply::Content(text),
            FileOutcome::Written => {
                if let Some(turn) = self.chats.get_mut(&chat).and_then(|chat| chat.turn.as_mut()) {
                    turn.record.wrote(&job.path);
                }
                self.emit(Show::UserEvent(UserEvent::FileChanged(chat, job.path)));
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
