//! The block structure of Markdown, a line at a time: what is open is all that is remembered.

use super::cursor::Cursor;
use super::inline::{Segment, Unread};
use super::mark::{CodeBlock, Group, Mark, narrow};
use super::starts::{self, Alignment, Fence, ListMarker};
use super::table::TableRow;
use super::{LIMIT, MAX_COL};

/// What a line brought.
#[derive(Debug, Clone)]
pub(super) enum Found {
    /// A row of the open table.
    Row(TableRow),
    /// The table is complete.
    EndOfTable(Vec<Alignment>),
    /// A code block is complete.
    Code(CodeBlock),
}

/// The open blocks after some number of lines.
#[derive(Debug, Clone, Default)]
pub(super) struct Blocks {
    containers: Vec<Container>,
    leaf: Leaf,
    /// The row that comes next, or is being read.
    row: u32,
    /// Where the line, or the part of one, that is being read begins in the message.
    at: usize,
    /// Marks of the open leaf and of the signs beside it.
    pending: Vec<Mark>,
    /// Marks that are final, in order.
    pub(super) marks: Vec<Mark>,
    /// Where there are more of them.
    pub(super) unread: Unread,
    /// What else was found, in order.
    pub(super) found: Vec<Found>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Quote,
    Item {
        /// Columns that its content is indented by.
        width: usize,
        /// Whether it has content yet.
        is_filled: bool,
    },
}

#[derive(Debug, Clone, Default)]
enum Leaf {
    #[default]
    None,
    Paragraph(Segment),
    Code(Code),
    Table(Vec<Alignment>),
}

#[derive(Debug, Clone)]
struct Code {
    /// None for an indented block.
    fence: Option<(Fence, usize)>,
    language: String,
    first: u32,
}

/// What became of a line.
enum Step {
    Done,
    GoOn,
}

impl Blocks {
    /// Reads a line, or the first [`LIMIT`] bytes of a longer one (`is_whole` is false then, and
    /// [`more`](Self::more) follows), which begins `at` this byte of the message. Call [`end_line`](Self::end_line)
    /// afterwards.
    pub(super) fn line(&mut self, text: &str, at: usize, is_whole: bool) {
        self.at = at;
        let mut cursor = Cursor::new(text);
        let matched = self.match_containers(&mut cursor);
        self.content(text, &mut cursor, matched);
        if !is_whole {
            self.cut_in_line();
        } else if let Leaf::Paragraph(segment) = &mut self.leaf
            && segment.len() >= LIMIT
        {
            self.unread.push(std::mem::take(segment));
        }
        self.settle();
    }

    /// Reads more of a long line; `col` is where it stands.
    pub(super) fn more(&mut self, text: &str, col: usize) {
        if col >= MAX_COL {
            return;
        }
        match &mut self.leaf {
            Leaf::Paragraph(segment) => {
                segment.more(text);
                self.cut_in_line();
            }
            Leaf::Code(_) => self.mark(col, col + text.len(), Group::CodeBlock),
            Leaf::None | Leaf::Table(_) => {}
        }
        self.settle();
    }

    /// The row that is being read.
    pub(super) const fn row(&self) -> u32 {
        self.row
    }

    /// The line is over.
    pub(super) const fn end_line(&mut self) {
        self.row += 1;
    }

    /// The text is over: everything is closed.
    pub(super) fn finish(&mut self) {
        self.close_containers(0);
    }

    /// Makes final what is open, as it stands.
    pub(super) fn show_open(&mut self) {
        if let Leaf::Paragraph(segment) = &self.leaf {
            self.unread.push(segment.clone());
        }
        self.flush();
    }

    /// In a long line, what is complete becomes final.
    fn cut_in_line(&mut self) {
        if let Leaf::Paragraph(segment) = &mut self.leaf
            && segment.len() >= LIMIT
        {
            self.unread.push_before_last_word(segment);
            segment.keep_last_word();
            self.flush();
        }
    }

