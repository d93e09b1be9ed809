//! What is inside of a paragraph, a heading or a cell: pulldown-cmark's part.

use std::ops::Range;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

use super::mark::{Group, Mark, narrow};
use crate::core::text::GrowingText;

/// Text of a leaf block, without the signs of the containers around it, and where its lines stand in the message.
#[derive(Debug, Clone, Default)]
pub(super) struct Segment {
    /// Begins with [`GUARD`]; its lines are separated by line breaks.
    text: String,
    lines: Vec<Line>,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    /// Where it begins in `text`.
    start: usize,
    row: u32,
    col: u32,
    /// Where it begins in the message.
    at: u32,
}

/// Stands before the text, so that its beginning is never read as the beginning of a block; as a sign of punctuation it
/// changes nothing about what may follow it.
const GUARD: &str = ".";

impl Segment {
    /// Begins a line, whose text stands `at` this byte of the message.
    pub(super) fn line(&mut self, text: &str, row: u32, col: usize, at: usize) {
        self.text.push_str(if self.lines.is_empty() { GUARD } else { "\n" });
        self.lines.push(Line { start: self.text.len(), row, col: narrow(col), at: narrow(at) });
        push_without_returns(&mut self.text, text);
    }

    /// Continues the last line.
    pub(super) fn more(&mut self, text: &str) {
        push_without_returns(&mut self.text, text);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// The last line: its text, its row, its first byte there and in the message.
    pub(super) fn last_line(&self) -> Option<(&str, u32, usize, usize)> {
        self.lines.last().map(|line| (&self.text[line.start..], line.row, line.col as usize, line.at as usize))
    }

    /// Takes the last line off.
    pub(super) fn pop_line(&mut self) {
        if let Some(line) = self.lines.pop() {
            self.text.truncate(line.start.saturating_sub(1));
        }
    }

    /// Leaves only what comes after the last blank of the last line; all of it is dropped where there is none.
    pub(super) fn keep_last_word(&mut self) {
        let Some(line) = self.lines.last().copied() else { return };
        let text = &self.text[line.start..];
        let cut = text.rfind([' ', '\t']).map_or(text.len(), |blank| blank + 1);
        let word = text[cut..].to_owned();
        *self = Self::default();
        self.line(&word, line.row, line.col as usize + cut, line.at as usize + cut);
    }

    /// The part of the text before what [`keep_last_word`](Self::keep_last_word) leaves.
    fn before_last_word(&self) -> usize {
        let Some(line) = self.lines.last() else { return 0 };
        self.text[line.start..].rfind([' ', '\t']).map_or(self.text.len(), |blank| line.start + blank + 1)
    }

    /// One group for all lines, from their first to their last byte.
    pub(super) fn mark_lines(&self, group: Group, out: &mut Vec<Mark>) {
        self.place(GUARD.len()..self.text.len(), group, out);
    }

    /// Puts a range of the text into the rows that it covers.
    fn place(&self, range: Range<usize>, group: Group, out: &mut Vec<Mark>) {
        let first = self.lines.partition_point(|line| line.start <= range.start).saturating_sub(1);
        for (at, line) in self.lines.iter().enumerate().skip(first) {
            if line.start >= range.end {
                break;
            }
            let line_end = self.lines.get(at + 1).map_or(self.text.len(), |next| next.start - 1);
            let (from, to) = (range.start.max(line.start), range.end.min(line_end));
            if from < to {
                let col = |at: usize| line.col + narrow(at - line.start);
                out.push(Mark { row: line.row, col: col(from), end_col: col(to), group });
            }
        }
    }
}

/// Leaf blocks whose inside is still to be read, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Unread {
    segments: Vec<Segment>,
}

impl Unread {
    /// A whole segment.
    pub(super) fn push(&mut self, segment: Segment) {
        if !segment.is_empty() {
            self.segments.push(segment);
        }
    }

    /// A segment without its last word.
    pub(super) fn push_before_last_word(&mut self, segment: &Segment) {
        let mut segment = segment.clone();
        segment.text.truncate(segment.before_last_word());
        self.push(segment);
    }

    /// A line of text that is a block of its own.
    pub(super) fn push_line(&mut self, text: &str, row: u32, col: usize, at: usize) {
        if has_signs(text) {
            let mut segment = Segment::default();
            segment.line(text, row, col, at);
            self.push(segment);
        }
    }

    /// Takes those that begin in `row` or below.
    pub(super) fn split_off(&mut self, row: u32) -> Self {
        let at = self.segments.partition_point(|segment| segment.lines.first().is_some_and(|line| line.row < row));
        Self { segments: self.segments.split_off(at) }
    }

    /// Reads all of them at once: to begin to read costs pulldown-cmark more than a line does. The marks are in no order.
    pub(super) fn read(&mut self, out: &mut Vec<Mark>) {
        let mut all = Segment::default();
        for segment in self.segments.drain(..).filter(|segment| has_signs(&segment.text)) {
            // HTML and code blocks might not end where the segment does, at an empty line.
            let text = &segment.text;
            if text.contains('<') || text.contains("\n```") || text.contains("\n~~~") {
                inline(text, |range, group| segment.place(range, group, out));
                continue;
            }
            if !all.text.is_empty() {
                all.text.push_str("\n\n");
            }
            let offset = all.text.len();
            all.text.push_str(text);
            all.lines.extend(segment.lines.iter().map(|line| Line { start: line.start + offset, ..*line }));
        }
        inline(&all.text, |range, group| all.place(range, group, out));
    }
}

