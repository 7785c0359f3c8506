//! `aop send`: a word for a role's next turn. It answers no question.

use crate::cli::Global;
use crate::input::read_text;
use crate::output::style::{bold, yellow};
use crate::output::{CommandResult, Reply};
use crate::project::{Project, Session, operation_id};
use aop_ask::is_blank;
use aop_kernel::feature::FeatureRecord;
use aop_kernel::hex::hexadecimal;
use aop_kernel::ids::{FeatureId, OperationId, quoted};
use aop_kernel::lifecycle::{MADE_ANEW, back_to_building};
use aop_kernel::status::Status;
use aop_kernel::tools::{RESERVED_NAMES, Tool, is_reserved_name};
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_supervisor::{Note, leave_note, sent_note};
use aop_turn::Role;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::Path;

/// A longer line does not go into the log as a whole.
const LOGGED_BYTES: usize = 64 << 10;

/// So much of it is shown there.
const SHOWN_BYTES: usize = 4 << 10;

/// Leave a note for a worker's next turn
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop send --feature-id checkout \"Use the existing date picker\"
  aop send --feature-id checkout --role qa \"Try it with an empty cart\"
  git log -1 | aop send --feature-id checkout -

A note is read at the beginning of the next turn, also of one that begins with an answer, and
again if that turn fails. It stands in the feature's log, one above 64 KiB by its beginning. It
never answers a question: that is `aop answer`.")]
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
    /// Makes a retry of this command safe: the same id leaves one note
    #[arg(long)]
    operation_id: Option<String>,
    /// What it says; - is standard input
    text: String,
}

/// Leaves the note.
pub(crate) fn run(global: &Global, args: &SendArgs) -> CommandResult {
    let id = FeatureId::parse(&args.feature_id)?;
    let role = args.role.as_deref().map(|name| {
        Role::parse(name).ok_or_else(|| {
            Refusal::invalid_argument(format!("role '{name}' is not a worker")).hint("planner, builder or qa")
        })
    });
    let role = role.transpose()?;
    let text =
        if args.text == "-" { read_text(Path::new("-"))?.trim_end().to_owned() } else { args.text.clone() };
    if is_blank(&text) {
        return Err(Refusal::invalid_argument("the note is empty").hint("say something"));
    }
    if is_blank(&args.from) {
        let refusal = Refusal::invalid_argument("--from is blank").fact("argument", "from");
        return Err(refusal.hint("name whose note it is, or leave --from out"));
    }
    if is_reserved_name(&args.from) {
        let refusal = Refusal::invalid_argument(format!("--from {} is reserved", quoted(&args.from)));
        return Err(refusal
            .fact("argument", "from")
            .hint(format!("{RESERVED_NAMES}; name whose note it is")));
    }
    let operation = operation_id(args.operation_id.as_deref())?;
    let session = Project::find(global)?.open()?;
    let data = leave(&session, &id, role, &operation, &text, &args.from)?;
    let feature = session.wait(session.service.feature(&id))?;
    let mut text = told(&feature, role);
    if let Some(question) = data["open_question_id"].as_str() {
        text.push_str(&format!(
            "\n{} {id} waits for an answer to {question}; a note does not answer it: use `aop answer`",
            yellow("note:")
        ));
    }
    Ok(Reply::ok(Envelope::success(&data), text))
}

/// Who reads the note. No turn comes by itself to a feature that is ready.
fn told(feature: &FeatureRecord, role: Option<Role>) -> String {
    let (id, version) = (&feature.feature_id, feature.version);
    let (shown, whose) =
        (bold(id.as_str()), role.map_or("any role".to_owned(), |role| format!("{role} only")));
    match feature.status {
        Status::ReadyToMerge => format!(
            "Note saved, but {shown} is ready to merge and has no turn coming. To send it back to building:\n  {}",
            bold(&back_to_building(id, version, "note"))
        ),
        Status::Planning | Status::Building | Status::Qa | Status::Blocked | Status::AwaitingInput => {
            format!("Saved for {shown}'s next turn ({whose}).")
        }
        Status::Merged | Status::Failed => {
            format!("The note was saved before ({whose}); {shown} is {}.", feature.status)
        }
    }
}

/// Writes the note into the log, which knows its operation, and leaves it. What the sender is told.
fn leave(
    session: &Session,
    id: &FeatureId,
    role: Option<Role>,
    operation: &OperationId,
    text: &str,
    from: &str,
) -> Result<Value, Refusal> {
    let feature = session.wait(session.service.feature(id))?;
    let sent_before = session.wait(sent_note(session.store(), id, role, operation))?.is_some();
    if feature.status.is_terminal() && !sent_before {
        let message = format!("feature '{id}' is {}; no turn will read a note", feature.status);
        return Err(Refusal::new(ErrorCode::InvalidStatusTransition, message).hint(MADE_ANEW));
    }
    if feature.adhoc {
        let message = format!("'{id}' is a one-off question of `aop ask`; no turn will read a note");
        return Err(Refusal::new(ErrorCode::InvalidStatusTransition, message)
            .hint("the asker sees only the answer: `aop answer`, or ask again with `aop ask`"));
    }
    let line = format!("note for {} from {}: {}", whose(role), json!(from), text);
    let input = json!({"feature_id": id, "note": logged(line), "operation_id": operation});
    session.call(Tool::FeatureLogAppend, &input)?;
    let at = session.wait(session.store().now())?;
    let note = Note { text: text.to_owned(), from: from.to_owned(), at };
    let reply = json!({"feature_id": id, "role": role, "open_question_id": feature.open_question_id,
        "operation_id": operation});
    session.wait(leave_note(session.store(), id, role, operation, &note, reply))
}

/// What the log shows of a note: all, or its beginning and what tells it from every other.
fn logged(line: String) -> String {
    if line.len() <= LOGGED_BYTES {
        return line;
    }
    let digest = hexadecimal(Sha256::digest(&line));
    let shown = &line[..line.floor_char_boundary(SHOWN_BYTES)];
    format!("{shown} … ({} bytes, sha256 {digest})", line.len())
}

fn whose(role: Option<Role>) -> String {
    role.map_or("whoever is next".to_owned(), |role| format!("the {role}"))
}
