//! The pure core: what happens is an [`Event`], what is to be done about it an [`Effect`].
//!
//! Invariants, each with a test:
//! * no IO, no clock, no locks in here: time comes with every event;
//! * an agent's request is answered exactly once, or its process has ended ([`requests`]);
//! * whatever an agent sends costs at most that message: unknown parts are kept and shown, unknown methods are answered;
//! * the cost of a chunk does not depend on how many came before.

pub mod attribution;
pub mod choices;
pub mod config;
pub mod effect;
pub mod elicitation;
pub mod event;
pub mod follow;
pub mod ids;
pub mod mcp;
pub mod message;
pub mod permission;
pub mod plan;
pub mod prompt;
pub mod quirks;
pub mod rejections;
pub mod requests;
pub mod setup;
pub mod state;
pub mod status;
pub mod text;
pub mod tool_call;
pub mod transcript;

mod connection;
mod disk;
mod files;
mod listing;
mod prompting;
mod proposing;
mod reopen;
mod sessions;
pub mod sign_in;
mod summary;
mod terminals;
#[cfg(test)]
mod tests;
mod updates;

use effect::Effect;
use event::{Event, TimerKey, UserAction};
use ids::Millis;
pub use state::State;

/// Lets `event` happen at `now`, and tells what is to be done.
pub fn step(state: &mut State, event: Event, now: Millis) -> Vec<Effect> {
    state.now = now;
    match event {
        Event::User(action) => state.user(action),
        Event::Agent(conn, message) => state.agent(conn, message),
        Event::Spawned(conn) => state.spawned(conn),
        Event::Gone(conn, departure) => state.gone(conn, &departure),
        Event::Weighed(request, weighed) => state.weighed(request, weighed),
        Event::FileDone(request, outcome) => state.file_done(request, outcome),
        Event::TerminalStarted(request, terminal, result) => state.terminal_started(request, terminal, result),
        Event::TerminalRead(request, terminal, text, truncated) => {
            state.terminal_read(request, terminal, text, truncated);
        }
        Event::TerminalExited(terminal, exit) => state.terminal_exited(terminal, &exit),
        Event::TerminalTail(chat, name, tail) => state.terminal_tail(chat, &name, &tail),
        Event::DiskChanged(changes) => state.disk_changed(changes),
        Event::Adopted(chat, path, how) => state.adopted(chat, path, how),
        Event::TurnsBefore(chat, turns) => state.turns_before(chat, turns),
        Event::Undone(chat, report) => state.undone(chat, report),
        Event::Gathered(chat, prompt, found) => state.gathered(chat, prompt, found),
        Event::Looked(chat, looks) => state.looked(chat, looks),
        Event::Timer(TimerKey::Initialize(conn)) => state.initialize_is_late(conn),
        Event::Timer(TimerKey::NewSession(chat)) => state.new_session_is_late(chat),
        Event::Timer(TimerKey::CancelGrace(chat)) => state.cancel_is_late(chat),
        Event::Timer(TimerKey::Weigh(request)) => state.weighing_is_late(request),
        Event::Timer(TimerKey::FileWait(request)) => state.file_takes_long(request),
        Event::Timer(TimerKey::Follow(chat)) => state.follow_timer(chat),
        Event::Recalled(chat, recalled) => state.recalled(chat, recalled),
        Event::Timer(TimerKey::List(question)) => state.list_is_late(question),
        Event::Timer(TimerKey::Unused(conn)) => state.stop_unused(conn),
    }
    state.show_touched();
    std::mem::take(&mut state.effects)
}

impl State {
    fn user(&mut self, action: UserAction) {
        match action {
            UserAction::Open { chat, agent, cwd, known } => self.open_chat(chat, agent, cwd, known),
            UserAction::ListSessions { question, agent, cwd, at } => self.list_sessions(question, agent, cwd, &at),
            UserAction::DeleteSession { agent, session, key } => self.delete_session(&agent, session, key),
            UserAction::TakeAlong(chat) => self.take_along(chat),
            UserAction::Close(chat) => self.close_chat(chat),
            UserAction::Prompt { chat, id, parts } => self.prompt(chat, id, parts),
            UserAction::TakeBack(chat, id) => self.take_back(chat, id),
            UserAction::Cancel(chat) => self.cancel(chat),
            UserAction::Authenticate(chat, method) => self.authenticate(chat, method),
            UserAction::SignOut(chat) => self.sign_out(chat),
            UserAction::SignedIn(chat) => self.signed_in(chat),
            UserAction::SetOption { chat, option, value } => self.set_option(chat, &option, &value),
            UserAction::Respond { request, option } => self.respond(request, &option),
            UserAction::Elicitation(request, answer) => self.answer_elicitation(request, answer),
            UserAction::RunCommand { run, chat, wanted, cwd } => self.run_command(run, chat, *wanted, cwd),
            UserAction::KillTerminal(terminal) => self.kill_terminal(terminal),
            UserAction::Undo { chat, turn, replace } => self.undo(chat, turn, replace),
            UserAction::Decided { chat, path, rejected, pending } => self.decided(chat, &path, rejected, &pending),
            UserAction::Restart(chat) => self.restart(chat),
            UserAction::Shutdown => self.shut_down(),
        }
    }
}
