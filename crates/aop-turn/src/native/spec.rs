//! A card as a `QuestionSpec`, so that people get the form.
//!
//! Every question allows other answers: an engine's card always leaves room for free text, and a reply is
//! never refused for not matching. What the spec cannot carry under the engine's own names (ids that are not
//! snake case) is kept beside it as `_native_id`.

use super::CardQuestion;
use serde_json::{Map, Value, json};

/// Labels that the spec keeps for itself. An engine that uses one gets no form, only the text.
const RESERVED: [&str; 4] = ["__done__", "__more__", "__back__", "__other__"];

/// The spec of a card, or nothing when the card uses a reserved label.
pub fn card_spec(topic: &str, card: &[CardQuestion]) -> Option<Value> {
    let mut ids: Vec<String> = Vec::with_capacity(card.len());
    let mut questions = Vec::with_capacity(card.len());
    for question in card {
        if question.options.iter().any(|option| RESERVED.contains(&option.label.as_str())) {
            return None;
        }
        let wanted = question.id.as_deref().or(question.header.as_deref()).unwrap_or(&question.question);
        let id = unique(snake_case(wanted), &ids);
        questions.push(spec_question(question, &id));
        ids.push(id);
    }
    Some(json!({"version": 1, "topic": topic, "questions": questions}))
}

fn spec_question(question: &CardQuestion, id: &str) -> Value {
    let mut fields = Map::new();
    let header = question.header.clone().unwrap_or_else(|| id.replace('_', " "));
    fields.insert("id".into(), id.into());
    fields.insert("header".into(), header.into());
    fields.insert("question".into(), question.question.clone().into());
    let kind = match (question.options.is_empty(), question.multi) {
        (true, _) => "free_text",
        (false, true) => "multi_choice",
        (false, false) => "single_choice",
    };
    fields.insert("kind".into(), kind.into());
    fields.insert("required".into(), true.into());
    if !question.options.is_empty() {
        let options: Vec<Value> = question
            .options
            .iter()
            .map(|option| {
                let mut item = json!({
                    "label": option.label,
                    "description": option.description.as_ref().unwrap_or(&option.label),
                });
                if let (Some(preview), Some(fields)) = (&option.preview, item.as_object_mut()) {
                    fields.insert("preview".into(), preview.clone().into());
                }
                item
            })
            .collect();
        fields.insert("options".into(), options.into());
        fields.insert("allow_other".into(), true.into());
    }
    if question.secret {
        fields.insert("secret".into(), true.into());
    }
    if let Some(native) = question.id.as_ref().filter(|native| *native != id) {
        fields.insert("_native_id".into(), native.clone().into());
    }
    Value::Object(fields)
}

/// Turns any text into an id: lower-case words of ASCII letters and digits, joined by single underscores,
/// beginning with a letter.
fn snake_case(text: &str) -> String {
    let mut id = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            id.push(c.to_ascii_lowercase());
        } else if !id.is_empty() && !id.ends_with('_') {
            id.push('_');
        }
        if id.len() >= 40 {
            break;
        }
    }
    let id = id.trim_end_matches('_');
    match id.chars().next() {
        Some(first) if first.is_ascii_lowercase() => id.to_owned(),
        Some(_) => format!("q_{id}"),
        None => "question".to_owned(),
    }
}

fn unique(id: String, taken: &[String]) -> String {
    if !taken.contains(&id) {
        return id;
    }
    let mut number = 2;
    loop {
        let candidate = format!("{id}_{number}");
        if !taken.contains(&candidate) {
            return candidate;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AskBody, read_ask};
    use super::*;

    fn spec_of(questions: &Value) -> Value {
        match read_ask(&json!({"questions": questions})) {
            AskBody::Card(card) => card_spec("ask", &card).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ids_become_snake_case_unique_and_keep_the_native_one() {
        let spec = spec_of(&json!([
            {"id": "db_choice", "question": "A?"}, {"id": "DB choice!", "question": "B?"},
            {"header": "Größe", "question": "C?"}, {"question": "2nd?"}, {"question": "日本?"}]));
        let ids: Vec<&str> =
            spec["questions"].as_array().unwrap().iter().map(|q| q["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["db_choice", "db_choice_2", "gr_e", "q_2nd", "question"]);
        assert_eq!(spec["questions"][1]["_native_id"], "DB choice!");
        assert!(spec["questions"][0].get("_native_id").is_none());
    }

    #[test]
    fn choices_are_complete_and_always_allow_other() {
        let spec = spec_of(&json!([{"question": "Which?", "header": "Db", "multiSelect": true, "options": [
            {"label": "A", "description": "first", "preview": "p"}, {"label": "B"}, {"label": "B"}, {"label": " "}]}]));
        assert_eq!(
            spec["questions"][0],
            json!({"id": "db", "header": "Db", "question": "Which?", "kind": "multi_choice", "required": true,
                "options": [{"label": "A", "description": "first", "preview": "p"}, {"label": "B", "description": "B"}],
                "allow_other": true})
        );
    }

    #[test]
    fn a_question_without_options_is_free_text() {
        let spec =
            spec_of(&json!([{"title": "Name?", "options": null}, {"question": "S?", "isSecret": true}]));
        assert_eq!(spec["questions"][0]["kind"], "free_text");
        assert!(spec["questions"][0].get("allow_other").is_none());
        assert_eq!(spec["questions"][1]["secret"], true);
    }

    #[test]
    fn a_reserved_label_means_no_form() {
        let AskBody::Card(card) =
            read_ask(&json!({"questions": [{"question": "?", "options": ["__done__"]}]}))
        else {
            panic!()
        };
        assert_eq!(card_spec("ask", &card), None);
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
