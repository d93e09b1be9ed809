//! What may be peculiar about an agent. Which agent it is of is in the table of agents (`agents::known`), each with the
//! traffic that shows it.

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

impl Quirks {
    /// None: what the protocol says.
    pub const NONE: Self =
        Self { missing_file_reads_empty: false, lines_from_zero: false, command_in: CommandIn::Arguments };
}
