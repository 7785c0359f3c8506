//! `aop serve` with a certificate: connections are encrypted, and files that cannot be used are named.

use crate::support::{Project, finish};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// A certificate for this machine and its key, by openssl.
fn certificate(project: &Project) {
    let mut make = Command::new("openssl");
    make.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]);
    make.args(["-addext", "subjectAltName=IP:127.0.0.1", "-out", "cert.pem", "-keyout", "key.pem"]);
    let made = finish(make.current_dir(project.root()));
    assert_eq!(made.code, Some(0), "openssl makes no certificate: {made:?}");
}

#[test]
fn with_a_certificate_connections_are_encrypted() {
    let project = Project::with_feature();
    certificate(&project);
    let mut serve = project.spawn(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--tls-cert",
        "cert.pem",
        "--tls-key",
        "key.pem",
    ]);
    let mut line = String::new();
    BufReader::new(serve.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let address = ready["url"].as_str().unwrap().strip_prefix("https://").unwrap().to_owned();
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-verify_return_error", "-CAfile", "cert.pem", "-connect", &address])
        .current_dir(project.root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = client.stdin.take().unwrap();
    write!(input, "GET /api/v1/health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let output = client.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    drop(input);
    assert!(said.starts_with("HTTP/1.1 200") && said.contains("\"status\":\"ok\""), "{said}");
    serve.kill().unwrap();
    serve.wait().unwrap();
}

#[test]
fn a_certificate_that_cannot_be_used_is_named_and_nothing_is_served() {
    let project = Project::with_feature();
    certificate(&project);
    std::fs::write(project.path("empty.pem"), "").unwrap();
    for (cert, key, named) in [
        ("none.pem", "key.pem", "none.pem"),
        ("empty.pem", "key.pem", "empty.pem"),
        ("cert.pem", "cert.pem", "cert.pem"),
    ] {
        let args = ["serve", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key];
        let error = project.run(&args).refused("invalid_argument", 2);
        assert!(error["message"].as_str().unwrap().contains(named), "{error}");
    }
    project.run(&["serve", "--tls-cert", "cert.pem"]).refused("invalid_argument", 2);
}
