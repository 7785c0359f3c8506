//! The interaction payload: one question of an engine, in the shape every surface shows.
//!
//! Normalising is lenient by design. Only what a person needs to answer at all (the prompt, and an id where the
//! dialect promises one) may be missing to an effect; everything else is display metadata, brought into shape
//! or left out.

use crate::engine::words;
use crate::native::non_blank;
use aop_ask::is_blank;
use serde::Serialize;
use serde_json::{Map, Value};

words! {
    /// How a question is best shown. It never decides anything.
    Kind {
        /// One of several.
        ChooseOne "choose_one",
        /// Yes or no.
        Confirm "confirm",
        /// Several fields.
        FillFields "fill_fields",
        /// Any text.
        OpenText "open_text",
        /// Files.
        UploadFiles "upload_files",
        /// Accept a risk.
        RiskAck "risk_ack",
    }
}

impl Kind {
    /// Reads a kind with its aliases; whatever is missing or unknown is open text.
    pub fn read(value: Option<&Value>) -> Kind {
        let name = value.and_then(Value::as_str).unwrap_or_default().trim().to_ascii_lowercase();
        match name.as_str() {
            "decision" | "single_select" => Kind::ChooseOne,
            "confirmation" => Kind::Confirm,
            "clarification" => Kind::OpenText,
            name => Kind::parse(name).unwrap_or(Kind::OpenText),
        }
    }
}

words! {
    /// What happens when nobody answers in time and the policy is not strict.
    DecisionPolicy {
        /// The engine decides for itself, and says so.
        EngineJudgement "engine_judgement",
        /// The declared default applies.
        UseDefault "use_default",
        /// It is not permitted.
        Decline "decline",
    }
}

impl DecisionPolicy {
    /// Reads a policy; whatever is missing or unknown is the engine's judgement.
    pub fn read(value: Option<&Value>) -> DecisionPolicy {
        value
            .and_then(Value::as_str)
            .and_then(|name| DecisionPolicy::parse(name.trim()))
            .unwrap_or(Self::EngineJudgement)
    }
}

/// An id: the engine's own, or one that aop issued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum InteractionId {
    /// A number from 1.
    Number(u64),
    /// A text that is not blank.
    Text(String),
}

impl InteractionId {
    /// Reads an id; what is neither form is none.
    pub fn read(value: Option<&Value>) -> Option<InteractionId> {
        match value? {
            Value::Number(number) => number.as_u64().filter(|number| *number >= 1).map(InteractionId::Number),
            Value::String(text) if !is_blank(text) => Some(InteractionId::Text(text.clone())),
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// Something to choose.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    /// What people see.
    pub label: String,
    /// What the engine gets.
    pub value: Value,
}

/// The payload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interaction {
    /// Names the interaction within its run.
    pub interaction_id: InteractionId,
    /// The attempt that asked.
    pub source_attempt: u32,
    /// How to show it.
    pub kind: Kind,
    /// The question. Never blank.
    pub prompt: String,
    /// What to choose from, if anything.
    pub options: Vec<Choice>,
    /// Whatever else the engine wants shown.
    pub ui_hints: Map<String, Value>,
    /// What happens when nobody answers in time.
    pub default_decision_policy: DecisionPolicy,
    /// Names of fields that the engine would like filled.
    pub required_fields: Vec<String>,
    /// What the engine wants to be known beside the question.
    pub context: Value,
}

impl Interaction {
    /// A free-text question and nothing else.
    pub fn open(interaction_id: InteractionId, source_attempt: u32, prompt: String) -> Self {
        Interaction {
            interaction_id,
            source_attempt,
            kind: Kind::OpenText,
            prompt,
            options: Vec::new(),
            ui_hints: Map::new(),
            default_decision_policy: DecisionPolicy::EngineJudgement,
            required_fields: Vec::new(),
            context: Value::Object(Map::new()),
        }
    }

    /// Takes what can be used out of a payload. Fields may stand beside the prompt or in `ui_hints`; the former
    /// win.
    #[must_use]
    pub fn with_fields(mut self, fields: &Map<String, Value>) -> Self {
        let hints = fields.get("ui_hints").and_then(Value::as_object).cloned().unwrap_or_default();
        let field = |key: &str| fields.get(key).filter(|value| !value.is_null()).or_else(|| hints.get(key));
        self.kind = Kind::read(field("kind"));
        self.options = field("options")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(read_choice)
            .collect();
        self.default_decision_policy = match self.kind {
            // That nobody objects accepts no risk, whatever the engine wishes.
            Kind::RiskAck => DecisionPolicy::Decline,
            _ => DecisionPolicy::read(field("default_decision_policy")),
        };
        self.required_fields = field("required_fields")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|name| non_blank(Some(name)).map(str::to_owned))
            .collect();
        if let Some(context) = field("context") {
            self.context = context.clone();
        }
        self.ui_hints = hints;
        self
    }
}

