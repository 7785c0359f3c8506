//! Claude Code: `claude -p` with a JSON stream, and a hook that turns its asks into questions.
//!
//! The hook (`aop hook claude`) commits a question and answers `defer`: the process ends by itself. When the
//! conversation is resumed, the engine runs the hook again for the same call, and the hook answers by the record: the
//! model gets a genuine result of its own call. The driver here starts the process, watches it, and tells a hook that
//! waits (a warm window, a sub-agent) when it may deliver.

mod answers;
mod asked;
mod hook;
pub(crate) mod message;
mod settings;
pub(crate) mod transcript;
mod turn;

pub use answers::answered_input;
pub use asked::{Noted, Waits, Word, word};
pub use hook::{Concern, Decision, HookCall, HookTurn};
pub use message::{Asks, asks_of_message};
pub(crate) use turn::NESTED;

use crate::port::{Capabilities, Driver, EngineError, Host, Pending, SessionRef, TurnReport, TurnRequest};
use crate::process::Surroundings;
use aop_turn::Engine;
use std::path::PathBuf;
use std::sync::Arc;

/// What it can do.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    native_ask: true,
    parks_to_nothing: true,
    inject_answer: true,
    resume_by_message: true,
    permission_questions: true,
    session_travels: false,
    session_named_by_us: true,
    self_test: true,
};

/// The driver.
#[derive(Debug)]
pub(crate) struct ClaudeCode {
    pub(crate) around: Surroundings,
}

impl Driver for ClaudeCode {
    fn engine(&self) -> Engine {
        Engine::ClaudeCode
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn run(&self, request: TurnRequest, host: Arc<dyn Host>) -> Pending<'_, Result<TurnReport, EngineError>> {
        Box::pin(async move { turn::run(&self.around, request, host).await })
    }

    fn holds_reply(
        &self,
        _project: PathBuf,
        session: SessionRef,
        question_id: String,
        call_id: Option<String>,
    ) -> Pending<'_, Option<bool>> {
        Box::pin(async move {
            match transcript::find(&self.around.env, &session.session) {
                Some(path) => transcript::holds(&path, &question_id, call_id.as_deref()),
                // A conversation that was never begun holds nothing.
                None => Some(false),
            }
        })
    }
}
