//! `aop serve`: how it starts, works beside others, and stops.

use crate::http_client::Server;
use crate::mcp_client::Client;
use crate::run_support::{Running, assert_nothing_left, plan, script, workshop};
use crate::support::{Project, question};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn it_says_where_it_is_in_one_line_and_ends_cleanly_when_told_to() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    assert_eq!(server.login_url, format!("http://{}/login?token={}", server.address, server.token));
    let health = server.request("GET", "/api/v1/health", &[], "").data();
    assert_eq!(health["status"], "ok");
    let run = server.stop();
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    let server = Server::start(&project);
    server.signal("-INT");
    assert_eq!(server.ended().code, Some(130));
}

#[test]
fn no_token_stands_in_the_arguments_of_the_browser_that_is_opened() {
    let project = Project::with_feature();
    let (told, browser) = (project.path("told"), project.path("bin/xdg-open"));
    assert!(Command::new("mkfifo").arg(&told).status().unwrap().success());
    std::fs::create_dir(project.path("bin")).unwrap();
    std::fs::write(&browser, format!("#!/bin/sh\necho \"$@\" > '{}'\n", told.display())).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", project.path("bin").display(), std::env::var("PATH").unwrap());
    let server = Server::start_with(&project, &["--open"], &[("PATH", &path)]);
    assert_eq!(std::fs::read_to_string(told).unwrap(), format!("http://{}/login\n", server.address));
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let pasted = server.request("POST", "/login", &form, &format!("token={}", server.login_url));
    assert_eq!(pasted.status, 303, "the page takes the printed link: {pasted:?}");
}

#[test]
fn a_server_whose_store_was_removed_or_made_anew_says_so_and_takes_no_question() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    server.tool("feature.question_create", &question("shop", "op-1")).data();
    std::fs::remove_dir_all(project.path(".aop")).unwrap();
    server.get("/api/v1/health").refused(503, "store_unavailable");
    server.tool("feature.question_create", &question("shop", "op-2")).refused(503, "store_unavailable");
    project.run(&["init"]).data();
    let error = server.get("/api/v1/health").refused(503, "store_unavailable");
    assert!(error["details"]["hint"].as_str().unwrap().contains("start"), "{error}");
    server.tool("feature.question_create", &question("shop", "op-3")).refused(503, "store_unavailable");
}

#[test]
fn an_address_that_is_taken_is_named() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let error = project.run(&["serve", "--listen", &server.address]).refused("invalid_argument", 2);
    assert!(error["message"].as_str().unwrap().contains(&server.address), "{error}");
    Project::empty().run(&["serve"]).refused("no_project", 1);
}

#[test]
fn a_tool_has_the_same_envelope_as_on_the_command_line_and_replays_byte_for_byte() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let asked = server.tool("feature.question_create", &question("shop", "op-1"));
    assert_eq!(asked.status, 200);
    let again = project.tool("feature.question_create", "human", &question("shop", "op-1"));
    assert_eq!(again.stdout.trim_end(), asked.body);
    let mut keyed = question("shop", "op-1");
    keyed.as_object_mut().unwrap().remove("operation_id");
    let bearer = format!("Bearer {}", server.token);
    let headers = [("Authorization", bearer.as_str()), ("Idempotency-Key", "op-1")];
    let path = "/api/v1/tools/feature.question_create";
    assert_eq!(server.request("POST", path, &headers, &keyed.to_string()).body, asked.body);
    server.tool("feature.question_create", &keyed).refused(400, "operation_id_required");
    let other = [("Authorization", bearer.as_str()), ("Idempotency-Key", "op-2")];
    let body = question("shop", "op-1").to_string();
    server.request("POST", path, &other, &body).refused(400, "invalid_argument");
    server.tool("feature.nonsense", &json!({})).refused(404, "invalid_argument");
    server.tool("feature.get", &json!({"feature_id": "none"})).refused(404, "feature_not_found");
    server.tool("feature.get", &json!([1])).refused(400, "invalid_argument");
    server.get("/api/v1/questions/%ff").refused(400, "invalid_argument");
    let twice = r#"{"feature_id": "shop", "feature_id": "other"}"#;
    let headers = [("Authorization", bearer.as_str())];
    server.request("POST", "/api/v1/tools/feature.get", &headers, twice).refused(400, "invalid_argument");
}

