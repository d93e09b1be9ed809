//! The terminals of agents as they run, and what of them is shown in buffers.
//!
//! What is drawn counts once Neovim has taken it: Lua refuses it while the buffer has another size than the one that it was
//! drawn for, or cannot be made at the moment. Then all is as if it had not been drawn, and nothing more is, until Lua says
//! which size it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rmpv::Value;
use tokio::sync::mpsc;

use super::wire;
use crate::core::effect::{ShownTerminal, TerminalJob};
use crate::core::ids::{ChatId, TerminalId};
use crate::core::message::TerminalExit;
use crate::core::tool_call::TerminalTail;
use crate::process::Exit;
use crate::terminal::painter::{Paint, Painter};
use crate::terminal::pty::{Command, Environment, FIRST_SIZE, Pty};
use crate::terminal::screen::{ColouredLine, Screen};

/// Bytes for terminals in a frame: feeding them costs Neovim some five times as much as rows of a transcript.
const BUDGET: usize = 10 * 1024;
/// Lines that the card of a tool call shows.
const TAIL: usize = 5;
/// Bytes of such a line.
const TAIL_LINE: usize = 200;

/// What a terminal's threads say.
#[derive(Debug)]
pub enum TerminalNews {
    /// There is something new on its screen.
    Changed,
    /// Its command has ended, and all that it wrote is on the screen.
    Ended(TerminalId, Exit),
}

/// What goes into a frame.
pub struct Painted {
    /// The items.
    pub items: Vec<Value>,
    /// The last lines on the terminals that are drawn: of which chat, and the agent's name for the terminal.
    pub tails: Vec<(ChatId, String, TerminalTail)>,
    /// Whether nothing is left for the next frame.
    pub is_complete: bool,
    /// Whether the next frame need not wait for more.
    pub has_backlog: bool,
}

/// All terminals whose commands run, that agents may still read, or that were not shown completely.
pub struct Terminals {
    known: BTreeMap<TerminalId, Terminal>,
    news: mpsc::UnboundedSender<TerminalNews>,
    environment: Environment,
    /// Commands that the user wanted to run and that could not be started: which, and why.
    not_started: Vec<(u64, String)>,
}

struct Terminal {
    chat: ChatId,
    /// The agent's name for it.
    name: String,
    title: String,
    /// The number of a command that the user runs.
    run: Option<u64>,
    screen: Arc<Mutex<Screen>>,
    /// The process; `None` if it is the agent's own.
    pty: Option<Pty>,
    painter: Painter,
    size: (u16, u16),
    exit: Option<TerminalExit>,
    /// Whether its screen changed since it was drawn; only the first change is told.
    changed: Arc<AtomicBool>,
    /// Whether Neovim is to be told its title and state.
    is_news: bool,
    released: bool,
    tail: Vec<ColouredLine>,
    /// How often something of it was sent.
    sequence: u64,
    sent: Option<Sent>,
    /// Whether it was refused, and is not drawn until Lua says its size.
    is_refused: bool,
}

/// What was there before something was sent that Neovim has not taken yet.
struct Sent {
    painter: Painter,
    head: Vec<String>,
    rows: Vec<String>,
    dropped: u64,
    was_news: bool,
    /// Whether nothing can follow it.
    is_last: bool,
}

impl Terminals {
    /// None yet; `news` is told what happens on them.
    pub fn new(news: mpsc::UnboundedSender<TerminalNews>) -> Self {
        Self { known: BTreeMap::new(), news, environment: Environment::default(), not_started: Vec::new() }
    }

    /// The variables that commands get.
    pub fn set_environment(&mut self, environment: Environment) {
        self.environment = environment;
    }

    /// Starts a command.
    ///
    /// # Errors
    /// In words for the agent, why it cannot be started.
    pub fn start(&mut self, job: &TerminalJob) -> Result<(), String> {
        let wanted = &job.wanted;
        let command = Command {
            command: wanted.command.clone(),
            args: wanted.args.clone(),
            env: wanted.env.clone(),
            cwd: job.cwd.clone(),
        };
        let screen = Arc::new(Mutex::new(Screen::new(FIRST_SIZE.0, FIRST_SIZE.1, wanted.output_byte_limit)));
        let title = crate::view::short_line(&wanted.line()).into_owned();
        let mut terminal = Terminal::new(job.chat, job.terminal.name(), title, screen.clone());
        terminal.run = job.run;
        terminal.released = job.run.is_some();
        let (flag, tell, id) = (terminal.changed.clone(), self.news.clone(), job.terminal);
        let on_change = move || {
            if !flag.swap(true, Ordering::AcqRel) {
                // The owner is gone only when the helper ends.
                let _ = tell.send(TerminalNews::Changed);
            }
        };
        let tell = self.news.clone();
        let on_end = move |exit| {
            // As above.
            let _ = tell.send(TerminalNews::Ended(id, exit));
        };
        match Pty::start(&command, &self.environment, screen, on_change, on_end) {
            Ok(pty) => {
                terminal.pty = Some(pty);
                self.known.insert(id, terminal);
                Ok(())
            }
            Err(error) => {
                self.not_started.extend(job.run.map(|run| (run, error.to_string())));
                Err(error.to_string())
            }
        }
    }

