//! Takes secrets out of text that is about to be written down.
//!
//! What counts as a secret:
//! * the value that follows a name such as `X_API_KEY`, `x-api-key`, `apiKey`, or one ending in `token`, `secret`,
//!   `password`, `authorization` or `cookie`, in the shapes of an environment (`X_API_KEY=…`), a header
//!   (`Authorization: …`), an option (`--api-key …`), JSON (`"apiKey":"…"`, also escaped inside of a string), ACP's
//!   `{"name":"X_TOKEN","value":"…"}` and Rust's `("X_TOKEN", "…")`;
//! * what follows `Bearer` or `Basic`;
//! * words that begin like the well-known kinds of keys (`sk-…`, `ghp_…`, …), and JSON web tokens;
//! * the password in `scheme://user:password@host`.
//!
//! It rather takes too much than too little, but it is a net, not a proof: a secret without any of these signs passes,
//! and so does `{"value":"…","name":"X_TOKEN"}`, where the sign comes after the secret.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::Span;
use aho_corasick::packed::{Config, Searcher};

/// What stands in for a secret.
pub const REDACTED: &str = "[redacted]";

/// Names whose lower-case form ends so are names of secrets.
const SECRET_NAMES: &[&str] = &[
    "_key",
    "-key",
    "apikey",
    "accesskey",
    "authkey",
    "privatekey",
    "secretkey",
    "token",
    "secret",
    "password",
    "passwd",
    "authorization",
    "cookie",
    "credential",
    "credentials",
];

/// How the keys of services that have a recognizable kind of key begin.
const KEY_PREFIXES: &[&str] = &[
    "sk-",
    "sk_",
    "rk_",
    "pk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "hf_",
    "AIza",
    "AKIA",
    "ASIA",
    "ya29",
    "gsk_",
    "xai-",
    "npm_",
    "eyJ",
];

/// From this length on, in bytes, a word with such a beginning is a key rather than a name.
const MIN_KEY_BYTES: usize = 16;

/// From this length on, in bytes, what follows `Bearer` is a token rather than the next word of a sentence.
const MIN_BEARER_BYTES: usize = 8;

/// What every secret has in its name or at its beginning, in lower case. Only words in which one of these is are looked at.
const SIGNS: &[&str] = &[
    "key",
    "token",
    "secret",
    "passw",
    "authorization",
    "cookie",
    "credential",
    "bearer",
    "basic",
    "://",
    "sk-",
    "sk_",
    "rk_",
    "pk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "hf_",
    "aiza",
    "akia",
    "asia",
    "ya29",
    "xai-",
    "npm_",
    "eyj",
];

/// Longest of [`SIGNS`], in bytes.
const LONGEST_SIGN: usize = 13;

/// Finds [`SIGNS`] in lower-case bytes; `None` on machines that it does not know, where every word is looked at.
static FINDER: LazyLock<Option<Searcher>> = LazyLock::new(|| Config::new().builder().extend(SIGNS).build());

/// How much text is made lower-case at once, in bytes.
const WINDOW: usize = 32 * 1024;

/// A look for [`SIGNS`] from one end of a text to the other.
struct Signs<'a> {
    text: &'a [u8],
    /// A part of the text, in lower case.
    window: Vec<u8>,
    /// Where it begins.
    start: usize,
}

impl Signs<'_> {
    /// Where the next one is, from `at` on, which only ever grows.
    fn next(&mut self, finder: &Searcher, at: usize) -> Option<usize> {
        let mut at = at;
        loop {
            let end = self.start + self.window.len();
            if at < end {
                let span = Span { start: at - self.start, end: self.window.len() };
                if let Some(found) = finder.find_in(&self.window, span) {
                    return Some(self.start + found.start());
                }
            }
            if end == self.text.len() {
                return None;
            }
            // One may lie across the end.
            at = at.max(end.saturating_sub(LONGEST_SIGN - 1));
            self.start = at;
            self.window.clear();
            self.window.extend(self.text[at..self.text.len().min(at + WINDOW)].iter().map(u8::to_ascii_lowercase));
        }
    }
}

