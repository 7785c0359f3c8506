//! Native asks to one ask: an engine that asks twice in a message can be resumed only once.

use super::record::with_record_fields;
use super::together::{Part, numbered, together};
use super::{Ask, QuestionType, Reply, WaitingCall, left_out};
use crate::interaction::{Choice, DecisionPolicy, Interaction, InteractionId, Kind};
use crate::native::{AskBody, CardQuestion, NativeAsk, card_spec};
use aop_ask::is_blank;
use aop_ask::json::{AS_TEXT, maybe_rounded};
use serde_json::{Map, Value, json};

/// The ask behind the native asks that wait, or why there is none. `asks` is not empty.
pub fn from_native(asks: &[&NativeAsk], attempt: u32) -> Result<Ask, String> {
    let mut card: Vec<CardQuestion> = Vec::new();
    let mut calls = Vec::new();
    let (mut prompts, mut permissions) = (Vec::new(), Vec::new());
    for ask in asks {
        let id = call_id(&ask.call_id, attempt);
        let call = |questions| WaitingCall { call_id: ask.call_id.clone(), questions };
        match &ask.body {
            AskBody::Unusable(reason) => return Err(reason.clone()),
            AskBody::Card(questions) => {
                card.extend(questions.iter().cloned());
                calls.push(call(questions.len()));
            }
            AskBody::Prompt(fields) => {
                prompts.push(Ask { calls: vec![call(0)], ..prompt_ask(id, attempt, fields) });
            }
            AskBody::Permission { tool, summary, input } => {
                let made = permission_ask(id, attempt, tool, summary, input);
                permissions.push(Ask { calls: vec![call(0)], ..made });
            }
        }
    }
    let mut parts = Vec::new();
    if !card.is_empty() {
        let lines = card.iter().map(|question| question.question.clone()).collect();
        parts.push(Part { ask: card_ask(&card, calls, attempt), lines });
    }
    let alone = prompts.into_iter().chain(permissions);
    parts.extend(alone.map(|ask| Part { lines: vec![ask.interaction.prompt.clone()], ask }));
    together(parts).ok_or_else(|| "the engine asks nothing".to_owned())
}

fn call_id(call: &str, attempt: u32) -> InteractionId {
    if is_blank(call) {
        InteractionId::Number(u64::from(attempt))
    } else {
        InteractionId::Text(call.to_owned())
    }
}

fn card_ask(card: &[CardQuestion], calls: Vec<WaitingCall>, attempt: u32) -> Ask {
    let id = call_id(calls.first().map_or("", |call| &call.call_id), attempt);
    let spec = card_spec("engine_ask", card);
    let mut interaction =
        Interaction::open(id, attempt, numbered(card.iter().map(|question| &*question.question)));
    if let [question] = card {
        if !question.options.is_empty() {
            interaction.kind = Kind::ChooseOne;
        }
        interaction.options = question
            .options
            .iter()
            .map(|option| Choice { label: option.label.clone(), value: option.label.clone().into() })
            .collect();
        if question.multi {
            interaction.ui_hints.insert("multi_select".into(), true.into());
        }
        if let Some(header) = &question.header {
            interaction.ui_hints.insert("header".into(), header.clone().into());
        }
    } else {
        interaction.kind = Kind::FillFields;
        let questions = spec.iter().flat_map(|spec| spec.questions());
        interaction.required_fields = questions.map(|question| question.id().to_owned()).collect();
    }
    Ask { spec: spec.map(|spec| spec.to_json()), calls, ..Ask::of(interaction) }
}

fn prompt_ask(id: InteractionId, attempt: u32, fields: &Map<String, Value>) -> Ask {
    let mut fields = fields.clone();
    let rounded = taken_out(&mut fields);
    let fields = &fields;
    let prompt = fields.get("prompt").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut ask =
        with_record_fields(Ask::of(Interaction::open(id, attempt, prompt).with_fields(fields)), fields);
    if !ask.interaction.options.is_empty() && ask.interaction.kind == Kind::OpenText {
        ask.interaction.kind = Kind::ChooseOne;
    }
    ask.reply = Reply::AsExpected;
    ask.warnings.extend(rounded);
    ask
}

/// Takes out the fields with a number that may be another one than was written, and names them.
fn taken_out(fields: &mut Map<String, Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    fields.retain(|field, value| {
        let rounded = maybe_rounded(value);
        warnings.extend(rounded.map(|number| {
            left_out(field, &format!("the number {number} may not be the one that was written; {AS_TEXT}"))
        }));
        rounded.is_none()
    });
    warnings
}

fn permission_ask(id: InteractionId, attempt: u32, tool: &str, summary: &str, input: &Value) -> Ask {
    let prompt = match tool {
        "ExitPlanMode" => format!("Let the engine go ahead with this plan?\n\n{summary}"),
        _ => format!("Allow the engine to use {tool}?\n\n{summary}"),
    };
    let mut interaction = Interaction::open(id, attempt, prompt);
    interaction.kind = Kind::Confirm;
    interaction.options = [("Allow", "allow"), ("Deny", "deny")]
        .map(|(label, value)| Choice { label: label.to_owned(), value: value.into() })
        .into();
    interaction.default_decision_policy = DecisionPolicy::Decline;
    Ask {
        question_type: QuestionType::PermissionOverride,
        reply: Reply::AsExpected,
        details: json!({"tool": tool, "input": input}),
        // Free words are welcome and never mean yes: only the exact choice allows.
        expected_answer: json!({"kind": "single_choice", "choices": ["allow", "deny"], "allow_other": true}),
        ..Ask::of(interaction)
    }
}
