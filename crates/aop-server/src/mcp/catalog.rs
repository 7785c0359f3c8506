//! The tools as a client lists them: names, sentences, schemas and hints.

use aop_kernel::tools::{Tool, envelope_schema};
use rmcp::model::{JsonObject, Tool as Listed, ToolAnnotations};
use serde_json::Value;
use std::sync::Arc;

/// What a client tells its model about the server as a whole.
pub(super) const INSTRUCTIONS: &str = "aop keeps questions to humans durably. Every mutating tool takes an \
operation_id of your choice; the same id again repeats nothing and returns the first result.";

/// All of them.
pub(super) fn tools() -> Vec<Listed> {
    let output = object(envelope_schema());
    Tool::ALL.iter().map(|tool| contract(*tool, &output)).collect()
}

/// A tool of the contract. Everything it does can be repeated under the same operation id, and nothing is ever
/// deleted or leaves the project.
fn contract(tool: Tool, output: &Arc<JsonObject>) -> Listed {
    let hints = ToolAnnotations::new()
        .read_only(!tool.is_mutating())
        .destructive(false)
        .idempotent(true)
        .open_world(false);
    Listed::new(tool.name(), tool.summary(), object(tool.input_schema()))
        .with_raw_output_schema(Arc::clone(output))
        .with_annotations(hints)
}

/// Schemas are objects by construction; anything else would admit anything.
fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(map) => Arc::new(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Arc::default()
        }
    }
}
