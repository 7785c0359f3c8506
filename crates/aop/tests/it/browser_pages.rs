//! The dashboard in a real browser, used as people use it: with a mouse, with keys alone, on a phone, in the dark,
//! without a script, and while others answer.

use crate::browser::{Browser, Seat};
use crate::http_client::Server;
use crate::support::{Project, wait};
use serde_json::{Value, json};
use std::time::Duration;

fn project() -> Project {
    let settings = "policy: {execution: {human_input: {max_open_questions_per_feature: 20}}}\n";
    Project::with_settings(settings)
}

/// Asks something that does not block; its id.
fn ask(project: &Project, operation: &str, changes: Value) -> String {
    let mut input = crate::support::question("shop", operation);
    input["blocking"] = json!(false);
    changes.as_object().unwrap().iter().for_each(|(key, value)| input[key] = value.clone());
    let asked = project.tool("feature.question_create", "builder", &input).data();
    asked["question_id"].as_str().unwrap().to_owned()
}

fn record(project: &Project, id: &str) -> Value {
    let all = project
        .tool("feature.question_list", "human", &json!({"feature_id": "shop", "status": "all"}))
        .data();
    all["items"].as_array().unwrap().iter().find(|item| item["question_id"] == id).unwrap().clone()
}

/// Whoever types at the end of a long form sees it all the same.
fn assert_stays_in_sight(browser: &Browser, notice: &str) {
    let scrolled = format!(
        "const long = document.querySelector('main').style; long.minHeight = '3000px'; scrollTo(0, 2000); \
         const seen = [scrollY, document.querySelector('{notice}').getBoundingClientRect().top]; \
         long.minHeight = ''; return seen"
    );
    let seen = browser.script(&scrolled);
    assert_eq!(seen[0], 2000);
    assert!((0.0..450.0).contains(&seen[1].as_f64().unwrap()), "{notice}: {seen}");
}

fn form() -> Value {
    json!({"expected_answer": null, "prompt": "How should it be **set up**?", "spec": {"version": 1, "topic": "setup", "questions": [
        {"id": "db", "header": "Database", "question": "Which database?", "kind": "single_choice", "required": true,
         "default": "SQLite", "options": [
            {"label": "PostgreSQL", "description": "a server", "preview": "```\nservices: db\n```"},
            {"label": "SQLite", "description": "a file"}]},
        {"id": "on", "header": "Platforms", "question": "Where?", "kind": "multi_choice", "required": false,
         "allow_other": true, "options": [{"label": "Linux", "description": "l"}, {"label": "macOS", "description": "m"}]},
        {"id": "key", "header": "Password", "question": "The password?", "kind": "free_text", "required": true, "secret": true}]}})
}

/// Answers one question of each kind, the same way with and without a script.
fn answers_every_kind(seat: Seat, name: &str) {
    let project = project();
    let one =
        ask(&project, "one", json!({"expected_answer": {"kind": "single_choice", "choices": ["yes", "no"]}}));
    let many = ask(
        &project,
        "many",
        json!({"expected_answer": {"kind": "multi_choice", "choices": ["a", "b, c", "d"], "allow_other": true}}),
    );
    let text = ask(&project, "text", json!({"expected_answer": null, "prompt": "What should it say?"}));
    let card = ask(&project, "form", form());
    let server = Server::start(&project);
    let browser = Browser::signed_in(&server, seat);
    assert_eq!(browser.text("#keys").is_empty(), seat == Seat::WithoutScript, "keys are the script's");
    let answered = |id: &str| {
        browser.click("#answer button.main");
        browser.until_text("#outcome", "human answered");
        assert_eq!(browser.at(), format!("/questions/{id}"));
    };

    browser.click(&format!("a[href='/questions/{one}']"));
    browser.click("#answer button.main");
    browser.until_text(".error", "Choose one.");
    browser.click("input[value='1']");
    answered(&one);
    assert_eq!(record(&project, &one)["answer"], "no");

    browser.go(&format!("/questions/{many}"));
    browser.click("input[value='2']");
    browser.click("input[value='1']");
    browser.fill("textarea", "e, f");
    answered(&many);
    assert_eq!(record(&project, &many)["answer"], json!(["b, c", "d", "e, f"]));

    browser.go(&format!("/questions/{text}"));
    browser.fill("textarea", "Dear <b>all</b>\nbye");
    answered(&text);
    assert_eq!(record(&project, &text)["answer"], "Dear <b>all</b>\nbye");

    browser.go(&format!("/questions/{card}"));
    browser.click("input[name=f0][value='0']");
    browser.click("input[name=f1][value='1']");
    browser.click("#answer button.main");
    browser.until_text(".error", "Write an answer.");
    assert!(browser.has("input[name=f0][value='0']:checked"), "what was chosen is still there");
    browser.fill("input[type=password]", "s3cret");
    answered(&card);
    assert!(browser.text("#outcome").contains("Kept secret"));
    let answer = record(&project, &card)["answer"].clone();
    assert_eq!(answer, json!({"db": "PostgreSQL", "on": ["macOS"], "key": {"redacted": true}}));
    assert_eq!(record(&project, &card)["answered_by"], "human");
    browser.picture(&format!("{name}-answered"));
    browser.go("/");
    assert!(browser.text("#inbox").contains("Nothing waits for you"));
    browser.picture(&format!("{name}-empty"));
    // A form that was refused is an error for the browser's log and none for a person.
    let complaints: Vec<String> =
        browser.complaints().into_iter().filter(|line| !line.contains("422")).collect();
    assert_eq!(complaints, Vec::<String>::new());
}

