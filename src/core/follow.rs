//! Where the agent is: what its tool calls say of files and lines, and how much of that is looked at.
//!
//! Each call names places: its `locations`, else the file of its diff, else what is known among its raw arguments. The
//! newest place wins; at most one look in an interval is taken, of at most [`MAX_LOOK`] files, so a burst costs what it shows.
//! A place whose file is not there yet waits until it is. All places of the turn are the trail.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::effect::{Effect, LookJob, Show};
use super::event::TimerKey;
use super::ids::{ChatId, Millis, TerminalId};
use super::state::State;
use super::tool_call::{ToolCall, ToolContent};

/// Places of a turn that are kept. Older ones go.
const MAX_TRAIL: usize = 2_000;
/// Places of one call that count. An agent that searches may name thousands.
const MAX_OF_CALL: usize = 1_000;
/// Files that one look is taken at.
const MAX_LOOK: usize = 16;
/// How long to wait before a file that was not there is looked for again, in milliseconds.
const MISSING_RETRY: u64 = 500;

/// A place that a tool call names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// Absolute path.
    pub path: PathBuf,
    /// 1-based line, as far as the agent says; it may be beyond the file's end.
    pub line: Option<u64>,
    /// The change there, in which a missing line can be found.
    pub change: Option<PlaceChange>,
}

/// A change of a file: often only a fragment of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlaceChange {
    /// Text before; `None` for a new file.
    pub old: Option<Arc<str>>,
    /// Text after, if known.
    pub new: Option<Arc<str>>,
}

/// A place, and what the agent did there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// Later visits have larger numbers.
    pub number: u64,
    /// Where.
    pub place: Place,
    /// The call's kind.
    pub kind: String,
    /// The call's title.
    pub title: String,
}

/// What a look at a place brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// A text file of so many bytes; the 1-based line if one is known.
    File {
        /// Size in bytes.
        size: u64,
        /// The line.
        line: Option<u64>,
    },
    /// There is no such file yet.
    Missing,
    /// A folder, a device, bytes that are no text, something that cannot be read.
    NoText,
}

/// A place that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenPlace {
    /// Absolute path of a text file.
    pub path: PathBuf,
    /// Size in bytes.
    pub size: u64,
    /// 1-based line.
    pub line: Option<u64>,
    /// The call's kind.
    pub kind: String,
    /// The call's title.
    pub title: String,
}

/// News of where the agent is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// What was marked before counts no more: a turn is over.
    pub clear: bool,
    /// Where it is, oldest first; empty once the turn is over.
    pub places: Vec<SeenPlace>,
    /// Where to look now.
    pub newest: Option<SeenPlace>,
    /// The terminal to look at now, if that is newer.
    pub terminal: Option<SeenTerminal>,
}

/// A terminal that the agent waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenTerminal {
    /// Which.
    pub terminal: TerminalId,
    /// The kind of the call.
    pub kind: String,
    /// The title of the call.
    pub title: String,
}

impl Whereabouts {
    /// Takes over what came later.
    pub fn extend(&mut self, later: Self) {
        if later.clear {
            self.clear = true;
            self.places.clear();
        }
        for place in later.places {
            self.places.retain(|known| known.path != place.path);
            self.places.push(place);
        }
        if later.newest.is_some() {
            self.terminal = None;
        }
        self.newest = later.newest.or(self.newest.take());
        self.terminal = later.terminal.or(self.terminal.take());
    }
}

/// Where one chat's agent is, and was in this turn.
#[derive(Debug, Default)]
pub(super) struct Follow {
    /// The places that each call named last, by the call's id.
    of_calls: HashMap<String, Vec<Place>>,
    trail: VecDeque<Visit>,
    /// Not looked at yet, oldest first, one for each file.
    waiting: Vec<Visit>,
    /// Those whose file was not there.
    missing: Vec<Visit>,
    /// A terminal that was not shown yet.
    terminal: Option<SeenTerminal>,
    /// Whether a look is being taken.
    looking: bool,
    /// No look is taken before.
    not_before: Millis,
    /// When the timer is due, if it is set.
    timer: Option<Millis>,
    /// The newest terminal that was shown or is about to be.
    last_terminal: Option<TerminalId>,
    /// The newest visit that was shown.
    shown: u64,
    next: u64,
}

