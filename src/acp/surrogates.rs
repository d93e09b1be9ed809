//! Repair of lone surrogate escapes.
//!
//! Agents written in JavaScript cut a character in two when they stream, and then send one half as `"\ud83d"`. That is
//! no character, so no JSON parser for UTF-8 takes it, and the whole message would be lost for it.

use std::borrow::Cow;

/// `json` with every `\uD800`–`\uDFFF` escape that is not one half of a pair replaced by `\ufffd`.
pub(super) fn repair(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let mut repaired: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|&byte| byte == b'\\') {
        let escape = at + found;
        at = match unit(bytes, escape) {
            // Any other escape is two bytes long as far as this is concerned; `\\` must not begin the next one.
            None => escape + 2,
            Some(0xD800..=0xDBFF) if matches!(unit(bytes, escape + 6), Some(0xDC00..=0xDFFF)) => escape + 12,
            Some(0xD800..=0xDFFF) => {
                let copy = repaired.get_or_insert_with(|| bytes.to_vec());
                copy[escape..escape + 6].copy_from_slice(b"\\ufffd");
                escape + 6
            }
            Some(_) => escape + 6,
        };
        if at >= bytes.len() {
            break;
        }
    }
    match repaired.map(String::from_utf8) {
        Some(Ok(text)) => Cow::Owned(text),
        _ => Cow::Borrowed(json),
    }
}

/// The code unit of the `\uXXXX` escape at `at`, if there is one.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    if !escape.starts_with(b"\\u") {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(&escape[2..]).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_halves_are_replaced_and_pairs_kept() {
        for (sent, meant) in [
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""a\ud83d""#, r#""a\ufffd""#),
            (r#""\ude00b""#, r#""\ufffdb""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#""\uD83Dx\n\u00e4""#, r#""\ufffdx\n\u00e4""#),
            (r#""\"#, r#""\"#),
            (r#""\ud8"#, r#""\ud8"#),
        ] {
            assert_eq!(repair(sent), meant);
        }
    }
}
