//! Finds the JSON object a message ends with, and is not fooled by objects it merely shows.
//!
//! Counts: the whole message, bare or in one fence; an object that begins at a line start outside any fence
//! and runs to the end; a closed fence at the end that holds one object and is labelled `json` or nothing.
//! Does not count: an object in the middle of a line, in a quotation, in an indented block, in a fence of
//! another language, in a fence within a fence, in a fence that is never closed, or with words after it. Behind a fence
//! that is never closed nobody can tell whether the object is meant or shown. Taken for prose it costs a person a reply;
//! an example that is taken for the result would send the feature on with work that nobody did.

use aop_ask::json::{DUPLICATE_KEY, read, read_plainly};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The object at the end of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tail {
    pub(crate) object: Map<String, Value>,
    /// Why it is not what was written.
    pub(crate) flaw: Option<Flaw>,
    /// The message is nothing but this object.
    pub(crate) whole: bool,
}

/// A key stands twice, of which only one is read, a number would become another one, or it is too deep or too large to see
/// whether that is so: whoever wrote it has not said what was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// In words.
    pub(crate) why: String,
    /// Where a key stands twice.
    twice: Vec<String>,
}

impl Flaw {
    /// Whether the object may say that the work is done and that it is not.
    pub(crate) fn is_of_marker(&self) -> bool {
        self.twice.iter().any(|path| path.strip_prefix('/') == Some(crate::MARKER))
    }

    /// Whether what a worker requests may be something else than was read.
    pub(crate) fn is_of_request(&self) -> bool {
        let says = ["/type", "/outcome", "/request", "/request/action"];
        self.is_of_marker() || self.twice.iter().any(|path| says.contains(&path.as_str()))
    }
}

/// The object, or in words why there is none.
pub(crate) fn closing_object(text: &str) -> Result<Tail, &'static str> {
    let text = text.trim();
    if text.is_empty() {
        return Err("the message is empty");
    }
    if text.starts_with('{')
        && let Some(tail) = parse(text, true)
    {
        return Ok(tail);
    }
    let mut fence: Option<Fence<'_>> = None;
    let mut bare_starts = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let end = offset + line.len();
        match &fence {
            Some(open) if open.is_closed_by(line) => {
                if end == text.len() {
                    return open.closing_object(&text[open.content..offset]);
                }
                fence = None;
            }
            Some(_) => {}
            None => {
                fence = Fence::opened_by(line, offset, end);
                let content = line.trim_start_matches(' ');
                if content.starts_with('{') && line.len() - content.len() < 4 {
                    bare_starts.push(end - content.len());
                }
            }
        }
        offset = end;
    }
    if fence.is_some() {
        return Err("it ends inside a code fence that is never closed");
    }
    if !text.ends_with('}') {
        return Err("the message does not end with a JSON object");
    }
    // Only one brace can be that of an object which ends here: an agent may have begun thousands of others.
    let start = opening_of_last(text).filter(|start| bare_starts.binary_search(start).is_ok());
    let found = start.and_then(|start| parse(&text[start..], false));
    found.ok_or("no object that begins at a line start reaches the end of the message")
}

/// Where the brace stands that the last one of the text closes, if an object runs from there to the end. In JSON no string
/// goes beyond its line, so that what is in a string is known wherever a line begins, in prose as well.
fn opening_of_last(text: &str) -> Option<usize> {
    let (mut open, mut last) = (Vec::new(), None);
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\n' => (in_string, escaped) = (false, false),
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => open.push(at),
            b'}' if !in_string => last = open.pop(),
            _ => {}
        }
    }
    last
}

fn parse(text: &str, whole: bool) -> Option<Tail> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Some(Tail { object, flaw: flaw(text), whole }),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => None,
        Err(_) => as_far_as_kept(text).map(|object| Tail { object, flaw: flaw(text), whole }),
    }
}

/// An object that is JSON by its grammar and holds what no value can keep (a number beyond all floats, half a surrogate
/// pair): the rest of it, which tells what it was meant to be.
fn as_far_as_kept(text: &str) -> Option<Map<String, Value>> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    let kept = |raw: &RawValue| serde_json::from_str(raw.get()).unwrap_or_default();
    Some(members.into_iter().map(|(key, raw)| (key, kept(raw))).collect())
}

/// What is wrong with a text that is a JSON object.
fn flaw(text: &str) -> Option<Flaw> {
    let found = read(text.as_bytes()).err()?;
    let why = read_plainly(text.as_bytes()).err().or_else(|| Some(found.first()?.message.clone()))?;
    let twice = found.into_iter().filter(|flaw| flaw.code == DUPLICATE_KEY).map(|flaw| flaw.path).collect();
    Some(Flaw { why, twice })
}

/// An open code fence, by the rules of CommonMark.
struct Fence<'a> {
    mark: u8,
    length: usize,
    label: &'a str,
    /// Where its opening line begins, and where its content does.
    start: usize,
    content: usize,
}

impl<'a> Fence<'a> {
    fn opened_by(line: &'a str, start: usize, content: usize) -> Option<Self> {
        let (mark, length, label) = marks(line)?;
        // Backticks in the label make it inline code, not a fence.
        (mark == b'~' || !label.contains('`')).then_some(Fence { mark, length, label, start, content })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        marks(line).is_some_and(|(mark, length, label)| {
            mark == self.mark && length >= self.length && label.is_empty()
        })
    }

    fn closing_object(&self, content: &str) -> Result<Tail, &'static str> {
        if !self.label.is_empty() && !self.label.eq_ignore_ascii_case("json") {
            return Err("the closing fence is labelled as something other than JSON");
        }
        parse(content, self.start == 0).ok_or("the closing fence does not hold one JSON object")
    }
}

