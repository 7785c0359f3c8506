//! Options that several commands share: which question, which feature, under which operation.

use super::runners;
use crate::cli::Global;
use crate::output::{CommandResult, Reply};
use crate::project::{Project, SURFACE, operation_id};
use aop_kernel::ids::FeatureId;
use aop_kernel::tools::{OperatorCommand, Tool};
use aop_kernel::{Envelope, Refusal};
use serde_json::json;

/// One question, with a remark.
#[derive(Debug, clap::Args)]
pub(super) struct WhichQuestion {
    /// The feature's id
    #[arg(long)]
    pub(super) feature_id: String,
    /// The question's id
    #[arg(long)]
    pub(super) question_id: String,
    /// A remark for the record
    #[arg(long)]
    note: Option<String>,
    /// Makes a retry of this command safe
    #[arg(long)]
    operation_id: Option<String>,
}

impl WhichQuestion {
    /// Calls a tool that takes a question and a note.
    pub(super) fn call(&self, global: &Global, tool: Tool) -> Result<Envelope, Refusal> {
        let operation = operation_id(self.operation_id.as_deref())?;
        let session = Project::find(global)?.open()?;
        let input = json!({"feature_id": self.feature_id, "question_id": self.question_id, "note": self.note,
            "operation_id": operation});
        session.call(tool, &input)
    }
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
        let text = runners::way_of(&session, &envelope.data(), "status");
        Ok(Reply::ok(envelope, text))
    }
}
