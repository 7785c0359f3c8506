//! What a turn begins with: the end of a question, a message, or the rest of what was cut off.

use super::ended::{Failure, failure_key};
use super::{Plan, Turn};
use crate::check::{CheckReport, report_key};
use crate::note::{Note, forget_notes, notes_for};
use crate::phase::{result_name, schema_of};
use crate::prompt::{self, Anew, Briefing, End};
use crate::runner::Stop;
use aop_engine::{Driver, Input, Reply, ReplyKind, SessionRef};
use aop_kernel::ids::QuestionId;
use aop_kernel::question::{Question, QuestionState};
use aop_kernel::tools::QuestionFilter;
use aop_kernel::words;
use aop_store::{ClaimState, QuestionPage, Shelf};
use aop_turn::Role;
use serde_json::{Map, Value, json};

/// The beginning of a turn.
pub(super) struct Brief {
    pub(super) input: Input,
    pub(super) along: Along,
}

/// What a turn is told beside its task.
pub(super) struct Along {
    notes: Vec<Note>,
    /// The keys of the notes.
    keys: Vec<String>,
    /// What became of questions that held nobody up.
    ends: Vec<End>,
}

impl Brief {
    /// `anew`: the role had a session that cannot go on.
    pub(super) async fn make(
        turn: &Turn<'_>,
        session: Option<&SessionRef>,
        driver: &dyn Driver,
        claim: ClaimState,
        plan: &Plan,
        anew: Option<Anew>,
    ) -> Result<Self, Stop> {
        let question = match &turn.reply_to {
            Some(id) => Some(turn.context.store().question(id.clone()).await?.ok_or(Stop::Stale)?),
            None => None,
        };
        let Some(session) = session else {
            // There is no session that could know anything: a new one is told all there is.
            let along = turn.along(false).await?;
            let text = text(turn, &along, question.as_ref()).await?;
            let text = match anew {
                Some(why) => prompt::anew(why, &text),
                None => text,
            };
            return Ok(Brief { input: Input::Message(text), along });
        };
        let started_before = claim >= ClaimState::Spawned;
        if let Some(question) = &question {
            let mut reply = reply(turn, question).await?;
            let asked_it = asked_it(session, question);
            let held = claim == ClaimState::Delivered
                || (started_before && holds(turn, driver, session, question).await);
            if held {
                // The conversation has it: it is not told again.
                let along = turn.along(true).await?;
                let task = prompt::again(&text(turn, &along, None).await?);
                return Ok(Brief { input: Input::Continue(task), along });
            }
            if asked_it {
                let along = turn.along(false).await?;
                let text = prompt::ends(&along.ends) + &prompt::notes(&along.notes);
                text.trim().clone_into(&mut reply.notes);
                reply.notes_are_secret = along.ends.iter().any(|end| end.is_secret);
                return Ok(Brief { input: Input::Reply(Box::new(reply)), along });
            }
        }
        let goes_on = plan.cut_off && started_before;
        let along = turn.along(goes_on).await?;
        let text = text(turn, &along, question.as_ref()).await?;
        let input = if goes_on { Input::Continue(prompt::again(&text)) } else { Input::Message(text) };
        Ok(Brief { input, along })
    }
}

impl Along {
    /// The session has what became of its questions: the store forgets their secrets.
    pub(super) async fn was_heard(&self, turn: &Turn<'_>) -> Result<(), Stop> {
        for end in &self.ends {
            turn.context.store().forget(end.question_id.clone()).await?;
        }
        Ok(())
    }

    /// The turn has come to an end of its own: its notes were read and are taken away.
    pub(super) async fn was_read(&self, turn: &Turn<'_>) -> Result<(), Stop> {
        Ok(forget_notes(turn.context.store(), &self.keys).await?)
    }
}

impl Turn<'_> {
    /// The notes that lie there for it, and the ends of questions. A turn that goes on has the notes that lay there when it
    /// began; its engine may need no word for that, so the others wait for the next turn.
    pub(super) async fn along(&self, goes_on: bool) -> Result<Along, Stop> {
        let found = notes_for(self.context.store(), &self.feature.id, self.role).await?;
        let began = self.feature.work.turn.as_ref().map(|turn| turn.since).filter(|_| goes_on);
        let lay_there = |note: &Note| began.is_none_or(|began| note.at <= began);
        let (keys, notes) = found.into_iter().filter(|(_, note)| lay_there(note)).unzip();
        let mut ends = Vec::new();
        for question in self.closed_meanwhile().await? {
            let words = reply(self, &question).await?.words;
            let (asked, is_secret) = (question.asked.prompt.clone(), question.asked.has_secret());
            ends.push(End { question_id: question.id, asked, words, is_secret });
        }
        Ok(Along { notes, keys, ends })
    }

    /// The last questions of the feature that were closed without an answer and not asked again, latest first.
    async fn unanswered(&self, limit: usize) -> Result<Vec<Question>, Stop> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let (feature, filter) = (Some(self.feature.id.clone()), QuestionFilter::All);
        let page = QuestionPage { feature, filter, after: None, limit: usize::MAX };
        let all = self.context.store().questions(page).await?;
        let again: Vec<QuestionId> =
            all.iter().filter_map(|question| question.reopened_from.clone()).collect();
        let without_answer = |question: &Question| match question.state {
            QuestionState::Expired { .. } | QuestionState::Withdrawn { .. } => !again.contains(&question.id),
            QuestionState::Open | QuestionState::Answered { .. } => false,
        };
        Ok(all.into_iter().rev().filter(without_answer).take(limit).collect())
    }
}