#[test]
fn other_processes_work_on_the_same_store_meanwhile() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let mut events = server.follow(&server.token, None);
    let id = project.ask("op-1");
    let (first, opened) = events.next().unwrap();
    assert_eq!(
        (&opened["type"], &opened["question"]["question_id"]),
        (&json!("question.opened"), &json!(id))
    );
    let answer = json!({"answer": "yes", "answered_by": "ana"});
    server.send("POST", &format!("/api/v1/questions/{id}/answer"), &answer).data();
    assert_eq!(project.feature("shop")["status"], "planning");
    let mut rest = events;
    let answered = std::iter::from_fn(|| rest.next()).find(|(_, event)| event["type"] == "question.answered");
    assert_eq!(answered.unwrap().1["answered_by"], "ana");
    let replayed: Vec<u64> = std::iter::repeat_with(|| ())
        .scan(server.follow(&server.token, Some(0)), |events, ()| events.next())
        .map(|(seq, _)| seq)
        .take(usize::try_from(first).unwrap() + 2)
        .collect();
    assert_eq!(replayed, (1..=first + 2).collect::<Vec<_>>(), "no gaps, from the first event on");
    server.stop();
    project.assert_healthy();
}

#[test]
fn what_is_due_expires_without_anybody_looking_and_the_files_show_it() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let mut events = server.follow(&server.token, None);
    let mut asked = question("shop", "op-1");
    asked["timeout_ms"] = json!(1_000);
    project.tool("feature.question_create", "builder", &asked).data();
    let expired = std::iter::from_fn(|| events.next()).find(|(_, event)| event["type"] == "question.expired");
    assert_eq!(expired.unwrap().1["actor"], "policy");
    server.stop();
    let state = std::fs::read_to_string(project.path(".aop/features/shop/state.md")).unwrap();
    assert!(state.contains("status: blocked"), "{state}");
    project.assert_healthy();
}

#[test]
fn a_wait_ends_with_the_answer_or_with_the_server() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let id = project.ask("op-1");
    let path = format!("/api/v1/questions/{id}/wait");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.get(&path).data());
        project.answer(&id, "yes").data();
        assert_eq!(waiting.join().unwrap()["answer"], "yes");
    });
    let id = project.ask("op-2");
    let path = format!("/api/v1/questions/{id}/wait");
    assert_eq!(server.get(&format!("{path}?timeout_s=0")).data()["status"], "open");
    server.get(&format!("{path}?timeout_s=51")).refused(400, "invalid_argument");
    let started = std::time::Instant::now();
    let waiting = server.begin("GET", &path);
    // A second client that has its greeting shows that the server is past the first.
    let mut follower = server.follow(&server.token, None);
    server.get("/api/v1/health").data();
    server.signal("-TERM");
    // What was still on its way may come first; then the stream is closed.
    while follower.next().is_some() {}
    assert_eq!(waiting.finish().data()["status"], "open");
    assert!(started.elapsed().as_secs() < 20);
    assert_eq!(server.ended().code, Some(0));
}

#[test]
fn answering_is_first_come_first_served_and_tells_the_others() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let id = project.ask("op-1");
    let path = format!("/api/v1/questions/{id}/answer");
    server.send("POST", &path, &json!({"answer": "perhaps"})).refused(422, "question_invalid_answer");
    let answered = server.send("POST", &path, &json!({"answer": "yes"})).data();
    assert_eq!((&answered["feature_status"], &answered["resumed"]), (&json!("planning"), &json!(true)));
    let late = server.send("POST", &path, &json!({"answer": "no"})).refused(409, "question_already_answered");
    assert_eq!(
        (&late["details"]["answered_by"], &late["details"]["answer"]),
        (&json!("human"), &json!("yes"))
    );
    let again = format!("/api/v1/questions/{id}/reopen");
    let hint = || {
        let refused = server.send("POST", &again, &json!({})).refused(409, "question_already_answered");
        refused["details"]["hint"].as_str().unwrap().to_owned()
    };
    assert!(hint().contains("`aop send --feature-id shop NOTE`"), "{}", hint());
    project.run(&["cancel", "--feature-id", "shop"]).data();
    assert!(hint().contains("aop features create"), "{}", hint());
    server.send("POST", &path, &json!({"answer": "no", "nonsense": 1})).refused(400, "invalid_argument");
    let unknown = "/api/v1/questions/q_01JAAAAAAAAAAAAAAAAAAAAAAA";
    server.get(unknown).refused(404, "question_not_found");
    server.get("/api/v1/questions/..%2f..%2fetc").refused(400, "invalid_argument");
    let record = server.get(&format!("/api/v1/questions/{id}"));
    assert_eq!(record.header("etag"), Some("\"answered\""));
    assert_eq!(record.data()["answered_by"], "human");
}