    /// Shows a terminal that the agent runs itself. There is no buffer until there is something in it.
    pub fn show(&mut self, shown: ShownTerminal) {
        let screen = Arc::new(Mutex::new(Screen::new(FIRST_SIZE.0, FIRST_SIZE.1, Some(0))));
        let title = crate::view::short_line(&shown.title).into_owned();
        let known = self.known.entry(shown.terminal).or_insert_with(|| {
            let mut terminal = Terminal::new(shown.chat, shown.name, String::new(), screen);
            terminal.released = true;
            terminal.is_news = false;
            terminal
        });
        if known.title != title {
            known.title = title;
            known.is_news |= known.sequence > 0;
            known.changed.store(true, Ordering::Release);
        }
    }

    /// The agent wrote this to its own terminal.
    pub fn feed(&mut self, id: TerminalId, text: &str) {
        if let Some(terminal) = self.known.get_mut(&id) {
            terminal.is_news |= terminal.sequence == 0;
            terminal.screen.lock().feed(with_returns(text).as_bytes());
            terminal.changed.store(true, Ordering::Release);
        }
    }

    /// What an agent reads of a terminal, and whether its beginning is missing.
    pub fn text(&self, id: TerminalId) -> (String, bool) {
        let text = self.known.get(&id).map(|terminal| terminal.screen.lock().text());
        text.map_or_else(Default::default, |text| (text.output, text.truncated))
    }

    /// Ends the command of a terminal, and all that it started.
    pub fn kill(&self, id: TerminalId) {
        if let Some(pty) = self.known.get(&id).and_then(|terminal| terminal.pty.as_ref()) {
            pty.kill();
        }
    }

    /// No agent will ask about it any more.
    pub fn release(&mut self, id: TerminalId) {
        if let Some(terminal) = self.known.get_mut(&id) {
            terminal.released = true;
            // It is forgotten once it was looked at: see `take`.
            terminal.changed.store(true, Ordering::Release);
        }
    }

    /// Its command has ended; how, as an agent is told.
    pub fn ended(&mut self, id: TerminalId, exit: Exit) -> TerminalExit {
        let exit = TerminalExit {
            code: exit.code.and_then(|code| u32::try_from(code).ok()),
            signal: exit.signal.map(signal_name),
        };
        self.end_as(id, exit.clone());
        exit
    }

    /// It has ended in this way.
    pub fn end_as(&mut self, id: TerminalId, exit: TerminalExit) {
        if let Some(terminal) = self.known.get_mut(&id) {
            terminal.exit.get_or_insert(exit);
            terminal.is_news = true;
            terminal.changed.store(true, Ordering::Release);
        }
    }

    /// The user typed into a terminal.
    pub fn write(&self, id: TerminalId, bytes: Vec<u8>) {
        if let Some(pty) = self.known.get(&id).and_then(|terminal| terminal.pty.as_ref()) {
            pty.write(bytes);
        }
    }

    /// Its buffer has this many columns and rows.
    pub fn resize(&mut self, id: TerminalId, columns: u16, rows: u16) {
        if let Some(terminal) = self.known.get_mut(&id) {
            terminal.is_refused = false;
            if terminal.size != (columns, rows) {
                terminal.size = (columns, rows);
                terminal.screen.lock().resize(columns, rows);
                if let Some(pty) = &terminal.pty {
                    pty.resize(columns, rows);
                }
            }
            terminal.changed.store(true, Ordering::Release);
        }
    }

    /// Kills everything at once: the helper ends.
    pub fn end(&mut self) {
        self.known.clear();
    }

    /// What is to be shown now.
    pub fn take(&mut self) -> Painted {
        let mut painted = Painted { items: Vec::new(), tails: Vec::new(), is_complete: true, has_backlog: false };
        let failed = self.not_started.drain(..).map(|(run, problem)| ran(run, [("error", problem.into())]));
        painted.items.extend(failed);
        let mut left = BUDGET;
        for (&id, terminal) in &mut self.known {
            if terminal.is_refused || terminal.sent.is_some() || !terminal.changed.load(Ordering::Acquire) {
                continue;
            }
            if left == 0 {
                painted.has_backlog = true;
                painted.is_complete = false;
                continue;
            }
            left = left.saturating_sub(terminal.take(id, left, &mut painted));
        }
        painted
    }

    /// Neovim has taken what was sent, except of these terminals.
    pub fn taken(&mut self, refused: &[TerminalId]) {
        self.known.retain(|id, terminal| {
            let Some(sent) = terminal.sent.take() else { return true };
            if refused.contains(id) {
                terminal.take_back(sent);
                return true;
            }
            !sent.is_last
        });
    }
}

