//! One turn: claimed, begun, run, judged, ended. Each of these is committed before the next begins, so that a turn that
//! is cut off anywhere is found again and goes on under the same claim, in the same session of its engine.

mod brief;
mod ended;
mod host;
mod past;
mod session;

pub(crate) use ended::Failure;
pub use session::session_of;
pub(crate) use session::{Kept, key as session_key, worktree_key};

use crate::SURFACE;
use crate::mode::mode_of;
use crate::phase::{self, schema_of};
use crate::prompt::Anew;
use crate::runner::{Context, Stop};
use aop_engine::{Driver, EngineError, Host, Input, SessionRef, TurnReport, TurnRequest};
use aop_kernel::feature::Feature;
use aop_kernel::ids::QuestionId;
use aop_kernel::lifecycle::{BeginTurn, Command};
use aop_kernel::own::OwnOperation;
use aop_kernel::question::Question;
use aop_kernel::tools::runner_request;
use aop_kernel::work::TurnInHand;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::{ClaimState, crash_point};
use aop_turn::judge::OutputSchema;
use aop_turn::patch::{PatchFor, patch};
use aop_turn::repair::{NextStep, next_step};
use aop_turn::{Engine, Mode, Outcome, Role, Rules, Verdict, judge};
use brief::{Along, Brief};
use ended::Ended;
use host::TurnHost;
use std::path::PathBuf;
use std::sync::Arc;

/// A turn to run.
pub(crate) struct Plan {
    /// What names it for ever.
    pub(crate) claim: String,
    /// The question whose end it begins with.
    pub(crate) reply_to: Option<QuestionId>,
    /// Whether it began before and was cut off.
    pub(crate) cut_off: bool,
}

/// A turn under way.
pub(super) struct Turn<'a> {
    pub(super) context: &'a Arc<Context>,
    pub(super) feature: Feature,
    pub(super) role: Role,
    pub(super) engine: Engine,
    pub(super) claim: String,
    pub(super) reply_to: Option<QuestionId>,
    /// The epoch that it began or was taken over with.
    pub(super) epoch: u64,
    pub(super) attempt: u32,
    /// Whether people may be asked.
    pub(super) mode: Mode,
}

/// Runs one turn to an end that is committed.
pub(crate) async fn run_turn(context: &Arc<Context>, feature: &Feature, plan: Plan) -> Result<(), Stop> {
    let Some(role) = phase::worker(feature.status) else { return Err(Stop::Stale) };
    let kept = session::load(context, &feature.id, role).await?;
    let is_elsewhere = kept.as_ref().is_some_and(|kept| !context.is_here(kept));
    let kept = kept.filter(|_| !is_elsewhere);
    let engine = engine_for(context, role, kept.as_ref(), plan.reply_to.is_some() || plan.cut_off);
    let stored = kept.map(|kept| kept.session).filter(|session| session.engine == engine);
    let driver = (context.drivers)(engine).map_err(|error| unavailable(&error, stored.is_some()))?;
    let (turn, found) = begin(context, feature, role, engine, &plan).await?;
    if plan.cut_off
        && let Some(ended) = turn.end_of_before(found).await?
    {
        // A question was asked for it when it was cut off: that is its outcome, whatever else it did.
        let along = turn.along(true).await?;
        return turn.end_and_forget(ended, &along).await;
    }
    let cwd = context.worktree(&turn.feature.id).await?;
    let driver = driver.as_ref();
    let anew = is_elsewhere.then_some(Anew::Elsewhere);
    let mut brief = Brief::make(&turn, stored.as_ref(), driver, found, &plan, anew).await?;
    context.store().advance_claim(turn.claim.clone(), turn.epoch, ClaimState::Spawned).await?;
    crash_point("turn_spawned");
    let ended = match turn.play(driver, stored, brief.input.clone(), cwd.clone()).await? {
        Played::Ended(ended) => ended,
        Played::ConversationGone(why) => {
            // Nothing was said in it. Another one is told all there is, and takes its place in the store as soon as it
            // has a name; until then whoever continues the turn finds the same.
            crash_point("conversation_gone");
            let what = format!("{why}; the {role} goes on in a new session that is told everything");
            context.say(&turn.feature.id, &what);
            brief = Brief::make(&turn, None, driver, found, &plan, Some(Anew::Gone)).await?;
            match turn.play(driver, None, brief.input.clone(), cwd).await? {
                Played::Ended(ended) => ended.with_warning(what),
                // A conversation that was just begun: this engine keeps none.
                Played::ConversationGone(why) => Ended::failed(why.to_string(), false),
            }
        }
    };
    crash_point("turn_played");
    turn.end_and_forget(ended, &brief.along).await
}

