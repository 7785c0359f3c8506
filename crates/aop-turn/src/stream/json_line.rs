//! Reads one line as a JSON object, also where the writer was sloppy.
//!
//! Real streams carry bytes that strict JSON forbids: broken UTF-8 out of a tool, lone surrogates that a
//! JavaScript engine writes, NUL padding after a crash. None of them may cost us a message, so a line that
//! does not parse is repaired and tried once more.

use serde_json::{Map, Value};

/// The object in the line, or nothing.
pub(crate) fn parse_object(line: &[u8]) -> Option<Map<String, Value>> {
    let line = trim(line);
    let value = serde_json::from_slice(line).or_else(|_| serde_json::from_str(&repaired(line)));
    match value {
        Ok(Value::Object(fields)) => Some(fields),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) | Err(_) => {
            None
        }
    }
}

/// Without blanks, NULs and a byte order mark around it.
pub(crate) fn trim(line: &[u8]) -> &[u8] {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    let Some(start) = line.iter().position(|byte| !blank(byte)) else { return &[] };
    let end = line.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    &line[start..end]
}

fn repaired(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(c) = rest.chars().next() {
        if c == '\\' {
            let (escape, length) = repaired_escape(rest);
            out.push_str(escape);
            rest = &rest[length..];
        } else {
            out.push(if c.is_control() { '\u{fffd}' } else { c });
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// The escape at the beginning of `text` in a form that parses, and how much of `text` it stands for.
fn repaired_escape(text: &str) -> (&str, usize) {
    match surrogate(text) {
        None => {
            let length = text.chars().take(2).map(char::len_utf8).sum();
            (&text[..length], length)
        }
        Some(Half::High) if matches!(text.get(6..).and_then(surrogate), Some(Half::Low)) => (&text[..12], 12),
        Some(Half::High | Half::Low) => ("\\ufffd", 6),
    }
}

enum Half {
    High,
    Low,
}

fn surrogate(text: &str) -> Option<Half> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(line: &[u8]) -> Option<String> {
        parse_object(line)?.get("t")?.as_str().map(str::to_owned)
    }

    #[test]
    fn sloppy_lines_are_read_all_the_same() {
        assert_eq!(text_of(b"\xef\xbb\xbf {\"t\":\"a\"}\0\0").as_deref(), Some("a"));
        assert_eq!(text_of(b"{\"t\":\"a\xffb\"}").as_deref(), Some("a\u{fffd}b"));
        assert_eq!(text_of(b"{\"t\":\"a\0b\"}").as_deref(), Some("a\u{fffd}b"));
        assert_eq!(text_of(br#"{"t":"a\ud83d"}"#).as_deref(), Some("a\u{fffd}"));
        assert_eq!(text_of(br#"{"t":"\ude00\ud83d\ude00\\ud83d"}"#).as_deref(), Some("\u{fffd}😀\\ud83d"));
    }

    #[test]
    fn what_is_no_object_is_nothing() {
        for line in [&b""[..], b"[]", b"{", b"\\", b"\\u", b"{\"t\":\"\\ud8", b"\xff\\"] {
            assert!(parse_object(line).is_none());
        }
    }
}
