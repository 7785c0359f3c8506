//! What somebody most likely meant who mistyped a name.

use crate::cli::Global;
use crate::project::Project;
use aop_kernel::tools::Tool;
use aop_kernel::{ErrorCode, Refusal};
use serde_json::json;

/// The name that is nearest to this one, when one is near.
pub(crate) fn nearest<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let alike = |known: &&str| strsim::jaro(&known.to_lowercase(), &wanted);
    all.max_by(|a, b| alike(a).total_cmp(&alike(b))).filter(|known| alike(known) > 0.8)
}

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
    let Some(near) = nearest(typed, ids) else { return refusal };
    let hint = format!("did you mean '{near}'? `aop features list --all` lists all of them");
    refusal.hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_is_named() {
        let known = ["shop", "checkout-page", "login"];
        for (typed, meant) in
            [("shp", Some("shop")), ("Check-out-page", Some("checkout-page")), ("tax", None)]
        {
            assert_eq!(nearest(typed, known.into_iter()), meant, "{typed}");
        }
        assert_eq!(nearest("shop", std::iter::empty()), None);
    }
}