    /// Marks are final unless a paragraph is open, whose marks come before those of later lines.
    fn settle(&mut self) {
        if !matches!(&self.leaf, Leaf::Paragraph(segment) if !segment.is_empty()) {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.pending.sort_unstable();
        self.marks.append(&mut self.pending);
    }

    fn mark(&mut self, col: usize, end_col: usize, group: Group) {
        if col < end_col {
            self.pending.push(Mark { row: self.row, col: narrow(col), end_col: narrow(end_col), group });
        }
    }

    /// Goes past the signs of the containers that the line continues; returns how many those are.
    fn match_containers(&mut self, cursor: &mut Cursor) -> usize {
        for at in 0..self.containers.len() {
            let matches = match self.containers[at] {
                Container::Quote => self.quote_sign(cursor, !self.containers[..at].contains(&Container::Quote)),
                Container::Item { is_filled: false, .. } if cursor.is_blank() => false,
                Container::Item { width, .. } => {
                    let fits = cursor.is_blank() || cursor.indent() >= width;
                    if fits {
                        cursor.skip_columns(width);
                    }
                    fits
                }
            };
            if !matches {
                return at;
            }
        }
        self.containers.len()
    }

    /// Goes past a quote's sign, if there is one.
    fn quote_sign(&mut self, cursor: &mut Cursor, is_outermost: bool) -> bool {
        let mut after = *cursor;
        after.skip_white();
        if cursor.indent() > 3 || !after.rest().starts_with('>') {
            return false;
        }
        if is_outermost {
            self.mark(after.at(), after.at() + after.rest().len(), Group::Quote);
        }
        after.skip(1);
        after.skip_columns(1);
        *cursor = after;
        true
    }

    /// Reads what comes after the signs of the open containers.
    fn content(&mut self, text: &str, cursor: &mut Cursor, matched: usize) {
        if matched == self.containers.len() && matches!(self.continue_code(text, cursor), Step::Done) {
            return;
        }
        if matched < self.containers.len() && !matches!(self.leaf, Leaf::Paragraph(_)) {
            self.close_containers(matched);
        }
        let mut matched = matched;
        while !cursor.is_blank() {
            match self.start(text, cursor, matched) {
                Some(Step::Done) => return,
                Some(Step::GoOn) => matched = self.containers.len(),
                None => break,
            }
        }
        self.text(text, cursor, matched);
    }

    /// The line as part of the open code block.
    fn continue_code(&mut self, text: &str, cursor: &mut Cursor) -> Step {
        let Leaf::Code(code) = &self.leaf else { return Step::GoOn };
        let indent = cursor.indent();
        match code.fence {
            Some((fence, fence_indent)) => {
                let mut after = *cursor;
                after.skip_white();
                if indent <= 3 && starts::closes(after.rest(), fence) {
                    self.mark(after.at(), text.len(), Group::Fence);
                    self.close_leaf();
                    return Step::Done;
                }
                cursor.skip_columns(fence_indent);
            }
            None if cursor.is_blank() => return Step::Done,
            None if indent >= 4 => {
                cursor.skip_columns(4);
            }
            None => {
                self.close_leaf();
                return Step::GoOn;
            }
        }
        self.mark(cursor.at(), text.len(), Group::CodeBlock);
        Step::Done
    }

    /// A block that begins here; none if what comes is text. `matched` containers are continued by this line.
    fn start(&mut self, text: &str, cursor: &mut Cursor, matched: usize) -> Option<Step> {
        let in_paragraph = matches!(self.leaf, Leaf::Paragraph(_));
        if cursor.indent() >= 4 {
            return (!in_paragraph && !matches!(self.leaf, Leaf::Table(_))).then(|| {
                self.close_containers(matched);
                self.begin_code(None, "", self.row);
                self.fill_items();
                cursor.skip_columns(4);
                self.mark(cursor.at(), text.len(), Group::CodeBlock);
                Step::Done
            });
        }
        let indent = cursor.indent();
        let mut after = *cursor;
        after.skip_white();
        let rest = after.rest();
        // As almost every line begins, and no block does.
        if rest.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return None;
        }
        if rest.starts_with('>') {
            self.close_for(matched);
            let is_outermost = !self.containers.contains(&Container::Quote);
            self.quote_sign(cursor, is_outermost);
            self.fill_items();
            self.containers.push(Container::Quote);
            return Some(Step::GoOn);
        }
        if let Some(level) = starts::heading(rest) {
            self.close_for(matched);
            self.fill_items();
            self.mark(after.at(), text.trim_end().len(), Group::Heading(level));
            self.unread.push_line(rest, self.row, after.at(), self.at + after.at());
            return Some(Step::Done);
        }
        if let Some((fence, info)) = starts::opening_fence(rest) {
            self.close_for(matched);
            self.fill_items();
            self.mark(after.at(), text.len(), Group::Fence);
            self.begin_code(Some((fence, indent)), info, self.row + 1);
            return Some(Step::Done);
        }
        if matched == self.containers.len()
            && let Some(level) = starts::underline(rest)
            && let Leaf::Paragraph(segment) = &self.leaf
        {
            segment.mark_lines(Group::Heading(level), &mut self.pending);
            self.mark(after.at(), text.trim_end().len(), Group::Heading(level));
            self.close_leaf();
            return Some(Step::Done);
        }
        if starts::is_rule(rest) {
            self.close_for(matched);
            self.fill_items();
            self.mark(after.at(), text.trim_end().len(), Group::Rule);
            return Some(Step::Done);
        }
        let marker = starts::list_marker(rest)?;
        let is_empty = rest[marker.len..].trim_ascii().is_empty();
        // A number other than 1 within a paragraph, or a bullet without text, is most often just text.
        if in_paragraph && matched == self.containers.len() && (is_empty || !marker.interrupts) {
            return None;
        }
        self.begin_item(cursor, after, indent, marker, matched);
        Some(Step::GoOn)
    }

