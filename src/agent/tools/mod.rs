//! The functions that the model sees, from its arguments to what it is told. `shell`, `search` and `edit` do the work.

mod edit;
mod programs;
mod search;
pub(super) mod shell;
mod specs;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    Content, Diff, PlanEntry, PlanEntryPriority, PlanEntryStatus, ToolCallContent, ToolCallLocation, ToolKind,
};
use base64::Engine as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(super) use programs::Programs;
pub(super) use specs::{NAMES, functions};

use super::approval::Action;
use super::client::{Client, End, Ran, Step, blocking};
use crate::files::edits::as_read;
use crate::files::paths;

/// The most lines that are read at once.
const LINES: usize = 2_000;
/// The most bytes that the model is told of one call.
const BYTES: usize = 50 * 1024;
/// The most of a command's output, in bytes: its end.
pub(super) const OUTPUT: usize = 30 * 1024;
/// How long a command may take if the model does not say.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How long a command may take at most.
const LONGEST: u64 = 3_600;
/// The largest picture that is read, in bytes.
const PICTURE: u64 = 5 * 1024 * 1024;
/// Places that are told to the client at most.
const PLACES: usize = 50;

/// Files as the model has seen them last, by path: what it has not seen, it must not change.
pub(super) type Seen = HashMap<PathBuf, u64>;

/// A call that can be carried out.
pub(super) struct Prepared {
    pub(super) shown: Shown,
    /// What the user sees before it is done.
    pub(super) content: Vec<ToolCallContent>,
    pub(super) action: Action,
    pub(super) job: Job,
}

/// How a call looks to the user.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shown {
    pub(super) title: String,
    pub(super) kind: ToolKind,
    pub(super) locations: Vec<ToolCallLocation>,
}

/// What is to be done.
pub(super) enum Job {
    Read { path: PathBuf, offset: usize, limit: usize },
    Write { path: PathBuf, text: String },
    Run { command: String, cwd: PathBuf, limit: Duration },
    Grep { root: PathBuf, wanted: search::Wanted },
    Glob { root: PathBuf, pattern: String, limit: usize },
    Plan(Vec<PlanEntry>),
    Program { name: String, arguments: String },
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// For the model.
    pub(super) text: String,
    pub(super) is_failure: bool,
    /// For the user, in the place of what they saw before; `None` leaves that.
    pub(super) content: Option<Vec<ToolCallContent>>,
    pub(super) locations: Option<Vec<ToolCallLocation>>,
    /// A picture that the model is shown, as a data URL.
    pub(super) picture: Option<String>,
}

impl Outcome {
    fn failed(text: impl Into<String>) -> Self {
        let text = text.into();
        let content = Some(vec![text_content(&text)]);
        Self { text, is_failure: true, content, ..Self::default() }
    }
}

#[derive(Deserialize)]
struct ReadArgs {
    #[serde(alias = "file_path", alias = "filename", alias = "file")]
    path: String,
    offset: Option<Lenient>,
    limit: Option<Lenient>,
}

#[derive(Deserialize)]
struct EditArgs {
    #[serde(alias = "file_path", alias = "filename", alias = "file")]
    path: String,
    #[serde(alias = "old_string", alias = "oldText", alias = "old_str")]
    old_text: String,
    #[serde(alias = "new_string", alias = "newText", alias = "new_str")]
    new_text: String,
    #[serde(default)]
    replace_all: bool,
}

#[derive(Deserialize)]
struct WriteArgs {
    #[serde(alias = "file_path", alias = "filename", alias = "file")]
    path: String,
    #[serde(alias = "text", alias = "contents")]
    content: String,
}

#[derive(Deserialize)]
struct RunArgs {
    #[serde(alias = "cmd")]
    command: String,
    cwd: Option<String>,
    #[serde(alias = "timeout")]
    timeout_s: Option<Lenient>,
}

#[derive(Deserialize)]
struct GrepArgs {
    #[serde(alias = "query", alias = "regex")]
    pattern: String,
    path: Option<String>,
    #[serde(alias = "include")]
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    context: Option<Lenient>,
    limit: Option<Lenient>,
}

#[derive(Deserialize)]
struct GlobArgs {
    pattern: String,
    path: Option<String>,
    limit: Option<Lenient>,
}

#[derive(Deserialize)]
struct PlanArgs {
    #[serde(alias = "steps", alias = "entries")]
    plan: Vec<PlanStep>,
}

#[derive(Deserialize)]
struct PlanStep {
    #[serde(alias = "content", alias = "title")]
    step: String,
    #[serde(default)]
    status: String,
}

