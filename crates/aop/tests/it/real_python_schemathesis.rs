//! schemathesis (PyPI, pinned) against the OpenAPI document and the real server: no 5xx, no response that the document
//! does not describe. `cargo xtask test-engines` installs it.

use crate::http_client::Server;
use crate::real_python_sdk::python;
use crate::support::{Project, question};
use std::process::Command;

#[test]
fn no_request_that_the_document_admits_breaks_the_server_or_the_document() {
    let project = Project::with_feature();
    project.tool("feature.question_create", "builder", &question("shop", "op-1")).data();
    let server = Server::start(&project);
    let document = format!("http://{}/api/v1/openapi.json", server.address);
    let program = python("schemathesis").with_file_name("schemathesis");
    let output = Command::new(program)
        .args(["run", &document, "--url", &format!("http://{}", server.address)])
        .args(["--header", &format!("Authorization: Bearer {}", server.token)])
        .args(["--phases", "examples,coverage,fuzzing", "--max-examples", "20", "--seed", "1", "--no-color"])
        .args([
            "--checks",
            "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
        ])
        .env_clear()
        .env("HOME", project.root())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(project.root())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    project.assert_healthy();
}
