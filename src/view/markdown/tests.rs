use std::collections::BTreeSet;

use proptest::prelude::*;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag};

use super::mark::narrow;
use super::*;

const ALL: std::ops::Range<u32> = 0..u32::MAX;

fn whole(text: &str) -> Markdown {
    let mut markdown = Markdown::default();
    markdown.push(text);
    markdown.finish();
    markdown
}

fn message(text: &str) -> GrowingText {
    let mut message = GrowingText::default();
    message.push_str(text);
    message
}

/// All marks of a text, of which `markdown` knows the beginning or the whole.
fn all_marks(markdown: &Markdown, text: &str) -> Vec<Mark> {
    markdown.marks(ALL.start, ALL.end, &message(text))
}

/// `row:text group` of every mark.
fn marks(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.split('\n').collect();
    let told = |mark: &Mark| {
        let row = mark.row as usize;
        format!("{row}:{} {:?}", &lines[row][mark.col as usize..mark.end_col as usize], mark.group)
    };
    all_marks(&whole(text), text).iter().map(told).collect()
}

#[test]
fn inline_markup() {
    assert_eq!(
        marks("a **b** _c_ ~~d~~ `e` [f](http://g) <http://h> see https://i.j/k."),
        [
            "0:**b** Strong",
            "0:_c_ Emphasis",
            "0:~~d~~ Strikethrough",
            "0:`e` Code",
            "0:[f] Link",
            "0:http://g Url",
            "0:<http://h> Url",
            "0:https://i.j/k Url",
        ]
    );
}

#[test]
fn headings() {
    assert_eq!(
        marks("# a `b`\n#c\n###### d\ne\n---\nf\n=="),
        [
            "0:# a `b` Heading(1)",
            "0:`b` Code",
            "2:###### d Heading(6)",
            "3:e Heading(2)",
            "4:--- Heading(2)",
            "5:f Heading(1)",
            "6:== Heading(1)"
        ]
    );
}

#[test]
fn lists_tasks_and_quotes() {
    assert_eq!(
        marks("- a\n  - [x] **b**\n    c *d*\n- [ ] e\n12) f\n> g\n> - `h`"),
        [
            "0:- ListMarker",
            "1:- ListMarker",
            "1:[x] TaskDone",
            "1:**b** Strong",
            "2:*d* Emphasis",
            "3:- ListMarker",
            "3:[ ] TaskTodo",
            "4:12) ListMarker",
            "5:> g Quote",
            "6:> - `h` Quote",
            "6:- ListMarker",
            "6:`h` Code",
        ]
    );
}

#[test]
fn code_and_rules() {
    let text = "```rust\nlet **a** = 1;\n\n```\n***\n- x\n  ~~~\n  y\n  ~~~\n\n    z\n";
    assert_eq!(
        marks(text),
        [
            "0:```rust Fence",
            "1:let **a** = 1; CodeBlock",
            "3:``` Fence",
            "4:*** Rule",
            "5:- ListMarker",
            "6:~~~ Fence",
            "7:y CodeBlock",
            "8:~~~ Fence",
        ]
    );
    let markdown = whole(text);
    let blocks: Vec<_> =
        markdown.code_blocks(0, 99).iter().map(|code| (code.first, code.end, &*code.language)).collect();
    assert_eq!(blocks, [(1, 3, "rust"), (7, 8, "")]);
}

/// The text with its paddings.
fn padded(text: &str) -> String {
    let markdown = whole(text);
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    for pad in markdown.pads(ALL.start, ALL.end).iter().rev() {
        let fill = if pad.is_dashes { "-" } else { " " }.repeat(pad.width.into());
        lines[pad.row as usize].insert_str(pad.col as usize, &fill);
    }
    lines.join("\n")
}

#[test]
fn tables_are_aligned_by_what_is_seen() {
    let text = "| a | right | c |\n|-|-:|:-:|\n| 日本 | 1 | mid |\n| `x` | 22 |\n|é| \\| |";
    let expected = "\
| a    | right | c |
|------|------:|:---:|
| 日本 |     1 | mid |
| `x`  |    22 |
|é     |    \\| |";
    // The middle column of the head is as wide as that of its line of dashes.
    assert_eq!(padded(text).replace("|  c  |", "| c |"), expected);
    assert!(marks(text).contains(&"0:| a | right | c | TableHeader".to_owned()));
    assert!(marks(text).contains(&"3:`x` Code".to_owned()));
}

