//! Who gets in through HTTP, and who does not.

use crate::http_client::Server;
use crate::mcp_client::Client;
use crate::support::{Project, question};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::time::Duration;

const AGENT: (&str, &str) = ("AOP_AGENT", r#"{"feature_id": "shop", "role": "builder", "claim": "c-1"}"#);

fn token(project: &Project, args: &[&str]) -> (String, String) {
    let made = project.run(&[&["token", "create"], args].concat()).data();
    (made["token_id"].as_str().unwrap().to_owned(), made["token"].as_str().unwrap().to_owned())
}

#[test]
fn a_token_is_shown_once_stored_as_a_digest_and_good_until_it_is_revoked() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let (id, ana) = token(&project, &["--kind", "operator", "--name", "ana", "--expires", "30d"]);
    server.send_as(&ana, "GET", "/api/v1/questions", &Value::Null).data();
    let listed = project.run(&["token", "list"]);
    assert!(!listed.stdout.contains(&ana[40..]) && !listed.stdout.contains("digest"), "{listed:?}");
    assert_eq!(listed.data()["items"][0]["state"], "good");
    for (path, content) in crate::support::tree(&project.path(".aop")) {
        let found = |secret: &str| content.windows(64).any(|window| window == secret.as_bytes());
        assert!(!found(&ana[ana.len() - 64..]), "{} holds a token", path.display());
        assert!(!found(&server.token[server.token.len() - 64..]), "{} holds a token", path.display());
    }
    project.run(&["token", "revoke", &id]).data();
    project.run(&["token", "revoke", &id]).data();
    server.send_as(&ana, "GET", "/api/v1/questions", &Value::Null).refused(401, "unauthenticated");
    let (_, short) = token(&project, &["--kind", "operator", "--expires", "1ms"]);
    server.send_as(&short, "GET", "/api/v1/questions", &Value::Null).refused(401, "unauthenticated");
    project.run(&["token", "revoke", "t_none"]).refused("invalid_argument", 2);
}

#[test]
fn forged_and_replayed_tokens_open_nothing() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let (_, good) = token(&project, &["--kind", "operator"]);
    let mut other_end = good.clone();
    other_end.replace_range(good.len() - 1.., if good.ends_with('0') { "1" } else { "0" });
    for forged in ["x", "", &good[..good.len() - 1], &other_end, &good.to_uppercase(), "aop_'; DROP TABLE_0"]
    {
        server.send_as(forged, "GET", "/api/v1/questions", &Value::Null).refused(401, "unauthenticated");
    }
    let answer = server.request("GET", "/api/v1/questions", &[], "");
    answer.refused(401, "unauthenticated");
    assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"));
    let basic = [("Authorization", format!("Basic {good}"))];
    let basic = basic.each_ref().map(|(key, value)| (*key, value.as_str()));
    server.request("GET", "/api/v1/questions", &basic, "").refused(401, "unauthenticated");
    let old = server.token.clone();
    server.stop();
    let server = Server::start(&project);
    server.send_as(&old, "GET", "/api/v1/questions", &Value::Null).refused(401, "unauthenticated");
    server.send_as(&good, "GET", "/api/v1/questions", &Value::Null).data();
}

