//! What stands beside the prompt of a question, for whoever decides on it: the same on a terminal, on a page and in a
//! client's form.

use super::Asked;
use aop_ask::is_blank;
use serde_json::Value;

/// An option that an engine's own interaction offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// What a person reads; no two options read alike.
    pub label: String,
    /// What the engine is told.
    pub value: String,
}

impl Asked {
    /// What else the asker wants shown, and what an engine's own question says beside its prompt and options.
    pub fn material(&self) -> impl Iterator<Item = (&str, &Value)> {
        let says = |value: &&Value| match value {
            Value::Null => false,
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            Value::String(text) => !is_blank(text),
            Value::Bool(_) | Value::Number(_) => true,
        };
        let own = ["context", "required_fields", "ui_hints"].into_iter().filter_map(move |key| {
            let value = self.interaction.as_ref()?.get(key).filter(says)?;
            Some((key, value))
        });
        self.details.iter().flatten().map(|(key, value)| (key.as_str(), value)).chain(own)
    }

    /// The options that an engine's own interaction offers. It gets an option's value where that is text.
    pub fn offered(&self) -> Vec<Offered> {
        let options = self.interaction.as_ref().and_then(|interaction| interaction.get("options"));
        let text = |option: &Value, key: &str| {
            let text = option.get(key).and_then(Value::as_str).filter(|text| !is_blank(text));
            text.map(str::to_owned)
        };
        let mut offered: Vec<Offered> = Vec::new();
        for option in options.and_then(Value::as_array).into_iter().flatten() {
            let Some(label) = text(option, "label") else { continue };
            let option = Offered { value: text(option, "value").unwrap_or_else(|| label.clone()), label };
            if !offered.contains(&option) {
                offered.push(option);
            }
        }
        let labels: Vec<String> = offered.iter().map(|option| option.label.clone()).collect();
        for option in &mut offered {
            if labels.iter().filter(|label| **label == option.label).count() > 1 {
                option.label = format!("{} ({})", option.label, option.value);
            }
        }
        offered
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Asked, Question};
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn asked(more: Value) -> Arc<Asked> {
        let mut record = json!({"feature_id": "shop", "question_id": "q_01JA0000000000000000000000", "status": "open",
            "blocking": true, "question_type": "clarification", "role": "builder", "session_id": "s",
            "prompt": "Which one?", "created_at": "2026-01-01T00:00:00Z", "default_decision_policy": "decline",
            "expiry_policy": {"strict": true, "on_timeout": "block_feature"}, "resume_status": "building"});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value::<Question>(record).unwrap().asked
    }

    #[test]
    fn what_an_engines_own_question_says_beside_its_prompt_belongs_to_the_material() {
        let asked = asked(json!({"details": {"a": "b"}, "interaction": {"prompt": "p", "kind": "open_text",
            "required_fields": ["db", "key"], "ui_hints": {}, "context": {"file": "x.rs"}}}));
        let names: Vec<&str> = asked.material().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "context", "required_fields"]);
    }

    #[test]
    fn no_two_options_of_an_interaction_read_alike() {
        let option = |label: &str, value: &str| json!({"label": label, "value": value});
        let asked =
            asked(json!({"interaction": {"options": [option("Delete", "yes"), option("Delete", "no"),
            option("Delete", "no"), option("Keep", ""), option(" ", "x"), "no option"]}}));
        let offered = asked.offered().into_iter().map(|option| (option.label, option.value));
        let wanted = [("Delete (yes)", "yes"), ("Delete (no)", "no"), ("Keep", "Keep")];
        assert_eq!(offered.collect::<Vec<_>>(), wanted.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }
}
