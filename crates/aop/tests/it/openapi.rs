//! The OpenAPI document is generated, committed, served, and true.

use crate::http_client::Server;
use crate::support::Project;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn the_committed_document_is_the_generated_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/openapi.json");
    let generated = format!("{:#}\n", aop_server::openapi());
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == generated, "schemas/openapi.json is behind; run with UPDATE_SCHEMAS=1");
}

#[test]
fn every_address_of_the_document_is_served_and_says_what_it_should() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let id = project.ask("op-1");
    let document: Value =
        serde_json::from_str(&server.request("GET", "/api/v1/openapi.json", &[], "").body).unwrap();
    assert_eq!(document, aop_server::openapi());
    for (path, operations) in document["paths"].as_object().unwrap() {
        let path = path.replace("{question_id}", &id).replace("{feature_id}", "shop");
        for method in operations.as_object().unwrap().keys() {
            let path = if path.ends_with("/wait") { format!("{path}?timeout_s=0") } else { path.clone() };
            let body = if method == "post" { json!({}) } else { Value::Null };
            let answer = server.send(&method.to_uppercase(), &path, &body);
            let known = &operations[method]["responses"][answer.status.to_string()];
            assert!(known.is_object(), "{method} {path}: {answer:?}");
            assert!(![404, 405].contains(&answer.status), "{method} {path}: {answer:?}");
        }
    }
}

#[test]
fn what_a_change_says_is_what_the_document_says_of_it() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let document = aop_server::openapi();
    let change = |path: &str, id: &str, body: &Value| {
        let said = server.send("POST", &path.replace("{question_id}", id), body).data();
        let schema =
            &document["paths"][path]["post"]["responses"]["200"]["content"]["application/json"]["schema"];
        let of_data = &schema["properties"]["data"]["properties"];
        let names = |object: &Value| object.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(names(&said), names(of_data), "{path}");
        for (name, schema) in of_data.as_object().unwrap() {
            assert!(schema.get("const").is_none_or(|value| *value == said[name]), "{path} {name}: {said}");
        }
        said["question_id"].as_str().unwrap().to_owned()
    };
    let asked = json!({"feature_id": "shop", "prompt": "Which?"});
    let id = change("/api/v1/questions", "", &asked);
    change("/api/v1/questions/{question_id}/withdraw", &id, &json!({}));
    let again = change("/api/v1/questions/{question_id}/reopen", &id, &json!({}));
    change("/api/v1/questions/{question_id}/answer", &again, &json!({"answer": "this"}));
}

#[test]
fn features_are_read_with_their_context_and_log() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    project.ask("op-1");
    let listed = server.get("/api/v1/features?status=awaiting_input").data();
    assert_eq!(listed["items"][0]["feature_id"], "shop");
    let feature = server.get("/api/v1/features/shop");
    assert_eq!(feature.header("etag").unwrap(), format!("\"{}\"", feature.data()["version"]));
    assert_eq!(feature.data(), project.feature("shop"));
    let context = server.get("/api/v1/features/shop/context").data();
    assert_eq!(context["human_input"]["open_questions"].as_array().unwrap().len(), 1);
    let log = server.get("/api/v1/features/shop/log?after=1&limit=1").data();
    assert_eq!(log["items"][0]["seq"], 2);
    assert_eq!(server.get("/api/v1/runs").data()["items"], json!([]));
    server.get("/api/v1/features/none").refused(404, "feature_not_found");
    server.get("/api/v1/features/..%2f").refused(400, "invalid_argument");
    server.get("/api/v1/features?all=perhaps").refused(400, "invalid_argument");
}