/// Whether it was this conversation that asked and still waits. Another has no call that could be answered, and neither
/// has one that a person asked again after all: they are told in words.
fn asked_it(session: &SessionRef, question: &Question) -> bool {
    match &question.asked.engine_ref {
        Some(asker) => asker.engine == session.engine.as_str() && asker.session == session.session,
        None => question.reopened_from.is_none(),
    }
}

/// Whether the engine's own record of this conversation has the end of a question.
pub(super) async fn holds(
    turn: &Turn<'_>,
    driver: &dyn Driver,
    session: &SessionRef,
    question: &Question,
) -> bool {
    let asker = question.asked.engine_ref.as_ref().filter(|_| asked_it(session, question));
    let (id, call) = (question.id.to_string(), asker.and_then(|asker| asker.call_id.clone()));
    let project = turn.context.settings.root.clone();
    driver.holds_reply(project, session.clone(), id, call).await == Some(true)
}

/// The end of a question for the session that asked it.
pub(super) async fn reply(turn: &Turn<'_>, question: &Question) -> Result<Reply, Stop> {
    let secret = turn.context.store().reveal(question.id.clone()).await?;
    if question.is_open() {
        return Err(Stop::Stale);
    }
    // An answer whose secret is gone is none: the words say so, and nothing is handed over in its place.
    let (kind, answer) = match question.whole_answer(secret.as_ref()) {
        Some(answer) => (ReplyKind::Answered, answer),
        None => (ReplyKind::Unanswered, Value::Null),
    };
    let said = words::ending_before_a_turn(question, secret.as_ref()).unwrap_or_default();
    Ok(Reply {
        question_id: question.id.to_string(),
        call_id: question.asked.engine_ref.as_ref().and_then(|engine| engine.call_id.clone()),
        kind,
        answer,
        question: json!(question),
        words: format!("The end of your question {}: {said}", question.id),
        notes: String::new(),
        notes_are_secret: false,
    })
}

/// Everything that a turn is told, as one text.
async fn text(turn: &Turn<'_>, along: &Along, told: Option<&Question>) -> Result<String, Stop> {
    let store = turn.context.store();
    let id = &turn.feature.id;
    let limit = turn.context.service.rules.human_input.context_answer_history_limit as usize;
    let view = store.view(id.clone(), limit).await?.ok_or(Stop::Stale)?;
    let (mut answers, mut unanswered) = (view.answers, turn.unanswered(limit).await?);
    // It stands by itself: the answer may be secret, and it may be that nobody gave one. So does what comes along, and so
    // will what it is still owed.
    let owed = turn.feature.work.replies.iter().filter(|reply| reply.role.as_str() == turn.role.as_str());
    let by_itself: Vec<_> = owed
        .map(|reply| &reply.question_id)
        .chain(along.ends.iter().map(|end| &end.question_id))
        .chain(told.map(|told| &told.id))
        .collect();
    answers.retain(|question| !by_itself.contains(&&question.id));
    unanswered.retain(|question| !by_itself.contains(&&question.id));
    let ended = match told {
        Some(told) => Some((told.asked.prompt.clone(), reply(turn, told).await?.words)),
        None => None,
    };
    let mut results: [Option<Map<String, Value>>; 3] = [None, None, None];
    for (place, role) in Role::ALL.iter().enumerate() {
        let document = store.document(Shelf::Results, format!("{id}/{}", result_name(*role))).await?;
        results[place] = document.and_then(|document| document["result"].as_object().cloned());
    }
    let [plan, changes, verdict] = &results;
    let check = store.document(Shelf::Results, report_key(&turn.feature)).await?;
    let check: Option<CheckReport> = check.and_then(|document| serde_json::from_value(document).ok());
    let failure = store.document(Shelf::Results, failure_key(&turn.feature, turn.role)).await?;
    let failure: Option<Failure> = failure.and_then(|document| serde_json::from_value(document).ok());
    Ok(prompt::briefing(&Briefing {
        role: turn.role,
        mode: turn.mode,
        feature_id: id.as_str(),
        title: &turn.feature.title,
        spec: view.spec.as_deref(),
        plan: plan.as_ref(),
        changes: changes.as_ref(),
        verdict: verdict.as_ref(),
        check: check.as_ref(),
        failure: failure.as_ref(),
        open: &view.open,
        answers: &answers,
        unanswered: &unanswered,
        ended: ended.as_ref().map(|(asked, words)| (asked.as_str(), words.as_str())),
        ends: &along.ends,
        notes: &along.notes,
        schema: schema_of(turn.role),
    }))
}
