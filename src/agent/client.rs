//! What the client offers: the session's updates, its files, its terminals, its user. Where it offers no files or terminals,
//! ours take their place.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, ClientCapabilities, CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest,
    PermissionOption, PermissionOptionKind, ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SessionId, SessionNotification,
    SessionUpdate, TerminalId, TerminalOutputRequest, TerminalOutputResponse, ToolCallUpdate,
    WaitForTerminalExitRequest, WriteTextFileRequest,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::tools::shell;
use crate::files::disk;
use crate::serving::{Answer, Gone, Peer, RequestError};

/// Why a turn does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Interrupted {
    #[error("the user cancelled the turn")]
    Cancelled,
    #[error(transparent)]
    Gone(#[from] Gone),
}

/// The result of a step that something may interrupt.
pub(super) type Step<T = ()> = Result<T, Interrupted>;

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ran {
    pub(super) output: String,
    /// Whether the beginning of the output is missing.
    pub(super) is_cut: bool,
    pub(super) end: End,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// By itself, with this code; `None` if a signal ended it.
    Exited(Option<i64>),
    TimedOut(Duration),
}

/// One session's way to its client.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) peer: Peer,
    pub(super) session: SessionId,
    /// Where the session is, absolute.
    pub(super) folder: PathBuf,
    /// Folders that belong to it as well.
    pub(super) more_folders: Vec<PathBuf>,
    pub(super) capabilities: ClientCapabilities,
}

impl Client {
    /// Tells the client something about the session.
    pub(super) async fn update(&self, update: SessionUpdate) -> Step {
        let notification = SessionNotification::new(self.session.clone(), update);
        Ok(self.peer.notify(CLIENT_METHOD_NAMES.session_update, &notification).await?)
    }

    /// Whether commands run in terminals of the client.
    pub(super) const fn has_terminals(&self) -> bool {
        self.capabilities.terminal
    }

    /// The text of a file as the user sees it: with what they have not saved, if the client knows. The reason if it cannot be read.
    pub(super) async fn read(&self, path: &Path) -> Step<Result<String, String>> {
        if self.capabilities.fs.read_text_file {
            let params = ReadTextFileRequest::new(self.session.clone(), path);
            let answer = self.request(CLIENT_METHOD_NAMES.fs_read_text_file, &params).await?;
            return Ok(answer.map(|response: ReadTextFileResponse| response.content));
        }
        let path = path.to_owned();
        Ok(blocking(move || disk::read(&path).map_err(|error| error.to_string())).await)
    }

    /// Writes a file. The reason if that is not possible.
    pub(super) async fn write(&self, path: &Path, text: &str) -> Step<Result<(), String>> {
        if self.capabilities.fs.write_text_file {
            let params = WriteTextFileRequest::new(self.session.clone(), path, text);
            let answer = self.request(CLIENT_METHOD_NAMES.fs_write_text_file, &params).await?;
            // The result is {} or null, depending on the client.
            return Ok(answer.map(|_: Value| ()));
        }
        let (path, text) = (path.to_owned(), text.to_owned());
        Ok(blocking(move || disk::write(&path, &text).map_err(|error| error.to_string())).await)
    }

    /// Asks the user. What they chose; an error if the client's answer is of no use.
    pub(super) async fn ask(
        &self,
        call: ToolCallUpdate,
        options: Vec<PermissionOption>,
    ) -> Step<Result<PermissionOptionKind, String>> {
        let params = RequestPermissionRequest::new(self.session.clone(), call, options.clone());
        let chosen = match self.request(CLIENT_METHOD_NAMES.session_request_permission, &params).await? {
            Ok(RequestPermissionResponse { outcome: RequestPermissionOutcome::Selected(selected), .. }) => {
                selected.option_id
            }
            // Whoever answers so has cancelled the turn, even when their session/cancel comes later or not at all.
            Ok(_) => return Err(Interrupted::Cancelled),
            Err(reason) => return Ok(Err(reason)),
        };
        let kind = options.iter().find(|option| option.option_id == chosen).map(|option| option.kind);
        Ok(kind.ok_or_else(|| format!("the answer names the unknown option \"{chosen}\"")))
    }