/// A count as models write it: a number, or one in quotes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lenient {
    Number(f64),
    Text(String),
}

impl Lenient {
    fn count(&self) -> Option<usize> {
        let number = match self {
            Self::Number(number) => *number,
            Self::Text(text) => text.trim().parse().ok()?,
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded before")]
        (0.0..=1e9).contains(&number).then_some(number as usize)
    }
}

fn count(wanted: Option<&Lenient>, default: usize, most: usize) -> usize {
    wanted.and_then(Lenient::count).unwrap_or(default).min(most)
}

fn read_as<T: DeserializeOwned>(name: &str, arguments: &Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments.clone()))
        .map_err(|error| format!("{name}: {error}. Call it again with arguments that fit its schema"))
}

/// A path of the model's within the folders of the session.
fn within(client: &Client, path: &str) -> Result<PathBuf, String> {
    let path = path.trim();
    if path.is_empty() {
        return Err("the path is empty".to_owned());
    }
    let wanted = client.folder.join(path.strip_prefix("./").unwrap_or(path));
    let folders = std::iter::once(&client.folder).chain(&client.more_folders);
    folders.filter_map(|folder| paths::resolve(&wanted, Some(folder)).ok()).next().ok_or_else(|| {
        format!("{path} is outside of the project, where files are neither read nor written; run_command can, if the user allows it")
    })
}

/// A path as the user knows it.
fn name(client: &Client, path: &Path) -> String {
    let folder = paths::resolve(&client.folder, None).unwrap_or_else(|folder| folder);
    path.strip_prefix(&folder).unwrap_or(path).display().to_string()
}

fn location(path: &Path, line: Option<u32>) -> ToolCallLocation {
    let location = ToolCallLocation::new(path);
    match line {
        Some(line) => location.line(line),
        None => location,
    }
}

/// Text that the user sees in a call.
pub(super) fn text_content(text: impl Into<String>) -> ToolCallContent {
    ToolCallContent::Content(Content::new(text.into()))
}

fn print_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// How a call looks as far as its arguments are known.
pub(super) fn early(client: &Client, name: &str, known: &Map<String, Value>) -> Shown {
    let text = |names: &[&str]| names.iter().find_map(|name| known.get(*name)?.as_str()).unwrap_or_default();
    let path = text(&["path", "file_path", "filename", "file"]);
    let locations = if path.is_empty() || matches!(name, "grep" | "glob") {
        Vec::new()
    } else {
        let line = known.get("offset").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok());
        vec![location(&client.folder.join(path), line.filter(|line| *line > 0))]
    };
    let (verb, subject, kind) = match name {
        "read_file" => ("Read", path, ToolKind::Read),
        "edit_file" => ("Edit", path, ToolKind::Edit),
        "write_file" => ("Write", path, ToolKind::Edit),
        "run_command" => ("", text(&["command", "cmd"]), ToolKind::Execute),
        "grep" => ("Search", text(&["pattern", "query"]), ToolKind::Search),
        "glob" => ("Find", text(&["pattern"]), ToolKind::Search),
        _ => ("", name, ToolKind::Other),
    };
    let title = if subject.is_empty() { name.to_owned() } else { format!("{verb} {subject}").trim().to_owned() };
    Shown { title, kind, locations }
}

/// Reads the arguments of a call, and looks at what it is about. Nothing is changed yet.
///
/// # Errors
/// What is wrong, for the model.
pub(super) async fn prepare(
    client: &Client,
    seen: &Seen,
    programs: &Programs,
    called: &str,
    arguments: &Map<String, Value>,
) -> Step<Result<Prepared, String>> {
    let shown = early(client, called, arguments);
    Ok(match called {
        "read_file" => read_as(called, arguments).and_then(|args| prepare_read(client, &args)),
        "edit_file" => match read_as(called, arguments) {
            Ok(args) => return prepare_edit(client, seen, args).await,
            Err(reason) => Err(reason),
        },
        "write_file" => match read_as(called, arguments) {
            Ok(args) => return prepare_write(client, seen, args).await,
            Err(reason) => Err(reason),
        },
        "run_command" => read_as(called, arguments).and_then(|args| prepare_run(client, args)),
        "grep" => read_as(called, arguments).and_then(|args| prepare_grep(client, args)),
        "glob" => read_as(called, arguments).and_then(|args| prepare_glob(client, args)),
        "update_plan" => read_as(called, arguments).and_then(|args| prepare_plan(shown, args)),
        name if programs.knows(name) => {
            let arguments = Value::Object(arguments.clone()).to_string();
            Ok(Prepared {
                content: vec![text_content(format!("{}\n\n{arguments}", programs.line(name)))],
                shown,
                action: Action::Use(name.to_owned()),
                job: Job::Program { name: name.to_owned(), arguments },
            })
        }
        _ => {
            let known: Vec<&str> = NAMES.iter().copied().chain(programs.names()).collect();
            Err(format!("there is no function {called:?}; there are {}", known.join(", ")))
        }
    })
}