/// The fence marks a line begins with: which, how many, and what follows them.
fn marks(line: &str) -> Option<(u8, usize, &str)> {
    let content = line.trim_start_matches(' ');
    if line.len() - content.len() > 3 {
        return None;
    }
    let mark = *content.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
    let length = content.bytes().take_while(|byte| *byte == mark).count();
    (length >= 3).then(|| (mark, length, content[length..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(text: &str) -> Option<bool> {
        closing_object(text).ok().map(|tail| tail.whole)
    }

    #[test]
    fn the_whole_message_counts_bare_or_in_one_fence() {
        for text in [
            "{\"a\":1}",
            "  \n{\n \"a\": {\n\"b\": 1\n}\n}\n",
            "```json\n{\"a\":1}\n```",
            "```\n{}\n```\n",
            "~~~JSON\n{\"a\": \"```\"}\n~~~",
        ] {
            assert_eq!(whole(text), Some(true), "{text}");
        }
    }

    #[test]
    fn an_object_at_the_end_counts() {
        for text in [
            "Done.\n{\"a\":1}",
            "Done.\r\n{\"a\":1}\r\n",
            "Done.\n\n```json\n{\"a\":1}\n```",
            "{}\n{\"a\":1}",
            "Example:\n```json\n{\"b\":1}\n```\n{\"a\":\n{}}",
            "```\nx\n```\n  {\"a\":1}",
        ] {
            assert_eq!(whole(text), Some(false), "{text}");
            assert!(closing_object(text).unwrap().object.contains_key("a"));
        }
    }

    #[test]
    fn an_object_that_is_read_as_something_else_than_was_written_has_a_flaw_wherever_it_stands() {
        let flaw = |text: &str| closing_object(text).unwrap().flaw;
        for (object, of_marker) in [
            ("{\"a\":1,\"a\":1}", false),
            ("{\"a\":[{\"b\":1,\"b\":2}]}", false),
            ("{\"a\":[-9223372036854775809]}", false),
            ("{\"a\":1,\"a\":1,\"__SKILL_DONE__\":true,\"__SKILL_DONE__\":false}", true),
            ("{\"a\":{\"__SKILL_DONE__\":true,\"__SKILL_DONE__\":true}}", false),
            // Nobody has looked whether anything stands twice that deep.
            (&format!("{{\"a\":{}{}}}", "[".repeat(65), "]".repeat(65)), false),
        ] {
            for text in [object.to_owned(), format!("So:\n{object}"), format!("So:\n```json\n{object}\n```")]
            {
                assert_eq!(flaw(&text).map(|flaw| flaw.is_of_marker()), Some(of_marker), "{text}");
            }
        }
        assert_eq!(flaw("{\"a\":18446744073709551615,\"b\":{\"a\":1.5e300}}"), None);
    }

    /// The same by trying each start, from the end.
    fn searched(text: &str) -> Option<Tail> {
        let lines = text.split_inclusive('\n');
        let mut starts: Vec<usize> = lines
            .scan(0, |end, line| {
                *end += line.len();
                Some(*end - line.len())
            })
            .collect();
        starts.retain(|start| {
            let content = text[*start..].trim_start_matches(' ');
            content.starts_with('{') && text.len() - start - content.len() < 4
        });
        starts.into_iter().rev().find_map(|start| parse(&text[start..], false))
    }

    proptest! {
        #[test]
        fn the_object_that_ends_a_message_is_the_one_that_trying_each_start_finds(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "{", "}", "\n", "\n{", "\n  {", "\"a\":", "1", "\"", "\\", "\"}\"", "\"\\\"{\"", ",", "[", "]", " ", "x",
                "{}", "{\"a\":", "{\"a\":{", "}\n}", "{\"a\":1}", "\n{\"b\":[{}]}", "1e999", "é",
            ]), 0..14),
        ) {
            let text = format!("So:{}}}", pieces.concat());
            prop_assert_eq!(closing_object(&text).ok(), searched(&text));
        }
    }

    #[test]
    fn a_hundred_thousand_objects_that_are_begun_take_one_look_at_the_message() {
        // Tried from each start, these would be sixty thousand million bytes.
        let begun = "{\"a\":\n".repeat(100_000);
        assert_eq!(whole(&format!("So:\n{begun}}}")), None);
        let tail = closing_object(&format!("So:\n{begun}{{\"b\":1}}")).unwrap();
        assert_eq!(Value::Object(tail.object), serde_json::json!({"b": 1}));
    }

    #[test]
    fn an_object_that_is_only_shown_does_not_count() {
        for text in [
            "",
            "Done: {\"a\":1}",
            "{\"a\":1}\nThat is the format.",
            "> {\"a\":1}",
            "- {\"a\":1}",
            "`{\"a\":1}`",
            "Like so:\n\n    {\"a\":1}",
            "```json\n{\"a\":1}\n```\nas above",
            "```python\n{\"a\":1}\n```",
            "```json\n{\"a\":1}",
            "````markdown\n```json\n{\"a\":1}\n```\n````",
            "````\n```\n{\"a\":1}\n```\n````",
            "> ```json\n> {\"a\":1}\n> ```",
            "```json\n{\"a\":1}\n{\"b\":1}\n```",
            "[{\"a\":1}]",
            "[\n{\"a\":1}\n]",
            "x\n{\"a\":1}}",
            "x\n{\"a\":1",
        ] {
            assert_eq!(whole(text), None, "{text}");
        }
    }
}
