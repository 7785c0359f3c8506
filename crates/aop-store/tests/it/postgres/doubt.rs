//! A connection that breaks at the worst moment: around the commit. Whether it was carried out is found out, never
//! guessed, and the caller notices nothing.

use super::live;
use crate::support::{World, new_project, wait};
use aop_kernel::event::Event;
use aop_kernel::role::Role;
use aop_store::{ClaimState, Expect, PostgresOptions, PostgresStore, Shelf, StoreError};
use aop_testkit::postgres::Server;
use serde_json::json;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// When to cut a connection that carries these words.
#[derive(Debug, Clone)]
struct Cut {
    /// All of them in this order, from the client.
    words: Vec<&'static str>,
    heard: Heard,
}

/// What the server gets to hear of the words at which the connection was cut.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Heard {
    /// All of them; only its answer is lost.
    AtOnce,
    Never,
    /// All of them, but not before it is told so.
    Late,
    /// All of them; its answer is lost, and the connection seems to be there.
    Unanswered,
}

/// A way to the server that can be cut.
struct Wire {
    dir: TempDir,
    cut: Arc<Mutex<Option<Cut>>>,
    kept: Kept,
}

/// A connection to the server whose client is gone, and what it has not heard yet.
type Kept = Arc<Mutex<Option<(UnixStream, Vec<u8>)>>>;