fn prepare_read(client: &Client, args: &ReadArgs) -> Result<Prepared, String> {
    let path = within(client, &args.path)?;
    let offset = count(args.offset.as_ref(), 1, usize::MAX).max(1);
    let limit = count(args.limit.as_ref(), LINES, LINES).max(1);
    let range = match (&args.offset, &args.limit) {
        (None, None) => String::new(),
        _ => format!(" ({offset}–{})", offset + limit - 1),
    };
    let line = u32::try_from(offset).ok();
    Ok(Prepared {
        shown: Shown {
            title: format!("Read {}{range}", name(client, &path)),
            kind: ToolKind::Read,
            locations: vec![location(&path, line)],
        },
        content: Vec::new(),
        action: Action::Look,
        job: Job::Read { path, offset, limit },
    })
}

/// What a file is now, if the model has seen just that.
async fn as_seen(client: &Client, seen: &Seen, path: &Path) -> Step<Result<String, String>> {
    let text = match client.read(path).await? {
        Ok(text) => text,
        Err(reason) => return Ok(Err(reason)),
    };
    Ok(match seen.get(path) {
        Some(print) if *print == print_of(&text) => Ok(text),
        Some(_) => Err(format!("{} has changed since you read it: read it again first", name(client, path))),
        None => Err(format!("read {} before you change it", name(client, path))),
    })
}

async fn prepare_edit(client: &Client, seen: &Seen, args: EditArgs) -> Step<Result<Prepared, String>> {
    let path = match within(client, &args.path) {
        Ok(path) => path,
        Err(reason) => return Ok(Err(reason)),
    };
    let old = match as_seen(client, seen, &path).await? {
        Ok(text) => text,
        Err(reason) => return Ok(Err(reason)),
    };
    Ok(edit::replace(&old, &args.old_text, &args.new_text, args.replace_all).map(|edited| Prepared {
        shown: Shown {
            title: format!("Edit {}", name(client, &path)),
            kind: ToolKind::Edit,
            locations: vec![location(&path, Some(edited.line))],
        },
        content: vec![ToolCallContent::Diff(Diff::new(path.clone(), edited.text.clone()).old_text(old))],
        action: Action::Edit,
        job: Job::Write { path, text: edited.text },
    }))
}

async fn prepare_write(client: &Client, seen: &Seen, args: WriteArgs) -> Step<Result<Prepared, String>> {
    let path = match within(client, &args.path) {
        Ok(path) => path,
        Err(reason) => return Ok(Err(reason)),
    };
    let is_there = tokio::fs::symlink_metadata(&path).await.is_ok();
    let old = if is_there {
        match as_seen(client, seen, &path).await? {
            Ok(text) => Some(text),
            Err(reason) => return Ok(Err(reason)),
        }
    } else {
        None
    };
    let text = match &old {
        Some(old) => crate::files::edits::in_form_of(old, &args.content).into_owned(),
        None => args.content,
    };
    if old.as_ref() == Some(&text) {
        return Ok(Err(format!("{} has this text already", name(client, &path))));
    }
    let diff = Diff::new(path.clone(), text.clone()).old_text(old);
    Ok(Ok(Prepared {
        shown: Shown {
            title: format!("Write {}", name(client, &path)),
            kind: ToolKind::Edit,
            locations: vec![location(&path, None)],
        },
        content: vec![ToolCallContent::Diff(diff)],
        action: Action::Edit,
        job: Job::Write { path, text },
    }))
}

fn prepare_run(client: &Client, args: RunArgs) -> Result<Prepared, String> {
    let command = args.command.trim().to_owned();
    if command.is_empty() {
        return Err("the command is empty".to_owned());
    }
    let cwd = match args.cwd.as_deref().filter(|cwd| !cwd.trim().is_empty()) {
        Some(cwd) => within(client, cwd)?,
        None => client.folder.clone(),
    };
    if !cwd.is_dir() {
        return Err(format!("cwd: there is no folder {}", cwd.display()));
    }
    let limit = args.timeout_s.as_ref().and_then(Lenient::count).and_then(|seconds| u64::try_from(seconds).ok());
    let limit =
        limit.filter(|seconds| *seconds > 0).map_or(TIMEOUT, |seconds| Duration::from_secs(seconds.min(LONGEST)));
    Ok(Prepared {
        shown: Shown { title: command.clone(), kind: ToolKind::Execute, locations: Vec::new() },
        content: Vec::new(),
        action: Action::Run(command.clone()),
        job: Job::Run { command, cwd, limit },
    })
}

