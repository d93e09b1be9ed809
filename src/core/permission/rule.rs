//! Rules: what the user configured or answered once with "always", and which request they fit.
//!
//! In doubt a rule that allows does not fit, and one that denies does.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};

use super::facts::{Facts, Place, normalized};
use super::marks::{self, Mark};
use super::programs;
use super::shell::{self, Fragment, Word};

/// What a rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The request is allowed once.
    Allow,
    /// It is rejected once.
    Deny,
    /// The user is asked.
    Ask,
}

impl Action {
    /// The word for it in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }
}

/// A rule of the configuration, as it was written. What is `None` fits everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// What it decides.
    pub action: Action,
    /// The kind of the call.
    pub kind: Option<String>,
    /// The name of the tool; a glob.
    pub tool: Option<String>,
    /// The name of the agent in the configuration.
    pub agent: Option<String>,
    /// A glob for paths: absolute ones, or else those below the project's folder.
    pub path: Option<String>,
    /// The first words of a command.
    pub command: Option<String>,
}

/// A rule that is ready to be used.
#[derive(Debug, Clone)]
pub struct Rule {
    written: Written,
    tool: Option<GlobMatcher>,
    path: Option<PathGlob>,
    command: Option<Vec<String>>,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for Rule {}

/// Why a rule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The glob is none.
    #[error("`{0}` is no glob")]
    Glob(String),
    /// The command is more than words, or none.
    #[error("the command `{0}` must be words without any sign that a shell takes for something else")]
    Command(String),
}

impl Rule {
    /// Makes a rule of what was written.
    ///
    /// # Errors
    /// See [`RuleError`].
    pub fn new(written: Written) -> Result<Self, RuleError> {
        let is_strict = written.action == Action::Allow;
        let tool = written.tool.as_deref().map(|tool| glob(tool, false, is_strict)).transpose()?;
        let path = written.path.as_deref().map(|path| PathGlob::new(path, is_strict)).transpose()?;
        let command = written
            .command
            .as_deref()
            .map(|line| shell::simple(line).ok_or_else(|| RuleError::Command(line.to_owned())))
            .transpose()?;
        Ok(Self { written, tool, path, command })
    }

    /// What it decides.
    pub const fn action(&self) -> Action {
        self.written.action
    }

    /// The rule in one line, as the user wrote it.
    pub fn text(&self) -> String {
        let Written { action, kind, tool, agent, path, command } = &self.written;
        let fields = [("kind", kind), ("tool", tool), ("path", path), ("command", command), ("agent", agent)];
        let fields: Vec<String> = fields
            .into_iter()
            .filter_map(|(name, value)| value.as_ref().map(|value| format!("{name} = {value}")))
            .collect();
        if fields.is_empty() {
            format!("{} everything", action.as_str())
        } else {
            format!("{} {}", action.as_str(), fields.join(", "))
        }
    }

    /// Whether the rule is about this request.
    pub fn fits(&self, facts: &Facts) -> bool {
        let is_of_agent = self.written.agent.as_ref().is_none_or(|agent| *agent == facts.agent);
        is_of_agent && if self.action() == Action::Allow { self.surely_fits(facts) } else { self.may_fit(facts) }
    }

    /// Whether the request is all and only what the rule names.
    fn surely_fits(&self, facts: &Facts) -> bool {
        let kind = self.written.kind.as_deref();
        let is_of_kind = kind.is_none_or(|kind| kind == facts.kind && !contradicts(kind, facts));
        let is_of_tool = self.tool.as_ref().is_none_or(|tool| tool.is_match(&facts.tool));
        let is_command = match (&self.command, &facts.command) {
            (None, _) => true,
            (Some(start), Some(command)) => command
                .words
                .as_ref()
                .is_some_and(|words| words.starts_with(start) && self.adds_nothing(words, start, facts)),
            (Some(_), None) => false,
        };
        let is_there = match &self.path {
            // A command goes where it wants, whatever paths it names.
            Some(_) if facts.runs() && self.command.is_none() => false,
            Some(glob) => {
                facts.is_complete
                    && !facts.places.is_empty()
                    && facts.places.iter().all(|place| glob.fits(&place.resolved, &facts.root))
            }
            None => facts.is_inside(),
        };
        is_of_kind && is_of_tool && is_command && is_there
    }

