//! A prompt that is shown while the program waits for something else. Whichever comes first ends both.

use super::{Reply, ask};
use aop_kernel::Refusal;
use aop_kernel::question::Question;
use tokio::sync::oneshot;

/// A prompt on a thread of its own. Dropping it gives the terminal back as it was.
pub(crate) struct Beside {
    reply: Option<oneshot::Receiver<Result<Reply, Refusal>>>,
}

impl Beside {
    /// Shows the question.
    pub(crate) fn start(question: Question) -> Self {
        let (sender, receiver) = oneshot::channel();
        std::thread::spawn(move || {
            // Nobody listens any more when the question was closed elsewhere.
            let _ = sender.send(ask(&question));
        });
        Beside { reply: Some(receiver) }
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
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if self.is_shown() {
            // The prompt still holds the terminal; leaving it so would spoil the shell.
            let _ = crossterm::terminal::disable_raw_mode();
            let erase = crossterm::terminal::Clear(crossterm::terminal::ClearType::FromCursorDown);
            let _ = crossterm::execute!(
                std::io::stderr(),
                crossterm::cursor::MoveToColumn(0),
                erase,
                crossterm::cursor::Show
            );
        }
    }
}
