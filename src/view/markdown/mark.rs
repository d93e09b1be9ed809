//! What the Markdown of a message looks like: marks, and virtual padding.

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// A heading's line; level 1 to 6.
    Heading(u8),
    /// A line of a block quote, from its sign on.
    Quote,
    /// A line of a code block.
    CodeBlock,
    /// The line that opens or closes a code block.
    Fence,
    /// A line of a table's head.
    TableHeader,
    /// What stands between the cells of a table, and its line of dashes.
    TableBorder,
    /// A line across.
    Rule,
    /// Bullet or number of a list item.
    ListMarker,
    /// Check box of a task that is done.
    TaskDone,
    /// Check box of a task that is not.
    TaskTodo,
    /// `**strong**`
    Strong,
    /// `*emphasis*`
    Emphasis,
    /// `~~struck through~~`
    Strikethrough,
    /// `` `code` ``
    Code,
    /// The text of a link.
    Link,
    /// Where a link leads.
    Url,
}

impl Group {
    /// The highlight group.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Heading(1) => "AgentChatHeading1",
            Self::Heading(2) => "AgentChatHeading2",
            Self::Heading(3) => "AgentChatHeading3",
            Self::Heading(4) => "AgentChatHeading4",
            Self::Heading(5) => "AgentChatHeading5",
            Self::Heading(_) => "AgentChatHeading6",
            Self::Quote => "AgentChatQuote",
            Self::CodeBlock => "AgentChatCodeBlock",
            Self::Fence => "AgentChatFence",
            Self::TableHeader => "AgentChatTableHeader",
            Self::TableBorder => "AgentChatTableBorder",
            Self::Rule => "AgentChatRule",
            Self::ListMarker => "AgentChatListMarker",
            Self::TaskDone => "AgentChatTaskDone",
            Self::TaskTodo => "AgentChatTaskTodo",
            Self::Strong => "AgentChatStrong",
            Self::Emphasis => "AgentChatEmphasis",
            Self::Strikethrough => "AgentChatStrikethrough",
            Self::Code => "AgentChatCode",
            Self::Link => "AgentChatLink",
            Self::Url => "AgentChatUrl",
        }
    }

    /// Whether it is for whole lines, below what is marked inside of them.
    pub const fn is_block(self) -> bool {
        matches!(self, Self::Heading(_) | Self::Quote | Self::CodeBlock | Self::TableHeader)
    }
}

/// A highlight within one row. Rows count from the message's first, columns are bytes; both are 0-based.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// The row.
    pub row: u32,
    /// First byte.
    pub col: u32,
    /// Byte after the last.
    pub end_col: u32,
    /// What it is.
    pub group: Group,
}

/// Columns that are shown, and are not in the text, so that the cells of a table stand below each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pad {
    /// The row.
    pub row: u32,
    /// The byte before which they stand.
    pub col: u32,
    /// How many.
    pub width: u16,
    /// Of dashes, not of blanks.
    pub is_dashes: bool,
}

/// A code block that is complete.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeBlock {
    /// First row of the code.
    pub first: u32,
    /// Row after the last.
    pub end: u32,
    /// First word after the opening fence.
    pub language: String,
}

/// A place in the message: everything from there on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The row.
    pub row: u32,
    /// The byte in it.
    pub col: u32,
}

/// A row, length or column as it is kept. What is beyond 4 GiB is not marked rightly.
pub(super) fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
