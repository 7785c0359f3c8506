//! A recorded answer as the input with which `AskUserQuestion` runs: `answers` by the full text of each question.

use serde_json::{Map, Value, json};

/// The input for the call that carries the answer. `spec` is the recorded form, in the order in which the questions
/// were asked; those behind the call's own came from other calls of the same message and are answered here too.
pub fn answered_input(own: &Value, spec: Option<&Value>, answer: &Value) -> Value {
    let mut input = own.as_object().cloned().unwrap_or_default();
    let questions = own.get("questions").and_then(Value::as_array).cloned().unwrap_or_default();
    let (Some(answers), Some(asked)) =
        (answer.as_object(), spec.and_then(|spec| spec["questions"].as_array()))
    else {
        // Words for the whole card are passed on as such.
        let words = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        input.insert("response".into(), words.into());
        return Value::Object(input);
    };
    let mut shown = Vec::new();
    let mut given = Map::new();
    for (place, question) in asked.iter().enumerate() {
        let mut native = questions.get(place).cloned().unwrap_or_else(|| native(question));
        let text = distinct(native["question"].as_str().unwrap_or_default(), &shown);
        native["question"] = text.clone().into();
        shown.push(native);
        let answer = question["id"].as_str().and_then(|id| answers.get(id));
        if let Some(answer) = answer {
            given.insert(text, words(answer).into());
        }
    }
    input.insert("questions".into(), Value::Array(shown));
    input.insert("answers".into(), Value::Object(given));
    Value::Object(input)
}

/// Two calls may ask the same; the engine tells answers apart by the text of the question.
fn distinct(text: &str, shown: &[Value]) -> String {
    let taken = |text: &str| shown.iter().any(|question| question["question"] == text);
    if !taken(text) {
        return text.to_owned();
    }
    let mut count = 2;
    while taken(&format!("{text} ({count})")) {
        count += 1;
    }
    format!("{text} ({count})")
}

fn native(question: &Value) -> Value {
    let options = question["options"].as_array().cloned().unwrap_or_default();
    json!({"question": question["question"], "header": question["header"],
        "multiSelect": question["kind"] == "multi_choice", "options": options})
}

/// Several labels are joined as the engine does it, unless one of them holds the separator: then the list is written
/// out, so that nobody has to guess where one ends.
fn words(answer: &Value) -> String {
    match answer {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            let is_plain = texts.len() == items.len() && !texts.iter().any(|text| text.contains(','));
            if is_plain { texts.join(", ") } else { answer.to_string() }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(text: &str) -> Value {
        json!({"question": text, "header": "H", "multiSelect": false, "options": [
            {"label": "a", "description": "1"}, {"label": "b", "description": "2"}]})
    }

    fn spec(texts: &[&str]) -> Value {
        let questions = texts.iter().enumerate().map(|(place, text)| {
            json!({"id": format!("q_{place}"), "header": "H", "question": text, "kind": "single_choice", "options": []})
        });
        json!({"questions": questions.collect::<Vec<_>>()})
    }

    #[test]
    fn answers_are_keyed_by_the_full_question() {
        let own = json!({"questions": [card("One?"), card("Two?")]});
        let input =
            answered_input(&own, Some(&spec(&["One?", "Two?"])), &json!({"q_0": "a", "q_1": ["b", "x"]}));
        assert_eq!(input["answers"], json!({"One?": "a", "Two?": "b, x"}));
        assert_eq!(input["questions"], own["questions"]);
        let partly = answered_input(&own, Some(&spec(&["One?", "Two?"])), &json!({"q_1": "b"}));
        assert_eq!(partly["answers"], json!({"Two?": "b"}), "what was not answered is absent");
    }

    #[test]
    fn labels_with_a_comma_are_written_out() {
        assert_eq!(words(&json!(["A, B", "C"])), r#"["A, B","C"]"#);
    }

    #[test]
    fn words_for_the_whole_card_are_a_response() {
        let own = json!({"questions": [card("One?")]});
        let input = answered_input(&own, Some(&spec(&["One?"])), &json!("do what you like"));
        assert_eq!((&input["response"], input.get("answers")), (&json!("do what you like"), None));
    }

    #[test]
    fn questions_of_another_call_are_answered_with_their_own_text() {
        let own = json!({"questions": [card("One?")]});
        let input = answered_input(&own, Some(&spec(&["One?", "One?"])), &json!({"q_0": "a", "q_1": "b"}));
        assert_eq!(input["answers"], json!({"One?": "a", "One? (2)": "b"}));
        assert_eq!(input["questions"][1]["question"], "One? (2)");
    }
}