    /// Whether the words beyond those that the rule spells out are harmless: nothing that runs something else, nothing that is
    /// more dangerous than what the rule says.
    fn adds_nothing(&self, words: &[String], start: &[String], facts: &Facts) -> bool {
        let Some((program, _)) = words.split_first() else { return false };
        let added = &words[start.len()..];
        let runs_other = programs::runs_others(program)
            || (programs::is_interpreter(program) && start.len() == 1 && !added.is_empty())
            || added.iter().any(|argument| programs::is_running_option(program, argument));
        let mut known = marks::of_command(&start.join(" "));
        if self.path.is_some() {
            known.insert(Mark::Outside);
        }
        !runs_other && facts.marks.is_subset(&known)
    }

    /// Whether the request is, or may be, or contains what the rule names.
    fn may_fit(&self, facts: &Facts) -> bool {
        let kind = self.written.kind.as_deref();
        let is_of_kind = kind.is_none_or(|kind| kind == facts.kind || seems(kind, facts));
        let is_of_tool =
            self.tool.as_ref().is_none_or(|tool| tool.is_match(&facts.tool) || tool.is_match(&facts.title));
        let is_command = self.command.as_ref().is_none_or(|start| facts.may_run(start));
        let is_there = self.path.as_ref().is_none_or(|glob| glob.touches(facts));
        is_of_kind && is_of_tool && is_command && is_there
    }
}

/// Whether what comes with the call is more than its kind says.
fn contradicts(kind: &str, facts: &Facts) -> bool {
    match kind {
        "read" | "search" | "think" | "fetch" | "switch_mode" => facts.has_diff || facts.runs(),
        "edit" | "delete" | "move" => facts.runs(),
        _ => false,
    }
}

/// Whether the call looks as if it were of this kind, although its agent says otherwise.
fn seems(kind: &str, facts: &Facts) -> bool {
    match kind {
        "execute" => facts.runs(),
        "edit" => facts.has_diff,
        _ => false,
    }
}

/// Whether a line may run a command that begins with these words. `anywhere`: the line is a text in which a command is told.
pub fn may_run(line: &str, start: &[String], anywhere: bool) -> bool {
    let Some(fragments) = shell::fragments(line) else { return true };
    fragments.iter().any(|fragment| {
        let starts = if fragment.is_certain() && !anywhere { 1 } else { fragment.words.len() };
        (0..starts).any(|first| begins_with(&fragment.words[first..], start, fragment))
    })
}

fn begins_with(words: &[Word], start: &[String], fragment: &Fragment) -> bool {
    let (Some((program, arguments)), Some((wanted, rest))) = (words.split_first(), start.split_first()) else {
        return false;
    };
    // What a variable or a pattern stands for is not known. But in the middle of what runs nothing it is no program.
    if !program.is_literal && !is_pattern_only(program) {
        return true;
    }
    let same = programs::base_name(&program.text).eq_ignore_ascii_case(programs::base_name(wanted));
    same && (arguments.iter().any(|word| !word.is_literal && fragment_may_hide(fragment)) || follows(arguments, rest))
}

/// `~/bin/x`: only where it lies is not known, not what it is called.
fn is_pattern_only(word: &Word) -> bool {
    !word.text.contains(['$', '`', '*', '?', '[', '{', '!', '^'])
}

/// Words that are not known may be any that the rule names.
fn fragment_may_hide(fragment: &Fragment) -> bool {
    fragment.words.iter().any(|word| !word.is_literal && word.text.contains(['$', '`', '*', '?', '[']))
}

/// Whether `words` are those of the rule: options anywhere, the others in order, with nothing but options between.
fn follows(words: &[Word], wanted: &[String]) -> bool {
    let (options, plain): (Vec<&String>, Vec<&String>) =
        wanted.iter().partition(|word| word.starts_with('-') && word.len() > 1);
    if !options.iter().all(|option| has_option(words, option)) {
        return false;
    }
    let mut words = words.iter().map(|word| word.text.as_str());
    let mut was_option = false;
    'wanted: for wanted in plain {
        for word in words.by_ref() {
            if word == wanted {
                continue 'wanted;
            }
            let is_option = word.starts_with('-') && word != "--";
            // The word after an option may be its value.
            if !is_option && !was_option {
                return false;
            }
            was_option = is_option;
        }
        return false;
    }
    true
}

