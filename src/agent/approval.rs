//! What may be done without asking: by the mode, and by what the user has said for good in this session.

use std::collections::BTreeSet;

use agent_client_protocol_schema::v1::{PermissionOption, PermissionOptionId, PermissionOptionKind};

use super::options::Mode;

/// What a call is about to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// It only looks.
    Look,
    /// It changes a file.
    Edit,
    /// It runs this command line in a shell.
    Run(String),
    /// It runs a program of the user's, or another server's tool, of this name.
    Use(String),
}

/// What to do about an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Allow,
    Ask,
    /// With the reason, for the model.
    Refuse(&'static str),
}

/// What the user has said for good.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Approvals {
    edits: Option<bool>,
    /// Beginnings of commands, in words.
    allowed: BTreeSet<Vec<String>>,
    refused: BTreeSet<Vec<String>>,
    tools: BTreeSet<String>,
    refused_tools: BTreeSet<String>,
}

const NEVER: &str = "the user does not want this in this session; do not try again, and say what you would have done";
const READ_ONLY: &str =
    "the session is in plan mode, which only reads: say what you would change, and let the user switch the mode";

impl Approvals {
    /// What to do about an action in a mode.
    pub(super) fn judge(&self, action: &Action, mode: Mode) -> Verdict {
        let said = match action {
            Action::Look => return Verdict::Allow,
            _ if mode == Mode::Plan => return Verdict::Refuse(READ_ONLY),
            Action::Edit => self.edits,
            Action::Run(command) => self.said_of_command(command),
            Action::Use(tool) => {
                let refused = self.refused_tools.contains(tool).then_some(false);
                refused.or_else(|| self.tools.contains(tool).then_some(true))
            }
        };
        match said {
            Some(false) => Verdict::Refuse(NEVER),
            Some(true) => Verdict::Allow,
            None if mode == Mode::Full => Verdict::Allow,
            None if mode == Mode::AcceptEdits && *action == Action::Edit => Verdict::Allow,
            None => Verdict::Ask,
        }
    }

    fn said_of_command(&self, command: &str) -> Option<bool> {
        let words = simple_words(command)?;
        let begins = |known: &BTreeSet<Vec<String>>| known.iter().any(|prefix| words.starts_with(prefix));
        if begins(&self.refused) {
            return Some(false);
        }
        begins(&self.allowed).then_some(true)
    }

    /// Keeps an answer that holds for the session.
    pub(super) fn remember(&mut self, action: &Action, kind: PermissionOptionKind) {
        let allows = match kind {
            PermissionOptionKind::AllowAlways => true,
            PermissionOptionKind::RejectAlways => false,
            _ => return,
        };
        match action {
            Action::Look => {}
            Action::Edit => self.edits = Some(allows),
            Action::Run(command) => {
                if let Some(prefix) = prefix(command) {
                    if allows {
                        self.allowed.insert(prefix)
                    } else {
                        self.refused.insert(prefix)
                    };
                }
            }
            Action::Use(tool) => {
                if allows {
                    self.tools.insert(tool.clone())
                } else {
                    self.refused_tools.insert(tool.clone())
                };
            }
        }
    }
}

