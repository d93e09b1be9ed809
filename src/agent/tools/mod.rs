//! The functions that the model sees, from the arguments to what it is told: `prepare` reads a
//! call, `perform` carries it out; `shell`, `search` and `edit` do the work.

mod edit;
mod perform;
mod prepare;
mod programs;
mod search;
pub(super) mod shell;
mod specs;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_client_protocol_schema::v1::{Content, PlanEntry, ToolCallContent, ToolCallLocation, ToolKind};

pub(super) use perform::{glob, grep, ran, read, write};
pub(super) use prepare::{early, prepare};
pub(super) use programs::Programs;
pub(super) use specs::{NAMES, functions};

use serde_json::{Map, Value};

use super::approval::Action;
use super::client::Client;
use crate::files::paths;

/// The most of a command's output, in bytes: its end.
pub(super) const OUTPUT: usize = 30 * 1024;

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
    Remote { name: String, arguments: Map<String, Value> },
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
    pub(super) fn failed(text: impl Into<String>) -> Self {
        let text = text.into();
        let content = Some(vec![text_content(&text)]);
        Self { text, is_failure: true, content, ..Self::default() }
    }
}

/// A path of the model's within the folders of the session.
fn within(client: &Client, path: &str) -> Result<PathBuf, String> {
    let path = path.trim();
    if path.is_empty() {
        return Err("the path is empty".to_owned());
    }
    let wanted = client.folder.join(path.strip_prefix("./").unwrap_or(path));
    let folders: Vec<&PathBuf> = std::iter::once(&client.folder).chain(&client.more_folders).collect();
    folders.into_iter().find_map(|folder| paths::resolve(&wanted, Some(folder)).ok()).ok_or_else(|| {
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
