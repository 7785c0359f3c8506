//! Rules 1 to 4: how many questions there may be, what is checked in which order, and who wins.

use crate::support::{World, at, on_every_backend, question};
use aop_kernel::role::Role;
use aop_kernel::status::Status;
use serde_json::{Value, json};

on_every_backend!(
    rule_01_at_most_one_open_blocking_question_whatever_the_policy_admits,
    rule_01_at_most_max_open_questions_in_all,
    rule_01_a_non_blocking_question_never_pauses_and_its_answer_reaches_the_next_turn,
    rule_02_create_records_stops_and_notes_in_one_commit,
    rule_02_create_checks_in_the_contracts_order,
    rule_02_prompt_is_not_blank,
    rule_02_prompt_is_at_most_64_kib,
    rule_02_request_is_at_most_1_mib,
    rule_03_answer_records_resumes_and_notes_in_one_commit,
    rule_03_answer_checks_in_the_contracts_order,
    rule_03_an_invalid_answer_lists_its_reasons_and_the_question_stays_open,
    rule_03_a_closed_question_says_how_it_was_closed,
    rule_04_first_writer_wins_and_the_loser_is_told_who_won,
    rule_04_answers_are_append_only,
);

async fn rule_01_at_most_one_open_blocking_question_whatever_the_policy_admits(w: &World) {
    w.policy(|policy| policy.max_open_questions_per_feature = 9);
    w.feature("a").await;
    let first = w.ask("a").await;
    let refusal = w.refuses("question_conflict_open", w.ask_with("a", json!({}))).await;
    assert_eq!(refusal.facts["open_question_id"], first);
    assert!(refusal.hint.contains(&first), "{}", refusal.hint);
    w.ask_aside("a").await;
}

async fn rule_01_at_most_max_open_questions_in_all(w: &World) {
    w.policy(|policy| policy.max_open_questions_per_feature = 2);
    w.feature("a").await;
    w.feature("b").await;
    w.ask_aside("a").await;
    let second = w.ask_aside("a").await;
    w.refuses("question_conflict_open", w.ask_with("a", json!({"blocking": false}))).await;
    w.refuses("question_conflict_open", w.ask_with("a", json!({}))).await;
    w.ask("b").await;
    w.answer("a", &second, json!("left")).await.unwrap();
    w.ask("a").await;
}

async fn rule_01_a_non_blocking_question_never_pauses_and_its_answer_reaches_the_next_turn(w: &World) {
    w.feature_in("a", Status::Building).await;
    let data = w.ask_with("a", json!({"blocking": false})).await.unwrap();
    assert_eq!((&data["feature_status"], &data["resume_status"]), (&json!("building"), &Value::Null));
    w.transition("a", Status::Qa).await.unwrap();
    let asked = data["question_id"].as_str().unwrap();
    let told = w.answer("a", asked, json!("left")).await.unwrap();
    assert_eq!((&told["feature_status"], &told["resumed"]), (&json!("qa"), &json!(false)));
    assert_eq!(w.context("a").await["human_input"]["latest_answer"]["answer"], "left");
}

async fn rule_02_create_records_stops_and_notes_in_one_commit(w: &World) {
    w.feature_in("a", Status::Building).await;
    w.later(1_000);
    let before = w.events().await.len();
    let changes = json!({"details": {"paths": ["x"]}, "expected_answer": {"kind": "free_text"},
        "operation_id": "ask-1"});
    let data = w.ask_with("a", changes).await.unwrap();
    let id = data["question_id"].as_str().unwrap();
    assert_eq!(
        data,
        json!({"question_id": id, "status": "open", "feature_status": "awaiting_input",
            "resume_status": "building", "operation_id": "ask-1"})
    );
    assert_eq!(
        w.record(id).await,
        json!({"question_id": id, "feature_id": "a", "status": "open", "blocking": true,
            "question_type": "clarification", "role": "builder", "session_id": "s1", "prompt": "Which way?",
            "details": {"paths": ["x"]}, "expected_answer": {"kind": "free_text"}, "spec": null,
            "interaction": null, "default_decision_policy": "engine_judgement",
            "expiry_policy": {"strict": true, "on_timeout": "block_feature"}, "engine_ref": null,
            "created_at": at(1_000), "expires_at": at(901_000), "resume_status": "building",
            "reopened_from": null, "answer": null, "answered_at": null, "answered_by": null,
            "resolution": null})
    );
    let human_input = json!(w.show("a").await.human_input());
    assert_eq!(
        human_input,
        json!({"open_question_id": id, "open_question_count": 1, "awaiting_since": at(1_000),
            "requested_by_role": "builder", "resume_status": "building"})
    );
    assert!(w.log("a").await.iter().any(|line| line.contains(id)));
    let events = w.events().await;
    let operations: Vec<_> = events[before..].iter().map(|event| &event.stamped.operation_id).collect();
    assert!(operations.iter().all(|id| id.as_ref().is_some_and(|id| id.as_str() == "ask-1")));
}

