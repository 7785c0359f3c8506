//! A thread that speaks. Whoever reads stdout may pause for as long as they like, and a write waits for them; all else
//! that the program does goes on meanwhile.

use std::sync::mpsc::{Sender, channel};
use tokio::sync::oneshot;

type Words = Box<dyn FnOnce() + Send>;

/// The thread. It ends with the process when nobody reads its last words.
#[derive(Clone)]
pub(crate) struct Voice {
    words: Sender<Words>,
}

impl Voice {
    /// Starts it.
    pub(crate) fn start() -> Self {
        let (words, inbox) = channel::<Words>();
        std::thread::spawn(move || inbox.into_iter().for_each(|words| words()));
        Voice { words }
    }

    /// Says this behind all that was said before. What comes back says that it is out, and can be left alone.
    pub(crate) fn say<T: Send + 'static>(
        &self,
        words: impl FnOnce() -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (out, said) = oneshot::channel();
        // A thread that panicked says nothing more, and whoever waits for it learns that.
        let _ = self.words.send(Box::new(move || drop(out.send(words()))));
        said
    }
}