/// Whether the option is among the words: also with a value, and `-rf` also as `-r -f` or `-fr`.
fn has_option(words: &[Word], option: &str) -> bool {
    let is_cluster = |word: &str| word.starts_with('-') && !word.starts_with("--") && word.len() > 1;
    let exact = words
        .iter()
        .any(|word| word.text == option || word.text.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')));
    exact
        || (is_cluster(option)
            && option.chars().skip(1).all(|letter| {
                words.iter().any(|word| is_cluster(&word.text) && word.text.chars().skip(1).any(|c| c == letter))
            }))
}

/// A glob for paths.
#[derive(Debug, Clone)]
struct PathGlob {
    matcher: GlobMatcher,
    is_absolute: bool,
    /// Without a slash: the name of a file, in any folder.
    is_name: bool,
}

impl PathGlob {
    fn new(text: &str, is_strict: bool) -> Result<Self, RuleError> {
        let text = text.strip_prefix("./").unwrap_or(text);
        // A folder is everything in it.
        let whole = if text.ends_with('/') { format!("{text}**") } else { text.to_owned() };
        let matcher = glob(&whole, true, is_strict)?;
        Ok(Self { matcher, is_absolute: Path::new(text).is_absolute(), is_name: !text.contains('/') })
    }

    /// Whether the path fits; one without links.
    fn fits(&self, path: &Path, root: &Path) -> bool {
        if self.is_absolute {
            return self.matcher.is_match(path);
        }
        let Ok(below) = path.strip_prefix(root) else { return false };
        self.matcher.is_match(below)
            || (self.is_name && below.file_name().is_some_and(|name| self.matcher.is_match(Path::new(name))))
    }

    /// Whether the request may concern a path that fits: by any of its names, and also in a folder that fits.
    fn touches(&self, facts: &Facts) -> bool {
        let by_name = |path: &Path| {
            path.ancestors().any(|path| {
                self.fits(path, &facts.root)
                    || (self.is_name && path.file_name().is_some_and(|name| self.matcher.is_match(Path::new(name))))
            })
        };
        let touches = |place: &Place| by_name(&place.resolved) || by_name(&normalized(&place.named));
        facts.places.iter().any(touches)
            || (facts.runs() && facts.lines.iter().chain(&facts.hints).any(|line| self.is_named_by(line, facts)))
    }

    /// Whether a word of the line is such a path, also one that only a shell would make of it.
    fn is_named_by(&self, line: &str, facts: &Facts) -> bool {
        let Some(fragments) = shell::fragments(line) else { return true };
        fragments.iter().flat_map(|fragment| &fragment.words).any(|word| {
            let value = word.text.rsplit(['=', '@', ':']).next().unwrap_or(&word.text);
            let path = normalized(&facts.root.join(value));
            path.ancestors().take_while(|path| *path != facts.root).any(|path| {
                self.fits(path, &facts.root)
                    || (self.is_name && path.file_name().is_some_and(|name| self.matcher.is_match(Path::new(name))))
            })
        })
    }
}

fn glob(text: &str, is_path: bool, is_strict: bool) -> Result<GlobMatcher, RuleError> {
    GlobBuilder::new(text)
        .literal_separator(is_path)
        // Some file systems do not tell the cases apart, so nothing is denied by half.
        .case_insensitive(!is_strict)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|_| RuleError::Glob(text.to_owned()))
}

/// What an answer with "always" is remembered as. Every field that is there must fit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// The kind of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The command's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The whole line of a command that is more than words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// Its paths, without links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<PathBuf>>,
    /// Any path within the project.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub within: bool,
    /// The whole call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
}

impl Remembered {
    /// What to remember of an answer to this request; `None` if nothing of it can be known again for certain.
    pub fn of(action: Action, facts: &Facts) -> Option<Self> {
        let paths = || {
            let mut paths: Vec<PathBuf> = facts.places.iter().map(|place| place.resolved.clone()).collect();
            paths.sort();
            paths.dedup();
            paths
        };
        if !facts.is_complete {
            return None;
        }
        if let Some(command) = &facts.command {
            return match (&command.words, action) {
                (Some(words), Action::Allow) => (!programs::runs_others(words.first()?)).then(|| Self {
                    command: Some(words.clone()),
                    paths: Some(paths()),
                    ..Self::default()
                }),
                (Some(words), _) => Some(Self { command: Some(words.clone()), ..Self::default() }),
                (None, Action::Allow) => None,
                (None, _) => Some(Self { line: Some(command.line.clone()), ..Self::default() }),
            };
        }
        if facts.runs() {
            let line = facts.lines.first().or(facts.hints.first());
            return line
                .filter(|_| action != Action::Allow)
                .map(|line| Self { line: Some(line.clone()), ..Self::default() });
        }
        let kind = Some(facts.kind.clone());
        if facts.places.is_empty() {
            return Some(Self { call: Some(facts.call.clone()?), ..Self::default() });
        }
        let is_ordinary = matches!(facts.kind.as_str(), "read" | "search" | "edit") && facts.marks.is_empty();
        if action == Action::Allow && is_ordinary {
            return Some(Self { kind, within: true, ..Self::default() });
        }
        Some(Self { kind, paths: Some(paths()), ..Self::default() })
    }