/// Each step mends the first thing that was wrong and meets the next.
async fn rule_02_create_checks_in_the_contracts_order(w: &World) {
    w.feature_in("gone", Status::Failed).await;
    w.feature_in("a", Status::AwaitingInput).await;
    w.policy(|policy| policy.enabled = false);
    let create = "feature.question_create";
    let mut input = question("nowhere", json!({"prompt": " ", "role": "qa"}));
    w.refuses("forbidden_for_role", w.call(Role::Builder, create, input.clone())).await;
    input["role"] = json!("builder");
    w.refuses("invalid_argument", raw(w, Role::Builder, create, &input)).await;
    input["prompt"] = json!("Which way?");
    w.refuses("operation_id_required", raw(w, Role::Builder, create, &input)).await;
    input["operation_id"] = json!("op-0");
    w.refuses("operation_id_reuse_mismatch", raw(w, Role::Builder, create, &input)).await;
    input["operation_id"] = json!("mine");
    w.refuses("feature_not_found", raw(w, Role::Builder, create, &input)).await;
    input["feature_id"] = json!("gone");
    let code = "question_answer_not_allowed_in_terminal_state";
    w.refuses(code, raw(w, Role::Builder, create, &input)).await;
    input["feature_id"] = json!("a");
    w.refuses("unsupported_operation", raw(w, Role::Builder, create, &input)).await;
    w.policy(|policy| policy.enabled = true);
    w.refuses("question_conflict_open", raw(w, Role::Builder, create, &input)).await;
    w.feature("b").await;
    input["feature_id"] = json!("b");
    raw(w, Role::Builder, create, &input).await.unwrap();
}

async fn raw(w: &World, role: Role, tool: &str, input: &Value) -> Result<Value, aop_kernel::Refusal> {
    Ok(w.raw(&aop_kernel::role::Caller::new(role), tool, input).await?.data())
}

async fn rule_02_prompt_is_not_blank(w: &World) {
    w.feature("a").await;
    for blank in ["", "  ", "\n\t", "\u{2003}"] {
        let refusal = w.refuses("invalid_argument", w.ask_with("a", json!({"prompt": blank}))).await;
        assert_eq!(refusal.facts["argument"], "prompt");
    }
}

async fn rule_02_prompt_is_at_most_64_kib(w: &World) {
    w.feature("a").await;
    let longest = "x".repeat(64 * 1024);
    let refusal =
        w.refuses("payload_too_large", w.ask_with("a", json!({"prompt": format!("{longest}x")}))).await;
    assert_eq!((&refusal.facts["size"], &refusal.facts["limit"]), (&json!(65_537), &json!(65_536)));
    w.ask_with("a", json!({"prompt": longest})).await.unwrap();
}

async fn rule_02_request_is_at_most_1_mib(w: &World) {
    w.feature("a").await;
    let details = |size: usize| json!({"details": {"text": "x".repeat(size)}});
    w.refuses("payload_too_large", w.ask_with("a", details(1024 * 1024))).await;
    w.ask_with("a", details(1024 * 1024 - 1_000)).await.unwrap();
}

