//! Who may call what: the table of the contract, cell by cell, and the worker's own feature.

use crate::support::{World, ids, on_every_backend, question, worker};
use aop_kernel::ErrorCode;
use aop_kernel::role::{Caller, Role};
use aop_kernel::tools::Tool;
use serde_json::{Value, json};

on_every_backend!(
    access_every_tool_for_every_role,
    access_a_worker_outside_its_feature_is_forbidden,
    access_a_worker_sees_only_its_own_feature_in_the_list,
    access_a_worker_asks_as_itself_and_the_orchestrator_for_any_role,
    access_cancel_and_retry_are_for_people_and_the_orchestrator,
);

/// `true` where the contract's table has a yes: planner, builder, qa, orchestrator, human.
fn table(tool: Tool) -> [bool; 5] {
    match tool {
        Tool::FeatureCreate | Tool::FeatureTransition | Tool::QuestionAnswer => {
            [false, false, false, true, true]
        }
        Tool::QuestionReopen => [false, false, false, false, true],
        Tool::FeatureGet
        | Tool::FeatureList
        | Tool::FeatureGetContext
        | Tool::FeatureLogAppend
        | Tool::QuestionCreate
        | Tool::QuestionList
        | Tool::QuestionWithdraw => [true; 5],
    }
}

async fn access_every_tool_for_every_role(w: &World) {
    for (index, role) in Role::ALL.iter().enumerate() {
        for tool in Tool::ALL {
            let feature = format!("{}-{role}", tool.name().replace('.', "-"));
            w.feature(&feature).await;
            let caller = worker(*role, &feature);
            let (caller, feature) = (&caller, &feature);
            let input = arguments(w, *tool, *role, feature).await;
            let result = w.call_as(caller, tool.name(), input).await;
            let code = result.as_ref().err().map(|refusal| refusal.code);
            let expected = (!table(*tool)[index]).then_some(ErrorCode::ForbiddenForRole);
            assert_eq!(code, expected, "{} for {role}: {result:?}", tool.name());
        }
    }
}

/// Arguments that succeed for whoever may call.
async fn arguments(w: &World, tool: Tool, role: Role, feature: &str) -> Value {
    let own = question(feature, json!({"role": role}));
    let asked = async || {
        let data = w.call(Role::Human, "feature.question_create", own.clone()).await.unwrap();
        data["question_id"].as_str().unwrap().to_owned()
    };
    match tool {
        Tool::FeatureCreate => json!({"feature_id": format!("{feature}-new"), "title": "t"}),
        Tool::FeatureList => json!({}),
        Tool::FeatureGet | Tool::FeatureGetContext | Tool::QuestionList => json!({"feature_id": feature}),
        Tool::FeatureTransition => json!({"feature_id": feature, "to": "building"}),
        Tool::FeatureLogAppend => json!({"feature_id": feature, "note": "n"}),
        Tool::QuestionCreate => own,
        Tool::QuestionAnswer => {
            json!({"feature_id": feature, "question_id": asked().await, "answer": "x", "answered_by": "ann"})
        }
        Tool::QuestionWithdraw => json!({"feature_id": feature, "question_id": asked().await}),
        Tool::QuestionReopen => {
            let id = asked().await;
            w.withdraw(feature, &id).await.unwrap();
            json!({"feature_id": feature, "question_id": id})
        }
    }
}

async fn access_a_worker_outside_its_feature_is_forbidden(w: &World) {
    w.feature("mine").await;
    w.feature("other").await;
    let asked = w.ask("other").await;
    let builder = worker(Role::Builder, "mine");
    let calls = [
        ("feature.get", json!({"feature_id": "other"})),
        ("feature.get", json!({"feature_id": "nowhere"})),
        ("feature.get_context", json!({"feature_id": "other"})),
        ("feature.log_append", json!({"feature_id": "other", "note": "n"})),
        ("feature.question_create", question("other", json!({}))),
        ("feature.question_list", json!({"feature_id": "other"})),
        ("feature.question_withdraw", json!({"feature_id": "other", "question_id": asked})),
    ];
    for (tool, input) in calls {
        w.refuses("forbidden_for_role", w.call_as(&builder, tool, input)).await;
    }
}

async fn access_a_worker_sees_only_its_own_feature_in_the_list(w: &World) {
    w.feature("mine").await;
    w.feature("other").await;
    let data = w.call_as(&worker(Role::Qa, "mine"), "feature.list", json!({})).await.unwrap();
    let names: Vec<_> = data["items"].as_array().unwrap().iter().map(|item| &item["feature_id"]).collect();
    assert_eq!(names, ["mine"]);
    let mine = w.ask("mine").await;
    w.ask("other").await;
    let listed = json!({"feature_id": "mine"});
    let data = w.call_as(&worker(Role::Qa, "mine"), "feature.question_list", listed).await.unwrap();
    assert_eq!(ids(&data["items"]), [mine]);
}

async fn access_a_worker_asks_as_itself_and_the_orchestrator_for_any_role(w: &World) {
    w.feature("a").await;
    let create = "feature.question_create";
    for role in [Role::Planner, Role::Qa, Role::Orchestrator, Role::Human] {
        let call = w.call(Role::Builder, create, question("a", json!({"role": role})));
        w.refuses("forbidden_for_role", call).await;
    }
    for role in [Role::Planner, Role::Builder, Role::Qa, Role::Orchestrator] {
        let data = w.call(Role::Orchestrator, create, question("a", json!({"role": role}))).await.unwrap();
        let id = data["question_id"].as_str().unwrap();
        assert_eq!(w.record(id).await["role"], json!(role));
        w.withdraw("a", id).await.unwrap();
    }
}

async fn access_cancel_and_retry_are_for_people_and_the_orchestrator(w: &World) {
    w.feature("a").await;
    for role in Role::ALL {
        let operation = || aop_kernel::ids::OperationId::parse("x").unwrap();
        let id = || crate::support::feature_id("a");
        let caller = Caller::new(*role);
        let cancel = aop_kernel::tools::OperatorCommand::Cancel.request(&caller, id(), operation(), "test");
        let retry = aop_kernel::tools::OperatorCommand::Retry.request(&caller, id(), operation(), "test");
        assert_eq!((cancel.is_ok(), retry.is_ok()), (!role.is_worker(), !role.is_worker()), "{role}");
    }
}
