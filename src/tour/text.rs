//! Text of the guide: cutting it into chunks, quoting code.

/// Chunks grow to about this many bytes, a few words, like those of a model.
const CHUNK_BYTES: usize = 12;
/// A chunk without a blank is cut at this many bytes.
const LONGEST_CHUNK_BYTES: usize = 24;
/// A quoted line is cut at this many characters.
const QUOTED_LINE_CHARS: usize = 120;

/// Cuts `text` into chunks of a few words; together they are `text`.
pub(super) fn chunks(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (chunk, after) = rest.split_at(chunk_end(rest));
        rest = after;
        Some(chunk)
    })
}

fn chunk_end(text: &str) -> usize {
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        if end >= LONGEST_CHUNK_BYTES || (end >= CHUNK_BYTES && character.is_whitespace()) {
            return end;
        }
    }
    text.len()
}

/// A fenced code block of `lines`, whose fence is longer than any in them.
pub(super) fn code_block<'a>(language: &str, lines: impl IntoIterator<Item = &'a str>) -> String {
    let lines: Vec<String> = lines.into_iter().map(cut_line).collect();
    let longest_run = lines.iter().map(|line| longest_backtick_run(line)).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest_run + 1));
    let mut block = format!("{fence}{language}\n");
    for line in &lines {
        block.push_str(line);
        block.push('\n');
    }
    block.push_str(&fence);
    block.push('\n');
    block
}

/// `text` as inline code on one line, whatever is in it, cut to a length that suits a sentence.
pub(super) fn inline_code(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = cut_line(&line);
    let fence = "`".repeat(longest_backtick_run(&line) + 1);
    let pad = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{line}{pad}{fence}")
}

fn cut_line(line: &str) -> String {
    match line.char_indices().nth(QUOTED_LINE_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

fn longest_backtick_run(line: &str) -> usize {
    line.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chunks_are_the_text(text in ".{0,200}") {
            prop_assert_eq!(chunks(&text).collect::<String>(), text.clone());
            prop_assert!(chunks(&text).all(|chunk| !chunk.is_empty() && chunk.len() < LONGEST_CHUNK_BYTES + 4));
        }
    }

    #[test]
    fn chunks_are_a_few_words() {
        let chunks: Vec<_> = chunks("I am your guide through this editor.").collect();
        assert_eq!(chunks, ["I am your guide ", "through this ", "editor."]);
    }

    #[test]
    fn a_fence_in_the_code_does_not_end_the_block() {
        assert_eq!(code_block("md", ["```lua", "```"]), "````md\n```lua\n```\n````\n");
        assert_eq!(inline_code("a `b`\n c"), "``a `b` c``");
    }
}
