//! Reads JSON documents that people and agents wrote, and is stricter than `serde_json` alone: size and
//! depth are capped, and a key that stands twice in one object, a whole number that no 64 bits hold, or a number so
//! small that it would become 0 is a violation instead of a lost value.

use crate::violation::{Report, Violation, join, quote};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};
use std::fmt;

/// The largest document that is read at all.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The deepest nesting that is read. Our formats need seven levels; comments may hold a little more.
const MAX_DEPTH: usize = 64;

/// Parses what has limits of its own elsewhere.
///
/// # Errors
/// Why it is no JSON, which key stands twice, or which number would be rounded, in one sentence.
pub fn read_plainly(bytes: &[u8]) -> Result<Value, String> {
    // The parser has a limit of its own for how deep it goes: nothing stands where nobody has looked.
    let Ok((value, report)) = walked(bytes, usize::MAX) else {
        return serde_json::from_slice(bytes).map_err(|error| match bytes.starts_with(MARK) {
            true => format!("{error}; {WITHOUT_MARK}"),
            false => error.to_string(),
        });
    };
    match report.into_violations().into_iter().next() {
        Some(found) if found.code == ROUNDED => Err(format!("{}; {}", found.message, found.hint)),
        Some(twice) => Err(twice.message),
        None => Ok(value),
    }
}

/// The byte order mark that some editors put in front of a text.
const MARK: &[u8] = b"\xEF\xBB\xBF";
const WITHOUT_MARK: &str = "save the file without a byte order mark";

/// The code of a key that stands twice; its path is that of the key.
pub const DUPLICATE_KEY: &str = "duplicate_key";
const ROUNDED: &str = "json_number_rounded";

/// What to do with a number that would be rounded.
pub const AS_TEXT: &str = "write it as text, in quotes";

/// Whole numbers from here on may not fit into 64 bits.
const LARGE: f64 = 9_223_372_036_854_775_808.0;

