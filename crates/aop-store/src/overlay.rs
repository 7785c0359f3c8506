//! What the clock has done to features and questions without anybody having written it yet. Reads lay it over
//! the committed rows; usually it is empty.

use crate::port::{FeaturePage, QuestionPage};
use crate::rows::{answered_at, in_list_order};
use aop_kernel::event::Snapshot;
use aop_kernel::feature::Feature;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::expire_due;
use aop_kernel::question::Question;
use aop_kernel::time::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Features and questions as they are now, where that differs from what is stored.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    features: BTreeMap<FeatureId, Feature>,
    questions: BTreeMap<QuestionId, Question>,
}

impl Overlay {
    /// Adds what has become due in one feature.
    pub(crate) fn add(&mut self, before: &Snapshot, now: Timestamp) {
        let after = expire_due(before, now).state;
        let changed =
            after.questions.iter().filter(|question| before.question(&question.id) != Some(question));
        self.questions.extend(changed.map(|question| (question.id.clone(), (**question).clone())));
        self.features.extend(after.into_feature().map(|feature| (feature.id.clone(), feature)));
    }

    /// How many rows more than a page asks for have to be read, because some of them may have moved away.
    pub(crate) fn len(&self) -> usize {
        self.questions.len()
    }

    /// A page of features from the rows it may hold.
    pub(crate) fn features(mut self, page: &FeaturePage, rows: Vec<Feature>) -> Vec<Feature> {
        let current = rows.into_iter().map(|row| self.features.remove(&row.id).unwrap_or(row));
        current.filter(|feature| page.status.is_none_or(|status| feature.status == status)).collect()
    }

    /// A page of questions: the committed rows, with what the clock changed taken out and put where it belongs
    /// now.
    pub(crate) fn questions(self, page: &QuestionPage, rows: Vec<Question>) -> Vec<Question> {
        let is_after = |question: &Question| {
            page.after.as_ref().is_none_or(|(at, id)| (question.created_at, &question.id) > (*at, id))
        };
        let mut items: Vec<Question> =
            rows.into_iter().filter(|question| !self.questions.contains_key(&question.id)).collect();
        let changed = self.questions.into_values();
        items.extend(
            changed.filter(|question| page.filter.admits(question.state.status()) && is_after(question)),
        );
        in_list_order(&mut items);
        items.truncate(page.limit);
        items
    }

    /// The last answers of a feature: those committed, and those that a policy gives by now.
    pub(crate) fn answers(self, mut committed: Vec<Question>, limit: usize) -> Vec<Question> {
        committed.extend(self.questions.into_values());
        committed.retain(|question| answered_at(question).is_some());
        committed.sort_by_key(|question| Reverse((answered_at(question), question.id.clone())));
        committed.truncate(limit);
        committed
    }
}