#[test]
fn a_table_that_may_go_on_is_not_aligned_yet() {
    let mut markdown = Markdown::default();
    markdown.push("| a | b |\n|---|---|\n| long cell | 1 |\n");
    assert_eq!(markdown.pads(ALL.start, ALL.end), []);
    markdown.push("| c");
    assert_eq!(markdown.pads(ALL.start, ALL.end), []);
    markdown.push(" |\n\n");
    assert_ne!(markdown.pads(ALL.start, ALL.end), []);
}

#[test]
fn a_chunk_costs_the_same_wherever_it_comes() {
    // What is read again is what is not settled; nothing that grows may be part of it.
    let mut markdown = Markdown::default();
    for _ in 0..2_000 {
        markdown.push("one long paragraph with **strong** words and `code`, ");
        assert!(markdown.partial.len() <= LIMIT);
        assert!(markdown.marks.items.len() - markdown.marks.final_len < LIMIT);
    }
    for _ in 0..2_000 {
        markdown.push("\nanother line of *the same* paragraph");
        assert!(markdown.marks.items.len() - markdown.marks.final_len < LIMIT);
    }
    let text = format!(
        "{}{}",
        "one long paragraph with **strong** words and `code`, ".repeat(2_000),
        "\nanother line of *the same* paragraph".repeat(2_000)
    );
    assert!(markdown.marks(2_000, 2_001, &message(&text)).iter().any(|mark| mark.group == Group::Emphasis));
}

#[test]
fn a_fence_may_be_endless() {
    let mut markdown = Markdown::default();
    markdown.push("```\n");
    for _ in 0..10_000 {
        markdown.push("x\n");
        assert!(markdown.marks.items.len() - markdown.marks.final_len <= 1);
    }
    assert_eq!(markdown.marks(5_000, 5_001, &message(&format!("```\n{}", "x\n".repeat(10_000)))).len(), 1);
}

#[test]
fn what_comes_in_a_flood_is_read_when_it_is_looked_at() {
    let text = "# a `heading`\n\nsome *words*\r\nand `code`\n\n| a | `b` |\n|---|---|\n| <b> | *c* |\n\n".repeat(100);
    let (flood, mut trickle) = (whole(&text), Markdown::default());
    text.split_inclusive(' ').for_each(|piece| trickle.push(piece));
    trickle.finish();
    assert_eq!(all_marks(&flood, &text), all_marks(&trickle, &text));
    assert!(flood.marks.items.len() * 3 < trickle.marks.items.len() * 2, "only the blocks are there at once");
    for row in [0, 2, 3, 7, 450, 452, 453] {
        assert_eq!(flood.marks(row, row + 1, &message(&text)), trickle.marks(row, row + 1, &message(&text)));
    }
}

/// A text whose pieces are likely to be Markdown.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z äé日\u{301}\u{202e}]{1,6}",
        6 => prop::sample::select(vec![
            "\n", "\n\n", "*", "**", "_", "`", "```", "~~~", "~~", "[a](b)", "[", "]", "(", "<", ">", "> ", "- ", "* ",
            "1. ", "2) ", "# ", "## ", "---", "===", "|", "|a|b|\n|-|-|\n", " | ", ":-", "    ", "  ", "\t", "\\", "!",
            "[ ] ", "[x] ", "https://x.y", "\r", "\0", "\u{1b}[31m", "\u{7}", "&amp;", "<b>", "<!--",
        ]).prop_map(str::to_owned),
        1 => "\\PC{1,4}",
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// The text repeated until it is longer than the limits, for some.
fn any_length() -> impl Strategy<Value = String> {
    (any_text(), prop_oneof![4 => Just(1usize), 1 => 20usize..300])
        .prop_map(|(text, times)| text.repeat(times.min(60_000 / text.len().max(1))))
}

