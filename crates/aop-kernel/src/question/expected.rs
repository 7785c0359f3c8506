//! What an answer has to look like, and the check of an answer against it. A refusal lists every reason; a
//! default is never applied here, and nothing that is blank counts as an answer.

use super::Asked;
use crate::envelope::Refusal;
use crate::policy::Rules;
use aop_ask::spec::RESERVED_LABELS;
use aop_ask::{AnswerSpec, Answers, QuestionSpec, is_blank};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The shape of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// One of the choices.
    SingleChoice,
    /// Some of the choices.
    MultiChoice,
    /// Any text that is not blank.
    FreeText,
    /// Any JSON but null, under the schema if there is one.
    Json,
    /// The bare mapping of a question spec.
    Form,
}

impl AnswerKind {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            AnswerKind::SingleChoice => "single_choice",
            AnswerKind::MultiChoice => "multi_choice",
            AnswerKind::FreeText => "free_text",
            AnswerKind::Json => "json",
            AnswerKind::Form => "form",
        }
    }
}

/// Why these cannot be chosen from, in words that follow their name.
pub fn against_choices(choices: &[String]) -> Option<String> {
    if choices.is_empty() {
        return Some("is empty".to_owned());
    }
    if let Some(index) = choices.iter().position(|choice| is_blank(choice)) {
        return Some(format!("has a blank text at place {}", index + 1));
    }
    if let Some(label) = choices.iter().find(|label| RESERVED_LABELS.contains(&label.as_str())) {
        return Some(format!("has '{label}', which is reserved for navigation"));
    }
    first_repeated(choices).map(|twice| format!("has '{twice}' twice"))
}

/// What the asker expects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedAnswer {
    /// The shape.
    pub kind: AnswerKind,
    /// The choices, for the choice kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<String>>,
    /// Whether text outside the choices is an answer too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_other: Option<bool>,
    /// A JSON Schema (2020-12) the answer satisfies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The answer that policy may apply when nobody answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

impl ExpectedAnswer {
    /// The expectation that goes with a form.
    pub fn form() -> Self {
        ExpectedAnswer {
            kind: AnswerKind::Form,
            choices: None,
            allow_other: None,
            schema: None,
            default: None,
        }
    }

    /// Checks the expectation itself when the question is asked, and brings it into the form in which it is
    /// recorded: what only repeats a default is left out, and a declared default stands as its answer would.
    pub fn checked(mut self, spec: Option<&QuestionSpec>, rules: &Rules) -> Result<Self, Refusal> {
        self.check(spec, rules)?;
        self.allow_other = self.allow_other.filter(|allowed| *allowed);
        if let Some(default) = &self.default {
            self.default = Some(self.reasons_against(default, spec, rules).map_err(bad_default)?);
        }
        Ok(self)
    }

    fn check(&self, spec: Option<&QuestionSpec>, rules: &Rules) -> Result<(), Refusal> {
        let wrong =
            |message: String| Err(Refusal::invalid_argument(message).fact("argument", "expected_answer"));
        let is_choice = matches!(self.kind, AnswerKind::SingleChoice | AnswerKind::MultiChoice);
        match (&self.choices, is_choice) {
            (None, true) => {
                return wrong(format!("expected_answer.choices is missing for kind {}", self.kind.as_str()));
            }
            (Some(_), false) => {
                return wrong(format!(
                    "expected_answer.choices does not go with kind {}",
                    self.kind.as_str()
                ));
            }
            (Some(choices), true) => {
                if let Some(reason) = against_choices(choices) {
                    return wrong(format!("expected_answer.choices {reason}"));
                }
            }
            (None, false) => {}
        }
        if self.allow_other.is_some() && !is_choice {
            return wrong(format!(
                "expected_answer.allow_other does not go with kind {}",
                self.kind.as_str()
            ));
        }
        match (self.kind, spec) {
            (AnswerKind::Form, None) => {
                return wrong("expected_answer.kind is form, but there is no spec".into());
            }
            (kind, Some(_)) if kind != AnswerKind::Form => {
                return wrong(format!("a question with a spec expects a form, not {}", kind.as_str()));
            }
            _ => {}
        }
        if let Some(schema) = &self.schema
            && let Err(reasons) = (rules.check_schema)(schema)
        {
            return Err(Refusal::invalid_argument(format!(
                "expected_answer.schema is not a JSON Schema aop can use: {}",
                reasons.join("; ")
            ))
            .fact("argument", "expected_answer.schema")
            .fact("reasons", reasons));
        }
        Ok(())
    }

