//! `aop explain CODE`: what an error code means and what to do about it.

use crate::output::{CommandResult, Reply};
use aop_ask::violation::nearest;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_turn::TurnErrorCode;
use serde_json::{Value, json};

/// Explain an error code
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  aop explain question_conflict_open\n  aop explain            # the list of all codes"
)]
pub(crate) struct ExplainArgs {
    /// The code, as it stands in `error.code` or in the reason of a blocked feature
    code: Option<String>,
}

/// Looks the code up, or lists all of them.
pub(crate) fn run(args: &ExplainArgs) -> CommandResult {
    let Some(name) = &args.code else {
        let turns = TurnErrorCode::ALL.iter();
        let items: Vec<Value> = ErrorCode::ALL
            .iter()
            .map(|code| page(*code))
            .chain(turns.clone().map(|code| turn_page(*code)))
            .collect();
        let mut text: String =
            ErrorCode::ALL.iter().map(|code| format!("{code}\n    {}\n", code.page().meaning)).collect();
        text.push_str("\nWhy a turn failed:\n\n");
        text.extend(turns.map(|code| format!("{code}\n    {}\n", code.page().0)));
        return Ok(Reply::ok(Envelope::success(&json!({"items": items})), text));
    };
    let wanted = name.trim();
    let exact = ErrorCode::parse(wanted);
    if let (None, Some(code)) = (exact, TurnErrorCode::parse(&wanted.to_uppercase())) {
        let (meaning, remedy) = code.page();
        let text =
            format!("{code}\n\n{meaning}\n\nWhat to do: {remedy}\n\nretryable: {}", yes_no(code.retryable()));
        return Ok(Reply::ok(Envelope::success(&turn_page(code)), text));
    }
    let code = exact.or_else(|| ErrorCode::parse(&wanted.to_lowercase())).ok_or_else(|| unknown(name))?;
    let text = format!(
        "{code}\n\n{}\n\nWhat to do: {}\n\nexit code {}, HTTP {}, retryable: {}, needs a human: {}",
        code.page().meaning,
        code.page().remedy,
        code.exit_code() as u8,
        code.http_status(),
        yes_no(code.retryable()),
        yes_no(code.requires_human()),
    );
    Ok(Reply::ok(Envelope::success(&page(code)), text))
}

fn unknown(name: &str) -> Refusal {
    let all = ErrorCode::ALL.iter().map(|code| code.as_str());
    let all: Vec<&str> = all.chain(TurnErrorCode::ALL.iter().map(|code| code.as_str())).collect();
    let hint = match nearest(name, &all) {
        Some(code) => format!("did you mean `aop explain {code}`? `aop explain` lists all codes"),
        None => "list all codes with `aop explain`".to_owned(),
    };
    Refusal::invalid_argument(format!("'{name}' is not an error code")).hint(hint)
}

fn turn_page(code: TurnErrorCode) -> Value {
    let (meaning, remedy) = code.page();
    json!({"code": code.as_str(), "meaning": meaning, "remedy": remedy, "retryable": code.retryable()})
}

fn page(code: ErrorCode) -> Value {
    json!({
        "code": code,
        "meaning": code.page().meaning,
        "remedy": code.page().remedy,
        "exit_code": code.exit_code() as u8,
        "http_status": code.http_status(),
        "retryable": code.retryable(),
        "requires_human": code.requires_human(),
    })
}

fn yes_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}
