//! Arguments: closed objects, named mistakes, and input that must not become a record nobody can read.

use crate::support::{World, on_every_backend, question};
use aop_kernel::role::Role;
use aop_kernel::tools::Tool;
use serde_json::{Value, json};

on_every_backend!(
    arguments_are_closed_objects_and_the_refusal_names_the_key,
    arguments_of_the_wrong_kind_are_named,
    arguments_must_be_an_object,
    arguments_of_an_expectation_are_checked_when_asked,
    arguments_that_nest_too_deep_are_refused_and_what_is_taken_can_be_read_back,
    arguments_with_any_number_come_back_as_they_were_given,
    arguments_with_odd_text_come_back_as_they_were_given,
    a_form_is_asked_checked_and_answered_as_a_bare_mapping,
    an_interaction_takes_any_text,
);

async fn arguments_are_closed_objects_and_the_refusal_names_the_key(w: &World) {
    w.feature("a").await;
    let id = w.ask("a").await;
    for tool in Tool::ALL {
        let mut input = match tool {
            Tool::FeatureList => json!({}),
            Tool::FeatureCreate => json!({"feature_id": "new", "title": "t"}),
            Tool::FeatureGet | Tool::FeatureGetContext | Tool::QuestionList => json!({"feature_id": "a"}),
            Tool::FeatureTransition => json!({"feature_id": "a", "to": "building"}),
            Tool::FeatureLogAppend => json!({"feature_id": "a", "note": "n"}),
            Tool::QuestionCreate => question("a", json!({})),
            Tool::QuestionAnswer => {
                json!({"feature_id": "a", "question_id": id, "answer": "x", "answered_by": "ann"})
            }
            Tool::QuestionWithdraw | Tool::QuestionReopen => json!({"feature_id": "a", "question_id": id}),
        };
        input["anser"] = json!("x");
        let refusal = w.refuses("invalid_argument", w.call(Role::Human, tool.name(), input)).await;
        assert_eq!(refusal.facts["argument"], "anser", "{}", tool.name());
        assert!(refusal.message.contains("'anser'"), "{}", refusal.message);
    }
}

async fn arguments_of_the_wrong_kind_are_named(w: &World) {
    w.feature("a").await;
    let cases = [
        ("role", json!("boss")),
        ("session_id", json!(7)),
        ("question_type", json!("riddle")),
        ("prompt", json!(["x"])),
        ("details", json!("x")),
        ("blocking", json!("yes")),
        ("interaction", json!([])),
        ("default_decision_policy", json!("coin")),
        ("timeout_ms", json!(-1)),
        ("timeout_ms", json!(1.5)),
        ("expected_answer", json!({"kind": "essay"})),
        ("expected_answer", json!({"kind": "free_text", "colour": 1})),
        ("operation_id", json!(7)),
        ("operation_id", json!("with space")),
    ];
    for (key, value) in cases {
        let refusal = w.refuses("invalid_argument", w.ask_with("a", json!({ key: value }))).await;
        assert_eq!(refusal.facts["argument"], key, "{}", refusal.message);
    }
}

async fn arguments_must_be_an_object(w: &World) {
    for input in [Value::Null, json!([]), json!("x"), json!(1)] {
        let caller = aop_kernel::role::Caller::new(Role::Human);
        let refusal = w.raw(&caller, "feature.list", &input).await.unwrap_err();
        assert_eq!(refusal.code.as_str(), "invalid_argument");
    }
}

async fn arguments_of_an_expectation_are_checked_when_asked(w: &World) {
    w.feature("a").await;
    let wrong = [
        json!({"kind": "single_choice"}),
        json!({"kind": "single_choice", "choices": []}),
        json!({"kind": "multi_choice", "choices": ["x", "x"]}),
        json!({"kind": "single_choice", "choices": ["x", " "]}),
        json!({"kind": "single_choice", "choices": ["x", "__other__"]}),
        json!({"kind": "multi_choice", "choices": ["__done__", "x"]}),
        json!({"kind": "free_text", "choices": ["x"]}),
        json!({"kind": "free_text", "allow_other": true}),
        json!({"kind": "form"}),
        json!({"kind": "json", "schema": 7}),
        json!({"kind": "single_choice", "choices": ["x"], "default": "y"}),
        json!({"kind": "free_text", "default": " "}),
        json!({"kind": "json", "schema": {"required": ["k"]}, "default": {}}),
    ];
    for expected in wrong {
        let call = w.ask_with("a", json!({"expected_answer": expected}));
        let refusal = w.refuses("invalid_argument", call).await;
        assert!(refusal.message.contains("expected_answer"), "{}", refusal.message);
    }
    let call = w.ask_with("a", json!({"spec": {"version": 1}}));
    let refusal = w.refuses("invalid_document", call).await;
    assert!(refusal.facts["violations"].as_array().is_some_and(|all| all.len() > 1));
}