#[test]
fn lists_are_filtered_and_paged() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    for number in 0..5 {
        let id = format!("f{number}");
        project.create_feature(&id);
        let mut asked = question(&id, &format!("op-{number}"));
        asked["role"] = json!("human");
        server.tool("feature.question_create", &asked).data();
    }
    let mut path = "/api/v1/questions?limit=2".to_owned();
    let mut seen = Vec::new();
    loop {
        let page = server.get(&path).data();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        seen.extend(items.iter().map(|item| item["feature_id"].as_str().unwrap().to_owned()));
        let Value::String(next) = &page["next_cursor"] else { break };
        path = format!("/api/v1/questions?limit=2&cursor={next}");
    }
    assert_eq!(seen, ["f0", "f1", "f2", "f3", "f4"]);
    let one = server.get("/api/v1/questions?feature_id=f3").data();
    assert_eq!(one["items"].as_array().unwrap().len(), 1);
    assert_eq!(server.get("/api/v1/questions?status=answered").data()["items"], json!([]));
    for bad in ["limit=0", "limit=x", "status=king", "nonsense=1", "feature_id=..", "cursor=q"] {
        server.get(&format!("/api/v1/questions?{bad}")).refused(400, "invalid_argument");
    }
    for list in ["questions", "runs"] {
        let error = server.get(&format!("/api/v1/{list}?cursor=q")).refused(400, "invalid_argument");
        assert_eq!(error["details"]["argument"], "cursor", "{error}");
    }
    server.get("/api/v1/questions?feature_id=none").refused(404, "feature_not_found");
}

#[test]
fn every_event_is_sent_once_in_order_and_replayed_after_any_number() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let mut live = server.follow(&server.token, None);
    for round in 0..3 {
        let id = project.ask(&format!("op-{round}"));
        project.answer(&id, "yes").data();
    }
    let log = project.run(&["log", "--limit", "1000"]).data()["items"].as_array().unwrap().clone();
    let seq = |event: &Value| event["seq"].as_u64().unwrap();
    let numbers: Vec<u64> = log.iter().map(seq).collect();
    assert_eq!(numbers, (1..=log.len() as u64).collect::<Vec<_>>());
    let (first, _) = live.next().unwrap();
    let rest = std::iter::from_fn(|| live.next()).take(log.len() - usize::try_from(first).unwrap());
    assert_eq!(rest.map(|(seq, _)| seq).collect::<Vec<_>>(), numbers[usize::try_from(first).unwrap()..]);
    for after in 0..log.len() {
        let mut events = server.follow(&server.token, Some(after as u64));
        let told: Vec<Value> =
            std::iter::from_fn(|| events.next()).map(|(_, event)| event).take(log.len() - after).collect();
        assert_eq!(told, log[after..], "after {after}");
    }
    server.stop();
}

#[test]
fn a_stream_of_events_that_cannot_tell_where_to_begin_is_refused() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    for query in ["after=1&after=2", "after=x", "after=", "after=-1", "since=1"] {
        server.get(&format!("/events?{query}")).refused(400, "invalid_argument");
    }
    let bearer = format!("Bearer {}", server.token);
    let headers = [("Authorization", bearer.as_str()), ("Last-Event-ID", "x")];
    let refused = server.request("GET", "/events?after=1", &headers, "").refused(400, "invalid_argument");
    assert_eq!(refused["details"]["argument"], "Last-Event-ID", "{refused}");
    server.stop();
}

#[test]
fn a_change_that_names_an_old_version_of_the_record_is_refused() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let id = project.ask("op-1");
    let record = server.get(&format!("/api/v1/questions/{id}"));
    let tag = record.header("etag").unwrap().to_owned();
    let bearer = format!("Bearer {}", server.token);
    let withdraw = |tag: &str| {
        let headers = [("Authorization", bearer.as_str()), ("If-Match", tag)];
        server.request("POST", &format!("/api/v1/questions/{id}/withdraw"), &headers, "{}")
    };
    withdraw("\"another\"").refused(409, "version_conflict");
    assert_eq!(server.get(&format!("/api/v1/questions/{id}")).data()["status"], "open");
    withdraw(&tag).data();
    let now = server.get(&format!("/api/v1/questions/{id}"));
    assert_eq!(now.data()["status"], "withdrawn");
    assert_ne!(now.header("etag"), Some(tag.as_str()), "another version, another tag");
    server.stop();
}