/// Somebody at the page of a question who has typed this and not sent it.
fn typing(seat: Seat, text: &str) -> (Project, String, Server, Browser) {
    let project = project();
    let id = ask(&project, "one", json!({"expected_answer": null}));
    let server = Server::start(&project);
    let browser = Browser::signed_in(&server, seat);
    browser.go(&format!("/questions/{id}"));
    browser.fill("textarea", text);
    (project, id, server, browser)
}

#[test]
fn every_kind_of_question_is_answered_with_a_mouse() {
    answers_every_kind(Seat::Desk, "desk");
}

#[test]
fn every_kind_of_question_is_answered_without_a_script() {
    answers_every_kind(Seat::WithoutScript, "without-script");
}

#[test]
fn a_secret_that_is_pasted_keeps_its_lines_and_stays_masked() {
    let project = Project::new();
    let field = |id: &str, secret: bool| json!({"id": id, "header": id, "question": "Which?", "kind": "free_text", "required": true, "secret": secret});
    let spec = json!({"version": 1, "topic": "t", "questions": [field("note", false), field("key", true)]});
    std::fs::write(project.path("spec.json"), spec.to_string()).unwrap();
    let asking = project.spawn(&["ask", "Set it up", "--spec", "spec.json"]);
    let id = project.opened_question()["question_id"].as_str().unwrap().to_owned();
    let server = Server::start(&project);
    let browser = Browser::signed_in(&server, Seat::Desk);
    let edit = |commands: &[&str]| {
        browser.devtools(
            "Input.dispatchKeyEvent",
            &json!({"type": "keyDown", "key": "Insert", "commands": commands}),
        );
        browser.devtools("Input.dispatchKeyEvent", &json!({"type": "keyUp", "key": "Insert"}));
    };
    browser.go(&format!("/questions/{id}"));
    browser.fill("textarea", "-- BEGIN --\nabc\n-- END --\n");
    edit(&["selectAll", "copy"]);
    browser.click("input[type=password]");
    edit(&["paste"]);
    assert_eq!(browser.value("textarea.secret"), "-- BEGIN --\nabc\n-- END --");
    assert!(!browser.has("input[type=password]"));
    assert!(browser.has("textarea.secret[autocomplete=off]"), "no browser keeps it");
    let masked = browser
        .script("return getComputedStyle(document.querySelector('textarea.secret')).webkitTextSecurity");
    assert_eq!(masked, "disc");
    browser.picture("secret-of-several-lines");
    browser.click("#answer button.main");
    browser.until_text("#outcome", "Kept secret");
    assert_eq!(wait(asking).data()["answer"]["key"], "-- BEGIN --\nabc\n-- END --");
}

