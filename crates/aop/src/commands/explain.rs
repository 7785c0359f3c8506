//! `aop explain CODE`: what an error code means and what to do about it.

use crate::output::{CommandResult, Reply};
use aop_kernel::{Envelope, ErrorCode, Refusal};
use serde_json::{Value, json};

/// Explain an error code
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  aop explain question_conflict_open\n  aop explain            # the list of all codes"
)]
pub(crate) struct ExplainArgs {
    /// The code, as it stands in `error.code`
    code: Option<String>,
}

/// Looks the code up, or lists all of them.
pub(crate) fn run(args: &ExplainArgs) -> CommandResult {
    let Some(name) = &args.code else {
        let items: Vec<Value> = ErrorCode::ALL.iter().map(|code| page(*code)).collect();
        let text: String =
            ErrorCode::ALL.iter().map(|code| format!("{code}\n    {}\n", code.page().meaning)).collect();
        return Ok(Reply::ok(Envelope::success(&json!({"items": items})), text));
    };
    let code = ErrorCode::parse(name.trim()).ok_or_else(|| {
        Refusal::invalid_argument(format!("'{name}' is not an error code"))
            .hint("list all codes with `aop explain`")
    })?;
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
