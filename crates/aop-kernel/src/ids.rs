//! Ids as types. A value of one of these has passed its pattern, so it can stand in a path, a query or a
//! log line without a second look.

use crate::envelope::Refusal;
use crate::text;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $a:literal, $what:literal, $rule:literal, $valid:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the pattern; the refusal names the value and the rule.
            pub fn parse(text: &str) -> Result<Self, Refusal> {
                if $valid(text) {
                    return Ok($name(text.into()));
                }
                Err(Refusal::invalid_argument(format!("{} {} is not valid", $what, quoted(text)))
                    .hint(concat!($a, " ", $what, " is ", $rule))
                    .fact("argument", $what))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The text, without a copy of it.
            pub fn shared(&self) -> Arc<str> {
                Arc::clone(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                text::read(deserializer, $name::parse)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// Names a feature within its project, and the feature's folder.
    FeatureId,
    "a",
    "feature_id",
    "1 to 64 of a-z, 0-9, _ and -, and starts with a letter or digit",
    feature_id_valid
);
id!(
    /// Names a question.
    QuestionId,
    "a",
    "question_id",
    "q_ followed by 26 upper-case ULID characters, as `aop questions` shows it",
    question_id_valid
);
id!(
    /// Names a run.
    RunId,
    "a",
    "run_id",
    "r_ followed by 26 upper-case ULID characters",
    run_id_valid
);
id!(
    /// Names one mutation for ever, so that a retry can be told from a new call.
    OperationId,
    "an",
    "operation_id",
    "1 to 128 printable ASCII characters without spaces",
    operation_id_valid
);

impl QuestionId {
    /// A question id over a fresh ULID.
    pub fn from_ulid(ulid: &str) -> Result<Self, Refusal> {
        QuestionId::parse(&["q_", ulid].concat())
    }
}

impl OperationId {
    /// The ULID of one that `aop` has made itself; it begins with the time.
    pub(crate) fn ulid(&self) -> Option<&str> {
        self.0.strip_prefix("op_").filter(|ulid| ulid_valid(ulid))
    }
}

fn feature_id_valid(text: &str) -> bool {
    let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= 64
        && text.bytes().next().is_some_and(lower)
        && text.bytes().all(|byte| lower(byte) || byte == b'_' || byte == b'-')
}

fn question_id_valid(text: &str) -> bool {
    text.strip_prefix("q_").is_some_and(ulid_valid)
}

fn run_id_valid(text: &str) -> bool {
    text.strip_prefix("r_").is_some_and(ulid_valid)
}

fn ulid_valid(text: &str) -> bool {
    // Crockford's digits: neither I, L, O nor U.
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'A'..=b'H' | b'J' | b'K' | b'M' | b'N' | b'P'..=b'T' | b'V'..=b'Z');
    text.len() == 26 && text.as_bytes()[0] <= b'7' && text.bytes().all(digit)
}

fn operation_id_valid(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A value as it may stand in a message: quoted, escaped and cut, so that no input can flood a screen.
pub fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown = String::new();
    for character in text.chars().take(SHOWN) {
        match character {
            // It ends nothing here, and answers that are JSON are full of it.
            '"' => shown.push(character),
            other => shown.extend(other.escape_debug()),
        }
    }
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    format!("'{shown}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feature_ids_follow_their_pattern() {
        for good in ["a", "0", "checkout-2", "a_b", &"x".repeat(64)] {
            assert!(FeatureId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "_a", "A", "a/b", "../a", "a b", "é", &"x".repeat(65), "a\0", "a."] {
            assert!(FeatureId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn question_ids_are_q_and_an_upper_case_ulid() {
        assert!(QuestionId::parse("q_01J9ZQ4V7K3M2N1P0R5S6T7V8W").is_ok());
        assert!(QuestionId::parse("q_0123456789ABCDEFGHJKMNPQRS").is_ok());
        assert!(QuestionId::parse("q_0000000000000000000TVWXYZ0").is_ok());
        for bad in [
            "q_01j9zq4v7k3m2n1p0r5s6t7v8w",
            "q_01J9ZQ4V7K3M2N1P0R5S6T7V8",
            "01J9ZQ4V7K3M2N1P0R5S6T7V8W",
            "q_81J9ZQ4V7K3M2N1P0R5S6T7V8W",
            "q_01J9ZQ4V7K3M2N1P0R5S6T7VIW",
            "q_01J9ZQ4V7K3M2N1P0R5S6T7VLW",
            "q_01J9ZQ4V7K3M2N1P0R5S6T7VOW",
            "q_01J9ZQ4V7K3M2N1P0R5S6T7VUW",
            "q_01J9ZQ4V7K3M2N1P0R5S6T7V:W",
            "../x",
        ] {
            assert!(QuestionId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn operation_ids_are_printable_ascii_without_spaces() {
        assert!(OperationId::parse("op:1/x").is_ok());
        assert!(OperationId::parse(&"x".repeat(128)).is_ok());
        for bad in ["", "a b", "a\n", "é", &"x".repeat(129)] {
            assert!(OperationId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_refused_id_names_the_value_and_the_rule() {
        let refusal = FeatureId::parse("../../etc").unwrap_err();
        assert_eq!(refusal.message, "feature_id '../../etc' is not valid");
        assert!(refusal.hint.contains("1 to 64"));
    }
}