/// The words of a command that is one program with plain arguments; `None` if a shell would do more with it.
fn simple_words(command: &str) -> Option<Vec<String>> {
    let is_plain =
        !command.contains([';', '&', '|', '<', '>', '`', '$', '(', ')', '{', '}', '\n', '\\', '!', '*', '?', '[', '~']);
    let quotes = command.matches('"').count() + command.matches('\'').count();
    // What is quoted is one word to a shell; here it need only be no beginning.
    (is_plain && quotes.is_multiple_of(2))
        .then(|| command.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter(|words| words.first().is_some_and(|first| !first.contains(['=', '"', '\''])))
}

/// Programs that run others, or whose harm depends on all of their words.
const NEVER_BY_BEGINNING: [&str; 26] = [
    "sudo", "doas", "su", "env", "sh", "bash", "zsh", "fish", "dash", "xargs", "find", "rm", "mv", "dd", "chmod",
    "chown", "eval", "exec", "time", "nohup", "nice", "ssh", "curl", "wget", "perl", "awk",
];

/// The beginning of a command that can stand for it: the program, and its subcommand if it seems to have one.
fn prefix(command: &str) -> Option<Vec<String>> {
    let words = simple_words(command)?;
    let program = words.first()?;
    let name = program.rsplit('/').next().unwrap_or(program);
    if NEVER_BY_BEGINNING.contains(&name) || name.starts_with("python") || name == "node" || name == "ruby" {
        return None;
    }
    let is_subcommand = |word: &String| {
        word.starts_with(|first: char| first.is_ascii_lowercase())
            && word.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-' || char == ':')
    };
    let second = words.get(1).filter(|word| is_subcommand(word)).cloned();
    Some([program.clone()].into_iter().chain(second).collect())
}

/// The answers to offer.
pub(super) fn options(action: &Action) -> Vec<PermissionOption> {
    let always = match action {
        Action::Look => None,
        Action::Edit => Some(("Allow all edits in this session".to_owned(), "No edits in this session".to_owned())),
        Action::Run(command) => prefix(command).map(|words| {
            let words = words.join(" ");
            (format!("Allow `{words} …` in this session"), format!("Never run `{words} …` in this session"))
        }),
        Action::Use(tool) => Some((format!("Allow {tool} in this session"), format!("Never {tool} in this session"))),
    };
    let once = match action {
        Action::Edit => "Make this edit",
        _ => "Run it",
    };
    let option = |id: &str, name: String, kind| PermissionOption::new(PermissionOptionId::new(id), name, kind);
    let mut options = vec![option("allow-once", once.to_owned(), PermissionOptionKind::AllowOnce)];
    options
        .extend(always.as_ref().map(|(yes, _)| option("allow-always", yes.clone(), PermissionOptionKind::AllowAlways)));
    options.push(option("reject-once", "Not this time".to_owned(), PermissionOptionKind::RejectOnce));
    options.extend(always.map(|(_, no)| option("reject-always", no, PermissionOptionKind::RejectAlways)));
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &str) -> Action {
        Action::Run(command.to_owned())
    }

    #[test]
    fn modes_say_what_is_asked() {
        let approvals = Approvals::default();
        let judge = |action: Action| {
            [Mode::Ask, Mode::AcceptEdits, Mode::Plan, Mode::Full].map(|mode| approvals.judge(&action, mode))
        };
        assert_eq!(judge(Action::Look), [Verdict::Allow, Verdict::Allow, Verdict::Allow, Verdict::Allow]);
        assert_eq!(judge(Action::Edit), [Verdict::Ask, Verdict::Allow, Verdict::Refuse(READ_ONLY), Verdict::Allow]);
        assert_eq!(judge(run("ls")), [Verdict::Ask, Verdict::Ask, Verdict::Refuse(READ_ONLY), Verdict::Allow]);
    }

    #[test]
    fn what_is_allowed_for_good_is_that_beginning_of_a_plain_command() {
        let mut approvals = Approvals::default();
        approvals.remember(&run("cargo test --lib"), PermissionOptionKind::AllowAlways);
        approvals.remember(&run("git push origin"), PermissionOptionKind::RejectAlways);
        let judge = |command: &str| approvals.judge(&run(command), Mode::Ask);
        assert_eq!(judge("cargo test"), Verdict::Allow);
        assert_eq!(judge("cargo test -p x"), Verdict::Allow);
        for other in [
            "cargo",
            "cargo build",
            "cargo testing",
            "cargo test; rm -rf .",
            "cargo test && x",
            "cargo test $(x)",
            "X=1 cargo test",
            "cargo test > f",
        ] {
            assert_eq!(judge(other), Verdict::Ask, "{other}");
        }
        assert_eq!(judge("git push"), Verdict::Refuse(NEVER));
        assert_eq!(approvals.judge(&run("git push"), Mode::Full), Verdict::Refuse(NEVER));
    }

    #[test]
    fn what_cannot_be_told_by_its_beginning_is_only_asked_once() {
        for command in ["rm -r x", "sudo ls", "sh -c ls", "a | b", "python3 -c 1", "/bin/bash x"] {
            assert_eq!(options(&run(command)).len(), 2, "{command}");
            let mut approvals = Approvals::default();
            approvals.remember(&run(command), PermissionOptionKind::AllowAlways);
            assert_eq!(approvals.judge(&run(command), Mode::Ask), Verdict::Ask, "{command}");
        }
        assert_eq!(options(&run("make test")).len(), 4);
    }
}
