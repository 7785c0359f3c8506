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
    let expired = lifecycle::expire_due(snapshot, now);
    let expiry = Change::of(&expired.events, &expired.state, &expired.secrets, seq)?;
    let mut state = expired.state;
    let moment = Moment { now, question_id: ids.question(now)? };
    let outcome = match lifecycle::apply(&state, request, &moment, rules) {
        Err(refusal) => Err(refusal),
        Ok(outcome) => {
            state = outcome.state;
            let change = Change::of(&outcome.events, &state, outcome.secret.as_slice(), seq)?;
            Ok((change, outcome.envelope))
        }
    };
    Ok(Decision { expiry, outcome, state })
}