    /// The answer in its canonical form, or every reason why it is none.
    fn reasons_against(
        &self,
        answer: &Value,
        spec: Option<&QuestionSpec>,
        rules: &Rules,
    ) -> Result<Value, Vec<String>> {
        let mut reasons = Vec::new();
        let mut canonical = answer.clone();
        match self.kind {
            AnswerKind::SingleChoice => match answer.as_str() {
                Some(text) => reasons.extend(self.unknown_choice(text)),
                None => reasons.push(format!("expected one of {}, got {}", self.listed(), kind_of(answer))),
            },
            AnswerKind::MultiChoice => match strings(answer) {
                Some(texts) if texts.is_empty() => reasons.push("the list is empty".into()),
                Some(texts) => {
                    reasons.extend(texts.iter().filter_map(|text| self.unknown_choice(text)));
                    reasons.extend(first_repeated(&texts).map(|twice| format!("'{twice}' is listed twice")));
                }
                None => reasons.push(format!(
                    "expected a list of texts from {}, got {}",
                    self.listed(),
                    kind_of(answer)
                )),
            },
            AnswerKind::FreeText => match answer.as_str() {
                Some(text) if is_blank(text) => reasons.push("the text is blank".into()),
                Some(_) => {}
                None => reasons.push(format!("expected text, got {}", kind_of(answer))),
            },
            AnswerKind::Json => match answer {
                Value::Null => reasons.push("null is not an answer".into()),
                Value::String(text) if is_blank(text) => reasons.push("the text is blank".into()),
                marker if *marker == redacted() => reasons.push(NO_ANSWER.into()),
                _ => {}
            },
            AnswerKind::Form => match spec {
                Some(spec) => match form_answers(spec, answer) {
                    Ok(answers) => canonical = answers.to_json(),
                    Err(found) => reasons.extend(found),
                },
                None => reasons.push("the question has no form".into()),
            },
        }
        if let Some(schema) = &self.schema
            && let Err(found) = (rules.check_instance)(schema, &canonical)
        {
            // Such a reason quotes what was given, and that may be secret.
            let is_secret = spec.is_some_and(QuestionSpec::has_secret);
            let instead = || vec!["the answer does not satisfy the schema of the question".to_owned()];
            reasons.extend(if is_secret { instead() } else { found });
        }
        if reasons.is_empty() { Ok(canonical) } else { Err(reasons) }
    }

    fn unknown_choice(&self, text: &str) -> Option<String> {
        let choices = self.choices.as_deref().unwrap_or_default();
        if choices.iter().any(|choice| choice == text) {
            return None;
        }
        if self.allow_other == Some(true) {
            return is_blank(text).then(|| "the text is blank".to_owned());
        }
        Some(format!("{} is not one of {}", crate::ids::quoted(text), self.listed()))
    }

    /// The choices as a message shows them.
    fn listed(&self) -> String {
        let choices = self.choices.as_deref().unwrap_or_default();
        let mut shown: Vec<String> =
            choices.iter().take(12).map(|choice| crate::ids::quoted(choice)).collect();
        if choices.len() > shown.len() {
            shown.push(format!("… ({} in all)", choices.len()));
        }
        shown.join(", ")
    }
}

