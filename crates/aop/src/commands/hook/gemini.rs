//! `aop hook gemini`: stops the agent after it has asked. What cannot be read stops nothing; the driver then ends the
//! process by what it hears.

use aop_engine::gemini::after_tool;
use serde_json::Value;
use std::io::Read;

/// Far more than any tool's result in a hook's input.
const MAX_INPUT: u64 = 64 << 20;

pub(super) fn answer() -> Value {
    let mut input = Vec::new();
    // A pipe that breaks is read as far as it goes, and what is not JSON then is no question.
    let _ = std::io::stdin().lock().take(MAX_INPUT).read_to_end(&mut input);
    after_tool(&serde_json::from_slice(&input).unwrap_or_default())
}
