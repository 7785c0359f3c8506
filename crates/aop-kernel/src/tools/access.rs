//! Which tools there are, and who may use them.

use crate::code::ErrorCode;
use crate::envelope::Refusal;
use crate::ids::FeatureId;
use crate::role::{Caller, Role};

/// A tool of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tool {
    /// `feature.create`
    FeatureCreate,
    /// `feature.get`
    FeatureGet,
    /// `feature.list`
    FeatureList,
    /// `feature.get_context`
    FeatureGetContext,
    /// `feature.transition`
    FeatureTransition,
    /// `feature.log_append`
    FeatureLogAppend,
    /// `feature.question_create`
    QuestionCreate,
    /// `feature.question_list`
    QuestionList,
    /// `feature.question_answer`
    QuestionAnswer,
    /// `feature.question_withdraw`
    QuestionWithdraw,
    /// `feature.question_reopen`
    QuestionReopen,
}

/// How far a role may use a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Not at all.
    Never,
    /// For the caller's own feature.
    Own,
    /// For every feature.
    Any,
}

impl Tool {
    /// Every tool.
    pub const ALL: &[Tool] = &[
        Tool::FeatureCreate,
        Tool::FeatureGet,
        Tool::FeatureList,
        Tool::FeatureGetContext,
        Tool::FeatureTransition,
        Tool::FeatureLogAppend,
        Tool::QuestionCreate,
        Tool::QuestionList,
        Tool::QuestionAnswer,
        Tool::QuestionWithdraw,
        Tool::QuestionReopen,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Tool::FeatureCreate => "feature.create",
            Tool::FeatureGet => "feature.get",
            Tool::FeatureList => "feature.list",
            Tool::FeatureGetContext => "feature.get_context",
            Tool::FeatureTransition => "feature.transition",
            Tool::FeatureLogAppend => "feature.log_append",
            Tool::QuestionCreate => "feature.question_create",
            Tool::QuestionList => "feature.question_list",
            Tool::QuestionAnswer => "feature.question_answer",
            Tool::QuestionWithdraw => "feature.question_withdraw",
            Tool::QuestionReopen => "feature.question_reopen",
        }
    }

    /// Finds a tool by its name; the refusal lists the names.
    pub fn find(name: &str) -> Result<Tool, Refusal> {
        Tool::ALL.iter().copied().find(|tool| tool.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Tool::ALL.iter().map(|tool| tool.name()).collect();
            Refusal::invalid_argument(format!("there is no tool {}", crate::ids::quoted(name)))
                .hint(format!("the tools are {}", names.join(", ")))
                .fact("tools", names)
        })
    }

    /// Whether it changes anything, and so needs an `operation_id`.
    pub fn is_mutating(self) -> bool {
        match self {
            Tool::FeatureGet | Tool::FeatureList | Tool::FeatureGetContext | Tool::QuestionList => false,
            Tool::FeatureCreate
            | Tool::FeatureTransition
            | Tool::FeatureLogAppend
            | Tool::QuestionCreate
            | Tool::QuestionAnswer
            | Tool::QuestionWithdraw
            | Tool::QuestionReopen => true,
        }
    }

    /// The role table of the contract.
    pub fn access(self, role: Role) -> Access {
        match (self, role) {
            (_, Role::Human) => Access::Any,
            (Tool::QuestionReopen, Role::Orchestrator) => Access::Never,
            (_, Role::Orchestrator) => Access::Any,
            (
                Tool::FeatureCreate | Tool::FeatureTransition | Tool::QuestionAnswer | Tool::QuestionReopen,
                Role::Planner | Role::Builder | Role::Qa,
            ) => Access::Never,
            (
                Tool::FeatureGet
                | Tool::FeatureList
                | Tool::FeatureGetContext
                | Tool::FeatureLogAppend
                | Tool::QuestionCreate
                | Tool::QuestionList
                | Tool::QuestionWithdraw,
                Role::Planner | Role::Builder | Role::Qa,
            ) => Access::Own,
        }
    }

    /// Refuses a role that may not use the tool at all.
    pub(super) fn authorise(self, caller: &Caller) -> Result<(), Refusal> {
        match self.access(caller.role) {
            Access::Own | Access::Any => Ok(()),
            Access::Never => Err(Refusal::new(
                ErrorCode::ForbiddenForRole,
                format!("{} may not call {}", caller.role, self.name()),
            )
            .fact("role", caller.role)
            .fact("tool", self.name())),
        }
    }

    /// Refuses a worker that reaches for a feature that is not its own.
    pub(super) fn authorise_feature(self, caller: &Caller, feature: &FeatureId) -> Result<(), Refusal> {
        if caller.owns(feature) {
            return Ok(());
        }
        Err(Refusal::new(
            ErrorCode::ForbiddenForRole,
            format!("{} may not call {} for feature '{feature}'", caller.role, self.name()),
        )
        .hint("a worker acts only for the feature it was started for")
        .fact("role", caller.role)
        .fact("feature_id", feature))
    }
}
