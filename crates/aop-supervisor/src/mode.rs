//! Whether people may be asked, feature by feature: a feature may differ from its run, for good or until it is told
//! otherwise.

use aop_kernel::Refusal;
use aop_kernel::ids::{FeatureId, OperationId};
use aop_store::{Expect, Shelf, Store};
use aop_turn::Mode;
use serde_json::{Value, json};

/// Sets the execution mode of a feature; `None` leaves it to the run again. Its next turn begins with it. One operation
/// sets it once, whatever was set since.
pub async fn set_mode(
    store: &dyn Store,
    feature: &FeatureId,
    mode: Option<Mode>,
    operation: &OperationId,
) -> Result<(), Refusal> {
    loop {
        let known = store.document(Shelf::Results, key(feature)).await?;
        let mut done = operations(known.as_ref());
        if done.contains(&json!(operation)) {
            return Ok(());
        }
        done.push(json!(operation));
        let value = json!({"mode": mode.map(Mode::as_str), "operations": done});
        // Whoever has set it meanwhile is not undone unseen.
        let expected = known.map_or(Expect::Absent, Expect::Value);
        if store.place(Shelf::Results, key(feature), Some(value), expected).await? {
            return Ok(());
        }
    }
}

/// Whether this operation has set the execution mode of a feature.
pub async fn mode_was_set(
    store: &dyn Store,
    feature: &FeatureId,
    operation: &OperationId,
) -> Result<bool, Refusal> {
    let known = store.document(Shelf::Results, key(feature)).await?;
    Ok(operations(known.as_ref()).contains(&json!(operation)))
}

fn operations(known: Option<&Value>) -> Vec<Value> {
    known.and_then(|known| known["operations"].as_array()).cloned().unwrap_or_default()
}

/// The execution mode that was set for a feature.
pub async fn mode_of(store: &dyn Store, feature: &FeatureId) -> Result<Option<Mode>, Refusal> {
    let value = store.document(Shelf::Results, key(feature)).await?;
    // Stores of earlier versions have the mode alone.
    let mode = value.as_ref().and_then(|value| value.as_str().or(value["mode"].as_str()));
    Ok(mode.and_then(Mode::parse))
}

fn key(feature: &FeatureId) -> String {
    format!("{feature}/execution_mode")
}