#[test]
fn what_was_typed_is_there_again_for_whoever_comes_back_but_for_secrets() {
    let project = project();
    let id = ask(&project, "form", form());
    let server = Server::start(&project);
    let browser = Browser::signed_in(&server, Seat::Desk);
    // Whether the browser is told to ask before it leaves the page.
    let leaving = "return !dispatchEvent(new Event('beforeunload', {cancelable: true}))";
    let path = format!("/questions/{id}");
    browser.go(&path);
    assert_eq!(browser.script(leaving), false, "nothing is typed");
    browser.click("input[name=f0][value='0']");
    browser.fill("textarea", "BSD");
    browser.fill("input[type=password]", "s3cret");
    assert_eq!(browser.script(leaving), true);
    // As after signing in again: what the page has of its session is of no use for the next one.
    browser
        .script("document.querySelectorAll('[type=hidden]').forEach((field) => { field.value = 'stale'; })");
    browser.go("/features");
    browser.script("history.back()");
    browser.until("it is there again", |browser| browser.at() == path && browser.has("textarea"));
    browser.until("what was typed too", |browser| browser.value("textarea") == "BSD");
    assert!(browser.has("input[name=f0][value='0']:checked"));
    assert_eq!(browser.value("input[type=password]"), "");
    let stale =
        "return [...document.querySelectorAll('[type=hidden]')].filter((field) => field.value === 'stale')";
    assert_eq!(browser.script(stale), json!([]));
}

#[test]
fn what_was_stopped_on_its_way_can_be_sent_again() {
    let (project, id, _server, browser) = typing(Seat::Desk, "a long thought");
    let stop = "document.querySelector('#answer').addEventListener('submit', (event) => event.preventDefault(), \
        {once: true})";
    browser.script(stop);
    browser.click("#answer button.main");
    browser.until("it can be sent again", |browser| !browser.has("#answer[data-sent]"));
    browser.click("#answer button.main");
    browser.until_text("#outcome", "human answered");
    assert_eq!(record(&project, &id)["answer"], "a long thought");
}

