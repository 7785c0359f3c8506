//! A host with the real store behind it, as small as it can be. The supervisor is the real one.

use crate::support::Project;
use aop_engine::{
    Asked, Host, HostError, Input, Limits, Pending, Progress, Reply, ReplyKind, SessionRef, TurnRequest,
};
use aop_kernel::ids::QuestionId;
use aop_kernel::policy::{HumanInput, Rules};
use aop_kernel::question::{Question, QuestionState};
use aop_kernel::role::{Caller, Role};
use aop_kernel::tools::Tool;
use aop_store::{Service, SqliteStore, SystemClock};
use aop_turn::Mode;
use aop_turn::command::Permissions;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) const FEATURE: &str = "shop";

/// A host of one feature.
pub(super) struct StoreHost {
    service: Service,
    sessions: Mutex<Vec<SessionRef>>,
    pub(super) progress: Mutex<Vec<Progress>>,
}

impl StoreHost {
    pub(super) fn new(project: &Project) -> Arc<Self> {
        StoreHost::at(project.root())
    }

    /// The host of the project in this folder.
    pub(super) fn at(root: &Path) -> Arc<Self> {
        let rules = Rules {
            human_input: HumanInput::default(),
            check_schema: aop_schema::check_schema,
            check_instance: aop_schema::check_instance,
        };
        let store = SqliteStore::open(&root.join(".aop"), Arc::new(SystemClock)).unwrap();
        Arc::new(StoreHost {
            service: Service::new(Arc::new(store), Arc::new(rules)),
            sessions: Mutex::default(),
            progress: Mutex::default(),
        })
    }

    /// The conversation that was announced last.
    pub(super) fn session_ref(&self) -> SessionRef {
        self.sessions.lock().unwrap().last().unwrap().clone()
    }

    /// The questions of the feature, the oldest first.
    pub(super) async fn questions(&self) -> Vec<String> {
        let caller = Caller { role: Role::Orchestrator, feature: None };
        let input = json!({"feature_id": FEATURE, "status": "all"});
        let listed = self.service.call(Tool::QuestionList, &caller, &input, "test").await.unwrap();
        let items = listed.data()["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["question_id"].as_str().unwrap().to_owned()).collect()
    }

    /// The n-th question (from 1), as soon as it is there.
    pub(super) async fn nth_question(&self, nth: usize) -> String {
        loop {
            if let Some(id) = self.questions().await.into_iter().nth(nth - 1) {
                return id;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(super) async fn question(&self, id: &str) -> Question {
        self.service.store.question(QuestionId::parse(id).unwrap()).await.unwrap().unwrap()
    }

    /// The end of a question, as a parked session is told.
    pub(super) async fn reply(&self, id: &str, call_id: Option<String>) -> Option<Reply> {
        let question = self.question(id).await;
        let (kind, answer) = match &question.state {
            QuestionState::Open => return None,
            QuestionState::Answered { answer, .. } => (ReplyKind::Answered, answer.clone()),
            QuestionState::Expired { .. } | QuestionState::Withdrawn { .. } => {
                (ReplyKind::Unanswered, Value::Null)
            }
        };
        let words = format!("the end of {id}: {answer}");
        let (question_id, question, notes) = (id.to_owned(), json!(question), String::new());
        Some(Reply { question_id, call_id, kind, answer, question, words, notes, notes_are_secret: false })
    }
}

impl Host for StoreHost {
    fn session(&self, session: SessionRef) -> Pending<'_, Result<(), HostError>> {
        self.sessions.lock().unwrap().push(session);
        Box::pin(async { Ok(()) })
    }

    fn ask(&self, arguments: Value, call_id: String) -> Pending<'_, Result<Asked, HostError>> {
        Box::pin(async move {
            let session = self.session_ref().session;
            let mut input = arguments;
            input["feature_id"] = FEATURE.into();
            input["role"] = "planner".into();
            input["session_id"] = session.clone().into();
            input["operation_id"] = format!("{session}/{call_id}").into();
            let caller = Caller { role: Role::Orchestrator, feature: None };
            let envelope = self.service.call(Tool::QuestionCreate, &caller, &input, "test").await;
            let envelope = envelope.map_err(|refusal| HostError(refusal.message))?;
            let question_id = envelope.data()["question_id"].as_str().unwrap().to_owned();
            Ok(match self.reply(&question_id, Some(call_id)).await {
                Some(reply) => Asked::Settled(Box::new(reply)),
                None => Asked::Recorded { question_id },
            })
        })
    }

    fn await_reply(
        &self,
        question_id: String,
        patience: Duration,
    ) -> Pending<'_, Result<Option<Reply>, HostError>> {
        Box::pin(async move {
            let end = tokio::time::Instant::now() + patience;
            while tokio::time::Instant::now() < end {
                if let Some(reply) = self.reply(&question_id, None).await {
                    return Ok(Some(reply));
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Ok(None)
        })
    }

    fn progress(&self, progress: Progress) {
        self.progress.lock().unwrap().push(progress);
    }
}

/// The first turn of a planner.
pub(super) fn turn(project: &Project, run: &str, input: Input) -> TurnRequest {
    turn_at(project.root(), run, input)
}

/// The same in this folder.
pub(super) fn turn_at(project: &Path, run: &str, input: Input) -> TurnRequest {
    let run_dir = project.join(".aop/runs").join(run);
    std::fs::create_dir_all(&run_dir).unwrap();
    let cwd = project.join("work");
    std::fs::create_dir_all(&cwd).unwrap();
    TurnRequest {
        feature_id: FEATURE.into(),
        role: aop_turn::Role::Planner,
        claim: format!("claim-{run}"),
        mode: Mode::Interactive,
        attempt: 1,
        may_ask: true,
        permissions: Permissions::Auto,
        project: project.to_owned(),
        cwd,
        run_dir,
        session: None,
        input,
        instructions: String::new(),
        output_schema: None,
        limits: Limits::default(),
        warm: Duration::ZERO,
    }
}