#[test]
fn an_agents_token_asks_and_reads_its_feature_and_never_answers() {
    let project = Project::with_feature();
    project.create_feature("other");
    let server = Server::start(&project);
    let (_, agent) = token(&project, &["--kind", "agent", "--feature-id", "shop", "--name", "bot"]);
    let send = |method: &str, path: &str, body: &Value| server.send_as(&agent, method, path, body);
    let tool = |name: &str, body: &Value| send("POST", &format!("/api/v1/tools/{name}"), body);
    let id = tool("feature.question_create", &question("shop", "op-1")).data()["question_id"].clone();
    let id = id.as_str().unwrap();
    let answer = json!({"feature_id": "shop", "question_id": id, "answer": "yes", "answered_by": "human",
        "operation_id": "sneaky"});
    tool("feature.question_answer", &answer).refused(403, "forbidden_for_role");
    let at = |end: &str| format!("/api/v1/questions/{id}/{end}");
    send("POST", &at("answer"), &json!({"answer": "yes"})).refused(403, "forbidden_for_role");
    send("POST", &at("answer"), &json!({"answer": "yes", "role": "human"}))
        .refused(403, "forbidden_for_role");
    send("POST", &at("reopen"), &json!({})).refused(403, "forbidden_for_role");
    tool("feature.transition", &json!({"feature_id": "shop", "to": "qa", "operation_id": "t"}))
        .refused(403, "forbidden_for_role");
    tool("feature.get", &json!({"feature_id": "other"})).refused(403, "forbidden_for_role");
    tool("feature.question_create", &question("other", "op-2")).refused(403, "forbidden_for_role");
    send("GET", "/api/v1/questions?feature_id=other", &Value::Null).refused(403, "forbidden_for_role");
    assert_eq!(send("GET", "/api/v1/questions", &Value::Null).data()["items"].as_array().unwrap().len(), 1);
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let refused = server.request("POST", "/login", &form, &format!("token={agent}"));
    assert_eq!((refused.status, refused.header("set-cookie")), (403, None));
    assert_eq!(project.feature("shop")["status"], "awaiting_input");
    // It follows its own feature and sees nothing of others.
    let mut events = server.follow(&agent, Some(0));
    project.tool(
        "feature.log_append",
        "human",
        &json!({"feature_id": "other", "note": "n", "operation_id": "n1"}),
    );
    project.tool(
        "feature.log_append",
        "human",
        &json!({"feature_id": "shop", "note": "n", "operation_id": "n2"}),
    );
    let seen: Vec<Value> = std::iter::from_fn(|| events.next()).map(|(_, event)| event).take(4).collect();
    assert!(seen.iter().all(|event| event["feature_id"] == "shop"), "{seen:?}");
    let (_, lone) = token(&project, &["--kind", "agent"]);
    server.send_as(&lone, "GET", "/api/v1/questions", &Value::Null).refused(403, "forbidden_for_role");
}

#[test]
fn the_api_gives_a_secret_to_nobody() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let (_, agent) = token(&project, &["--kind", "agent", "--feature-id", "shop"]);
    let mut input = question("shop", "op-1");
    input["expected_answer"] = Value::Null;
    input["spec"] = json!({"version": 1, "topic": "login", "questions": [{"id": "key", "header": "Key",
        "question": "Key?", "kind": "free_text", "required": true, "secret": true}]});
    let asked = server.send_as(&agent, "POST", "/api/v1/questions", &input).data();
    let path = format!("/api/v1/questions/{}", asked["question_id"].as_str().unwrap());
    server.send("POST", &format!("{path}/answer"), &json!({"answer": {"key": "s3cret"}})).data();
    for (who, end) in [(&agent, ""), (&agent, "/wait?timeout_s=1"), (&server.token, "")] {
        let told = server.send_as(who, "GET", &format!("{path}{end}"), &Value::Null).data();
        assert_eq!(told["answer"], json!({"key": {"redacted": true}}));
    }
}

#[test]
fn an_operator_answers_under_the_name_of_the_token() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let (_, ana) = token(&project, &["--kind", "operator", "--name", "ana"]);
    let id = project.ask("op-1");
    let body = json!({"answer": "yes", "answered_by": "somebody else"});
    server.send_as(&ana, "POST", &format!("/api/v1/questions/{id}/answer"), &body).data();
    assert_eq!(server.get(&format!("/api/v1/questions/{id}")).data()["answered_by"], "ana");
    project
        .run(&["token", "create", "--kind", "operator", "--name", "policy:default"])
        .refused("invalid_argument", 2);
    project.run(&["token", "create", "--kind", "king"]).refused("invalid_argument", 2);
    project.run(&["token", "create", "--kind", "agent", "--role", "human"]).refused("forbidden_for_role", 1);
    project
        .run(&["token", "create", "--kind", "agent", "--feature-id", "none"])
        .refused("feature_not_found", 1);
}

