//! The helper's owner task: it feeds events to the core, carries out the effects, and sends frames.

mod keeping;
mod records;
mod settings;
mod weigh;
mod world;

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use nvim_rs::Neovim;
use rmpv::Value;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use crate::acp::connection::{Connection, QUEUE};
use crate::checkpoint::Checkpoints;
use crate::core::effect::{Effect, GatherJob, LookJob, MessageLevel};
use crate::core::event::{Departure, Event, FileOutcome, TimerKey, UserAction};
use crate::core::follow::Look;
use crate::core::ids::{ChatId, ConnId, Millis, OpenId, TerminalId};
use crate::core::prompt::Found;
use crate::core::transcript::Entry;
use crate::core::{State, step};
use crate::files::finder::{Finder, Wanted};
use crate::files::heads::Heads;
use crate::files::watch::Watch;
use crate::nvim::channel::{self, Nvim};
use crate::nvim::context;
use crate::nvim::files::Files;
use crate::nvim::frames::Frames;
use crate::nvim::hand;
use crate::nvim::incoming::{Export, FromLua, Hello, Incoming, array};
use crate::nvim::places;
use crate::nvim::terminals::{TerminalNews, Terminals};
use crate::store;
use crate::view::{export, inspect};
use records::Records;
use settings::Settings;

/// The number of the contract between Lua and the helper; `lua/agentchat/version.lua` has the same.
pub const INTERFACE: u64 = 7;
/// The Lua module that we call.
const HAND: &str = "agentchat.hand";
/// How long what Neovim has said before it went away may take to be read.
const CLOSING: Duration = Duration::from_millis(100);
/// How long the agents may take to end when Neovim goes away.
const SHUTDOWN: Duration = Duration::from_millis(1200);

/// Serves Neovim on standard input and output until it goes away.
///
/// # Errors
/// When standard input or output cannot be used.
pub async fn run() -> io::Result<()> {
    let (reader, writer) = channel::open()?;
    let (to_owner, from_lua) = mpsc::unbounded_channel();
    let (nvim, io_loop) = Neovim::new(reader, writer, Incoming::new(to_owner));
    let mut io_loop = tokio::spawn(io_loop);
    let mut owner = Owner::new(nvim, from_lua);
    tokio::select! {
        () = owner.serve() => {}
        ended = &mut io_loop => {
            match ended {
                Ok(Ok(())) => tracing::info!("Neovim closed the channel"),
                Ok(Err(error)) => tracing::info!(%error, "the channel to Neovim ended"),
                Err(error) => tracing::error!(%error, "the channel task failed"),
            }
        }
        () = terminated() => {
            tracing::info!("asked to end");
        }
    }
    owner.shut_down().await;
    owner.hear_out().await;
    owner.checkpoints.leave(false);
    Ok(())
}

/// Waits for the signal with which Neovim ends its jobs.
async fn terminated() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            terminate.recv().await;
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// Writes a file that is not there yet, or may be replaced; what to tell the user about it.
async fn export_to(wanted: &Export, text: String) -> (MessageLevel, String) {
    let path = wanted.path.display();
    let mut options = tokio::fs::OpenOptions::new();
    options.write(true).create(wanted.replace).truncate(wanted.replace).create_new(!wanted.replace);
    let written = async {
        let mut file = options.open(&wanted.path).await?;
        file.write_all(text.as_bytes()).await?;
        file.flush().await
    };
    match written.await {
        Ok(()) => (MessageLevel::Info, format!("The conversation is in {path}.")),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            (MessageLevel::Error, format!("{path} exists; `:AgentChat! export {path}` replaces it."))
        }
        Err(error) => (MessageLevel::Error, format!("{path} cannot be written ({error}); name another file.")),
    }
}

