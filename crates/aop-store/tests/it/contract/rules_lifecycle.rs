//! Rules 5 to 11: where a feature goes on, what the clock does, taking back and asking again.

use crate::support::{QUARTER, World, at, feature_id, on_every_backend};
use aop_kernel::policy::OnTimeout;
use aop_kernel::role::Role;
use aop_kernel::status::Status;
use serde_json::{Value, json};

on_every_backend!(
    rule_05_resume_goes_to_the_status_before_the_question,
    rule_05_what_stands_still_says_why_also_after_a_question,
    rule_06_a_terminal_feature_withdraws_its_open_questions_and_keeps_history,
    rule_07_expired_from_the_deadline_on_and_not_a_millisecond_before,
    rule_07_deadline_and_consequence_are_frozen_when_asked,
    rule_07_strict_block_feature,
    rule_07_strict_fail_feature_takes_the_other_questions_along,
    rule_07_strict_expiry_of_a_non_blocking_question_stops_nothing,
    rule_07_the_transition_is_the_same_whoever_notices_it,
    rule_07_an_answer_checks_the_clock_inside_its_own_transaction,
    rule_07_a_question_may_ask_for_less_time_and_zero_waits_for_ever,
    rule_08_withdraw_returns_the_feature_to_resume_status,
    rule_08_withdraw_by_the_asker_the_orchestrator_or_a_human,
    rule_08_reopen_asks_again_with_the_original_resume_status,
    rule_08_reopen_waits_as_long_as_the_policy_says_then_and_no_longer_than_was_asked_for,
    rule_08_reopen_only_what_expired_or_was_withdrawn_and_only_by_a_human,
    rule_08_reopen_asks_again_once_at_a_time,
    rule_09_answers_persist_when_nobody_is_alive,
    rule_10_everything_resolves_under_the_selected_project_root,
    rule_11_nobody_but_the_clock_decides_as_policy,
    rule_11_what_policy_decided_is_marked_wherever_it_is_shown,
);

async fn rule_05_resume_goes_to_the_status_before_the_question(w: &World) {
    for status in [Status::Planning, Status::Building, Status::Qa, Status::Blocked, Status::ReadyToMerge] {
        let id = status.as_str();
        w.feature_in(id, status).await;
        let before = w.show(id).await;
        let asked = w.ask(id).await;
        assert_eq!(w.status(id).await, Status::AwaitingInput);
        let data = w.answer(id, &asked, json!("left")).await.unwrap();
        assert_eq!((&data["feature_status"], &data["resumed"]), (&json!(status), &json!(true)));
        let after = w.show(id).await;
        assert_eq!((after.status, after.blocked_from), (before.status, before.blocked_from));
    }
}

/// What a person can do about it is said there, and a question in between changes nothing in that.
async fn rule_05_what_stands_still_says_why_also_after_a_question(w: &World) {
    for (id, from, to) in [("a", Status::Building, Status::Blocked), ("b", Status::Qa, Status::ReadyToMerge)]
    {
        w.feature_in(id, from).await;
        let input = json!({"feature_id": id, "to": to, "reason": "the disk is full"});
        w.call(Role::Orchestrator, "feature.transition", input).await.unwrap();
        for answers in [true, false] {
            let asked = w.ask(id).await;
            if answers {
                w.answer(id, &asked, json!("left")).await.unwrap();
            } else {
                w.withdraw(id, &asked).await.unwrap();
            }
            let after = w.show(id).await;
            assert_eq!((after.status, after.status_reason.as_deref()), (to, Some("the disk is full")));
        }
    }
    w.feature_in("c", Status::Building).await;
    let asked = w.ask("c").await;
    w.answer("c", &asked, json!("left")).await.unwrap();
    assert_eq!(w.show("c").await.status_reason, None);
}

