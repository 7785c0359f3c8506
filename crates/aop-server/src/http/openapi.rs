//! The OpenAPI document: one table of addresses, and the schemas that the parsers of the tools stand by. It is
//! generated here, committed as `schemas/openapi.json`, and served.

use super::{Shared, features, questions};
use aop_kernel::ErrorCode;
use aop_kernel::question::QuestionStatus;
use aop_kernel::status::Status;
use aop_kernel::tools::{Tool, envelope_schema};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::{Map, Value, json};

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/api/v1/openapi.json", get(served))
}

async fn served() -> axum::response::Response {
    super::reply::json(StatusCode::OK, document().to_string())
}

/// One operation.
struct Route {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    /// Query parameters: name, schema.
    query: Vec<(&'static str, Value)>,
    /// The body; `None` when it has none.
    body: Option<Value>,
    /// The schema of `data`.
    data: Value,
    /// Whether it takes `Idempotency-Key` and `If-Match`.
    headers: &'static [&'static str],
    /// What it may be refused with, beside what every address may.
    refusals: &'static [ErrorCode],
    open: bool,
}

impl Route {
    fn get(path: &'static str, summary: &'static str, data: Value) -> Self {
        Route {
            method: "get",
            path,
            summary,
            query: Vec::new(),
            body: None,
            data,
            headers: &[],
            refusals: &[],
            open: false,
        }
    }

    fn post(path: &'static str, summary: &'static str, body: Value, data: Value) -> Self {
        Route {
            method: "post",
            body: Some(body),
            headers: &["Idempotency-Key"],
            ..Route::get(path, summary, data)
        }
    }

    fn query(mut self, name: &'static str, schema: Value) -> Self {
        self.query.push((name, schema));
        self
    }

    fn refusals(self, refusals: &'static [ErrorCode]) -> Self {
        Route { refusals, ..self }
    }
}

const OF_QUESTION: &[ErrorCode] = &[ErrorCode::QuestionNotFound, ErrorCode::ForbiddenForRole];
const OF_FEATURE: &[ErrorCode] = &[ErrorCode::FeatureNotFound, ErrorCode::ForbiddenForRole];
const OF_CHANGE: &[ErrorCode] = &[
    ErrorCode::QuestionNotFound,
    ErrorCode::ForbiddenForRole,
    ErrorCode::QuestionAlreadyAnswered,
    ErrorCode::QuestionInvalidAnswer,
];
const OF_TOOL: &[ErrorCode] = &[
    ErrorCode::FeatureNotFound,
    ErrorCode::ForbiddenForRole,
    ErrorCode::QuestionConflictOpen,
    ErrorCode::QuestionInvalidAnswer,
];