impl Terminal {
    fn new(chat: ChatId, name: String, title: String, screen: Arc<Mutex<Screen>>) -> Self {
        Self {
            chat,
            name,
            title,
            run: None,
            screen,
            pty: None,
            painter: Painter::default(),
            size: FIRST_SIZE,
            exit: None,
            changed: Arc::new(AtomicBool::new(true)),
            is_news: true,
            released: false,
            tail: Vec::new(),
            sequence: 0,
            sent: None,
            is_refused: false,
        }
    }

    /// Adds what is new on it, and returns how many bytes that are.
    fn take(&mut self, id: TerminalId, budget: usize, painted: &mut Painted) -> usize {
        self.changed.store(false, Ordering::Release);
        let before = self.painter.clone();
        let mut screen = self.screen.lock();
        let paint = self.painter.paint(&mut screen, budget);
        let line_break = if screen.cursor().0 == 0 { "" } else { "\r\n" };
        let tail = screen.last_lines(TAIL);
        drop(screen);
        let mut bytes = paint.bytes;
        painted.has_backlog |= paint.has_backlog;
        if !paint.is_complete {
            self.changed.store(true, Ordering::Release);
            painted.is_complete = false;
        }
        if tail != self.tail {
            painted.tails.push((self.chat, self.name.clone(), shown_tail(&tail)));
            self.tail = tail;
        }
        let is_over = paint.is_complete && self.exit.is_some();
        // The state is told with the last of the text, so that whoever sees that it ended has all of it.
        let tells = self.is_news && (self.exit.is_none() || is_over);
        if tells && let Some(exit) = &self.exit {
            bytes.push_str(&[line_break, "\x1b[2m[", &how(exit), "]\x1b[0m"].concat());
        }
        let is_last = is_over && self.released;
        let length = bytes.len();
        // The agent's own terminal waits for something to show.
        let is_there = self.pty.is_some() || self.is_news || self.sequence > 0;
        if is_there && (tells || length > 0 || is_last) {
            self.sequence += 1;
            let exit = self.exit.as_ref().filter(|_| tells || !self.is_news);
            painted.items.push(self.item(id, exit, bytes));
            if let (Some(run), Some(exit)) = (self.run.filter(|_| tells), exit) {
                let code = exit.code.map_or(Value::Nil, Value::from);
                let signal = exit.signal.as_deref().map_or(Value::Nil, Value::from);
                painted.items.push(ran(run, [("code", code), ("signal", signal)]));
            }
            let was_news = self.is_news;
            self.is_news &= !tells;
            let Paint { head, taken: rows, dropped, .. } = paint;
            self.sent = Some(Sent { painter: before, head, rows, dropped, was_news, is_last });
        }
        length
    }

    /// What was sent was not taken.
    fn take_back(&mut self, sent: Sent) {
        self.painter = sent.painter;
        self.is_news = sent.was_news;
        self.screen.lock().give_back(sent.head, sent.rows, sent.dropped);
        self.is_refused = true;
    }

    fn item(&self, id: TerminalId, exit: Option<&TerminalExit>, bytes: String) -> Value {
        let info = wire::map([
            ("chat", self.chat.0.into()),
            ("name", self.name.as_str().into()),
            ("title", self.title.as_str().into()),
            ("running", exit.is_none().into()),
            ("state", exit.map_or_else(|| "running".to_owned(), how).into()),
            ("columns", self.size.0.into()),
            ("rows", self.size.1.into()),
            ("sequence", self.sequence.into()),
            ("can_type", self.pty.is_some().into()),
            ("run", self.run.map_or(Value::Nil, Value::from)),
        ]);
        Value::Array(vec!["terminal".into(), id.0.into(), info, bytes.into()])
    }
}

/// A command that the user wanted to run has ended, or could not be started.
fn ran<const N: usize>(run: u64, how: [(&str, Value); N]) -> Value {
    Value::Array(vec!["ran".into(), run.into(), wire::map(how)])
}

/// Agents tell the output of their commands with the line breaks of a file.
fn with_returns(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut last = ' ';
    for char in text.chars() {
        if char == '\n' && last != '\r' {
            out.push('\r');
        }
        out.push(char);
        last = char;
    }
    out
}

/// The lines as a card shows them: bounded.
fn shown_tail(lines: &[ColouredLine]) -> TerminalTail {
    let bounded = |line: &ColouredLine| {
        let mut room = TAIL_LINE;
        let mut shown = Vec::new();
        for (text, colour) in line {
            let end = text.floor_char_boundary(room);
            room -= end;
            shown.push((text[..end].to_owned(), *colour));
        }
        shown.retain(|(text, _)| !text.is_empty());
        shown
    };
    lines.iter().map(bounded).collect()
}

fn how(exit: &TerminalExit) -> String {
    match (exit.code, &exit.signal) {
        (_, Some(signal)) => signal.clone(),
        (Some(code), None) => format!("exit code {code}"),
        (None, None) => "ended".to_owned(),
    }
}

#[cfg(unix)]
fn signal_name(number: i32) -> String {
    nix::sys::signal::Signal::try_from(number).map_or_else(|_| number.to_string(), |signal| signal.as_str().to_owned())
}

#[cfg(not(unix))]
fn signal_name(number: i32) -> String {
    number.to_string()
}
