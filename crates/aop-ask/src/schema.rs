//! JSON Schemas of the three documents, for editors and other programs. They are committed under `schemas/`
//! and a test keeps the files equal to these functions.
//!
//! A schema says less than the validator: uniqueness across objects, defaults that are labels and real
//! calendar days are beyond it. Whatever it refuses, the validator refuses too.

use crate::prompts::{ESCAPES, INTENTS, TWO_STAGE_ROUTING};
use crate::spec::{Kind, RESERVED_LABELS};
use serde_json::{Value, json};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Every schema with the name of its file.
pub fn all() -> [(&'static str, Value); 3] {
    [
        ("question-spec.schema.json", question_spec()),
        ("answer-spec.schema.json", answer_spec()),
        ("prompt-spec.schema.json", prompt_spec()),
    ]
}

/// A text that is not blank.
fn text() -> Value {
    json!({"type": "string", "pattern": "\\S"})
}

/// A question spec.
pub fn question_spec() -> Value {
    json!({
        "$schema": DIALECT,
        "title": "QuestionSpec",
        "description": "Questions to a human, written once and independent of the tool that asks them.",
        "type": "object",
        "required": ["version", "topic", "questions"],
        "additionalProperties": false,
        "patternProperties": {"^_": {}},
        "properties": {
            "version": {"type": "integer", "minimum": 1},
            "topic": text(),
            "questions": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/question"}},
        },
        "$defs": {"question": question(), "option": option()},
    })
}

fn question() -> Value {
    let choices = [Kind::SingleChoice.as_str(), Kind::MultiChoice.as_str()];
    json!({
        "type": "object",
        "required": ["id", "header", "question", "kind", "required"],
        "additionalProperties": false,
        "patternProperties": {"^_": {}},
        "properties": {
            "id": {"type": "string", "pattern": "^[a-z][a-z0-9]*(_[a-z0-9]+)*$"},
            "header": text(),
            "question": text(),
            "kind": {"enum": Kind::NAMES.map(|(name, _)| name)},
            "required": {"type": "boolean"},
            "options": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/option"}},
            "allow_other": {"type": "boolean"},
            "default": {"oneOf": [
                {"type": "string"},
                {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"type": "string"}},
            ]},
            "secret": {"type": "boolean"},
        },
        "allOf": [
            {
                "if": {"properties": {"kind": {"enum": choices}}, "required": ["kind"]},
                "then": {"required": ["options"]},
                "else": {"properties": {"options": false, "allow_other": false, "default": false}},
            },
            {
                "if": {"properties": {"kind": {"const": choices[0]}}, "required": ["kind"]},
                "then": {"properties": {"default": {"type": "string"}}},
            },
            {
                "if": {"properties": {"kind": {"const": choices[1]}}, "required": ["kind"]},
                "then": {"properties": {"default": {"type": "array"}}},
            },
        ],
    })
}

fn option() -> Value {
    json!({
        "type": "object",
        "required": ["label", "description"],
        "additionalProperties": false,
        "patternProperties": {"^_": {}},
        "properties": {
            "label": {"type": "string", "pattern": "\\S", "not": {"enum": RESERVED_LABELS}},
            "description": text(),
            "preview": {"type": "string"},
            "cluster": text(),
        },
    })
}

/// An answer record.
pub fn answer_spec() -> Value {
    json!({
        "$schema": DIALECT,
        "title": "AnswerSpec",
        "description": "The answers to a question spec, with who gave them and when.",
        "type": "object",
        "required": ["version", "topic", "answers", "answered_at", "answered_by"],
        "additionalProperties": false,
        "patternProperties": {"^_": {}},
        "properties": {
            "version": {"type": "integer", "minimum": 1},
            "topic": text(),
            "answers": {
                "type": "object",
                "propertyNames": {"pattern": "^[a-z][a-z0-9]*(_[a-z0-9]+)*$"},
                "additionalProperties": {"oneOf": [
                    text(),
                    {"type": "array", "minItems": 1, "uniqueItems": true, "items": text()},
                ]},
            },
            "answered_at": {
                "type": "string",
                "format": "date-time",
                "pattern": "^\\d{4}-\\d{2}-\\d{2}[Tt]\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,9})?([Zz]|[+-]\\d{2}:\\d{2})$",
            },
            "answered_by": text(),
        },
    })
}

