//! What is peculiar about single agents: one table, each entry with the traffic that shows it.

/// Deviations from the protocol, or from what it leaves open, that a client has to live with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quirks {
    /// `fs/read_text_file` of a file that does not exist is answered with an empty text instead of an error: the agent
    /// takes any error for a failure of its own check, and can never create a file.
    pub missing_file_reads_empty: bool,
    /// Lines of tool calls are counted from 0, where the protocol counts from 1. None of the agents that were recorded does.
    pub lines_from_zero: bool,
    /// Where the command of a call is when the user is asked about it.
    pub command_in: CommandIn,
}

/// Where an agent says which command it wants to run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CommandIn {
    /// In the arguments, under `command`.
    #[default]
    Arguments,
    /// The title is the command, and there are no arguments.
    Title,
    /// The only text of the call is the command, after these words.
    TextAfter(&'static str),
}

/// By `agentInfo.name`.
const TABLE: &[(&str, Quirks)] = &[
    // tests/recordings/gemini-cli-0.61.0-edit.jsonl: `fs/read_text_file` #5 answered -32002, then `write_file` failed with
    // "Error checking existing file"; gemini-cli-0.61.0-emptyread.jsonl: the same, answered with "", and the file is written.
    // gemini-cli-0.61.0-shell.jsonl: `session/request_permission` of a shell command has no `rawInput`, the title is the command.
    ("gemini-cli", Quirks { missing_file_reads_empty: true, lines_from_zero: false, command_in: CommandIn::Title }),
    // kimi-code-2.1.0-edit.jsonl: `session/request_permission` #16 comes before the call's `rawInput`.
    (
        "Kimi Code CLI",
        Quirks {
            missing_file_reads_empty: false,
            lines_from_zero: false,
            command_in: CommandIn::TextAfter("Requesting approval to Running: "),
        },
    ),
];

impl Quirks {
    /// The quirks of the agent that calls itself `name`.
    pub fn of(name: &str) -> Self {
        TABLE.iter().find(|(known, _)| *known == name).map(|(_, quirks)| *quirks).unwrap_or_default()
    }
}
