//! What may happen to features and questions: one operation, one file, one function. Each takes the
//! snapshot and gives events and the envelope, or a refusal. Nothing else changes a status or a question.

mod answer;
mod create;
mod expire;
mod feature;
mod guard;
mod reopen;
mod transition;
mod withdraw;
mod work;

pub use answer::{Answer, MADE_ANEW, still_open};
pub use create::{CreateQuestion, MOST_OPEN};
pub use expire::{Expiry, expire_due};
pub use feature::{AppendLog, CreateFeature};
pub use guard::{Action, permit};
pub use reopen::Reopen;
pub use transition::{Cancel, Retry, Transition, back_to_building, send_back};
pub use withdraw::Withdraw;
pub use work::{BeginCheck, BeginTurn, EndCheck, EndTurn, Merge};

use crate::code::ErrorCode;
use crate::envelope::{Envelope, Refusal};
use crate::event::{Event, Snapshot, Stamped};
use crate::feature::Feature;
use crate::ids::{FeatureId, OperationId, QuestionId};
use crate::policy::Rules;
use crate::question::{Question, Resolution, ResolutionMode};
use crate::role::Caller;
use crate::status::Status;
use crate::time::Timestamp;
use crate::work::TurnEnd;
use serde::Serialize;
use serde_json::Value;

/// A mutation, checked as far as that is possible without looking at the state.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// `feature.create`
    CreateFeature(CreateFeature),
    /// `feature.transition`
    Transition(Transition),
    /// `feature.log_append`
    AppendLog(AppendLog),
    /// `feature.question_create`
    CreateQuestion(Box<CreateQuestion>),
    /// `feature.question_answer`
    Answer(Answer),
    /// `feature.question_withdraw`
    Withdraw(Withdraw),
    /// `feature.question_reopen`
    Reopen(Reopen),
    /// `aop cancel`
    Cancel(Cancel),
    /// `aop retry`
    Retry(Retry),
    /// A worker's turn begins or goes on.
    BeginTurn(BeginTurn),
    /// It came to its end.
    EndTurn(Box<EndTurn>),
    /// Checks begin.
    BeginCheck(BeginCheck),
    /// They ended.
    EndCheck(EndCheck),
    /// `aop merge`
    Merge(Merge),
}

impl Command {
    /// The feature it is about.
    pub fn feature_id(&self) -> &FeatureId {
        match self {
            Command::CreateFeature(command) => &command.feature_id,
            Command::Transition(command) => &command.feature_id,
            Command::AppendLog(command) => &command.feature_id,
            Command::CreateQuestion(command) => &command.feature_id,
            Command::Answer(command) => &command.feature_id,
            Command::Withdraw(command) => &command.feature_id,
            Command::Reopen(command) => &command.feature_id,
            Command::Cancel(command) => &command.feature_id,
            Command::Retry(command) => &command.feature_id,
            Command::BeginTurn(command) => &command.feature_id,
            Command::EndTurn(command) => &command.feature_id,
            Command::BeginCheck(command) => &command.feature_id,
            Command::EndCheck(command) => &command.feature_id,
            Command::Merge(command) => &command.feature_id,
        }
    }

    /// The question it names, if it names one.
    pub fn question_id(&self) -> Option<&QuestionId> {
        match self {
            Command::Answer(command) => Some(&command.question_id),
            Command::Withdraw(command) => Some(&command.question_id),
            Command::Reopen(command) => Some(&command.question_id),
            Command::CreateFeature(_)
            | Command::Transition(_)
            | Command::AppendLog(_)
            | Command::CreateQuestion(_)
            | Command::Cancel(_)
            | Command::Retry(_)
            | Command::BeginTurn(_)
            | Command::EndTurn(_)
            | Command::BeginCheck(_)
            | Command::EndCheck(_)
            | Command::Merge(_) => None,
        }
    }
}

/// A command with its caller and the operation it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Who calls.
    pub caller: Caller,
    /// Through which door, for the record.
    pub surface: &'static str,
    /// The operation, unique per project.
    pub operation_id: OperationId,
    /// What the operation is, as a digest: the same id with another digest is a mismatch.
    pub digest: String,
    /// What to do.
    pub command: Command,
}

impl Request {
    /// The refusal when this operation id named another request before.
    pub fn reuse_mismatch(&self) -> Refusal {
        let id = &self.operation_id;
        let message = format!("operation id '{id}' was used for a different request");
        Refusal::new(ErrorCode::OperationIdReuseMismatch, message).fact("operation_id", id)
    }
}

/// When, and which id a new question gets. The kernel has neither clock nor chance of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// The time of the operation.
    pub now: Timestamp,
    /// A fresh id, used when the command opens a question.
    pub question_id: QuestionId,
}

/// A secret answer: kept apart from everything that is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Secret {
    /// The question it answers.
    pub question_id: QuestionId,
    /// The whole answer, unredacted.
    pub answer: Value,
}

/// What an accepted command does, as data: commit all of it or none.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Events to append, in order.
    pub events: Vec<Stamped>,
    /// The state after them.
    pub state: Snapshot,
    /// What the caller is told.
    pub envelope: Envelope,
    /// A secret to put away, when the answer had one.
    pub secret: Option<Secret>,
}