#[test]
fn whoever_signs_with_a_token_is_refused_the_same_names_as_everybody_else() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let (_, ana) = token(&project, &["--kind", "operator", "--name", "ana"]);
    let id = project.ask("op-1");
    let path = format!("/api/v1/questions/{id}/answer");
    for name in
        [json!(7), json!([]), json!(""), json!("policy:default"), json!("a\nb"), json!("x".repeat(201))]
    {
        let body = json!({"answer": "yes", "answered_by": name});
        let tool = json!({"answer": "yes", "answered_by": name, "feature_id": "shop", "question_id": id,
            "operation_id": "a"});
        let refusal = server.send("POST", &path, &body).refused(400, "invalid_argument");
        assert_eq!(refusal["details"]["argument"], "answered_by", "{refusal}");
        assert_eq!(server.send_as(&ana, "POST", &path, &body).refused(400, "invalid_argument"), refusal);
        let tools = "/api/v1/tools/feature.question_answer";
        assert_eq!(server.send_as(&ana, "POST", tools, &tool).refused(400, "invalid_argument"), refusal);
        let arguments = [("AOP_TOKEN", ana.as_str())];
        let mut client = Client::start_with(&project, &["--role", "human"], &arguments, &json!({}));
        assert_eq!(client.refused("feature.question_answer", &tool, "invalid_argument"), refusal);
    }
    for body in
        [json!({"answer": "yes", "answered_by": null}), json!({"answer": "yes", "answered_by": "bob"})]
    {
        let key = [("Idempotency-Key", "one"), ("Authorization", &*format!("Bearer {ana}"))];
        server.request("POST", &path, &key, &body.to_string()).data();
    }
    assert_eq!(server.get(&format!("/api/v1/questions/{id}")).data()["answered_by"], "ana");
}

#[test]
fn an_agent_makes_no_tokens_and_starts_no_server() {
    let project = Project::with_feature();
    for args in [
        &["token", "create", "--kind", "operator"][..],
        &["token", "create", "--kind", "agent", "--feature-id", "shop"],
        &["token", "list"],
        &["token", "revoke", "t_x"],
        &["serve", "--listen", "127.0.0.1:0"],
    ] {
        project.run_with(args, &[AGENT]).refused("forbidden_for_role", 1);
    }
}

#[test]
fn a_link_shows_a_page_and_its_button_signs_in() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let link = server.login_url.split_once(&server.address).unwrap().1;
    let page = server.request("GET", link, &[], "");
    assert_eq!((page.status, page.header("set-cookie")), (200, None), "nothing is decided by a link");
    assert!(page.body.contains("<button"), "{page:?}");
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let signed = server.request("POST", "/login", &[form], &format!("token={}", server.token));
    assert_eq!((signed.status, signed.header("location")), (303, Some("/")));
    let cookie = signed.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(server.request("GET", "/", &[("Cookie", cookie)], "").status, 200);
    assert_eq!(server.request("GET", "/", &[], "").status, 303);
    let wrong = server.request("POST", "/login", &[form], "token=x");
    assert_eq!((wrong.status, wrong.header("set-cookie")), (401, None));
    let away =
        server.request("POST", "/login", &[form], &format!("next=//evil.example&token={}", server.token));
    assert_eq!(away.header("location"), Some("/"));
    let markup = server.request("GET", "/login?token=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", &[], "");
    assert!(!markup.body.contains("<script"), "{markup:?}");
}

#[test]
fn a_session_ends_with_its_token_and_when_signed_out() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let (id, ana) = token(&project, &["--kind", "operator", "--name", "ana"]);
    let cookie = sign_in(&server, &ana);
    let page = server.request("GET", "/", &[("Cookie", &cookie)], "");
    assert!(page.body.contains("ana"), "{page:?}");
    project.run(&["token", "revoke", &id]).data();
    assert_eq!(server.request("GET", "/", &[("Cookie", &cookie)], "").status, 303);
    let cookie = sign_in(&server, &server.token);
    let csrf = csrf(&server, &cookie);
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let without = server.request("POST", "/logout", &[form, ("Cookie", &cookie)], "csrf=0");
    assert_eq!(without.status, 403);
    // A proxy in front may have a name and a password of its own.
    let proxied = [form, ("Cookie", &cookie), ("Authorization", "Basic YW5uOmVsbGU=")];
    let out = server.request("POST", "/logout", &proxied, &format!("csrf={csrf}"));
    assert_eq!(out.status, 303);
    assert_eq!(server.request("GET", "/", &[("Cookie", &cookie)], "").status, 303);
}

#[test]
fn a_session_that_begins_over_tls_stays_there_also_behind_a_proxy() {
    let project = Project::with_feature();
    let server = Server::start_with(&project, &["--allow-host", "box.example"], &[]);
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let body = format!("token={}", server.token);
    let own = format!("http://{}", server.address);
    for (origin, secure) in [("https://box.example", true), ("http://box.example", false), (&own, false)] {
        let signed = server.request("POST", "/login", &[form, ("Origin", origin)], &body);
        assert_eq!(signed.header("set-cookie").unwrap().contains("; Secure"), secure, "{origin}: {signed:?}");
    }
}