impl Follow {
    /// A turn begins, and with it a trail of its own.
    pub(super) fn begin_turn(&mut self) {
        self.trail.clear();
        self.of_calls.clear();
        self.waiting.clear();
        self.missing.clear();
        self.terminal = None;
    }

    fn wait_for(&mut self, visit: Visit) {
        self.missing.retain(|other| other.place.path != visit.place.path);
        self.waiting.retain(|other| other.place.path != visit.place.path);
        self.waiting.push(visit);
        if self.waiting.len() > MAX_LOOK {
            self.waiting.remove(0);
        }
    }

    /// Looks once more for the files that were not there.
    fn retry(&mut self) {
        let mut again = std::mem::take(&mut self.missing);
        again.append(&mut self.waiting);
        self.waiting = again;
        let surplus = self.waiting.len().saturating_sub(MAX_LOOK);
        self.waiting.drain(..surplus);
    }
}

impl State {
    /// The places that the agent was at in the turn that runs, or ran last; oldest first.
    pub fn trail(&self, chat: ChatId) -> Vec<Visit> {
        self.chats.get(&chat).map(|chat| chat.follow.trail.iter().cloned().collect()).unwrap_or_default()
    }

    /// A call may name other places than before.
    pub(super) fn visit(&mut self, id: ChatId, tool: &str) {
        let first_line = self.first_line(id);
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let Some(call) = chat.transcript.tool(tool) else { return };
        let places = places(call, &chat.cwd, first_line);
        let follow = &mut chat.follow;
        let known = follow.of_calls.entry(tool.to_owned()).or_default();
        if *known == places {
            return;
        }
        let old: HashSet<&Place> = known.iter().collect();
        let news: Vec<Place> = places.iter().filter(|place| !old.contains(place)).cloned().collect();
        *known = places;
        for place in news {
            follow.next += 1;
            let visit = Visit { number: follow.next, place, kind: call.kind.clone(), title: call.title.clone() };
            // A line that came to be known makes one visit of two.
            let same = |last: &&mut Visit| last.place.path == visit.place.path && last.place.line.is_none();
            if let Some(last) = follow.trail.back_mut().filter(same) {
                *last = visit.clone();
            } else {
                follow.trail.push_back(visit.clone());
            }
            follow.wait_for(visit);
        }
        let surplus = follow.trail.len().saturating_sub(MAX_TRAIL);
        follow.trail.drain(..surplus);
        self.look(id);
    }

    /// A call that names no place, but shows a terminal for the first time: that is where the agent is.
    pub(super) fn visit_terminal(&mut self, id: ChatId, tool: &str) {
        let Some(call) = self.chats.get(&id).and_then(|chat| chat.transcript.tool(tool)) else { return };
        let mut names = call.content.iter().filter_map(|content| match content {
            ToolContent::Terminal(name, _) => Some(name),
            _ => None,
        });
        let Some(terminal) = names.next_back().and_then(|name| self.terminal_named(id, name)) else { return };
        let seen = SeenTerminal { terminal, kind: call.kind.clone(), title: call.title.clone() };
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let names_places = chat.follow.of_calls.get(tool).is_some_and(|places| !places.is_empty());
        if names_places || Some(terminal) <= chat.follow.last_terminal {
            return;
        }
        chat.follow.last_terminal = Some(terminal);
        chat.follow.terminal = Some(seen);
        self.show_terminal(id);
    }

    /// Shows the terminal that waits for it, unless something was shown a moment ago.
    fn show_terminal(&mut self, id: ChatId) {
        let (now, interval) = (self.now, self.config.follow_interval);
        let Some(chat) = self.chats.get_mut(&id) else { return };
        if chat.follow.terminal.is_none() {
            return;
        }
        if now < chat.follow.not_before {
            let due = chat.follow.not_before;
            self.wake(id, due);
            return;
        }
        chat.follow.not_before = now.plus(interval);
        let terminal = chat.follow.terminal.take();
        self.emit(Show::Follow(id, Whereabouts { terminal, ..Whereabouts::default() }));
    }

