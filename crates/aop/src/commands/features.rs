//! `aop features list|show|create|mode`.

use super::status::Prompts;
use crate::cli::Global;
use crate::input::read_text;
use crate::output::style::{bold, clean, dim};
use crate::output::{CommandResult, Reply, Screen, question::card};
use crate::project::{Project, Session, operation_id};
use aop_kernel::ids::{FeatureId, OperationId};
use aop_kernel::lifecycle::MADE_ANEW;
use aop_kernel::question::Question;
use aop_kernel::tools::Tool;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::Items;
use aop_supervisor::{mode_of, mode_was_set, set_mode};
use aop_turn::Mode;
use clap::Subcommand;
use serde_json::{Value, json};
use std::path::PathBuf;

/// List, show and create features
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  aop features list")]
pub(crate) struct FeaturesArgs {
    #[command(subcommand)]
    command: FeaturesCommand,
}

#[derive(Debug, Subcommand)]
enum FeaturesCommand {
    /// List the features of the project
    #[command(after_help = "Example:\n  aop features list --status awaiting_input")]
    List {
        /// Only those with this status
        #[arg(long)]
        status: Option<String>,
        /// Also those that `aop ask` made for a single question
        #[arg(long)]
        all: bool,
    },
    /// Show one feature with its open questions and latest answers
    #[command(after_help = "Example:\n  aop features show checkout")]
    Show {
        /// The feature's id
        feature_id: String,
    },
    /// Create a feature; it starts in planning
    #[command(
        after_help = "Example:\n  aop features create --feature-id checkout --title \"Checkout page\" \\\n      --spec checkout.md"
    )]
    Create {
        /// 1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit
        #[arg(long)]
        feature_id: String,
        /// What it is called
        #[arg(long)]
        title: String,
        /// Its specification, a Markdown file (- is standard input)
        #[arg(long, value_name = "FILE")]
        spec: Option<PathBuf>,
        /// Makes a retry of this command safe: the same id never creates twice
        #[arg(long)]
        operation_id: Option<String>,
    },
    /// Set whether one feature's agents may ask, overriding the run
    #[command(after_help = "Examples:
  aop features mode checkout auto       nobody is asked, its agents decide
  aop features mode checkout run        as the run says again

It holds from the feature's next turn on.")]
    Mode {
        /// The feature's id
        feature_id: String,
        /// interactive, auto, or run: what `aop run --mode` and aop.yaml say
        #[arg(value_parser = ["interactive", "auto", "run"])]
        mode: String,
        /// Makes a retry of this command safe: the same id sets it once
        #[arg(long)]
        operation_id: Option<String>,
    },
}

/// Runs the chosen one.
pub(crate) fn run(global: &Global, screen: &Screen, args: FeaturesArgs) -> CommandResult {
    match args.command {
        FeaturesCommand::List { status, all } => list(global, screen, status, all),
        FeaturesCommand::Show { feature_id } => show(global, &feature_id),
        FeaturesCommand::Mode { feature_id, mode, operation_id: operation } => {
            set(global, &feature_id, &mode, &operation_id(operation.as_deref())?)
        }
        FeaturesCommand::Create { feature_id, title, spec, operation_id: operation } => {
            let spec = spec.map(|path| read_text(&path)).transpose()?;
            let operation = operation_id(operation.as_deref())?;
            let session = Project::find(global)?.open()?;
            let input =
                json!({"feature_id": feature_id, "title": title, "spec": spec, "operation_id": operation});
            let envelope = session.call(Tool::FeatureCreate, &input)?;
            let text = format!("Feature {} is in planning.", bold(&feature_id));
            Ok(Reply::ok(envelope, text))
        }
    }
}

/// Writes it into the log, which knows its operation, and sets it.
fn set(global: &Global, feature_id: &str, mode: &str, operation: &OperationId) -> CommandResult {
    let id = FeatureId::parse(feature_id)?;
    let session = Project::find(global)?.open()?;
    let status = session.wait(session.service.feature(&id))?.status;
    if status.is_terminal() && !session.wait(mode_was_set(session.store(), &id, operation))? {
        let message = format!("feature '{id}' is {status}; no turn of it is left");
        return Err(Refusal::new(ErrorCode::InvalidStatusTransition, message).hint(MADE_ANEW));
    }
    let note = match mode {
        "run" => "its execution mode is the run's".to_owned(),
        mode => format!("its execution mode is {mode}"),
    };
    let input = json!({"feature_id": id, "note": note, "operation_id": operation});
    session.call(Tool::FeatureLogAppend, &input)?;
    session.wait(set_mode(session.store(), &id, Mode::parse(mode), operation))?;
    let data = json!({"feature_id": id, "execution_mode": mode, "operation_id": operation});
    let envelope = Envelope::success(&data);
    let text = match mode {
        "run" => format!("{} is run as the run says.", bold(feature_id)),
        mode => format!("{} is {mode} from its next turn on.", bold(feature_id)),
    };
    Ok(Reply::ok(envelope, text))
}

