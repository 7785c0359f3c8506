//! What each tool says about itself: one sentence, and the JSON Schema of its arguments. It stands next to the
//! parser, and a test compares the two key by key, so a client is never told of an argument that is refused.

use super::access::Tool;
use super::parse::{POLICIES, QUESTION_TYPES, ROLES};
use crate::question::QuestionStatus;
use crate::status::Status;
use serde_json::{Map, Value, json};

/// One argument: its name, whether it has to be there, and its schema.
pub(super) type Argument = (&'static str, bool, Value);

impl Tool {
    /// What it does, for whoever chooses among the tools.
    pub fn summary(self) -> &'static str {
        match self {
            Tool::FeatureCreate => "Creates a feature; it starts in planning.",
            Tool::FeatureGet => "The record of one feature.",
            Tool::FeatureList => "The features of the project (a worker sees its own).",
            Tool::FeatureGetContext => {
                "What a turn should know of its feature: specification, state, open questions, recent answers."
            }
            Tool::FeatureTransition => {
                "Moves a feature to another status. Refused while a question is open that blocks it."
            }
            Tool::FeatureLogAppend => "Adds a line to the feature's log, decisions.md.",
            Tool::QuestionCreate => {
                "Asks a human and returns at once. To ask and wait for the answer, use ask_user."
            }
            Tool::QuestionList => "The questions of a feature, open ones unless another status is given.",
            Tool::QuestionAnswer => "Gives a human's answer to an open question. Never for workers.",
            Tool::QuestionWithdraw => "Takes an open question back; the feature goes on where it was.",
            Tool::QuestionReopen => "Asks an expired or withdrawn question again.",
        }
    }

    /// The schema of its arguments: a closed object.
    pub fn input_schema(self) -> Value {
        let mut arguments = self.arguments();
        if self.is_mutating() {
            arguments.push(("operation_id", true, operation_id()));
        }
        closed_object(arguments)
    }

    fn arguments(self) -> Vec<Argument> {
        let feature = || ("feature_id", true, feature_id());
        match self {
            Tool::FeatureCreate => vec![
                feature(),
                ("title", true, text("What it is called.")),
                ("spec", false, text("Its specification, a document.")),
            ],
            Tool::FeatureGet | Tool::FeatureGetContext => vec![feature()],
            Tool::FeatureList => vec![
                ("status", false, one_of(Status::ALL.iter().map(|status| status.as_str()))),
                ("all", false, flag("Also the features that lone questions brought along.")),
            ],
            Tool::FeatureTransition => {
                let to = Status::ALL.iter().filter(|status| **status != Status::AwaitingInput);
                vec![
                    feature(),
                    ("to", true, one_of(to.map(|status| status.as_str()))),
                    ("reason", false, text("Why.")),
                ]
            }
            Tool::FeatureLogAppend => vec![feature(), ("note", true, text("The line."))],
            Tool::QuestionCreate => question_create(feature()),
            Tool::QuestionList => {
                let names = QuestionStatus::ALL.iter().map(|status| status.as_str());
                vec![feature(), ("status", false, one_of(names.chain(["all"])))]
            }
            Tool::QuestionAnswer => vec![
                feature(),
                ("question_id", true, question_id()),
                ("answer", true, json!({"description": "Text, an object, or a list for several choices."})),
                ("answered_by", true, text("Who answers.")),
            ],
            Tool::QuestionWithdraw | Tool::QuestionReopen => vec![
                feature(),
                ("question_id", true, question_id()),
                ("note", false, text("Why; shown to the asker.")),
            ],
        }
    }
}

fn question_create(feature: Argument) -> Vec<Argument> {
    vec![
        feature,
        ("role", true, one_of(ROLES.split(", "))),
        ("session_id", true, text("The asker's session.")),
        ("question_type", true, question_type()),
        ("prompt", true, text("The question in words.")),
        ("details", false, object("Anything else that should be shown.")),
        ("expected_answer", false, expected_answer()),
        ("blocking", false, blocking()),
        ("spec", false, spec()),
        ("interaction", false, object("The engine's own payload.")),
        ("default_decision_policy", false, one_of(POLICIES.split(", "))),
        (
            "timeout_ms",
            false,
            json!({"type": "integer", "minimum": 0, "description": "Less time than the policy gives."}),
        ),
    ]
}

