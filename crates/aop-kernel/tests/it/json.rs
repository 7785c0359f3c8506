//! The writer of JSON beside the one of `serde_json`, and of times beside the calendar's.

use aop_kernel::json::write;
use aop_kernel::time::Timestamp;
use proptest::prelude::*;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

fn written(value: &impl Serialize) -> String {
    let mut text = String::from("before ");
    write(&mut text, value).unwrap();
    text.strip_prefix("before ").unwrap().to_owned()
}

/// Every shape that a type can have.
#[derive(Debug, Clone, Serialize)]
enum Shape {
    Unit,
    New(String),
    Pair(i8, u64),
    Named { r#type: Option<char>, list: Vec<Shape> },
    Tree(BTreeMap<String, Shape>),
    Numbers(Numbers),
    Tagged(Tagged),
    Flat(Flat),
    Json(Value),
}

#[derive(Debug, Clone, Serialize)]
struct Numbers(i16, i32, i64, u8, u16, u32, f32, f64, bool, ());

#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Tagged {
    Nothing,
    Something { text: String },
}

#[derive(Debug, Clone, Serialize)]
struct Flat {
    first: bool,
    #[serde(flatten)]
    tagged: Tagged,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<u8>,
}

/// Texts of any length, with and without what has to be escaped.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,40}", "[\\x00-\\x7f]{0,40}", any::<String>()]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..4)
                .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn tagged() -> impl Strategy<Value = Tagged> {
    prop_oneof![Just(Tagged::Nothing), text().prop_map(|text| Tagged::Something { text })]
}

fn shape() -> impl Strategy<Value = Shape> {
    let leaf =
        prop_oneof![
            Just(Shape::Unit),
            text().prop_map(Shape::New),
            any::<(i8, u64)>().prop_map(|(one, other)| Shape::Pair(one, other)),
            any::<(i16, i32, i64, u8, u16, u32, f32, f64, bool, ())>().prop_map(
                |(a, b, c, d, e, f, g, h, i, j)| Shape::Numbers(Numbers(a, b, c, d, e, f, g, h, i, j))
            ),
            tagged().prop_map(Shape::Tagged),
            (any::<bool>(), tagged(), any::<Option<u8>>())
                .prop_map(|(first, tagged, last)| Shape::Flat(Flat { first, tagged, last })),
            value().prop_map(Shape::Json),
        ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            (any::<Option<char>>(), prop::collection::vec(inner.clone(), 0..4))
                .prop_map(|(r#type, list)| Shape::Named { r#type, list }),
            prop::collection::btree_map(text(), inner, 0..4).prop_map(Shape::Tree),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_is_written_is_what_serde_json_writes(shape in shape()) {
        prop_assert_eq!(written(&shape), serde_json::to_string(&shape).unwrap());
    }

    #[test]
    fn a_time_is_written_as_the_calendar_has_it(millis in 0..=253_402_207_200_000_i64) {
        let time = Timestamp::from_millis(millis);
        let calendar = jiff::Timestamp::from_millisecond(time.as_millis()).unwrap();
        prop_assert_eq!(time.to_string(), format!("{calendar:.3}"));
        prop_assert_eq!(Timestamp::parse(&time.to_string()), Some(time));
    }
}

#[test]
fn every_character_is_escaped_as_serde_json_does() {
    for character in (0..0x300).filter_map(char::from_u32) {
        for text in [format!("{character}"), format!("a long text around {character} to be looked at")] {
            let value = json!({text.clone(): text});
            assert_eq!(written(&value), value.to_string());
        }
    }
}

#[test]
fn what_cannot_be_written_alike_is_an_error() {
    let raw = RawValue::from_string("[1]".to_owned()).unwrap();
    assert!(write(&mut String::new(), &raw).unwrap_err().to_string().contains("RawValue"));
    let numbers = BTreeMap::from([(1, 2)]);
    assert_eq!(write(&mut String::new(), &numbers).unwrap_err().to_string(), "key must be a string");
}
