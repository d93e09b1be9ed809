//! From what the model wrote to a call that can be carried out. Nothing is changed yet.

use std::path::Path;
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    Diff, PlanEntry, PlanEntryPriority, PlanEntryStatus, ToolCallContent, ToolKind,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::perform::LINES;
use super::{
    Job, NAMES, Prepared, Programs, Seen, Shown, edit, location, name, print_of, search, text_content, within,
};
use crate::agent::approval::Action;
use crate::agent::client::{Client, Step};
use crate::agent::mcp::{self, Servers};

/// How long a command may take if the model does not say.
const TIMEOUT: Duration = Duration::from_mins(2);
/// How long a command may take at most.
const LONGEST: u64 = 3_600;

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

/// How a call looks as far as its arguments are known.
pub(in crate::agent) fn early(client: &Client, name: &str, known: &Map<String, Value>) -> Shown {
    let text = |names: &[&str]| names.iter().find_map(|name| known.get(*name)?.as_str()).unwrap_or_default();
    let path = text(&["path", "file_path", "filename", "file"]);
    let locations = if path.is_empty() || matches!(name, "grep" | "glob") {
        Vec::new()
    } else {
        let line = known.get("offset").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok());
        vec![location(&client.folder.join(path), line.filter(|line| *line > 0))]
    };
    let by_name = mcp::by_name(name);
    let (verb, subject, kind) = match name {
        "read_file" => ("Read", path, ToolKind::Read),
        "edit_file" => ("Edit", path, ToolKind::Edit),
        "write_file" => ("Write", path, ToolKind::Edit),
        "run_command" => ("", text(&["command", "cmd"]), ToolKind::Execute),
        "grep" => ("Search", text(&["pattern", "query"]), ToolKind::Search),
        "glob" => ("Find", text(&["pattern"]), ToolKind::Search),
        _ => ("", by_name.as_deref().unwrap_or(name), ToolKind::Other),
    };
    let title = if subject.is_empty() { name.to_owned() } else { format!("{verb} {subject}").trim().to_owned() };
    Shown { title, kind, locations }
}

/// Reads the arguments of a call, and looks at what it is about. Nothing is changed yet.
///
/// # Errors
/// What is wrong, for the model.
pub(in crate::agent) async fn prepare(
    client: &Client,
    seen: &Seen,
    programs: &Programs,
    servers: &Servers,
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
        "run_command" => read_as(called, arguments).and_then(|args| prepare_run(client, &args)),
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
        _ => prepare_remote(servers, called, shown, arguments).ok_or_else(|| {
            let names = NAMES.iter().copied().chain(programs.names()).map(str::to_owned);
            let known: Vec<String> = names.chain(servers.names()).collect();
            format!("there is no function {called:?}; there are {}", known.join(", "))
        }),
    })
}

/// A call of an MCP server's tool; `None` if no server has it.
fn prepare_remote(servers: &Servers, name: &str, shown: Shown, arguments: &Map<String, Value>) -> Option<Prepared> {
    let title = servers.title(name)?;
    Some(Prepared {
        content: vec![text_content(Value::Object(arguments.clone()).to_string())],
        shown: Shown { title, ..shown },
        action: Action::Use(name.to_owned()),
        job: Job::Remote { name: name.to_owned(), arguments: arguments.clone() },
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

fn prepare_run(client: &Client, args: &RunArgs) -> Result<Prepared, String> {
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