/// Reads a choice: a bare value, or an object that has a label, a value, or both.
pub(crate) fn read_choice(item: &Value) -> Option<Choice> {
    let label_of = |value: &Value| match value {
        Value::String(text) => Some(text.clone()).filter(|text| !is_blank(text)),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let Value::Object(fields) = item else {
        return label_of(item).map(|label| Choice { label, value: item.clone() });
    };
    let given = ["value", "id"].iter().find_map(|key| fields.get(*key)).filter(|value| !value.is_null());
    let label = ["label", "text", "title", "name"].iter().find_map(|key| fields.get(*key).and_then(label_of));
    let label = label.or_else(|| given.and_then(label_of))?;
    Some(Choice { value: given.cloned().unwrap_or_else(|| label.clone().into()), label })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn kinds_have_aliases_and_never_stop_anything() {
        for (given, kind) in [
            (json!("decision"), Kind::ChooseOne),
            (json!("single_select"), Kind::ChooseOne),
            (json!("confirmation"), Kind::Confirm),
            (json!("clarification"), Kind::OpenText),
            (json!(" Risk_Ack "), Kind::RiskAck),
            (json!("upload_files"), Kind::UploadFiles),
            (json!("telepathy"), Kind::OpenText),
            (json!(7), Kind::OpenText),
            (Value::Null, Kind::OpenText),
        ] {
            assert_eq!(Kind::read(Some(&given)), kind, "{given}");
        }
        assert_eq!(Kind::read(None), Kind::OpenText);
    }

    #[test]
    fn an_id_is_a_number_from_one_or_a_text() {
        assert_eq!(InteractionId::read(Some(&json!(1))), Some(InteractionId::Number(1)));
        assert_eq!(InteractionId::read(Some(&json!("x"))), Some(InteractionId::Text("x".into())));
        for bad in [json!(0), json!(-1), json!(1.5), json!(" "), json!(null), json!(true), json!({})] {
            assert_eq!(InteractionId::read(Some(&bad)), None, "{bad}");
        }
    }

    #[test]
    fn options_come_in_many_shapes_and_end_in_one() {
        let given = json!({"ui_hints": {"kind": "decision", "options": [
            "A", {"label": "B"}, {"label": "C", "value": 3}, {"value": "d"}, {"id": "e", "text": "E"}, 6, "", {}, null]}});
        let interaction = Interaction::open(InteractionId::Number(1), 1, "?".into())
            .with_fields(given.as_object().unwrap());
        assert_eq!(interaction.kind, Kind::ChooseOne);
        assert_eq!(
            serde_json::to_value(&interaction.options).unwrap(),
            json!([{"label": "A", "value": "A"}, {"label": "B", "value": "B"}, {"label": "C", "value": 3},
                {"label": "d", "value": "d"}, {"label": "E", "value": "e"}, {"label": "6", "value": 6}])
        );
    }

    #[test]
    fn a_risk_that_nobody_accepts_in_time_is_declined_whatever_the_engine_wishes() {
        for wished in [
            json!({"kind": "risk_ack", "default_decision_policy": "use_default"}),
            json!({"kind": "risk_ack"}),
        ] {
            let interaction = Interaction::open(InteractionId::Number(1), 1, "?".into())
                .with_fields(wished.as_object().unwrap());
            assert_eq!(interaction.default_decision_policy, DecisionPolicy::Decline);
        }
    }

    #[test]
    fn what_stands_beside_the_prompt_beats_the_hints() {
        let given = json!({"kind": "confirm", "default_decision_policy": "decline", "required_fields": ["a", "", 1],
            "context": {"file": "x"}, "ui_hints": {"kind": "open_text", "hint": "short"}});
        let interaction = Interaction::open(InteractionId::Number(1), 1, "?".into())
            .with_fields(given.as_object().unwrap());
        assert_eq!(interaction.kind, Kind::Confirm);
        assert_eq!(interaction.default_decision_policy, DecisionPolicy::Decline);
        assert_eq!(interaction.required_fields, ["a"]);
        assert_eq!(interaction.context, json!({"file": "x"}));
        assert_eq!(interaction.ui_hints["hint"], "short");
    }
}
