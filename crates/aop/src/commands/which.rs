//! Options that several commands share: which question, which feature, under which operation.

use super::runners;
use crate::cli::Global;
use crate::output::style::bold;
use crate::output::{CommandResult, Reply};
use crate::project::{Project, SURFACE, Session, operation_id};
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::tools::{OperatorCommand, Tool};
use aop_kernel::{Envelope, ErrorCode, Refusal};
use serde_json::json;

/// One question, with a remark.
#[derive(Debug, clap::Args)]
pub(super) struct WhichQuestion {
    /// The question's id
    #[arg(
        value_name = "QUESTION_ID",
        required_unless_present = "question_id",
        conflicts_with = "question_id"
    )]
    question: Option<String>,
    /// The feature's id (default: that of the question)
    #[arg(long)]
    feature_id: Option<String>,
    /// The question's id
    #[arg(long)]
    question_id: Option<String>,
    /// A remark for the record
    #[arg(long)]
    note: Option<String>,
    /// Makes a retry of this command safe
    #[arg(long)]
    operation_id: Option<String>,
}

impl WhichQuestion {
    /// Calls a tool that takes a question and a note: what it gave, and of which feature the question is.
    pub(super) fn call(&self, global: &Global, tool: Tool) -> Result<(Envelope, String), Refusal> {
        let operation = operation_id(self.operation_id.as_deref())?;
        let session = Project::find(global)?.open()?;
        let feature_id = match &self.feature_id {
            Some(id) => id.clone(),
            None => feature_of(&session, &QuestionId::parse(self.question_id())?)?.to_string(),
        };
        let input = json!({"feature_id": feature_id, "question_id": self.question_id(), "note": self.note,
            "operation_id": operation});
        Ok((session.call(tool, &input)?, feature_id))
    }

    /// The question's id, however it was given.
    pub(super) fn question_id(&self) -> &str {
        self.question.as_deref().or(self.question_id.as_deref()).unwrap_or_default()
    }
}

/// The feature that a question is of. A bound worker has one feature, and hears of no other.
pub(super) fn feature_of(session: &Session, question: &QuestionId) -> Result<FeatureId, Refusal> {
    if let Some(own) = session.own_feature() {
        return Ok(own);
    }
    let found = session.wait(session.store().question(question.clone()))?;
    found.map(|question| question.feature_id.clone()).ok_or_else(|| {
        Refusal::new(ErrorCode::QuestionNotFound, format!("there is no question {question}"))
            .fact("question_id", question)
    })
}

/// One feature.
#[derive(Debug, clap::Args)]
pub(super) struct WhichFeature {
    /// The feature's id
    #[arg(long)]
    feature_id: String,
    /// Makes a retry of this command safe
    #[arg(long)]
    operation_id: Option<String>,
}

impl WhichFeature {
    /// Submits a request about the feature and tells where it stands then.
    pub(super) fn submit(&self, global: &Global, command: OperatorCommand) -> CommandResult {
        let feature_id = FeatureId::parse(&self.feature_id)?;
        let operation = operation_id(self.operation_id.as_deref())?;
        let session = Project::find(global)?.open()?;
        let envelope = session.submit(command.request(&session.caller, feature_id, operation, SURFACE)?)?;
        let text = match command {
            OperatorCommand::Cancel => {
                let id = bold(&self.feature_id);
                format!("{id} is cancelled (status failed); its history stays.{}", self.left(&session))
            }
            OperatorCommand::Retry => runners::way_of(&session, &envelope.data(), "status"),
        };
        Ok(Reply::ok(envelope, text))
    }

    /// What a cancelled feature leaves in the repository, and how that is removed. Git refuses where something is not
    /// committed, and `aop` does not do it by itself: an engine may still be about to end there.
    fn left(&self, session: &Session) -> String {
        let id = &self.feature_id;
        let place = format!(".aop/worktrees/{id}");
        if !session.project.root.join(&place).join(".git").exists() {
            return String::new();
        }
        let git = session.project.elsewhere().map_or("git".to_owned(), |root| format!("git -C {root}"));
        format!(
            "\nIts worktree {place} and its branch aop/{id} stay, too. A worktree in which all is committed is removed with\n  {}",
            bold(&format!("{git} worktree remove {place}"))
        )
    }
}
