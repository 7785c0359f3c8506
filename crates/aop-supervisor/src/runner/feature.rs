//! The task of one feature: step after step, each decided anew from what is stored, until there is nothing to do.

use super::context::{Context, Stop};
use super::whose::{Left, Settled, Whose};
use crate::SURFACE;
use crate::check::{fail_checks, run_checks};
use crate::gate::open_gate;
use crate::git::Git;
use crate::holding::Hold;
use crate::step::{Step, next_step};
use crate::turn::{Plan, leave_turn, run_turn};
use aop_kernel::feature::Feature;
use aop_kernel::ids::FeatureId;
use aop_kernel::lifecycle::{Command, Transition};
use aop_kernel::own::OwnOperation;
use aop_kernel::status::Status;
use aop_kernel::tools::runner_request;
use aop_kernel::{ErrorCode, Refusal};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often in a row a feature may turn out to have moved on before something must be wrong.
const MAX_STALE: u32 = 20;

/// How a task ended.
pub(super) enum Outcome {
    /// There is nothing to do for the feature now.
    Resting,
    /// Its engine has failed, and is not to be tried again before this moment. The feature is still held (its version).
    RestingUntil(Instant, u64),
    /// It is not for this run as it stands (its version).
    Left(Left, u64),
    /// The run cannot go on.
    Broken(Refusal),
}

/// What became of a step.
enum Taken {
    /// It was taken, or has to be decided anew.
    Now,
    /// It is to be taken at this moment.
    Later(Instant),
    /// Another runner should take it.
    Left(Left),
}

/// Works on a feature.
pub(super) async fn work_on(context: &Arc<Context>, id: &FeatureId) -> Outcome {
    let mut stale = 0;
    loop {
        if context.is_stopped(id) {
            return Outcome::Resting;
        }
        let feature = match context.store().feature(id.clone()).await {
            Ok(Some(feature)) => feature,
            Ok(None) => return Outcome::Resting,
            Err(error) => return Outcome::Broken(error.into()),
        };
        let result = match next_step(&feature) {
            Step::Rest => return Outcome::Resting,
            step => take_if_ours(context, &feature, step).await,
        };
        let result = match result {
            Err(Stop::Stale) if stale < MAX_STALE => {
                stale += 1;
                tokio::time::sleep(Duration::from_millis(5 << stale.min(8))).await;
                continue;
            }
            Err(Stop::Stale) => {
                let refusal =
                    Refusal::new(ErrorCode::Internal, "the feature keeps moving on while it is worked on");
                block(context, &feature, &refusal).await.map(|()| Taken::Now)
            }
            Err(Stop::Feature(refusal)) => block(context, &feature, &refusal).await.map(|()| Taken::Now),
            other => other,
        };
        match result {
            Ok(Taken::Now) => stale = 0,
            Ok(Taken::Later(until)) => return Outcome::RestingUntil(until, feature.version),
            Ok(Taken::Left(left)) => return Outcome::Left(left, feature.version),
            Err(Stop::Lost) => return Outcome::Left(Left::Held, feature.version),
            Err(Stop::Cut) => return Outcome::Resting,
            Err(stop @ (Stop::Run(_) | Stop::Feature(_) | Stop::Stale)) => {
                return Outcome::Broken(stop.into_refusal());
            }
        }
    }
}

/// Takes a step, or says why another runner should.
async fn take_if_ours(context: &Arc<Context>, feature: &Feature, step: Step) -> Result<Taken, Stop> {
    let gone = match context.whose(feature, &step).await? {
        Whose::Ours => None,
        Whose::OursNow(gone) => Some(gone),
        Whose::Left(left) => return Ok(Taken::Left(left)),
    };
    match context.lease.hold(&feature.id).await? {
        Hold::Still => {}
        // It may have moved on before it was ours: look again.
        Hold::Now => return Ok(Taken::Now),
        Hold::No => return Ok(Taken::Left(Left::Held)),
    }
    if feature.work.turns == 0 {
        let unused = context.git.check_unused(&feature.id).await;
        unused.map_err(|error| Refusal::from(error.stopping(&feature.id)))?;
    }
    let settled = context.settle(feature, gone).await?;
    let sent_back = settled == Settled::WorkIsMissing && send_back(context, feature).await?;
    context.move_in(feature).await?;
    if sent_back {
        return Ok(Taken::Now);
    }
    if let (Step::Turn { .. }, Some(until)) = (&step, context.rests_until(feature)) {
        return Ok(Taken::Later(until));
    }
    take(context, feature, step).await.map(|()| Taken::Now)
}

/// Nobody can judge what is not here: the builder has to do it again. False when it is the builder's turn anyway.
async fn send_back(context: &Arc<Context>, feature: &Feature) -> Result<bool, Stop> {
    let why = format!("the work on it is not on the branch {} here", Git::branch(&feature.id));
    match (feature.status, feature.work.finished) {
        (Status::Qa, _) => move_to(context, feature, Status::Building, why).await?,
        (Status::Building, Some(true)) => fail_checks(context, feature, &why).await?,
        _ => return Ok(false),
    }
    Ok(true)
}

async fn take(context: &Arc<Context>, feature: &Feature, step: Step) -> Result<(), Stop> {
    match step {
        Step::Rest => Ok(()),
        Step::Turn { claim, reply_to } => {
            let (work, phase) = (&feature.work, feature.status);
            // Who has had a turn in this phase is through its gate, and only waits for what it asked.
            let is_through = reply_to.is_some() && work.phase == Some(phase) && work.attempt > 0;
            if !is_through && !open_gate(context, feature).await? {
                return Ok(());
            }
            run_turn(context, feature, Plan { claim, reply_to, cut_off: false }).await
        }
        Step::Continue(turn) => {
            run_turn(context, feature, Plan { claim: turn.claim, reply_to: turn.reply_to, cut_off: true })
                .await
        }
        Step::Leave(turn) => leave_turn(context, feature, turn).await,
        Step::Advance => move_to(context, feature, Status::Building, String::new()).await,
        Step::Check(name) => run_checks(context, feature, name).await,
        Step::SendBack => {
            let (to, reason) = context.back_to_builder(feature, "the work did not pass");
            move_to(context, feature, to, reason).await
        }
    }
}

/// A person has to look: the feature is blocked with the reason and the next step.
async fn block(context: &Arc<Context>, feature: &Feature, refusal: &Refusal) -> Result<(), Stop> {
    let reason = format!("{} ({}): {}", refusal.code, refusal.message, refusal.hint);
    match move_to(context, feature, Status::Blocked, reason).await {
        // It has moved on meanwhile: whatever it is now will be seen.
        Err(Stop::Stale) => Ok(()),
        other => other,
    }
}

async fn move_to(context: &Arc<Context>, feature: &Feature, to: Status, reason: String) -> Result<(), Stop> {
    context.confirm(&feature.id).await?;
    let reason = Some(reason).filter(|reason| !reason.is_empty());
    let command = Command::Transition(Transition { feature_id: feature.id.clone(), to, reason });
    let id = OwnOperation::Move.id(format_args!("{}:{}:{to}", feature.id, feature.version))?;
    context.submit(runner_request(command, id, SURFACE)).await.map(drop)
}
