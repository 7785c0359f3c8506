//! Reads JSON documents that people and agents wrote, and is stricter than `serde_json` alone: size and
//! depth are capped, and a key that stands twice in one object is a violation instead of a lost value.

use crate::violation::{Report, Violation, join, quote};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};
use std::fmt;

/// The largest document that is read at all.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The deepest nesting that is read. Our formats need seven levels; comments may hold a little more.
pub const MAX_DEPTH: usize = 64;

/// Parses what has limits of its own elsewhere.
///
/// # Errors
/// Why it is no JSON, or which key stands twice, in one sentence.
pub fn read_plainly(bytes: &[u8]) -> Result<Value, String> {
    match read(bytes) {
        Ok(value) => Ok(value),
        Err(violations) => match violations.into_iter().find(|found| found.code == "duplicate_key") {
            Some(twice) => Err(twice.message),
            None => serde_json::from_slice(bytes).map_err(|error| error.to_string()),
        },
    }
}

/// Parses one JSON document.
///
/// # Errors
/// Too large, too deep, not JSON, or with duplicate keys (all of those are listed).
pub fn read(bytes: &[u8]) -> Result<Value, Vec<Violation>> {
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
    let mut walk = Walk { depth: 0, too_deep: false, twice: Vec::new() };
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = (Node { walk: &mut walk }).deserialize(&mut deserializer);
    let value = value.and_then(|value| deserializer.end().map(|()| value));
    match value {
        Ok(value) if walk.twice.is_empty() => Ok(value),
        Ok(_) => {
            for place in walk.twice {
                let key = place.first().map(String::as_str).unwrap_or_default();
                let path = place.iter().rev().fold(String::new(), |path, part| join(&path, part));
                let message = format!("the key {} stands twice in one object", quote(key));
                let hint = "remove one of the two; neither is taken while both are there";
                report.add("duplicate_key", &path, message, hint);
            }
            Err(report.into_violations())
        }
        Err(_) if walk.too_deep => Err(too_deep()),
        Err(error) => {
            let mut report = Report::default();
            let hint = if bytes.starts_with(b"\xEF\xBB\xBF") {
                "save the file without a byte order mark"
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
    too_deep: bool,
    /// Keys that stand twice: the key itself and then what encloses it, from inside out.
    twice: Vec<Vec<String>>,
}

impl Walk {
    fn enter<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.too_deep = true;
            return Err(E::custom("too deep"));
        }
        Ok(())
    }

    /// Adds what encloses them to the places noticed since there were `before`.
    fn enclose(&mut self, before: usize, part: impl Fn() -> String) {
        for place in &mut self.twice[before..] {
            place.push(part());
        }
    }
}

/// How many duplicate keys are noted; a report holds no more.
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
            let before = self.walk.twice.len();
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
            let before = self.walk.twice.len();
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
    fn anything_else_is_a_syntax_violation() {
        for bytes in [&b""[..], b"{", b"{} x", b"\xff", b"\xEF\xBB\xBF{}", b"1e999", b"[1,]"] {
            assert_eq!(codes(bytes), ["json_syntax"]);
        }
    }
}
