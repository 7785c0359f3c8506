//! What a fake model says, in order.

use crate::received::Received;
use serde_json::Value;
use std::fmt;
use tokio::sync::watch;

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool as the program offers it to the model.
    pub name: String,
    /// The model's name for this call.
    pub id: String,
    /// Its arguments.
    pub input: Value,
    /// Where Codex keeps the tools of MCP servers apart.
    pub namespace: Option<String>,
}

impl Call {
    /// A call with arguments.
    pub fn new(name: &str, id: &str, input: Value) -> Self {
        Call { name: name.to_owned(), id: id.to_owned(), input, namespace: None }
    }

    /// The same in a namespace.
    #[must_use]
    pub fn of(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }
}

/// One message of the model.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(crate) says: Says,
    pub(crate) gate: Option<Gate>,
}

#[derive(Debug, Clone)]
pub(crate) enum Says {
    /// Words, then calls; either may be missing.
    Message { text: Option<String>, calls: Vec<Call> },
    /// The service refuses.
    Error { status: u16, message: String },
    /// The service never answers.
    Nothing,
}

impl Reply {
    /// Words, and the turn is over.
    pub fn text(text: &str) -> Self {
        Reply::says(Says::Message { text: Some(text.to_owned()), calls: Vec::new() })
    }

    /// One tool call.
    pub fn call(name: &str, id: &str, input: Value) -> Self {
        Reply::calls([Call::new(name, id, input)])
    }

    /// Several tool calls in one message.
    pub fn calls(calls: impl IntoIterator<Item = Call>) -> Self {
        Reply::says(Says::Message { text: None, calls: calls.into_iter().collect() })
    }

    /// The service answers with this HTTP status.
    pub fn error(status: u16, message: &str) -> Self {
        Reply::says(Says::Error { status, message: message.to_owned() })
    }

    /// The request is taken and never answered, for tests that kill somebody meanwhile.
    pub fn never() -> Self {
        Reply::says(Says::Nothing)
    }

    /// The same, and words before the calls.
    #[must_use]
    pub fn saying(mut self, words: &str) -> Self {
        if let Says::Message { text, .. } = &mut self.says {
            *text = Some(words.to_owned());
        }
        self
    }

    /// The same, once the gate is open.
    #[must_use]
    pub fn after(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    fn says(says: Says) -> Self {
        Reply { says, gate: None }
    }
}

/// Holds replies back until a test has done what it wants done meanwhile.
#[derive(Debug, Clone)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    /// A closed gate.
    pub fn closed() -> Self {
        Gate(watch::channel(false).0)
    }

    /// Lets everything through from now on.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn passed(&self) {
        // The sender lives in `self`, so this cannot fail before the gate opens.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

type Fits = Box<dyn Fn(&Received) -> bool + Send + Sync>;
type Makes = Box<dyn Fn(&Received) -> Reply + Send + Sync>;

/// What is said when.
#[derive(Default)]
pub struct Script {
    pub(crate) steps: Vec<Makes>,
    pub(crate) special: Vec<(Fits, Reply)>,
}

impl Script {
    /// Says nothing yet.
    pub fn new() -> Self {
        Script::default()
    }

    /// The answer to the next request of the main agent.
    #[must_use]
    pub fn then(self, reply: Reply) -> Self {
        self.then_with(move |_| reply.clone())
    }

    /// The same, made from what the request says: a model that uses what it was told.
    #[must_use]
    pub fn then_with(mut self, reply: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        self.steps.push(Box::new(reply));
        self
    }

    /// The answer to the first request of anybody (main agent, sub-agent or helper) that fits; used once, and
    /// before the steps in order.
    #[must_use]
    pub fn when(mut self, fits: impl Fn(&Received) -> bool + Send + Sync + 'static, reply: Reply) -> Self {
        self.special.push((Box::new(fits), reply));
        self
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let special: Vec<&Reply> = self.special.iter().map(|(_, reply)| reply).collect();
        out.debug_struct("Script").field("steps", &self.steps.len()).field("special", &special).finish()
    }
}