    /// Whether the request is one that was answered like this before.
    pub fn fits(&self, action: Action, facts: &Facts) -> bool {
        if action == Action::Allow { self.surely_fits(facts) } else { self.may_fit(facts) }
    }

    fn surely_fits(&self, facts: &Facts) -> bool {
        let kind = self.kind.as_deref();
        let names_something = self.command.is_some() || self.paths.is_some() || self.within || self.call.is_some();
        names_something
            && facts.is_complete
            && self.line.is_none()
            && kind.is_none_or(|kind| kind == facts.kind && !contradicts(kind, facts))
            && self.call.is_none_or_eq(facts.call.as_ref())
            && self.command.as_ref().is_none_or(|words| {
                facts.command.as_ref().and_then(|command| command.words.as_ref()) == Some(words)
                    && words.first().is_some_and(|program| !programs::runs_others(program))
            })
            && (self.command.is_some() || !facts.runs())
            && self.paths.as_ref().is_none_or(|paths| {
                facts.places.iter().all(|place| paths.contains(&place.resolved))
                    && paths.iter().all(|path| facts.places.iter().any(|place| place.resolved == *path))
            })
            && (!self.within || (facts.is_inside() && !facts.places.is_empty() && facts.marks.is_empty()))
    }

    fn may_fit(&self, facts: &Facts) -> bool {
        let kind = self.kind.as_deref();
        let same_line = |line: &String| facts.lines.iter().chain(&facts.hints).any(|known| known.trim() == line.trim());
        kind.is_none_or(|kind| kind == facts.kind || seems(kind, facts))
            && self.call.is_none_or_eq(facts.call.as_ref())
            && self.line.as_ref().is_none_or(same_line)
            && self.command.as_ref().is_none_or(|words| facts.may_run(words))
            && self.paths.as_ref().is_none_or(|paths| facts.places.iter().any(|place| paths.contains(&place.resolved)))
    }

    /// What is remembered, in one sentence for the user; paths as seen from the project.
    pub fn text(&self, action: Action, root: &Path) -> String {
        let shown = |path: &Path| match path.strip_prefix(root) {
            Ok(below) if below.as_os_str().is_empty() => "the project's folder".to_owned(),
            Ok(below) => below.display().to_string(),
            Err(_) => path.display().to_string(),
        };
        let verb = match self.kind.as_deref() {
            Some("read") => "reading".to_owned(),
            Some("edit") => "changing".to_owned(),
            Some("delete") => "deleting".to_owned(),
            Some("move") => "moving".to_owned(),
            Some("search") => "searching".to_owned(),
            Some(kind) => format!("`{kind}` of"),
            None => String::new(),
        };
        let what = if let Some(words) = &self.command {
            let line = words.join(" ");
            if action == Action::Allow {
                format!("exactly `{line}`")
            } else {
                format!("`{line}` and what begins like it")
            }
        } else if let Some(line) = &self.line {
            format!("exactly `{line}`")
        } else if self.call.is_some() {
            "this very call".to_owned()
        } else if self.within {
            format!("{verb} files of this project, unless marked")
        } else {
            let paths: Vec<String> = self.paths.iter().flatten().map(|path| shown(path)).collect();
            format!("{verb} {}", paths.join(", "))
        };
        format!("{} {what}", action.as_str())
    }
}

/// Whether something is not asked for, or is there and the same.
trait NoneOrEq<T> {
    fn is_none_or_eq(&self, other: Option<&T>) -> bool;
}

impl<T: PartialEq> NoneOrEq<T> for Option<T> {
    fn is_none_or_eq(&self, other: Option<&T>) -> bool {
        self.as_ref().is_none_or(|wanted| other == Some(wanted))
    }
}