    /// The number of a file's first line, as the chat's agent counts.
    fn first_line(&self, id: ChatId) -> u64 {
        let conn = self.chats.get(&id).and_then(|chat| chat.session.conn());
        let connection = conn.and_then(|conn| self.connections.get(&conn));
        u64::from(!connection.is_some_and(|connection| connection.quirks.lines_from_zero))
    }

    /// Something may have put a file where one was missing.
    pub(super) fn look_again(&mut self, id: ChatId) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        if !chat.follow.missing.is_empty() {
            chat.follow.retry();
            self.look(id);
        }
    }

    /// Has the places that wait looked at, unless that was done a moment ago.
    fn look(&mut self, id: ChatId) {
        let (now, interval) = (self.now, self.config.follow_interval);
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let follow = &mut chat.follow;
        if follow.looking || follow.waiting.is_empty() {
            return;
        }
        if now < follow.not_before {
            let due = follow.not_before;
            self.wake(id, due);
            return;
        }
        follow.not_before = now.plus(interval);
        follow.looking = true;
        let visits = std::mem::take(&mut follow.waiting);
        self.effects.push(Effect::Locate(LookJob { chat: id, visits }));
    }

    /// Sees to it that the timer runs out at `due` or before.
    fn wake(&mut self, id: ChatId, due: Millis) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        if chat.follow.timer.is_none_or(|set| due < set) {
            chat.follow.timer = Some(due);
            self.effects.push(Effect::SetTimer(TimerKey::Follow(id), due));
        }
    }

    pub(super) fn follow_timer(&mut self, id: ChatId) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        chat.follow.timer = None;
        chat.follow.retry();
        self.show_terminal(id);
        self.look(id);
    }

    /// A look was taken.
    pub(super) fn looked(&mut self, id: ChatId, looks: Vec<(Visit, Look)>) {
        let now = self.now;
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let follow = &mut chat.follow;
        follow.looking = false;
        let (mut places, mut newest) = (Vec::new(), None);
        for (visit, look) in looks {
            match look {
                Look::File { size, line } => {
                    if let Some(known) = follow.trail.iter_mut().rfind(|known| known.number == visit.number) {
                        known.place.line = line.or(known.place.line);
                    }
                    let Visit { number, place, kind, title } = visit;
                    let place = SeenPlace { path: place.path, size, line, kind, title };
                    if number > follow.shown {
                        follow.shown = number;
                        newest = Some(place.clone());
                    }
                    places.push(place);
                }
                Look::Missing => {
                    let is_newer = |other: &Visit| other.place.path == visit.place.path;
                    if chat.turn.is_some() && !follow.waiting.iter().any(is_newer) {
                        follow.missing.push(visit);
                    }
                }
                Look::NoText => {}
            }
        }
        if chat.turn.is_none() {
            places.clear();
        }
        let is_missing = !follow.missing.is_empty();
        if newest.is_some() || !places.is_empty() {
            self.emit(Show::Follow(id, Whereabouts { places, newest, ..Whereabouts::default() }));
        }
        if is_missing {
            self.wake(id, now.plus(MISSING_RETRY));
        }
        self.look(id);
    }

    /// The turn is over: the agent is nowhere. What waits is looked at once more.
    pub(super) fn end_trail(&mut self, id: ChatId) {
        self.emit(Show::Follow(id, Whereabouts { clear: true, ..Whereabouts::default() }));
        self.look_again(id);
    }
}

