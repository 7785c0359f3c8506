//! The fields that an asker may set on the record itself: those of a worker's request, and of aop's own tool.

use super::expectation::expected_answer;
use super::{Ask, QuestionType, Reply, left_out};
use crate::interaction::{DecisionPolicy, read_choice};
use crate::quote::{excerpt, inline};
use aop_ask::QuestionSpec;
use serde_json::{Map, Value, json};

/// Takes them over.
pub(super) fn with_record_fields(mut ask: Ask, fields: &Map<String, Value>) -> Ask {
    if let Some(name) = fields.get("question_type").and_then(Value::as_str) {
        match QuestionType::parse(name) {
            Some(known) => ask.question_type = known,
            None => ask.warnings.push(left_out("question_type", "it is not known")),
        }
    }
    ask.details = match fields.get("details") {
        None | Some(Value::Null) => Value::Null,
        Some(details @ Value::Object(_)) => details.clone(),
        Some(other) => json!({"text": other}),
    };
    ask.blocking = fields.get("blocking").and_then(Value::as_bool).unwrap_or(true);
    let spec = spec(fields, &mut ask.warnings);
    ask.expected_answer = expected_answer(fields, spec.as_ref(), &mut ask.warnings);
    ask.spec = spec.map(|spec| spec.to_json());
    if !ask.expected_answer.is_null() || ask.spec.is_some() {
        ask.reply = Reply::AsExpected;
    }
    if ask.interaction.options.is_empty() {
        let choices = ask.expected_answer.get("choices").and_then(Value::as_array);
        ask.interaction.options = choices.into_iter().flatten().filter_map(read_choice).collect();
    }
    if matches!(ask.question_type, QuestionType::PermissionOverride | QuestionType::RiskAck) {
        ask.interaction.default_decision_policy = DecisionPolicy::Decline;
    }
    ask
}

fn spec(fields: &Map<String, Value>, warnings: &mut Vec<String>) -> Option<QuestionSpec> {
    let given = fields.get("spec").filter(|spec| !spec.is_null())?;
    let why = match QuestionSpec::from_json(given) {
        Ok(spec) => return Some(spec),
        Err(violations) => violations,
    };
    let why = why.iter().map(|violation| format!("{}: {}", violation.path, violation.message));
    warnings.push(left_out("spec", &inline(&excerpt(&why.collect::<Vec<_>>().join("; ")))));
    None
}
