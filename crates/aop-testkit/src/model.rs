//! The server: a thread of its own, so that tests of any kind can use it, gone when it is dropped.

use crate::received::{Part, Received};
use crate::script::{Reply, Says, Script};
use crate::wire::{Answer, Wire};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Headers that carry credentials.
const SECRET: &[&str] = &["authorization", "x-api-key", "x-goog-api-key", "cookie", "proxy-authorization"];

/// A model that is none: plays a script and keeps what it received.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    wire: Wire,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    wire: Wire,
    state: Mutex<Play>,
    changed: Condvar,
}

#[derive(Debug)]
struct Play {
    script: Script,
    next: usize,
    unscripted: usize,
    received: Vec<Received>,
}

impl FakeModel {
    /// Listens on a free port of the loopback interface.
    pub fn start(wire: Wire, script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let play = Play { script, next: 0, unscripted: 0, received: Vec::new() };
        let shared = Arc::new(Shared { wire, state: Mutex::new(play), changed: Condvar::new() });
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let app =
            Router::new().fallback(answer).layer(DefaultBodyLimit::disable()).with_state(Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("fake-model".to_owned()).spawn(move || {
            // Dropping the runtime ends the connections that wait for an answer which never comes.
            runtime.block_on(async {
                tokio::select! {
                    _ = axum::serve(listener, app) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(FakeModel { address, wire, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The base URL that the programs of this wire format want.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.wire.base_path())
    }

    /// The format it speaks.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Adds to the script while it plays.
    pub fn extend(&self, more: Script) {
        let mut play = self.shared.lock();
        play.script.steps.extend(more.steps);
        play.script.special.extend(more.special);
    }

    /// Everything that was received so far.
    pub fn received(&self) -> Vec<Received> {
        self.shared.lock().received.clone()
    }

    /// The requests of the main agent so far.
    pub fn main(&self) -> Vec<Received> {
        self.received().into_iter().filter(|request| request.part == Part::Main).collect()
    }

    /// The latest request of the main agent: the conversation as the model knows it.
    pub fn conversation(&self) -> Option<Received> {
        self.main().pop()
    }

    /// What the model was told about a call, by its latest conversation.
    pub fn results_of(&self, call_id: &str) -> Vec<String> {
        self.conversation().map(|request| request.results_of(call_id)).unwrap_or_default()
    }

    /// The user's texts in the latest conversation.
    pub fn user_messages(&self) -> Vec<String> {
        self.conversation().map(|request| request.user_messages()).unwrap_or_default()
    }

    /// Requests of agents for which the script had nothing left. They were told so.
    pub fn unscripted(&self) -> usize {
        self.shared.lock().unscripted
    }

    /// Waits until something like this was received, and gives the first. Blocks the thread.
    pub fn wait_for(&self, fits: impl Fn(&Received) -> bool, patience: Duration) -> Option<Received> {
        let end = Instant::now() + patience;
        let mut play = self.shared.lock();
        loop {
            if let Some(found) = play.received.iter().find(|request| fits(request)) {
                return Some(found.clone());
            }
            let left = end.checked_duration_since(Instant::now())?;
            play = self.shared.changed.wait_timeout(play, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the n-th request (from 1) of the main agent. Blocks the thread.
    pub fn wait_for_main(&self, nth: usize, patience: Duration) -> Option<Received> {
        let end = Instant::now() + patience;
        let mut play = self.shared.lock();
        loop {
            let found = play.received.iter().filter(|request| request.part == Part::Main).nth(nth - 1);
            if let Some(found) = found {
                return Some(found.clone());
            }
            let left = end.checked_duration_since(Instant::now())?;
            play = self.shared.changed.wait_timeout(play, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Play> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the request and says what to answer; none when that is not the script's business.
    fn take(&self, request: Received, asks_model: bool) -> Option<Reply> {
        let mut play = self.lock();
        let reply = if asks_model { play.reply_to(&request) } else { None };
        play.received.push(request);
        self.changed.notify_all();
        reply
    }
}

impl Play {
    fn reply_to(&mut self, request: &Received) -> Option<Reply> {
        if let Some(place) = self.script.special.iter().position(|(fits, _)| fits(request)) {
            return Some(self.script.special.remove(place).1);
        }
        match request.part {
            Part::Helper => None,
            Part::SubAgent => Some(Reply::text("(fake) done")),
            Part::Main => {
                let step = self.script.steps.get(self.next).map(|makes| makes(request));
                self.next += 1;
                Some(step.unwrap_or_else(|| {
                    self.unscripted += 1;
                    Reply::text("(fake) the script has nothing more to say")
                }))
            }
        }
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let wire = shared.wire;
    let path = uri.path_and_query().map_or_else(|| uri.path().to_owned(), ToString::to_string);
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let kept = headers.iter().filter(|(name, _)| !SECRET.contains(&name.as_str()));
    let headers: Vec<(String, String)> = kept
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let asks_model = method == Method::POST && wire.asks_model(&path);
    let part = if asks_model { wire.part(&path, &headers, &body) } else { Part::Helper };
    let request = Received { wire, method: method.to_string(), path, headers, body, part };
    let scripted = shared.take(request.clone(), asks_model);
    let Some(reply) = scripted else {
        return respond(wire.helped(&request));
    };
    if let Some(gate) = &reply.gate {
        gate.passed().await;
    }
    match &reply.says {
        Says::Nothing => std::future::pending().await,
        Says::Error { status, message } => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let error = json!({"type": "error", "error": {"type": "api_error", "code": status.as_u16(),
                "status": "UNAVAILABLE", "message": message}});
            (status, axum::Json(error)).into_response()
        }
        Says::Message { text, calls } => respond(wire.said(&request, text.as_deref(), calls)),
    }
}

fn respond(answer: Answer) -> Response {
    match answer {
        Answer::Document(value) => axum::Json(value).into_response(),
        Answer::Events(text) => ([(header::CONTENT_TYPE, "text/event-stream")], text).into_response(),
    }
}
