//! `aop packet ask`: opens a gate by asking a human. The question is durable; its answer becomes the record at
//! `answer_path`, which is written once and never over something else.

use super::{Asked, locate, told};
use crate::asking::{Asking, Closed, Waited, again, put};
use crate::cli::Global;
use crate::commands::ask::timeout;
use crate::commands::spec::load;
use crate::output::{CommandResult, INTERRUPTED, talk, warn};
use crate::project::{Project, Session, operation_id};
use aop_ask::gate::{Gate, GateState, Packet};
use aop_kernel::Refusal;
use aop_kernel::ids::{OperationId, QuestionId};
use aop_kernel::question::QuestionState;
use aop_store::crash_point;
use aop_supervisor::{answer_record, forget_written, keep_answer};
use std::path::PathBuf;

/// What to ask, and how.
#[derive(Debug, clap::Args)]
pub(super) struct AskArgs {
    /// The instruction packet (JSON; - for standard input)
    file: PathBuf,
    /// Move a record that is not a valid answer aside and ask
    #[arg(long)]
    replace: bool,
    /// The feature that waits meanwhile (default: one made for this question)
    #[arg(long)]
    feature_id: Option<String>,
    /// How long to wait, for instance 90s, 15m or 2d; never longer than the policy says
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Makes a retry safe: the same id asks once and waits again
    #[arg(long)]
    operation_id: Option<String>,
}

/// Asks unless the gate is open already, and tells the gate's state afterwards.
pub(super) fn run(global: &Global, args: &AskArgs) -> CommandResult {
    let operation = operation_id(args.operation_id.as_deref())?;
    let timeout_ms = args.timeout.as_deref().map(timeout).transpose()?;
    let project = Project::find(global)?;
    let packet = load(&args.file, "an instruction packet", Packet::parse)?;
    let Some(gate) = packet.gate() else { return Ok(told(&GateState::None, None, Asked::default())) };
    let place = locate(&project, &args.file, gate)?;
    let standing = place.read()?;
    match packet.judge(standing.as_deref()) {
        GateState::Missing => {}
        // It stands until there is a record in its place: perhaps nobody can be asked, or nobody answers.
        GateState::Invalid(_) if args.replace => {}
        state => {
            if let (GateState::Open(_), true, Some(standing)) = (&state, gate.spec.has_secret(), standing) {
                erase(project, gate, &standing);
            }
            return Ok(told(&state, Some(gate), Asked::default()));
        }
    }
    place.try_folder()?;
    let session = project.open()?;
    let prompt = format!("Before the next step: {}", gate.spec.topic());
    let asking = Asking {
        prompt: &prompt,
        expected: None,
        spec: Some(gate.spec.clone()),
        feature_id: args.feature_id.as_deref(),
        timeout_ms,
        question_type: "clarification",
        operation,
    };
    let closed = match put(&session, &asking)? {
        Waited::Closed(closed) => closed,
        Waited::Left(question) => {
            if question.is_none() {
                std::mem::forget(session);
            }
            let asked = Asked {
                operation: Some(&asking.operation),
                question: question.as_ref().map(|question| &question.id),
                hint: Some(again(&asking.operation)),
                unwritten: None,
            };
            let state = packet.judge(place.read()?.as_deref());
            return Ok(told(&state, Some(gate), asked).exit(INTERRUPTED));
        }
    };
    let (operation, id) = (Some(&asking.operation), &closed.question.id);
    let asked = Asked { operation, question: Some(id), hint: None, unwritten: None };
    let written = write(&session, args, &packet, gate, &closed);
    let Some(Written { record, stands }) = written.map_err(|refusal| kept(refusal, id, &asking.operation))?
    else {
        return Ok(told(&packet.judge(place.read()?.as_deref()), Some(gate), asked));
    };
    let state = packet.judge(stands.as_deref());
    let unwritten = stands.is_some_and(|stands| stands != record).then_some(id);
    if unwritten.is_some() {
        talk(&format!(
            "another record stands at {} already and was left alone: the answer to {id} was not written there (`aop \
             questions --status answered` shows it)",
            gate.answer_path
        ));
    }
    Ok(told(&state, Some(gate), Asked { unwritten, ..asked }))
}

/// The record of the answer, and what stands where it belongs.
struct Written {
    record: Vec<u8>,
    stands: Option<Vec<u8>>,
}

/// Writes the record of the answer, if there is one, where nothing stands, or what is to be replaced.
fn write(
    session: &Session,
    args: &AskArgs,
    packet: &Packet,
    gate: &Gate,
    closed: &Closed,
) -> Result<Option<Written>, Refusal> {
    let (Some(answer), QuestionState::Answered { at, by, .. }) = (&closed.answer, &closed.question.state)
    else {
        return Ok(None);
    };
    // Looked up again: the project may have changed while the human thought.
    let place = locate(&session.project, &args.file, gate)?;
    let record = answer_record(gate, answer, *at, by)?;
    if args.replace && matches!(packet.judge(place.read()?.as_deref()), GateState::Invalid(_)) {
        let aside = place.move_aside()?;
        talk(&format!("moved the old record to {}", aside.display()));
    }
    if place.read()?.is_none() {
        // A run knows the file by it. First this, then the file: a crash in between leaves a gate that can be opened.
        let kept = session.wait(keep_answer(session.store(), gate, &record, &closed.question.id))?;
        let is_new = place.write_new(&record)?;
        crash_point("record_written");
        session.wait(kept.settle(session.store(), &place.read()?.unwrap_or_default()))?;
        if is_new {
            closed.delivered(session);
        }
    }
    Ok(Some(Written { stands: place.read()?, record }))
}

/// One that was killed when its record stood there has left the secrets in the store. The gate is open all the same.
fn erase(project: Project, gate: &Gate, standing: &[u8]) {
    let erased =
        project.open().and_then(|session| session.wait(forget_written(session.store(), gate, standing)));
    if let Err(refusal) = erased {
        warn(&format!(
            "whether the secrets of this answer are still stored is not known: {}",
            refusal.message
        ));
    }
}

/// Somebody has answered, and the record is not there: the same operation writes it, and asks nobody again.
fn kept(refusal: Refusal, question: &QuestionId, operation: &OperationId) -> Refusal {
    let message = format!("{}; the answer to {question} is kept", refusal.message);
    let hint = format!("{}; then {}, which asks nobody again", refusal.hint, again(operation));
    Refusal { message, ..refusal.hint(hint) }.fact("question_id", question).fact("operation_id", operation)
}
