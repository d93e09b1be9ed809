//! Prompts, the queue of those that wait, turns, and their cancelling.

use std::collections::BTreeSet;
use std::path::Path;

use super::attribution::Doings;
use super::config::duration_text;
use super::effect::{Effect, GatherJob, Show, UserEvent};
use super::event::TimerKey;
use super::ids::{ChatId, ConnId, PromptId, SessionId, TurnId};
use super::message::{AgentCall, AgentNotice, RpcError};
use super::prompt::{Composed, Found, PromptBlock, PromptCapabilities, PromptPart, compose, looked_up, written};
use super::rejections::Rejection;
use super::reopen::retell;
use super::sessions::sign_in_hint;
use super::state::{PendingCall, Prompt, Session, State, Turn};
use super::summary::TurnRecord;
use super::tool_call::ToolStatus;
use super::transcript::Severity;

impl State {
    /// Sends a prompt, or queues it while that cannot be done yet.
    pub(super) fn prompt(&mut self, id: ChatId, prompt: PromptId, parts: Vec<PromptPart>) {
        let Some(chat) = self.chats.get_mut(&id) else {
            self.emit(Show::TakenBack(id, prompt, written(&parts)));
            self.warn("That chat is closed; `:AgentChat open` opens a new one.");
            return;
        };
        // A prompt is a wish to talk: start what is not there. A restart takes back what was queued before, but not this.
        let has_failed = matches!(chat.session, Session::Failed(_));
        if has_failed {
            self.restart(id);
        }
        let Some(chat) = self.chats.get_mut(&id) else { return };
        chat.newest = chat.newest.max(Some(prompt));
        chat.queue.push_back(Prompt { id: prompt, parts });
        match chat.session {
            Session::None => self.start_session(id),
            Session::Failed(_) | Session::Waiting(_) | Session::Creating(..) => {}
            Session::Ready(..) => self.send_next_prompt(id),
        }
        self.show_queue(id);
    }

    /// The user decided about changes: the agent hears of what was rejected with the next prompt.
    pub(super) fn decided(&mut self, id: ChatId, path: &Path, rejected: Vec<Rejection>, pending: &[u64]) {
        if let Some(chat) = self.chats.get_mut(&id) {
            chat.rejections.withdraw(path, pending);
            chat.rejections.add(path, rejected);
        }
    }

