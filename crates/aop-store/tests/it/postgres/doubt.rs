//! A connection that breaks at the worst moment: around the commit. Whether it was carried out is found out, never
//! guessed, and the caller notices nothing.

use super::live;
use crate::support::{new_project, wait};
use aop_kernel::event::Event;
use aop_kernel::role::Role;
use aop_store::{ClaimState, Expect, PostgresOptions, Shelf};
use serde_json::json;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// When to cut a connection that carries these words.
#[derive(Debug, Clone)]
struct Cut {
    /// All of them in this order, from the client.
    words: Vec<&'static str>,
    /// Whether the server still gets to hear them, and only its answer is lost.
    arrives: bool,
}

/// A way to the server that can be cut.
struct Wire {
    dir: TempDir,
    cut: Arc<Mutex<Option<Cut>>>,
}

impl Wire {
    /// In front of the server that has its socket in this folder.
    fn to(server: PathBuf) -> Self {
        let dir = TempDir::with_prefix("wire").unwrap();
        let cut = Arc::new(Mutex::new(None));
        let listener = UnixListener::bind(dir.path().join(".s.PGSQL.5432")).unwrap();
        let armed = Arc::clone(&cut);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), UnixStream::connect(&server).unwrap());
                let armed = Arc::clone(&armed);
                std::thread::spawn(move || carry(&client, &server, &armed));
            }
        });
        Wire { dir, cut }
    }

    fn arm(&self, words: &[&'static str], arrives: bool) {
        *self.cut.lock().unwrap() = Some(Cut { words: words.to_vec(), arrives });
    }

    fn was_cut(&self) -> bool {
        self.cut.lock().unwrap().is_none()
    }
}

/// Carries both ways until one side ends or the wire is cut.
fn carry(client: &UnixStream, server: &UnixStream, armed: &Arc<Mutex<Option<Cut>>>) {
    let deaf = Arc::new(Mutex::new(false));
    let (from, to, silent) = (server.try_clone().unwrap(), client.try_clone().unwrap(), Arc::clone(&deaf));
    std::thread::spawn(move || {
        let (mut from, mut to, mut buffer) = (from, to, vec![0; 65_536]);
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if *silent.lock().unwrap() {
                // The answer is there, so it has been done; nobody hears of it.
                break;
            }
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
    });
    let (mut from, mut to, mut buffer) = (client, server, vec![0; 65_536]);
    let mut heard = Vec::new();
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        heard.extend_from_slice(&buffer[..length]);
        let mut cut = armed.lock().unwrap();
        if cut.as_ref().is_some_and(|cut| in_order(&heard, &cut.words)) {
            let cut = cut.take().unwrap();
            if !cut.arrives {
                break;
            }
            *deaf.lock().unwrap() = true;
        }
        drop(cut);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
        heard.drain(..heard.len().saturating_sub(200_000));
    }
    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}

fn in_order(heard: &[u8], words: &[&str]) -> bool {
    let mut rest = heard;
    words.iter().all(|word| match rest.windows(word.len()).position(|window| window == word.as_bytes()) {
        Some(at) => {
            rest = &rest[at + word.len()..];
            true
        }
        None => false,
    })
}

/// A project behind a wire.
fn behind_a_wire() -> (Wire, PostgresOptions) {
    let direct = new_project();
    let address = direct.place();
    let (socket, database) = address.strip_prefix("postgres://aop@").unwrap().split_once(":5432/").unwrap();
    let wire = Wire::to(PathBuf::from(socket).join(".s.PGSQL.5432"));
    let folder = wire.dir.path().display().to_string().replace('/', "%2F");
    let options = PostgresOptions::parse(&format!("postgres://aop@{folder}:5432/{database}")).unwrap();
    let options = options.project(direct.project_id().unwrap());
    (wire, options)
}

#[test]
fn a_mutation_whose_commit_was_cut_is_written_once_and_acknowledged() {
    let (wire, options) = behind_a_wire();
    let w = live(&options);
    wait(w.feature("a"));
    for (number, arrives) in [true, false, true, false].into_iter().enumerate() {
        let note = ["first-note", "second-note", "third-note", "fourth-note"][number];
        wire.arm(&[note, "COMMIT\0"], arrives);
        let input = json!({"feature_id": "a", "note": note, "operation_id": note});
        let request = crate::support::request(&w, Role::Human, "feature.log_append", &input);
        let receipt = wait(w.store.submit(request.clone(), Arc::new(w.rules()))).unwrap();
        assert!(wire.was_cut());
        assert!(receipt.fresh, "it was this very call that did it (arrives: {arrives})");
        let again = wait(w.store.submit(request, Arc::new(w.rules()))).unwrap();
        assert_eq!((again.fresh, again.envelope), (false, receipt.envelope));
    }
    let log = wait(w.events());
    let notes = log.iter().filter(|event| matches!(event.stamped.event, Event::Noted { .. })).count();
    assert_eq!((notes, log.len()), (4, 5));
    wait(w.check());
}

#[test]
fn a_question_whose_commit_was_cut_is_asked_once() {
    let (wire, options) = behind_a_wire();
    let w = live(&options);
    wait(w.feature("a"));
    wire.arm(&["Which way?", "COMMIT\0"], true);
    let id = wait(w.ask("a"));
    assert!(wire.was_cut());
    assert_eq!(wait(w.list("a", "all")), [id]);
    wait(w.check());
}

#[test]
fn a_claim_a_lease_and_a_document_that_were_cut_are_recognised() {
    let (wire, options) = behind_a_wire();
    let w = live(&options);
    wait(async {
        for arrives in [true, false] {
            let subject = format!("turn:{arrives}");
            wire.arm(&["runner-1"], arrives);
            let take = || w.store.acquire_lease(subject.clone(), "runner-1".into(), 60_000);
            let lease = take().await.unwrap().unwrap();
            assert_eq!(take().await.unwrap().unwrap().epoch, lease.epoch, "one holding, not two");
            wire.arm(&["runner-2"], arrives);
            let claim = w.store.claim(subject.clone(), "runner-2".into(), 1).await.unwrap();
            assert_eq!(claim.holder, "runner-2");
            wire.arm(&["delivered"], arrives);
            assert!(w.store.advance_claim(subject.clone(), 1, ClaimState::Delivered).await.unwrap());
            assert!(!w.store.advance_claim(subject.clone(), 1, ClaimState::Delivered).await.unwrap());
            wire.arm(&["new-document"], arrives);
            let value = Some(json!("new-document"));
            assert!(
                w.store.place(Shelf::Notes, subject.clone(), value.clone(), Expect::Absent).await.unwrap()
            );
            assert!(!w.store.place(Shelf::Notes, subject.clone(), value, Expect::Absent).await.unwrap());
            assert!(wire.was_cut());
        }
    });
}

#[test]
fn a_read_whose_connection_was_cut_is_made_again() {
    let (wire, options) = behind_a_wire();
    let w = live(&options);
    wait(w.feature("shop-of-ann"));
    for arrives in [true, false] {
        wire.arm(&["shop-of-ann"], arrives);
        assert_eq!(wait(w.show("shop-of-ann")).id.as_str(), "shop-of-ann");
        assert!(wire.was_cut());
    }
}