fn everything(markdown: &Markdown, text: &str) -> (Vec<Mark>, Vec<Pad>, Vec<CodeBlock>) {
    (all_marks(markdown, text), markdown.pads.items.clone(), markdown.code.items.clone())
}

proptest! {
    /// However the text is cut, the marks are the same, they are in order and within their lines, and what is told to have
    /// changed is all that did.
    #[test]
    fn pieces_add_up(text in any_length(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..20)) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut markdown = Markdown::default();
        let mut copy = (Vec::new(), Vec::new());
        for piece in cuts.windows(2) {
            let old_rows = narrow(text[..piece[0]].matches('\n').count()) + 1;
            markdown.push(&text[piece[0]..piece[1]]);
            let marks = all_marks(&markdown, &text[..piece[1]]);
            let new = Place { row: old_rows, col: 0 };
            let changed = markdown.take_changed();
            let from = changed.map_or(new, |changed| changed.from.min(new));
            let len = (copy.0.len(), copy.1.len());
            let is_new = |row, col| Place { row, col } >= from;
            copy.0.retain(|mark: &Mark| !is_new(mark.row, mark.col));
            copy.1.retain(|pad: &Pad| !is_new(pad.row, pad.col));
            prop_assert!(changed.is_some_and(|changed| changed.had_marks) || len == (copy.0.len(), copy.1.len()));
            copy.0.extend(marks.iter().filter(|mark| is_new(mark.row, mark.col)));
            copy.1.extend(markdown.pads.items.iter().filter(|pad| is_new(pad.row, pad.col)));
            prop_assert_eq!(&copy.0, &marks);
            prop_assert_eq!(&copy.1, &markdown.pads.items);
        }
        markdown.finish();
        prop_assert_eq!(everything(&markdown, &text), everything(&whole(&text), &text));
        let marks = all_marks(&markdown, &text);
        prop_assert!(markdown.marks.items.is_sorted_by_key(|mark| (mark.row, mark.col)));
        prop_assert!(markdown.pads.items.is_sorted_by_key(|pad| pad.row));
        let lines: Vec<&str> = text.split('\n').collect();
        for mark in &marks {
            let line = lines[mark.row as usize];
            prop_assert!(mark.col < mark.end_col && line.get(mark.col as usize..mark.end_col as usize).is_some());
        }
        for pad in &markdown.pads.items {
            prop_assert!(lines[pad.row as usize].is_char_boundary(pad.col as usize));
        }
    }
}

// -- against pulldown-cmark

/// Lines of a document that is written as people and agents write.
fn blocks(depth: u32) -> BoxedStrategy<Vec<String>> {
    let words = || {
        let word = prop_oneof![
            4 => "[a-z]{1,5}",
            1 => "\\*\\*[a-z]{1,4}\\*\\*",
            1 => "_[a-z]{1,4}_",
            1 => "`[a-z*]{1,4}`",
            1 => "~~[a-z]{1,4}~~",
            1 => "\\[[a-z]{1,3}\\]\\(http://[a-z]{1,3}\\)",
        ];
        proptest::collection::vec(word, 1..6).prop_map(|words| words.join(" "))
    };
    let code = prop_oneof!["[a-z]{1,6}", Just(String::new()), Just("# no heading".into()), Just("  **x**".into())];
    let leaf = prop_oneof![
        4 => proptest::collection::vec(words(), 1..4),
        1 => (1usize..=6, words()).prop_map(|(level, text)| vec![format!("{} {text}", "#".repeat(level))]),
        1 => words().prop_map(|text| vec![text, "---".into()]),
        1 => proptest::collection::vec(code, 0..5).prop_map(|mut lines| {
            lines.insert(0, "```lua".into());
            lines.push("```".into());
            lines
        }),
        1 => Just(vec!["***".to_owned()]),
        1 => proptest::collection::vec((words(), words()), 1..4).prop_map(|rows| {
            let mut lines: Vec<String> = rows.iter().map(|(a, b)| format!("| {a} | {b} |")).collect();
            lines.insert(1, "| :-- | --- |".into());
            lines
        }),
    ];
    let one = if depth == 0 {
        leaf.boxed()
    } else {
        prop_oneof![
            4 => leaf,
            1 => blocks(depth - 1).prop_map(|lines| lines.iter().map(|line| format!("> {line}")).collect()),
            2 => (prop::sample::select(vec!["- ", "1. ", "- [ ] ", "* [x] "]), proptest::collection::vec(blocks(depth - 1), 1..4))
                .prop_map(|(marker, items)| {
                    let indent = if marker.starts_with('1') { 3 } else { 2 };
                    items.iter().flat_map(|item| list_item(marker, indent, item)).collect()
                }),
        ]
        .boxed()
    };
    proptest::collection::vec(one, 1..4).prop_map(|blocks| blocks.join(&String::new())).boxed()
}