async fn rule_06_a_terminal_feature_withdraws_its_open_questions_and_keeps_history(w: &World) {
    w.policy(|policy| policy.max_open_questions_per_feature = 3);
    w.feature_in("a", Status::ReadyToMerge).await;
    let answered = w.ask("a").await;
    w.answer("a", &answered, json!("left")).await.unwrap();
    let (one, two) = (w.ask_aside("a").await, w.ask_aside("a").await);
    w.transition("a", Status::Merged).await.unwrap();
    assert_eq!(w.list("a", "all").await, [answered.clone(), one.clone(), two.clone()]);
    assert_eq!(w.list("a", "withdrawn").await, [one.clone(), two]);
    assert_eq!(w.list("a", "answered").await, [answered]);
    assert_eq!(w.record(&one).await["resolution"]["mode"], "withdrawn");
    assert_eq!(w.show("a").await.open_question_count, 0);
}

async fn rule_07_expired_from_the_deadline_on_and_not_a_millisecond_before(w: &World) {
    w.feature("a").await;
    let id = w.ask("a").await;
    w.later(QUARTER - 1);
    assert_eq!(w.record(&id).await["status"], "open");
    assert_eq!(w.store.expire().await.unwrap(), 0);
    w.later(1);
    assert_eq!(w.record(&id).await["status"], "expired");
    assert_eq!(w.store.expire().await.unwrap(), 1);
    assert_eq!(w.store.expire().await.unwrap(), 0);
}

async fn rule_07_deadline_and_consequence_are_frozen_when_asked(w: &World) {
    w.feature_in("a", Status::Building).await;
    let id = w.ask("a").await;
    w.policy(|policy| {
        policy.timeout_ms = 5;
        policy.strict = false;
        policy.on_timeout = OnTimeout::FailFeature;
    });
    w.later(QUARTER - 1);
    assert_eq!(w.record(&id).await["status"], "open");
    w.later(1);
    w.call(Role::Human, "feature.log_append", json!({"feature_id": "a", "note": "hello"})).await.unwrap();
    assert_eq!(w.status("a").await, Status::Blocked);
    assert_eq!(w.record(&id).await["resolution"]["mode"], "expired");
}

async fn rule_07_strict_block_feature(w: &World) {
    w.feature_in("a", Status::Qa).await;
    let id = w.ask("a").await;
    w.later(QUARTER + 60_000);
    w.store.expire().await.unwrap();
    let feature = w.show("a").await;
    assert_eq!((feature.status, feature.blocked_from), (Status::Blocked, Some(Status::Qa)));
    assert!(feature.waiting.is_none());
    let next = format!("; ask it again: `aop reopen --feature-id a --question-id {id}`");
    assert_eq!(feature.status_reason, Some(format!("question {id} expired without an answer{next}")));
    let record = w.record(&id).await;
    assert_eq!((&record["status"], &record["resolution"]["mode"]), (&json!("expired"), &json!("expired")));
    assert_eq!(record["answer"], Value::Null);
    let stamps: Vec<_> =
        w.events().await.iter().rev().take(2).map(|event| event.stamped.at.to_string()).collect();
    assert_eq!(stamps, [at(QUARTER), at(QUARTER)], "stamped with the deadline");
    assert!(w.log("a").await.iter().any(|line| line.contains(&format!("{id} expired"))));
    w.retry("a").await.unwrap();
    assert_eq!(w.status("a").await, Status::Qa);
}

async fn rule_07_strict_fail_feature_takes_the_other_questions_along(w: &World) {
    w.policy(|policy| {
        policy.on_timeout = OnTimeout::FailFeature;
        policy.max_open_questions_per_feature = 3;
    });
    w.feature("a").await;
    let blocking = w.ask("a").await;
    w.later(10);
    let aside = w.ask_aside("a").await;
    w.later(QUARTER);
    w.store.expire().await.unwrap();
    let reason = w.show("a").await.status_reason;
    assert_eq!(reason, Some(format!("question {blocking} expired without an answer")));
    assert_eq!(w.status("a").await, Status::Failed);
    assert_eq!(w.record(&blocking).await["status"], "expired");
    assert_eq!(w.record(&aside).await["status"], "withdrawn");
}

async fn rule_07_strict_expiry_of_a_non_blocking_question_stops_nothing(w: &World) {
    w.feature_in("a", Status::Building).await;
    let id = w.ask_aside("a").await;
    w.later(QUARTER);
    w.store.expire().await.unwrap();
    assert_eq!(w.status("a").await, Status::Building);
    assert_eq!(w.record(&id).await["status"], "expired");
}