/// A number in a value that was read elsewhere which may have been rounded: whether it was written as a whole number
/// cannot be seen any more.
pub fn maybe_rounded(value: &Value) -> Option<&Number> {
    match value {
        Value::Number(number) => {
            Some(number).filter(|number| number.is_f64() && number.as_f64().is_some_and(is_large))
        }
        Value::Array(items) => items.iter().find_map(maybe_rounded),
        Value::Object(map) => map.values().find_map(maybe_rounded),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

fn is_large(number: f64) -> bool {
    number.abs() >= LARGE
}

/// Whether a float may stand for something else: it is so large that it may have been a whole number, or it is 0.
fn is_doubtful(number: f64) -> bool {
    is_large(number) || number == 0.0
}

/// What becomes of a number.
enum Lost {
    /// A whole one with so many digits becomes the nearest float.
    Digits(usize),
    /// It becomes 0.
    Everything,
}

/// The numbers of a JSON document that are not kept, each with its place among all doubtful floats.
fn not_kept(document: &[u8]) -> Vec<(usize, Lost)> {
    let (mut found, mut count) = (Vec::new(), 0);
    let mut at = 0;
    while let Some(byte) = document.get(at) {
        let rest = &document[at..];
        at += match byte {
            b'"' => string_length(rest),
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let length = rest.iter().take_while(|byte| is_part(byte)).count();
                let number = std::str::from_utf8(&rest[..length]).unwrap_or_default();
                // A whole 0 has no sign.
                let is_kept =
                    number != "-0" && (number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok());
                if !is_kept && let Some(float) = number.parse().ok().filter(|float| is_doubtful(*float)) {
                    if let Some(lost) = lost(number, float) {
                        found.push((count, lost));
                    }
                    count += 1;
                }
                length
            }
            _ => 1,
        };
    }
    found
}

/// What is lost of a number that was written so and is read as this doubtful float.
fn lost(number: &str, float: f64) -> Option<Lost> {
    let is_whole = !number.contains(['.', 'e', 'E']);
    let digits = number.split(['e', 'E']).next().unwrap_or_default();
    if float == 0.0 {
        return digits.contains(|digit| matches!(digit, '1'..='9')).then_some(Lost::Everything);
    }
    is_whole.then(|| Lost::Digits(number.trim_start_matches('-').len()))
}

/// How long the string is that the bytes begin with, with both quotation marks.
fn string_length(bytes: &[u8]) -> usize {
    let mut escaped = false;
    let end = bytes.iter().skip(1).position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    end.map_or(bytes.len(), |end| end + 2)
}

/// Parses one JSON document.
///
/// # Errors
/// Too large, too deep, not JSON, or with duplicate keys or numbers that would be rounded (all of those are listed).
pub fn read(bytes: &[u8]) -> Result<Value, Vec<Violation>> {
    let (value, report) = read_noting(bytes)?;
    report.finish(Some(value))
}

/// The same for whoever judges the document further: what stands twice or would be rounded is noted, and does not hide
/// what else is wrong.
pub(crate) fn read_noting(bytes: &[u8]) -> Result<(Value, Report), Vec<Violation>> {
    let mut report = Report::default();
    if bytes.len() > MAX_BYTES {
        report.add(
            "json_too_large",
            "",
            format!("the document has {} bytes, more than the {MAX_BYTES} that are read", bytes.len()),
            "split it, or move long texts into files and name the files",
        );
        return Err(report.into_violations());
    }
    walked(bytes, MAX_DEPTH)
}

/// Parses a document of any size that nests at most so deep.
fn walked(bytes: &[u8], deepest: usize) -> Result<(Value, Report), Vec<Violation>> {
    let mut walk = Walk::to(deepest, Vec::new());
    let value = walk.through(bytes);
    let mut report = Report::default();
    match value {
        Ok(value) => {
            note(&mut report, &walk, bytes);
            Ok((value, report))
        }
        Err(_) if walk.too_deep => Err(too_deep()),
        Err(error) => {
            let hint = if bytes.starts_with(MARK) {
                WITHOUT_MARK
            } else if bytes.iter().all(u8::is_ascii_whitespace) {
                "the document is empty; write a JSON object"
            } else {
                "repair the JSON at that place: quotes, commas, brackets"
            };
            report.add("json_syntax", "", format!("not valid JSON: {error}"), hint);
            Err(report.into_violations())
        }
    }
}

/// Notes what was read otherwise than it was written. The numbers themselves are not repeated: one may be a secret answer.
fn note(report: &mut Report, walk: &Walk, bytes: &[u8]) {
    let path = |place: &Place| place.iter().rev().fold(String::new(), |path, part| join(&path, part));
    for place in &walk.twice {
        let key = place.first().map(String::as_str).unwrap_or_default();
        let message = format!("the key {} stands twice in one object", quote(key));
        report.add(
            DUPLICATE_KEY,
            &path(place),
            message,
            "remove one of the two; neither is taken while both are there",
        );
    }
    let lost = if walk.doubtful == 0 { Vec::new() } else { not_kept(bytes) };
    if lost.is_empty() {
        return;
    }
    // Where they stand is looked up only now: most documents have floats that are 0, and nothing is lost of them.
    let mut again = Walk::to(walk.deepest, lost.iter().map(|(count, _)| *count).take(MAX_NOTED).collect());
    let _ = again.through(bytes);
    for (place, (_, lost)) in again.lost.iter().zip(lost) {
        let path = path(place);
        let at = if path.is_empty() { String::new() } else { format!(" at {path}") };
        let message = match lost {
            Lost::Digits(digits) => format!("the number of {digits} digits{at} cannot be kept exactly"),
            Lost::Everything => format!("the number{at} is so near to 0 that it would become 0"),
        };
        report.add(ROUNDED, &path, message, AS_TEXT);
    }
}

/// Refuses a value that was built elsewhere and nests too deep to be walked safely.
pub(crate) fn check_depth(value: &Value) -> Result<(), Vec<Violation>> {
    fn fits(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(items) => left > 0 && items.iter().all(|item| fits(item, left - 1)),
            Value::Object(map) => left > 0 && map.values().all(|item| fits(item, left - 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }
    if fits(value, MAX_DEPTH) { Ok(()) } else { Err(too_deep()) }
}

fn too_deep() -> Vec<Violation> {
    let mut report = Report::default();
    report.add(
        "json_too_deep",
        "",
        format!("the document nests deeper than {MAX_DEPTH} levels"),
        "flatten it; no format of aop needs such depth",
    );
    report.into_violations()
}

/// Where the reader stands, and what it noticed on the way. Most documents have nothing to notice, so places
/// are only put together while the recursion unwinds from one.
struct Walk {
    depth: usize,
    deepest: usize,
    too_deep: bool,
    /// How many floats were read that may stand for something else.
    doubtful: usize,
    /// Which of those are looked for, by their number, in order; and where they stand.
    wanted: Vec<usize>,
    lost: Vec<Place>,
    /// Keys that stand twice.
    twice: Vec<Place>,
}

/// A key or the place of an item and then what encloses it, from inside out.
type Place = Vec<String>;

impl Walk {
    fn to(deepest: usize, wanted: Vec<usize>) -> Self {
        Walk { depth: 0, deepest, too_deep: false, doubtful: 0, wanted, lost: Vec::new(), twice: Vec::new() }
    }

    fn through(&mut self, bytes: &[u8]) -> serde_json::Result<Value> {
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        let value = (Node { walk: self }).deserialize(&mut deserializer)?;
        deserializer.end().map(|()| value)
    }

    fn enter<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.depth += 1;
        if self.depth > self.deepest {
            self.too_deep = true;
            return Err(E::custom("too deep"));
        }
        Ok(())
    }

    /// How much was noticed so far.
    fn noticed(&self) -> (usize, usize) {
        (self.twice.len(), self.lost.len())
    }

    /// Adds what encloses them to the places noticed since there were `before`.
    fn enclose(&mut self, (twice, lost): (usize, usize), part: impl Fn() -> String) {
        for place in self.twice[twice..].iter_mut().chain(&mut self.lost[lost..]) {
            place.push(part());
        }
    }
}

/// How many of each are noted; a report holds no more.
const MAX_NOTED: usize = 1000;

/// Builds one [`Value`] at the walk's current place.
struct Node<'a> {
    walk: &'a mut Walk,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        if is_doubtful(value) {
            if self.walk.wanted.get(self.walk.lost.len()) == Some(&self.walk.doubtful) {
                self.walk.lost.push(Place::new());
            }
            self.walk.doubtful += 1;
        }
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.walk.enter()?;
        let mut list = Vec::new();
        loop {
            let before = self.walk.noticed();
            let Some(item) = items.next_element_seed(Node { walk: self.walk })? else { break };
            self.walk.enclose(before, || list.len().to_string());
            list.push(item);
        }
        self.walk.depth -= 1;
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.walk.enter()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let before = self.walk.noticed();
            let value = entries.next_value_seed(Node { walk: self.walk })?;
            self.walk.enclose(before, || key.clone());
            match map.entry(key) {
                Entry::Vacant(place) => {
                    place.insert(value);
                }
                Entry::Occupied(place) if self.walk.twice.len() < MAX_NOTED => {
                    self.walk.twice.push(vec![place.key().clone()]);
                }
                Entry::Occupied(_) => {}
            }
        }
        self.walk.depth -= 1;
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn codes(bytes: &[u8]) -> Vec<&'static str> {
        read(bytes).unwrap_err().iter().map(|violation| violation.code).collect()
    }

    #[test]
    fn plain_documents_come_back_as_they_are() {
        let text = r#"{"b":[1,-2,3.5,true,null,"x"],"a":{}}"#;
        assert_eq!(read(text.as_bytes()).unwrap().to_string(), text);
    }

    #[test]
    fn a_fifty_megabyte_document_is_refused() {
        assert_eq!(codes(&vec![b' '; 50 * 1024 * 1024]), ["json_too_large"]);
    }

    #[test]
    fn ten_thousand_levels_are_refused() {
        assert_eq!(codes("[".repeat(10_000).as_bytes()), ["json_too_deep"]);
        assert_eq!(codes(r#"{"a":"#.repeat(10_000).as_bytes()), ["json_too_deep"]);
    }

    #[test]
    fn a_value_built_elsewhere_may_not_be_deep_either() {
        let mut value = json!(1);
        for _ in 0..1000 {
            value = json!([value]);
        }
        assert_eq!(check_depth(&value).unwrap_err()[0].code, "json_too_deep");
    }

    #[test]
    fn a_key_that_stands_twice_is_reported_with_its_place() {
        let violations = read(br#"{"a":[{"x":1,"x":2}],"b/c":1,"b/c":1}"#).unwrap_err();
        let paths: Vec<_> = violations.iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(paths, ["/a/0/x", "/b~1c"]);
    }

    #[test]
    fn a_key_that_stands_twice_is_seen_wherever_a_plain_document_has_it() {
        let (deep, ends) = ("[".repeat(90), "]".repeat(90));
        for text in [
            format!(r#"{{"may":false,"x":{deep}{ends},"may":true}}"#),
            format!(r#"{{"x":{deep}{{"may":false,"may":true}}{ends}}}"#),
            format!(r#"{{"may":false,"may":true,"x":"{}"}}"#, " ".repeat(MAX_BYTES)),
        ] {
            assert_eq!(
                read_plainly(text.as_bytes()).unwrap_err(),
                "the key \"may\" stands twice in one object"
            );
        }
        assert!(read_plainly(b"\xEF\xBB\xBF{}").unwrap_err().ends_with("without a byte order mark"));
        let text = format!(r#"{{"may":true,"x":{deep}{ends}}}"#);
        assert_eq!(read_plainly(text.as_bytes()).unwrap()["may"], json!(true));
        assert!(read_plainly("[".repeat(10_000).as_bytes()).unwrap_err().contains("recursion limit"));
    }

    #[test]
    fn a_whole_number_that_would_be_rounded_is_refused_and_no_other() {
        for number in ["18446744073709551616", "-9223372036854775809", "123456789012345678901234567890"] {
            for text in [number.to_owned(), format!(r#"{{"a\\\"1":[2,{number}]}}"#)] {
                assert_eq!(codes(text.as_bytes()), ["json_number_rounded"], "{text}");
                let said = read_plainly(text.as_bytes()).unwrap_err();
                let digits = format!("{} digits", number.trim_start_matches('-').len());
                assert!(said.contains(&digits) && said.contains("as text"), "{said}");
                // It may be somebody's secret.
                assert!(!said.contains(number), "{said}");
            }
            let deep = format!("{}{number}{}", "[".repeat(100), "]".repeat(100));
            assert!(read_plainly(deep.as_bytes()).unwrap_err().contains(&"/0".repeat(100)));
            assert!(maybe_rounded(&serde_json::from_str(number).unwrap()).is_some());
        }
        let fits = r#"[18446744073709551615,-9223372036854775808,6.022e23,"18446744073709551616"]"#;
        assert_eq!(read(fits.as_bytes()).unwrap(), serde_json::from_str::<Value>(fits).unwrap());
        assert!(maybe_rounded(&json!([u64::MAX, i64::MIN, 1.5])).is_none());
    }

    #[test]
    fn each_number_that_would_be_rounded_is_reported_with_its_place() {
        let text =
            r#"{"a":[1e30,18446744073709551616,"99999999999999999999"],"b":{"c":-99999999999999999999}}"#;
        let violations = read(text.as_bytes()).unwrap_err();
        let paths: Vec<_> = violations.iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(paths, ["/a/1", "/b/c"]);
    }

    #[test]
    fn a_number_that_would_become_0_is_refused_and_no_0_that_was_written_as_one() {
        for number in ["1e-400", "-0.5E-999", "0.001e-330"] {
            let text = format!(r#"{{"zero":[0,-0,0.0,-0.00,0e7,1e-300,1e30],"a":[{number}]}}"#);
            let found = read(text.as_bytes()).unwrap_err();
            let found: Vec<_> = found.iter().map(|found| (found.code, found.path.as_str())).collect();
            assert_eq!(found, [(ROUNDED, "/a/0")], "{number}");
            let said = read_plainly(text.as_bytes()).unwrap_err();
            assert!(said.contains("at /a/0 is so near to 0") && said.contains("as text"), "{said}");
        }
        // However many were written as 0 before it.
        let text = format!("[{}1e-400,18446744073709551616]", "0.0,".repeat(5_000));
        let paths: Vec<String> =
            read(text.as_bytes()).unwrap_err().into_iter().map(|found| found.path).collect();
        assert_eq!(paths, ["/5000", "/5001"]);
        let kept = format!("[{}-0]", "0.0,".repeat(5_000));
        assert!(read(kept.as_bytes()).is_ok());
    }

    #[test]
    fn anything_else_is_a_syntax_violation() {
        for bytes in [&b""[..], b"{", b"{} x", b"\xff", b"\xEF\xBB\xBF{}", b"1e999", b"[1,]"] {
            assert_eq!(codes(bytes), ["json_syntax"]);
        }
    }
}