/// Commits the end of a turn whose phase was left in the middle of it. What it has asked is owed to its session, and so is
/// what it was to tell it: the session is told that when its worker has the feature again.
pub(crate) async fn leave_turn(
    context: &Arc<Context>,
    feature: &Feature,
    in_hand: TurnInHand,
) -> Result<(), Stop> {
    let Some(role) = phase::worker_role(in_hand.role) else { return Err(Stop::Stale) };
    let kept = session::load(context, &feature.id, role).await?;
    let engine = engine_for(context, role, kept.as_ref(), true);
    let plan = Plan { claim: in_hand.claim, reply_to: in_hand.reply_to, cut_off: true };
    let (turn, found) = begin(context, feature, role, engine, &plan).await?;
    let ended = turn.end_of_before(found).await?.unwrap_or_else(|| Ended::left(feature.status));
    let along = turn.along(true).await?;
    turn.end_and_forget(ended, &along).await
}

/// The engine of a role's turn. A session goes on with the engine it belongs to, whatever the settings say by now.
pub(crate) fn engine_for(context: &Context, role: Role, kept: Option<&Kept>, is_bound: bool) -> Engine {
    match kept {
        Some(kept) if is_bound => kept.session.engine,
        Some(_) | None => context.settings.engines.of(role),
    }
}

/// Claims the turn and begins it in the store. Gives how far the claim had come before.
async fn begin<'a>(
    context: &'a Arc<Context>,
    feature: &Feature,
    role: Role,
    engine: Engine,
    plan: &Plan,
) -> Result<(Turn<'a>, ClaimState), Stop> {
    let epoch = context.fence(&feature.id)?.epoch;
    let run = context.lease.info.run_id.to_string();
    let claim = context.store().claim(plan.claim.clone(), run.clone(), epoch).await?;
    if claim.state != ClaimState::Delivered && (claim.holder != run || claim.epoch != epoch) {
        return Err(context.lost());
    }
    crash_point("turn_claimed");
    let begin = Command::BeginTurn(BeginTurn {
        feature_id: feature.id.clone(),
        claim: plan.claim.clone(),
        epoch,
        role: phase::kernel_role(role),
        engine: engine.as_str().to_owned(),
        reply_to: plan.reply_to.clone(),
    });
    let id = OwnOperation::Begin.id(format_args!("{}:{epoch}:{}", plan.claim, feature.version))?;
    let envelope = context.submit(runner_request(begin, id, SURFACE)).await?;
    crash_point("turn_began");
    let attempt = envelope.data()["attempt"].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    let feature = context.store().feature(feature.id.clone()).await?.ok_or(Stop::Stale)?;
    let (claim_id, reply_to) = (plan.claim.clone(), plan.reply_to.clone());
    let mode = mode_for(context, &feature).await?;
    let turn = Turn { context, feature, role, engine, claim: claim_id, reply_to, epoch, attempt, mode };
    Ok((turn, claim.state))
}

/// The feature's own mode, or the run's. Nobody is asked where policy says that nobody can be.
pub(crate) async fn mode_for(context: &Context, feature: &Feature) -> Result<Mode, Stop> {
    if !context.service.rules.human_input.enabled {
        return Ok(Mode::Auto);
    }
    Ok(mode_of(context.store(), &feature.id).await?.unwrap_or(context.settings.mode))
}

/// A question whose end a session has not been told.
struct Owed {
    question: Question,
    /// Whether the turn asked it itself.
    is_own: bool,
}

/// What came of letting an engine play.
enum Played {
    /// The turn came to an end.
    Ended(Ended),
    /// The conversation to go on with is gone, for this reason. Nothing has happened.
    ConversationGone(EngineError),
}

impl Played {
    fn failed(message: String, delivered: bool) -> Self {
        Played::Ended(Ended::failed(message, delivered))
    }
}