async fn rule_03_answer_records_resumes_and_notes_in_one_commit(w: &World) {
    w.feature_in("a", Status::Qa).await;
    let id = w.ask("a").await;
    w.later(5_000);
    let data = w.answer("a", &id, json!({"way": "left"})).await.unwrap();
    let operation = data["operation_id"].clone();
    assert_eq!(
        data,
        json!({"question_id": id, "question_status": "answered", "feature_id": "a", "feature_status": "qa",
            "resume_status": "qa", "resumed": true, "operation_id": operation})
    );
    let record = w.record(&id).await;
    assert_eq!(record["status"], "answered");
    assert_eq!(record["answer"], json!({"way": "left"}));
    assert_eq!((&record["answered_at"], &record["answered_by"]), (&json!(at(5_000)), &json!("ann")));
    assert_eq!(
        record["resolution"],
        json!({"mode": "user_reply", "surface": "test", "operation_id": operation, "note": null})
    );
    assert!(w.log("a").await.iter().any(|line| line.contains(&id) && line.contains("answered by ann")));
    let human_input = json!(w.show("a").await.human_input());
    assert_eq!(
        human_input,
        json!({"open_question_id": null, "open_question_count": 0, "awaiting_since": null,
            "requested_by_role": null, "resume_status": null})
    );
}

async fn rule_03_answer_checks_in_the_contracts_order(w: &World) {
    w.feature("gone").await;
    let withdrawn = w.ask("gone").await;
    w.cancel("gone").await.unwrap();
    w.feature("a").await;
    let answered = w.ask("a").await;
    w.answer("a", &answered, json!("left")).await.unwrap();
    let choices = json!({"kind": "single_choice", "choices": ["left", "right"]});
    let data = w.ask_with("a", json!({"expected_answer": choices})).await.unwrap();
    let open = data["question_id"].as_str().unwrap();
    let tool = "feature.question_answer";
    let mut input =
        json!({"feature_id": "nowhere", "question_id": withdrawn, "answer": "up", "answered_by": ""});
    w.refuses("forbidden_for_role", raw(w, Role::Builder, tool, &input)).await;
    w.refuses("invalid_argument", raw(w, Role::Human, tool, &input)).await;
    input["answered_by"] = json!("bob");
    w.refuses("operation_id_required", raw(w, Role::Human, tool, &input)).await;
    input["operation_id"] = json!("op-0");
    w.refuses("operation_id_reuse_mismatch", raw(w, Role::Human, tool, &input)).await;
    input["operation_id"] = json!("mine");
    w.refuses("feature_not_found", raw(w, Role::Human, tool, &input)).await;
    input["feature_id"] = json!("gone");
    input["question_id"] = json!(answered);
    w.refuses("question_not_found", raw(w, Role::Human, tool, &input)).await;
    input["question_id"] = json!(withdrawn);
    w.refuses("question_answer_not_allowed_in_terminal_state", raw(w, Role::Human, tool, &input)).await;
    input["feature_id"] = json!("a");
    input["question_id"] = json!(answered);
    w.refuses("question_already_answered", raw(w, Role::Human, tool, &input)).await;
    input["question_id"] = json!(open);
    w.refuses("question_invalid_answer", raw(w, Role::Human, tool, &input)).await;
    input["answer"] = json!("right");
    raw(w, Role::Human, tool, &input).await.unwrap();
}