struct Owner {
    nvim: Nvim,
    files: Files,
    checkpoints: Checkpoints,
    watch: Watch,
    heads: Heads,
    /// What outlives the helper; `None` if Lua did not say where.
    store: Option<store::Handle>,
    records: Records,
    finder: Finder,
    terminals: Terminals,
    start: Instant,
    core: Option<State>,
    settings: Settings,
    connections: BTreeMap<ConnId, Connection>,
    timers: BTreeMap<TimerKey, Millis>,
    frames: Frames,
    from_lua: mpsc::UnboundedReceiver<FromLua>,
    from_agents: mpsc::Receiver<Vec<Event>>,
    to_us: mpsc::Sender<Vec<Event>>,
    finished: mpsc::UnboundedReceiver<Finished>,
    finish: mpsc::UnboundedSender<Finished>,
    from_terminals: mpsc::UnboundedReceiver<TerminalNews>,
}

/// What a task of ours brings back.
enum Finished {
    Frame(Result<Value, hand::HandError>),
    Work(Box<Event>),
    Told(MessageLevel, String),
}

impl Owner {
    fn new(nvim: Nvim, from_lua: mpsc::UnboundedReceiver<FromLua>) -> Self {
        let (to_us, from_agents) = mpsc::channel(QUEUE);
        let (finish, finished) = mpsc::unbounded_channel();
        let (news, from_terminals) = mpsc::unbounded_channel();
        let checkpoints = Checkpoints::default();
        Self {
            files: Files::new(nvim.clone(), checkpoints.clone()),
            checkpoints,
            watch: Watch::default(),
            heads: Heads::default(),
            store: None,
            records: Records::default(),
            finder: Finder::default(),
            terminals: Terminals::new(news),
            nvim,
            start: Instant::now(),
            core: None,
            settings: Settings::default(),
            connections: BTreeMap::new(),
            timers: BTreeMap::new(),
            frames: Frames::default(),
            from_lua,
            from_agents,
            to_us,
            finished,
            finish,
            from_terminals,
        }
    }

