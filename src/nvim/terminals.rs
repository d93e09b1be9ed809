//! The terminals of agents as they run, and what of them is shown in buffers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmpv::Value;
use tokio::sync::mpsc;

use super::wire;
use crate::core::effect::TerminalJob;
use crate::core::ids::{ChatId, TerminalId};
use crate::core::message::TerminalExit;
use crate::process::Exit;
use crate::terminal::painter::Painter;
use crate::terminal::pty::{Command, FIRST_SIZE, Pty};

/// Bytes for terminals in a frame: feeding them costs Neovim some five times as much as rows of a transcript.
const BUDGET: usize = 16 * 1024;
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
    /// The last lines on the terminals that are drawn.
    pub tails: Vec<(TerminalId, String)>,
    /// Whether nothing is left for the next frame.
    pub is_complete: bool,
}

/// All terminals whose commands run, that agents may still read, or that were not shown completely.
pub struct Terminals {
    known: BTreeMap<TerminalId, Terminal>,
    news: mpsc::UnboundedSender<TerminalNews>,
}

struct Terminal {
    chat: ChatId,
    title: String,
    pty: Pty,
    painter: Painter,
    exit: Option<TerminalExit>,
    /// Whether its screen changed since it was drawn; only the first change is told.
    changed: Arc<AtomicBool>,
    /// Whether Neovim is to be told its title and state.
    is_news: bool,
    released: bool,
    tail: String,
}

impl Terminals {
    /// None yet; `news` is told what happens on them.
    pub const fn new(news: mpsc::UnboundedSender<TerminalNews>) -> Self {
        Self { known: BTreeMap::new(), news }
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
        let changed = Arc::new(AtomicBool::new(true));
        let (flag, tell, id) = (changed.clone(), self.news.clone(), job.terminal);
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
        let pty =
            Pty::start(&command, wanted.output_byte_limit, on_change, on_end).map_err(|error| error.to_string())?;
        let terminal = Terminal {
            chat: job.chat,
            title: crate::view::short_line(&wanted.line()).into_owned(),
            pty,
            painter: Painter::default(),
            exit: None,
            changed,
            is_news: true,
            released: false,
            tail: String::new(),
        };
        self.known.insert(id, terminal);
        Ok(())
    }

    /// What an agent reads of a terminal, and whether its beginning is missing.
    pub fn text(&self, id: TerminalId) -> (String, bool) {
        let text = self.known.get(&id).map(|terminal| terminal.pty.screen().text());
        text.map_or_else(Default::default, |text| (text.output, text.truncated))
    }

    /// Ends the command of a terminal, and all that it started.
    pub fn kill(&self, id: TerminalId) {
        if let Some(terminal) = self.known.get(&id) {
            terminal.pty.kill();
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
        if let Some(terminal) = self.known.get_mut(&id) {
            terminal.exit = Some(exit.clone());
            terminal.is_news = true;
            terminal.changed.store(true, Ordering::Release);
        }
        exit
    }

    /// The user typed into a terminal.
    pub fn write(&self, id: TerminalId, bytes: Vec<u8>) {
        if let Some(terminal) = self.known.get(&id) {
            terminal.pty.write(bytes);
        }
    }

    /// A window shows it.
    pub fn resize(&self, id: TerminalId, columns: u16, rows: u16) {
        if let Some(terminal) = self.known.get(&id) {
            terminal.pty.resize(columns, rows);
            terminal.changed.store(true, Ordering::Release);
        }
    }

    /// Kills everything at once: the helper ends.
    pub fn end(&mut self) {
        self.known.clear();
    }

    /// What is to be shown now.
    pub fn take(&mut self) -> Painted {
        let mut painted = Painted { items: Vec::new(), tails: Vec::new(), is_complete: true };
        let mut left = BUDGET;
        let mut over = BTreeSet::new();
        for (&id, terminal) in &mut self.known {
            if !terminal.changed.load(Ordering::Acquire) {
                continue;
            }
            if left == 0 {
                painted.is_complete = false;
                continue;
            }
            terminal.changed.store(false, Ordering::Release);
            let mut screen = terminal.pty.screen();
            let (mut bytes, is_complete) = terminal.painter.paint(&mut screen, left);
            let line_break = if screen.cursor().0 == 0 { "" } else { "\r\n" };
            let tail = tail(screen.last_lines(TAIL));
            drop(screen);
            left = left.saturating_sub(bytes.len());
            if !is_complete {
                terminal.changed.store(true, Ordering::Release);
                painted.is_complete = false;
            }
            let is_over = is_complete && terminal.exit.is_some();
            // The state is told with the last of the text, so that whoever sees that it ended has all of it.
            let tells = terminal.is_news && (terminal.exit.is_none() || is_over);
            if tells && let Some(exit) = &terminal.exit {
                bytes.push_str(&[line_break, "\x1b[2m[", &how(exit), "]\x1b[0m"].concat());
            }
            if tells || !bytes.is_empty() {
                let state = terminal.exit.as_ref().filter(|_| tells || !terminal.is_news);
                painted.items.push(item(id, terminal, state, bytes));
            }
            terminal.is_news &= !tells;
            if tail != terminal.tail {
                terminal.tail.clone_from(&tail);
                painted.tails.push((id, tail));
            }
            if is_over && terminal.released {
                over.insert(id);
            }
        }
        self.known.retain(|id, _| !over.contains(id));
        painted
    }
}

fn item(id: TerminalId, terminal: &Terminal, exit: Option<&TerminalExit>, bytes: String) -> Value {
    let info = wire::map([
        ("chat", terminal.chat.0.into()),
        ("name", id.name().into()),
        ("title", terminal.title.as_str().into()),
        ("running", exit.is_none().into()),
        ("state", exit.map_or_else(|| "running".to_owned(), how).into()),
        ("columns", FIRST_SIZE.0.into()),
        ("rows", FIRST_SIZE.1.into()),
    ]);
    Value::Array(vec!["terminal".into(), id.0.into(), info, bytes.into()])
}

fn tail(lines: Vec<String>) -> String {
    let cut = |line: String| line[..line.floor_char_boundary(TAIL_LINE)].to_owned();
    lines.into_iter().map(cut).collect::<Vec<_>>().join("\n")
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
