//! A prompt that is shown while the program waits for something else. Whichever comes first ends both.

use super::{Reply, Wanted, ask};
use aop_kernel::question::Question;
use aop_kernel::time::Timestamp;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::Store;
use serde_json::Value;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// A prompt on a thread of its own. Dropping it takes it away and gives the terminal back as it was.
pub(crate) struct Beside {
    reply: Option<oneshot::Receiver<Result<Reply, Refusal>>>,
    wanted: Wanted,
    thread: Option<JoinHandle<()>>,
}

impl Beside {
    /// Shows the question, with an answer to begin with if there is one.
    pub(crate) fn start(question: Question, begun: Option<Value>) -> Self {
        let (sender, receiver) = oneshot::channel();
        let wanted = Wanted::default();
        let shown = wanted.clone();
        let thread = std::thread::spawn(move || {
            // Nobody listens any more when the question was closed elsewhere.
            let _ = sender.send(ask(&question, begun.as_ref(), &shown));
        });
        Beside { reply: Some(receiver), wanted, thread: Some(thread) }
    }

    /// Whether the prompt is still there.
    pub(crate) fn is_shown(&self) -> bool {
        self.reply.is_some()
    }

    /// What the human says at the prompt; never, when there is none or it has been heard.
    pub(crate) async fn next(beside: &mut Option<Beside>) -> Result<Reply, Refusal> {
        let Some(receiver) = beside.as_mut().and_then(|beside| beside.reply.as_mut()) else {
            return std::future::pending().await;
        };
        let said = receiver.await;
        if let Some(beside) = beside {
            beside.reply = None;
        }
        match said {
            Ok(said) => said,
            Err(_) => Err(Refusal::new(ErrorCode::Internal, "the prompt broke off")
                .hint("answer with `aop answer --feature-id ID --question-id QID --answer VALUE`")),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.wanted.withdraw();
        if let Some(thread) = self.thread.take() {
            // One that panicked has given the terminal back too.
            let _ = thread.join();
        }
    }
}

/// How a prompt beside its question ended.
pub(crate) enum Ended {
    /// With what the human said.
    Said(Reply),
    /// With the question, which was closed elsewhere or by the clock.
    Closed(Box<Question>),
}

/// Shows the question until the human has said something, or it is not open any more.
pub(crate) async fn ask_while_open(
    store: &dyn Store,
    question: &Question,
    begun: Option<Value>,
) -> Result<Ended, Refusal> {
    let mut changes = store.changes_of(&question.feature_id);
    let mut here = Some(Beside::start(question.clone(), begun));
    loop {
        // Marked as seen before reading, so that an answer in between wakes the wait below.
        changes.borrow_and_update();
        let stands = store.question(question.id.clone()).await?;
        if let Some(closed) = stands.filter(|stands| !stands.is_open()) {
            return Ok(Ended::Closed(Box::new(closed)));
        }
        let left = time_left(question, store.now().await?);
        tokio::select! {
            said = Beside::next(&mut here) => return said.map(Ended::Said),
            // Either way the question is looked at again.
            _ = tokio::time::timeout(left, changes.changed()) => {}
        }
    }
}

/// How long until the clock may have closed the question.
pub(crate) fn time_left(question: &Question, now: Timestamp) -> Duration {
    let left = question.expires_at.map(|at| at.as_millis().saturating_sub(now.as_millis()));
    left.map_or(Duration::from_secs(3600), |ms| Duration::from_millis(ms.unsigned_abs() + 1))
}