fn prepare_grep(client: &Client, args: GrepArgs) -> Result<Prepared, String> {
    let root = within(client, args.path.as_deref().unwrap_or("."))?;
    let place = args.path.as_deref().map(|path| format!(" in {path}")).unwrap_or_default();
    let title = format!("Search {}{place}", args.pattern);
    let wanted = search::Wanted {
        pattern: args.pattern,
        ignore_case: args.ignore_case,
        glob: args.glob.filter(|glob| !glob.is_empty()),
        context: count(args.context.as_ref(), 0, 20),
        limit: count(args.limit.as_ref(), 100, 1_000).max(1),
    };
    Ok(Prepared {
        shown: Shown { title, kind: ToolKind::Search, locations: Vec::new() },
        content: Vec::new(),
        action: Action::Look,
        job: Job::Grep { root, wanted },
    })
}

fn prepare_glob(client: &Client, args: GlobArgs) -> Result<Prepared, String> {
    let root = within(client, args.path.as_deref().unwrap_or("."))?;
    let limit = count(args.limit.as_ref(), 1_000, 10_000).max(1);
    Ok(Prepared {
        shown: Shown { title: format!("Find {}", args.pattern), kind: ToolKind::Search, locations: Vec::new() },
        content: Vec::new(),
        action: Action::Look,
        job: Job::Glob { root, pattern: args.pattern, limit },
    })
}

fn prepare_plan(shown: Shown, args: PlanArgs) -> Result<Prepared, String> {
    if args.plan.is_empty() {
        return Err("the plan has no steps".to_owned());
    }
    let entry = |step: PlanStep| {
        let status = match step.status.as_str() {
            "completed" | "done" => PlanEntryStatus::Completed,
            "in_progress" => PlanEntryStatus::InProgress,
            _ => PlanEntryStatus::Pending,
        };
        PlanEntry::new(step.step, PlanEntryPriority::Medium, status)
    };
    let entries = args.plan.into_iter().map(entry).collect();
    Ok(Prepared { shown, content: Vec::new(), action: Action::Look, job: Job::Plan(entries) })
}

/// Reads a file for the model.
pub(super) async fn read(client: &Client, seen: &mut Seen, path: &Path, offset: usize, limit: usize) -> Step<Outcome> {
    if let Some(kind) = picture_kind(path) {
        return Ok(picture(path, kind).await);
    }
    if path.is_dir() {
        return Ok(Outcome::failed(format!("{} is a folder: glob lists its files", name(client, path))));
    }
    let text = match client.read(path).await? {
        Ok(text) => text,
        Err(reason) => return Ok(Outcome::failed(format!("{} cannot be read: {reason}", name(client, path)))),
    };
    seen.insert(path.to_owned(), print_of(&text));
    let lines = as_read(&text);
    let all: Vec<&str> = lines.lines().collect();
    if all.is_empty() {
        return Ok(Outcome { text: "(the file is empty)".to_owned(), ..Outcome::default() });
    }
    if offset > all.len() {
        return Ok(Outcome::failed(format!("the file has only {} lines", all.len())));
    }
    let mut told = String::new();
    let mut last = offset - 1;
    for line in all.iter().skip(offset - 1).take(limit) {
        if told.len() + line.len() > BYTES {
            if told.is_empty() {
                told.push_str(&line[..line.floor_char_boundary(BYTES)]);
                told.push_str(" (this line goes on)\n");
                last += 1;
            }
            break;
        }
        told.push_str(line);
        told.push('\n');
        last += 1;
    }
    let is_all = offset == 1 && last == all.len();
    if !is_all {
        let more = if last < all.len() { format!("; offset {} reads on", last + 1) } else { String::new() };
        let _ = write!(told, "(lines {offset} to {last} of {}{more})", all.len());
    }
    let shown = format!("{} lines", last + 1 - offset);
    Ok(Outcome { text: told, content: Some(vec![text_content(shown)]), ..Outcome::default() })
}

fn picture_kind(path: &Path) -> Option<&'static str> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
    }
}