impl Turn<'_> {
    /// Commits the end, and takes away what came along.
    async fn end_and_forget(&self, ended: Ended, along: &Along) -> Result<(), Stop> {
        let (unsure, heard) = (ended.is_unsure(), ended.was_heard());
        self.end(ended).await?;
        if heard {
            along.was_heard(self).await?;
        }
        // Whether an engine that failed has read a note nobody knows: it stays for the next try.
        if unsure { Ok(()) } else { along.was_read(self).await }
    }

    /// Lets the engine play in this session or a new one, with corrective rounds where its result fails its schema.
    async fn play(
        &self,
        driver: &dyn Driver,
        session: Option<SessionRef>,
        mut input: Input,
        cwd: PathBuf,
    ) -> Result<Played, Stop> {
        let has_session = session.is_some();
        let host = &Arc::new(TurnHost::new(self, session));
        let mut rounds = 0;
        let mut delivered = false;
        loop {
            let request = self.request(driver, host, input, cwd.clone(), rounds)?;
            let host_port: Arc<dyn Host> = Arc::<TurnHost>::clone(host);
            let ran = driver.run(request, host_port);
            let report = match self.context.until_stopped(&self.feature.id, ran).await? {
                Ok(report) => report,
                Err(EngineError::System { what, cause }) => {
                    return Ok(Played::failed(format!("{what}: {cause}"), delivered));
                }
                Err(gone @ EngineError::ConversationGone { .. }) if rounds == 0 => {
                    return Ok(Played::ConversationGone(gone));
                }
                Err(gone @ EngineError::ConversationGone { .. }) => {
                    return Ok(Played::failed(gone.to_string(), delivered));
                }
                Err(EngineError::Host(error)) => return Err(host.failure(error)),
                Err(error) => return Err(unavailable(&error, has_session).into()),
            };
            delivered |= report.delivered;
            host.settled(&report.asked).await?;
            let owed = self.owed_questions().await?;
            let verdict = self.judge(&report);
            if let Some(last) = owed.iter().find(|owed| owed.is_own).or(owed.first()) {
                let failed = matches!(verdict.outcome, Outcome::Error { .. });
                let heard = last.is_own || delivered || !failed;
                let ended = Ended::asked(&last.question, &owed, heard);
                let warnings = verdict.beside_a_question().into_iter();
                return Ok(Played::Ended(warnings.fold(ended, Ended::with_warning)));
            }
            match next_step(&verdict, rounds, self.context.settings.repair_rounds) {
                NextStep::Accept => {
                    return Ok(Played::Ended(Ended::judged(verdict, &report).having(delivered)));
                }
                NextStep::Repair { round, text } => {
                    rounds = round;
                    input = Input::Message(text);
                }
            }
        }
    }

    fn request(
        &self,
        driver: &dyn Driver,
        host: &TurnHost,
        input: Input,
        cwd: PathBuf,
        round: u32,
    ) -> Result<TurnRequest, Stop> {
        let settings = &self.context.settings;
        let run_dir = self.context.turn_dir(&self.feature.id, &self.claim, round)?;
        let artifacts = run_dir.join("artifacts").display().to_string();
        let (engine, mode, role) = (driver.engine(), self.mode, self.role);
        Ok(TurnRequest {
            feature_id: self.feature.id.to_string(),
            role,
            claim: self.claim.clone(),
            mode,
            attempt: self.attempt,
            may_ask: mode == Mode::Interactive && self.attempt < settings.max_attempt,
            permissions: settings.permissions,
            project: settings.root.clone(),
            cwd,
            run_dir,
            session: host.session_handle(),
            input,
            instructions: patch(&PatchFor { engine, mode, role, artifacts: &artifacts }),
            output_schema: Some(schema_of(role).clone()),
            limits: settings.limits,
            warm: settings.warm,
        })
    }

    fn judge(&self, report: &TurnReport) -> Verdict {
        let check = self.context.service.rules.check_instance;
        let rules = Rules {
            mode: self.mode,
            attempt: self.attempt,
            max_attempt: self.context.settings.max_attempt,
            schema: Some(OutputSchema { schema: schema_of(self.role), check: &check }),
            process: report.process,
        };
        judge(&report.turn, &rules)
    }

    /// With what a turn that was cut off had asked by then. Asked in words it is its end, also when nobody waits for it:
    /// what the engine would say now may be something else. Where only others have asked in its name, or its engine was
    /// never started, nobody knows whether the session has read what the turn began with.
    async fn end_of_before(&self, found: ClaimState) -> Result<Option<Ended>, Stop> {
        let owed = self.owed_questions().await?;
        let own = match owed.iter().find(|owed| owed.is_own) {
            _ if found < ClaimState::Spawned => None,
            Some(own) => Some(own.question.clone()),
            None => self.asked_in_words().await?,
        };
        if let Some(question) = own {
            return Ok(Some(Ended::asked(&question, &owed, true)));
        }
        Ok(owed.first().map(|last| Ended::asked(&last.question, &owed, false)))
    }

    /// Blocking questions that were committed for this turn and whose end its session has not been told, latest first.
    async fn owed_questions(&self) -> Result<Vec<Owed>, Stop> {
        let Some(in_hand) = &self.feature.work.turn else { return Ok(Vec::new()) };
        let asked = self.context.service.questions_since(&self.feature.id, in_hand.since).await?;
        let role = phase::kernel_role(self.role);
        // What a person asked again is not this turn's, unless this turn asked it first: it has a turn of its own.
        let is_own = |question: &Question| first_of(question, &asked).reopened_from.is_none();
        let owed =
            |question: &&Question| question.asked.role == role && question.asked.blocking && is_own(question);
        let is_asked_again =
            |question: &&Question| asked.iter().any(|new| new.reopened_from.as_ref() == Some(&question.id));
        let mut found = Vec::new();
        for question in asked.iter().rev().filter(owed).filter(|question| !is_asked_again(question)) {
            if !self.was_told(question).await? {
                let first = first_of(question, &asked);
                let is_own = self.context.has_asked(&self.feature, &first.id).await?;
                found.push(Owed { question: question.clone(), is_own });
            }
        }
        Ok(found)
    }

    /// Whether the session has the end of a question already: delivered live, or over MCP within the turn.
    async fn was_told(&self, question: &Question) -> Result<bool, Stop> {
        if question.is_open() {
            return Ok(false);
        }
        let store = self.context.store();
        let over_mcp = store.claim(format!("told:{}", question.id), "mcp".to_owned(), 1).await?;
        if over_mcp.state == ClaimState::Delivered {
            return Ok(true);
        }
        let run = self.context.lease.info.run_id.to_string();
        let subject = format!("reply:{}", question.id);
        let live = store.claim(subject.clone(), run, self.epoch).await?;
        match live.state {
            ClaimState::Delivered => Ok(true),
            // It was handed over by a turn that was cut off before its engine was known to have read it.
            ClaimState::Spawned if self.holds(question).await? => {
                store.advance_claim(subject, self.epoch, ClaimState::Delivered).await?;
                store.forget(question.id.clone()).await?;
                Ok(true)
            }
            ClaimState::Claimed | ClaimState::Spawned => Ok(false),
        }
    }

    /// Whether the role's session has the end of a question, as far as its engine can tell.
    async fn holds(&self, question: &Question) -> Result<bool, Stop> {
        let kept = session::load(self.context, &self.feature.id, self.role).await?;
        let kept = kept.filter(|kept| self.context.is_here(kept) && kept.session.engine == self.engine);
        match (kept, (self.context.drivers)(self.engine)) {
            (Some(kept), Ok(driver)) => {
                Ok(brief::holds(self, driver.as_ref(), &kept.session, question).await)
            }
            _ => Ok(false),
        }
    }
}

