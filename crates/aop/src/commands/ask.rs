//! `aop ask`: any script asks a human and waits for the answer.

use super::spec::load;
use crate::asking::{Asking, Closed, Waited, again, put};
use crate::cli::Global;
use crate::number::lasting;
use crate::output::question::{card, shown};
use crate::output::style::{bold, red};
use crate::output::{CommandResult, INTERRUPTED, Reply, Screen, is_heard, leads_nowhere, print, talk};
use crate::project::{Project, operation_id};
use aop_ask::QuestionSpec;
use aop_kernel::ids::OperationId;
use aop_kernel::question::{Question, against_choices};
use aop_kernel::{Envelope, Refusal};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Ask a human and wait for the answer
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop ask \"Which database?\" --choice PostgreSQL --choice SQLite
  answer=$(aop ask \"Deploy now?\" --choice yes --choice no --plain) || exit
  aop ask \"Settings for the release\" --spec release.json --timeout 10m

Exit codes: 0 answered, 3 expired or withdrawn, 130 interrupted. Interrupted and run again with the same \
--operation-id it goes on waiting for the same question.")]
pub(crate) struct AskArgs {
    /// The question
    prompt: String,
    /// A choice; repeatable
    #[arg(long, value_name = "CHOICE")]
    choice: Vec<String>,
    /// Also take text that is not one of the choices
    #[arg(long, requires = "choice")]
    allow_other: bool,
    /// A question spec (JSON file) to be filled in as a form
    #[arg(long, value_name = "FILE", conflicts_with = "choice")]
    spec: Option<PathBuf>,
    /// The feature that waits meanwhile (default: one made for this question)
    #[arg(long)]
    feature_id: Option<String>,
    /// How long to wait, for instance 90s, 15m or 2d; never longer than the policy says
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// clarification, permission_override, external_decision or risk_ack
    #[arg(long, value_name = "TYPE", default_value = "clarification")]
    question_type: String,
    /// Print only the answer, also when piped
    #[arg(long, conflicts_with = "json")]
    plain: bool,
    /// Makes a retry safe: the same id asks once and waits again
    #[arg(long)]
    operation_id: Option<String>,
}

/// Asks, waits, prints.
pub(crate) fn run(global: &Global, screen: &Screen, args: &AskArgs) -> CommandResult {
    let operation = operation_id(args.operation_id.as_deref())?;
    let timeout_ms = args.timeout.as_deref().map(timeout).transpose()?;
    let spec =
        args.spec.as_ref().map(|path| load(path, "a question spec", QuestionSpec::parse)).transpose()?;
    if let Some(reason) = against_choices(&args.choice).filter(|_| !args.choice.is_empty()) {
        return Err(Refusal::invalid_argument(format!("--choice {reason}")).fact("argument", "choice"));
    }
    let expected = (!args.choice.is_empty())
        .then(|| json!({"kind": "single_choice", "choices": args.choice, "allow_other": args.allow_other}));
    let session = Project::find(global)?.open()?;
    let asking = Asking {
        prompt: &args.prompt,
        expected,
        spec,
        feature_id: args.feature_id.as_deref(),
        timeout_ms,
        question_type: &args.question_type,
        operation,
    };
    let closed = match put(&session, &asking)? {
        Waited::Closed(closed) => closed,
        Waited::Left(question) => {
            let reply = left(args, &asking.operation, question.as_ref());
            if question.is_none() {
                std::mem::forget(session);
            }
            return Ok(reply);
        }
    };
    let told = reply(args, &asking.operation, &closed).shown(screen);
    // What is no secret can be read again by everybody, so whoever throws it away has it.
    let is_lost = closed.question.asked.has_secret() && leads_nowhere();
    if (is_heard() && !is_lost) || closed.answer.is_none() {
        closed.delivered(&session);
        return Ok(told);
    }
    // Nothing has succeeded, also where the reader of a pipe went away. The operation may have been minted.
    let (question, again) = (&closed.question.id, again(&asking.operation));
    let error = red(&bold("error:"));
    let why = if is_lost { ", because standard output is closed or /dev/null" } else { "" };
    talk(&format!(
        "{error} the answer to {question} could not be handed over{why}. It is kept: to get it, {again}."
    ));
    Ok(told.exit(1))
}

fn reply(args: &AskArgs, operation: &OperationId, closed: &Closed) -> Reply {
    let Closed { question, answer } = closed;
    let exit = if answer.is_some() { 0 } else { 3 };
    let text = answer.as_ref().map_or_else(|| card(question), shown);
    if args.plain {
        match answer {
            Some(_) => print(&text),
            None => talk(&text),
        }
        return Reply::printed().exit(exit);
    }
    let reply = if answer.is_some() { Reply::document } else { Reply::ok };
    reply(Envelope::success(&data(Some(question), answer.as_ref(), operation)), text).exit(exit)
}

/// The wait was interrupted, which a person has been told.
fn left(args: &AskArgs, operation: &OperationId, question: Option<&Question>) -> Reply {
    if args.plain {
        return Reply::printed().exit(INTERRUPTED);
    }
    let mut data = data(question, None, operation);
    data["hint"] = json!(again(operation));
    Reply::for_programs(Envelope::success(&data)).exit(INTERRUPTED)
}

fn data(question: Option<&Question>, answer: Option<&Value>, operation: &OperationId) -> Value {
    let record = json!(question);
    let field = |key: &str| record[key].clone();
    json!({
        "question_id": field("question_id"), "feature_id": field("feature_id"), "status": field("status"),
        "answer": answer, "answered_by": field("answered_by"), "answered_at": field("answered_at"),
        "resolution": field("resolution"), "operation_id": operation,
    })
}

/// How long a question waits at most, in milliseconds.
pub(crate) fn timeout(text: &str) -> Result<u64, Refusal> {
    let forever =
        "; leave it out and set timeout_ms to 0 in aop.yaml (policy.execution.human_input) to wait forever";
    lasting("timeout", text, forever)
}
