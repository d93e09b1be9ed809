//! Chunks of one message, as lines: all alike but for their text. What was understood of one is known of the next.

use std::borrow::Cow;

use super::decode::Chunk;
use crate::core::transcript::Speaker;

/// The last chunk that was read in full, without its text. The default is that there was none.
#[derive(Debug)]
pub(super) struct Alike {
    /// The line up to the text, with its opening quote.
    before: Vec<u8>,
    /// The line from the closing quote on.
    after: Vec<u8>,
    session: String,
    speaker: Speaker,
    message_id: Option<String>,
}

impl Default for Alike {
    fn default() -> Self {
        let (before, after, session) = (Vec::new(), Vec::new(), String::new());
        Self { before, after, session, speaker: Speaker::Agent, message_id: None }
    }
}

impl Alike {
    /// What lines like this one have in common; `None` if the text has escapes, so that it is not a part of the line.
    pub(super) fn of(line: &str, chunk: &Chunk<'_>) -> Option<Self> {
        let Cow::Borrowed(text) = chunk.text else { return None };
        let start = (text.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
        let (before, after) = (line.get(..start)?, line.get(start + text.len()..)?);
        // Whatever the decoder does, this is what the rest relies on.
        (before.ends_with('"') && after.starts_with('"')).then(|| Self {
            before: before.as_bytes().to_vec(),
            after: after.as_bytes().to_vec(),
            session: chunk.session.clone().into_owned(),
            speaker: chunk.speaker,
            message_id: chunk.message_id.clone().map(Cow::into_owned),
        })
    }

    /// The text of a line that has everything else in common with that one. Since all around it is the same, so is what it
    /// means, if only what is between the quotes is one string.
    pub(super) fn text<'a>(&self, line: &'a [u8]) -> Option<Cow<'a, str>> {
        if self.before.is_empty() {
            return None;
        }
        let quoted = line.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        // Not `any`: without an early end, the loop is vectorised.
        if quoted.iter().fold(u8::MAX, |least, &byte| least.min(byte)) < b' ' {
            return None;
        }
        let text = simdutf8::basic::from_utf8(quoted).ok()?;
        match memchr::memchr2(b'"', b'\\', quoted) {
            None => Some(Cow::Borrowed(text)),
            Some(first) => unescaped(text, first).map(Cow::Owned),
        }
    }

    /// The chunk with that text.
    pub(super) fn chunk<'a>(&'a self, text: Cow<'a, str>) -> Chunk<'a> {
        Chunk {
            session: Cow::Borrowed(&self.session),
            speaker: self.speaker,
            message_id: self.message_id.as_deref().map(Cow::Borrowed),
            text,
        }
    }
}

/// What stands in a JSON string, of which the first quote or escape is at `first`. `None` if it is not one string, or has
/// a character by its number.
fn unescaped(text: &str, first: usize) -> Option<String> {
    let mut result = String::with_capacity(text.len());
    let (mut from, mut special) = (0, Some(first));
    while let Some(at) = special {
        result.push_str(&text[from..at]);
        // A quote that is not escaped is the end of a string.
        let escaped = text[at..].strip_prefix('\\')?.bytes().next()?;
        result.push(match escaped {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'"' | b'\\' | b'/' => char::from(escaped),
            _ => return None,
        });
        from = at + 2;
        special = memchr::memchr2(b'"', b'\\', &text.as_bytes()[from..]).map(|offset| from + offset);
    }
    result.push_str(&text[from..]);
    Some(result)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::decode::chunk_line;
    use super::*;

    /// A chunk with that text, as JSON.
    fn line(text: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{{"type":"text","text":{text},"_meta":{{"a":"b"}}}}}}}}}}"#
        )
    }

    fn known() -> Alike {
        let line = line("\"some text\"");
        Alike::of(&line, &chunk_line(&line).unwrap()).unwrap()
    }

    #[test]
    fn what_is_not_one_string_goes_the_long_way() {
        assert_eq!(Alike::default().text(line("\"a\"").as_bytes()), None);
        let alike = known();
        for inside in [r#""a","text":"b""#, r#""a\""#, "\"a\tb\"", r#""\ud800""#, r#""\x""#, r#""a"b""#, "1"] {
            assert_eq!(alike.text(line(inside).as_bytes()), None, "{inside}");
        }
        assert_eq!(alike.text(line("\"a\"").replace(r#""s""#, r#""t""#).as_bytes()), None, "another session");
        assert_eq!(alike.text([line("\"").as_bytes()].concat().as_slice()), None, "one quote for both");
        let broken =
            line("\"a?b\"").into_bytes().iter().map(|&byte| if byte == b'?' { 0xff } else { byte }).collect::<Vec<_>>();
        assert_eq!(alike.text(&broken), None, "no UTF-8");
        let escaped = line(r#""a\nb""#);
        assert!(Alike::of(&escaped, &chunk_line(&escaped).unwrap()).is_none());
    }

    proptest! {
        #[test]
        fn the_short_way_and_the_long_way_agree(inside in r#"(\PC|\\|"|\\n|\\u00e9|\\ud83d\\ude00|","text":"|[\x00-\x20]){0,12}"#) {
            let line = line(&format!("\"{inside}\""));
            let alike = known();
            if let Some(text) = alike.text(line.as_bytes()) {
                let (short, long) = (alike.chunk(text), chunk_line(&line).expect("a chunk"));
                prop_assert_eq!(short.text, long.text);
                prop_assert_eq!((short.session, short.message_id), (long.session, long.message_id));
            }
        }

        #[test]
        fn any_text_is_read(text in r"\PC{0,40}") {
            let line = line(&serde_json::to_string(&text).unwrap());
            prop_assert_eq!(known().text(line.as_bytes()), Some(Cow::Owned(text)));
        }
    }
}