#[test]
fn a_cookie_alone_changes_nothing() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let id = project.ask("op-1");
    let cookie = sign_in(&server, &server.token);
    let path = format!("/api/v1/questions/{id}/answer");
    let body = json!({"answer": "yes"}).to_string();
    let cookie = ("Cookie", cookie.as_str());
    server.request("POST", &path, &[cookie], &body).refused(403, "forbidden_for_role");
    server
        .request("POST", &path, &[cookie, ("X-CSRF-Token", "guess")], &body)
        .refused(403, "forbidden_for_role");
    let evil = [cookie, ("Origin", "http://evil.example")];
    server.request("POST", &path, &evil, &body).refused(403, "forbidden_for_role");
    assert_eq!(project.feature("shop")["status"], "awaiting_input");
    let csrf = csrf(&server, cookie.1);
    server.request("POST", &path, &[cookie, ("X-CSRF-Token", &csrf)], &body).data();
}

#[test]
fn behind_a_proxy_with_a_password_of_its_own_a_browser_goes_by_its_session() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let id = project.ask("op-1");
    let cookie = sign_in(&server, &server.token);
    let csrf = csrf(&server, &cookie);
    let (cookie, proxy) = (("Cookie", cookie.as_str()), ("Authorization", "Basic YW5uOmVsbGU="));
    // More often than wrong credentials are listened to.
    for _ in 0..25 {
        server.request("GET", "/api/v1/questions", &[cookie, proxy], "").data();
    }
    let mut stream = server.connect();
    stream.write_all(server.head("GET", "/events", &[cookie, proxy], 0).as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    let path = format!("/api/v1/questions/{id}/answer");
    let body = json!({"answer": "yes"}).to_string();
    server.request("POST", &path, &[cookie, proxy], &body).refused(403, "forbidden_for_role");
    let token = ("X-CSRF-Token", csrf.as_str());
    server.request("POST", &path, &[cookie, proxy, token], &body).data();
    let mcp = server.request("POST", "/mcp", &[cookie, proxy, token], "{}").refused(401, "unauthenticated");
    assert!(mcp["message"].as_str().unwrap().contains("does not speak MCP"), "{mcp}");
    // A token of ours is what counts, where there is one; and without a session the password opens nothing.
    for wrong in ["Bearer wrong", "Bearer", "bearer  "] {
        let headers = [cookie, ("Authorization", wrong)];
        server.request("GET", "/api/v1/questions", &headers, "").refused(401, "unauthenticated");
    }
    server.request("GET", "/api/v1/questions", &[proxy], "").refused(401, "unauthenticated");
}

#[test]
fn a_request_with_more_than_one_authorization_is_refused() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let cookie = sign_in(&server, &server.token);
    let own = format!("Bearer {}", server.token);
    for (one, other) in [(own.as_str(), own.as_str()), (&own, "Bearer wrong"), ("Basic YTpi", &own)] {
        let both = [("Authorization", one), ("Authorization", other), ("Cookie", cookie.as_str())];
        let turned = [both[1], both[0], both[2]];
        for headers in [both, turned] {
            for path in ["/api/v1/questions", "/api/v1/health", "/events", "/mcp", "/nowhere"] {
                let refusal = server.request("GET", path, &headers, "").refused(400, "invalid_argument");
                assert_eq!(refusal["details"]["argument"], "Authorization", "{refusal}");
            }
            let body = json!({"answer": "yes"}).to_string();
            let path = format!("/api/v1/questions/{}/answer", project.ask("op-1"));
            server.request("POST", &path, &headers, &body).refused(400, "invalid_argument");
        }
    }
    assert_eq!(server.request("GET", "/", &[("Cookie", &cookie)], "").status, 200);
}