/// The timer, a writer that came for something else, and a late answer leave the same behind.
async fn rule_07_the_transition_is_the_same_whoever_notices_it(w: &World) {
    for id in ["timer", "writer", "late"] {
        w.feature_in(id, Status::Building).await;
        w.ask(id).await;
    }
    w.later(QUARTER);
    w.later(1_000);
    let late = w.list("late", "expired").await.remove(0);
    w.refuses_and_expires("question_closed", w.answer("late", &late, json!("left"))).await;
    w.later(1_000);
    let input = json!({"feature_id": "writer", "note": "hello"});
    w.call(Role::Human, "feature.log_append", input).await.unwrap();
    w.later(1_000);
    w.store.expire().await.unwrap();
    let mut ends = Vec::new();
    for id in ["timer", "writer", "late"] {
        let page = aop_store::EventPage { feature: Some(feature_id(id)), ..Default::default() };
        let events = w.store.events(page).await.unwrap();
        let expired =
            events.iter().position(|event| event.stamped.event.name() == "question.expired").unwrap();
        let two = events[expired..expired + 2].iter().map(|event| &event.stamped);
        ends.push(two.map(|event| (event.at, event.actor, event.event.name())).collect::<Vec<_>>());
    }
    assert_eq!(ends[0], ends[1]);
    assert_eq!(ends[0], ends[2]);
}

async fn rule_07_an_answer_checks_the_clock_inside_its_own_transaction(w: &World) {
    w.feature_in("a", Status::Building).await;
    let id = w.ask("a").await;
    w.later(QUARTER);
    let refusal = w.answer("a", &id, json!("left")).await.unwrap_err();
    assert_eq!((refusal.code.as_str(), &refusal.facts["status"]), ("question_closed", &json!("expired")));
    assert_eq!(w.status("a").await, Status::Blocked);
    assert_eq!(w.store.expire().await.unwrap(), 0, "the refused answer has committed the expiry");
}

async fn rule_07_a_question_may_ask_for_less_time_and_zero_waits_for_ever(w: &World) {
    w.feature("a").await;
    let ask = async |changes: Value| {
        let id = w.ask_with("a", changes).await.unwrap()["question_id"].as_str().unwrap().to_owned();
        w.withdraw("a", &id).await.unwrap();
        w.record(&id).await["expires_at"].clone()
    };
    assert_eq!(ask(json!({"timeout_ms": 5_000})).await, at(5_000));
    assert_eq!(ask(json!({"timeout_ms": 1})).await, at(1_000), "the floor is one second");
    assert_eq!(ask(json!({"timeout_ms": 5_000_000})).await, at(QUARTER), "never more than the policy gives");
    w.policy(|policy| policy.timeout_ms = 0);
    assert_eq!(ask(json!({})).await, Value::Null);
    let id = w.ask("a").await;
    w.later(i64::MAX / 4);
    assert_eq!(w.record(&id).await["status"], "open");
    assert_eq!(w.store.next_deadline().await.unwrap(), None);
}

async fn rule_08_withdraw_returns_the_feature_to_resume_status(w: &World) {
    w.feature_in("a", Status::Qa).await;
    let id = w.ask("a").await;
    let input = json!({"feature_id": "a", "question_id": id, "note": "found it myself"});
    let data = w.call(Role::Builder, "feature.question_withdraw", input).await.unwrap();
    assert_eq!((&data["status"], &data["feature_status"]), (&json!("withdrawn"), &json!("qa")));
    assert_eq!(w.status("a").await, Status::Qa);
    let record = w.record(&id).await;
    assert_eq!(record["status"], "withdrawn");
    assert_eq!(
        (&record["resolution"]["mode"], &record["resolution"]["note"]),
        (&json!("withdrawn"), &json!("found it myself"))
    );
    assert!(w.log("a").await.iter().any(|line| line.contains(&format!("{id} withdrawn by builder"))));
}

