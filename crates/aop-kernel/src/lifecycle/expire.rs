//! What the clock does. The deadline and its consequence were frozen when the question was asked and the
//! events carry `expires_at` as their time, so it is the same transition whoever notices it and whenever.

use super::{Secret, end_of_turn, resume_events};
use crate::event::{Actor, Event, Snapshot, Stamped};
use crate::policy::DecisionPolicy;
use crate::question::{Question, Resolution, ResolutionMode};
use crate::status::Status;
use crate::time::Timestamp;
use std::sync::Arc;

/// Everything that is due at `now`, as events, and the state after them.
#[derive(Debug, Clone, PartialEq)]
pub struct Expiry {
    /// Events to append, in order; empty when nothing is due.
    pub events: Vec<Stamped>,
    /// Declared defaults that answer secret questions.
    pub secrets: Vec<Secret>,
    /// The state with the events applied.
    pub state: Snapshot,
}

/// Expires what is due, earliest deadline first.
pub fn expire_due(snapshot: &Snapshot, now: Timestamp) -> Expiry {
    let mut expiry = Expiry { events: Vec::new(), secrets: Vec::new(), state: snapshot.clone() };
    while let Some(question) = next_due(&expiry.state, now) {
        expiry.expire(&question);
    }
    expiry
}

fn next_due(state: &Snapshot, now: Timestamp) -> Option<Arc<Question>> {
    let due = state.questions.iter().filter(|question| question.is_due(now));
    due.min_by_key(|question| (question.expires_at, question.id.clone())).cloned()
}

impl Expiry {
    fn expire(&mut self, question: &Question) {
        let id = &question.id;
        if question.expiry_policy.strict {
            self.close(question, ResolutionMode::Expired, "nobody answered in time");
            if let Some(to) = question.stops_at() {
                self.stop(question, to);
            }
            return;
        }
        match (question.asked.default_decision_policy, question.declared_default()) {
            (DecisionPolicy::UseDefault, Some(default)) => {
                let (answer, secret) = question.asked.redact(default);
                self.secrets.extend(secret.map(|answer| Secret { question_id: id.clone(), answer }));
                let resolution = resolution(
                    ResolutionMode::DefaultByPolicy,
                    "nobody answered in time; the declared default applies by policy",
                );
                self.emit(
                    question,
                    Event::QuestionAnswered {
                        question_id: id.clone(),
                        answer,
                        answered_by: "policy:default".to_owned(),
                        resolution,
                    },
                );
            }
            (DecisionPolicy::Decline, _) => self.close(
                question,
                ResolutionMode::DeclinedByPolicy,
                "nobody answered in time; not permitted, by policy",
            ),
            (DecisionPolicy::EngineJudgement, _) | (DecisionPolicy::UseDefault, None) => self.close(
                question,
                ResolutionMode::EngineJudgement,
                "nobody answered in time; the engine decides, by policy",
            ),
        }
        for event in resume_events(question, self.state.feature.as_deref()) {
            self.emit(question, event);
        }
    }

    fn close(&mut self, question: &Question, mode: ResolutionMode, note: &str) {
        let resolution = resolution(mode, note);
        self.emit(question, Event::QuestionExpired { question_id: question.id.clone(), resolution });
    }

    /// A strict timeout stops the feature; a failed one takes its turn in hand and its other open questions with it.
    fn stop(&mut self, question: &Question, to: Status) {
        if to.is_terminal() {
            if let Some(end) = end_of_turn(self.state.feature.as_deref(), to) {
                self.emit(question, end);
            }
            let others: Vec<_> = self.state.open_questions().map(|other| other.id.clone()).collect();
            for question_id in others {
                let resolution = resolution(ResolutionMode::Withdrawn, "the feature is failed");
                self.emit(question, Event::QuestionWithdrawn { question_id, resolution });
            }
        }
        let from = self.status();
        let mut reason = format!("question {} expired without an answer", question.id);
        if !to.is_terminal() {
            let (feature, id) = (&question.feature_id, &question.id);
            reason
                .push_str(&format!("; ask it again: `aop reopen --feature-id {feature} --question-id {id}`"));
        }
        // No worker has the feature then, so that a turn that is still in hand stays where it is.
        let event = Event::StatusChanged { from, to, reason: Some(reason), turn_stays: false };
        self.emit(question, event);
    }

    fn status(&self) -> Status {
        self.state.feature.as_ref().map_or(Status::Planning, |feature| feature.status)
    }

    fn emit(&mut self, question: &Question, event: Event) {
        let stamped = Stamped {
            feature_id: question.feature_id.clone(),
            at: question.expires_at.unwrap_or(question.created_at),
            actor: Actor::Policy,
            operation_id: None,
            event,
        };
        self.state.evolve(&stamped);
        self.events.push(stamped);
    }
}

fn resolution(mode: ResolutionMode, note: &str) -> Resolution {
    Resolution { mode, surface: "policy".to_owned(), operation_id: None, note: Some(note.to_owned()) }
}
