//! What comes next for a feature, read off its stored state alone: a run that continues after a crash decides the
//! same as the one that was cut off.

use aop_kernel::feature::Feature;
use aop_kernel::ids::QuestionId;
use aop_kernel::role::Role;
use aop_kernel::status::Status;
use aop_kernel::work::{CheckName, TurnInHand};

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A new turn, under this claim.
    Turn {
        /// What names it for ever.
        claim: String,
        /// The question whose end it begins with.
        reply_to: Option<QuestionId>,
    },
    /// A turn that was cut off.
    Continue(TurnInHand),
    /// A turn whose phase was left in the middle of it: it gets its end.
    Leave(TurnInHand),
    /// The plan is there: on to building.
    Advance,
    /// Checks.
    Check(CheckName),
    /// The builder gets its work back.
    SendBack,
    /// Nothing, until something happens to the feature.
    Rest,
}

/// Decides.
pub(crate) fn next_step(feature: &Feature) -> Step {
    let Some(worker) = feature.status.worker() else { return Step::Rest };
    if feature.adhoc {
        return Step::Rest;
    }
    let work = &feature.work;
    if let Some(turn) = &work.turn {
        let goes_on = turn.role == worker;
        return if goes_on { Step::Continue(turn.clone()) } else { Step::Leave(turn.clone()) };
    }
    match (work.finished, feature.status) {
        (Some(true), Status::Planning) => Step::Advance,
        (Some(true), Status::Building) => Step::Check(CheckName::Fast),
        (Some(true), _) => Step::Check(CheckName::Full),
        (Some(false), _) => Step::SendBack,
        (None, _) => new_turn(feature, worker),
    }
}

/// The end of a question is told to the session that waits for it, once: its claim carries the question's name.
fn new_turn(feature: &Feature, worker: Role) -> Step {
    match feature.work.owed_to(worker) {
        Some(question) => Step::Turn { claim: format!("reply:{question}"), reply_to: Some(question.clone()) },
        None => {
            Step::Turn { claim: format!("turn:{}:{}", feature.id, feature.work.turns + 1), reply_to: None }
        }
    }
}

/// Whether anything can be done for the feature.
pub(crate) fn is_ready(feature: &Feature) -> bool {
    next_step(feature) != Step::Rest
}
