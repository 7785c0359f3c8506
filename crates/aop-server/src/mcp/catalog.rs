//! The tools as a client lists them: names, sentences, schemas and hints.

use aop_kernel::Refusal;
use aop_kernel::ids::quoted;
use aop_kernel::tools::{
    ASK_HUMAN, ASK_USER, AWAIT_ANSWER, AskUser, Tool, await_answer_schema, envelope_schema,
};
use rmcp::model::{JsonObject, MetaObject, Tool as Listed, ToolAnnotations};
use serde_json::Value;
use std::sync::Arc;

/// What a client tells its model about the server as a whole.
pub(super) const INSTRUCTIONS: &str = "aop asks humans durably. When you need a decision, a permission or a \
fact that only a human has, call ask_user (or ask_human, where it is called that); when it returns pending, call await_answer with its question_id. \
Never guess an answer that was asked for. Every mutating feature.* tool takes an \
operation_id of your choice; the same id again repeats nothing and returns the first result.";

const ASKS: &str = "Asks a human a question and waits up to a minute for the answer. The question is kept \
until somebody answers, also when you or this server stop. Returns data {status, question_id, answer?, text}: \
read text, it says what happened and what to do. With status pending, call await_answer; do not ask again.";

const AWAITS: &str = "Goes on waiting for the answer to a question that ask_user returned as pending. Can be \
called any number of times, also later or in another session.";

/// How Gemini CLI introduces itself.
const GEMINI: &str = "gemini-cli";

/// All of them, for a client of this name.
pub(super) fn tools(client: &str) -> Vec<Listed> {
    let output = object(envelope_schema());
    let asks = if client.starts_with(GEMINI) { ASK_HUMAN } else { ASK_USER };
    let contract = Tool::ALL.iter().map(|tool| contract(*tool, &output));
    let asking = [
        asking(asks, ASKS, AskUser::input_schema(), &output),
        asking(AWAIT_ANSWER, AWAITS, await_answer_schema(), &output),
    ];
    asking.into_iter().chain(contract).collect()
}

fn names() -> Vec<&'static str> {
    let contract = Tool::ALL.iter().map(|tool| tool.name());
    [ASK_USER, AWAIT_ANSWER].into_iter().chain(contract).collect()
}

/// Whether there is such a tool.
pub(super) fn knows(name: &str) -> bool {
    name == ASK_HUMAN || names().contains(&name)
}

/// For a name that is none of them.
pub(super) fn unknown(name: &str) -> Refusal {
    Refusal::invalid_argument(format!("there is no tool {}", quoted(name)))
        .hint(format!("the tools are {}", names().join(", ")))
        .fact("tools", names())
}

/// The two tools a model has to have at hand: a client that hides tools until they are searched for is told to
/// show these. To the client they only read, so that no second human has to permit asking the first.
fn asking(name: &'static str, summary: &'static str, input: Value, output: &Arc<JsonObject>) -> Listed {
    let hints = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
    let mut meta = MetaObject::new();
    meta.insert("anthropic/alwaysLoad".into(), Value::Bool(true));
    Listed::new(name, summary, object(input))
        .with_raw_output_schema(Arc::clone(output))
        .with_annotations(hints)
        .with_meta(meta)
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