impl Asked {
    /// The answer as it will be recorded, or every reason why it is not a valid one.
    ///
    /// An engine's own interaction takes any text, also for a whole form; everything else is held to its
    /// expectation; with no expectation any non-blank text or non-empty object will do.
    pub fn accept(&self, answer: &Value, rules: &Rules) -> Result<Value, Vec<String>> {
        if self.interaction.is_some()
            && let Some(text) = answer.as_str()
        {
            return if is_blank(text) { Err(vec!["the text is blank".into()]) } else { Ok(answer.clone()) };
        }
        if let Some(expected) = &self.expected_answer {
            return expected.reasons_against(answer, self.spec.as_ref(), rules);
        }
        match answer {
            Value::String(text) if !is_blank(text) => Ok(answer.clone()),
            Value::Object(_) if *answer == redacted() => Err(vec![NO_ANSWER.into()]),
            Value::Object(object) if !object.is_empty() => Ok(answer.clone()),
            Value::String(_) => Err(vec!["the text is blank".into()]),
            Value::Object(_) => Err(vec!["the object is empty".into()]),
            other => Err(vec![format!("expected text or an object, got {}", kind_of(other))]),
        }
    }

    /// Splits what a secret question was answered from what everybody may see.
    pub fn redact(&self, answer: Value) -> (Value, Option<Value>) {
        let Some(spec) = self.spec.as_ref().filter(|spec| spec.has_secret()) else { return (answer, None) };
        let Value::Object(mapping) = &answer else {
            // Free text for a whole card that has a secret field: none of it is safe to show.
            return (redacted(), Some(answer));
        };
        let shown: Map<String, Value> = mapping
            .iter()
            .map(|(id, value)| {
                let secret = spec.questions().iter().any(|question| question.secret() && question.id() == id);
                (id.clone(), if secret { redacted() } else { value.clone() })
            })
            .collect();
        if shown == *mapping { (answer, None) } else { (Value::Object(shown), Some(answer)) }
    }

    /// Whether a part of the answer is for the asker alone.
    pub fn has_secret(&self) -> bool {
        self.spec.as_ref().is_some_and(QuestionSpec::has_secret)
    }

    /// Whether something was taken out of a recorded answer.
    pub(super) fn is_redacted(&self, shown: &Value) -> bool {
        let marker = redacted();
        let parts = shown.as_object().into_iter().flat_map(Map::values);
        self.has_secret() && std::iter::once(shown).chain(parts).any(|part| *part == marker)
    }
}

const NO_ANSWER: &str = "{\"redacted\": true} stands where a secret was taken out, and is no answer itself";

/// What stands in the place of a secret. No answer to a question or a form field is like it: it can never be taken for the
/// secret itself, nor an answer for a secret.
pub fn redacted() -> Value {
    serde_json::json!({"redacted": true})
}

/// A form's answers: the bare mapping, or an AnswerSpec around it.
fn form_answers(spec: &QuestionSpec, answer: &Value) -> Result<Answers, Vec<String>> {
    // No answer to a field is an object, so this is not one to a field that is called `answers`.
    let is_record = answer.get("answers").is_some_and(Value::is_object);
    let checked = if is_record {
        AnswerSpec::from_json(spec, answer).map(|record| record.answers().clone())
    } else {
        Answers::check(spec, answer)
    };
    checked.map_err(|violations| {
        violations.iter().map(|violation| format!("{}: {}", violation.path, violation.message)).collect()
    })
}

fn bad_default(reasons: Vec<String>) -> Refusal {
    let message = format!("expected_answer.default is not a valid answer: {}", reasons.join("; "));
    Refusal::invalid_argument(message).fact("argument", "expected_answer")
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

fn first_repeated(texts: &[String]) -> Option<&str> {
    let mut seen = std::collections::HashSet::new();
    texts.iter().find(|text| !seen.insert(text.as_str())).map(String::as_str)
}

/// A JSON type in words.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
