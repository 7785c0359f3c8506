//! `aop answer` on a terminal: everything that waits, one question after the other.

use super::answer::{send, told};
use crate::output::question::{above_prompt, too_late};
use crate::output::style::{bold, clean, dim, yellow};
use crate::output::{CommandResult, INTERRUPTED, Reply, talk};
use crate::project::{Interrupts, Session, operation_id};
use crate::prompt::{self, Ended, Typing};
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle;
use aop_kernel::question::{Question, QuestionState, QuestionStatus, ResolutionMode};
use aop_kernel::tools::QuestionFilter;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::QuestionPage;
use serde_json::json;

/// What is said of a question that still waits.
const LEFT_OPEN: &str = "left open";

/// What became of the questions.
#[derive(Default)]
struct Tally {
    answered: usize,
    skipped: usize,
    /// Those that somebody or something else closed meanwhile.
    elsewhere: usize,
    expired: usize,
    by_policy: usize,
    withdrawn: usize,
}

impl Tally {
    /// How many there are of each kind.
    fn kinds(&self) -> [(usize, &'static str); 6] {
        [
            (self.answered, "answered"),
            (self.skipped, LEFT_OPEN),
            (self.elsewhere, "answered elsewhere"),
            (self.expired, "expired"),
            (self.by_policy, "decided by policy"),
            (self.withdrawn, "withdrawn"),
        ]
    }

    /// Which question comes next, of how many there were; nothing where there is only one. Others may have come since.
    fn place(&self, total: usize) -> String {
        let number = 1 + self.kinds().iter().map(|(count, _)| count).sum::<usize>();
        if total < 2 { String::new() } else { dim(&format!("{number} of {} · ", total.max(number))) }
    }

    /// Whether any question was put to the human.
    fn has_any(&self) -> bool {
        self.kinds().iter().any(|(count, _)| *count > 0)
    }

    /// Counts one that the human did not answer.
    fn count(&mut self, question: &Question) {
        let kind = match &question.state {
            QuestionState::Open => &mut self.skipped,
            QuestionState::Answered { resolution, .. } => {
                match resolution.mode == ResolutionMode::UserReply {
                    true => &mut self.elsewhere,
                    false => &mut self.by_policy,
                }
            }
            QuestionState::Expired { .. } => &mut self.expired,
            QuestionState::Withdrawn { .. } => &mut self.withdrawn,
        };
        *kind += 1;
    }
}

/// Walks through the open questions: all, one feature's, or the one named.
pub(crate) fn run(
    session: &Session,
    feature: Option<FeatureId>,
    only: Option<QuestionId>,
    answered_by: &str,
) -> CommandResult {
    if let Some(id) = &feature {
        session.wait(session.service.feature(id))?;
    }
    // What ends the program ends the prompt first, which gives the terminal back.
    let mut interrupts = session.notice_interrupts()?;
    let mut tally = Tally::default();
    let mut after = None;
    // How many there are is known of the whole inbox, and of one question.
    let inbox = session.wait(session.store().inbox(0, 0))?;
    let total = if feature.is_some() || only.is_some() || inbox.more { 0 } else { inbox.total };
    loop {
        let page = QuestionPage {
            feature: feature.clone(),
            filter: QuestionFilter::Only(QuestionStatus::Open),
            after: after.clone(),
            limit: 1,
        };
        let next = match &only {
            // Asked for once.
            Some(_) if tally.has_any() => None,
            Some(id) => Some(named(session, feature.as_ref(), id)?),
            None => session.wait(session.store().questions(page))?.into_iter().next(),
        };
        let Some(question) = next else { break };
        after = Some((question.created_at, question.id.clone()));
        talk(&format!("{}{}", tally.place(total), above_prompt(&question)));
        if !one(session, &mut interrupts, &question, answered_by, &mut tally)? {
            talk(&stopped(session, &tally)?);
            return Ok(Reply::printed().exit(INTERRUPTED));
        }
    }
    let text = told_in_the_end(session, &tally, feature.as_ref())?;
    let data = json!({"answered": tally.answered, "left_open": tally.skipped});
    Ok(Reply::ok(Envelope::success(&data), text))
}

/// Puts one question to the human until it is answered or left. False when the human wants to stop.
fn one(
    session: &Session,
    interrupts: &mut Interrupts,
    question: &Question,
    answered_by: &str,
    tally: &mut Tally,
) -> Result<bool, Refusal> {
    let mut begun = None;
    loop {
        let asking = prompt::ask_while_open(session.store(), question, begun.take());
        let Some(ended) = session.wait_patiently(interrupts, asking) else { return Ok(false) };
        let answer = match ended? {
            Ended::Said(prompt::Reply::Interrupted) => return Ok(false),
            Ended::Said(prompt::Reply::Skipped) => {
                tally.skipped += 1;
                talk(&dim("left open\n"));
                return Ok(true);
            }
            Ended::Said(prompt::Reply::Answer(answer)) => answer,
            Ended::Closed(closed, typing) => {
                tally.count(&closed);
                talk(&format!("{}\n", too_late(&closed)));
                if typing == Typing::No {
                    return Ok(true);
                }
                let goes_on = session.wait_patiently(interrupts, prompt::typed_out(None)).transpose()?;
                return Ok(goes_on == Some(true));
            }
        };
        let operation = operation_id(None)?;
        match send(session, &question.feature_id, &question.id, &answer, answered_by, &operation) {
            Ok(envelope) => {
                tally.answered += 1;
                talk(&format!("{}\n", told(session, &envelope)));
                return Ok(true);
            }
            // The question is still open; the human sees why and goes on from what was said.
            Err(refusal) if refusal.code == ErrorCode::QuestionInvalidAnswer => {
                talk(&format!("{} {}", yellow("not taken:"), clean(&refusal.message)));
                begun = Some(answer);
            }
            // Somebody or something was faster; the walk goes on.
            Err(refusal)
                if matches!(refusal.code, ErrorCode::QuestionAlreadyAnswered | ErrorCode::QuestionClosed) =>
            {
                let closed = session.wait(session.store().question(question.id.clone()))?;
                let closed = closed.ok_or(refusal)?;
                tally.count(&closed);
                talk(&format!("{}\n", too_late(&closed)));
                return Ok(true);
            }
            Err(refusal) => return Err(refusal),
        }
    }
}

/// The question that is named, if it is one of the feature and open.
fn named(session: &Session, feature: Option<&FeatureId>, id: &QuestionId) -> Result<Question, Refusal> {
    let found = session.wait(session.store().question(id.clone()))?;
    let found = found.filter(|question| feature.is_none_or(|feature| *feature == question.feature_id));
    let question = found.ok_or_else(|| {
        let place = feature.map(|feature| format!("feature '{feature}' has")).unwrap_or("there is".into());
        Refusal::new(ErrorCode::QuestionNotFound, format!("{place} no question {id}")).fact("question_id", id)
    })?;
    let feature = session.wait(session.store().feature(question.feature_id.clone()))?;
    lifecycle::still_open(&question, feature.as_ref())?;
    Ok(question)
}

/// How far it went when the human stopped.
fn stopped(session: &Session, tally: &Tally) -> Result<String, Refusal> {
    let inbox = session.wait(session.store().inbox(0, 0))?;
    let most = if inbox.more { "more than " } else { "" };
    Ok(format!("Stopped: {} answered, {most}{} still open.", tally.answered, inbox.total))
}

/// How it went, and what is left.
fn told_in_the_end(session: &Session, tally: &Tally, feature: Option<&FeatureId>) -> Result<String, Refusal> {
    let done = match feature {
        _ if tally.has_any() => {
            let any = tally.kinds().into_iter().filter(|(count, _)| *count > 0);
            let told = |(count, kind)| match kind {
                LEFT_OPEN => yellow(&format!("{count} {kind}")),
                kind => format!("{count} {kind}"),
            };
            any.map(told).collect::<Vec<_>>().join(", ")
        }
        Some(feature) => format!("Nothing of {} waits for an answer", bold(feature.as_str())),
        None => "Nothing waits for an answer".to_owned(),
    };
    let inbox = session.wait(session.store().inbox(0, 0))?;
    let others = inbox.total.saturating_sub(tally.skipped);
    Ok(match others {
        0 if tally.skipped > 0 || !tally.has_any() => format!("{done}."),
        0 => format!("{done}; nothing else waits."),
        1 => format!("{done}; 1 other question waits: {}.", bold("`aop answer`")),
        more => {
            let most = if inbox.more { "more than " } else { "" };
            format!("{done}; {most}{more} other questions wait: {}.", bold("`aop answer`"))
        }
    })
}
