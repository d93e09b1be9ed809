//! How well a path fits what was typed of it.

/// Points for each matched character.
const MATCH: i32 = 16;
/// More for one that follows the one matched before.
const CONSECUTIVE: i32 = 16;
/// More for the first character of a word.
const WORD: i32 = 10;
/// More for one in the last component, where one usually looks.
const NAME: i32 = 4;
/// More for each that has the case that was typed.
const CASE: i32 = 1;
/// Places where a match may end that are tried, from the end of the path.
const MAX_ENDS: usize = 8;

/// The score of `path` for `query`, higher is better; `None` if the characters of the query are not all in it, in order.
/// Case counts only where the query has a capital letter, and only for letters of ASCII.
pub fn score(path: &str, query: &str) -> Option<i32> {
    let (path, query) = (path.as_bytes(), query.as_bytes());
    if query.is_empty() {
        return Some(0);
    }
    let earliest = earliest_end(path, query)?;
    let last = query[query.len() - 1];
    let ends = (earliest..=path.len()).rev().filter(|&end| fits(path[end - 1], last)).take(MAX_ENDS);
    let best = ends.map(|end| score_ending_at(path, query, end)).max()?;
    let length = i32::try_from(path.len()).unwrap_or(i32::MAX);
    Some(best.saturating_sub(length / 4))
}

/// Where the match that is found from the front ends.
fn earliest_end(path: &[u8], query: &[u8]) -> Option<usize> {
    query.iter().try_fold(0, |at, &wanted| Some(at + path[at..].iter().position(|&byte| fits(byte, wanted))? + 1))
}

/// The score of the match that is found from `end` backwards; there is one.
fn score_ending_at(path: &[u8], query: &[u8], end: usize) -> i32 {
    let name = path[..path.len().saturating_sub(1)].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let mut left = query;
    let mut score = 0;
    let mut next_match = None;
    for (at, &byte) in path[..end].iter().enumerate().rev() {
        let Some((&wanted, rest)) = left.split_last() else { break };
        if fits(byte, wanted) {
            left = rest;
            score += MATCH;
            score += if next_match == Some(at + 1) { CONSECUTIVE } else { 0 };
            score += if starts_word(path, at) { WORD } else { 0 };
            score += if at >= name { NAME } else { 0 };
            score += if byte == wanted { CASE } else { 0 };
            next_match = Some(at);
        }
    }
    score
}

fn fits(byte: u8, wanted: u8) -> bool {
    byte == wanted || (wanted.is_ascii_lowercase() && byte.to_ascii_lowercase() == wanted)
}

fn starts_word(path: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| path[before]) else { return true };
    !before.is_ascii_alphanumeric() && before.is_ascii() || before.is_ascii_lowercase() && path[at].is_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn best<'a>(paths: &[&'a str], query: &str) -> Option<&'a str> {
        let scored = paths.iter().filter_map(|path| Some((score(path, query)?, *path)));
        scored.max_by_key(|(score, _)| *score).map(|(_, path)| path)
    }

    #[test]
    fn names_words_and_whole_pieces_come_first() {
        let paths = ["src/main.rs", "src/domain/mod.rs", "doc/maintenance.md", "Makefile", "tests/m/a/i/n.txt"];
        assert_eq!(best(&paths, "main"), Some("src/main.rs"));
        assert_eq!(best(&paths, "dom"), Some("src/domain/mod.rs"));
        assert_eq!(best(&paths, "mf"), Some("Makefile"));
        assert_eq!(best(&paths, "Makefile"), Some("Makefile"));
        assert_eq!(best(&paths, "docmd"), Some("doc/maintenance.md"));
        assert_eq!(best(&paths, "zzz"), None);
        assert_eq!(best(&["a.rs", "A.rs"], "A"), Some("A.rs"));
        assert_eq!(score("a.rs", "A"), None);
    }

    proptest! {
        #[test]
        fn whatever_is_left_out_of_a_path_it_is_found(path in "\\PC{0,40}", kept in proptest::collection::vec(any::<bool>(), 40)) {
            let query: String = path.chars().zip(kept).filter(|(_, kept)| *kept).map(|(character, _)| character).collect();
            prop_assert!(score(&path, &query).is_some());
        }
    }
}