    fn begin_item<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        mut after: Cursor<'a>,
        indent: usize,
        marker: ListMarker,
        matched: usize,
    ) {
        self.close_for(matched);
        self.fill_items();
        self.mark(after.at(), after.at() + marker.len, Group::ListMarker);
        after.skip(marker.len);
        let is_empty = after.is_blank();
        let blanks = after.indent();
        // More than four columns are one, and an indented code block.
        let blanks = if is_empty || blanks > 4 { 1 } else { blanks };
        after.skip_columns(blanks);
        let width = indent + marker.len + blanks;
        self.containers.push(Container::Item { width, is_filled: false });
        *cursor = after;
        let mut content = after;
        content.skip_white();
        if let Some(is_done) = starts::check_box(content.rest()) {
            let group = if is_done { Group::TaskDone } else { Group::TaskTodo };
            self.mark(content.at(), content.at() + 3, group);
            content.skip(3);
            *cursor = content;
        }
    }

    /// The rest of a line is text, or nothing.
    fn text(&mut self, text: &str, cursor: &mut Cursor, matched: usize) {
        if cursor.is_blank() {
            self.close_containers(matched);
            self.close_leaf();
            return;
        }
        cursor.skip_white();
        let at = cursor.at();
        if matched == self.containers.len() {
            if let Leaf::Table(alignments) = &self.leaf {
                let columns = alignments.len();
                self.table_row(cursor.rest(), at, self.at + at, columns, None);
                return;
            }
            if self.begin_table(cursor.rest(), at) {
                return;
            }
        }
        if !matches!(self.leaf, Leaf::Paragraph(_)) {
            self.close_containers(matched);
            self.leaf = Leaf::Paragraph(Segment::default());
        }
        self.fill_items();
        if let Leaf::Paragraph(segment) = &mut self.leaf {
            segment.line(&text[at..], self.row, at, self.at + at);
        }
    }

    /// Begins a table if this is a line of dashes, and the open paragraph's last line has as many cells.
    fn begin_table(&mut self, text: &str, at: usize) -> bool {
        let Some(alignments) = starts::delimiters(text) else { return false };
        let Leaf::Paragraph(segment) = &mut self.leaf else { return false };
        let Some((head, row, col, head_at)) = segment.last_line() else { return false };
        if row + 1 != self.row || starts::cells(head).len() != alignments.len() {
            return false;
        }
        let head = head.to_owned();
        segment.pop_line();
        self.unread.push(std::mem::take(segment));
        let (columns, end) = (alignments.len(), col + head.trim_end().len());
        self.leaf = Leaf::Table(alignments.clone());
        self.row -= 1;
        self.mark(col, end, Group::TableHeader);
        self.table_row(&head, col, head_at, columns, None);
        self.row += 1;
        self.table_row(text, at, self.at + at, columns, Some(&alignments));
        true
    }

    /// A row of a table, at byte `at` of its line and byte `in_message` of the message.
    fn table_row(
        &mut self,
        text: &str,
        at: usize,
        in_message: usize,
        columns: usize,
        delimiters: Option<&[Alignment]>,
    ) {
        let cells = starts::cells(text);
        if delimiters.is_some() {
            self.mark(at, at + text.trim_end().len(), Group::TableBorder);
        } else {
            for (column, cell) in cells.iter().enumerate() {
                if column < columns {
                    let (col, in_message) = (at + cell.start, in_message + cell.start);
                    self.unread.push_line(&text[cell.clone()], self.row, col, in_message);
                }
                if text[..cell.start].ends_with('|') {
                    self.mark(at + cell.start - 1, at + cell.start, Group::TableBorder);
                }
            }
            if let Some(last) = cells.last()
                && text[last.end..].starts_with('|')
            {
                self.mark(at + last.end, at + last.end + 1, Group::TableBorder);
            }
        }
        let row = TableRow::new(text, &cells[..cells.len().min(columns)], self.row, at, delimiters.is_some());
        self.found.push(Found::Row(row));
    }

    fn begin_code(&mut self, fence: Option<(Fence, usize)>, info: &str, first: u32) {
        let word = info.split([' ', '\t', ',', '{', '}', '\r']).find(|word| !word.is_empty()).unwrap_or_default();
        // The signs of a quote stand between the lines of the code.
        let is_quoted = self.containers.contains(&Container::Quote);
        let language = if is_quoted { String::new() } else { word.to_owned() };
        self.leaf = Leaf::Code(Code { fence, language, first });
    }

    /// Closes what a new block closes in a line that continues `matched` containers.
    fn close_for(&mut self, matched: usize) {
        self.close_containers(matched);
        self.close_leaf();
    }

    fn close_containers(&mut self, left: usize) {
        if left < self.containers.len() || left == 0 {
            self.close_leaf();
            self.containers.truncate(left);
        }
    }

    fn close_leaf(&mut self) {
        match std::mem::take(&mut self.leaf) {
            Leaf::None => {}
            Leaf::Paragraph(segment) => {
                self.unread.push(segment);
                self.flush();
            }
            Leaf::Code(Code { language, first, .. }) => {
                self.found.push(Found::Code(CodeBlock { first, end: self.row, language }));
            }
            Leaf::Table(alignments) => self.found.push(Found::EndOfTable(alignments)),
        }
    }

    /// The open list items have content now.
    fn fill_items(&mut self) {
        for container in &mut self.containers {
            if let Container::Item { is_filled, .. } = container {
                *is_filled = true;
            }
        }
    }
}