async fn picture(path: &Path, kind: &str) -> Outcome {
    let owned = path.to_owned();
    let bytes = blocking(move || {
        let metadata = std::fs::metadata(&owned).map_err(|error| error.to_string())?;
        if !metadata.is_file() || metadata.len() > PICTURE {
            return Err("it is no file of at most 5 MiB".to_owned());
        }
        std::fs::read(&owned).map_err(|error| error.to_string())
    });
    match bytes.await {
        Ok(bytes) => {
            let data = base64::engine::general_purpose::STANDARD.encode(bytes);
            let picture = Some(format!("data:{kind};base64,{data}"));
            Outcome { text: "The picture follows.".to_owned(), picture, ..Outcome::default() }
        }
        Err(reason) => Outcome::failed(format!("the picture cannot be read: {reason}")),
    }
}

/// Writes a file, and takes note of what is there then.
pub(super) async fn write(client: &Client, seen: &mut Seen, path: &Path, text: &str) -> Step<Outcome> {
    if let Err(reason) = client.write(path, text).await? {
        // As it stays: the user's diff must not be replaced by a reason.
        return Ok(Outcome { text: format!("nothing was written: {reason}"), is_failure: true, ..Outcome::default() });
    }
    // A formatter of the user's may have changed it.
    let now = client.read(path).await?.unwrap_or_else(|_| text.to_owned());
    seen.insert(path.to_owned(), print_of(&now));
    let told = if now == text {
        "done".to_owned()
    } else {
        "done; what is in the file now differs from what you wrote (a formatter, or the user): read it before the next change"
            .to_owned()
    };
    if now != text {
        seen.remove(path);
    }
    Ok(Outcome { text: told, ..Outcome::default() })
}

/// What the model is told of a command.
pub(super) fn ran(ran: &Ran) -> Outcome {
    let mut text = String::new();
    if ran.is_cut {
        text.push_str("(the beginning of the output is left out)\n");
    }
    text.push_str(ran.output.trim_end());
    if !text.is_empty() {
        text.push('\n');
    }
    let is_failure = ran.end != End::Exited(Some(0));
    match &ran.end {
        End::Exited(Some(0)) if text.is_empty() => text.push_str("(no output)"),
        End::Exited(Some(0)) => {}
        End::Exited(Some(code)) => {
            let _ = write!(text, "(exit code {code})");
        }
        End::Exited(None) => text.push_str("(ended by a signal)"),
        End::TimedOut(limit) => {
            let _ = write!(text, "(stopped after {} s: a longer timeout_s, or a command that ends)", limit.as_secs());
        }
    }
    Outcome { text, is_failure, ..Outcome::default() }
}

/// Looks for lines.
pub(super) async fn grep(client: &Client, root: PathBuf, wanted: search::Wanted) -> Outcome {
    let folder = paths::resolve(&client.folder, None).unwrap_or_else(|folder| folder);
    match blocking(move || search::grep(&root, &folder, &wanted)).await {
        Ok(found) if found.lines.is_empty() => Outcome {
            text: "(nothing found)".to_owned(),
            content: Some(vec![text_content("nothing found")]),
            ..Outcome::default()
        },
        Ok(found) => {
            let more = if found.is_more { "(there are more: a narrower pattern, path or glob)" } else { "" };
            let text = capped(&found.lines, more);
            let locations = found.places.iter().take(PLACES).map(|(path, line)| location(path, Some(*line))).collect();
            Outcome { content: Some(vec![text_content(&text)]), text, locations: Some(locations), ..Outcome::default() }
        }
        Err(reason) => Outcome::failed(reason),
    }
}

/// Looks for files.
pub(super) async fn glob(client: &Client, root: PathBuf, pattern: String, limit: usize) -> Outcome {
    let folder = paths::resolve(&client.folder, None).unwrap_or_else(|folder| folder);
    match blocking(move || search::glob(&root, &folder, &pattern, limit)).await {
        Ok((found, _)) if found.is_empty() => Outcome {
            text: "(nothing found)".to_owned(),
            content: Some(vec![text_content("nothing found")]),
            ..Outcome::default()
        },
        Ok((found, is_more)) => {
            let text = capped(&found, if is_more { "(there are more: a narrower pattern or path)" } else { "" });
            Outcome { content: Some(vec![text_content(&text)]), text, ..Outcome::default() }
        }
        Err(reason) => Outcome::failed(reason),
    }
}

/// Lines up to the bound, and what to say behind them.
fn capped(lines: &[String], more: &str) -> String {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        if text.len() + line.len() > BYTES {
            let _ = write!(text, "({} lines more are left out: narrow the search)", lines.len() - at);
            return text;
        }
        text.push_str(line);
        text.push('\n');
    }
    text.push_str(more);
    text
}