/// A Canonical Prompt Spec.
pub fn prompt_spec() -> Value {
    json!({
        "$schema": DIALECT,
        "title": "PromptSpec",
        "description": "A protocol's questions as executable steps of two or three options.",
        "type": "object",
        "required": ["protocol", "version", "source", "source_prompts", "steps"],
        "additionalProperties": false,
        "properties": {
            "protocol": {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"},
            "version": {"type": "string", "pattern": "^\\d+\\.\\d+\\.\\d+$"},
            "source": {"type": "string", "pattern": ".\\.md$"},
            "source_prompts": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/source_prompt"}},
            "steps": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/step"}},
            "task_sync": {"$ref": "#/$defs/task_sync"},
        },
        "$defs": {"source_prompt": source_prompt(), "step": step(), "task_sync": task_sync()},
    })
}

fn source_prompt() -> Value {
    let strategy = |name: &str| json!({"properties": {"overflow_strategy": {"const": name}}, "required": ["overflow_strategy"]});
    json!({
        "type": "object",
        "required": ["id", "source_phase", "source_options_count", "mapped_step_ids"],
        "additionalProperties": false,
        "properties": {
            "id": text(),
            "source_phase": text(),
            "source_options_count": {"type": "integer", "minimum": 2},
            "mapped_step_ids": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"type": "string"}},
            "overflow_strategy": {"enum": [TWO_STAGE_ROUTING, "none"]},
        },
        "allOf": [
            {
                "if": {"properties": {"source_options_count": {"minimum": 4}}, "required": ["source_options_count"]},
                "then": strategy(TWO_STAGE_ROUTING),
            },
            {
                "if": strategy(TWO_STAGE_ROUTING),
                "then": {"properties": {"mapped_step_ids": {"minItems": 2}}},
            },
        ],
    })
}

fn step() -> Value {
    let many = json!({"properties": {"intent": {"const": "select_many"}}, "required": ["intent"]});
    json!({
        "type": "object",
        "required": ["id", "intent", "question", "options", "on_escape"],
        "additionalProperties": false,
        "properties": {
            "id": {"type": "string", "pattern": "\\S", "not": {"const": "end"}},
            "intent": {"enum": INTENTS},
            "question": text(),
            "options": {"type": "array", "minItems": 2, "maxItems": 3, "items": {
                "type": "object",
                "required": ["label", "description"],
                "additionalProperties": false,
                "properties": {"label": text(), "description": text(), "implication": {"type": "string"}},
            }},
            "on_escape": {"enum": ESCAPES},
            "max_choices": {"type": "integer", "minimum": 1, "maximum": 3},
            "next": {"type": "array", "items": {
                "type": "object",
                "required": ["answer", "next_step"],
                "additionalProperties": false,
                "properties": {"answer": text(), "next_step": text()},
            }},
        },
        "allOf": [{
            "if": many,
            "then": {"required": ["max_choices"]},
            "else": {"properties": {"max_choices": {"const": 1}}},
        }],
    })
}

fn task_sync() -> Value {
    let status = json!({"enum": ["pending", "in_progress", "completed"]});
    json!({
        "type": "object",
        "required": ["source_tool", "target_tool", "create", "transitions", "single_in_progress", "fallback_mode"],
        "additionalProperties": false,
        "properties": {
            "source_tool": {"const": "TaskCreate"},
            "target_tool": {"const": "update_plan"},
            "create": {
                "type": "object",
                "required": ["emit", "default_status"],
                "additionalProperties": false,
                "properties": {"emit": {"const": true}, "default_status": {"const": "pending"}},
            },
            "transitions": {"type": "array", "minItems": 2, "uniqueItems": true, "items": {
                "type": "object",
                "required": ["from", "to", "emit_update_plan"],
                "additionalProperties": false,
                "properties": {"from": status, "to": status, "emit_update_plan": {"type": "boolean"}},
            }},
            "single_in_progress": {"const": true},
            "fallback_mode": {"const": "internal_state_only"},
        },
    })
}