/// A reader of JSON gives up at some depth, and a record wraps what it holds in further levels. Whatever is
/// accepted must therefore be read back from the log, the tables and a replay; `World::check` does that.
async fn arguments_that_nest_too_deep_are_refused_and_what_is_taken_can_be_read_back(w: &World) {
    w.feature("a").await;
    let nested = |levels: usize| (0..levels).fold(json!("core"), |inner, _| json!({ "k": inner }));
    let mut refused = 0;
    for levels in [1, 30, 60, 100, 110, 120, 124, 125, 126, 127, 128, 200] {
        for key in ["details", "interaction"] {
            match w.ask_with("a", json!({ key: nested(levels) })).await {
                Ok(data) => {
                    let id = data["question_id"].as_str().unwrap();
                    assert_eq!(w.record(id).await[key], nested(levels));
                    match w.answer("a", id, nested(levels)).await {
                        Ok(_) => assert_eq!(w.record(id).await["answer"], nested(levels)),
                        Err(_) => drop(w.withdraw("a", id).await.unwrap()),
                    }
                }
                Err(refusal) => {
                    refused += 1;
                    assert_eq!(refusal.code.as_str(), "invalid_argument");
                    assert!(refusal.message.contains("nest"), "{}", refusal.message);
                }
            }
            assert!(!w.events().await.is_empty());
        }
    }
    assert!(refused >= 2);
}

async fn arguments_with_any_number_come_back_as_they_were_given(w: &World) {
    w.feature("a").await;
    let numbers = json!([
        0,
        -1,
        u64::MAX,
        i64::MIN,
        0.1,
        1e300,
        5e-324,
        -0.0,
        1.0,
        2.2250738585072014e-308,
        31.41592653589793,
        8.988465674311579e307,
        9007199254740993_u64,
        1.7976931348623157e308,
        0.6046602879796196,
        0.9405090880450124,
        123456.789e-7,
        3.3161339051740744e-7
    ]);
    let expected = json!({"kind": "json"});
    let data =
        w.ask_with("a", json!({"details": {"n": numbers}, "expected_answer": expected})).await.unwrap();
    let id = data["question_id"].as_str().unwrap();
    w.answer("a", id, numbers.clone()).await.unwrap();
    let record = w.record(id).await;
    assert_eq!(record["answer"].to_string(), numbers.to_string());
    assert_eq!(record["details"]["n"].to_string(), numbers.to_string());
}

async fn arguments_with_odd_text_come_back_as_they_were_given(w: &World) {
    w.feature("a").await;
    let text =
        "\0 \u{7} \u{1b}[31m \r\n \u{202e} \u{fffd} \u{10ffff} \"'\\ -- '; DROP TABLE questions; é 日本";
    let changes = json!({"prompt": text, "session_id": text, "details": {text: text}});
    let id = w.ask_with("a", changes).await.unwrap()["question_id"].as_str().unwrap().to_owned();
    w.answer("a", &id, json!(text)).await.unwrap();
    let record = w.record(&id).await;
    for key in ["prompt", "session_id", "answer"] {
        assert_eq!(record[key], text);
    }
    assert_eq!(record["details"], json!({text: text}));
    assert!(w.log("a").await.iter().all(|line| !line.chars().any(char::is_control)));
}

async fn a_form_is_asked_checked_and_answered_as_a_bare_mapping(w: &World) {
    w.feature("a").await;
    let spec = json!({"version": 1, "topic": "t", "_note": "kept", "questions": [
        {"id": "way", "header": "Way", "question": "Which?", "kind": "single_choice", "required": true,
         "options": [{"label": "L", "description": "left"}, {"label": "R", "description": "right"}]},
        {"id": "why", "header": "Why", "question": "Why?", "kind": "free_text", "required": false}]});
    for answer in [
        json!({"way": "L"}),
        json!({"version": 1, "topic": "t", "answers": {"way": "L"}, "answered_at": "2026-03-04T22:00:00Z", "answered_by": "x"}),
    ] {
        let id =
            w.ask_with("a", json!({"spec": spec})).await.unwrap()["question_id"].as_str().unwrap().to_owned();
        assert_eq!(w.record(&id).await["spec"], spec);
        assert_eq!(w.record(&id).await["expected_answer"], json!({"kind": "form"}));
        for bad in
            [json!({}), json!({"way": "U"}), json!({"why": "x"}), json!({"way": "L", "why": ""}), json!("L")]
        {
            w.refuses("question_invalid_answer", w.answer("a", &id, bad)).await;
        }
        w.answer("a", &id, answer).await.unwrap();
        assert_eq!(w.record(&id).await["answer"], json!({"way": "L"}));
    }
    let spec = json!({"version": 1, "topic": "t", "questions": [
        {"id": "answers", "header": "A", "question": "Which?", "kind": "free_text", "required": true}]});
    let record = json!({"version": 1, "topic": "t", "answers": {"answers": "v"},
        "answered_at": "2026-03-04T22:00:00Z", "answered_by": "x"});
    for answer in [json!({"answers": "v"}), record] {
        let id =
            w.ask_with("a", json!({"spec": spec})).await.unwrap()["question_id"].as_str().unwrap().to_owned();
        w.answer("a", &id, answer).await.unwrap();
        assert_eq!(w.record(&id).await["answer"], json!({"answers": "v"}));
    }
}

async fn an_interaction_takes_any_text(w: &World) {
    w.feature("a").await;
    let changes = json!({"interaction": {"kind": "confirm", "options": [{"label": "Yes", "value": 1}]},
        "expected_answer": {"kind": "single_choice", "choices": ["Yes"]}});
    let id = w.ask_with("a", changes).await.unwrap()["question_id"].as_str().unwrap().to_owned();
    w.refuses("question_invalid_answer", w.answer("a", &id, json!("  "))).await;
    w.answer("a", &id, json!("rather not")).await.unwrap();
    assert_eq!(w.record(&id).await["answer"], "rather not");
}