    fn now(&self) -> Millis {
        Millis(u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn instant(&self, at: Millis) -> tokio::time::Instant {
        (self.start + Duration::from_millis(at.0)).into()
    }

    /// Serves until the channel from Lua closes. The user comes first, then what our own tasks bring, then the agents.
    async fn serve(&mut self) {
        loop {
            // Here, and not when nothing else is to be done: an agent that never stops talking must not delay them.
            self.run_timers();
            if self.records.due().is_some_and(|due| due <= self.now()) {
                self.keep_records(false);
            }
            let due = self.frames.due();
            if due.is_some_and(|due| due <= self.now()) {
                self.send_frame();
            }
            let next_timer = self.timers.iter().map(|(key, at)| (*at, *key)).min();
            let frame_due = self.frames.due();
            let wake = [next_timer.map(|(at, _)| at), frame_due, self.records.due()].into_iter().flatten().min();
            let wake_at = wake.map(|at| self.instant(at));
            tokio::select! {
                biased;
                message = self.from_lua.recv() => match message {
                    Some(message) => self.lua(message),
                    None => return,
                },
                Some(finished) = self.finished.recv() => match finished {
                    Finished::Frame(result) => self.frame_answered(result),
                    Finished::Work(event) => self.happen(*event),
                    Finished::Told(level, text) => self.frames.tell(level, text),
                },
                Some(news) = self.from_terminals.recv() => self.terminal_news(&news),
                Some(batch) = self.from_agents.recv() => batch.into_iter().for_each(|event| self.happen(event)),
                () = async {
                    match wake_at {
                        Some(at) => sleep_until(at).await,
                        None => std::future::pending().await,
                    }
                } => {}
            }
        }
    }

    fn run_timers(&mut self) {
        let now = self.now();
        let due: Vec<TimerKey> = self.timers.iter().filter(|(_, at)| **at <= now).map(|(key, _)| *key).collect();
        for key in due {
            // One that ran out before may have stopped or prolonged this one.
            if self.timers.get(&key).is_some_and(|at| *at <= now) {
                self.timers.remove(&key);
                self.happen(Event::Timer(key));
            }
        }
    }

    fn lua(&mut self, message: FromLua) {
        match message {
            FromLua::Hello(hello) => self.hello(hello),
            FromLua::Action(UserAction::Open { chat, agent, cwd, known }) => {
                self.frames.open(chat, cwd.clone());
                self.happen(Event::User(UserAction::Open { chat, agent, cwd, known }));
                // Those of an earlier helper can still be undone.
                let turns = self.checkpoints.last_turn(chat);
                if turns > 0 {
                    self.happen(Event::TurnsBefore(chat, turns));
                }
            }
            FromLua::Leaving => self.checkpoints.leave(true),
            FromLua::Action(action) => {
                if matches!(action, UserAction::Close(_)) {
                    self.keep_records(true);
                }
                self.happen(Event::User(action));
            }
            FromLua::Resync(chat) => self.frames.resync(chat),
            FromLua::View(chat, rows) => self.frames.see(chat, rows),
            FromLua::Inspect(chat, entry) => self.inspect(chat, entry),
            FromLua::Export(chat, wanted) => self.export(chat, wanted),
            FromLua::Trail(chat, id) => self.trail(chat, id),
            FromLua::Permissions { id, cwd, revoke } => self.list_permissions(id, cwd, revoke),
            FromLua::FindFiles(id, wanted) => self.find_files(id, wanted),
            FromLua::TerminalInput(terminal, bytes) => self.terminals.write(terminal, bytes),
            FromLua::TerminalSize(terminal, columns, rows) => {
                self.terminals.resize(terminal, columns, rows);
                self.frames.set_terminals(true);
            }
            FromLua::FileSaved(path) => self.saved_by_user(&path),
            FromLua::OfferRejected(path) => drop(tokio::spawn(self.files.clone().take_offer_back(path))),
            FromLua::Asked(chat, rows) => self.frames.ask(chat, rows),
            FromLua::FileFree(_) => self.files.freed(),
            FromLua::MirrorGone(buf) => self.files.mirror_gone(buf),
            FromLua::ChangesPending(path, is_pending) => self.changes_pending(path, is_pending),
        }
    }

    fn inspect(&mut self, chat: ChatId, entry: usize) {
        let transcript = self.core.as_ref().and_then(|core| core.transcript(chat));
        if let Some(Entry::Tool(call)) = transcript.and_then(|transcript| transcript.entries().get(entry)) {
            let (title, lines) = inspect::lines(call);
            self.frames.inspect(chat, entry, title, lines);
        }
    }

    /// Writes a transcript to a file and tells the user how it went.
    fn export(&mut self, chat: ChatId, wanted: Export) {
        if wanted.path.extension().is_some_and(|extension| extension == "jsonl") {
            self.export_lines(chat, wanted);
            return;
        }
        let Some(core) = &self.core else { return };
        let (Some(transcript), Some(cwd)) = (core.transcript(chat), core.cwd(chat)) else { return };
        let text = export::markdown(&wanted.title, transcript, cwd);
        let finish = self.finish.clone();
        tokio::spawn(async move {
            let (level, text) = export_to(&wanted, text).await;
            // The owner is gone only when the helper ends.
            let _ = finish.send(Finished::Told(level, text));
        });
    }

    fn hello(&mut self, hello: Hello) {
        let Hello { version, interface, config, instance } = hello;
        let fits = version == env!("CARGO_PKG_VERSION") && interface == INTERFACE;
        tracing::info!(plugin = %version, interface, fits, "hello");
        let settings = Settings::from_lua(&config);
        let (config, names) = settings.core_config();
        let default_agent = config.default_agent.clone();
        if fits && self.core.is_none() {
            if let Some(state) = &settings.state {
                self.checkpoints.configure(state.join("checkpoints"), instance.as_deref(), settings.checkpoints);
                self.open_store(state);
            }
            self.serve_watch();
            self.serve_heads();
            self.files.set_save_dirty(settings.save_dirty);
            self.files.set_busy_patience(settings.busy_patience);
            self.terminals.set_environment(settings.terminal_env.clone());
            self.settings = settings;
            self.core = Some(State::new(config));
        }
        let info = Value::Map(vec![
            ("version".into(), env!("CARGO_PKG_VERSION").into()),
            ("interface".into(), INTERFACE.into()),
            ("agents".into(), Value::Array(names.into_iter().map(Value::from).collect())),
            ("default_agent".into(), default_agent.into()),
        ]);
        let answer = hand::call(&self.nvim, HAND, "ready", vec![info]);
        tokio::spawn(async move {
            if let Ok(Err(error)) = answer.await {
                tracing::error!(%error, "the handshake failed in Lua");
            }
        });
    }

    /// Lets something happen, and does what the core wants done about it.
    fn happen(&mut self, event: Event) {
        if let Event::Gone(conn, _) = &event {
            self.connections.remove(conn);
            self.files.forget(*conn);
        }
        let now = self.now();
        let Some(core) = self.core.as_mut() else {
            tracing::warn!(?event, "something happened before hello");
            return;
        };
        // A panic costs the event. The state stays usable: every step leaves collections whole, and effects that were
        // collected before it are still carried out with the next one.
        match catch_unwind(AssertUnwindSafe(|| step(core, event, now))) {
            Ok(effects) => effects.into_iter().for_each(|effect| self.carry_out(effect)),
            Err(_) => self.frames.tell(
                MessageLevel::Error,
                "agentchat met an internal error and went on; `:AgentChat log` has the details, please report it."
                    .to_owned(),
            ),
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Spawn { conn, spec, cwd } => self.spawn(conn, &spec, &cwd),
            Effect::Stop(conn) => {
                if let Some(connection) = self.connections.get_mut(&conn) {
                    connection.stop();
                }
            }
            Effect::Call(conn, id, call) => {
                if let Some(connection) = self.connections.get_mut(&conn) {
                    connection.call(id, &call);
                }
            }
            Effect::Notify(conn, notice) => {
                if let Some(connection) = self.connections.get_mut(&conn) {
                    connection.notify(&notice);
                }
            }
            Effect::Reply(token, reply) => {
                if let Some(connection) = self.connections.get_mut(&token.conn()) {
                    connection.reply(token, reply);
                }
            }
            Effect::Weigh(job) => self.weigh(job),
            Effect::Remember(answer) => self.remember(answer),
            Effect::ReadFile(job, range) => {
                let request = job.request;
                self.file_work(request, self.files.read(job, range));
            }
            Effect::WriteFile(job, content) => {
                let request = job.request;
                self.file_work(request, self.files.write(job, content));
            }
            Effect::StartTerminal(job) => {
                let (request, terminal) = (job.request, job.terminal);
                let started = self.terminals.start(&job);
                self.frames.set_terminals(true);
                self.work_done(Event::TerminalStarted(request, terminal, started));
            }
            Effect::ReadTerminal(request, terminal) => {
                let (text, truncated) = self.terminals.text(terminal);
                self.work_done(Event::TerminalRead(request, terminal, text, truncated));
            }
            Effect::ShowTerminal(shown) => {
                self.terminals.show(shown);
                self.frames.set_terminals(true);
            }
            Effect::FeedTerminal(terminal, output) => {
                self.terminals.feed(terminal, &output);
                self.frames.set_terminals(true);
            }
            Effect::EndTerminal(terminal, exit) => {
                self.terminals.end_as(terminal, exit);
                self.frames.set_terminals(true);
            }
            Effect::KillTerminal(terminal) => self.terminals.kill(terminal),
            Effect::ReleaseTerminal(terminal) => {
                self.terminals.release(terminal);
                self.frames.set_terminals(true);
            }
            Effect::Survey(_)
            | Effect::BeginTurn(..)
            | Effect::EndTurn(_)
            | Effect::NameFiles(..)
            | Effect::Look(..)
            | Effect::TakeIn(_)
            | Effect::Undo(_) => self.carry_out_on_disk(effect),
            Effect::Gather(job) => self.gather(job),
            Effect::Locate(job) => self.locate(job),
            Effect::SetTimer(key, at) => {
                self.timers.insert(key, at);
            }
            Effect::ClearTimer(key) => {
                self.timers.remove(&key);
            }
            Effect::Transcript(chat, change) => {
                let now = self.now();
                if let Some(transcript) = self.core.as_ref().and_then(|core| core.transcript(chat)) {
                    self.records.note(chat, change, now);
                    self.frames.note(chat, change, transcript);
                }
            }
            Effect::Keep(..) | Effect::Recall(..) | Effect::ForgetKept { .. } | Effect::Listed { .. } => {
                self.carry_out_in_store(effect);
            }
            Effect::Show(show) => {
                self.note_shown(&show);
                let core = self.core.as_ref();
                self.frames.show(show, |chat| core.and_then(|core| core.transcript(chat)));
            }
            Effect::ForgetSession(conn, session) => self.files.forget_session(conn, session),
            Effect::Forget(chat) => {
                self.frames.forget(chat);
                self.records.end(chat);
                self.checkpoints.forget(chat);
            }
        }
    }

    /// Something is done that an effect asked for: an event of its own, so that the core never hears of it within the step
    /// that asked for it.
    fn work_done(&self, event: Event) {
        // The receiver is ours.
        let _ = self.finish.send(Finished::Work(Box::new(event)));
    }

    fn terminal_news(&mut self, news: &TerminalNews) {
        self.frames.set_terminals(true);
        if let &TerminalNews::Ended(terminal, exit) = news {
            let exit = self.terminals.ended(terminal, exit);
            self.happen(Event::TerminalExited(terminal, exit));
        }
    }

    fn spawn(&mut self, conn: ConnId, spec: &crate::core::config::AgentSpec, cwd: &Path) {
        let started = Connection::start(conn, spec, cwd, self.settings.max_line_bytes, self.to_us.clone());
        // As an event of its own, so that the core never hears of it within the step that asked for it.
        let event = match started {
            Ok(connection) => {
                self.connections.insert(conn, connection);
                Event::Spawned(conn)
            }
            Err(problem) => Event::Gone(conn, Departure::NotStarted(problem)),
        };
        // The receiver is ours.
        let _ = self.finish.send(Finished::Work(Box::new(event)));
    }

    /// Serves a file request in a task of its own. Should that panic, the request is answered all the same.
    fn file_work(&self, request: OpenId, work: impl Future<Output = FileOutcome> + Send + 'static) {
        let finish = self.finish.clone();
        let work = tokio::spawn(work);
        tokio::spawn(async move {
            let outcome = work.await.unwrap_or_else(|_| FileOutcome::Failed("Internal error of the editor".to_owned()));
            // The owner is gone only when the helper ends.
            let _ = finish.send(Finished::Work(Box::new(Event::FileDone(request, outcome))));
        });
    }

    /// Looks up what a prompt mentions. Should that panic, the prompt is sent with links.
    fn gather(&self, job: GatherJob) {
        let (chat, prompt, count) = (job.chat, job.prompt, job.sources.len());
        let finish = self.finish.clone();
        let work = tokio::spawn(context::gather(self.files.clone(), job));
        tokio::spawn(async move {
            let found = work.await.unwrap_or_else(|error| {
                tracing::error!(%error, "looking up what a prompt mentions failed");
                vec![Found::Failed("it could not be read, see `:AgentChat log`".to_owned()); count]
            });
            // The owner is gone only when the helper ends.
            let _ = finish.send(Finished::Work(Box::new(Event::Gathered(chat, prompt, found))));
        });
    }

    /// Looks at where an agent is. Should that panic, there was nothing to be seen.
    fn locate(&self, job: LookJob) {
        let LookJob { chat, visits } = job;
        let finish = self.finish.clone();
        let work = tokio::spawn(places::look(self.files.clone(), visits.clone()));
        tokio::spawn(async move {
            let looks = work.await.unwrap_or_else(|error| {
                tracing::error!(%error, "looking at where the agent is failed");
                visits.into_iter().map(|visit| (visit, Look::NoText)).collect()
            });
            // The owner is gone only when the helper ends.
            let _ = finish.send(Finished::Work(Box::new(Event::Looked(chat, looks))));
        });
    }

    /// Answers in a call of its own, as the next one does.
    fn trail(&self, chat: ChatId, id: u64) {
        let visits = self.core.as_ref().map(|core| core.trail(chat)).unwrap_or_default();
        let nvim = self.nvim.clone();
        tokio::spawn(async move {
            let trail = places::trail(visits).await;
            if let Err(error) = hand::ask(&nvim, HAND, "trail", vec![id.into(), trail]).await {
                tracing::warn!(%error, "a trail could not be shown");
            }
        });
    }

    /// Answers in a call of its own: it is for whoever is typing now, and does not wait for rows.
    fn find_files(&self, id: u64, wanted: Wanted) {
        let (finder, nvim) = (self.finder.clone(), self.nvim.clone());
        tokio::spawn(async move {
            let Some(found) = finder.find(wanted).await else { return };
            let found = Value::Array(found.into_iter().map(Value::from).collect());
            if let Err(error) = hand::ask(&nvim, HAND, "files_found", vec![id.into(), found]).await {
                tracing::warn!(%error, "found files could not be shown");
            }
        });
    }

    fn send_frame(&mut self) {
        // What is sent again is not to be followed by what comes after it before it was taken.
        if !self.frames.repeats() {
            let painted = self.terminals.take();
            self.frames.add_terminals(painted.items, painted.has_backlog);
            self.frames.set_terminals(!painted.is_complete);
            for (chat, name, tail) in painted.tails {
                self.happen(Event::TerminalTail(chat, name, tail));
            }
        }
        let Some(core) = &self.core else { return };
        let now = self.now();
        let items = self.frames.take(|chat: ChatId| core.transcript(chat), now);
        let answer = hand::call(&self.nvim, HAND, "frame", vec![Value::Array(items)]);
        let finish = self.finish.clone();
        tokio::spawn(async move {
            let result = answer.await.unwrap_or(Err(hand::HandError::Ending));
            // As above.
            let _ = finish.send(Finished::Frame(result));
        });
    }

    fn frame_answered(&mut self, result: Result<Value, hand::HandError>) {
        let now = self.now();
        match result {
            Ok(answer) => {
                self.frames.acknowledged(&answer, now);
                let refused: Vec<TerminalId> =
                    array(&answer, "refused").iter().filter_map(Value::as_u64).map(TerminalId).collect();
                self.terminals.taken(&refused);
            }
            Err(error) => {
                tracing::error!(%error, "a frame failed");
                if self.frames.failed(now) {
                    let text = format!("agentchat could not update its buffers, and tries again: {error}");
                    self.frames.tell(MessageLevel::Warn, text);
                }
            }
        }
    }

    /// Takes note of what Neovim has said before it closed the channel. (Somebody else who ends us does not close it.)
    async fn hear_out(&mut self) {
        while let Ok(Some(said)) = tokio::time::timeout(CLOSING, self.from_lua.recv()).await {
            if said == FromLua::Leaving {
                self.checkpoints.leave(true);
            }
        }
    }

    /// Ends every agent; nobody stays without an answer.
    async fn shut_down(&mut self) {
        self.happen(Event::User(UserAction::Shutdown));
        self.keep_records(true);
        self.terminals.end();
        let connections = std::mem::take(&mut self.connections);
        self.from_agents.close();
        let all = futures::future::join_all(connections.into_values().map(Connection::wait));
        if tokio::time::timeout(SHUTDOWN, all).await.is_err() {
            tracing::warn!("an agent did not end in time");
        }
        if let Some(store) = &self.store {
            store.flush().await;
        }
    }
}
