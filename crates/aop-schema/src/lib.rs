//! JSON Schema checks for schemas that agents supply. Pure crates take these as functions.
//!
//! A schema that comes from a model is untrusted input, so three things are bounded here and nowhere else:
//! its size and nesting, where its references may lead (nowhere outside the document, and not to more work
//! than a budget), and what its patterns may cost (linear time, capped program size).

mod caps;
mod cost;

use jsonschema::{Draft, PatternOptions, Retrieve, Uri, ValidationError, Validator};
use serde_json::Value;

/// Reasons beyond this many help nobody, and a wide instance could produce thousands.
const MAX_REASONS: usize = 100;
/// A reason quotes the offending value; a long one is cut here.
const MAX_REASON_CHARS: usize = 400;
/// Bytes that one compiled pattern may take. Patterns people write stay far below it.
const PATTERN_SIZE_LIMIT: usize = 1 << 20;

/// `Ok` when `schema` is a usable JSON Schema 2020-12 document (boolean or object) within the caps; otherwise
/// every reason, each `path: message`.
pub fn check_schema(schema: &Value) -> Result<(), Vec<String>> {
    compile(schema).map(drop)
}

/// `Ok` when `instance` satisfies `schema`; otherwise every reason, each `path: message`. A schema that is not
/// usable is itself the reason.
pub fn check_instance(schema: &Value, instance: &Value) -> Result<(), Vec<String>> {
    let validator = compile(schema)?;
    caps::check_instance_depth(instance)
        .and_then(|()| cost::check_instance(schema, instance))
        .map_err(|reason| vec![reason])?;
    let mut errors = validator.iter_errors(instance);
    let mut reasons: Vec<String> = errors.by_ref().take(MAX_REASONS).map(|error| reason(&error)).collect();
    match errors.count() {
        0 if reasons.is_empty() => return Ok(()),
        0 => {}
        more => reasons.push(format!("(root): and {more} more")),
    }
    Err(reasons)
}

fn compile(schema: &Value) -> Result<Validator, Vec<String>> {
    caps::check_schema_shape(schema)?;
    let meta_errors: Vec<String> = jsonschema::draft202012::meta::validator()
        .iter_errors(schema)
        .take(MAX_REASONS)
        .map(|error| reason(&error))
        .collect();
    if !meta_errors.is_empty() {
        return Err(meta_errors);
    }
    cost::check_schema(schema)?;
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_retriever(NoRetrieval)
        .with_pattern_options(
            PatternOptions::regex().size_limit(PATTERN_SIZE_LIMIT).dfa_size_limit(PATTERN_SIZE_LIMIT),
        )
        .build(schema)
        .map_err(|error| vec![reason(&error)])
}

/// References stay inside the document. The crate is built without its HTTP and file resolvers; this says so
/// in words a schema's author understands.
struct NoRetrieval;

impl Retrieve for NoRetrieval {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("'{uri}' lies outside the schema, and references outside it are never followed").into())
    }
}

fn reason(error: &ValidationError<'_>) -> String {
    let path = error.instance_path().as_str();
    let path = if path.is_empty() { "(root)" } else { path };
    let text = format!("{path}: {error}");
    match text.char_indices().nth(MAX_REASON_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