    /// A request whose refusal is a reason for the model.
    async fn request<P: Serialize, R: DeserializeOwned>(&self, method: &str, params: &P) -> Step<Result<R, String>> {
        usable(self.peer.request(method, params).await)
    }
}

fn usable<R>(answer: Result<R, RequestError>) -> Step<Result<R, String>> {
    match answer {
        Ok(result) => Ok(Ok(result)),
        Err(RequestError::Gone(gone)) => Err(gone.into()),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// Runs what waits for the disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(error.to_string()))
}

/// The terminals of one turn. Kept here, and not in the step that waits for them, so that a cancel leaves none behind.
#[derive(Default)]
pub(super) struct Terminals {
    open: Vec<TerminalId>,
    /// One that the client has been asked for.
    to_come: Option<Answer<CreateTerminalResponse>>,
}

impl Terminals {
    /// Starts a command line in a terminal. The reason if that is not possible.
    pub(super) async fn start(
        &mut self,
        client: &Client,
        command: &str,
        cwd: &Path,
        limit: u64,
    ) -> Step<Result<TerminalId, String>> {
        let [program, flag] = shell::SHELL;
        let params = CreateTerminalRequest::new(client.session.clone(), program)
            .args(vec![flag.to_owned(), command.to_owned()])
            .cwd(cwd.to_owned())
            .output_byte_limit(limit);
        let answer = client.peer.start_request(CLIENT_METHOD_NAMES.terminal_create, &params).await?;
        let created = self.to_come.insert(answer).wait().await;
        self.to_come = None;
        Ok(usable(created)?.map(|response| {
            self.open.push(response.terminal_id.clone());
            response.terminal_id
        }))
    }

    /// Waits for the command's end, and ends it after `limit`; its output.
    pub(super) async fn wait(
        &mut self,
        client: &Client,
        id: &TerminalId,
        limit: Duration,
    ) -> Step<Result<Ran, String>> {
        let params = WaitForTerminalExitRequest::new(client.session.clone(), id.clone());
        let ended = client.request::<_, Value>(CLIENT_METHOD_NAMES.terminal_wait_for_exit, &params);
        let end = if let Ok(answer) = tokio::time::timeout(limit, ended).await {
            match answer? {
                Ok(status) => End::Exited(status.get("exitCode").and_then(Value::as_i64)),
                Err(reason) => return Ok(Err(reason)),
            }
        } else {
            let params = KillTerminalRequest::new(client.session.clone(), id.clone());
            // What it had written is still there.
            let _ = client.request::<_, Value>(CLIENT_METHOD_NAMES.terminal_kill, &params).await?;
            End::TimedOut(limit)
        };
        let params = TerminalOutputRequest::new(client.session.clone(), id.clone());
        let output = client.request(CLIENT_METHOD_NAMES.terminal_output, &params).await?;
        Ok(output.map(|output: TerminalOutputResponse| Ran { output: output.output, is_cut: output.truncated, end }))
    }

    /// Lets go of a terminal whose call is over.
    pub(super) async fn release(&mut self, client: &Client, id: &TerminalId) -> Step {
        release(client, id).await?;
        self.open.retain(|open| open != id);
        Ok(())
    }

    /// Ends every terminal of a cancelled turn, now or once it exists.
    pub(super) async fn settle(&mut self, client: &Client) -> Step {
        for id in std::mem::take(&mut self.open) {
            release(client, &id).await?;
        }
        if let Some(mut answer) = self.to_come.take() {
            let client = client.clone();
            // The turn's end does not wait for a client that is still creating a terminal; the terminal's end does.
            tokio::spawn(async move {
                if let Ok(created) = answer.wait().await
                    && let Err(error) = release(&client, &created.terminal_id).await
                {
                    tracing::debug!(%error, "a terminal could not be released");
                }
            });
        }
        Ok(())
    }
}

async fn release(client: &Client, id: &TerminalId) -> Step {
    let params = ReleaseTerminalRequest::new(client.session.clone(), id.clone());
    // The answer says nothing that could be acted on.
    client.peer.start_request::<_, Value>(CLIENT_METHOD_NAMES.terminal_release, &params).await?;
    Ok(())
}