/// `text` with [`REDACTED`] in the place of every secret. Takes time proportional to the text's length.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut signs = Signs { text: text.as_bytes(), window: Vec::new(), start: 0 };
    let mut result = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(word) = next_word(text, at, &mut signs) {
        let (end, secret) = next_piece(text, word);
        at = end;
        if let Some(secret) = secret {
            result.push_str(&text[copied..secret.start]);
            result.push_str(REDACTED);
            (at, copied) = (secret.end, secret.end);
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    result.push_str(&text[copied..]);
    Cow::Owned(result)
}

/// Where the next word or separator begins, from `at` on, that may be or announce a secret.
fn next_word(text: &str, at: usize, signs: &mut Signs<'_>) -> Option<usize> {
    let Some(finder) = &*FINDER else { return (at < text.len()).then_some(at) };
    let sign = signs.next(finder, at)?;
    let before = text.as_bytes()[at..sign].iter().rev().take_while(|&&byte| is_name_byte(byte)).count();
    Some(sign - before)
}

/// The end of the word or separator that begins at `at`, and the secret that is in it or announced by it.
fn next_piece(text: &str, at: usize) -> (usize, Option<Range<usize>>) {
    let end = run(text, at, is_name_byte);
    if end == at {
        let end = run(text, at, |byte| !is_name_byte(byte) && byte != b':').max(at + 1);
        return (end, url_password(text, at));
    }
    // In JSON inside of a string, a word may have the `n` of `\n` before it.
    let escaped = at > 0 && text.as_bytes()[at - 1] == b'\\' && text[at..].starts_with(['n', 'r', 't', 'b', 'f']);
    let secret = secret_at(text, at, end).or_else(|| if escaped { secret_at(text, at + 1, end) } else { None });
    (end, secret)
}

fn secret_at(text: &str, start: usize, end: usize) -> Option<Range<usize>> {
    let word = &text[start..end];
    // Every word comes here, so what is cheap to see is looked at first: how long it is, and what follows it.
    let may_be_key = end - start >= MIN_KEY_BYTES || text.as_bytes().get(end) == Some(&b'.');
    if may_be_key && KEY_PREFIXES.iter().any(|prefix| word.starts_with(prefix)) {
        let key_end = run(text, end, |byte| is_name_byte(byte) || byte == b'.');
        if key_end - start >= MIN_KEY_BYTES {
            return Some(start..key_end);
        }
    }
    if word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic") {
        let token = run(text, end, is_blank);
        let token_end = run(text, token, |byte| is_name_byte(byte) || b"._~+/=".contains(&byte));
        return (token > end && token_end - token >= MIN_BEARER_BYTES).then_some(token..token_end);
    }
    if may_announce(text, word, end) && is_secret_name(word) { value_after(text, word, end) } else { None }
}

/// Whether something that could be a value of `word` follows it. [`value_after`] looks more closely.
fn may_announce(text: &str, word: &str, end: usize) -> bool {
    let bytes = text.as_bytes();
    let mut at = run(text, end, |byte| byte == b'\\');
    if matches!(bytes.get(at), Some(b'"' | b'\'')) {
        at += 1;
    }
    at = run(text, at, is_blank);
    matches!(bytes.get(at), Some(b'=' | b':' | b',')) || word.starts_with("--")
}

fn is_secret_name(word: &str) -> bool {
    // `openaiKey`, but not `Key` or `monkey`.
    let camel = word.strip_suffix("Key").is_some_and(|rest| rest.ends_with(|c: char| c.is_ascii_lowercase()));
    camel || SECRET_NAMES.iter().any(|suffix| ends_with_ignoring_case(word.as_bytes(), suffix.as_bytes()))
}