impl Wire {
    /// In front of the server that has its socket in this folder.
    fn to(server: PathBuf) -> Self {
        let dir = TempDir::with_prefix("wire").unwrap();
        let cut = Arc::new(Mutex::new(None));
        let listener = UnixListener::bind(dir.path().join(".s.PGSQL.5432")).unwrap();
        let kept = Kept::default();
        let (armed, keeping) = (Arc::clone(&cut), Arc::clone(&kept));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), UnixStream::connect(&server).unwrap());
                let (armed, keeping) = (Arc::clone(&armed), Arc::clone(&keeping));
                std::thread::spawn(move || carry(&client, &server, &armed, &keeping));
            }
        });
        Wire { dir, cut, kept }
    }

    /// The way to a database through it. A server behind it is silent after two seconds.
    fn options(&self, database: &str) -> PostgresOptions {
        let folder = self.dir.path().display().to_string().replace('/', "%2F");
        let address = format!("postgres://aop@{folder}:5432/{database}?connect_timeout=2");
        PostgresOptions::parse(&address).unwrap()
    }

    fn arm(&self, words: &[&'static str], arrives: bool) {
        self.arm_so(words, if arrives { Heard::AtOnce } else { Heard::Never });
    }

    fn arm_so(&self, words: &[&'static str], heard: Heard) {
        *self.cut.lock().unwrap() = Some(Cut { words: words.to_vec(), heard });
    }

    /// Lets the server hear what was kept from it; back when it has answered or hung up.
    fn deliver_late(&self) {
        let (mut server, words) = self.kept.lock().unwrap().take().unwrap();
        // It may have given up on this connection, which is as good.
        if server.write_all(&words).is_ok() {
            let _ = server.read(&mut [0; 16]);
        }
    }

    fn was_cut(&self) -> bool {
        self.cut.lock().unwrap().is_none()
    }
}

/// What the client hears of the server.
#[derive(Debug, Clone, Copy)]
enum Answers {
    All,
    /// The next one is the end of the connection.
    End,
    None,
}

/// Carries both ways until one side ends or the wire is cut.
fn carry(client: &UnixStream, server: &UnixStream, armed: &Arc<Mutex<Option<Cut>>>, kept: &Kept) {
    let answers = Arc::new(Mutex::new(Answers::All));
    let (from, to, heard_back) =
        (server.try_clone().unwrap(), client.try_clone().unwrap(), Arc::clone(&answers));
    std::thread::spawn(move || {
        let (mut from, mut to, mut buffer) = (from, to, vec![0; 65_536]);
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            match *heard_back.lock().unwrap() {
                Answers::All => {}
                // The answer is there, so it has been done; nobody hears of it.
                Answers::End => break,
                Answers::None => continue,
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
            match cut.take().unwrap().heard {
                Heard::AtOnce => *answers.lock().unwrap() = Answers::End,
                Heard::Unanswered => *answers.lock().unwrap() = Answers::None,
                Heard::Never => break,
                Heard::Late => {
                    let rest = buffer[..length].to_vec();
                    *kept.lock().unwrap() = Some((server.try_clone().unwrap(), rest));
                    *answers.lock().unwrap() = Answers::End;
                    let _ = client.shutdown(Shutdown::Both);
                    return;
                }
            }
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
    let options = wire.options(database).project(direct.project_id().unwrap());
    (wire, options)
}

/// The same on a server of its own, which can be asked what it does.
fn own_server_behind_a_wire() -> (Server, Wire, PostgresOptions) {
    let server = Server::own("");
    server.sql("postgres", "CREATE DATABASE team");
    let wire = Wire::to(server.socket().join(".s.PGSQL.5432"));
    let options = wire.options("team").project("shop");
    PostgresStore::create(&options).unwrap();
    (server, wire, options)
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

/// A tunnel whose other end is gone holds the line all the same.
#[test]
fn a_mutation_and_a_read_that_had_no_answer_go_on_elsewhere_and_are_done_once() {
    let (wire, options) = behind_a_wire();
    let w = live(&options.patience(Duration::from_secs(4)));
    wait(w.feature("a"));
    wire.arm_so(&["unanswered-note", "COMMIT\0"], Heard::Unanswered);
    let input = json!({"feature_id": "a", "note": "unanswered-note", "operation_id": "n"});
    let request = crate::support::request(&w, Role::Human, "feature.log_append", &input);
    let receipt = wait(w.store.submit(request, Arc::new(w.rules()))).unwrap();
    assert!(wire.was_cut() && receipt.fresh, "it was this very call that did it");
    wire.arm_so(&["READ ONLY"], Heard::Unanswered);
    assert_eq!(wait(w.events()).len(), 2, "written once");
    assert!(wire.was_cut());
    wait(w.check());
}

/// With no patience left nobody claims to know what became of it; its operation id tells.
#[test]
fn a_mutation_that_was_given_up_without_an_answer_is_in_doubt_and_can_be_asked_for() {
    let (wire, options) = behind_a_wire();
    let w = live(&options.patience(Duration::ZERO));
    wait(w.feature("a"));
    wire.arm_so(&["unanswered-note", "COMMIT\0"], Heard::Unanswered);
    let input = json!({"feature_id": "a", "note": "unanswered-note", "operation_id": "n"});
    let request = crate::support::request(&w, Role::Human, "feature.log_append", &input);
    let given_up = wait(w.store.submit(request.clone(), Arc::new(w.rules()))).unwrap_err();
    let StoreError::Unavailable { cause, hint, .. } = given_up else { panic!("{given_up:?}") };
    assert!(cause.contains("did not answer in time") && hint.contains("operation id"), "{cause}: {hint}");
    let again = wait(w.store.submit(request, Arc::new(w.rules()))).unwrap();
    assert!(!again.fresh, "it had been written");
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
fn a_write_that_reaches_the_server_late_never_undoes_a_later_one() {
    let (server, wire, options) = own_server_behind_a_wire();
    let w = live(&options);
    wire.arm_so(&["too-late", "COMMIT\0"], Heard::Late);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            wait(async {
                for value in ["too-late", "the-last-word"] {
                    let value = Some(json!(value));
                    assert!(w.store.place(Shelf::Notes, "k".into(), value, Expect::Anything).await.unwrap());
                }
            });
        });
        // Until the second attempt waits for the first, or has gone on without waiting.
        let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
        while !writing.is_finished() && server.sql("team", waiting) == "0" {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(wire.was_cut());
        wire.deliver_late();
        writing.join().unwrap();
    });
    let last = wait(w.store.document(Shelf::Notes, "k".into())).unwrap();
    assert_eq!(last, Some(json!("the-last-word")));
}

/// Many runners look for one of many features: whoever finds it taken goes on to the next.
#[test]
fn a_lease_that_another_holds_is_passed_over_even_while_a_commit_is_under_way() {
    let (server, wire, options) = own_server_behind_a_wire();
    let (w, other) = (live(&options), live(&options));
    let take = async |w: &World, holder: &str| {
        w.store.acquire_lease("feature/a".into(), holder.into(), 60_000).await.unwrap()
    };
    wait(w.feature("a"));
    assert!(wait(take(&w, "runner-1")).is_some());
    wire.arm_so(&["a-slow-note", "COMMIT\0"], Heard::Late);
    std::thread::scope(|scope| {
        let input = json!({"feature_id": "a", "note": "a-slow-note", "operation_id": "n"});
        let writing = scope.spawn(|| wait(w.call(Role::Human, "feature.log_append", input)).unwrap());
        while !wire.was_cut() {
            std::thread::yield_now();
        }
        assert_eq!(wait(take(&other, "runner-2")), None);
        let under_way = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'";
        assert_eq!(server.sql("team", under_way), "1", "nobody waited for the commit");
        wire.deliver_late();
        writing.join().unwrap();
    });
    assert!(wait(take(&w, "runner-1")).is_some(), "its holder goes on");
}

/// Somebody else placed the very same value: that is not what the lost attempt did.
#[test]
fn a_document_that_another_placed_is_not_taken_for_ones_own() {
    let (wire, options) = behind_a_wire();
    let (w, other) = (live(&options), live(&options));
    let place = async |w: &World| {
        let value = Some(json!("equal-values"));
        w.store.place(Shelf::Notes, "k".into(), value, Expect::Absent).await.unwrap()
    };
    wire.arm(&["equal-values", "COMMIT\0"], false);
    std::thread::scope(|scope| {
        let cut = scope.spawn(|| wait(place(&w)));
        while !wire.was_cut() {
            std::thread::yield_now();
        }
        let theirs = wait(place(&other));
        assert_ne!(cut.join().unwrap(), theirs, "one of them placed it");
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
