//! Creating a feature, and writing into its decision log.

use super::{Draft, Outcome};
use crate::code::ErrorCode;
use crate::envelope::Refusal;
use crate::event::Event;
use crate::ids::FeatureId;
use crate::status::Status;
use serde_json::json;

/// `feature.create`
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the arguments of the contract's table")]
pub struct CreateFeature {
    pub feature_id: FeatureId,
    pub title: String,
    pub spec: Option<String>,
}

impl CreateFeature {
    pub(super) fn apply(&self, mut draft: Draft<'_>) -> Result<Outcome, Refusal> {
        if let Some(existing) = &draft.state.feature {
            return Err(Refusal::new(
                ErrorCode::FeatureAlreadyExists,
                format!("feature '{}' exists already ({})", existing.id, existing.status),
            )
            .fact("feature_id", &existing.id)
            .fact("status", existing.status));
        }
        draft.emit(Event::FeatureCreated {
            title: self.title.clone(),
            spec: self.spec.clone(),
            adhoc: false,
        });
        let data = json!({"feature_id": self.feature_id, "status": Status::Planning});
        Ok(draft.finish(&data))
    }
}

/// `feature.log_append`
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the arguments of the contract's table")]
pub struct AppendLog {
    pub feature_id: FeatureId,
    pub note: String,
}

impl AppendLog {
    pub(super) fn apply(&self, mut draft: Draft<'_>) -> Result<Outcome, Refusal> {
        draft.feature()?;
        draft.emit(Event::Noted { note: self.note.clone() });
        Ok(draft.finish(&json!({})))
    }
}
