//! What somebody most likely meant who mistyped a name.

use crate::cli::Global;
use crate::project::Project;
use aop_ask::violation::nearest;
use aop_kernel::tools::Tool;
use aop_kernel::{ErrorCode, Refusal};
use serde_json::json;

/// A refusal for an unknown feature, with the id that is nearest to the one that was typed. Whoever may not see a feature
/// is not told of it.
pub(crate) fn with_feature(global: &Global, refusal: Refusal) -> Refusal {
    let typed = refusal.facts.get("feature_id").and_then(|id| id.as_str());
    let Some(typed) = typed.filter(|_| refusal.code == ErrorCode::FeatureNotFound) else { return refusal };
    let listed = Project::find(global)
        .and_then(Project::open)
        .and_then(|session| session.call(Tool::FeatureList, &json!({})));
    // What cannot be read now was read a moment ago, and the refusal is true without it.
    let Ok(listed) = listed else { return refusal };
    let items = listed.data()["items"].take();
    let ids = items.as_array().into_iter().flatten().filter_map(|item| item["feature_id"].as_str());
    let Some(near) = nearest(typed, &ids.collect::<Vec<_>>()) else { return refusal };
    let hint = format!("did you mean '{near}'? `aop features list --all` lists all of them");
    refusal.hint(hint)
}
