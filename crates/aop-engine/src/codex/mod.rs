//! Codex, by way of its app-server.
//!
//! The agent asks through its own tool; the question is recorded, the process is killed at once (it must not notice),
//! and the resumed conversation gets the answer as the output of the very call that asked. Nothing of the user's own
//! Codex is touched: every project has a home of its own (`home`). Where the installed version cannot do that, `codex
//! exec` is used and asks are text (`exec`).

mod app;
mod asking;
pub(crate) mod card;
mod exec;
pub(crate) mod home;
mod opening;
pub(crate) mod permission;
mod program;
pub(crate) mod rollout;
mod start;
mod thread;
mod turn;
pub(crate) mod wire;
mod writer;

use crate::port::{Capabilities, Driver, EngineError, Host, Pending, SessionRef, TurnReport, TurnRequest};
use crate::process::Surroundings;
use aop_turn::Engine;
use program::Program;
pub(crate) use program::{OLDEST, TESTED};
use start::Place;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What it can do.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    native_ask: true,
    parks_to_nothing: true,
    inject_answer: true,
    resume_by_message: true,
    permission_questions: true,
    session_travels: false,
    session_named_by_us: false,
    self_test: true,
};

/// The driver.
#[derive(Debug)]
pub(crate) struct Codex {
    pub(crate) around: Surroundings,
}

impl Driver for Codex {
    fn engine(&self) -> Engine {
        Engine::Codex
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn run(&self, request: TurnRequest, host: Arc<dyn Host>) -> Pending<'_, Result<TurnReport, EngineError>> {
        Box::pin(async move {
            let home = home::prepare(&request.project, &self.around.env)?;
            let program = Program::find(&self.around, &home).await?;
            let place = Place { around: &self.around, program: &program, home: &home };
            if program.asks_natively() {
                start::run(place, &request, host).await
            } else {
                exec::run(place, &request, host).await
            }
        })
    }

    fn holds_reply(
        &self,
        project: PathBuf,
        session: SessionRef,
        question_id: String,
        call_id: Option<String>,
    ) -> Pending<'_, Option<bool>> {
        Box::pin(async move {
            let rollout = turn::conversation(&home::path(&project), &session.session).await?;
            Some(rollout.holds_reply(&question_id, call_id.as_deref()))
        })
    }
}

/// What `codex` is started with to show a person a conversation, before its handle. A program that cannot be used is
/// started plainly: it says itself what is the matter with it.
pub(crate) async fn interface(around: &Surroundings, project: &Path) -> Vec<String> {
    let found = Program::find(around, &home::path(project)).await;
    found.map_or_else(|_| vec!["resume".to_owned()], |program| program.interface())
}

/// What Codex says when it cannot find the thread that it is to resume.
const NO_THREAD: &str = "no rollout found";

fn gone(thread: &str, home: &Path) -> EngineError {
    let (session, cause) = (thread.to_owned(), format!("it is not in {}", home.display()));
    EngineError::ConversationGone { engine: Engine::Codex, session, cause }
}

fn unusable(cause: &str, hint: &str) -> EngineError {
    EngineError::Unusable { engine: Engine::Codex, cause: cause.to_owned(), hint: hint.to_owned() }
}