fn list_item(marker: &str, indent: usize, lines: &[String]) -> Vec<String> {
    // A check box stands before text.
    let first = if marker.contains('[') { format!("{marker}task") } else { format!("{marker}item") };
    let rest = lines.iter().map(|line| if line.is_empty() { String::new() } else { format!("{:indent$}{line}", "") });
    [first, String::new()].into_iter().chain(rest).collect()
}

type Feature = (u32, u32, Group);

/// What pulldown-cmark makes of the whole text: where what begins.
fn reference(text: &str) -> BTreeSet<Feature> {
    let place = |at: usize| {
        let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        (narrow(text[..at].matches('\n').count()), narrow(at - line_start))
    };
    let options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let mut found = BTreeSet::new();
    let mut in_code = false;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        let (row, col) = place(range.start);
        let mut add = |group| found.insert((row, col, group));
        match event {
            Event::Start(Tag::Strong) => add(Group::Strong),
            Event::Start(Tag::Emphasis) => add(Group::Emphasis),
            Event::Start(Tag::Strikethrough) => add(Group::Strikethrough),
            Event::Start(Tag::Link { .. }) => add(Group::Link),
            Event::Code(_) => add(Group::Code),
            Event::Rule => add(Group::Rule),
            Event::TaskListMarker(is_done) => add(if is_done { Group::TaskDone } else { Group::TaskTodo }),
            Event::Start(Tag::Item) => add(Group::ListMarker),
            Event::Start(Tag::TableHead) => add(Group::TableHeader),
            Event::Start(Tag::Heading { level, .. }) => add(Group::Heading(match level {
                HeadingLevel::H1 => 1,
                HeadingLevel::H2 => 2,
                HeadingLevel::H3 => 3,
                HeadingLevel::H4 => 4,
                HeadingLevel::H5 => 5,
                HeadingLevel::H6 => 6,
            })),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => {
                in_code = true;
                add(Group::Fence)
            }
            Event::End(pulldown_cmark::TagEnd::CodeBlock) => {
                in_code = false;
                false
            }
            Event::Text(code) if in_code => {
                let rows = (row..).zip(code.lines()).filter(|(_, line)| !line.is_empty());
                found.extend(rows.map(|(row, _)| (row, 0, Group::CodeBlock)));
                false
            }
            _ => false,
        };
    }
    found
}

/// The same of ours.
fn features(text: &str) -> BTreeSet<Feature> {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut found = BTreeSet::new();
    for mark in all_marks(&whole(text), text) {
        let line = lines[mark.row as usize].trim_start_matches([' ', '>', '-', '*', '1', '.']);
        match mark.group {
            Group::CodeBlock => found.insert((mark.row, 0, mark.group)),
            // The closing fence, the signs of a table and the line below a heading have no place of their own there.
            Group::Fence if line == "```" => false,
            Group::Heading(_) if line.is_empty() => false,
            Group::Quote | Group::TableBorder | Group::Url => false,
            group => found.insert((mark.row, mark.col, group)),
        };
    }
    found
}

proptest! {
    /// Documents that are written as usual have the same structure as for pulldown-cmark.
    #[test]
    fn the_structure_is_that_of_one_parse(lines in blocks(2)) {
        let text = lines.join("\n");
        prop_assert_eq!(features(&text), reference(&text), "{}", text);
    }
}