async fn rule_08_withdraw_by_the_asker_the_orchestrator_or_a_human(w: &World) {
    w.feature("a").await;
    for role in [Role::Builder, Role::Orchestrator, Role::Human] {
        let id = w.ask("a").await;
        let input = json!({"feature_id": "a", "question_id": id});
        for other in [Role::Planner, Role::Qa] {
            let refused = w.call(other, "feature.question_withdraw", input.clone());
            w.refuses("forbidden_for_role", refused).await;
        }
        w.call(role, "feature.question_withdraw", input).await.unwrap();
    }
}

async fn rule_08_reopen_asks_again_with_the_original_resume_status(w: &World) {
    w.feature_in("a", Status::Qa).await;
    let changes = json!({"details": {"k": 1}, "expected_answer": {"kind": "free_text"}});
    let old = w.ask_with("a", changes).await.unwrap()["question_id"].as_str().unwrap().to_owned();
    w.later(QUARTER);
    assert_eq!(w.status("a").await, Status::Blocked);
    let data = w.reopen("a", &old).await.unwrap();
    assert_eq!((&data["status"], &data["feature_status"]), (&json!("open"), &json!("awaiting_input")));
    let new = data["question_id"].as_str().unwrap().to_owned();
    let (was, is) = (w.record(&old).await, w.record(&new).await);
    assert_eq!((&was["status"], &is["reopened_from"]), (&json!("expired"), &json!(old)));
    for same in ["prompt", "details", "expected_answer", "role", "session_id", "blocking", "resume_status"] {
        assert_eq!(was[same], is[same], "{same}");
    }
    assert_eq!(is["expires_at"], at(2 * QUARTER));
    w.answer("a", &new, json!("left")).await.unwrap();
    assert_eq!(w.status("a").await, Status::Qa, "not blocked, where it was when it was asked again");
}

async fn rule_08_reopen_waits_as_long_as_the_policy_says_then_and_no_longer_than_was_asked_for(w: &World) {
    w.feature("a").await;
    let again = async |old: &str| {
        let new = w.reopen("a", old).await.unwrap()["question_id"].as_str().unwrap().to_owned();
        w.withdraw("a", &new).await.unwrap();
        (w.record(&new).await["expires_at"].clone(), new)
    };
    let asked = async |changes: Value| {
        let id = w.ask_with("a", changes).await.unwrap()["question_id"].as_str().unwrap().to_owned();
        w.withdraw("a", &id).await.unwrap();
        id
    };
    let plain = asked(json!({})).await;
    let short = asked(json!({"timeout_ms": 5_000})).await;
    let long = asked(json!({"timeout_ms": 2 * QUARTER})).await;
    assert_eq!(w.record(&plain).await.get("timeout_ms"), None);
    assert_eq!(w.record(&long).await["expires_at"], at(QUARTER), "the policy gives no more");
    w.policy(|policy| policy.timeout_ms = 3 * u64::try_from(QUARTER).unwrap());
    assert_eq!(again(&plain).await.0, at(3 * QUARTER));
    assert_eq!(again(&long).await.0, at(2 * QUARTER), "what it asked for and was not given then");
    let (deadline, twice) = again(&short).await;
    assert_eq!(deadline, at(5_000));
    assert_eq!(again(&twice).await.0, at(5_000));
    w.policy(|policy| policy.timeout_ms = 2_000);
    assert_eq!(again(&short).await.0, at(2_000));
    w.policy(|policy| policy.timeout_ms = 0);
    assert_eq!(again(&plain).await.0, Value::Null);
}

async fn rule_08_reopen_only_what_expired_or_was_withdrawn_and_only_by_a_human(w: &World) {
    w.feature("a").await;
    let open = w.ask("a").await;
    w.refuses("question_conflict_open", w.reopen("a", &open)).await;
    w.withdraw("a", &open).await.unwrap();
    let input = json!({"feature_id": "a", "question_id": open});
    for role in [Role::Builder, Role::Orchestrator] {
        w.refuses("forbidden_for_role", w.call(role, "feature.question_reopen", input.clone())).await;
    }
    let again = w.reopen("a", &open).await.unwrap()["question_id"].as_str().unwrap().to_owned();
    w.refuses("question_conflict_open", w.reopen("a", &open)).await;
    w.answer("a", &again, json!("left")).await.unwrap();
    w.refuses("question_already_answered", w.reopen("a", &again)).await;
    w.cancel("a").await.unwrap();
    w.refuses("question_answer_not_allowed_in_terminal_state", w.reopen("a", &open)).await;
}