#[test]
fn a_question_answered_elsewhere_becomes_its_result_on_every_page_and_typed_text_stays() {
    let project = project();
    let id = ask(
        &project,
        "one",
        json!({"expected_answer": {"kind": "single_choice", "choices": ["yes", "no"], "allow_other": true}}),
    );
    let server = Server::start(&project);
    let browser = Browser::signed_in(&server, Seat::Desk);
    let inbox = browser.another_window();
    browser.go(&format!("/questions/{id}"));
    browser.until_text("#live", "Live");
    browser.fill("textarea", "a long thought");
    project.answer(&id, "yes").data();
    browser.until_text("#outcome", "human answered");
    assert!(browser.text("#outcome").contains("yes"));
    assert_eq!(browser.value("textarea"), "a long thought");
    assert!(browser.text("#closed").contains("was not sent"));
    assert_stays_in_sight(&browser, "#closed");
    assert!(browser.has("#answer button.main:disabled"));
    let leaving = "return !dispatchEvent(new Event('beforeunload', {cancelable: true}))";
    assert_eq!(browser.script(leaving), true, "it would be gone");
    browser.picture("answered-elsewhere");
    browser.look_at(&inbox);
    browser.until_text("#inbox", "Nothing waits for you");
    let next = ask(&project, "two", json!({"prompt": "And now?"}));
    browser.until_text("#inbox", "And now?");
    assert!(browser.has(&format!("[data-key='{next}']")));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_text_that_an_agent_writes_is_followed_where_it_is_read() {
    let project = project();
    let server = Server::start(&project);
    let browser = Browser::signed_in(&server, Seat::Desk);
    let turn = "r_01J9ZQ4V7K3M2N1P0R5S6T7V8W/shop/turn-one-1";
    let folder = project.path(&format!(".aop/runs/{turn}"));
    let (file, long) = (folder.join("transcript.jsonl"), "{\"a line\": 1}\n".repeat(400));
    let happens = |operation: &str| {
        let note = json!({"feature_id": "shop", "note": "something", "operation_id": operation});
        project.tool("feature.log_append", "human", &note).data();
    };
    browser.go("/features/shop/transcripts");
    browser.until_text("#live", "Live");
    browser.until_text("#transcripts", "No engine has worked on this feature yet.");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(&file, &long).unwrap();
    happens("one");
    browser.until_text("#transcripts", "turn-one-1");
    browser.click("#transcripts a");
    browser.until_text("#live", "Live");
    browser.script("document.querySelector('.transcript').scrollTop = 500");
    std::fs::write(&file, format!("{long}and the end")).unwrap();
    happens("two");
    browser.until_text("#transcript", "and the end");
    assert_eq!(browser.script("return document.querySelector('.transcript').scrollTop"), 500);
    browser.go("/features/shop/changes");
    assert!(browser.has("#changes"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_page_that_nobody_sees_leaves_its_connection_to_others() {
    let project = project();
    let server = Server::start(&project);
    let browser = Browser::signed_in(&server, Seat::Desk);
    let count = "window.streams = []; const Source = EventSource; \
        EventSource = class extends Source { constructor(url) { super(url); streams.push(this); } }";
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({"source": count}));
    let look = |away: bool| {
        let hidden = format!("{{value: {away}, configurable: true}}");
        browser.script(&format!(
            "Object.defineProperty(document, 'hidden', {hidden}); document.dispatchEvent(new Event('visibilitychange'))"
        ));
    };
    let open = || browser.script("return streams.filter((stream) => stream.readyState !== 2).length");
    for (page, operation) in [("/", "one"), ("/features", "two")] {
        browser.go(page);
        browser.until_text("#live", "Live");
        look(true);
        assert_eq!(open(), 0, "{page}");
        let id = ask(&project, operation, json!({}));
        look(false);
        assert_eq!(open(), 1, "{page}");
        browser.until("it shows what it missed", |browser| browser.has("#nav .count"));
        project.answer(&id, "yes").data();
    }
}

#[test]
fn a_late_answer_is_told_who_was_first_and_keeps_its_text() {
    let (project, id, _server, browser) = typing(Seat::WithoutScript, "too late, but long");
    project
        .run(&[
            "answer",
            "--feature-id",
            "shop",
            "--question-id",
            &id,
            "--answer",
            "first",
            "--answered-by",
            "ada",
        ])
        .data();
    browser.click("#answer button.main");
    browser.until_text(".late", "ada answered first, with “first”");
    assert_eq!(browser.value(".late textarea"), "too late, but long");
    assert_eq!(record(&project, &id)["answer"], "first");
    browser.picture("late");
}

#[test]
fn a_page_that_outlives_its_session_leads_to_signing_in_and_keeps_what_was_typed() {
    let (project, id, server, browser) = typing(Seat::Desk, "a long thought");
    let question = browser.another_window();
    browser.go("/");
    browser.until_text("#live", "Live");
    let address = server.address.clone();
    drop(server);
    let server = Server::start_with(&project, &["--listen", &address], &[]);
    browser.until_at("/login?next=/");
    browser.look_at(&question);
    browser.until_text("#out", "Signed out: sign in again");
    assert_stays_in_sight(&browser, "#out");
    assert_eq!(browser.value("textarea"), "a long thought");
    browser.picture("signed-out");
    browser.another_window();
    browser.go(&server.login_url);
    browser.click("form button");
    browser.until_at("/");
    browser.look_at(&question);
    browser.until("the notice is gone", |browser| browser.text("#out").is_empty());
    browser.click("#answer button.main");
    browser.until_text("#outcome", "human answered");
    assert_eq!(record(&project, &id)["answer"], "a long thought");
}

#[test]
fn an_answer_is_sent_in_the_name_that_its_page_showed_or_not_at_all() {
    let (project, id, _server, browser) = typing(Seat::Desk, "a long thought");
    let typed = browser.another_window();
    browser.go(&format!("/questions/{id}"));
    let untouched = browser.another_window();
    let bob = project.run(&["token", "create", "--kind", "operator", "--name", "bob"]).data();
    browser.go("/login");
    assert!(
        browser.has("#token[autofocus]") && !browser.has("button[autofocus]"),
        "a token can be pasted at once"
    );
    browser.fill("#token", bob["token"].as_str().unwrap());
    browser.click("form button");
    browser.until_text("#visitor", "bob");
    browser.look_at(&untouched);
    ask(&project, "two", json!({}));
    browser.until_text(".by", "Signed bob");
    assert_eq!(browser.text("#other"), "", "it is a page of bob's");
    browser.look_at(&typed);
    browser.until_text("#other", "This browser is signed in as bob now");
    assert_stays_in_sight(&browser, "#other");
    assert_eq!(browser.text("#visitor") + &browser.text(".by"), "bobSigned human");
    browser.picture("signed-in-as-another");
    browser.click("#answer button.main");
    browser.until_text("h1", "That is not allowed");
    assert_eq!(browser.value("textarea"), "a long thought");
    assert_eq!(record(&project, &id)["status"], "open");
}

#[test]
fn enter_leaves_no_page_that_still_holds_something_that_was_not_sent() {
    let project = project();
    let id = ask(&project, "one", json!({}));
    ask(&project, "two", json!({}));
    let server = Server::start(&project);
    let browser = Browser::signed_in(&server, Seat::Desk);
    // Whether the page does something of its own with the key.
    let enter = "return !document.body.dispatchEvent(new KeyboardEvent('keydown', \
        {key: 'Enter', bubbles: true, cancelable: true}))";
    browser.go(&format!("/questions/{id}"));
    browser.press("2");
    project.answer(&id, "yes").data();
    browser.until_text("#outcome", "human answered");
    assert!(browser.has("#next") && browser.has("input[value='1']:checked"));
    assert_eq!(browser.script(enter), false);
    browser.go(&format!("/questions/{id}"));
    assert_eq!(browser.script(enter), true, "with nothing typed it goes on");
    // Where somebody was faster, what was typed is shown back, and was sent to nobody.
    let id = ask(&project, "three", json!({"expected_answer": null}));
    browser.go(&format!("/questions/{id}"));
    browser.fill("textarea", "a long thought");
    project.answer(&id, "first").data();
    browser.script("document.querySelector('#answer').submit()");
    browser.until_text(".late", "human answered first");
    assert!(browser.has("#next"));
    assert_eq!(browser.script(enter), false);
}

#[test]
fn a_deadline_is_told_in_the_time_of_whoever_looks() {
    let project = project();
    let id = ask(&project, "one", json!({"timeout_ms": 840_000}));
    let server = Server::start(&project);
    let browser = Browser::signed_in(&server, Seat::Desk);
    let there = |zone: &str| {
        browser.devtools("Emulation.setTimezoneOverride", &json!({"timezoneId": zone}));
        browser.go(&format!("/questions/{id}"));
        browser.until("the script has said it", |browser| browser.has("time[data-clock][data-local]"));
        browser.text("time[data-clock]")
    };
    let (utc, later) = (there("UTC"), there("Asia/Kolkata"));
    assert!(!utc.contains("UTC") && utc != later, "{utc} {later}");
    let minutes = |text: &str| text.split(':').nth(1).unwrap()[..2].parse::<u32>().unwrap();
    assert_eq!((minutes(&utc) + 30) % 60, minutes(&later), "{utc} {later}");
    let shown = browser.text("#when");
    assert!(shown.contains("(in 13 min), the question expires"), "{shown}");
    assert!(!browser.script("return document.querySelector('.left').title").to_string().contains("UTC"));
}

#[test]
fn the_chart_of_days_is_as_wide_as_what_it_stands_above() {
    let (project, _) = a_hard_project();
    let server = Server::start(&project);
    let browser = Browser::signed_in(&server, Seat::Desk);
    browser.go("/activity");
    let wide = "return [...document.querySelectorAll('.days, .list.chart')].map((part) => part.getBoundingClientRect().width)";
    let wide = browser.script(wide);
    assert!(wide.as_array().unwrap().iter().all(|width| *width == wide[0]), "{wide}");
}

#[test]
fn keys_alone_are_enough() {
    let project = project();
    let first = ask(&project, "one", json!({"prompt": "First?"}));
    let second = ask(&project, "two", json!({"prompt": "Second?", "timeout_ms": 600_000}));
    let server = Server::start(&project);
    let browser = Browser::signed_in(&server, Seat::Desk);
    // Which keys there are is said at the foot, and shown to whoever asks.
    assert!(browser.text("#keys").starts_with("Keys: j k move"), "{}", browser.text("#keys"));
    let seen = "const line = document.querySelector('#keys').getBoundingClientRect(); \
        return line.bottom <= innerHeight && line.top >= 0";
    browser.script("document.querySelector('main').style.minHeight = '3000px'");
    assert_eq!(browser.script(seen), false);

    browser.press("?");
    browser.until("they are shown", |browser| browser.script(seen) == true);
    // The more urgent one stands first.
    browser.press("j");
    assert!(browser.has(&format!(".picked[data-key='{second}']")));
    browser.picture("keys-inbox");
    let forced = json!({"features": [{"name": "forced-colors", "value": "active"}]});
    browser.devtools("Emulation.setEmulatedMedia", &forced);
    let outline = "return getComputedStyle(document.querySelector('.picked')).outline";
    let outline = browser.script(outline).as_str().unwrap().to_owned();
    assert!(outline.contains("solid 3px"), "it is seen in forced colours: {outline}");
    browser.picture("keys-inbox-forced-colours");
    browser.devtools("Emulation.setEmulatedMedia", &json!({"features": []}));
    // What is left is counted by the store's clock, whatever the browser takes for the time.
    let fast = "const told = Date.now; Date.now = () => told() + 7200000";
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({"source": fast}));
    browser.go("/");
    browser.until_text("#live", "Live");
    std::thread::sleep(Duration::from_millis(1100));
    browser.until_text(&format!("[data-key='{second}'] .left"), "min left");
    browser.press("j");
    browser.press("jk2");
    assert!(browser.has(&format!(".picked[data-key='{first}']")));
    // What is picked stays so, and in focus, while the list changes around it.
    let third = ask(&project, "three", json!({"prompt": "Third?", "timeout_ms": 900_000, "blocking": true}));
    browser.until("the third is there", |browser| browser.has(&format!("[data-key='{third}']")));
    assert!(browser.has(&format!(".picked[data-key='{first}'] a.open:focus")));
    project.answer(&third, "yes").data();
    browser.until("it is gone", |browser| !browser.has(&format!("[data-key='{third}']")));
    browser.press("\u{E007}");
    browser.until_at(&format!("/questions/{first}"));
    browser.press("2");
    browser.until("the second option is chosen", |browser| browser.has("input[value='1']:checked"));
    browser.picture("keys-question");
    browser.press("\u{E007}");
    browser.until_text("#outcome", "human answered");
    assert_eq!(record(&project, &first)["answer"], "no");
    browser.press("\u{E007}");
    browser.until_at(&format!("/questions/{second}"));
    // Whose question is closed under their hands is where its end stands.
    browser.press("j");
    project.answer(&second, "yes").data();
    browser.until("the focus is at the outcome", |browser| browser.has("#outcome:focus .outcome"));
    browser.press("u");
    browser.until_at("/");
    browser.script("document.querySelector('#nav a[href=\"/features\"]').focus()");
    ask(&project, "four", json!({"prompt": "Fourth?"}));
    browser.until_text("#inbox", "Fourth?");
    // Asked of the page: a browser in which no key was pressed since it came here matches no `:focus`.
    let focus = browser.script("return document.activeElement.matches('#nav a[href=\"/features\"]')");
    assert_eq!(focus, true);
    browser.go("/activity");
    browser.click("summary");
    ask(&project, "five", json!({}));
    browser.until("the page is up to date", |browser| browser.text("#nav").contains('2'));
    assert!(browser.has("details[open] summary:focus"));
}

/// Texts that break pages: endless words, other directions, markup.
fn a_hard_project() -> (Project, Vec<String>) {
    let project = project();
    let endless =
        "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft".repeat(4);
    let ids = vec![
        ask(
            &project,
            "h1",
            json!({"question_type": "risk_ack", "timeout_ms": 90_000, "prompt": endless, "session_id": endless,
            "expected_answer": {"kind": "single_choice", "choices": [endless, "short"], "allow_other": true},
            "details": {"endless": endless, "list": [1, 2, {"a": endless}]}}),
        ),
        ask(
            &project,
            "h2",
            json!({"question_type": "permission_override", "prompt": "האם למחוק את התיקייה? / هل أحذف المجلد؟",
            "expected_answer": {"kind": "single_choice", "choices": ["כן", "لا"]}}),
        ),
        ask(
            &project,
            "h3",
            json!({"prompt": "| a | b | c |\n|--|--|--|\n| 1 | 2 | 3 |\n\n```\nfn main() { println!(\"a line that is much longer than any phone is wide\"); }\n```\n\n> quoted\n\n1. one\n2. two", "expected_answer": {"kind": "json", "schema": {"type": "object"}}}),
        ),
        ask(&project, "h4", form()),
    ];
    project.create_feature("second");
    let blocking = json!({"feature_id": "second", "role": "planner", "session_id": "s", "question_type": "external_decision",
        "prompt": "Which of the two vendors?", "operation_id": "h5"});
    project.tool("feature.question_create", "planner", &blocking).data();
    let answered = ask(&project, "h6", json!({"prompt": "Answered already"}));
    project.answer(&answered, "yes").data();
    let turn = format!(".aop/runs/r_01J9ZQ4V7K3M2N1P0R5S6T7V8W/shop/turn-{}-5-repair-2", "shop".repeat(16));
    std::fs::create_dir_all(project.path(&turn)).unwrap();
    std::fs::write(project.path(&format!("{turn}/transcript.jsonl")), "{}".repeat(400)).unwrap();
    (project, [ids, vec![answered]].concat())
}

fn tour(browser: &Browser, ids: &[String], name: &str) {
    let mut places = vec![("inbox".to_owned(), "/".to_owned())];
    places.extend(
        ids.iter().enumerate().map(|(index, id)| (format!("question-{index}"), format!("/questions/{id}"))),
    );
    for (page, path) in [
        ("features", "/features"),
        ("feature", "/features/shop"),
        ("changes", "/features/shop/changes"),
        ("transcripts", "/features/shop/transcripts"),
        ("activity", "/activity"),
        ("withdraw", &format!("/questions/{}/withdraw", ids[0])),
    ] {
        places.push((page.to_owned(), path.to_owned()));
    }
    for (page, path) in places {
        browser.go(&path);
        browser.assert_fits(&format!("{name} {path}"));
        let covered = "return document.querySelector('.top').offsetHeight \
            - parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop)";
        let covered = browser.script(covered).as_f64();
        assert!(
            covered.is_some_and(|pixels| pixels < 0.0),
            "{name} {path}: the bar covers what has the focus"
        );
        browser.picture(&format!("{name}-{page}"));
    }
    assert_eq!(
        browser.complaints(),
        Vec::<String>::new(),
        "scripts run and the content policy refuses nothing"
    );
}

#[test]
fn every_page_fits_a_desk_and_a_phone_in_light_and_dark() {
    let (project, ids) = a_hard_project();
    let server = Server::start(&project);
    let browser = Browser::signed_in(&server, Seat::Desk);
    tour(&browser, &ids, "light");
    let dark = json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]});
    browser.devtools("Emulation.setEmulatedMedia", &dark);
    tour(&browser, &ids, "dark");
    assert_eq!(browser.script("return matchMedia('(prefers-color-scheme: dark)').matches"), true);
    let phone = json!({"width": 375, "height": 812, "deviceScaleFactor": 2, "mobile": true});
    browser.devtools("Emulation.setDeviceMetricsOverride", &phone);
    tour(&browser, &ids, "phone-dark");
    browser.devtools("Emulation.setEmulatedMedia", &json!({"features": []}));
    tour(&browser, &ids, "phone");
    assert_eq!(browser.text("#keys"), "", "a phone has no keys");
    browser.go("/features/shop/transcripts");
    assert_eq!(browser.text("td.run"), "", "runs are no use on a phone");
    let lines = "return [...document.querySelectorAll('.tabs a')].map((tab) => tab.getClientRects().length)";
    assert_eq!(browser.script(lines), json!([1, 1, 1]), "a word is broken");
    browser.go(&format!("/questions/{}", ids[1]));
    browser.click("input[value='0']");
    browser.click("#answer button.main");
    browser.until_text("#outcome", "human answered");
}
