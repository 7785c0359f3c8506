//! One native request of the terminal dialogue, drawn; its reply, as the dialogue takes it.

use crate::output::style::{clean, dim};
use crate::output::talk;
use crate::output::wrap::fitted;
use inquire::{InquireError, MultiSelect, Password, PasswordDisplayMode, Select, Text};
use serde_json::{Value, json};
use std::cell::RefCell;

/// Why there is no reply.
pub(super) enum Stop {
    /// Ctrl-C.
    Interrupted,
    /// The terminal failed.
    Failed(String),
}

/// What stands before a question.
const MARK: &str = "? ";

/// The last entry of a list that also takes free text.
const OTHER: &str = "something else …";

/// Draws the request and waits for the human.
pub(super) fn draw(input: &Value) -> Result<Value, Stop> {
    let text = |key: &str| clean(input[key].as_str().unwrap_or_default());
    // The prompt is drawn on stderr, behind a mark.
    let question = fitted(&format!("{MARK}{}", text("question")), &std::io::stderr());
    let question = question.strip_prefix(MARK).unwrap_or(&question);
    let options: Vec<&Value> = input["options"].as_array().into_iter().flatten().collect();
    previews(&options);
    let drawn = match input["kind"].as_str() {
        Some("select") => select(question, &options, input["allow_other"] == true),
        Some("multi_select") => multi_select(question, &options, input["allow_other"] == true),
        _ if input["secret"] == true => secret(question),
        _ => free_text(question, ""),
    };
    match drawn {
        Ok(Some(reply)) => Ok(reply),
        Ok(None) => Ok(json!({"escaped": true})),
        Err(InquireError::OperationInterrupted) => Err(Stop::Interrupted),
        Err(error) => Err(Stop::Failed(error.to_string())),
    }
}

/// Previews stand above the list: a list has no room for them.
fn previews(options: &[&Value]) {
    for option in options {
        if let Some(preview) = option["preview"].as_str() {
            talk(&format!(
                "{}\n{}",
                dim(&format!("── {}", clean(option["label"].as_str().unwrap_or_default()))),
                clean(preview)
            ));
        }
    }
}

/// "label — description", or the label alone when the description says no more.
fn entries(options: &[&Value]) -> Vec<String> {
    let entry = |option: &&Value| {
        let text = |key: &str| clean(option[key].as_str().unwrap_or_default()).replace('\n', " ");
        let (label, description) = (text("label"), text("description"));
        if description.is_empty() || description == label {
            label
        } else {
            format!("{label} — {description}")
        }
    };
    options.iter().map(entry).collect()
}

fn label(options: &[&Value], index: usize) -> Value {
    options.get(index).map(|option| option["label"].clone()).unwrap_or_default()
}

fn select(question: &str, options: &[&Value], other: bool) -> Result<Option<Value>, InquireError> {
    let mut list = entries(options);
    if other {
        list.push(OTHER.to_owned());
    }
    let help = "↑↓ choose, type to filter, enter answers, esc leaves it";
    // The entry for other text stays whatever is typed, and takes over what was.
    let typed = RefCell::new(String::new());
    let scorer = |input: &str, entry: &String, text: &str, index: usize| {
        input.clone_into(&mut typed.borrow_mut());
        let always = other && index == options.len();
        Select::DEFAULT_SCORER(input, entry, text, index).or(always.then_some(i64::MIN))
    };
    let asked = Select::new(question, list).with_help_message(help).with_scorer(&scorer);
    let Some(chosen) = asked.raw_prompt_skippable()? else { return Ok(None) };
    if chosen.index < options.len() {
        return Ok(Some(json!({"selected": [label(options, chosen.index)]})));
    }
    free_text("Your own words:", &typed.borrow())
}

fn multi_select(question: &str, options: &[&Value], other: bool) -> Result<Option<Value>, InquireError> {
    let help = "↑↓ move, space to choose, enter to answer, esc to leave it";
    let Some(chosen) =
        MultiSelect::new(question, entries(options)).with_help_message(help).raw_prompt_skippable()?
    else {
        return Ok(None);
    };
    let mut selected: Vec<Value> = chosen.iter().map(|entry| label(options, entry.index)).collect();
    if other {
        match own_words()? {
            Some(words) => selected.extend(words),
            None => return Ok(None),
        }
    }
    // Ticked and typed is said twice and meant once.
    let mut seen = std::collections::HashSet::new();
    selected.retain(|word| seen.insert(word.to_string()));
    Ok(Some(json!({"selected": selected})))
}

/// Texts of the human's own, until an empty one.
fn own_words() -> Result<Option<Vec<Value>>, InquireError> {
    let mut words = Vec::new();
    loop {
        let prompt = Text::new("Anything else?").with_help_message("enter alone: nothing else");
        match prompt.prompt_skippable()? {
            None => return Ok(None),
            Some(text) if text.trim().is_empty() => return Ok(Some(words)),
            Some(text) => words.push(json!(text)),
        }
    }
}

fn free_text(question: &str, begun: &str) -> Result<Option<Value>, InquireError> {
    let typed = Text::new(question)
        .with_initial_value(begun)
        .with_help_message("enter to answer, esc to leave it")
        .prompt_skippable()?;
    Ok(typed.map(|text| json!({"text": text})))
}

fn secret(question: &str) -> Result<Option<Value>, InquireError> {
    let typed = Password::new(question)
        .without_confirmation()
        .with_display_mode(PasswordDisplayMode::Masked)
        .with_help_message("not shown; enter to answer, esc to leave it")
        .prompt_skippable()?;
    Ok(typed.map(|text| json!({"text": text})))
}