#[test]
fn a_change_may_name_several_versions_of_the_record() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let id = project.ask("op-1");
    let bearer = format!("Bearer {}", server.token);
    let change = |id: &str, what: &str, tags: &[&str]| {
        let tags = tags.iter().map(|tag| ("If-Match", *tag));
        let headers: Vec<(&str, &str)> =
            [("Authorization", bearer.as_str())].into_iter().chain(tags).collect();
        server.request("POST", &format!("/api/v1/questions/{id}/{what}"), &headers, "{}")
    };
    for stale in [&["\"x\", \"y\""][..], &["\"x\"", "\"y\""], &["open"], &["W/\"open\""], &[""]] {
        change(&id, "withdraw", stale).refused(409, "version_conflict");
    }
    let mut id = id;
    for good in [&["\"x\", \"open\""][..], &["\"open\",\"x\""], &["\"x\"", "\"open\""], &["*"], &[]] {
        change(&id, "withdraw", good).data();
        id = change(&id, "reopen", &[]).data()["question_id"].as_str().unwrap().to_owned();
    }
    server.stop();
}

#[test]
fn a_request_with_more_than_one_idempotency_key_is_refused() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let bearer = format!("Bearer {}", server.token);
    let note = json!({"feature_id": "shop", "note": "once"}).to_string();
    for keys in [&["a", "b"][..], &["a", "a"]] {
        let keys = keys.iter().map(|key| ("Idempotency-Key", *key));
        let headers: Vec<(&str, &str)> =
            [("Authorization", bearer.as_str())].into_iter().chain(keys).collect();
        let refused = server.request("POST", "/api/v1/tools/feature.log_append", &headers, &note);
        refused.refused(400, "invalid_argument");
    }
    server.stop();
}

#[test]
fn whoever_follows_a_question_over_http_gets_the_answer_to_it_as_a_person_asked_it_last() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let first = server.send("POST", "/api/v1/questions", &json!({"prompt": "Which?"})).data();
    let first = first["question_id"].as_str().unwrap();
    let change = |id: &str, what: &str, body: Value| {
        let changed = server.send("POST", &format!("/api/v1/questions/{id}/{what}"), &body).data();
        changed["question_id"].as_str().unwrap().to_owned()
    };
    let wait = |query: &str| server.get(&format!("/api/v1/questions/{first}/wait?timeout_s=0&{query}"));
    assert_eq!(wait("follow=true").data()["status"], "open");
    let mut last = first.to_owned();
    for _ in 0..2 {
        change(&last, "withdraw", json!({}));
        assert_eq!(wait("follow=true").data()["status"], "withdrawn");
        last = change(&last, "reopen", json!({}));
        let told = wait("follow=true").data();
        assert_eq!((&told["status"], &told["question_id"]), (&json!("open"), &json!(last)));
    }
    change(&last, "answer", json!({"answer": "this"}));
    let told = wait("follow=true").data();
    assert_eq!((&told["answer"], &told["question_id"]), (&json!("this"), &json!(last)));
    for plain in ["follow=false", ""] {
        let told = wait(plain).data();
        assert_eq!((&told["status"], &told["question_id"]), (&json!("withdrawn"), &json!(first)));
    }
    wait("follow=perhaps").refused(400, "invalid_argument");
    server.stop();
}

/// The turn has no end in the log; only who looks at the run knows.
#[test]
fn a_feature_whose_run_was_killed_in_a_turn_is_idle_through_every_door() {
    let project = workshop("");
    script(&project, "a", &json!({"planner": [{"wait_ms": 600_000}, plan()]}));
    std::fs::write(project.path("a.md"), "# A\n").unwrap();
    let server = Server::start(&project);
    let said = || {
        let listed = server.get("/api/v1/features").data()["items"][0]["activity_state"].clone();
        let shown = server.get("/api/v1/features/a").data()["activity_state"].clone();
        let context = server.get("/api/v1/features/a/context").data()["state"]["activity_state"].clone();
        let command = project.run(&["status"]).data()["features"][0]["activity_state"].clone();
        let get = json!({"feature_id": "a"});
        let tool = project.tool("feature.get", "human", &get).data()["activity_state"].clone();
        let posted = server.tool("feature.get", &get).data()["activity_state"].clone();
        let mut client = Client::start(&project, &["--feature-id", "a"]);
        let over_mcp = client.data("feature.get", &get)["activity_state"].clone();
        [listed, shown, context, command, tool, posted, over_mcp]
    };
    let mut run = Running::start(&project, &["a.md"]);
    run.until("a turn", |line| line["type"] == "engine.started");
    assert_eq!(said(), ["working"; 7]);
    drop(run);
    assert_eq!(said(), ["idle"; 7]);
    assert_nothing_left(&project);
}