#[test]
fn requests_for_other_names_and_from_other_sites_are_refused() {
    let project = Project::with_feature();
    let server = Server::start_with(&project, &["--allow-host", "box.example"], &[]);
    let port = server.address.rsplit(':').next().unwrap();
    let get = |headers: &[(&str, &str)]| server.request("GET", "/api/v1/health", headers, "");
    for host in
        ["evil.example", &format!("evil.example:{port}"), "localhost.evil.example", "10.0.0.1", "a@localhost"]
    {
        get(&[("Host", host)]).refused(403, "forbidden_for_role");
    }
    for host in [format!("localhost:{port}"), format!("[::1]:{port}"), format!("box.example:{port}")] {
        get(&[("Host", &host)]).data();
        get(&[("Host", &host), ("Origin", &format!("http://{host}"))]).data();
        get(&[("Host", &host), ("Origin", "null")]).refused(403, "forbidden_for_role");
        get(&[("Host", &host), ("Origin", "http://localhost:1")]).refused(403, "forbidden_for_role");
    }
    // Behind a proxy the browser names the proxy, whatever the proxy calls this server.
    for origin in ["https://box.example", "https://box.example:8443", "http://BOX.example"] {
        get(&[("Host", &server.address), ("Origin", origin)]).data();
    }
    for origin in [
        "https://box.example.evil",
        "https://evil@box.example",
        "https://box.example/",
        "box.example",
        "ftp://box.example",
    ] {
        get(&[("Host", &server.address), ("Origin", origin)]).refused(403, "forbidden_for_role");
    }
    for other in ["evil.example", "évil.example", "", &server.address] {
        get(&[("Host", &server.address), ("Host", other)]).refused(400, "invalid_argument");
        get(&[("Host", other), ("Host", &server.address)]).refused(400, "invalid_argument");
    }
    get(&[("Host", "évil.example")]).refused(400, "invalid_argument");
    // A whole address is what is meant, whatever `Host` says.
    let whole = |place: &str, host: &str| {
        server.request("GET", &format!("http://{place}/api/v1/health"), &[("Host", host)], "")
    };
    whole(&server.address, "evil.example").data();
    for place in ["evil.example", "evil@localhost"] {
        whole(place, &server.address).refused(403, "forbidden_for_role");
    }
}

#[test]
fn every_response_tells_a_browser_to_do_nothing_clever() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    for path in
        ["/", "/login", "/api/v1/health", "/api/v1/questions", "/nothing", "/../../etc/passwd", "/%2e%2e/x"]
    {
        let answer = server.request("GET", path, &[], "");
        let policy = answer.header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{path}");
        assert!(!policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path}");
        }
        assert!(answer.status < 500, "{path}: {answer:?}");
    }
}

#[test]
fn large_bodies_are_refused_however_they_are_sent() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let bearer = format!("Bearer {}", server.token);
    let path = "/api/v1/tools/feature.log_append";
    let large = "x".repeat(2_000_000);
    let plain = server.request("POST", path, &[("Authorization", &bearer)], &large);
    plain.refused(413, "payload_too_large");
    let chunked = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    let headers = [("Authorization", bearer.as_str()), ("Transfer-Encoding", "chunked")];
    server.request("POST", path, &headers, &chunked).refused(413, "payload_too_large");
    let long = format!("/api/v1/questions?feature_id={}", "x".repeat(100_000));
    assert!(server.get(&long).status >= 400);
    server.request("GET", "/api/v1/health", &[], "").data();
}

#[test]
fn clients_that_dawdle_are_cut_off() {
    let project = Project::with_feature();
    let server = Server::start_with(&project, &[], &[("AOP_HEAD_MS", "300")]);
    let mut slow = server.connect();
    slow.write_all(b"GET /api/v1/health HTTP/1.1\r\nHost: ").unwrap();
    let mut rest = Vec::new();
    // The server closes the connection, with or without a word.
    let _ = slow.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
    server.request("GET", "/api/v1/health", &[], "").data();
}

#[test]
fn clients_that_read_no_answers_lose_their_seat_and_those_that_wait_keep_it() {
    let project = Project::with_feature();
    let id = project.ask("op-1");
    let server = Server::start_with(&project, &[], &[("AOP_UNREAD_MS", "300")]);
    let mut events = server.follow(&server.token, None);
    let waiting = server.begin("GET", &format!("/api/v1/questions/{id}/wait"));
    let mut greedy = server.connect();
    greedy.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    let request = format!("GET /login HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    // One after the other, until the server has hung up: that breaks the write that it had stopped to read.
    let broken =
        std::iter::repeat_with(|| greedy.write_all(request.as_bytes())).find_map(Result::err).unwrap();
    let kinds = [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::BrokenPipe];
    assert!(kinds.contains(&broken.kind()), "{broken}");
    project.answer(&id, "yes").data();
    assert_eq!(waiting.finish().data()["answer"], "yes");
    assert_eq!(events.next().unwrap().1["type"], "question.answered");
}

#[test]
fn a_token_that_is_taken_back_while_a_body_is_sent_is_good_for_nothing() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let body = json!({"answer": "yes"}).to_string();
    let path = format!("/api/v1/questions/{}/answer", project.ask("op-1"));
    for (is_revoked, status) in [(true, "401"), (false, "200")] {
        let (id, ana) = token(&project, &["--kind", "operator", "--name", "ana"]);
        let mut stream = server.connect();
        let own = format!("Bearer {ana}");
        let head = server.head("POST", &path, &[("Authorization", &own)], body.len());
        stream.write_all((head + &body[..4]).as_bytes()).unwrap();
        stream.flush().unwrap();
        std::thread::sleep(Duration::from_millis(600));
        if is_revoked {
            project.run(&["token", "revoke", &id]).data();
        }
        std::thread::sleep(Duration::from_millis(700));
        stream.write_all(&body.as_bytes()[4..]).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(&answer[9..12], status, "{answer}");
    }
}