fn table() -> Vec<Route> {
    let question = || reference("Question");
    let feature = || reference("Feature");
    let items = |of: Value| json!({"type": "object", "properties": {"items": {"type": "array", "items": of}}, "required": ["items"]});
    let names = |names: Vec<&str>| json!({"type": "string", "enum": names});
    let whole = |least: u64, most: u64| json!({"type": "integer", "minimum": least, "maximum": most});
    let mut statuses: Vec<&str> = QuestionStatus::ALL.iter().map(|status| status.as_str()).collect();
    statuses.push("all");
    let closed = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let operation = || Tool::QuestionAnswer.input_schema()["properties"]["operation_id"].clone();
    let text = || json!({"type": "string", "minLength": 1});
    let note = || closed(json!({"note": text(), "operation_id": operation()}), &[]);
    let paged = |of: Value| {
        let mut listed = items(of);
        listed["properties"]["next_cursor"] = json!({"type": ["string", "null"], "description": "The cursor of the next page; null on the last one."});
        listed["required"] = json!(["items", "next_cursor"]);
        listed
    };
    // What a change leaves behind, beside what it says of itself.
    let changed = |own: Value| {
        let mut properties = json!({"operation_id": operation(), "question_id": pattern("question_id"),
            "feature_status": names(Status::ALL.iter().map(|status| status.as_str()).collect())});
        for (name, schema) in own.as_object().into_iter().flatten() {
            properties[name] = schema.clone();
        }
        let required: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
        json!({"type": "object", "properties": properties, "required": required})
    };
    let resumes = || json!({"type": ["string", "null"], "description": "Where the feature goes on; null when it did not wait."});
    let now = |status: &str| json!({"status": {"const": status}});
    let mut ask = Tool::QuestionCreate.input_schema();
    ask["required"] = json!(["prompt"]);
    let mut routes = vec![
        Route { open: true, ..Route::get("/api/v1/health", "Whether the server and its store are there.", reference("Health")) },
        Route::get("/api/v1/version", "The version of the server.", json!({"type": "object", "properties": {"version": {"type": "string"}}, "required": ["version"]})),
        Route::get("/api/v1/questions", "Questions, oldest first; open ones unless status says otherwise.", paged(question()))
            .query("status", names(statuses))
            .query("feature_id", pattern("feature_id"))
            .query("limit", whole(1, questions::LARGEST_PAGE as u64))
            .query("cursor", pattern("question_id"))
            .refusals(&[ErrorCode::FeatureNotFound, ErrorCode::ForbiddenForRole]),
        Route::post("/api/v1/questions", "Asks a human and returns at once.", ask, changed(json!({"status": {"const": "open"}, "resume_status": resumes()}))).refusals(OF_TOOL),
        Route::get("/api/v1/questions/{question_id}", "One question.", question()).refusals(OF_QUESTION),
        Route::get("/api/v1/questions/{question_id}/wait", "The question when it is closed, or as it stands after that time; with follow, the one by which a person asked it again last.", question())
            .query("timeout_s", whole(0, questions::LONGEST_WAIT as u64))
            .query("follow", json!({"type": "boolean"}))
            .refusals(OF_QUESTION),
        Route {
            headers: &["Idempotency-Key", "If-Match"],
            ..Route::post(
                "/api/v1/questions/{question_id}/answer",
                "Answers. A token with a name answers under its name.",
                closed(json!({"answer": {"description": "Text, an object, or a list for several choices."}, "answered_by": text(), "operation_id": operation()}), &["answer"]),
                changed(json!({"question_status": {"const": "answered"}, "feature_id": pattern("feature_id"), "resume_status": resumes(), "resumed": {"type": "boolean"}})),
            )
            .refusals(OF_CHANGE)
        },
        Route {
            headers: &["Idempotency-Key", "If-Match"],
            ..Route::post("/api/v1/questions/{question_id}/withdraw", "Takes an open question back.", note(), changed(now("withdrawn"))).refusals(OF_CHANGE)
        },
        Route {
            headers: &["Idempotency-Key", "If-Match"],
            ..Route::post("/api/v1/questions/{question_id}/reopen", "Asks an expired or withdrawn question again.", note(), changed(now("open"))).refusals(OF_CHANGE)
        },
        Route::get("/api/v1/features", "The features; an agent sees its own.", items(feature()))
            .query("status", names(Status::ALL.iter().map(|status| status.as_str()).collect()))
            .query("all", json!({"type": "boolean"}))
            .refusals(&[ErrorCode::ForbiddenForRole]),
        Route::get("/api/v1/features/{feature_id}", "One feature.", feature()).refusals(OF_FEATURE),
        Route::get("/api/v1/features/{feature_id}/context", "What a turn should know of its feature.", json!({"type": "object", "required": ["feature_id", "state", "human_input"]})).refusals(OF_FEATURE),
        Route::get("/api/v1/features/{feature_id}/log", "What happened to the feature, oldest first.", items(reference("Event")))
            .query("after", whole(0, i64::MAX as u64))
            .query("limit", whole(1, features::LARGEST_PAGE as u64))
            .refusals(OF_FEATURE),
        Route::get("/api/v1/runs", "The project's runs, each once, oldest first.", paged(json!({"type": "object"})))
            .query("limit", whole(1, features::LARGEST_PAGE as u64))
            .query("cursor", json!({"type": "string", "pattern": "^r_[0-7][0-9A-HJKMNP-TV-Z]{25}$"}))
            .refusals(&[ErrorCode::ForbiddenForRole]),
    ];
    for tool in Tool::ALL {
        let path: &'static str = tool_path(*tool);
        let body = tool.input_schema();
        let route = Route::post(path, tool.summary(), body, json!({"type": "object"})).refusals(OF_TOOL);
        routes.push(if tool.is_mutating() { route } else { Route { headers: &[], ..route } });
    }
    routes
}

