//! A native ask as the host wants it.

use aop_turn::ask::{from_native, question_arguments};
use aop_turn::native::NativeAsk;
use serde_json::Value;

/// The arguments of `feature.question_create` for calls that wait together, without what only the host knows; or why
/// nobody can be asked this.
pub fn arguments(asks: &[&NativeAsk], attempt: u32) -> Result<Value, String> {
    from_native(asks, attempt).map(|ask| Value::Object(question_arguments(&ask)))
}
