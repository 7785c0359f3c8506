//! A prompt that is shown while the program waits for something else. Whichever comes first ends both.

use super::draw::pause;
use super::{Reply, Wanted, ask, stopped};
use aop_kernel::question::Question;
use aop_kernel::time::Timestamp;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::Store;
use serde_json::Value;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long somebody who was typing may pause where a script or a run goes on.
pub(crate) const QUIET: Duration = Duration::from_secs(10);

/// How often it is looked whether they do.
const LOOK: Duration = Duration::from_millis(500);

/// A prompt on a thread of its own. Dropping it takes it away and gives the terminal back as it was.
pub(crate) struct Beside {
    reply: Option<oneshot::Receiver<Result<Reply, Refusal>>>,
    wanted: Wanted,
    thread: Option<JoinHandle<()>>,
}

impl Beside {
    /// Shows the question, with an answer to begin with if there is one.
    pub(crate) fn start(question: Question, begun: Option<Value>) -> Self {
        Beside::show(move |wanted| ask(&question, begun.as_ref(), wanted))
    }

    fn show(prompt: impl FnOnce(&Wanted) -> Result<Reply, Refusal> + Send + 'static) -> Self {
        let (sender, receiver) = oneshot::channel();
        let wanted = Wanted::default();
        let shown = wanted.clone();
        let thread = std::thread::spawn(move || {
            // Nobody listens any more when the question was closed elsewhere.
            let _ = sender.send(prompt(&shown));
        });
        Beside { reply: Some(receiver), wanted, thread: Some(thread) }
    }

    /// Takes the prompt of a question that is closed away: whether somebody was typing there. `None` when nothing was
    /// there any more.
    pub(crate) fn take_away(self) -> Option<Typing> {
        self.reply.as_ref()?;
        let wanted = self.wanted.clone();
        // What was typed is told before anything else is.
        drop(self);
        Some(if wanted.typed() > 0 { Typing::Yes } else { Typing::No })
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
                .hint("answer with `aop answer QUESTION_ID ANSWER`")),
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
    Closed(Box<Question>, Typing),
}

/// Whether somebody was typing when a prompt was taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typing {
    Yes,
    No,
}

/// Lets whoever was typing come to an end before anything else reads what they type, be it the shell. They end it with
/// Enter, or by pressing nothing for so long where something goes on that cannot wait for them. False when they want to
/// stop.
pub(crate) async fn typed_out(quiet: Option<Duration>) -> Result<bool, Refusal> {
    let by_itself = quiet.map(|quiet| format!(", or type nothing for {} s", quiet.as_secs()));
    let pause = Beside::show(move |wanted| match pause(&by_itself.unwrap_or_default(), wanted) {
        Ok(()) => Ok(Reply::Skipped),
        Err(stop) => stopped(stop),
    });
    let keys = pause.wanted.clone();
    let mut here = Some(pause);
    let (mut typed, mut since) = (0, Instant::now());
    loop {
        if let Ok(said) = tokio::time::timeout(LOOK, Beside::next(&mut here)).await {
            return Ok(!matches!(said?, Reply::Interrupted));
        }
        if keys.typed() != typed {
            (typed, since) = (keys.typed(), Instant::now());
        }
        if quiet.is_some_and(|quiet| since.elapsed() >= quiet) {
            return Ok(true);
        }
    }
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
            let typing = here.and_then(Beside::take_away).unwrap_or(Typing::No);
            return Ok(Ended::Closed(Box::new(closed), typing));
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