/// The places that a call names, in its order; the last one is where it is now. `first_line` is the number that the agent
/// gives to a file's first line.
pub(super) fn places(call: &ToolCall, cwd: &Path, first_line: u64) -> Vec<Place> {
    let raw = call.raw_input.as_deref().map(Arguments::of).unwrap_or_default();
    let changes = || {
        call.content.iter().filter_map(|content| match content {
            ToolContent::Diff { path, old, new } => {
                Some((absolute(path, cwd)?, PlaceChange { old: old.clone(), new: Some(Arc::clone(new)) }))
            }
            _ => None,
        })
    };
    let of_raw = || raw.paths.iter().filter_map(|path| absolute(path, cwd));
    let mut found = Vec::new();
    for location in call.locations.iter().take(MAX_OF_CALL) {
        let Some(path) = absolute(&location.path, cwd) else { continue };
        let line = location.line.map(|line| from_one(line, first_line));
        let change = changes().find(|(changed, _)| *changed == path).map(|(_, change)| change);
        found.push(Place { path, line, change });
    }
    if found.is_empty() {
        found
            .extend(changes().map(|(path, change)| Place { path, line: None, change: Some(change) }).take(MAX_OF_CALL));
    }
    if found.is_empty() {
        found.extend(of_raw().map(|path| Place { path, line: None, change: None }).take(MAX_OF_CALL));
    }
    for place in found.iter_mut().filter(|place| place.line.is_none() && place.change.is_none()) {
        if of_raw().any(|path| path == place.path) {
            place.line = raw.line.map(|line| from_one(line, first_line));
            place.change.clone_from(&raw.change);
        }
    }
    found
}

/// A line as the protocol counts it. One before the first is the first.
fn from_one(line: u64, first_line: u64) -> u64 {
    line.saturating_add(1 - first_line).max(1)
}

/// A path as an absolute one, or `None` if there is none.
fn absolute(path: &str, cwd: &Path) -> Option<PathBuf> {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let is_path = !path.is_empty() && !path.contains(['\0', '\n']);
    is_path.then(|| cwd.join(path))
}

/// What a key of the raw arguments means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// The file.
    Path,
    /// A map with the files as its keys.
    Paths,
    /// The line, or a list that begins with it.
    Line,
    /// The text that is replaced.
    Old,
    /// The text that replaces it.
    New,
}

/// The agents' names for their tools' arguments. None of them is part of the protocol; the recordings of each agent in
/// `tests/recordings` show those that it uses.
const KEYS: &[(&str, Meaning)] = &[
    // claude-agent-acp, and agents that take over its tools.
    ("file_path", Meaning::Path),
    ("notebook_path", Meaning::Path),
    ("offset", Meaning::Line),
    ("old_string", Meaning::Old),
    ("new_string", Meaning::New),
    // copilot, kimi-code.
    ("path", Meaning::Path),
    ("fileName", Meaning::Path),
    ("view_range", Meaning::Line),
    ("line_offset", Meaning::Line),
    ("old_str", Meaning::Old),
    ("new_str", Meaning::New),
    // opencode.
    ("filePath", Meaning::Path),
    ("filepath", Meaning::Path),
    ("oldString", Meaning::Old),
    ("newString", Meaning::New),
    // zed-codex-acp.
    ("changes", Meaning::Paths),
    // gemini-cli.
    ("absolute_path", Meaning::Path),
    // What others are likely to say.
    ("line", Meaning::Line),
    ("start_line", Meaning::Line),
];

/// What the raw arguments of a call say of a place.
#[derive(Default)]
struct Arguments {
    paths: Vec<String>,
    line: Option<u64>,
    change: Option<PlaceChange>,
}

impl Arguments {
    fn of(raw: &Value) -> Self {
        let values = |wanted: Meaning| {
            KEYS.iter().filter(move |(_, meaning)| *meaning == wanted).filter_map(|(key, _)| raw.get(key))
        };
        let text = |wanted| values(wanted).find_map(Value::as_str);
        let mut paths: Vec<String> = text(Meaning::Path).map(str::to_owned).into_iter().collect();
        if paths.is_empty() {
            let map = values(Meaning::Paths).find_map(Value::as_object);
            paths.extend(map.into_iter().flat_map(|map| map.keys().cloned()));
        }
        let number = |value: &Value| value.as_u64().or_else(|| value.get(0).and_then(Value::as_u64));
        let old = text(Meaning::Old).map(Arc::from);
        let new = text(Meaning::New).map(Arc::from);
        let change = (old.is_some() || new.is_some()).then_some(PlaceChange { old, new });
        Self { paths, line: values(Meaning::Line).find_map(number), change }
    }
}

#[cfg(test)]
mod tests;