fn tool_path(tool: Tool) -> &'static str {
    match tool {
        Tool::FeatureCreate => "/api/v1/tools/feature.create",
        Tool::FeatureGet => "/api/v1/tools/feature.get",
        Tool::FeatureList => "/api/v1/tools/feature.list",
        Tool::FeatureGetContext => "/api/v1/tools/feature.get_context",
        Tool::FeatureTransition => "/api/v1/tools/feature.transition",
        Tool::FeatureLogAppend => "/api/v1/tools/feature.log_append",
        Tool::QuestionCreate => "/api/v1/tools/feature.question_create",
        Tool::QuestionList => "/api/v1/tools/feature.question_list",
        Tool::QuestionAnswer => "/api/v1/tools/feature.question_answer",
        Tool::QuestionWithdraw => "/api/v1/tools/feature.question_withdraw",
        Tool::QuestionReopen => "/api/v1/tools/feature.question_reopen",
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The schema of an id, from the tool that takes it.
fn pattern(name: &str) -> Value {
    Tool::QuestionAnswer.input_schema()["properties"][name].clone()
}

/// The whole document.
pub fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in table() {
        let entry = paths.entry(route.path.to_owned()).or_insert_with(|| json!({}));
        entry[route.method] = operation(&route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "aop",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Questions that agents ask and people answer. Every response is an envelope; GET /events (server-sent events) and /mcp (Model Context Protocol) stand beside this API.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:7417"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "A token of `aop token create`, or the one that `aop serve` printed."}},
            "schemas": schemas(),
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    for id in ["question_id", "feature_id"] {
        if route.path.contains(&format!("{{{id}}}")) {
            parameters.push(json!({"name": id, "in": "path", "required": true, "schema": pattern(id)}));
        }
    }
    for (name, schema) in &route.query {
        parameters.push(json!({"name": name, "in": "query", "required": false, "schema": schema}));
    }
    for name in route.headers {
        let description = match *name {
            "Idempotency-Key" => {
                "The operation id: the same again returns the first success and changes nothing."
            }
            _ => "The ETag of the record as it was read; also several, separated by commas.",
        };
        let schema = if *name == "Idempotency-Key" {
            json!({"type": "string", "pattern": "^[!-~]{1,128}$"})
        } else {
            json!({"type": "string"})
        };
        parameters.push(json!({"name": name, "in": "header", "required": false, "schema": schema, "description": description}));
    }
    let mut operation =
        json!({"operationId": operation_id(route), "summary": route.summary, "responses": responses(route)});
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
    if let Some(body) = &route.body {
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": body}}});
    }
    if route.open {
        operation["security"] = json!([]);
    }
    operation
}

fn operation_id(route: &Route) -> String {
    let words = route.path.trim_start_matches("/api/v1/").replace(['/', '.'], "_").replace(['{', '}'], "");
    format!("{}_{words}", route.method)
}

fn responses(route: &Route) -> Value {
    let success = json!({"type": "object", "properties": {"ok": {"const": true}, "data": route.data}, "required": ["ok", "data"], "additionalProperties": false});
    let mut responses = Map::new();
    responses.insert(
        "200".into(),
        json!({"description": "Done.", "content": {"application/json": {"schema": success}}}),
    );
    let every = [ErrorCode::InvalidArgument, ErrorCode::StoreUnavailable];
    let signed = [ErrorCode::Unauthenticated, ErrorCode::RateLimited, ErrorCode::ForbiddenForRole];
    let sent = [ErrorCode::PayloadTooLarge, ErrorCode::VersionConflict];
    let codes = every
        .iter()
        .chain(signed.iter().filter(|_| !route.open))
        .chain(sent.iter().filter(|_| route.body.is_some()))
        .chain(route.refusals);
    let mut statuses: Vec<u16> = codes.map(|code| code.http_status()).collect();
    statuses.sort_unstable();
    statuses.dedup();
    for status in statuses {
        responses.insert(status.to_string(), json!({"description": described(status), "content": {"application/json": {"schema": reference("Refusal")}}}));
    }
    Value::Object(responses)
}

fn described(status: u16) -> &'static str {
    match status {
        400 => "An argument is wrong.",
        401 => "No valid credential.",
        403 => "Not allowed for this credential.",
        404 => "Not there.",
        409 => "A conflict, or the wrong state for this.",
        413 => "Too large.",
        422 => "The answer does not fit what the question expects.",
        429 => "Too many wrong credentials.",
        503 => "The store cannot be reached.",
        _ => "Refused.",
    }
}

fn schemas() -> Value {
    let envelope = envelope_schema();
    let mut error = envelope["properties"]["error"].clone();
    let codes: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    error["properties"]["code"] = json!({"type": "string", "enum": codes});
    let name = |names: Vec<&str>| json!({"type": "string", "enum": names});
    let time = || json!({"type": "string", "format": "date-time"});
    let perhaps = |kind: &str| json!({"type": [kind, "null"]});
    json!({
        "Refusal": {"type": "object", "properties": {"ok": {"const": false}, "error": error}, "required": ["ok", "error"], "additionalProperties": false},
        "Health": {"type": "object", "properties": {"status": {"const": "ok"}, "version": {"type": "string"}}, "required": ["status", "version"]},
        "Question": {
            "type": "object",
            "properties": {
                "question_id": pattern("question_id"), "feature_id": pattern("feature_id"),
                "status": name(QuestionStatus::ALL.iter().map(|status| status.as_str()).collect()),
                "blocking": {"type": "boolean"}, "question_type": {"type": "string"}, "role": {"type": "string"},
                "session_id": {"type": "string"}, "prompt": {"type": "string"}, "details": perhaps("object"),
                "expected_answer": perhaps("object"), "spec": perhaps("object"), "interaction": perhaps("object"),
                "created_at": time(), "expires_at": perhaps("string"), "resume_status": perhaps("string"),
                "reopened_from": perhaps("string"), "answer": {}, "answered_at": perhaps("string"),
                "answered_by": perhaps("string"), "resolution": perhaps("object"),
            },
            "required": ["question_id", "feature_id", "status", "blocking", "question_type", "prompt", "created_at"],
        },
        "Feature": {
            "type": "object",
            "properties": {
                "feature_id": pattern("feature_id"), "title": {"type": "string"},
                "status": name(Status::ALL.iter().map(|status| status.as_str()).collect()),
                "status_since": time(),
                "activity_state": {"type": "string"}, "open_question_count": {"type": "integer"},
                "open_question_id": perhaps("string"), "awaiting_since": perhaps("string"),
                "resume_status": perhaps("string"), "version": {"type": "integer"},
                "created_at": time(), "updated_at": time(),
            },
            "required": ["feature_id", "title", "status", "activity_state", "version"],
        },
        "Event": {
            "type": "object",
            "properties": {
                "seq": {"type": "integer", "minimum": 1}, "feature_id": pattern("feature_id"), "at": time(),
                "actor": {"type": "string"}, "type": {"type": "string"}, "operation_id": perhaps("string"),
            },
            "required": ["seq", "feature_id", "at", "actor", "type"],
        },
    })
}
