//! The Canonical Prompt Spec: a protocol's questions as small executable steps, for tools that show two or
//! three options at a time (seed 003).
//!
//! [`check`] judges documents, [`compile`] makes them from question specs and native calls, and [`tasks`]
//! maps task tools at run time.

mod check;
mod compile;
mod graph;
mod sync;
pub mod tasks;

pub use check::{Findings, check, check_json};
pub use compile::{Compiled, Plan, StepCall, compile, inputs};

use crate::dialogue::wording::cut;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The next step of an answer that ends the protocol.
pub const END: &str = "end";

/// The most options that a step has.
pub const MAX_OPTIONS: usize = 3;

/// The strategy for source prompts with more options than a step has.
pub const TWO_STAGE_ROUTING: &str = "two_stage_routing";

/// A whole document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptSpec {
    /// The protocol's name.
    pub protocol: String,
    /// `x.y.z`.
    pub version: String,
    /// The Markdown file that the protocol is written in.
    pub source: String,
    /// What the protocol asks, and which steps stand for it.
    pub source_prompts: Vec<SourcePrompt>,
    /// The steps; the first one is where the protocol begins.
    pub steps: Vec<PromptStep>,
    /// How task tools are mapped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_sync: Option<Value>,
}

/// One question of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourcePrompt {
    /// Unique among the source prompts.
    pub id: String,
    /// Where in the protocol it is asked.
    pub source_phase: String,
    /// How many options it has there.
    pub source_options_count: usize,
    /// The steps that stand for it, the first one first.
    pub mapped_step_ids: Vec<String>,
    /// `two_stage_routing` when it does not fit into one step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow_strategy: Option<String>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptStep {
    /// Unique among the steps.
    pub id: String,
    /// `confirm`, `select_one`, `select_many`, `judge` or `terminate`.
    pub intent: String,
    /// What the user reads.
    pub question: String,
    /// Two or three.
    pub options: Vec<PromptOption>,
    /// `terminate`, `return_previous` or `defer`.
    pub on_escape: String,
    /// How many options may be chosen; only `select_many` needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_choices: Option<usize>,
    /// Where each answer leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Vec<Transition>>,
}

/// One option of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptOption {
    /// What is shown and answered.
    pub label: String,
    /// What choosing it means.
    pub description: String,
    /// What follows from choosing it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub implication: Option<String>,
}

/// Where an answer leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    /// The label of an option.
    pub answer: String,
    /// A step, or `end`.
    pub next_step: String,
}

/// The five intents.
pub const INTENTS: [&str; 5] = ["confirm", "select_one", "select_many", "judge", "terminate"];

/// What Esc may do.
pub const ESCAPES: [&str; 3] = ["terminate", "return_previous", "defer"];

impl PromptStep {
    /// The arguments of `request_user_input` for this step. Steps carry no header; the question's is given
    /// and cut to what the tool shows.
    pub fn request(&self, header: &str) -> Value {
        let options: Vec<Value> = self
            .options
            .iter()
            .map(|option| json!({"label": option.label, "description": option.description}))
            .collect();
        json!({"questions": [
            {"id": self.id, "header": cut(header, 12), "question": self.question, "options": options}
        ]})
    }
}