fn ends_with_ignoring_case(word: &[u8], suffix: &[u8]) -> bool {
    word.len() >= suffix.len() && word[word.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
}

/// The value that belongs to the name `word`, which ends at `end`.
fn value_after(text: &str, word: &str, end: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let name_quote = quote_at(text, end);
    let after_name = name_quote.as_ref().map_or(end, |quote| quote.end);
    let separator = run(text, after_name, is_blank);
    let mut value = match bytes.get(separator)? {
        b'=' | b':' if bytes.get(separator + 1) != Some(&b':') => separator + 1,
        b',' if name_quote.is_some() => return value_of_pair(text, separator + 1),
        _ if name_quote.is_none() && word.starts_with("--") && separator > after_name && bytes[separator] != b'-' => {
            separator
        }
        _ => return None,
    };
    value = run(text, value, is_space);
    for opening in ["Some(", "["] {
        if text[value..].starts_with(opening) {
            value += opening.len();
        }
    }
    if let Some(quote) = quote_at(text, value) {
        return Some(quoted(text, &quote));
    }
    let lower = word.to_ascii_lowercase();
    let whole_line = lower.ends_with("authorization") || lower.ends_with("cookie");
    let value_end = run(text, value, |byte| {
        !b"\n\r\"'\\".contains(&byte) && (whole_line || !(is_blank(byte) || b",;&}])<".contains(&byte)))
    });
    let nothing = ["", "null", "None", "true", "false", "{"].contains(&&text[value..value_end]);
    (!nothing).then_some(value..value_end)
}

/// The second half of `"name", "…"` or of `"name":"NAME","value":"…"`, of which `at` is behind the comma.
fn value_of_pair(text: &str, at: usize) -> Option<Range<usize>> {
    let start = run(text, at, is_space);
    let quote = quote_at(text, start);
    let key = quote.as_ref().map_or(start, |quote| quote.end);
    let Some(rest) = text[key..].strip_prefix("value") else {
        return quote.map(|quote| quoted(text, &quote));
    };
    let key_end = text.len() - rest.len();
    let colon = quote_at(text, key_end).map_or(key_end, |quote| quote.end);
    let colon = run(text, colon, is_blank);
    if text.as_bytes().get(colon) != Some(&b':') {
        return quote.map(|quote| quoted(text, &quote));
    }
    quote_at(text, run(text, colon + 1, is_space)).map(|quote| quoted(text, &quote))
}

/// The quote that begins at `at`, with the backslashes before it.
fn quote_at(text: &str, at: usize) -> Option<Range<usize>> {
    let quote = run(text, at, |byte| byte == b'\\');
    matches!(text.as_bytes().get(quote), Some(b'"' | b'\'')).then_some(at..quote + 1)
}

/// What is between the opening quote `opening` and its closing one, which has as many backslashes before it.
fn quoted(text: &str, opening: &Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let mark = bytes[opening.end - 1];
    let depth = opening.len() - 1;
    let mut backslashes = 0;
    for (offset, &byte) in bytes[opening.end..].iter().enumerate() {
        if byte == mark && backslashes <= depth {
            return opening.end..opening.end + offset - backslashes;
        }
        backslashes = if byte == b'\\' { backslashes + 1 } else { 0 };
    }
    opening.end..text.len()
}

/// The password in `://user:password@host`, if `at` is at the colon of such a thing.
fn url_password(text: &str, at: usize) -> Option<Range<usize>> {
    let authority = at + text[at..].strip_prefix("://").map(|_| 3)?;
    let authority_end = run(text, authority, |byte| !is_space(byte) && !b"/?#\"'`\\<>".contains(&byte));
    let user_end = authority + text[authority..authority_end].rfind('@')?;
    let password = authority + text[authority..user_end].find(':')? + 1;
    (password < user_end).then_some(password..user_end)
}

/// The end of the longest run of such bytes from `at` on. `wanted` treats all bytes that are not ASCII alike, so that
/// the end is between characters.
fn run(text: &str, at: usize, wanted: impl Fn(u8) -> bool) -> usize {
    text.as_bytes()[at..].iter().position(|&byte| !wanted(byte)).map_or(text.len(), |length| at + length)
}

/// A table, since every byte of every text is asked about.
const NAME_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        byte += 1;
    }
    table
};