/// Leaf blocks that are read only when somebody looks at them, as the places of their lines in the message: in a flood of
/// text that is a few of thousands.
#[derive(Debug, Clone, Default)]
pub(super) struct Later {
    /// By row.
    lines: Vec<Piece>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    row: u32,
    col: u32,
    at: u32,
    /// Length in bytes.
    len: u32,
    is_first: bool,
}

impl Later {
    pub(super) fn extend(&mut self, unread: Unread) {
        for segment in unread.segments {
            for (index, line) in segment.lines.iter().enumerate() {
                let end = segment.lines.get(index + 1).map_or(segment.text.len(), |next| next.start - 1);
                let len = narrow(end.saturating_sub(line.start));
                self.lines.push(Piece { row: line.row, col: line.col, at: line.at, len, is_first: index == 0 });
            }
        }
    }

    /// Reads those with a line in rows `first` up to, without, `end`; `message` is the text that all were found in. The
    /// marks are in no order, and may be of rows around those.
    pub(super) fn read(&self, first: u32, end: u32, message: &GrowingText, out: &mut Vec<Mark>) {
        let inside = self.lines.partition_point(|line| line.row < first);
        let begins = |line: &Piece| line.is_first;
        let from = match self.lines.get(inside) {
            Some(line) if !line.is_first => self.lines[..inside].iter().rposition(begins).unwrap_or(inside),
            _ => inside,
        };
        let mut unread = Unread::default();
        for line in self.lines[from..].iter().take_while(|line| !line.is_first || line.row < end) {
            if line.is_first {
                unread.segments.push(Segment::default());
            }
            let Some(segment) = unread.segments.last_mut() else { continue };
            let text: String = message.slices(line.at as usize, line.len as usize).collect();
            segment.line(&text, line.row, line.col as usize, line.at as usize);
        }
        unread.read(out);
    }
}

/// A carriage return is no line break in the buffer.
fn push_without_returns(out: &mut String, text: &str) {
    let mut from = 0;
    for at in memchr::memchr_iter(b'\r', text.as_bytes()) {
        out.push_str(&text[from..at]);
        out.push(' ');
        from = at + 1;
    }
    out.push_str(&text[from..]);
}

/// Whether there may be anything to mark.
fn has_signs(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, b'*' | b'_' | b'`' | b'~' | b'[' | b'<'))
        || memchr::memmem::find(text.as_bytes(), b"://").is_some()
}

/// A link whose end was not met yet.
struct OpenLink {
    is_inline: bool,
    /// End of what was met inside of it.
    inner_end: usize,
}

/// Calls `emit` for everything in `text` that is marked, in no order.
fn inline(text: &str, mut emit: impl FnMut(Range<usize>, Group)) {
    if !has_signs(text) {
        return;
    }
    let mut links: Vec<OpenLink> = Vec::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH).into_offset_iter() {
        match &event {
            Event::Start(Tag::Strong) => emit(range.clone(), Group::Strong),
            Event::Start(Tag::Emphasis) => emit(range.clone(), Group::Emphasis),
            Event::Start(Tag::Strikethrough) => emit(range.clone(), Group::Strikethrough),
            Event::Code(_) => emit(range.clone(), Group::Code),
            Event::Text(_) if links.is_empty() => bare_urls(text, range.clone(), &mut emit),
            _ => {}
        }
        match event {
            Event::Start(Tag::Link { link_type, .. } | Tag::Image { link_type, .. }) => {
                links.push(OpenLink { is_inline: link_type == LinkType::Inline, inner_end: range.start + 1 });
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                if let Some(link) = links.pop() {
                    end_link(&link, text, range.clone(), &mut emit);
                }
                extend(&mut links, range.end);
            }
            _ => extend(&mut links, range.end),
        }
    }
}

/// Notes that something inside of the innermost link ends there.
fn extend(links: &mut [OpenLink], end: usize) {
    if let Some(link) = links.last_mut() {
        link.inner_end = link.inner_end.max(end);
    }
}

fn end_link(link: &OpenLink, text: &str, range: Range<usize>, emit: &mut impl FnMut(Range<usize>, Group)) {
    // `](`, as nothing else can stand between the text and the address.
    let address = link.inner_end + 2;
    if link.is_inline && address < range.end && text.is_char_boundary(address) {
        emit(range.start..address - 1, Group::Link);
        emit(address..range.end - 1, Group::Url);
    } else if link.is_inline {
        emit(range, Group::Link);
    } else {
        emit(range, Group::Url);
    }
}

/// `https://…` without any signs around it.
fn bare_urls(text: &str, range: Range<usize>, emit: &mut impl FnMut(Range<usize>, Group)) {
    let mut from = range.start;
    while let Some(at) = text[from..range.end].find("://").map(|at| from + at) {
        let scheme = ["https", "http"].into_iter().find(|scheme| text[from..at].ends_with(scheme));
        let rest = &text[at..];
        let end =
            rest.find(|c: char| c.is_whitespace() || c.is_control() || "<>\"`|".contains(c)).unwrap_or(rest.len());
        let url = rest[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '*', '_']);
        if let Some(scheme) = scheme
            && url.len() > "://".len()
        {
            emit(at - scheme.len()..at + url.len(), Group::Url);
        }
        from = (at + end).min(range.end).max(at + "://".len());
        if from >= range.end {
            break;
        }
    }
}