/// Decides one command on a snapshot from which everything due has been expired already.
pub fn apply(
    snapshot: &Snapshot,
    request: &Request,
    moment: &Moment,
    rules: &Rules,
) -> Result<Outcome, Refusal> {
    let draft = Draft::new(snapshot, request, moment);
    match &request.command {
        Command::CreateFeature(command) => command.apply(draft),
        Command::Transition(command) => command.apply(draft),
        Command::AppendLog(command) => command.apply(draft),
        Command::CreateQuestion(command) => command.apply(draft, rules),
        Command::Answer(command) => command.apply(draft, rules),
        Command::Withdraw(command) => command.apply(draft),
        Command::Reopen(command) => command.apply(draft, rules),
        Command::Cancel(command) => command.apply(draft),
        Command::Retry(command) => command.apply(draft),
        Command::BeginTurn(command) => command.apply(draft),
        Command::EndTurn(command) => command.apply(draft),
        Command::BeginCheck(command) => command.apply(draft),
        Command::EndCheck(command) => command.apply(draft),
        Command::Merge(command) => command.apply(draft),
    }
}

/// A transition being written: the state so far and the events that led to it.
struct Draft<'a> {
    state: Snapshot,
    events: Vec<Stamped>,
    request: &'a Request,
    moment: &'a Moment,
}

impl<'a> Draft<'a> {
    fn new(snapshot: &Snapshot, request: &'a Request, moment: &'a Moment) -> Self {
        // Most commands make one or two.
        Draft { state: snapshot.clone(), events: Vec::with_capacity(2), request, moment }
    }

    /// The feature, or `feature_not_found`.
    fn feature(&self) -> Result<&Feature, Refusal> {
        self.state.feature.as_deref().ok_or_else(|| feature_not_found(self.request.command.feature_id()))
    }

    /// The named question, or `question_not_found`.
    fn question(&self, id: &QuestionId) -> Result<&Question, Refusal> {
        self.state.question(id).ok_or_else(|| {
            let feature = self.request.command.feature_id();
            Refusal::new(ErrorCode::QuestionNotFound, format!("feature '{feature}' has no question {id}"))
                .hint(format!("list its questions with `aop questions --feature-id {feature} --status all`"))
                .fact("feature_id", feature)
                .fact("question_id", id)
        })
    }

    /// Appends one event in the name of the caller.
    fn emit(&mut self, event: Event) {
        let stamped = Stamped {
            feature_id: self.request.command.feature_id().clone(),
            at: self.moment.now,
            actor: self.request.caller.role.into(),
            operation_id: Some(self.request.operation_id.clone()),
            event,
        };
        self.state.evolve(&stamped);
        self.events.push(stamped);
    }

    /// Moves the status; on the way into a terminal one the turn in hand ends and the open questions are withdrawn.
    fn move_to(&mut self, to: Status, reason: Option<String>) {
        if to.is_terminal() {
            if let Some(end) = end_of_turn(self.state.feature.as_deref(), to) {
                self.emit(end);
            }
            let note = format!("the feature is {to}");
            for question_id in
                self.state.open_questions().map(|question| question.id.clone()).collect::<Vec<_>>()
            {
                let resolution = self.resolution(ResolutionMode::Withdrawn, Some(note.clone()));
                self.emit(Event::QuestionWithdrawn { question_id, resolution });
            }
        }
        let from = self.status();
        if from != to {
            let turn_stays = self.state.feature.as_ref().is_some_and(|feature| feature.work.is_left_by(to));
            self.emit(Event::StatusChanged { from, to, reason, turn_stays });
        }
    }

    /// Sends the feature back to where it was before the question; `planning` when that is unusable.
    fn resume(&mut self, question: &Question) {
        for event in resume_events(question, self.state.feature.as_deref()) {
            self.emit(event);
        }
    }

    fn status(&self) -> Status {
        self.state.feature.as_ref().map_or(Status::Planning, |feature| feature.status)
    }

    fn resolution(&self, mode: ResolutionMode, note: Option<String>) -> Resolution {
        Resolution {
            mode,
            surface: self.request.surface.to_owned(),
            operation_id: Some(self.request.operation_id.clone()),
            note,
        }
    }

    /// Finishes: `data` gets the operation id, as every mutating success does.
    fn finish(self, data: &impl Serialize) -> Outcome {
        let envelope = Envelope::committed(data, &self.request.operation_id);
        Outcome { events: self.events, state: self.state, envelope, secret: None }
    }
}

/// The events that bring a feature back from a closed blocking question.
fn resume_events(question: &Question, feature: Option<&Feature>) -> Vec<Event> {
    let waiting =
        feature.filter(|feature| feature.status == Status::AwaitingInput && question.asked.blocking);
    let Some(feature) = waiting else { return Vec::new() };
    let id = &question.id;
    let target = question.resume_target();
    let mut events = Vec::with_capacity(1);
    if target.is_none() {
        let recorded = question.resume_status.as_ref().map_or("none", crate::question::ResumeStatus::as_str);
        let note = format!(
            "resume_fallback_to_planning: resume status '{recorded}' of question {id} cannot be used"
        );
        events.push(Event::Noted { note });
    }
    let to = target.unwrap_or(Status::Planning);
    let reason = match target {
        None => Some("resume_fallback_to_planning".to_owned()),
        Some(_) => feature.waiting.as_ref().and_then(|waiting| waiting.stood_because.clone()),
    };
    let turn_stays = feature.work.is_left_by(to);
    events.push(Event::StatusChanged { from: feature.status, to, reason, turn_stays });
    events
}

/// The end of the turn in hand of a feature that ends: no run will find it any more to commit one.
fn end_of_turn(feature: Option<&Feature>, to: Status) -> Option<Event> {
    let turn = feature?.work.turn.as_ref()?;
    let (claim, role) = (turn.claim.clone(), turn.role);
    Some(Event::TurnEnded { claim, role, end: TurnEnd::cut_off(to, false) })
}

/// The refusal for a feature that is not there.
pub fn feature_not_found(id: &FeatureId) -> Refusal {
    Refusal::new(ErrorCode::FeatureNotFound, format!("no feature '{id}'")).fact("feature_id", id)
}
