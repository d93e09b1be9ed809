//! One session: its prompts one after the other, each of which a cancel can end.

use agent_client_protocol_schema::v1::{
    AvailableCommandsUpdate, CLIENT_METHOD_NAMES, PromptResponse, SessionNotification, SessionUpdate, StopReason,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::chapters;
use super::stage::{Interrupted, Memory, Setting, Stage};
use crate::serving::{Gone, Reply};

/// More prompts than these may not wait in one session.
const MOST_WAITING_PROMPTS: usize = 32;

/// A prompt that is to be answered.
struct Prompt {
    text: String,
    reply: Reply,
    cancelled: CancellationToken,
}

/// The way into a running session. Dropped, the session ends once its prompts are answered.
pub(super) struct Session {
    prompts: mpsc::Sender<Prompt>,
    /// The parent of the tokens of all prompts since the last cancel.
    cancel: CancellationToken,
}

impl Session {
    /// A session, and the task that plays it.
    pub(super) fn new(setting: Setting) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (prompts, waiting) = mpsc::channel(MOST_WAITING_PROMPTS);
        let session = Self { prompts, cancel: CancellationToken::new() };
        (session, play(setting, waiting))
    }

    /// Has the prompt answered when its turn has come; gives the duty back when too many wait.
    pub(super) fn prompt(&self, text: String, reply: Reply) -> Result<(), Reply> {
        let prompt = Prompt { text, reply, cancelled: self.cancel.child_token() };
        self.prompts.try_send(prompt).map_err(|error| error.into_inner().reply)
    }

    /// Cancels the running turn and the prompts that wait, but none that comes later.
    pub(super) fn cancel(&mut self) {
        std::mem::take(&mut self.cancel).cancel();
    }
}

async fn play(setting: Setting, mut prompts: mpsc::Receiver<Prompt>) {
    let mut memory = Memory::default();
    while let Some(prompt) = prompts.recv().await {
        if let Err(Gone) = turn(&setting, &mut memory, prompt).await {
            return;
        }
    }
}

async fn turn(setting: &Setting, memory: &mut Memory, prompt: Prompt) -> Result<(), Gone> {
    let mut stage = Stage::new(setting, memory);
    let played = tokio::select! {
        biased;
        () = prompt.cancelled.cancelled() => Err(Interrupted::Cancelled),
        played = chapters::play(&mut stage, &prompt.text) => played,
    };
    let reason = match played {
        Ok(()) => StopReason::EndTurn,
        Err(Interrupted::Cancelled) => {
            // Nothing interrupts the settling but the client's end.
            stage.settle().await.map_err(|_| Gone)?;
            StopReason::Cancelled
        }
        Err(Interrupted::Gone(gone)) => return Err(gone),
    };
    prompt.reply.send(Ok(PromptResponse::new(reason))).await
}

/// Tells the client the slash commands.
pub(super) async fn announce_commands(setting: &Setting) -> Result<(), Gone> {
    let commands = AvailableCommandsUpdate::new(chapters::commands());
    let update = SessionUpdate::AvailableCommandsUpdate(commands);
    let notification = SessionNotification::new(setting.session.clone(), update);
    setting.peer.notify(CLIENT_METHOD_NAMES.session_update, &notification).await
}
