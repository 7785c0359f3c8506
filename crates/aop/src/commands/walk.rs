//! `aop answer` on a terminal: everything that waits, one question after the other.

use super::answer::{send, told};
use crate::output::question::above_prompt;
use crate::output::style::{bold, dim, yellow};
use crate::output::{CommandResult, INTERRUPTED, Reply, talk};
use crate::project::{Session, operation_id};
use crate::prompt;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::question::{Question, QuestionStatus};
use aop_kernel::tools::QuestionFilter;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::QuestionPage;
use serde_json::json;

/// What became of the questions.
#[derive(Default)]
struct Tally {
    answered: usize,
    skipped: usize,
}

/// Walks through the open questions: all, one feature's, or the one named.
pub(crate) fn run(
    session: &Session,
    feature: Option<FeatureId>,
    only: Option<QuestionId>,
    answered_by: &str,
) -> CommandResult {
    if session.caller.role.is_worker() {
        return Err(Refusal::new(
            ErrorCode::ForbiddenForRole,
            format!("{} may not answer", session.caller.role),
        ));
    }
    if let Some(id) = &feature {
        session.wait(session.service.feature(id))?;
    }
    let mut tally = Tally::default();
    let mut after = None;
    loop {
        let page = QuestionPage {
            feature: feature.clone(),
            filter: QuestionFilter::Only(QuestionStatus::Open),
            after: after.clone(),
            limit: 1,
        };
        let Some(question) = session.wait(session.store().questions(page))?.into_iter().next() else { break };
        after = Some((question.created_at, question.id.clone()));
        if only.as_ref().is_some_and(|only| *only != question.id) {
            continue;
        }
        if !one(session, &question, answered_by, &mut tally)? {
            return Ok(Reply::printed().exit(INTERRUPTED));
        }
    }
    if let (Some(only), 0) = (&only, tally.answered + tally.skipped) {
        return Err(not_open(session, only)?);
    }
    let text = match (tally.answered, tally.skipped) {
        (0, 0) => "Nothing waits for an answer.".to_owned(),
        (answered, 0) => format!("{answered} answered; nothing else waits."),
        (answered, skipped) => format!("{answered} answered, {}.", yellow(&format!("{skipped} left open"))),
    };
    let data = json!({"answered": tally.answered, "left_open": tally.skipped});
    Ok(Reply::ok(Envelope::success(&data), text))
}

/// Puts one question to the human until it is answered or left. False when the human wants to stop.
fn one(
    session: &Session,
    question: &Question,
    answered_by: &str,
    tally: &mut Tally,
) -> Result<bool, Refusal> {
    talk(&above_prompt(question));
    loop {
        let answer = match prompt::ask(question)? {
            prompt::Reply::Interrupted => return Ok(false),
            prompt::Reply::Skipped => {
                tally.skipped += 1;
                talk(&dim("left open\n"));
                return Ok(true);
            }
            prompt::Reply::Answer(answer) => answer,
        };
        let operation = operation_id(None)?;
        match send(session, &question.feature_id, &question.id, &answer, answered_by, &operation) {
            Ok(envelope) => {
                tally.answered += 1;
                talk(&format!("{}\n", told(&envelope)));
                return Ok(true);
            }
            // The question is still open; the human sees why and says it again.
            Err(refusal) if refusal.code == ErrorCode::QuestionInvalidAnswer => {
                talk(&format!("{} {}", yellow("not taken:"), refusal.message));
            }
            // Somebody or something was faster; the walk goes on.
            Err(refusal)
                if matches!(refusal.code, ErrorCode::QuestionAlreadyAnswered | ErrorCode::QuestionClosed) =>
            {
                talk(&format!("{} {}\n", bold("too late:"), refusal.message));
                return Ok(true);
            }
            Err(refusal) => return Err(refusal),
        }
    }
}

/// Why the named question was not among the open ones.
fn not_open(session: &Session, id: &QuestionId) -> Result<Refusal, Refusal> {
    Ok(match session.wait(session.store().question(id.clone()))? {
        None => Refusal::new(ErrorCode::QuestionNotFound, format!("there is no question {id}")),
        Some(question) => {
            let status = question.state.status();
            Refusal::new(ErrorCode::QuestionClosed, format!("question {id} is {}", status.as_str()))
                .fact("status", status)
        }
    })
}
