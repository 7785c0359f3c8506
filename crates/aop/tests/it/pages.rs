//! The dashboard as HTTP sees it: what agents write never becomes markup, nothing is decided by a link, and the first
//! answer stands.

use crate::http_client::{Answer, Server};
use crate::run_support::{git, workshop};
use crate::support::{Project, question};
use serde_json::{Value, json};

/// Breaks out of text, of attributes and of scripts, and turns what follows round, if anything lets it.
const EVIL: &str = "\u{202e}&#x202e;\"'></textarea></pre><x-evil onload=alert(1)>{{7*7}}";

pub(crate) struct Visit<'a> {
    server: &'a Server,
    cookie: String,
}

impl<'a> Visit<'a> {
    pub(crate) fn sign_in(server: &'a Server) -> Self {
        Visit::sign_in_with(server, &server.token)
    }

    fn sign_in_with(server: &'a Server, token: &str) -> Self {
        let form = [("Content-Type", "application/x-www-form-urlencoded")];
        let answer = server.request("POST", "/login", &form, &format!("token={token}"));
        assert_eq!(answer.status, 303, "{answer:?}");
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        Visit { server, cookie }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.server.request("GET", path, &[("Cookie", &self.cookie), ("Accept", "text/html")], "")
    }

    pub(crate) fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
        let body: Vec<String> =
            fields.iter().map(|(key, value)| format!("{}={}", encode(key), encode(value))).collect();
        let headers =
            [("Cookie", self.cookie.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
        self.server.request("POST", path, &headers, &body.join("&"))
    }

    /// The hidden fields of the form on a page.
    fn hidden(&self, path: &str, name: &str) -> String {
        let page = self.get(path).body;
        let start = page.rfind(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{page}"));
        page[start..].split('"').nth(3).unwrap().to_owned()
    }
}

fn evil_project() -> (Project, Vec<String>) {
    let project =
        Project::with_settings("policy: {execution: {human_input: {max_open_questions_per_feature: 20}}}\n");
    let input = json!({"feature_id": "evil", "title": EVIL, "spec": EVIL, "operation_id": "f"});
    project.tool("feature.create", "human", &input).data();
    project
        .tool(
            "feature.log_append",
            "human",
            &json!({"feature_id": "evil", "note": EVIL, "operation_id": "n"}),
        )
        .data();
    let base = json!({"feature_id": "evil", "role": "builder", "session_id": EVIL, "question_type": "risk_ack", "prompt": EVIL,
        "details": {EVIL: EVIL, "deep": {EVIL: [EVIL]}}, "blocking": false});
    let shapes = [
        json!({"expected_answer": {"kind": "single_choice", "choices": [EVIL, "no"], "allow_other": true, "default": EVIL}}),
        json!({"expected_answer": {"kind": "multi_choice", "choices": [EVIL, "no"]}}),
        json!({"expected_answer": {"kind": "json", "schema": {"title": EVIL}}}),
        json!({"interaction": {"prompt": EVIL, "options": [{"label": EVIL, "value": EVIL}]}}),
        json!({"spec": {"version": 1, "topic": EVIL, "questions": [{"id": "a", "header": EVIL, "question": EVIL,
            "kind": "single_choice", "required": true, "default": EVIL,
            "options": [{"label": EVIL, "description": EVIL, "preview": EVIL, "cluster": EVIL}]}]}}),
    ];
    let mut ids = Vec::new();
    for (index, shape) in shapes.iter().enumerate() {
        let mut input = base.clone();
        shape.as_object().unwrap().iter().for_each(|(key, value)| input[key] = value.clone());
        input["operation_id"] = json!(format!("q{index}"));
        let asked = project.tool("feature.question_create", "builder", &input).data();
        ids.push(asked["question_id"].as_str().unwrap().to_owned());
    }
    let answer = json!({"feature_id": "evil", "question_id": ids[0], "answer": EVIL, "answered_by": EVIL, "operation_id": "a"});
    project.tool("feature.question_answer", "human", &answer).data();
    let withdraw = json!({"feature_id": "evil", "question_id": ids[1], "note": EVIL, "operation_id": "w"});
    project.tool("feature.question_withdraw", "human", &withdraw).data();
    project
        .tool(
            "feature.transition",
            "human",
            &json!({"feature_id": "evil", "to": "blocked", "reason": EVIL, "operation_id": "t"}),
        )
        .data();
    let turn = project.path(".aop/runs/r_01J9ZQ4V7K3M2N1P0R5S6T7V8W/evil/builder-1");
    std::fs::create_dir_all(&turn).unwrap();
    std::fs::write(turn.join("transcript.jsonl"), EVIL).unwrap();
    (project, ids)
}

#[test]
fn nothing_an_agent_writes_becomes_markup_on_any_page() {
    let (project, ids) = evil_project();
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    let mut paths: Vec<String> = [
        "/",
        "/features",
        "/features/evil",
        "/features/evil/changes",
        "/features/evil/transcripts",
        "/features/evil/transcripts/r_01J9ZQ4V7K3M2N1P0R5S6T7V8W/builder-1/transcript.jsonl",
        "/activity",
    ]
    .map(str::to_owned)
    .to_vec();
    for id in &ids {
        paths.extend([
            format!("/questions/{id}"),
            format!("/questions/{id}/withdraw"),
            format!("/questions/{id}/reopen"),
        ]);
    }
    let mut seen = 0;
    for path in &paths {
        let page = visit.get(path);
        assert_eq!(page.status, 200, "{path}: {page:?}");
        assert!(!page.body.contains("<x-evil"), "{path}: {}", page.body);
        assert!(
            !page.body.contains(" style=") && !page.body.contains("<script>"),
            "{path} has something inline"
        );
        assert!(!page.body.contains('\u{202e}'), "{path} obeys a sign that turns the text: {}", page.body);
        seen += usize::from(page.body.contains("x-evil"));
    }
    assert!(seen > 10, "the texts are there, as text ({seen})");
    // What somebody typed comes back as text as well.
    let path = format!("/questions/{}", ids[2]);
    let csrf = visit.hidden(&path, "csrf");
    let page = visit.post(&format!("{path}/answer"), &[("csrf", &csrf), ("f0.text", EVIL)]);
    assert_eq!(page.status, 422, "{page:?}");
    assert!(page.body.contains("x-evil") && !page.body.contains("<x-evil"), "{}", page.body);
    let nowhere = visit.get("/nowhere/%3Cx-evil%3E");
    assert!(nowhere.status == 404 && !nowhere.body.contains("<x-evil"), "{nowhere:?}");
}

/// A worktree in which a builder has made files and committed nothing, and a server that was started where git is told
/// to work elsewhere.
#[test]
fn files_that_were_only_created_are_changes_and_git_works_on_this_project() {
    let project = workshop("");
    project.create_feature("shop");
    git(&project, &["worktree", "add", "--quiet", "-b", "aop/shop", ".aop/worktrees/shop"]);
    let elsewhere = [("GIT_DIR", "/nowhere"), ("GIT_WORK_TREE", "/nowhere"), ("GIT_INDEX_FILE", "/nowhere")];
    let server = Server::start_with(&project, &[], &elsewhere);
    let visit = Visit::sign_in(&server);
    let page = visit.get("/features/shop/changes").body;
    assert!(page.contains("Nothing has been changed so far."), "{page}");
    std::fs::write(project.path(".aop/worktrees/shop/fresh.txt"), "<x-evil>\n").unwrap();
    std::fs::write(project.path(".aop/worktrees/shop/ignored.log"), "noise\n").unwrap();
    std::fs::write(project.path(".aop/worktrees/shop/.gitignore"), "*.log\n").unwrap();
    let page = visit.get("/features/shop/changes").body;
    assert!(!page.contains("Nothing has been changed") && !page.contains("ignored.log"), "{page}");
    assert!(page.contains("fresh.txt") && page.contains("+&#60;x-evil&#62;"), "{page}");
}

#[test]
fn what_is_allowed_is_what_is_seen_on_every_page() {
    let project = Project::with_feature();
    let command = "rm -rf a/*.o b/*.o; python __main__.py # and\n\n[x]: $(touch${IFS}/tmp/boo)";
    let input = json!({"feature_id": "shop", "role": "builder", "session_id": "s", "operation_id": "q",
        "question_type": "permission_override", "prompt": format!("Allow this?\n\n{command}"),
        "details": {"tool\u{200b}": "Write", "input": {"file_path": "a\u{2060}b", "content": "\u{202e}c"}}});
    let asked = project.tool("feature.question_create", "builder", &input).data();
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    let path = format!("/questions/{}", asked["question_id"].as_str().unwrap());
    let page = visit.get(&path).body;
    assert!(page.contains(&format!("Allow this?\n\n{command}</pre>")), "{page}");
    let (before, _) = page.split_once("id=\"answer\"").unwrap();
    for detail in ["tool⟨U+200B⟩", "a⟨U+2060⟩b", "⟨U+202E⟩c"] {
        assert!(before.contains(detail), "{detail} stands before what allows it: {page}");
        assert_eq!(page.matches(detail).count(), 1, "{page}");
    }
    let line = command.replace("\n\n", " ");
    for path in ["/".to_owned(), "/features/shop".to_owned(), format!("{path}/withdraw")] {
        let page = visit.get(&path).body;
        assert!(page.contains(&format!("Allow this? {line}<")), "{path}: {page}");
    }
}

#[test]
fn two_options_that_differ_look_different_on_a_page() {
    let project = Project::with_feature();
    let mut input = question("shop", "q");
    input["expected_answer"]["choices"] = json!(["allow", "allow\u{200b}"]);
    let asked = project.tool("feature.question_create", "builder", &input).data();
    let server = Server::start(&project);
    let path = format!("/questions/{}", asked["question_id"].as_str().unwrap());
    let page = Visit::sign_in(&server).get(&path).body;
    assert!(page.contains(">allow<") && page.contains(">allow⟨U+200B⟩<"), "{page}");
}

#[test]
fn a_form_that_comes_back_asks_for_its_secret_again() {
    let project = Project::with_feature();
    let input = json!({"feature_id": "shop", "role": "builder", "session_id": "s", "operation_id": "q",
        "question_type": "clarification", "prompt": "Set it up", "spec": {"version": 1, "topic": "t", "questions": [
        {"id": "key", "header": "Key", "question": "Key?", "kind": "free_text", "required": false, "secret": true},
        {"id": "db", "header": "Database", "question": "Which?", "kind": "free_text", "required": true}]}});
    let asked = project.tool("feature.question_create", "builder", &input).data();
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    let path = format!("/questions/{}", asked["question_id"].as_str().unwrap());
    let csrf = visit.hidden(&path, "csrf");
    let page = visit.post(&format!("{path}/answer"), &[("csrf", &csrf), ("f0.secret", "s3cret")]);
    assert_eq!(page.status, 422, "{page:?}");
    assert!(!page.body.contains("s3cret"), "{}", page.body);
    assert!(page.body.contains("Type this again: secrets are not sent back."), "{}", page.body);
    assert!(page.body.contains("Not sent: complete or correct the marked fields. Your other input is kept, except secrets: type them again."), "{}", page.body);
}

#[test]
fn what_is_typed_for_a_secret_choice_is_not_shown_on_its_page() {
    let project = Project::with_feature();
    let choice = |id: &str, kind: &str, secret: bool| {
        json!({"id": id, "header": id, "question": "Which?", "kind": kind, "required": true, "allow_other": true,
            "secret": secret, "options": [{"label": "One", "description": "The first"}]})
    };
    let questions = [
        choice("open", "single_choice", false),
        choice("key", "single_choice", true),
        choice("keys", "multi_choice", true),
    ];
    let input = json!({"feature_id": "shop", "role": "builder", "session_id": "s", "operation_id": "q",
        "question_type": "clarification", "prompt": "Set it up",
        "spec": {"version": 1, "topic": "t", "questions": questions}});
    let asked = project.tool("feature.question_create", "builder", &input).data();
    let server = Server::start(&project);
    let path = format!("/questions/{}", asked["question_id"].as_str().unwrap());
    let page = Visit::sign_in(&server).get(&path).body;
    assert!(page.contains("<textarea id=\"f0-text\""), "{page}");
    assert!(page.contains("name=\"f0\" value=\"0\">"), "{page}");
    for name in ["f1", "f2"] {
        // Nor is it chosen again for whoever goes back to the page.
        assert!(page.contains(&format!("name=\"{name}\" value=\"0\" autocomplete=\"off\"")), "{page}");
        assert!(page.contains(&format!("<input type=\"password\" id=\"{name}-text\"")), "{page}");
        assert!(!page.contains(&format!("<textarea id=\"{name}-text\"")), "{page}");
    }
}

#[test]
fn a_field_names_what_it_asks_and_what_is_wrong_for_whoever_hears_the_page() {
    let project = Project::with_feature();
    let options = json!([{"label": "One", "description": "The first"}]);
    let input = json!({"feature_id": "shop", "role": "builder", "session_id": "s", "operation_id": "q",
        "question_type": "clarification", "prompt": "Set it up", "spec": {"version": 1, "topic": "t", "questions": [
        {"id": "a", "header": "A", "question": "Which?", "kind": "single_choice", "required": true, "options": options},
        {"id": "b", "header": "B", "question": "Which?", "kind": "multi_choice", "required": true, "options": options},
        {"id": "c", "header": "C", "question": "Why?", "kind": "free_text", "required": true},
        {"id": "d", "header": "D", "question": "Key?", "kind": "free_text", "required": true, "secret": true}]}});
    let asked = project.tool("feature.question_create", "builder", &input).data();
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    let path = format!("/questions/{}", asked["question_id"].as_str().unwrap());
    let csrf = visit.hidden(&path, "csrf");
    for (page, error) in
        [(visit.get(&path), false), (visit.post(&format!("{path}/answer"), &[("csrf", &csrf)]), true)]
    {
        for field in ["f0", "f1", "f2", "f3"] {
            let wrong = format!(" {field}-error\" aria-invalid=\"true\"");
            let says = format!("aria-describedby=\"{field}-ask{}", if error { &wrong } else { "\"" });
            assert_eq!(page.body.matches(&says).count(), 1, "{says}: {}", page.body);
            assert!(page.body.contains(&format!("id=\"{field}-ask\"")), "{}", page.body);
            assert_eq!(page.body.contains(&format!("id=\"{field}-error\"")), error, "{}", page.body);
        }
    }
}

#[test]
fn an_optional_choice_of_one_has_an_option_for_no_answer_and_a_required_one_has_none() {
    let project = Project::with_feature();
    let choice = |id: &str, required: bool| {
        json!({"id": id, "header": id, "question": "Which?", "kind": "single_choice", "required": required,
            "options": [{"label": "One", "description": "The first"}]})
    };
    let input = json!({"feature_id": "shop", "role": "builder", "session_id": "s", "operation_id": "q",
        "question_type": "clarification", "prompt": "Set it up",
        "spec": {"version": 1, "topic": "t", "questions": [choice("a", true), choice("b", false)]}});
    let asked = project.tool("feature.question_create", "builder", &input).data();
    let server = Server::start(&project);
    let path = format!("/questions/{}", asked["question_id"].as_str().unwrap());
    let page = Visit::sign_in(&server).get(&path).body;
    assert_eq!(page.matches("value=\"none\"").count(), 1, "{page}");
    assert!(page.contains("name=\"f1\" value=\"none\""), "{page}");
}

#[test]
fn a_link_decides_nothing_and_a_form_needs_its_token() {
    let project = Project::with_feature();
    let id = project.ask("one");
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    let path = format!("/questions/{id}");
    for step in ["withdraw", "reopen"] {
        assert_eq!(visit.get(&format!("{path}/{step}")).status, 200);
    }
    let loaded = visit.get(&format!("{path}/answer"));
    assert_eq!((loaded.status, loaded.header("location")), (303, Some(path.as_str())));
    assert_eq!(visit.post(&format!("{path}/answer"), &[("f0", "0")]).status, 403);
    assert_eq!(visit.post(&format!("{path}/withdraw"), &[("csrf", "wrong")]).status, 403);
    assert_eq!(project.feature("shop")["status"], "awaiting_input");
    let signed_out = server.request("GET", &path, &[], "");
    assert_eq!(signed_out.status, 303);
    assert_eq!(signed_out.header("location"), Some(format!("/login?next={path}").as_str()));
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let sent = server.request("POST", &format!("{path}/answer"), &form, "f0=0");
    assert_eq!(sent.header("location"), signed_out.header("location"), "back to the page of the form");
    let csrf = visit.hidden(&path, "csrf");
    let withdrawn = visit.post(&format!("{path}/withdraw"), &[("csrf", &csrf), ("note", "not needed")]);
    assert_eq!(withdrawn.status, 303, "{withdrawn:?}");
    assert!(visit.get(&path).body.contains("Withdrawn"));
    let again = visit.post(&format!("{path}/reopen"), &[("csrf", &csrf)]);
    assert_eq!(again.status, 303, "{again:?}");
    let fresh = visit.get(again.header("location").unwrap()).body;
    assert!(fresh.contains("an earlier question"), "{fresh}");
}

#[test]
fn the_page_of_a_question_that_was_asked_again_leads_to_the_open_one() {
    let project = Project::with_feature();
    let first = project.ask("one");
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    let path = format!("/questions/{first}");
    let (withdraw, reopen) = (format!("{path}/withdraw"), format!("{path}/reopen"));
    let csrf = visit.hidden(&path, "csrf");
    visit.post(&withdraw, &[("csrf", &csrf)]);
    assert!(visit.get(&path).body.contains("Ask it again"));
    let again = visit.post(&reopen, &[("csrf", &csrf)]);
    let later = again.header("location").unwrap().to_owned();
    let link = format!("href=\"{later}\"");
    let page = visit.get(&path).body;
    assert!(page.contains(&link) && page.contains("a later question</a> (open)"), "{page}");
    assert!(!page.contains("Ask it again"), "{page}");
    let refused = visit.post(&reopen, &[("csrf", &csrf)]);
    assert_eq!(refused.status, 409, "{refused:?}");
    for page in [visit.get(&reopen).body, refused.body] {
        assert!(page.contains("It was asked again already") && page.contains(&link), "{page}");
        assert!(!page.contains("name=\"note\"") && !page.contains("becomes"), "{page}");
    }
    // Once that is closed as well, there is nothing in the way.
    visit.post(&format!("{later}/withdraw"), &[("csrf", &csrf)]);
    let page = visit.get(&path).body;
    assert!(page.contains("a later question</a> (withdrawn)") && page.contains("Ask it again"), "{page}");
    assert!(visit.get(&reopen).body.contains("becomes a new open question"));
}

#[test]
fn a_page_promises_nothing_that_cannot_happen_any_more() {
    let project = Project::with_feature();
    let id = project.ask("one");
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    let path = format!("/questions/{id}");
    assert!(!visit.get(&format!("{path}/reopen")).body.contains("name=\"note\""), "it is open");
    let csrf = visit.hidden(&path, "csrf");
    project.answer(&id, "yes").data();
    for step in ["withdraw", "reopen"] {
        let refused = visit.post(&format!("{path}/{step}"), &[("csrf", &csrf), ("note", "not needed")]);
        assert!(refused.status == 409 && refused.body.contains("<textarea readonly"), "{refused:?}");
        for page in [visit.get(&format!("{path}/{step}")), refused] {
            assert!(
                page.body.contains("It is answered already, and the first answer stands."),
                "{}",
                page.body
            );
            assert!(!page.body.contains("name=\"note\"") && !page.body.contains("becomes"), "{}", page.body);
        }
    }
}

#[test]
fn a_lone_question_is_shown_without_the_feature_that_it_brought_along() {
    let project = Project::new();
    let server = Server::start(&project);
    let prompt = "Which *one*?";
    let asked = json!({"prompt": prompt, "timeout_ms": 3_600_000, "operation_id": "q"});
    let asked = server.send("POST", "/api/v1/questions", &asked).data();
    let visit = Visit::sign_in(&server);
    let path = format!("/questions/{}", asked["question_id"].as_str().unwrap());
    let (inbox, page, withdraw) =
        (visit.get("/").body, visit.get(&path).body, visit.get(&format!("{path}/withdraw")).body);
    assert!(
        inbox.contains(">outside any feature</a>") && page.contains(">outside any feature</a>"),
        "{inbox}{page}"
    );
    assert!(page.contains("Which <em>one</em>?") && !page.contains("<dt>Feature</dt>"), "{page}");
    assert!(page.contains("expires, and whoever asked is told that nobody answered."), "{page}");
    assert!(withdraw.contains("whoever asked is told that it got no answer."), "{withdraw}");
    let feature = page.split("href=\"/features/ask-").nth(1).unwrap().split('"').next().unwrap();
    let feature = visit.get(&format!("/features/ask-{feature}")).body;
    assert!(feature.contains("Waits for an answer") && !feature.contains("No run is active"), "{feature}");
    for page in [page, withdraw, feature] {
        assert!(!page.contains("goes on in") && !page.contains("is blocked"), "{page}");
    }
}

#[test]
fn a_person_is_refused_with_a_page() {
    let project = Project::with_feature();
    let id = project.ask("one");
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    let path = format!("/questions/{id}/answer");
    let csrf = visit.hidden(&format!("/questions/{id}"), "csrf");
    let again = Visit::sign_in(&server);
    let replaced = again.post(&path, &[("csrf", &csrf), ("f0", "0")]);
    assert_eq!(replaced.status, 403, "{replaced:?}");
    assert!(replaced.body.contains("<h1>That is not allowed</h1>"), "{}", replaced.body);
    assert!(replaced.body.contains("go back, load it again"), "{}", replaced.body);
    let made = project.run(&["token", "create", "--kind", "agent", "--feature-id", "shop"]).data();
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let token = made["token"].as_str().unwrap();
    let agent = server.request("POST", "/login", &form, &format!("token={token}"));
    assert_eq!(agent.status, 403, "{agent:?}");
    assert!(agent.body.contains("an agent&#39;s token does not sign in"), "{}", agent.body);
    assert!(agent.body.contains("name=\"token\""), "the right one can be given at once: {}", agent.body);
    let unread = server.request("POST", "/login", &[("Content-Type", "text/plain")], "x");
    assert!(unread.status == 400 && unread.body.contains("<h1>"), "{unread:?}");
}

#[test]
fn a_browser_is_refused_with_a_page_and_a_program_with_json_whatever_is_wrong() {
    let project = Project::with_feature();
    let id = project.ask("one");
    let server = Server::start(&project);
    let cookie = Visit::sign_in(&server).cookie;
    let large = format!("f0.text={}", "x".repeat(2_000_000));
    let answer = format!("/questions/{id}/answer");
    let elsewhere = ("Host", "evil.example");
    for (method, path, body, status, more) in [
        ("POST", answer.as_str(), large.as_str(), 413, None),
        ("PUT", &answer, "", 405, None),
        ("GET", "/logout", "", 405, None),
        ("GET", "/nowhere", "", 404, None),
        ("GET", "/", "", 403, Some(elsewhere)),
    ] {
        let form = ("Content-Type", "application/x-www-form-urlencoded");
        let mut headers = vec![("Cookie", cookie.as_str()), form];
        headers.extend(more);
        let told = server.request(method, path, &headers, body);
        assert_eq!((told.status, &told.json()["ok"]), (status, &json!(false)), "{method} {path}");
        headers.push(("Accept", "text/html,*/*;q=0.8"));
        let shown = server.request(method, path, &headers, body);
        assert_eq!(shown.status, status, "{method} {path}: {shown:?}");
        assert!(
            shown.body.contains("<h1>") && shown.header("content-type").unwrap().contains("html"),
            "{shown:?}"
        );
        assert_eq!(shown.header("allow"), told.header("allow"));
    }
    // Programs that accept pages show none: below the API everybody gets JSON.
    let headers =
        [("Authorization", format!("Bearer {}", server.token)), ("Accept", "text/html, */*".into())];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    for (method, path, status) in [("PUT", "/api/v1/questions", 405), ("GET", "/api/v1/nowhere", 404)] {
        let told = server.request(method, path, &headers, "");
        assert_eq!((told.status, &told.json()["ok"]), (status, &json!(false)), "{method} {path}");
    }
}

#[test]
fn what_was_typed_is_shown_back_when_the_session_has_ended_or_changed() {
    let project = Project::with_feature();
    let id = project.ask("one");
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    let path = format!("/questions/{id}");
    let csrf = visit.hidden(&path, "csrf");
    let thought = format!("a long thought {EVIL}");
    let fields = [("csrf", csrf.as_str()), ("f0", "0"), ("f0.text", &thought), ("f1.secret", "s3cret")];
    let (signed_out, replaced) = (Visit { server: &server, cookie: String::new() }, Visit::sign_in(&server));
    let login = format!("/login?next={path}");
    for (visit, status, way) in [(&signed_out, 401, &login), (&replaced, 403, &path)] {
        let page = visit.post(&format!("{path}/answer"), &fields);
        assert_eq!(page.status, status, "{page:?}");
        assert_eq!(page.body.matches("<textarea readonly").count(), 1, "{}", page.body);
        assert!(page.body.contains("a long thought") && !page.body.contains("<x-evil"), "{}", page.body);
        assert!(page.body.contains(&format!("href=\"{way}\" target=\"_blank\"")), "{}", page.body);
        assert!(!page.body.contains("s3cret"), "{}", page.body);
    }
    let note = signed_out.post(&format!("{path}/withdraw"), &[("note", "not needed")]);
    assert!(note.status == 401 && note.body.contains(">not needed</textarea>"), "{note:?}");
    assert_eq!(project.feature("shop")["status"], "awaiting_input");
}

#[test]
fn a_double_click_is_one_answer_and_a_late_one_keeps_its_text() {
    let project = Project::with_feature();
    let id = project.ask("one");
    let server = Server::start(&project);
    let token = project.run(&["token", "create", "--kind", "operator", "--name", "Ada <L>"]).data();
    let visit = Visit::sign_in_with(&server, token["token"].as_str().unwrap());
    let path = format!("/questions/{id}");
    let (csrf, operation) = (visit.hidden(&path, "csrf"), visit.hidden(&path, "operation_id"));
    let send = |choice: &str, operation: &str| {
        let fields = [("csrf", csrf.as_str()), ("operation_id", operation), ("f0", choice)];
        visit.post(&format!("{path}/answer"), &fields)
    };
    assert_eq!(send("9", &operation).status, 422, "an option that is not there is no answer");
    assert_eq!(send("0", &operation).status, 303);
    assert_eq!(send("0", &operation).status, 303, "the same form again is the same answer");
    for operation in [operation.as_str(), "another"] {
        let late = send("1", operation);
        assert_eq!(late.status, 409, "{late:?}");
        assert!(late.body.contains("Ada &#60;L&#62; answered first, with “yes”"), "{}", late.body);
        assert!(late.body.contains(">Somebody was faster</h2>"), "{}", late.body);
        assert!(late.body.contains(">no</textarea>"), "{}", late.body);
    }
    let page = visit.get(&path).body;
    assert!(
        page.contains("Ada &#60;L&#62; answered")
            && page.contains("Next question") | page.contains("Back to the inbox")
    );
    assert_eq!(project.feature("shop")["status"], "planning");
}

#[test]
fn an_answer_that_nobodys_came_before_is_late_and_not_beaten() {
    let project = Project::with_feature();
    let id = project.ask("one");
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    let path = format!("/questions/{id}");
    let csrf = visit.hidden(&path, "csrf");
    assert_eq!(visit.post(&format!("{path}/withdraw"), &[("csrf", &csrf)]).status, 303);
    let late = visit.post(&format!("{path}/answer"), &[("csrf", &csrf), ("f0", "0")]);
    assert_eq!(late.status, 409, "{late:?}");
    assert!(late.body.contains(">Your answer came too late</h2>"), "{}", late.body);
    assert!(late.body.contains("not used: the question had been withdrawn"), "{}", late.body);
    assert!(!late.body.contains("Somebody was faster"), "{}", late.body);
}

#[test]
fn a_decision_of_policy_is_never_shown_as_a_persons() {
    let project = Project::with_settings("policy: {execution: {human_input: {strict: false}}}\n");
    let input = json!({"feature_id": "shop", "role": "builder", "session_id": "s", "question_type": "clarification",
        "prompt": "Which?", "default_decision_policy": "use_default", "timeout_ms": 1_000, "operation_id": "q",
        "expected_answer": {"kind": "single_choice", "choices": ["a", "b"], "default": "b"}});
    let asked = project.tool("feature.question_create", "builder", &input).data();
    let server = Server::start(&project);
    let id = asked["question_id"].as_str().unwrap();
    server.get(&format!("/api/v1/questions/{id}/wait?timeout_s=30")).data();
    let page = Visit::sign_in(&server).get(&format!("/questions/{id}")).body;
    assert!(page.contains("Decided by policy, not by a person"), "{page}");
    assert!(!page.contains("policy:default answered"), "{page}");
}

#[test]
fn addresses_that_name_nothing_are_pages_that_say_so() {
    let project = Project::with_feature();
    std::fs::create_dir_all(project.path(".aop/runs/r_1/shop/t")).unwrap();
    let server = Server::start(&project);
    let visit = Visit::sign_in(&server);
    for path in [
        "/questions/..%2f..%2fetc%2fpasswd",
        "/questions/q_01J9ZQ4V7K3M2N1P0R5S6T7V8W",
        "/features/none",
        "/features/..",
        "/features/%2e%2e/changes",
        "/features/shop/transcripts/r_1/..%2f..%2f..%2faop.db/transcript.jsonl",
        "/features/shop/transcripts/..%2f..%2faop.db/t/transcript.jsonl",
        "/assets/..%2f..%2fCargo.toml",
        "/nowhere",
    ] {
        let page = visit.get(path);
        assert_eq!(page.status, 404, "{path}: {page:?}");
    }
    for path in
        ["/nowhere", "/questions/%ff", "/features/%ff/changes", "/features/shop/transcripts/r/%ff/t/f"]
    {
        let page = visit.get(path);
        assert_eq!(page.status, 404, "{path}: {page:?}");
        assert!(page.body.contains("There is nothing here"), "{page:?}");
    }
    let assets: Vec<String> = visit
        .get("/")
        .body
        .split('"')
        .filter(|text| text.starts_with("/assets/"))
        .map(str::to_owned)
        .collect();
    assert_eq!(assets.len(), 3);
    for asset in assets {
        let file = server.request("GET", &asset, &[], "");
        assert_eq!(file.status, 200);
        assert!(file.header("cache-control").unwrap().contains("immutable"));
    }
}

#[test]
fn a_card_of_the_board_shows_the_question_that_its_feature_waits_for() {
    let project = Project::with_feature();
    project.create_feature("idle");
    let id = project.ask("one");
    let server = Server::start(&project);
    let board = Visit::sign_in(&server).get("/features").body;
    assert_eq!(board.matches(">May I?</p>").count(), 1, "{board}");
    assert!(!board.contains(&format!(">{id}<")), "{board}");
    assert_eq!(board.matches("href=\"/questions/").count(), 1, "{board}");
}

#[test]
fn the_inbox_is_paged_and_a_page_that_has_gone_is_the_last_one() {
    let project =
        Project::with_settings("policy: {execution: {human_input: {max_open_questions_per_feature: 100}}}\n");
    let server = Server::start(&project);
    for number in 0..30 {
        let input = json!({"feature_id": "shop", "role": "builder", "session_id": "s", "question_type": "clarification",
            "prompt": format!("Number {number:02}"), "blocking": false, "operation_id": format!("q{number}")});
        server.tool("feature.question_create", &input).data();
    }
    let visit = Visit::sign_in(&server);
    let cards = |page: &Answer| page.body.matches("data-key=").count();
    let (first, second, gone) = (visit.get("/"), visit.get("/?page=2"), visit.get("/?page=77"));
    assert_eq!((cards(&first), cards(&second), cards(&gone)), (25, 5, 5));
    assert!(
        first.body.contains("30 questions waiting")
            && first.body.contains("Number 00")
            && !first.body.contains("Number 29")
    );
    for odd in ["/?page=0", "/?page=-1", "/?page=x", "/?page=99999999999999999999", "/?page=1&page=2"] {
        assert_eq!(visit.get(odd).status, 200, "{odd}");
    }
    let data: Value = server.get("/api/v1/questions?limit=1").data();
    assert_eq!(data["items"][0]["prompt"], "Number 00");
}
