//! Whether people may be asked, feature by feature: a feature may differ from its run, for good or until it is told
//! otherwise.

use aop_kernel::Refusal;
use aop_kernel::ids::FeatureId;
use aop_store::{Expect, Shelf, Store};
use aop_turn::Mode;
use serde_json::json;

/// Sets the execution mode of a feature; `None` leaves it to the run again. Its next turn begins with it.
pub async fn set_mode(store: &dyn Store, feature: &FeatureId, mode: Option<Mode>) -> Result<(), Refusal> {
    let value = mode.map(|mode| json!(mode.as_str()));
    store.place(Shelf::Results, key(feature), value, Expect::Anything).await?;
    Ok(())
}

/// The execution mode that was set for a feature.
pub(crate) async fn mode_of(store: &dyn Store, feature: &FeatureId) -> Result<Option<Mode>, Refusal> {
    let value = store.document(Shelf::Results, key(feature)).await?;
    Ok(value.as_ref().and_then(serde_json::Value::as_str).and_then(Mode::parse))
}

fn key(feature: &FeatureId) -> String {
    format!("{feature}/execution_mode")
}
