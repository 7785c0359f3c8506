//! `feature.get_context`: what a turn is told about its feature and about what people said.

use crate::feature::{Feature, FeatureRecord};
use crate::question::Question;
use crate::status::Held;
use serde::Serialize;

/// The context of one feature.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the contract documents the fields of the context")]
pub struct Context {
    pub feature_id: crate::ids::FeatureId,
    pub title: String,
    pub spec: Option<String>,
    pub state: FeatureRecord,
    pub human_input: HumanInputContext,
}

/// What people were asked and what they said.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the contract documents the fields of the context")]
pub struct HumanInputContext {
    pub open_questions: Vec<Question>,
    pub latest_answer: Option<Question>,
    pub recent_answers: Vec<Question>,
}

impl Context {
    /// Puts it together. `recent_answers` come newest first and are at most as many as policy admits.
    pub fn new(
        feature: &Feature,
        spec: Option<String>,
        held: Held,
        open_questions: Vec<Question>,
        recent_answers: Vec<Question>,
    ) -> Self {
        Context {
            feature_id: feature.id.clone(),
            title: feature.title.clone(),
            spec,
            state: feature.record(held),
            human_input: HumanInputContext {
                open_questions,
                latest_answer: recent_answers.first().cloned(),
                recent_answers,
            },
        }
    }
}
