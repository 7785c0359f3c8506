//! A feature that has as many questions open as it may: whoever looks again finds the same, so a person makes room.

use aop_kernel::Refusal;
use aop_kernel::ids::FeatureId;
use aop_kernel::lifecycle::MOST_OPEN;

/// Whether a question was refused because no more may be open.
pub(crate) fn is_full(refusal: &Refusal) -> bool {
    refusal.facts.contains_key(MOST_OPEN)
}

/// What stops the feature then, with the ways to go on.
pub(crate) fn full(refusal: Refusal, feature: &FeatureId) -> Refusal {
    let ways = format!(
        "{}, or raise {MOST_OPEN} in aop.yaml; then `aop retry --feature-id {feature}`",
        refusal.hint
    );
    refusal.hint(ways)
}