fn is_name_byte(byte: u8) -> bool {
    NAME_BYTES[usize::from(byte)]
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn secrets_go_and_what_is_around_them_stays() {
        let cases = [
            ("OPENAI_API_KEY=abc next", "OPENAI_API_KEY=[redacted] next"),
            ("export GH_TOKEN='a b' x", "export GH_TOKEN='[redacted]' x"),
            ("curl -H 'Authorization: Bearer abc.def' url", "curl -H 'Authorization: [redacted]' url"),
            ("Authorization: Basic dXNlcjpwYXNz\nHost: x", "Authorization: [redacted]\nHost: x"),
            ("x-api-key: 12345", "x-api-key: [redacted]"),
            ("sent bearer abcdefgh, got 401", "sent bearer [redacted], got 401"),
            (r#"{"apiKey":"a\"b","n":1}"#, r#"{"apiKey":"[redacted]","n":1}"#),
            (r#"{"text":"{\"apiKey\":\"ab\",\"n\":1}"}"#, r#"{"text":"{\"apiKey\":\"[redacted]\",\"n\":1}"}"#),
            (r#"{"name":"X_TOKEN", "value": "abc"}"#, r#"{"name":"X_TOKEN", "value": "[redacted]"}"#),
            (r#"{\"name\":\"X_TOKEN\",\"value\":\"abc\"}"#, r#"{\"name\":\"X_TOKEN\",\"value\":\"[redacted]\"}"#),
            (r#"Env { name: "X_KEY", value: "abc" }"#, r#"Env { name: "X_KEY", value: "[redacted]" }"#),
            (r#"[("X_KEY", "abc"), ("HOME", "/h")]"#, r#"[("X_KEY", "[redacted]"), ("HOME", "/h")]"#),
            (r#"api_key: Some("abc"), model: "m""#, r#"api_key: Some("[redacted]"), model: "m""#),
            ("agent --api-key abc --model m", "agent --api-key [redacted] --model m"),
            ("agent --token=abc --model m", "agent --token=[redacted] --model m"),
            ("the key sk-proj-abcdefghijk is wrong", "the key [redacted] is wrong"),
            (r#""text\nsk-proj-abcdefghijk""#, r#""text\n[redacted]""#),
            ("eyJhbGciOi.eyJzdWIiOi.c2ln é", "[redacted] é"),
            ("https://me:pa:ss@host/x?y", "https://me:[redacted]@host/x?y"),
            ("é=://é:é@é", "é=://é:[redacted]@é"),
        ];
        for (text, expected) in cases {
            assert_eq!(redact(text), expected);
        }
    }

    #[test]
    fn ordinary_text_is_untouched() {
        let cases = [
            "the monkey: a key, 3 tokens: 5",
            "https://host:8080/a@b",
            "token::new(5), the token is gone",
            r#"{"token":null,"apiKey":"#,
            "git log --oneline sk-learn",
            "héllo → wörld",
            "a bearer of news",
        ];
        for text in cases {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn every_name_and_every_kind_of_key_has_a_sign() {
        for known in SECRET_NAMES.iter().chain(KEY_PREFIXES) {
            let lower = known.to_lowercase();
            assert!(SIGNS.iter().any(|sign| lower.contains(sign)), "{known}");
        }
        assert_eq!(SIGNS.iter().map(|sign| sign.len()).max(), Some(LONGEST_SIGN));
        assert!(SIGNS.iter().all(|sign| *sign == sign.to_lowercase()));
    }

    #[test]
    fn a_secret_is_found_wherever_it_is_in_a_long_text() {
        for before in (WINDOW - 40..WINDOW + 20).chain([2 * WINDOW - 5, 3 * WINDOW]) {
            let text = format!("{} X_API_KEY=abc {} AUTHORIZATION: def", "é ".repeat(before / 3), "x ".repeat(WINDOW));
            let redacted = redact(&text);
            assert!(!redacted.contains("abc") && !redacted.contains("def") && redacted.contains("KEY="), "{before}");
        }
    }

    /// The same, looking at every word.
    fn redact_each_word(text: &str) -> String {
        let mut result = String::new();
        let (mut at, mut copied) = (0, 0);
        while at < text.len() {
            let (end, secret) = next_piece(text, at);
            at = end;
            if let Some(secret) = secret {
                result.push_str(&text[copied..secret.start]);
                result.push_str(REDACTED);
                (at, copied) = (secret.end, secret.end);
            }
        }
        result.push_str(&text[copied..]);
        result
    }

    proptest! {
        #[test]
        fn no_word_is_passed_over(
            text in r#"(\PC|[\\"'=:, \n{\[@]|_KEY|apiKey|Bearer |BASIC |sk-|ghp_|eyJ|[a-z]{14}|://|"value"|Some\(|--token ){0,40}"#,
        ) {
            prop_assert_eq!(redact(&text), redact_each_word(&text));
        }

        #[test]
        fn no_text_is_too_strange(text in r#"(\PC|[\\"'=:, \n{\[@]|_KEY|Bearer |sk-|://|"value"|Some\(|--token ){0,40}"#) {
            redact(&text);
        }

        #[test]
        fn a_value_of_a_secret_name_never_passes(
            name in "[A-Z]{1,8}_(KEY|TOKEN|SECRET|PASSWORD)",
            secret in "[G-Z]{12}[0-9]{4}",
            around in r#"([a-f{}\[\], ]|\\n|"){0,12}"#,
        ) {
            for text in [
                format!("{around}{name}={secret}{around}"),
                format!("{around}\"{name}\": \"{secret}\"{around}"),
                format!("{around}{{\"name\":\"{name}\",\"value\":\"{secret}\"}}{around}"),
            ] {
                prop_assert!(!redact(&text).contains(&secret), "{}", redact(&text));
            }
        }
    }
}
