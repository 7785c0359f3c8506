//! The server is stopped, crashes, is replaced by its standby, all under load: callers wait, and every answer that
//! was acknowledged is there afterwards, once.

use super::live;
use crate::support::{World, wait};
use aop_kernel::event::Event;
use aop_kernel::role::Role;
use aop_store::{PostgresOptions, PostgresStore};
use aop_testkit::postgres::Server;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// People who ask and answer until they are told to stop.
struct Load<'a> {
    worlds: &'a [World],
    stop: AtomicBool,
    acknowledged: AtomicU32,
}

impl<'a> Load<'a> {
    fn new(worlds: &'a [World]) -> Self {
        Load { worlds, stop: AtomicBool::new(false), acknowledged: AtomicU32::new(0) }
    }

    /// One person on a feature of their own; the ids of the questions whose answers were acknowledged.
    fn person(&self, number: usize) -> Vec<String> {
        let w = &self.worlds[number % self.worlds.len()];
        let feature = format!("f{number}");
        let call = |role, tool: &str, mut input: serde_json::Value, operation: String| {
            input["operation_id"] = json!(operation);
            wait(w.call(role, tool, input)).unwrap_or_else(|refusal| panic!("{refusal}: {}", refusal.hint))
        };
        call(
            Role::Human,
            "feature.create",
            json!({"feature_id": feature, "title": "t"}),
            format!("c{number}"),
        );
        let mut answered = Vec::new();
        while !self.stop.load(Ordering::SeqCst) {
            let operation = format!("{number}-{}", answered.len());
            let ask = crate::support::question(&feature, json!({}));
            let asked = call(Role::Builder, "feature.question_create", ask, format!("q{operation}"));
            let id = asked["question_id"].as_str().unwrap().to_owned();
            let answer =
                json!({"feature_id": feature, "question_id": id, "answer": operation, "answered_by": "ann"});
            call(Role::Human, "feature.question_answer", answer, format!("a{operation}"));
            answered.push(id);
            self.acknowledged.fetch_add(1, Ordering::SeqCst);
        }
        answered
    }

    /// Waits until so many more answers are acknowledged.
    fn go_on(&self, more: u32) {
        let until = self.acknowledged.load(Ordering::SeqCst) + more;
        while self.acknowledged.load(Ordering::SeqCst) < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lets people work while something happens; then everything acknowledged is there, once.
    fn meanwhile(&self, people: usize, happens: impl FnOnce()) -> usize {
        let answered: Vec<String> = std::thread::scope(|scope| {
            let working: Vec<_> =
                (0..people).map(|number| scope.spawn(move || self.person(number))).collect();
            happens();
            self.stop.store(true, Ordering::SeqCst);
            working.into_iter().flat_map(|person| person.join().unwrap()).collect()
        });
        let log = wait(self.worlds[0].events());
        let closed = |event: &Event| match event {
            Event::QuestionAnswered { question_id, .. } => Some(question_id.to_string()),
            _ => None,
        };
        let all: Vec<String> = log.iter().filter_map(|recorded| closed(&recorded.stamped.event)).collect();
        let found: BTreeSet<&String> = all.iter().collect();
        assert_eq!(found.len(), all.len(), "no question was answered twice");
        assert_eq!(found, answered.iter().collect(), "what was acknowledged is what is there");
        for w in self.worlds {
            wait(w.check());
        }
        answered.len()
    }
}

#[test]
fn a_restart_and_a_crash_of_the_server_under_load_lose_nothing() {
    let server = Server::own("");
    server.sql("postgres", "CREATE DATABASE team");
    let options = PostgresOptions::parse(&server.address("team")).unwrap().project("shop");
    PostgresStore::create(&options).unwrap();
    let worlds = [live(&options), live(&options)];
    let load = Load::new(&worlds);
    load.meanwhile(8, || {
        load.go_on(50);
        server.stop();
        server.start();
        load.go_on(50);
        server.crash();
        server.start();
        load.go_on(50);
    });
}

#[test]
fn a_standby_that_is_promoted_has_every_acknowledged_answer() {
    let primary = Server::own("-c synchronous_commit=remote_apply -c wal_level=replica -c max_wal_senders=4");
    primary.sql("postgres", "CREATE DATABASE team");
    let standby = primary.standby("s1");
    primary.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 's1'");
    primary.sql("postgres", "SELECT pg_reload_conf()");
    let hosts = [&primary, &standby].map(|server| server.socket().display().to_string().replace('/', "%2F"));
    let address =
        format!("postgres://aop@{}:5432,{}:5432/team?target_session_attrs=read-write", hosts[0], hosts[1]);
    let options = PostgresOptions::parse(&address).unwrap().project("shop");
    PostgresStore::create(&options).unwrap();
    let worlds = [live(&options), live(&options)];
    let load = Load::new(&worlds);
    let mut changes = worlds[0].store.changes();
    load.meanwhile(8, || {
        load.go_on(80);
        primary.crash();
        standby.promote();
        load.go_on(80);
    });
    // Whoever listened goes on listening, on the new server.
    changes.mark_unchanged();
    wait(worlds[1].feature("after"));
    wait(async { changes.changed().await.unwrap() });
}

/// Somebody holds the project's row until there is a row in `go`.
const HOLD: &str = "SELECT FROM projects FOR UPDATE;
    DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM go) LOOP PERFORM pg_sleep(0.01); END LOOP; END $$";

/// Who waits for it.
const WAITING: &str = "SELECT min(pid) FROM pg_locks WHERE NOT granted";

#[test]
fn a_statement_that_the_servers_timeouts_end_is_said_again_and_in_the_end_the_setting_is_named() {
    let server = Server::own("-c fsync=off");
    server.sql("postgres", "CREATE DATABASE team");
    let at = |query: &str| {
        PostgresOptions::parse(&format!("{}?{query}", server.address("team"))).unwrap().project("shop")
    };
    PostgresStore::create(&at("")).unwrap();
    server.sql("team", "CREATE TABLE go (it int)");
    wait(live(&at("")).feature("a"));
    for setting in ["lock_timeout", "statement_timeout"] {
        let options = at(&format!("options=-c%20{setting}%3D300ms"));
        let (patient, impatient) = (live(&options), live(&options.clone().patience(Duration::ZERO)));
        let note = |w: &World| {
            let input = json!({"feature_id": "a", "note": "n"});
            wait(w.call(Role::Human, "feature.log_append", input))
        };
        std::thread::scope(|scope| {
            scope.spawn(|| server.sql("team", HOLD));
            let held = "SELECT count(*) FROM pg_locks WHERE relation = 'projects'::regclass AND mode = 'RowShareLock'";
            while server.sql("team", held) == "0" {}
            let refused = note(&impatient).unwrap_err();
            assert!(refused.message.contains("canceling statement"), "{refused}");
            assert!(refused.hint.contains(setting), "{setting}: {}", refused.hint);
            let writing = scope.spawn(|| note(&patient));
            let mut tried = BTreeSet::new();
            while tried.len() < 2 && !writing.is_finished() {
                tried.extend(Some(server.sql("team", WAITING)).filter(|pid| !pid.is_empty()));
            }
            server.sql("team", "INSERT INTO go VALUES (1)");
            writing.join().unwrap().unwrap();
        });
        server.sql("team", "DELETE FROM go");
    }
}
