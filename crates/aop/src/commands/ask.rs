//! `aop ask`: any script asks a human and waits for the answer.

use crate::cli::Global;
use crate::input::read_bytes;
use crate::output::question::{card, shown};
use crate::output::style::dim;
use crate::output::{CommandResult, Reply, Screen, print, talk};
use crate::project::{Project, SURFACE, Session, operation_id};
use aop_ask::QuestionSpec;
use aop_kernel::ids::{OperationId, QuestionId};
use aop_kernel::question::{Question, QuestionState, QuestionStatus};
use aop_kernel::role::Role;
use aop_kernel::tools::{Call, Tool, parse};
use aop_kernel::{Envelope, ErrorCode, Refusal};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Ask a human and wait for the answer
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop ask \"Which database?\" --choice PostgreSQL --choice SQLite
  answer=$(aop ask \"Deploy now?\" --choice yes --choice no --plain) || exit
  aop ask \"Settings for the release\" --spec release.json --timeout 30m

Exit codes: 0 answered, 3 expired or withdrawn. Interrupted and run again with the same
--operation-id it goes on waiting for the same question.")]
pub(crate) struct AskArgs {
    /// The question
    prompt: String,
    /// A choice; give it once for each
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
    /// How long to wait, for instance 90s, 15m or 2h; never longer than the policy says
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
    let timeout_ms = args.timeout.as_deref().map(milliseconds).transpose()?;
    let spec = args.spec.as_ref().map(|path| read_spec(path)).transpose()?;
    let session = Project::find(global)?.open()?;
    let question = create(&session, args, &operation, timeout_ms, spec)?;
    if screen.is_text() {
        talk(&card(&question));
        talk(&dim("Waiting for an answer … (Ctrl-C stops waiting; the question stays open)"));
    }
    let closed = wait_until_closed(&session, question.id)?;
    session.project_files();
    reply(&session, args, closed)
}

/// Creates the question, or finds it again under the same operation id.
fn create(
    session: &Session,
    args: &AskArgs,
    operation: &OperationId,
    timeout_ms: Option<u64>,
    spec: Option<QuestionSpec>,
) -> Result<Question, Refusal> {
    let given = args.feature_id.clone().or_else(|| session.own_feature().map(|id| id.to_string()));
    let expected = (!args.choice.is_empty())
        .then(|| json!({"kind": "single_choice", "choices": args.choice, "allow_other": args.allow_other}));
    let role = session.caller.role;
    let input = json!({
        "feature_id": given.clone().unwrap_or_else(|| adhoc_feature(operation)),
        "role": role,
        "session_id": if role == Role::Human { "aop-ask".to_owned() } else { format!("aop-ask-{role}") },
        "question_type": args.question_type,
        "prompt": args.prompt,
        "expected_answer": expected,
        "spec": spec,
        "timeout_ms": timeout_ms,
        "operation_id": operation,
    });
    let rules = &session.service.rules;
    let Call::Mutate(request) = parse(Tool::QuestionCreate, &session.caller, &input, SURFACE, rules)? else {
        return Err(Refusal::new(ErrorCode::Internal, "asking is a mutation"));
    };
    let request = if given.is_some() { *request } else { request.bringing_feature(args.prompt.clone()) };
    let envelope = session.submit(request)?;
    let id = QuestionId::parse(envelope.data()["question_id"].as_str().unwrap_or_default())?;
    session.wait(session.store().question(id.clone()))?.ok_or_else(|| vanished(&id))
}

/// A feature id that belongs to the operation, so that a retry finds the same one.
fn adhoc_feature(operation: &OperationId) -> String {
    let hash = operation.as_str().bytes().fold(
        [0xcbf2_9ce4_8422_2325_u64, 0x9e37_79b9_7f4a_7c15],
        |[a, b], byte| {
            // Two FNV-1a streams: not secret, only spread out.
            let step = |state: u64, salt: u8| (state ^ u64::from(byte ^ salt)).wrapping_mul(0x0100_0000_01b3);
            [step(a, 0), step(b, 0x5a)]
        },
    );
    format!("ask-{:016x}{:016x}", hash[0], hash[1])
}

/// Sleeps until the question is closed: woken by commits of any process, and by the deadline.
fn wait_until_closed(session: &Session, id: QuestionId) -> Result<Question, Refusal> {
    let mut changes = session.store().changes();
    session.wait(async {
        loop {
            // Marked as seen before reading, so that an answer in between wakes the wait below.
            changes.borrow_and_update();
            let question = session.store().question(id.clone()).await?.ok_or_else(|| vanished(&id))?;
            if !question.is_open() {
                if question.state.status() == QuestionStatus::Expired || is_due(session, &question).await? {
                    session.store().expire().await?;
                }
                return Ok(question);
            }
            let now = session.store().now().await?;
            let left = question.expires_at.map(|at| at.as_millis().saturating_sub(now.as_millis()));
            let left =
                left.map_or(Duration::from_secs(3600), |ms| Duration::from_millis(ms.unsigned_abs() + 1));
            // Either way the question is looked at again.
            let _ = tokio::time::timeout(left, changes.changed()).await;
        }
    })
}

/// Whether the clock closed the question and nobody has written that down yet.
async fn is_due(session: &Session, question: &Question) -> Result<bool, Refusal> {
    let deadline = session.store().next_deadline().await?;
    Ok(deadline.is_some() && deadline == question.expires_at)
}

fn reply(session: &Session, args: &AskArgs, question: Question) -> CommandResult {
    let (answer, exit) = match &question.state {
        QuestionState::Answered { answer, .. } => {
            // The asker is the one who may see a secret; once it has it, the store forgets it.
            let secret = session.wait(session.store().reveal(question.id.clone()))?;
            if secret.is_some() {
                session.wait(session.store().forget(question.id.clone()))?;
            }
            (Some(secret.unwrap_or_else(|| answer.clone())), 0)
        }
        QuestionState::Open | QuestionState::Expired { .. } | QuestionState::Withdrawn { .. } => (None, 3),
    };
    let text = answer.as_ref().map_or_else(|| card(&question), shown);
    if args.plain {
        match &answer {
            Some(_) => print(&text),
            None => talk(&text),
        }
        return Ok(Reply::printed().exit(exit));
    }
    let record = json!(question);
    let field = |key: &str| record[key].clone();
    let data: Value = json!({
        "question_id": field("question_id"), "feature_id": field("feature_id"), "status": field("status"),
        "answer": answer, "answered_by": field("answered_by"), "answered_at": field("answered_at"),
        "resolution": field("resolution"),
    });
    Ok(Reply::ok(Envelope::success(&data), text).exit(exit))
}

fn read_spec(path: &std::path::Path) -> Result<QuestionSpec, Refusal> {
    QuestionSpec::parse(&read_bytes(path)?).map_err(|violations| {
        let count = violations.len();
        Refusal::new(
            ErrorCode::InvalidDocument,
            format!("'{}' is not a valid question spec ({count} found)", path.display()),
        )
        .hint(format!("correct each violation; `aop spec check {}` shows them all", path.display()))
        .fact("violations", violations)
    })
}

/// "90s", "15m", "2h", "1h 30m" as milliseconds.
fn milliseconds(text: &str) -> Result<u64, Refusal> {
    let wrong = || {
        Refusal::invalid_argument(format!("--timeout {} is not a time", aop_kernel::ids::quoted(text)))
            .hint("write it like 90s, 15m, 2h or '1h 30m'")
            .fact("argument", "timeout")
    };
    let duration: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    u64::try_from(duration.as_millis()).ok().filter(|ms| *ms > 0).ok_or_else(wrong)
}

fn vanished(id: &QuestionId) -> Refusal {
    Refusal::new(ErrorCode::Internal, format!("question {id} was committed and cannot be found"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_written_as_people_write_them() {
        assert_eq!(milliseconds("90s").unwrap(), 90_000);
        assert_eq!(milliseconds("15m").unwrap(), 900_000);
        assert_eq!(milliseconds("1h 30m").unwrap(), 5_400_000);
        for bad in ["", "soon", "0s", "-5m", "15"] {
            assert!(milliseconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_feature_of_a_lone_question_belongs_to_its_operation() {
        let operation = OperationId::parse("op_1").unwrap();
        assert_eq!(adhoc_feature(&operation), adhoc_feature(&operation));
        let other = OperationId::parse("op_2").unwrap();
        assert_ne!(adhoc_feature(&operation), adhoc_feature(&other));
        assert!(aop_kernel::ids::FeatureId::parse(&adhoc_feature(&other)).is_ok());
    }
}
