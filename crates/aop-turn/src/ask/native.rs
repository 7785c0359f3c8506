//! Native asks to one ask. Cards that wait together become one form: an engine that asks twice in a message
//! can be resumed only once.

use super::{Ask, QuestionType, Reply, WaitingCall, record::with_record_fields};
use crate::interaction::{Choice, DecisionPolicy, Interaction, InteractionId, Kind};
use crate::native::{AskBody, CardQuestion, NativeAsk, card_spec};
use serde_json::{Map, Value, json};

/// The ask behind the native asks that wait, or why there is none. `asks` is not empty.
pub fn from_native(asks: &[&NativeAsk], attempt: u32) -> Result<Ask, String> {
    let mut card: Vec<CardQuestion> = Vec::new();
    let mut calls = Vec::new();
    let mut single = None;
    for ask in asks {
        match &ask.body {
            AskBody::Unusable(reason) => return Err(reason.clone()),
            AskBody::Card(questions) => {
                card.extend(questions.iter().cloned());
                calls.push(WaitingCall { call_id: ask.call_id.clone(), questions: questions.len() });
            }
            AskBody::Prompt(_) | AskBody::Permission { .. } => single = single.or(Some(*ask)),
        }
    }
    if !card.is_empty() {
        return Ok(card_ask(&card, calls, attempt));
    }
    let ask = single.ok_or("the engine asks nothing")?;
    let id = call_id(&ask.call_id, attempt);
    let mut made = match &ask.body {
        AskBody::Permission { tool, summary, input } => permission_ask(id, attempt, tool, summary, input),
        AskBody::Prompt(fields) => prompt_ask(id, attempt, fields),
        AskBody::Card(_) | AskBody::Unusable(_) => return Err("the engine asks nothing".to_owned()),
    };
    made.calls = vec![WaitingCall { call_id: ask.call_id.clone(), questions: 0 }];
    Ok(made)
}

fn call_id(call: &str, attempt: u32) -> InteractionId {
    if call.trim().is_empty() {
        InteractionId::Number(u64::from(attempt))
    } else {
        InteractionId::Text(call.to_owned())
    }
}

fn card_ask(card: &[CardQuestion], calls: Vec<WaitingCall>, attempt: u32) -> Ask {
    let id = call_id(calls.first().map_or("", |call| &call.call_id), attempt);
    let spec = card_spec("engine_ask", card);
    let mut interaction = Interaction::open(id, attempt, card_prompt(card));
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

fn card_prompt(card: &[CardQuestion]) -> String {
    match card {
        [question] => question.question.clone(),
        _ => {
            let lines =
                card.iter().enumerate().map(|(n, question)| format!("{}. {}", n + 1, question.question));
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

fn prompt_ask(id: InteractionId, attempt: u32, fields: &Map<String, Value>) -> Ask {
    let prompt = fields.get("prompt").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut ask =
        with_record_fields(Ask::of(Interaction::open(id, attempt, prompt).with_fields(fields)), fields);
    if !ask.interaction.options.is_empty() && ask.interaction.kind == Kind::OpenText {
        ask.interaction.kind = Kind::ChooseOne;
    }
    ask.reply = Reply::AsExpected;
    ask
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
