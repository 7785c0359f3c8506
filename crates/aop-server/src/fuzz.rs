//! The doors with any bytes before them, for the fuzz targets: a new project in memory for each input, with a feature
//! `shop` and a question in it. In the bytes `QUESTION`, `COOKIE` and `CSRF` stand for what cannot be known beforehand;
//! the operator's token is `token`.

use crate::feed::Feed;
use crate::http::{App, Shared, listen, router};
use crate::secret::Sealed;
use crate::{Door, pages, stdio};
use aop_kernel::policy::{HumanInput, Rules};
use aop_kernel::role::{Caller, Role};
use aop_kernel::time::Timestamp;
use aop_kernel::tools::Tool;
use aop_store::{ManualClock, MemoryStore, Service, Store};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::sync::watch;

/// More than any answer to one input; nobody has to wait for a reader.
const ROOM: usize = 16 << 20;

/// Nothing takes this long.
const HANGS: Duration = Duration::from_secs(30);

/// One connection: every answer has a status, and none says that the server failed.
pub fn http(bytes: &[u8]) {
    wait(async {
        let (service, question) = project().await;
        let (switch, stopping) = watch::channel(false);
        let app = app(&service, stopping.clone()).await;
        let cookie = sure(app.sessions.open(None, None));
        let csrf = app.sessions.find(&cookie).map(|session| session.csrf).unwrap_or_default();
        let bytes = filled(bytes, &[("QUESTION", &question), ("COOKIE", &cookie), ("CSRF", &csrf)]);
        let (head_time, unread_time) = (Duration::from_secs(1), HANGS);
        let served = listen::Served { router: router(&app), head_time, unread_time, tls: None };
        let answers = talk(&bytes, |stream| {
            listen::connection(stream, SocketAddr::from(([127, 0, 0, 1], 1)), served, stopping)
        });
        // Streams of events have no end of their own; they have the server's.
        let stop = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            switch.send_replace(true);
            std::future::pending().await
        };
        let answers = tokio::select! { answers = answers => answers, () = stop => Vec::new() };
        let answers = String::from_utf8_lossy(&answers).into_owned();
        assert!(answers.is_empty() || answers.starts_with("HTTP/1."), "{answers}");
        for failed in ["HTTP/1.0 500", "HTTP/1.1 500"] {
            assert!(!answers.contains(failed), "{answers}");
        }
        whole(&service).await;
    });
}

/// One client of `aop mcp`: every line it gets is a message.
pub fn mcp(bytes: &[u8]) {
    wait(async {
        let (service, question) = project().await;
        let bytes = filled(bytes, &[("QUESTION", &question)]);
        let door = Door {
            service: service.clone(),
            caller: Caller::new(Role::Human),
            files: None,
            patience: Duration::ZERO,
            elicits: true,
            engine: None,
            signs: None,
            token: None,
            warn: |_| (),
        };
        let lines = talk(&bytes, |stream| async {
            let (reader, writer) = tokio::io::split(stream);
            // What it says about a client that is none is for people.
            let _ = stdio::serve(door, reader, writer).await;
        });
        for line in lines.await.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let said: Value = serde_json::from_slice(line).unwrap_or_default();
            let messages = said.as_array().map_or(std::slice::from_ref(&said), Vec::as_slice);
            let whole = !messages.is_empty() && messages.iter().all(|message| message["jsonrpc"] == "2.0");
            assert!(whole, "{}", String::from_utf8_lossy(line));
        }
        whole(&service).await;
    });
}

/// An agent's text as HTML.
pub fn markdown(text: &str) -> String {
    pages::markdown::render(text)
}

fn wait(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    sure(runtime).block_on(work);
}

fn sure<T>(result: Result<T, impl std::fmt::Debug>) -> T {
    result.unwrap_or_else(|error| panic!("{error:?}"))
}

/// Says all of it to a server and hangs up; what it answered.
async fn talk<S: Future<Output = ()>>(
    bytes: &[u8],
    server: impl FnOnce(tokio::io::DuplexStream) -> S,
) -> Vec<u8> {
    let (mut client, stream) = duplex(ROOM);
    let mut answers = Vec::new();
    let talking = async {
        // A server may hang up first.
        let _ = client.write_all(bytes).await;
        let _ = client.shutdown().await;
        let _ = client.read_to_end(&mut answers).await;
    };
    let both = async { tokio::join!(server(stream), talking) };
    assert!(tokio::time::timeout(HANGS, both).await.is_ok(), "the server does not hang up");
    answers
}

fn filled(bytes: &[u8], values: &[(&str, &str)]) -> Vec<u8> {
    let mut text: Vec<u8> = bytes.to_vec();
    for (name, value) in values {
        let mut rest = text.as_slice();
        let mut out = Vec::with_capacity(rest.len());
        while let Some(at) = rest.windows(name.len()).position(|window| window == name.as_bytes()) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(value.as_bytes());
            rest = &rest[at + name.len()..];
        }
        out.extend_from_slice(rest);
        text = out;
    }
    text
}

async fn project() -> (Service, String) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_772_661_600_000)));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock));
    let rules = Rules {
        human_input: HumanInput { max_open_questions_per_feature: 9, ..HumanInput::default() },
        check_schema: |_| Ok(()),
        check_instance: |_, _| Ok(()),
    };
    let service = Service::new(store, Arc::new(rules));
    let feature = json!({"feature_id": "shop", "title": "Shop", "operation_id": "op-1"});
    let question = json!({"feature_id": "shop", "role": "builder", "session_id": "s", "operation_id": "op-2",
        "question_type": "clarification", "prompt": "Which *one*?",
        "expected_answer": {"kind": "single_choice", "choices": ["A", "B"]}});
    let mut asked = String::new();
    for (tool, input) in [(Tool::FeatureCreate, feature), (Tool::QuestionCreate, question)] {
        let done = service.call(tool, &Caller::new(Role::Human), &input, "fuzz").await;
        let data = sure(done).data();
        asked = data["question_id"].as_str().unwrap_or_default().to_owned();
    }
    (service, asked)
}

pub(crate) async fn app(service: &Service, stopping: watch::Receiver<bool>) -> Shared {
    let store = &service.store;
    Arc::new(App {
        feed: sure(Feed::start(Arc::clone(store)).await),
        service: service.clone(),
        patience: Duration::ZERO,
        stopping,
        project: "fuzz".into(),
        address: SocketAddr::from(([127, 0, 0, 1], 80)),
        secure: false,
        hosts: Vec::new(),
        own_token: Sealed::of("token"),
        memories: Default::default(),
        pages: pages::Memory::of(None),
        sessions: Default::default(),
        failures: Default::default(),
    })
}

/// Whatever was said, the store is what its log says.
async fn whole(service: &Service) {
    let findings = sure(service.store.verify().await);
    assert!(findings.is_empty(), "{findings:?}");
}
