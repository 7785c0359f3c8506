//! What the end of the log changed and the other tables do not hold yet. Its writer fills it with every commit, and
//! whoever looks for one question of these finds it here.

use crate::rows::Change;
use aop_kernel::feature::Feature;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::question::Question;
use aop_kernel::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// With more features and questions than this, more rows in all, or more bytes, it is written to the tables even if
/// nobody looks there. Whoever opens the file after a crash reads the features and the questions first; the operations are
/// a name each.
const MANY: usize = 90;
const LONG: usize = 1_000;
const LARGE: usize = 1024 * 1024;

/// A feature as the end of the log leaves it.
pub(super) struct Ended {
    pub(super) feature: Arc<Feature>,
    /// Its open questions.
    pub(super) open: Vec<Arc<Question>>,
    /// Its last event.
    pub(super) last: i64,
}

/// The rows that are still to be written, in order, which puts neighbours on the same page.
#[derive(Clone, Default)]
pub(super) struct Tail {
    /// The last event of the project.
    pub(super) seq: u64,
    pub(super) specs: Vec<(FeatureId, String)>,
    pub(super) features: BTreeMap<FeatureId, Arc<Ended>>,
    pub(super) questions: BTreeMap<QuestionId, Arc<Question>>,
    /// The event that tells what came of each.
    pub(super) operations: BTreeMap<String, i64>,
    /// How long its events are.
    bytes: usize,
}

impl Tail {
    pub(super) fn is_empty(&self) -> bool {
        self.features.is_empty()
    }

    /// How many rows they are.
    pub(super) fn len(&self) -> usize {
        self.features.len() + self.questions.len() + self.operations.len()
    }

    /// Whether it is time to write it to the tables.
    pub(super) fn is_long(&self) -> bool {
        let records = self.features.len() + self.questions.len();
        records > MANY || self.len() > LONG || self.bytes > LARGE
    }

    /// The first deadline of the open questions of a feature, if it is among these.
    pub(super) fn deadline(&self, feature: &FeatureId) -> Option<Timestamp> {
        self.features.get(feature)?.open.iter().filter_map(|question| question.expires_at).min()
    }

    /// Takes a change whose events stand in the log; `last` is the last of them.
    pub(super) fn take(&mut self, change: Change, last: i64) {
        self.bytes += change.len();
        let Change { spec, feature, open, questions, .. } = change;
        self.specs.extend(spec.map(|spec| (feature.id.clone(), spec)));
        self.questions.extend(questions.into_iter().map(|question| (question.id.clone(), question)));
        self.features.insert(feature.id.clone(), Arc::new(Ended { feature, open, last }));
    }

    /// Takes what came later.
    fn extend(&mut self, later: Tail) {
        self.bytes += later.bytes;
        self.specs.extend(later.specs);
        self.features.extend(later.features);
        self.questions.extend(later.questions);
        self.operations.extend(later.operations);
    }
}

/// The tail as of the last commit, for everybody in this process.
#[derive(Clone, Default)]
pub(super) struct Shared(Arc<Mutex<Arc<Tail>>>);

impl Shared {
    /// To be let go at once.
    pub(super) fn look(&self) -> MutexGuard<'_, Arc<Tail>> {
        // A tail is whole after any panic: what it takes is made before.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A question that was closed a moment ago. It stays as it is whatever else happens, so nobody needs to look into the
    /// file for it; most of those who wait for one find it here.
    pub(super) fn closed(&self, id: &QuestionId) -> Option<Question> {
        let tail = self.look();
        let question = tail.questions.get(id).filter(|question| !question.is_open())?;
        Some((**question).clone())
    }

    /// Takes what a commit has added, or put in its place.
    pub(super) fn publish(&self, added: Tail, instead: bool, seq: u64) {
        let mut held = self.look();
        let tail = Arc::make_mut(&mut held);
        if instead {
            *tail = added;
        } else {
            tail.extend(added);
        }
        tail.seq = seq;
    }
}
