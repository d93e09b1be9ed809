//! What is peculiar about single agents: one table, each entry with the traffic that shows it.

/// Deviations from the protocol, or from what it leaves open, that a client has to live with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quirks {
    /// `fs/read_text_file` of a file that does not exist is answered with an empty text instead of an error: the agent
    /// takes any error for a failure of its own check, and can never create a file.
    pub missing_file_reads_empty: bool,
    /// Lines of tool calls are counted from 0, where the protocol counts from 1. None of the agents that were recorded does.
    pub lines_from_zero: bool,
}

/// By `agentInfo.name`.
const TABLE: &[(&str, Quirks)] = &[
    // tests/recordings/gemini-cli-0.61.0-edit.jsonl: `fs/read_text_file` #5 answered -32002, then `write_file` failed with
    // "Error checking existing file"; gemini-cli-0.61.0-emptyread.jsonl: the same, answered with "", and the file is written.
    ("gemini-cli", Quirks { missing_file_reads_empty: true, lines_from_zero: false }),
];

impl Quirks {
    /// The quirks of the agent that calls itself `name`.
    pub fn of(name: &str) -> Self {
        TABLE.iter().find(|(known, _)| *known == name).map(|(_, quirks)| *quirks).unwrap_or_default()
    }
}
