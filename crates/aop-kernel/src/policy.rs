//! The policy that governs questions: whether people can be asked, how long a question waits, and what
//! happens when nobody answers. Every key is optional; what is not given keeps its default.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `policy.execution.human_input` of `aop.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HumanInput {
    /// False: nobody can be asked.
    pub enabled: bool,
    /// How long a question waits, in milliseconds; 0 is for ever.
    pub timeout_ms: u64,
    /// What a strict timeout does to the feature.
    pub on_timeout: OnTimeout,
    /// Whether a timeout stops the feature (true) or is decided by the question's own policy (false).
    pub strict: bool,
    /// How many questions a feature may have open; at most one of them blocks, whatever this says.
    pub max_open_questions_per_feature: u32,
    /// How many answered questions a turn is shown.
    pub context_answer_history_limit: u32,
}

impl Default for HumanInput {
    fn default() -> Self {
        HumanInput {
            enabled: true,
            timeout_ms: 900_000,
            on_timeout: OnTimeout::BlockFeature,
            strict: true,
            max_open_questions_per_feature: 1,
            context_answer_history_limit: 3,
        }
    }
}

/// A question may ask for less time than the policy gives, but never for less than this.
const SHORTEST_TIMEOUT_MS: u64 = 1_000;

impl HumanInput {
    /// How long a question that asks for `wanted` may wait: a question can shorten the policy's time down to
    /// one second, never lengthen it. `None` is for ever.
    pub fn timeout_for(&self, wanted: Option<u64>) -> Option<u64> {
        let limit = (self.timeout_ms > 0).then_some(self.timeout_ms.max(SHORTEST_TIMEOUT_MS));
        let wanted = wanted.filter(|ms| *ms > 0).map(|ms| ms.max(SHORTEST_TIMEOUT_MS));
        match (limit, wanted) {
            (Some(limit), Some(wanted)) => Some(limit.min(wanted)),
            (limit, wanted) => wanted.or(limit),
        }
    }

    /// When a question asked now expires.
    pub fn deadline(&self, now: Timestamp, wanted: Option<u64>) -> Option<Timestamp> {
        self.timeout_for(wanted).map(|ms| now.plus_millis(ms))
    }
}

/// What a strict timeout does to the feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// To `blocked`; a human decides how to go on.
    BlockFeature,
    /// To `failed`.
    FailFeature,
}

/// Who decides when nobody answered and the timeout is not strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionPolicy {
    /// The engine decides, and says that it did.
    EngineJudgement,
    /// The declared default applies, marked as policy.
    UseDefault,
    /// Not permitted.
    Decline,
}

/// A check of a JSON document against a JSON Schema, or of a schema itself, as the reasons why not.
pub type SchemaVerdict = Result<(), Vec<String>>;

/// What a command is judged by besides the state: the project's policy, and the JSON Schema checks, which
/// come in as functions because the kernel has no schema engine of its own.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The project's policy.
    pub human_input: HumanInput,
    /// Is this a usable JSON Schema?
    pub check_schema: fn(&Value) -> SchemaVerdict,
    /// Does the second satisfy the first?
    pub check_instance: fn(&Value, &Value) -> SchemaVerdict,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_overrides_keep_the_other_defaults() {
        let policy: HumanInput = serde_json::from_str(r#"{"timeout_ms": 5}"#).unwrap();
        assert_eq!(policy, HumanInput { timeout_ms: 5, ..HumanInput::default() });
    }

    #[test]
    fn a_question_may_ask_for_less_time_but_not_for_more() {
        let policy = HumanInput::default();
        assert_eq!(policy.timeout_for(None), Some(900_000));
        assert_eq!(policy.timeout_for(Some(5_000)), Some(5_000));
        assert_eq!(policy.timeout_for(Some(10_000_000)), Some(900_000));
        assert_eq!(policy.timeout_for(Some(0)), Some(900_000), "0 asks for ever, which is more");
    }

    #[test]
    fn no_question_waits_less_than_a_second() {
        assert_eq!(HumanInput::default().timeout_for(Some(1)), Some(1_000));
    }

    #[test]
    fn a_policy_of_zero_waits_for_ever_unless_the_question_asks_for_less() {
        let policy = HumanInput { timeout_ms: 0, ..HumanInput::default() };
        assert_eq!(policy.timeout_for(None), None);
        assert_eq!(policy.timeout_for(Some(60_000)), Some(60_000));
    }
}
