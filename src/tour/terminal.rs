//! Commands in terminals of the client.

use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, CreateTerminalRequest, CreateTerminalResponse, ReleaseTerminalRequest, SessionId, Terminal,
    TerminalId, TerminalOutputRequest, TerminalOutputResponse, ToolCallContent, ToolCallId, ToolCallStatus,
    ToolCallUpdateFields, WaitForTerminalExitRequest, WaitForTerminalExitResponse,
};
use serde_json::Value;

use super::project::Command;
use super::stage::{Played, Setting, Stage, usable};
use crate::serving::{Answer, Gone, Peer};

/// The most output of a command that the guide asks for, in bytes; it reads only the last line.
const OUTPUT_LIMIT: u64 = 64 * 1024;

/// How a command has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ran {
    /// `None` when a signal ended it.
    pub(super) code: Option<u32>,
    /// The last line of its output that is not blank.
    pub(super) last_line: String,
}

/// The terminals of one turn.
#[derive(Default)]
pub(super) struct Terminals {
    open: Vec<TerminalId>,
    /// One that the client has been asked for. Kept here, and not in the step that waits for it, so that a cancel in
    /// between does not leave the terminal behind.
    to_come: Option<Answer<CreateTerminalResponse>>,
}

impl Stage<'_> {
    /// Runs the command in a terminal of the client, shows it in the call, and ends the call.
    /// `Err` holds the reason for the user.
    pub(super) async fn run(&mut self, call: &ToolCallId, command: &Command) -> Played<Result<Ran, String>> {
        self.progress(call).await?;
        let ended = self.run_in_terminal(call, command).await?;
        match &ended {
            Ok(ran) => {
                let status = if ran.code == Some(0) { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
                self.end_call(call, status, ToolCallUpdateFields::new()).await?;
            }
            Err(reason) => self.fail(call, reason).await?,
        }
        Ok(ended)
    }

    async fn run_in_terminal(&mut self, call: &ToolCallId, command: &Command) -> Played<Result<Ran, String>> {
        let id = match self.create_terminal(command).await? {
            Ok(id) => id,
            Err(reason) => return Ok(Err(reason)),
        };
        let shown = ToolCallContent::Terminal(Terminal::new(id.clone()));
        self.update_call(call, ToolCallUpdateFields::new().content(vec![shown])).await?;
        let session = self.setting.session.clone();
        let params = WaitForTerminalExitRequest::new(session.clone(), id.clone());
        let exit = self.request(CLIENT_METHOD_NAMES.terminal_wait_for_exit, &params).await?;
        let params = TerminalOutputRequest::new(session, id.clone());
        let output = self.request(CLIENT_METHOD_NAMES.terminal_output, &params).await?;
        self.release(&id).await?;
        Ok(exit.and_then(|exit: WaitForTerminalExitResponse| {
            let output: TerminalOutputResponse = output?;
            let last_line = output.output.lines().rev().find(|line| !line.trim().is_empty());
            Ok(Ran { code: exit.exit_status.exit_code, last_line: last_line.unwrap_or_default().trim().to_owned() })
        }))
    }

    async fn create_terminal(&mut self, command: &Command) -> Played<Result<TerminalId, String>> {
        let args = command.args.iter().map(ToString::to_string).collect();
        let params = CreateTerminalRequest::new(self.setting.session.clone(), command.program)
            .args(args)
            .cwd(self.setting.folder.clone())
            .output_byte_limit(OUTPUT_LIMIT);
        let method = CLIENT_METHOD_NAMES.terminal_create;
        let answer = self.setting.peer.start_request(method, &params).await?;
        let created = self.terminals.to_come.insert(answer).wait().await;
        self.terminals.to_come = None;
        Ok(usable(created)?.map(|response| {
            self.terminals.open.push(response.terminal_id.clone());
            response.terminal_id
        }))
    }

    async fn release(&mut self, id: &TerminalId) -> Played {
        release_terminal(&self.setting.peer, &self.setting.session, id).await?;
        self.terminals.open.retain(|open| open != id);
        Ok(())
    }

    /// Releases every terminal of a cancelled chapter, now or once it exists.
    pub(super) async fn settle_terminals(&mut self) -> Played {
        for id in std::mem::take(&mut self.terminals.open) {
            self.release(&id).await?;
        }
        if let Some(answer) = self.terminals.to_come.take() {
            release_when_created(self.setting.clone(), answer);
        }
        Ok(())
    }
}

/// The turn's end does not wait for a client that is still creating a terminal; the terminal's end does.
fn release_when_created(setting: Setting, mut answer: Answer<CreateTerminalResponse>) {
    tokio::spawn(async move {
        if let Ok(created) = answer.wait().await
            && let Err(error) = release_terminal(&setting.peer, &setting.session, &created.terminal_id).await
        {
            tracing::debug!(%error, "a terminal could not be released");
        }
    });
}

async fn release_terminal(peer: &Peer, session: &SessionId, id: &TerminalId) -> Result<(), Gone> {
    let params = ReleaseTerminalRequest::new(session.clone(), id.clone());
    // The answer says nothing that the guide could act on.
    peer.start_request::<_, Value>(CLIENT_METHOD_NAMES.terminal_release, &params).await.map(drop)
}
