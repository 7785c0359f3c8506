//! `aop send`: a word for a role's next turn. It answers no question.

use crate::cli::Global;
use crate::output::style::{bold, yellow};
use crate::output::{CommandResult, Reply};
use crate::project::Project;
use aop_kernel::ids::FeatureId;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_supervisor::{Note, leave_note};
use aop_turn::Role;
use serde_json::json;

/// Leave a note for a worker's next turn
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop send --feature-id checkout \"Use the existing date picker\"
  aop send --feature-id checkout --role qa \"Try it with an empty cart\"

A note is read at the beginning of the next turn, also of one that begins with an answer, and
again if that turn fails. It never answers a question: that is `aop answer`.")]
pub(crate) struct SendArgs {
    /// The feature's id
    #[arg(long)]
    feature_id: String,
    /// For this worker only: planner, builder or qa (default: whoever is next)
    #[arg(long)]
    role: Option<String>,
    /// Whose note it is
    #[arg(long, value_name = "WHO", default_value = "human")]
    from: String,
    /// What it says
    text: String,
}

/// Leaves the note.
pub(crate) fn run(global: &Global, args: &SendArgs) -> CommandResult {
    let id = FeatureId::parse(&args.feature_id)?;
    let role = args.role.as_deref().map(|name| {
        Role::parse(name).ok_or_else(|| {
            Refusal::invalid_argument(format!("role '{name}' is no worker")).hint("planner, builder or qa")
        })
    });
    let role = role.transpose()?;
    if args.text.trim().is_empty() {
        return Err(Refusal::invalid_argument("the note is empty").hint("say something"));
    }
    if args.from.trim().is_empty() {
        let refusal = Refusal::invalid_argument("--from is blank").fact("argument", "from");
        return Err(refusal.hint("name whose note it is, or leave --from out"));
    }
    let session = Project::find(global)?.open()?;
    let feature = session.wait(session.service.feature(&id))?;
    if feature.status.is_terminal() {
        let message = format!("feature '{id}' is {}; no turn will read a note", feature.status);
        return Err(Refusal::new(ErrorCode::InvalidStatusTransition, message).hint(
            "make a new feature of what is left to do: `aop features create --feature-id ID --title TITLE`",
        ));
    }
    let at = session.wait(session.store().now())?;
    let note = Note { text: args.text.clone(), from: args.from.clone(), at };
    session.wait(leave_note(session.store(), &id, role, &note))?;
    let whose = role.map_or("whoever is next".to_owned(), |role| format!("the {role}"));
    let mut text = format!("The next turn of {} reads it ({whose}).", bold(id.as_str()));
    if let Some(question) = &feature.open_question_id {
        text.push_str(&format!(
            "\n{} {id} waits for an answer to {question}, and a note is none: `aop answer`",
            yellow("note:")
        ));
    }
    let data = json!({"feature_id": id, "role": role, "open_question_id": feature.open_question_id});
    Ok(Reply::ok(Envelope::success(&data), text))
}
