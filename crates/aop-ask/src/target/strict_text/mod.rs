//! Strict text: a prompt that asks for exactly one JSON object, for tools that can only pass text. The reply
//! is taken bare or in one fence; prose around it is not guessed at.

use super::malformed;
use crate::answer::check_value;
use crate::dialogue::ask::{Ask, Said};
use crate::is_blank;
use crate::json as reader;
use crate::spec::{Kind, QuestionSpec};
use crate::violation::{Report, Violation, quote, unsaid};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::fmt::Write as _;

/// The prompt.
pub(super) fn input(spec: &QuestionSpec, asks: &[Ask<'_>]) -> Value {
    json!({"prompt": prompt(spec, asks)})
}

fn prompt(spec: &QuestionSpec, asks: &[Ask<'_>]) -> String {
    let shape: Vec<String> =
        asks.iter().map(|ask| format!("{}: {}", json!(ask.question.id()), shape(ask))).collect();
    let mut text = format!(
        "Topic: {}\n\nReply with exactly one JSON object and nothing else, bare or in one ```json fence:\n\
         {{\"answers\": {{{}}}}}\n\
         Copy labels exactly; case and spaces count. Leave out an optional question to leave it unanswered.\n",
        spec.topic(),
        shape.join(", "),
    );
    for ask in asks {
        // Writing to a string does not fail.
        let _ = write!(text, "\n## {} ({})\n{}\n", ask.question.id(), rule(ask), ask.text);
        for item in &ask.items {
            let _ = writeln!(text, "- {}: {}", json!(item.label), item.description);
            if let Some(preview) = &item.preview {
                // Indented, so that no line of it reads like one of ours.
                let lines: String = preview.lines().map(|line| format!("    {line}\n")).collect();
                let _ = write!(text, "  Preview:\n{lines}");
            }
        }
    }
    text
}

fn shape(ask: &Ask<'_>) -> &'static str {
    match (ask.question.kind(), ask.question.allow_other()) {
        (Kind::SingleChoice, false) => "\"<label>\"",
        (Kind::SingleChoice, true) => "\"<label or your own text>\"",
        (Kind::MultiChoice, false) => "[\"<label>\", …]",
        (Kind::MultiChoice, true) => "[\"<label or your own text>\", …]",
        (Kind::FreeText, _) => "\"<your text>\"",
    }
}

fn rule(ask: &Ask<'_>) -> String {
    let kind = match ask.question.kind() {
        Kind::SingleChoice => "choose one",
        Kind::MultiChoice => "choose one or more",
        Kind::FreeText => "write a text",
    };
    let need = if ask.question.required() { "required" } else { "optional" };
    format!("{}; {need}; {kind}", ask.question.header())
}

/// What the reply text says.
pub(super) fn said(asks: &[Ask<'_>], reply: &Value) -> Result<Vec<Said>, Violation> {
    let Value::String(text) = reply else { return Err(malformed("", reply, "a text")) };
    if is_blank(text) {
        return Ok(vec![Said::Nothing; asks.len()]);
    }
    Ok(match answers(text) {
        Err(reason) => vec![Said::Unclear(reason); asks.len()],
        Ok(answers) => {
            let asked: HashSet<&str> = asks.iter().map(|ask| ask.question.id()).collect();
            let stranger = answers.keys().find(|id| !asked.contains(id.as_str()));
            match stranger {
                Some(id) => {
                    let reason =
                        format!("the reply answers {}, which was not asked; nothing was taken", quote(id));
                    vec![Said::Unclear(reason); asks.len()]
                }
                None => asks.iter().map(|ask| one(ask, answers.get(ask.question.id()))).collect(),
            }
        }
    })
}

/// The mapping in `{"answers": {…}}`, or why there is none.
fn answers(text: &str) -> Result<Map<String, Value>, String> {
    let body = unfence(text.trim()).ok_or("the reply has a code fence and text around it")?;
    let document = reader::read(body.as_bytes()).map_err(|violations| {
        let reason = violations.first().map_or("not JSON", |violation| violation.message.as_str());
        format!("the reply is not one JSON object ({reason})")
    })?;
    let Value::Object(mut map) = document else {
        return Err(format!("the reply is {}, not a JSON object", unsaid(&document)));
    };
    if let Some(key) = map.keys().find(|key| *key != "answers") {
        return Err(format!("the reply has the key {} beside \"answers\"", quote(key)));
    }
    match map.shift_remove("answers") {
        Some(Value::Object(answers)) => Ok(answers),
        Some(other) => Err(format!("\"answers\" is {}, not an object", unsaid(&other))),
        // `{}` answers nothing, and that is allowed.
        None => Ok(Map::new()),
    }
}

/// The text itself, or what stands in the one fence that encloses it.
fn unfence(text: &str) -> Option<&str> {
    let Some(rest) = text.strip_prefix("```") else { return Some(text) };
    let (info, rest) = rest.split_once('\n')?;
    if !matches!(info.trim(), "" | "json" | "JSON") {
        return None;
    }
    let body = rest.strip_suffix("```")?;
    (!body.contains("\n```") && !body.starts_with("```")).then_some(body)
}

fn one(ask: &Ask<'_>, value: Option<&Value>) -> Said {
    let value = match value {
        None | Some(Value::Null) => return Said::Nothing,
        Some(Value::String(text)) if is_blank(text) => return Said::Nothing,
        Some(Value::Array(items)) if items.is_empty() => return Said::Nothing,
        Some(value) => value,
    };
    let mut report = Report::default();
    match check_value(&mut report, "", ask.question, value) {
        Some(answer) => Said::Answer(answer),
        None => {
            let reasons: Vec<String> = report
                .into_violations()
                .into_iter()
                .take(5)
                .map(|violation| format!("{} ({})", violation.message, violation.hint))
                .collect();
            Said::Unclear(reasons.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reply_is_taken_bare_or_in_one_fence_and_nothing_else() {
        for good in [
            r#"{"answers": {"a": "x"}}"#,
            " \n{\"answers\": {\"a\": \"x\"}}\n",
            "```json\n{\"answers\": {\"a\": \"x\"}}\n```",
            "```\n{\"answers\": {\"a\": \"x\"}}```",
        ] {
            assert_eq!(answers(good).map(|map| map.len()), Ok(1), "{good}");
        }
        for bad in [
            r#"Sure! {"answers": {"a": "x"}}"#,
            r#"{"answers": {"a": "x"}} Done."#,
            "```json\n{\"answers\": {}}\n```\n```json\n{\"answers\": {}}\n```",
            "Here:\n```json\n{\"answers\": {}}\n```",
            "```json\n{\"answers\": {}}\n``` ok",
            "```python\n{\"answers\": {}}\n```",
            r#"{"answers": {"a": "x"}, "note": 1}"#,
            r#"{"answers": {"a": "x", "a": "y"}}"#,
            r#"{"answers": []}"#,
            "[]",
            "```",
            "``````",
        ] {
            assert!(answers(bad).is_err(), "{bad}");
        }
        assert_eq!(answers("{}"), Ok(Map::new()));
    }
}
