//! The reference of the HTTP API, rendered from the OpenAPI document that the server gives out.

use super::GENERATED;
use super::schemas::{fields, members, shape};
use serde_json::{Map, Value};
use std::fmt::Write;

/// The whole page.
pub(super) fn page() -> String {
    let document = aop_server::openapi();
    let mut page = format!(
        "{GENERATED}\n\n# HTTP API\n\nWhat `GET /api/v1/openapi.json` says, and [`schemas/openapi.json`](../../schemas/openapi.json) holds. How to come \
         in, `/events` and `/mcp` are described in [Answering over HTTP](../http.md).\n\nEvery response is an envelope: \
         `{{\"ok\": true, \"data\": …}}`, or `{{\"ok\": false, \"error\": {{\"code\", \"message\", \"details\"}}}}` with a code of \
         [this list](errors.md), which also gives the status of each.\n"
    );
    for (path, methods) in members(&document["paths"]) {
        for (method, operation) in members(methods) {
            describe(path, method, operation, &mut page);
        }
    }
    page.push_str("\n## Records\n");
    for (name, schema) in members(&document["components"]["schemas"]) {
        // Writing to a String cannot fail.
        let _ = write!(page, "\n### {name}\n\n{}", fields(schema));
    }
    page
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn describe(path: &str, method: &str, operation: &Value, page: &mut String) {
    let _ = write!(page, "\n## `{} {path}`\n\n{}", method.to_uppercase(), text(operation, "summary"));
    if operation.get("security").is_some() {
        page.push_str(" Needs no token.");
    }
    page.push('\n');
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !parameters.is_empty() {
        page.push_str("\n| parameter | in | value | |\n|---|---|---|---|\n");
    }
    for parameter in parameters {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            text(parameter, "name"),
            text(parameter, "in"),
            shape(&parameter["schema"]),
            text(parameter, "description")
        );
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    match path.strip_prefix("/api/v1/tools/") {
        Some(tool) => {
            let anchor = tool.replace('.', "");
            let _ = write!(page, "\nBody: the arguments of [`{tool}`](tools.md#{anchor}).\n");
        }
        None if body.is_object() => {
            let _ = write!(page, "\nBody:\n\n{}", fields(body));
        }
        None => {}
    }
    let responses = operation["responses"].as_object().cloned().unwrap_or_else(Map::new);
    let data = &responses["200"]["content"]["application/json"]["schema"]["properties"]["data"];
    let _ = write!(page, "\n`data`: {}\n", shape(data));
    let refused = responses.iter().filter(|(status, _)| *status != "200");
    let refused: Vec<String> = refused
        .map(|(status, response)| {
            format!("{status} ({})", text(response, "description").trim_end_matches('.').to_lowercase())
        })
        .collect();
    let _ = write!(page, "\nRefused with {}.\n", refused.join(", "));
}