    /// Gives a prompt that still waits back to the user.
    pub(super) fn take_back(&mut self, id: ChatId, prompt: PromptId) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let Some(position) = chat.queue.iter().position(|queued| queued.id == prompt) else {
            self.warn("That prompt was sent already; `:AgentChat cancel` stops the turn.");
            return;
        };
        if let Some(queued) = chat.queue.remove(position) {
            self.emit(Show::TakenBack(id, queued.id, written(&queued.parts)));
            self.show_queue(id);
        }
    }

    /// Gives all prompts that wait back to the user.
    pub(super) fn take_back_all(&mut self, id: ChatId) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let queue = std::mem::take(&mut chat.queue);
        if queue.is_empty() {
            return;
        }
        for queued in queue {
            self.emit(Show::TakenBack(id, queued.id, written(&queued.parts)));
        }
        self.show_queue(id);
    }

    fn show_queue(&mut self, id: ChatId) {
        let Some(chat) = self.chats.get(&id) else { return };
        let queue = chat
            .queue
            .iter()
            .map(|queued| {
                let text = written(&queued.parts);
                let first = text.lines().find(|line| !line.trim().is_empty());
                (queued.id, first.unwrap_or_default().to_owned())
            })
            .collect();
        let newest = chat.newest;
        self.emit(Show::Queued(id, queue, newest));
        self.touch(id);
    }

    /// Begins a turn with the oldest prompt that waits, if nothing is in its way. What it mentions is looked up first;
    /// meanwhile it stays in the queue, and may be taken back or cancelled like any other.
    pub(super) fn send_next_prompt(&mut self, id: ChatId) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let Session::Ready(conn, _) = chat.session else { return };
        if chat.turn.is_some() {
            return;
        }
        let Some(prompt) = chat.queue.front() else { return };
        let sources = looked_up(&prompt.parts);
        if sources.is_empty() {
            self.begin_turn(id, Vec::new());
        } else if chat.gathering != Some(prompt.id) {
            chat.gathering = Some(prompt.id);
            let (prompt, cwd) = (prompt.id, chat.cwd.clone());
            let takes = self.connections.get(&conn).map(|connection| connection.takes).unwrap_or_default();
            self.effects.push(Effect::Gather(GatherJob { chat: id, prompt, cwd, sources, takes }));
        }
    }

    /// What a prompt mentions is there. It may have been taken back meanwhile, or the session may be another one.
    pub(super) fn gathered(&mut self, id: ChatId, prompt: PromptId, found: Vec<Found>) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        if chat.gathering != Some(prompt) {
            return;
        }
        chat.gathering = None;
        let is_next = chat.queue.front().is_some_and(|queued| queued.id == prompt);
        if is_next && chat.turn.is_none() {
            self.begin_turn(id, found);
        } else {
            self.send_next_prompt(id);
        }
    }

    /// Sends the prompt at the head of the queue; `found` is what its mentions stand for.
    fn begin_turn(&mut self, id: ChatId, found: Vec<Found>) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let Session::Ready(conn, session) = chat.session.clone() else { return };
        let Some(prompt) = chat.queue.pop_front() else { return };
        self.open_turn(id, false);
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let text = written(&prompt.parts);
        let change = chat.transcript.add_prompt(&text);
        let agent = chat.agent.clone();
        let rejected = chat.rejections.take(&chat.cwd).filter(|_| self.config.tell_rejections);
        self.effects.push(Effect::Transcript(id, change));
        let takes = self.connections.get(&conn).map(|connection| connection.takes).unwrap_or_default();
        let mut composed = compose(prompt.parts, found, takes, &agent);
        self.carry_along(id, takes, &mut composed);
        for note in composed.notes {
            self.note(id, Severity::Info, note);
        }
        let mut blocks = composed.blocks;
        if let Some((told, note)) = rejected {
            // At the end: an agent's commands are known by how a prompt begins.
            blocks.push(PromptBlock::Text(format!("\n\n{told}")));
            self.note(id, Severity::Info, note);
        }
        self.send_turn(id, conn, session, blocks);
    }

    /// A turn begins; `is_again` if its prompt was refused before.
    pub(super) fn open_turn(&mut self, id: ChatId, is_again: bool) {
        let turn = self.next_turn();
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let record = TurnRecord::new(self.now, chat.usage.as_ref());
        chat.turns += 1;
        chat.doings = Doings::begin(self.now);
        chat.turn = Some(Turn {
            id: turn,
            cancelling: false,
            unfinished: BTreeSet::new(),
            record,
            grants: Vec::new(),
            sent: Vec::new(),
            is_again,
        });
        chat.transcript.begin_turn();
        chat.follow.begin_turn();
    }

    /// The prompt of the turn that has begun goes to the agent.
    pub(super) fn send_turn(&mut self, id: ChatId, conn: ConnId, session: SessionId, blocks: Vec<PromptBlock>) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let (number, root) = (chat.turns, chat.cwd.clone());
        let Some(turn) = chat.turn.as_mut() else { return };
        turn.sent.clone_from(&blocks);
        let turn = turn.id;
        // Before the agent hears of it.
        self.effects.push(Effect::BeginTurn(id, number, root));
        self.call(conn, PendingCall::Prompt(id, turn), AgentCall::Prompt { session, blocks });
        self.emit(Show::UserEvent(UserEvent::TurnStart(id, number)));
        self.show_queue(id);
    }

    /// Puts what the agent forgot, and the user wants it to know, in front of a prompt.
    fn carry_along(&mut self, id: ChatId, takes: PromptCapabilities, composed: &mut Composed) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let Some(carried) = chat.carry.take() else { return };
        let Some(entries) = chat.transcript.entries().get(carried) else { return };
        let text = retell(entries);
        chat.lost = None;
        composed.notes.push(format!("What was said before went along, {} bytes of text.", text.len()));
        composed.blocks.insert(
            0,
            if takes.embedded_context {
                PromptBlock::Resource { uri: "agentchat:///conversation".to_owned(), text }
            } else {
                PromptBlock::Text(format!("{text}\n\n# Now\n\n"))
            },
        );
    }

    /// The agent ended its turn.
    pub(super) fn turn_ended(&mut self, id: ChatId, turn: TurnId, stop_reason: &str, tokens: Option<u64>) {
        if !self.is_current(id, turn) {
            return;
        }
        self.count_tokens(id, tokens);
        self.end_turn(id, stop_reason);
        if let Some(text) = stop_text(stop_reason) {
            self.note(id, Severity::Stop, text);
        }
        self.send_next_prompt(id);
    }

    /// The agent answered a prompt with an error.
    pub(super) fn prompt_failed(&mut self, id: ChatId, turn: TurnId, error: &RpcError) {
        if !self.is_current(id, turn) {
            return;
        }
        let running = self.chats.get_mut(&id).and_then(|chat| chat.turn.as_mut());
        let resend = running.and_then(|turn| (!turn.is_again).then(|| std::mem::take(&mut turn.sent)));
        self.end_turn(id, "error");
        let conn = self.chats.get(&id).and_then(|chat| chat.session.conn());
        if let Some(conn) = conn.filter(|_| error.code == Some(RpcError::AUTH_REQUIRED))
            && self.wants_sign_in(id, conn, error, resend)
        {
            return;
        }
        let text = format!("The agent could not go on: {error}.{}", sign_in_hint(error));
        self.note(id, Severity::Error, text.clone());
        self.emit(Show::UserEvent(UserEvent::Error(id, text)));
        self.send_next_prompt(id);
    }

    fn is_current(&self, id: ChatId, turn: TurnId) -> bool {
        self.chats.get(&id).and_then(|chat| chat.turn.as_ref()).is_some_and(|running| running.id == turn)
    }

    /// Ends the running turn, if there is one: calls that did not come to their end are settled, the prompt is free.
    pub(super) fn end_turn(&mut self, id: ChatId, stop_reason: &str) {
        self.end_proposals(id);
        let Some(turn) = self.chats.get_mut(&id).and_then(|chat| chat.turn.take()) else { return };
        let status = if turn.cancelling { ToolStatus::Cancelled } else { ToolStatus::Unfinished };
        for tool in turn.unfinished {
            self.settle_tool(id, &tool, status.clone());
        }
        self.cancel_permissions_of_turn(turn.id);
        self.cancel_elicitations(id);
        self.disk_at_end(id);
        self.summarize(id, &turn.record);
        self.effects.push(Effect::ClearTimer(TimerKey::CancelGrace(id)));
        self.end_trail(id);
        self.emit(Show::UserEvent(UserEvent::TurnEnd(id, stop_reason.to_owned())));
        self.touch(id);
    }

    /// Stops what runs; a second time, or after the grace time, without the agent's consent.
    pub(super) fn cancel(&mut self, id: ChatId) {
        let Some(chat) = self.chats.get(&id) else {
            self.warn("There is nothing to cancel.");
            return;
        };
        match (&chat.turn, &chat.session) {
            (Some(turn), _) if turn.cancelling => self.force_end(id, "after a second cancel"),
            (Some(_), _) => self.cancel_turn(id),
            (None, _) if !chat.queue.is_empty() => {
                self.take_back_all(id);
                self.note(id, Severity::Info, "Cancelled before it was sent; the text is back in the prompt.");
            }
            (None, Session::Waiting(_) | Session::Creating(..)) => self.cancel_start(id),
            // An agent may ask outside of a turn too.
            (None, Session::Ready(conn, session)) if self.is_asked(id) || self.waiting_elicitations(id) > 0 => {
                let (conn, session) = (*conn, session.clone());
                self.effects.push(Effect::Notify(conn, AgentNotice::Cancel { session }));
                self.cancel_permissions(id);
                self.cancel_elicitations(id);
            }
            (None, _) => self.warn("Nothing is running."),
        }
    }

    fn cancel_turn(&mut self, id: ChatId) {
        // What was queued before the cancel belongs to what the user no longer wants.
        self.take_back_all(id);
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let Some(turn) = chat.turn.as_mut() else { return };
        turn.cancelling = true;
        let unfinished: Vec<String> = turn.unfinished.iter().cloned().collect();
        let session = chat.session.clone();
        for tool in unfinished {
            self.settle_tool(id, &tool, ToolStatus::Cancelled);
        }
        if let Session::Ready(conn, session) = session {
            self.effects.push(Effect::Notify(conn, AgentNotice::Cancel { session }));
        }
        self.cancel_permissions(id);
        self.cancel_elicitations(id);
        let due = self.now.plus(self.config.timeouts.cancel_grace);
        self.effects.push(Effect::SetTimer(TimerKey::CancelGrace(id), due));
        self.touch(id);
    }

    pub(super) fn cancel_is_late(&mut self, id: ChatId) {
        let cancelling = self.chats.get(&id).and_then(|chat| chat.turn.as_ref()).is_some_and(|turn| turn.cancelling);
        if cancelling {
            let grace = duration_text(self.config.timeouts.cancel_grace);
            self.force_end(id, &format!("{grace} after the cancel"));
        }
    }

    /// Ends the turn although the agent did not: its answer, should it still come, is nobody's.
    fn force_end(&mut self, id: ChatId, when: &str) {
        let Some(agent) = self.chats.get(&id).map(|chat| chat.agent.clone()) else { return };
        self.end_turn(id, "cancelled");
        self.note(
            id,
            Severity::Stop,
            format!(
                "Ended here {when}, although {agent} did not end the turn. What it still sends is shown; \
                 `:AgentChat restart` ends its process."
            ),
        );
        self.send_next_prompt(id);
    }
}

/// What a stop reason means to the user; nothing for the ordinary one.
fn stop_text(stop_reason: &str) -> Option<String> {
    Some(match stop_reason {
        "end_turn" => return None,
        "cancelled" => "Cancelled.".to_owned(),
        "max_tokens" => "Stopped: the answer reached the model's token limit.".to_owned(),
        "max_turn_requests" => "Stopped: the turn reached the agent's limit of model requests.".to_owned(),
        "refusal" => "Refused: the agent will not go on, and forgets this prompt and what followed it.".to_owned(),
        other => format!("Stopped: {other}."),
    })
}