#[test]
fn a_body_is_read_only_for_somebody_who_is_known() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let (large, path) = ("x".repeat(2_000_000), "/api/v1/tools/feature.log_append");
    server.request("POST", path, &[], &large).refused(401, "unauthenticated");
    let wrong = [("Authorization", "Bearer wrong")];
    server.request("POST", path, &wrong, &large).refused(401, "unauthenticated");
    server.request("POST", "/mcp", &[], &large).refused(401, "unauthenticated");
    let elsewhere = [("Origin", "http://evil.example")];
    server.request("POST", path, &elsewhere, &large).refused(403, "forbidden_for_role");
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    assert_eq!(server.request("POST", "/questions/q_1/answer", &[form], &large).status, 303);
    // A form that signs in is read before anybody is known; it is short.
    assert_eq!(server.request("POST", "/login", &[form], &"x".repeat(9_000)).status, 413);
    // Whoever asks before sending is told without having sent anything.
    let head = server.head("POST", path, &[("Expect", "100-continue")], 900_000);
    let mut waiting = server.connect();
    waiting.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    let cookie = sign_in(&server, &server.token);
    let large = [("Cookie", cookie.as_str()), form];
    assert_eq!(server.request("POST", "/logout", &large, &"x".repeat(100_000)).status, 403);
}

#[test]
fn wrong_credentials_are_soon_not_listened_to_and_right_ones_always() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let codes: Vec<u16> =
        (0..30).map(|_| server.send_as("wrong", "GET", "/api/v1/questions", &Value::Null).status).collect();
    assert!(
        codes[..20].iter().all(|code| *code == 401) && codes[20..].iter().all(|code| *code == 429),
        "{codes:?}"
    );
    let told = server.send_as("wrong", "GET", "/api/v1/questions", &Value::Null);
    let seconds = told.refused(429, "rate_limited")["details"]["retry_after_s"].to_string();
    assert_eq!(told.header("retry-after"), Some(seconds.as_str()));
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let limited = server.request("POST", "/login", &[form], "token=wrong");
    assert_eq!((limited.status, limited.header("set-cookie")), (429, None));
    let seconds = limited.header("retry-after").expect("also a person who signs in is told for how long");
    assert!(limited.body.contains(&format!("wait {seconds} seconds")), "{limited:?}");
    server.get("/api/v1/questions").data();
}

#[test]
fn no_header_can_be_smuggled_through_what_a_client_sends() {
    let project = Project::with_feature();
    let server = Server::start(&project);
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let body = format!("token={}&next=/a%0d%0aSet-Cookie:%20evil=1", server.token);
    let answer = server.request("POST", "/login", &[form], &body);
    assert_eq!(answer.header("location"), Some("/"));
    assert!(answer.headers.iter().all(|(_, value)| !value.contains("evil")), "{answer:?}");
    let page = server.request("GET", "/login?next=/x%0d%0aX-Evil:%201", &[], "");
    assert_eq!(page.header("x-evil"), None);
    let both = [("Content-Length", "5"), ("Transfer-Encoding", "chunked"), ("Authorization", "Bearer x")];
    assert!(
        server.request("POST", "/api/v1/tools/feature.get", &both, "0\r\n\r\nGET / HTTP/1.1\r\n\r\n").status
            >= 400
    );
}

fn sign_in(server: &Server, token: &str) -> String {
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let signed = server.request("POST", "/login", &[form], &format!("token={token}"));
    signed.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

fn csrf(server: &Server, cookie: &str) -> String {
    let page = server.request("GET", "/", &[("Cookie", cookie)], "").body;
    let (_, rest) = page.split_once("name=\"csrf\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}
