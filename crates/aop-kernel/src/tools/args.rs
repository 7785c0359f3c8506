//! A closed argument object: every key is taken by name, and whatever is left over is an error that names it.

use crate::code::ErrorCode;
use crate::envelope::Refusal;
use crate::ids::quoted;
use aop_ask::is_blank;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// No single text is longer than this.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The arguments of one call, being taken.
pub(super) struct Args<'a> {
    tool: &'static str,
    given: &'a Map<String, Value>,
    known: Vec<&'static str>,
}

impl<'a> Args<'a> {
    pub(super) fn new(tool: &'static str, input: &'a Value) -> Result<Self, Refusal> {
        match input {
            Value::Object(given) => Ok(Args { tool, given, known: Vec::with_capacity(16) }),
            other => Err(Refusal::invalid_argument(format!(
                "the arguments of {tool} are a JSON object, not {}",
                quoted(&other.to_string())
            ))),
        }
    }

    /// Takes an optional argument; null counts as absent.
    pub(super) fn optional(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        // There are a dozen at most when all is well: to compare them is cheaper than to hash the key.
        let (_, value) = self.given.iter().find(|(name, _)| *name == key)?;
        Some(value).filter(|value| !value.is_null())
    }

    fn required(&mut self, key: &'static str) -> Result<&'a Value, Refusal> {
        self.optional(key)
            .ok_or_else(|| wrong(key, format!("{key} is missing from the arguments of {}", self.tool)))
    }

    /// A text that is not blank and not too long.
    pub(super) fn text(&mut self, key: &'static str) -> Result<String, Refusal> {
        let value = self.required(key)?;
        as_text(key, value)
    }

    /// The same, when it is given.
    pub(super) fn optional_text(&mut self, key: &'static str) -> Result<Option<String>, Refusal> {
        self.optional(key).map(|value| as_text(key, value)).transpose()
    }

    /// A document as long as the request admits; blank is absent.
    pub(super) fn optional_document(&mut self, key: &'static str) -> Result<Option<String>, Refusal> {
        match self.optional(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !is_blank(text)).cloned()),
            Some(other) => Err(mistyped(key, "text", other)),
        }
    }

    /// An id, through its own parser.
    pub(super) fn id<T>(
        &mut self,
        key: &'static str,
        parse: fn(&str) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        match self.required(key)? {
            Value::String(text) => parse(text),
            other => Err(mistyped(key, "text", other)),
        }
    }

    /// One of a closed set of names.
    pub(super) fn one_of<T: DeserializeOwned>(
        &mut self,
        key: &'static str,
        names: &str,
    ) -> Result<T, Refusal> {
        let value = self.required(key)?;
        as_one_of(key, names, value)
    }

    /// The same, when it is given.
    pub(super) fn optional_one_of<T: DeserializeOwned>(
        &mut self,
        key: &'static str,
        names: &str,
    ) -> Result<Option<T>, Refusal> {
        self.optional(key).map(|value| as_one_of(key, names, value)).transpose()
    }

    pub(super) fn optional_bool(&mut self, key: &'static str) -> Result<Option<bool>, Refusal> {
        self.optional(key)
            .map(|value| value.as_bool().ok_or_else(|| mistyped(key, "true or false", value)))
            .transpose()
    }

    pub(super) fn optional_number(&mut self, key: &'static str) -> Result<Option<u64>, Refusal> {
        self.optional(key)
            .map(|value| {
                value
                    .as_u64()
                    .ok_or_else(|| mistyped(key, "a whole number of milliseconds, 0 or more", value))
            })
            .transpose()
    }

    pub(super) fn optional_object(
        &mut self,
        key: &'static str,
    ) -> Result<Option<Map<String, Value>>, Refusal> {
        match self.optional(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map.clone())),
            Some(other) => Err(mistyped(key, "an object", other)),
        }
    }

    /// Takes an argument of any type. A null that is written down was given, whatever is made of it.
    pub(super) fn any(&mut self, key: &'static str) -> Result<&'a Value, Refusal> {
        let given = self.required(key);
        given.or_else(|refusal| self.given.get(key).ok_or(refusal))
    }

    /// Everything has been taken; whatever is left is unknown.
    pub(super) fn finish(self) -> Result<(), Refusal> {
        match self.given.keys().find(|key| !self.known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => {
                Err(Refusal::invalid_argument(format!("{} takes no argument {}", self.tool, quoted(key)))
                    .hint(format!("it takes {}", self.known.join(", ")))
                    .fact("argument", key))
            }
        }
    }
}

fn as_text(key: &'static str, value: &Value) -> Result<String, Refusal> {
    match value {
        Value::String(text) if is_blank(text) => {
            Err(wrong(key, format!("{key} is blank"))
                .hint(format!("give {key} at least one visible character")))
        }
        Value::String(text) if text.len() > MAX_TEXT_BYTES => Err(too_large(key, text.len(), MAX_TEXT_BYTES)),
        Value::String(text) => Ok(text.clone()),
        other => Err(mistyped(key, "text", other)),
    }
}

fn as_one_of<T: DeserializeOwned>(key: &'static str, names: &str, value: &Value) -> Result<T, Refusal> {
    T::deserialize(value).map_err(|_| {
        let shown = value.as_str().map_or_else(|| quoted(&value.to_string()), quoted);
        wrong(key, format!("{key} {shown} is not known")).hint(format!("{key} is one of {names}"))
    })
}

pub(super) fn mistyped(key: &str, expected: &str, got: &Value) -> Refusal {
    wrong(key, format!("{key} is {expected}, not {}", quoted(&got.to_string())))
}

pub(super) fn wrong(key: &str, message: String) -> Refusal {
    Refusal::invalid_argument(message).fact("argument", key)
}

/// `payload_too_large` with size and limit.
pub(super) fn too_large(what: &str, size: usize, limit: usize) -> Refusal {
    Refusal::new(ErrorCode::PayloadTooLarge, format!("{what} has {size} bytes; the limit is {limit}"))
        .fact("argument", what)
        .fact("size", size)
        .fact("limit", limit)
}