async fn rule_03_an_invalid_answer_lists_its_reasons_and_the_question_stays_open(w: &World) {
    w.feature("a").await;
    let cases = [
        (json!({"kind": "single_choice", "choices": ["x", "y"]}), json!("z"), json!("x")),
        (json!({"kind": "single_choice", "choices": ["x", "y"]}), json!(["x"]), json!("y")),
        (json!({"kind": "single_choice", "choices": ["x"], "allow_other": true}), json!(" "), json!("else")),
        (json!({"kind": "multi_choice", "choices": ["x", "y"]}), json!(["x", "z"]), json!(["y", "x"])),
        (json!({"kind": "multi_choice", "choices": ["x", "y"]}), json!([]), json!(["y"])),
        (json!({"kind": "multi_choice", "choices": ["x", "y"]}), json!(["x", "x"]), json!(["x"])),
        (json!({"kind": "free_text"}), json!("\n"), json!("words")),
        (json!({"kind": "free_text"}), json!(3), json!("3")),
        (json!({"kind": "json", "schema": {"required": ["k"]}}), json!({"l": 1}), json!({"k": [1.5, null]})),
        (Value::Null, json!(" "), json!("words")),
        (Value::Null, json!({}), json!({"k": 1})),
        (Value::Null, json!([1]), json!("words")),
    ];
    for (expected, bad, good) in cases {
        let data = w.ask_with("a", json!({"expected_answer": expected})).await.unwrap();
        let id = data["question_id"].as_str().unwrap();
        let refusal = w.refuses("question_invalid_answer", w.answer("a", id, bad.clone())).await;
        assert!(refusal.facts["reasons"].as_array().is_some_and(|reasons| !reasons.is_empty()), "{bad}");
        w.answer("a", id, good.clone()).await.unwrap();
        assert_eq!(w.record(id).await["answer"], good, "kept as it was given");
    }
}

async fn rule_03_a_closed_question_says_how_it_was_closed(w: &World) {
    w.feature("a").await;
    let withdrawn = w.ask("a").await;
    w.withdraw("a", &withdrawn).await.unwrap();
    let refusal = w.refuses("question_closed", w.answer("a", &withdrawn, json!("left"))).await;
    assert_eq!(refusal.facts["status"], "withdrawn");
    let expired = w.ask("a").await;
    w.later(crate::support::QUARTER);
    w.store.expire().await.unwrap();
    let refusal = w.refuses("question_closed", w.answer("a", &expired, json!("left"))).await;
    assert_eq!(refusal.facts["status"], "expired");
    assert!(refusal.hint.contains("aop reopen"), "{}", refusal.hint);
}

async fn rule_04_first_writer_wins_and_the_loser_is_told_who_won(w: &World) {
    w.feature("a").await;
    let id = w.ask("a").await;
    w.later(7);
    w.answer_as("ann", "a", &id, json!("left")).await.unwrap();
    w.later(8);
    let lost = w.refuses("question_already_answered", w.answer_as("bob", "a", &id, json!("right"))).await;
    assert_eq!(lost.facts["answered_by"], "ann");
    assert_eq!(lost.facts["answered_at"], at(7));
    assert_eq!(lost.facts["answer"], "left");
    let told = format!("question {id} was answered by ann at {} with 'left'; the first answer stands", at(7));
    assert_eq!(lost.message, told);
    let long = w.ask("a").await;
    w.answer("a", &long, json!("so ".repeat(1_000))).await.unwrap();
    let lost = w.refuses("question_already_answered", w.answer("a", &long, json!("right"))).await;
    assert!(lost.message.len() < 250, "{}", lost.message);
    let spec = json!({"version": 1, "topic": "t", "questions": [{"id": "key", "header": "Key",
        "question": "Key?", "kind": "free_text", "required": true, "secret": true}]});
    let asked = w.ask_with("a", json!({"spec": spec, "interaction": {"kind": "open_text"}})).await.unwrap();
    let secret = asked["question_id"].as_str().unwrap();
    w.answer("a", secret, json!("hunter2 for all of it")).await.unwrap();
    let lost = w.refuses("question_already_answered", w.answer("a", secret, json!("other"))).await;
    assert!(lost.message.contains(" with a secret; "), "{}", lost.message);
    assert!(!lost.to_json().to_string().contains("hunter2"), "{}", lost.to_json());
}

async fn rule_04_answers_are_append_only(w: &World) {
    w.feature("a").await;
    let id = w.ask("a").await;
    w.answer("a", &id, json!("left")).await.unwrap();
    let record = w.record(&id).await;
    w.refuses("question_already_answered", w.answer("a", &id, json!("left"))).await;
    w.refuses("question_already_answered", w.withdraw("a", &id)).await;
    w.refuses("question_already_answered", w.reopen("a", &id)).await;
    w.later(10 * crate::support::QUARTER);
    w.store.expire().await.unwrap();
    w.cancel("a").await.unwrap();
    assert_eq!(w.record(&id).await, record);
}
