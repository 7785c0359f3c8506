//! `aop questions`: the inbox over all features, or the questions of one.

use crate::cli::Global;
use crate::number::at_least;
use crate::output::style::{bold, dim};
use crate::output::{CommandResult, Reply, question::card};
use crate::project::Project;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::tools::{QuestionFilter, Tool};
use aop_kernel::{Envelope, Refusal};
use aop_store::{Items, QuestionPage};
use serde_json::json;

/// List questions: what waits for an answer, over all features
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  aop questions\n  aop questions --feature-id checkout --status all\n  aop questions --json | jq -r '.data.items[].prompt'"
)]
pub(crate) struct QuestionsArgs {
    /// Only this feature's
    #[arg(long)]
    feature_id: Option<String>,
    /// open, answered, expired, withdrawn or all
    #[arg(long, default_value = "open")]
    status: String,
    /// At most so many (default: all)
    #[arg(long, value_name = "N", value_parser = at_least::<usize>(1))]
    limit: Option<usize>,
    /// Only those listed after this question
    #[arg(long, value_name = "QUESTION_ID")]
    after: Option<String>,
}

/// Lists them, oldest first.
pub(crate) fn run(global: &Global, args: &QuestionsArgs) -> CommandResult {
    let filter = QuestionFilter::parse(&args.status)?;
    let feature = args.feature_id.as_deref().map(FeatureId::parse).transpose()?;
    let after = args.after.as_deref().map(QuestionId::parse).transpose()?;
    let session = Project::find(global)?.open()?;
    let feature = feature.or_else(|| session.own_feature());
    if let Some(id) = &feature {
        // Says that there is no such feature, and holds a bound worker to its own.
        session.call(Tool::FeatureGet, &json!({"feature_id": id}))?;
    }
    let after = match after {
        None => None,
        Some(id) => {
            let question = session.wait(session.store().question(id.clone()))?.ok_or_else(|| {
                Refusal::invalid_argument(format!("--after names question {id}, which does not exist"))
            })?;
            Some((question.created_at, id))
        }
    };
    let limit = args.limit.unwrap_or(usize::MAX);
    let page = QuestionPage { feature, filter, after, limit };
    let items = session.wait(session.store().questions(page))?;
    let mut text: Vec<String> = items.iter().map(card).collect();
    if text.is_empty() {
        text.push(match filter {
            QuestionFilter::Only(status) => format!("No {} questions.", status.as_str()),
            QuestionFilter::All => "No questions yet.".to_owned(),
        });
    } else if args.status == "open" {
        text.push(format!("{} answers them here, one after the other.", bold("`aop answer`")));
    } else {
        text.push(dim(&format!("{} listed", text.len())));
    }
    Ok(Reply::ok(Envelope::success(&Items { items }), text.join("\n")))
}