/// Also where there is room for more.
async fn rule_08_reopen_asks_again_once_at_a_time(w: &World) {
    w.policy(|policy| policy.max_open_questions_per_feature = 5);
    w.feature("a").await;
    let old = w.ask_aside("a").await;
    w.withdraw("a", &old).await.unwrap();
    let again = w.reopen("a", &old).await.unwrap()["question_id"].as_str().unwrap().to_owned();
    w.refuses("question_conflict_open", w.reopen("a", &old)).await;
    w.withdraw("a", &again).await.unwrap();
    w.reopen("a", &old).await.unwrap();
}

/// No lease, no claim, no session: an answer needs none of them, and taking over a dead runner's lease
/// changes no question.
async fn rule_09_answers_persist_when_nobody_is_alive(w: &World) {
    w.feature_in("a", Status::Building).await;
    let dead = w.store.acquire_lease("run".into(), "old".into(), 1_000).await.unwrap().unwrap();
    let id = w.ask("a").await;
    w.later(2_000);
    let taken = w.store.acquire_lease("run".into(), "new".into(), 1_000).await.unwrap().unwrap();
    assert!(taken.epoch > dead.epoch);
    assert_eq!(w.list("a", "open").await, [id.as_str()]);
    w.answer("a", &id, json!("left")).await.unwrap();
    assert_eq!(w.context("a").await["human_input"]["latest_answer"]["question_id"], id);
}

/// Ids that would leave the root as paths never become ids.
async fn rule_10_everything_resolves_under_the_selected_project_root(w: &World) {
    for bad in ["../a", "a/b", "/etc", "..", ".", "a\\b", "", "a\0", "%2e%2e"] {
        let input = json!({"feature_id": bad, "title": "t"});
        let refusal = w.refuses("invalid_argument", w.call(Role::Human, "feature.create", input)).await;
        assert_eq!(refusal.facts["argument"], "feature_id");
        let input = json!({"feature_id": "a", "question_id": bad, "answer": "x", "answered_by": "ann"});
        let refusal =
            w.refuses("invalid_argument", w.call(Role::Human, "feature.question_answer", input)).await;
        assert_eq!(refusal.facts["argument"], "question_id");
    }
}

async fn rule_11_nobody_but_the_clock_decides_as_policy(w: &World) {
    w.feature("a").await;
    let id = w.ask("a").await;
    for name in ["policy:default", "policy:", " policy:default", "Policy:default", "\tPOLICY:x"] {
        let refusal = w.refuses("invalid_argument", w.answer_as(name, "a", &id, json!("left"))).await;
        assert_eq!(refusal.facts["argument"], "answered_by", "{name}");
    }
}

async fn rule_11_what_policy_decided_is_marked_wherever_it_is_shown(w: &World) {
    w.policy(|policy| policy.strict = false);
    w.feature("a").await;
    let expected = json!({"kind": "free_text", "default": "left"});
    let changes = json!({"default_decision_policy": "use_default", "expected_answer": expected});
    let id = w.ask_with("a", changes).await.unwrap()["question_id"].as_str().unwrap().to_owned();
    w.later(QUARTER);
    w.store.expire().await.unwrap();
    let context = w.context("a").await;
    for shown in [&w.record(&id).await, &context["human_input"]["latest_answer"]] {
        assert_eq!(shown["answered_by"], "policy:default");
        assert_eq!(shown["resolution"]["mode"], "default_by_policy");
    }
    let lost = w.refuses("question_already_answered", w.answer("a", &id, json!("right"))).await;
    assert_eq!(
        (&lost.facts["answered_by"], &lost.facts["mode"]),
        (&json!("policy:default"), &json!("default_by_policy"))
    );
    assert!(w.log("a").await.iter().any(|line| line.contains(&id) && line.contains("by policy")));
}
