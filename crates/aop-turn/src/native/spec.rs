//! A card as a `QuestionSpec`, so that people get the form. Every choice also takes other text: an engine's card
//! always leaves room for it, and a reply is never refused for not matching.

use super::CardQuestion;
use aop_ask::{QuestionSpec, import};
use serde_json::{Map, Value, json};

/// The spec of a card, or nothing when the card holds what no spec can carry (a reserved label, say). Then people
/// get the question as text.
pub fn card_spec(topic: &str, card: &[CardQuestion]) -> Option<QuestionSpec> {
    let questions: Vec<Value> = card.iter().map(native_question).collect();
    import::codex(&json!({"questions": questions}), Some(topic)).ok()
}

/// The question as a native call would carry it, without what made the original sloppy.
fn native_question(question: &CardQuestion) -> Value {
    let mut fields = Map::new();
    fields.insert("question".into(), question.question.clone().into());
    for (key, text) in [("id", &question.id), ("header", &question.header)] {
        if let Some(text) = text {
            fields.insert(key.into(), text.clone().into());
        }
    }
    if !question.options.is_empty() {
        let options = question.options.iter().map(
            |option| json!({"label": option.label, "description": option.description, "preview": option.preview}),
        );
        fields.insert("options".into(), options.collect());
        fields.insert("multiSelect".into(), question.multi.into());
    }
    fields.insert("isSecret".into(), question.secret.into());
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::super::{AskBody, read_ask};
    use super::*;

    fn spec_of(questions: &Value) -> Option<Value> {
        match read_ask(&json!({"questions": questions})) {
            AskBody::Card(card) => card_spec("ask", &card).map(|spec| spec.to_json()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ids_come_from_the_engine_or_from_the_header_and_are_unique() {
        let spec = spec_of(&json!([
            {"id": "db_choice", "question": "A?"}, {"id": "DB choice!", "question": "B?"},
            {"header": "Größe", "question": "C?"}, {"question": "2nd?"}]))
        .unwrap();
        let ids: Vec<&str> =
            spec["questions"].as_array().unwrap().iter().map(|q| q["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["db_choice", "db_choice_2", "gr_e", "question_4"]);
    }

    #[test]
    fn choices_are_complete_and_always_allow_other() {
        let spec = spec_of(&json!([{"question": "Which?", "header": "Db", "multiSelect": true, "options": [
            {"label": "A", "description": "first", "preview": "p"}, {"label": "B"}, {"label": "B"}, {"label": " "}]}]));
        assert_eq!(
            spec.unwrap()["questions"][0],
            json!({"id": "db", "header": "Db", "question": "Which?", "kind": "multi_choice", "required": true,
                "options": [{"label": "A", "description": "first", "preview": "p"}, {"label": "B", "description": "B"}],
                "allow_other": true})
        );
    }

    #[test]
    fn a_question_without_options_is_free_text() {
        let spec =
            spec_of(&json!([{"title": "Name?", "options": null}, {"question": "S?", "isSecret": true}]));
        let spec = spec.unwrap();
        assert_eq!(spec["questions"][0]["kind"], "free_text");
        assert!(spec["questions"][0].get("allow_other").is_none());
        assert_eq!(spec["questions"][1]["secret"], true);
    }

    #[test]
    fn a_reserved_label_means_no_form() {
        assert_eq!(spec_of(&json!([{"question": "?", "options": ["__done__"]}])), None);
    }

    #[test]
    fn unusable_cards_say_why() {
        for input in
            [json!({"questions": []}), json!({"questions": [{"question": " "}]}), json!([]), json!({})]
        {
            assert!(matches!(read_ask(&input), AskBody::Unusable(_)), "{input}");
        }
    }
}