fn list(global: &Global, screen: &Screen, status: Option<String>, all: bool) -> CommandResult {
    let session = Project::find(global)?.open()?;
    let (items, work) = super::status::look(&session, &json!({"status": status, "all": all}))?;
    let prompts = Prompts::shown_on(screen, &session, &items);
    let text = super::status::overview(&items, &prompts, work.anybody);
    Ok(Reply::ok(Envelope::success(&Items { items }), text))
}

fn show(global: &Global, feature_id: &str) -> CommandResult {
    let session = Project::find(global)?.open()?;
    let context = session.call(Tool::FeatureGetContext, &json!({"feature_id": feature_id}))?.data();
    let at_work = super::runners::look(&session)?.anybody;
    let state = &context["state"];
    let field = |key: &str| clean(state[key].as_str().unwrap_or_default());
    let mut text = format!("{}  {}\n", bold(feature_id), field("title"));
    text.push_str(&format!(
        "status {}  {}\n",
        super::status::coloured(&field("status")),
        dim(&field("status_reason"))
    ));
    text.extend(super::status::way_on(state, at_work).map(|way| format!("{way}\n")));
    text.push_str(&whereabouts(&session, state)?);
    for (title, key) in [("open questions", "open_questions"), ("latest answers", "recent_answers")] {
        let questions: Vec<Question> =
            serde_json::from_value(context["human_input"][key].clone()).unwrap_or_default();
        if !questions.is_empty() {
            text.push_str(&format!("\n{}\n{}", dim(title), questions.iter().map(card).collect::<String>()));
        }
    }
    let mut data = state.as_object().cloned().unwrap_or_default();
    data.insert("spec".into(), context["spec"].clone());
    data.insert("human_input".into(), context["human_input"].clone());
    Ok(Reply::ok(Envelope::success(&data), text))
}

/// Who works on a feature, where its work is, and how it is looked at and merged, as far as there is something.
fn whereabouts(session: &Session, state: &Value) -> Result<String, Refusal> {
    let field = |key: &str| clean(state[key].as_str().unwrap_or_default());
    let Ok(id) = FeatureId::parse(&field("feature_id")) else { return Ok(String::new()) };
    let mut lines = Vec::new();
    let mut line = |name: &str, what: &str| lines.push(format!("{} {what}\n", dim(name)));
    if state["engine"].is_string() {
        line("engine", &format!("{} ({})", field("engine"), field("role")));
    }
    if let Some(mode) = session.wait(mode_of(session.store(), &id))? {
        line("mode", mode.as_str());
    }
    let dir = session.project.dir();
    // A worktree of git has a link to its repository in it.
    if dir.join("worktrees").join(id.as_str()).join(".git").exists() {
        // Whoever types it elsewhere would ask another repository.
        let elsewhere = session.project.elsewhere();
        let git = elsewhere.as_ref().map_or("git".to_owned(), |root| format!("git -C {root}"));
        let aop = elsewhere.as_ref().map_or("aop".to_owned(), |root| format!("aop --project {root}"));
        line("branch", &format!("aop/{id}"));
        line("worktree", &format!(".aop/worktrees/{id}"));
        // Its short name would be a tag, where one is called the same.
        line("review:", &bold(&format!("{git} diff HEAD...refs/heads/aop/{id}")));
        if state["status"] == "ready_to_merge" {
            line("then:", &bold(&format!("{aop} merge --feature-id {id}")));
        }
    }
    let runs = std::fs::read_dir(dir.join("runs")).into_iter().flatten().flatten();
    if runs.into_iter().any(|run| run.path().join(id.as_str()).is_dir()) {
        line("transcripts", &format!(".aop/runs/*/{id}/"));
    }
    Ok(lines.concat())
}
