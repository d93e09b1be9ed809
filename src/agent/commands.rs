//! Slash commands: some are answered here, others are prompts that are written for the user.

use agent_client_protocol_schema::v1::{AvailableCommand, AvailableCommandInput, UnstructuredCommandInput};

/// What a prompt asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// The model is asked, with this in the place of the prompt's text.
    Prompt(String),
    Compact,
    /// The model is shown, or set.
    Model(Option<String>),
    Tools,
    Status,
}

const INIT: &str = "Look at this project and write an AGENTS.md for coding agents: how to build, test and lint it, how the code is \
laid out, and the conventions that are not obvious. At most 60 lines, only what you have seen in its files. If there is one already, \
improve it.";

const REVIEW: &str = "Review the changes of this project that are not committed (`git diff HEAD`, and new files). Look for mistakes, \
missing tests and things that are simpler than they look. List what you found by importance, each with its place as `path:line` and \
what to do. Do not change anything.";

/// The command of a prompt; `None` if it is no command of ours.
pub(super) fn parse(text: &str) -> Option<Command> {
    let rest = text.trim().strip_prefix('/')?;
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let argument = argument.trim();
    let with = |prompt: &str| {
        Command::Prompt(if argument.is_empty() {
            prompt.to_owned()
        } else {
            format!("{prompt}\n\nThe user adds: {argument}")
        })
    };
    Some(match name {
        "compact" => Command::Compact,
        "init" => with(INIT),
        "review" => with(REVIEW),
        "model" => Command::Model((!argument.is_empty()).then(|| argument.to_owned())),
        "tools" => Command::Tools,
        "status" => Command::Status,
        _ => return None,
    })
}

/// All of them, for the client.
pub(super) fn all() -> Vec<AvailableCommand> {
    let command = |name: &str, description: &str, hint: Option<&str>| {
        let command = AvailableCommand::new(name, description);
        match hint {
            Some(hint) => {
                command.input(AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint.to_owned())))
            }
            None => command,
        }
    };
    vec![
        command("compact", "Put a summary into the place of what was said", None),
        command("init", "Write an AGENTS.md for this project", Some("what to pay attention to")),
        command("model", "Show the models, or choose one", Some("the model")),
        command("tools", "What the agent can do here", None),
        command("status", "Endpoint, model, mode and context", None),
        command("review", "Review what is not committed", Some("what to look at")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_prompts() {
        assert_eq!(parse("/compact"), Some(Command::Compact));
        assert_eq!(parse(" /model  gpt-5 "), Some(Command::Model(Some("gpt-5".to_owned()))));
        assert_eq!(parse("/model"), Some(Command::Model(None)));
        assert!(matches!(parse("/review the parser"), Some(Command::Prompt(text)) if text.ends_with("the parser")));
        assert_eq!(parse("/usr/bin is a path"), None);
        assert_eq!(parse("compact"), None);
        assert_eq!(all().len(), 6);
    }
}