/// The schema of every answer: the envelope.
pub fn envelope_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "ok": {"type": "boolean", "description": "Whether data (true) or error (false) is there."},
            "data": {"type": "object", "description": "What came of it."},
            "error": {
                "type": "object",
                "properties": {
                    "code": {"type": "string", "description": "`aop explain CODE` says more."},
                    "message": {"type": "string"},
                    "details": {
                        "type": "object",
                        "properties": {
                            "retryable": {"type": "boolean"},
                            "requires_human": {"type": "boolean"},
                            "hint": {"type": "string", "description": "What to do next."},
                        },
                        "required": ["retryable", "requires_human", "hint"],
                    },
                },
                "required": ["code", "message", "details"],
                "additionalProperties": false,
            },
        },
        "required": ["ok"],
        "additionalProperties": false,
    })
}

/// A closed object with these members.
pub(super) fn closed_object(arguments: Vec<Argument>) -> Value {
    let required: Vec<&str> = arguments.iter().filter(|(_, must, _)| *must).map(|(name, ..)| *name).collect();
    let properties: Map<String, Value> =
        arguments.into_iter().map(|(name, _, schema)| (name.to_owned(), schema)).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

pub(super) fn text(description: &str) -> Value {
    json!({"type": "string", "minLength": 1, "description": description})
}

pub(super) fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

pub(super) fn object(description: &str) -> Value {
    json!({"type": "object", "description": description})
}

pub(super) fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> Value {
    json!({"type": "string", "enum": names.collect::<Vec<_>>()})
}

pub(super) fn question_type() -> Value {
    one_of(QUESTION_TYPES.split(", "))
}

pub(super) fn question_id() -> Value {
    json!({"type": "string", "pattern": "^q_[0-7][0-9A-HJKMNP-TV-Z]{25}$"})
}

pub(super) fn blocking() -> Value {
    flag("Whether the feature stops until it is answered; it does unless this is false.")
}

/// A form, short enough to be sent with every request of a model. The validator says more.
pub(super) fn spec() -> Value {
    let option = json!({
        "type": "object",
        "properties": {"label": {"type": "string"}, "description": {"type": "string"}},
        "required": ["label", "description"],
    });
    let question = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "pattern": "^[a-z][a-z0-9]*(_[a-z0-9]+)*$"},
            "header": {"type": "string", "description": "A word or two."},
            "question": {"type": "string"},
            "kind": one_of(["single_choice", "multi_choice", "free_text"].into_iter()),
            "required": {"type": "boolean"},
            "options": {"type": "array", "items": option, "description": "For the choice kinds."},
            "allow_other": flag("Whether text outside the options is an answer too."),
            "secret": flag("Whether the answer is kept out of records and logs."),
        },
        "required": ["id", "header", "question", "kind", "required"],
    });
    json!({
        "type": "object",
        "description": "A form with several questions (a QuestionSpec).",
        "properties": {
            "version": {"type": "integer", "minimum": 1},
            "topic": {"type": "string"},
            "questions": {"type": "array", "items": question, "minItems": 1},
        },
        "required": ["version", "topic", "questions"],
    })
}

fn feature_id() -> Value {
    json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"})
}

fn operation_id() -> Value {
    json!({"type": "string", "pattern": "^[!-~]{1,128}$",
        "description": "Names this operation forever: the same id and arguments again return the first result and change nothing."})
}

fn expected_answer() -> Value {
    let kinds = ["single_choice", "multi_choice", "free_text", "json", "form"];
    json!({
        "type": "object",
        "properties": {
            "kind": one_of(kinds.into_iter()),
            "choices": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": true},
            "allow_other": flag("Whether text outside the choices is an answer too."),
            "schema": object("JSON Schema (2020-12) of the answer."),
            "default": {"description": "What policy may apply when nobody answers."},
        },
        "required": ["kind"],
        "additionalProperties": false,
    })
}