/// The question as it was asked first, by whoever asked it then, among these.
fn first_of<'a>(mut question: &'a Question, asked: &'a [Question]) -> &'a Question {
    let before =
        |question: &Question| asked.iter().find(|old| Some(&old.id) == question.reopened_from.as_ref());
    while let Some(old) = before(question) {
        question = old;
    }
    question
}

/// An engine that cannot be used at all: no retry would help. A session goes on with no other engine, so none is named
/// where there is one.
fn unavailable(error: &EngineError, has_session: bool) -> Refusal {
    let hint = match error {
        EngineError::NotInstalled { hint, others, .. } if !has_session && !others.is_empty() => {
            let commands: Vec<String> =
                others.iter().map(|other| format!("`aop run --engine {other}`")).collect();
            format!("{hint}, or use an engine that is installed: {}", commands.join(" or "))
        }
        EngineError::NotInstalled { hint, .. } | EngineError::Unusable { hint, .. } => hint.clone(),
        EngineError::ConversationGone { .. } | EngineError::System { .. } | EngineError::Host(_) => {
            ErrorCode::EngineUnavailable.page().remedy.to_owned()
        }
    };
    Refusal::new(ErrorCode::EngineUnavailable, error.to_string()).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_engine_is_named_where_it_could_go_on() {
        let missing = |others: &[Engine]| EngineError::NotInstalled {
            engine: Engine::ClaudeCode,
            program: "claude".to_owned(),
            hint: "install it".to_owned(),
            others: others.to_vec(),
        };
        let there = missing(&[Engine::Codex, Engine::Gemini]);
        let both = "install it, or use an engine that is installed: `aop run --engine codex` or `aop run --engine gemini`";
        assert_eq!(unavailable(&there, false).hint, both);
        assert_eq!(unavailable(&there, true).hint, "install it");
        assert_eq!(unavailable(&missing(&[]), false).hint, "install it");
    }
}
