//! One mutation on a snapshot: what is due expires first, then the kernel decides. No database in sight; each
//! backend calls this inside its own transaction and writes the rows that come out.

use crate::clock::Ids;
use crate::error::StoreError;
use crate::rows::Change;
use aop_kernel::event::Snapshot;
use aop_kernel::lifecycle::{self, Moment, Request};
use aop_kernel::policy::Rules;
use aop_kernel::time::Timestamp;
use aop_kernel::{Envelope, Refusal};

/// At most so many calls share one commit, so that nobody waits for an endless queue.
pub(crate) const BATCH: usize = 256;

/// Due features that one commit expires at most: a long backlog is worked off in several.
pub(crate) const EXPIRE_AT_ONCE: usize = 256;

/// What follows from one mutation.
pub(crate) struct Decision {
    /// What the clock did, to be kept whatever the command came to.
    pub(crate) expiry: Option<Change>,
    /// What the command did and what the caller is told, or why not.
    pub(crate) outcome: Result<(Option<Change>, Envelope), Refusal>,
    /// The state after both.
    pub(crate) state: Snapshot,
}

/// Decides one request. Events are counted on from `seq`.
pub(crate) fn decide(
    snapshot: &Snapshot,
    request: &Request,
    rules: &Rules,
    now: Timestamp,
    ids: &mut Ids,
    seq: &mut u64,
) -> Result<Decision, StoreError> {
    let is_due = snapshot.questions.iter().any(|question| question.is_due(now));
    let expired = is_due.then(|| lifecycle::expire_due(snapshot, now));
    let expiry = match &expired {
        Some(expired) => Change::of(&expired.events, &expired.state, &expired.secrets, seq)?,
        None => None,
    };
    let moment = Moment { now, question_id: ids.question(now)? };
    let before = expired.as_ref().map_or(snapshot, |expired| &expired.state);
    match lifecycle::apply(before, request, &moment, rules) {
        Err(refusal) => Ok(Decision { expiry, outcome: Err(refusal), state: before.clone() }),
        Ok(outcome) => {
            let change = Change::of(&outcome.events, &outcome.state, outcome.secret.as_slice(), seq)?;
            Ok(Decision { expiry, outcome: Ok((change, outcome.envelope)), state: outcome.state })
        }
    }
}
