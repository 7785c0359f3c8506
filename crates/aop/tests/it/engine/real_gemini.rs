//! The real Gemini CLI with a fake model: it asks, is parked to nothing, and goes on with the answer as its next
//! message. What the model was told is read from what the fake received.

use super::host::{FEATURE, StoreHost, turn};
use super::is_alive;
use crate::support::{Project, binary, tree};
use aop_engine::{Driver, EngineError, Input, Progress, Surroundings, TurnReport, TurnRequest, driver};
use aop_testkit::{Call, CleanHome, Engines, FakeModel, Received, Reply, Script, Wire};
use aop_turn::{Engine, Mode, Outcome, Rules, Verdict, judge};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const ASK: &str = "mcp_aop_ask_human";
const DONE: &str = "All set.\n{\"__SKILL_DONE__\": true, \"summary\": \"done\"}";
/// Longer than any of this takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

struct Stage {
    project: Project,
    home: TempDir,
    model: Arc<FakeModel>,
    driver: Box<dyn Driver>,
    host: Arc<StoreHost>,
}

impl Stage {
    fn new(script: Script) -> Self {
        let project = Project::with_feature();
        let home = TempDir::with_prefix("aop-home-").unwrap();
        let model = Arc::new(FakeModel::start(Wire::Gemini, script).unwrap());
        let clean = CleanHome::new(home.path(), &Engines::required(), &model).unwrap();
        let driver = driver(Engine::Gemini, &surroundings(&clean));
        let host = StoreHost::new(&project);
        Stage { project, home, model, driver, host }
    }

    async fn run(&self, request: TurnRequest) -> TurnReport {
        self.driver.run(request, self.host.clone()).await.unwrap()
    }

    fn turn(&self, run: &str, input: Input) -> TurnRequest {
        turn(&self.project, run, input)
    }

    /// The next turn of the same conversation.
    fn resumed(&self, run: &str, input: Input) -> TurnRequest {
        TurnRequest { session: Some(self.host.session_ref().session), ..self.turn(run, input) }
    }

    async fn reply(&self, question: &str) -> Input {
        Input::Reply(Box::new(self.host.reply(question, None).await.unwrap()))
    }

    fn answer(&self, question: &str, answer: &str) {
        self.project
            .run(&["answer", "--feature-id", FEATURE, "--question-id", question, "--answer", answer])
            .data();
    }

    async fn holds(&self, question: &str) -> Option<bool> {
        let project = self.project.root().to_owned();
        self.driver.holds_reply(project, self.host.session_ref(), question.to_owned(), None).await
    }

    fn process(&self) -> i32 {
        let progress = self.host.progress.lock().unwrap();
        let started = progress.iter().rev().find_map(|progress| match progress {
            Progress::Started { pgid, .. } => Some(*pgid),
            Progress::Said(_) | Progress::Uses(_) => None,
        });
        started.unwrap()
    }

    /// The user's texts that name a question, by the conversation as the model knows it.
    fn told(&self, question: &str) -> Vec<String> {
        self.model.user_messages().into_iter().filter(|text| text.contains(question)).collect()
    }
}

fn surroundings(clean: &CleanHome) -> Surroundings {
    let variables = clean.variables().iter().map(|(name, value)| (name.into(), value.clone()));
    let model = ("GEMINI_MODEL".into(), "gemini-2.5-flash".into());
    Surroundings { aop: binary().into(), env: variables.chain([model]).collect() }
}

fn verdict(report: &TurnReport) -> Verdict {
    let process = report.process;
    judge(
        &report.turn,
        &Rules { mode: Mode::Interactive, attempt: 1, max_attempt: 20, schema: None, process },
    )
}

fn is_final(report: &TurnReport) -> bool {
    matches!(verdict(report).outcome, Outcome::Final { .. })
}

fn failure(report: &TurnReport) -> String {
    match verdict(report).outcome {
        Outcome::Error { code, message } => format!("{}: {message}", code.as_str()),
        other => panic!("{other:?}"),
    }
}

fn go() -> Input {
    Input::Message("Build the shop.".into())
}

fn which() -> Reply {
    Reply::call(ASK, "call_1", json!({"prompt": "Which?", "choices": ["left", "right"]}))
}

/// Two questions in one form: several choices, and more options than any agent's own tool takes.
fn form() -> Value {
    let options = |labels: &[&str]| -> Vec<Value> {
        labels.iter().map(|label| json!({"label": label, "description": format!("about {label}")})).collect()
    };
    json!({"version": 1, "topic": "Storage", "questions": [
        {"id": "db", "header": "Database", "question": "Which database?", "kind": "single_choice",
            "required": true, "options": options(&["PostgreSQL", "SQLite", "DuckDB", "MariaDB", "Oracle", "\"quoted\", with comma",
                "keine – wirklich"])},
        {"id": "parts", "header": "Parts", "question": "Which parts?", "kind": "multi_choice",
            "required": false, "options": options(&["Auth", "Export", "Search"])}]})
}

#[tokio::test]
async fn two_questions_are_recorded_no_process_is_left_and_the_answer_is_the_next_message_once() {
    let ask = json!({"prompt": "Two decisions", "spec": form()});
    let script = Script::new().then(Reply::call(ASK, "call_1", ask)).then(Reply::text(DONE));
    let stage = Stage::new(script);
    let before = tree(stage.home.path());
    let parked = stage.run(stage.turn("r1", go())).await;
    let [question] = parked.asked.as_slice() else {
        panic!("{}", std::fs::read_to_string(&parked.transcript).unwrap())
    };
    assert!(!is_alive(stage.process()), "no process is left while a person thinks");
    assert_eq!(stage.model.main().len(), 1, "the model is not asked while a person thinks");
    assert!(matches!(verdict(&parked).outcome, Outcome::AskUser(_)));
    let record = json!(stage.host.question(question).await);
    let mut spec = record["spec"].clone();
    for question in spec["questions"].as_array_mut().unwrap() {
        question.as_object_mut().unwrap().retain(|key, _| form()["questions"][0].get(key).is_some());
    }
    assert_eq!(spec["questions"], form()["questions"], "all labels are intact");
    assert_eq!(record["engine_ref"]["engine"], "gemini");
    assert_eq!(record["engine_ref"]["session"], stage.host.session_ref().session);
    assert_eq!(record["engine_ref"]["version"], "0.61.0");
    assert_eq!(stage.holds(question).await, Some(false));

    let answer = json!({"db": "\"quoted\", with comma", "parts": ["Auth", "Search"]});
    stage.answer(question, &answer.to_string());
    let done = stage.run(stage.resumed("r2", stage.reply(question).await)).await;
    assert!(is_final(&done), "{done:?}");
    assert!(done.delivered);
    assert_eq!(stage.holds(question).await, Some(true));
    assert_eq!(stage.model.main().len(), 2);
    let told = stage.told(question);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(&answer.to_string()), "{told:?}");
    let last = stage.model.conversation().unwrap().user_messages().pop();
    assert_eq!(last.as_ref(), told.first(), "it is the next message, and nothing follows it");
    let results = stage.model.results_of("call_1");
    assert_eq!(results.len(), 1, "{results:?}");
    assert!(results[0].starts_with(&format!("PARKED {question}")), "{results:?}");
    assert_eq!(stage.model.unscripted(), 0);
    assert_eq!(tree(stage.home.path()), before, "nothing of the user's was touched");
    stage.project.assert_healthy();
}

#[tokio::test]
async fn a_second_call_in_the_same_message_is_not_lost_but_asked_again() {
    let call = |id, prompt: &str| Call::new(ASK, id, json!({"prompt": prompt, "choices": ["yes", "no"]}));
    let script = Script::new()
        .then(Reply::calls([call("call_1", "First?"), call("call_2", "Second?")]))
        .then(Reply::calls([call("call_3", "Second?")]))
        .then(Reply::text(DONE));
    let stage = Stage::new(script);
    let parked = stage.run(stage.turn("r1", go())).await;
    let [first] = parked.asked.as_slice() else { panic!("{parked:?}") };
    assert_eq!(json!(stage.host.question(first).await)["prompt"], "First?");
    stage.answer(first, "yes");
    let parked = stage.run(stage.resumed("r2", stage.reply(first).await)).await;
    let refused = stage.model.results_of("call_2").join("\n");
    assert!(refused.contains("not recorded; ask it again"), "the model knows what became of it: {refused}");
    let [second] = parked.asked.as_slice() else { panic!("{parked:?}") };
    assert_eq!(json!(stage.host.question(second).await)["prompt"], "Second?");
    stage.answer(second, "no");
    assert!(is_final(&stage.run(stage.resumed("r3", stage.reply(second).await)).await));
    assert_eq!((stage.told(first).len(), stage.told(second).len()), (1, 1));
}

#[tokio::test]
async fn an_engine_that_goes_on_without_the_hook_is_ended_and_parked_all_the_same() {
    // If the engine asks its model before it is ended, nothing comes back. Its tools speak of ends as well.
    let goes_on = |request: &Received| request.mentions("PENDING") && !request.mentions("the end of q_");
    let stage = Stage::new(Script::new().then(which()).when(goes_on, Reply::never()).then(Reply::text(DONE)));
    let request = stage.turn("r1", go());
    // The hook is broken from the start: aop answers it with something else.
    let broken = stage.project.path("broken");
    std::fs::create_dir(&broken).unwrap();
    let aop = broken.join("aop");
    let script = format!("#!/bin/sh\n[ \"$1\" = hook ] && exit 1\nexec {} \"$@\"\n", binary());
    std::fs::write(&aop, script).unwrap();
    make_executable(&aop);
    let engines = Engines::required();
    let clean = CleanHome::new(stage.home.path(), &engines, &stage.model).unwrap();
    let around = Surroundings { aop, ..surroundings(&clean) };
    let driver = driver(Engine::Gemini, &around);
    let report = driver.run(request, stage.host.clone()).await.unwrap();
    assert_eq!(report.asked.len(), 1, "{report:?}");
    assert!(!is_alive(stage.process()));
    stage.answer(&report.asked[0], "left");
    let done = stage.run(stage.resumed("r2", stage.reply(&report.asked[0]).await)).await;
    assert!(is_final(&done), "{done:?}");
    assert_eq!(stage.told(&report.asked[0]).len(), 1);
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_turn_that_was_cut_off_after_asking_finds_its_question_again() {
    let stage = Stage::new(Script::new().then(which()).then(which()));
    let first = stage.run(stage.turn("r1", go())).await;
    let mut again = stage.resumed("r2", Input::Continue("You were cut off. Go on.".into()));
    again.claim = "claim-r1".into();
    let second = stage.run(again).await;
    assert_eq!(second.asked, first.asked, "one claim, one question");
    assert_eq!(stage.project.run(&["questions"]).data()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_there_before_the_park_is_the_result_of_the_call() {
    let stage = Stage::new(Script::new().then(which()).then(which()).then(Reply::text(DONE)));
    let parked = stage.run(stage.turn("r1", go())).await;
    stage.answer(&parked.asked[0], "left");
    // The turn goes on under its claim, as after a crash, and the model asks again.
    let mut again = stage.resumed("r2", Input::Continue("You were cut off. Go on.".into()));
    again.claim = "claim-r1".into();
    let done = stage.run(again).await;
    assert!(done.asked.is_empty(), "{done:?}");
    assert!(is_final(&done), "{done:?}");
    let results = stage.model.conversation().unwrap().tool_results();
    let answered: Vec<_> =
        results.iter().filter(|result| result.text.contains("ANSWERED: a human")).collect();
    assert_eq!(answered.len(), 1, "{results:?}");
}

#[tokio::test]
async fn what_a_person_writes_is_not_taken_for_a_command_of_the_engine() {
    let free = Reply::call(ASK, "call_1", json!({"prompt": "Whom shall I ask?"}));
    let stage = Stage::new(Script::new().then(free).then(Reply::text(DONE)));
    let parked = stage.run(stage.turn("r1", go())).await;
    std::fs::write(stage.project.path("work/secret.txt"), "a heron was here").unwrap();
    stage.answer(&parked.asked[0], "bob@example.com, see @secret.txt and @types/node");
    let done = stage.run(stage.resumed("r2", stage.reply(&parked.asked[0]).await)).await;
    assert!(is_final(&done), "{done:?}");
    let told = stage.told(&parked.asked[0]);
    assert!(told[0].contains(r"bob\@example.com, see \@secret.txt and \@types/node"), "{told:?}");
    assert!(told[0].contains("a backslash stands before every at sign"), "{told:?}");
    let conversation = stage.model.conversation().unwrap();
    assert!(!conversation.mentions("a heron was here"), "{:#}", conversation.body["contents"]);
}

#[tokio::test]
async fn nobody_is_asked_in_auto_mode_or_at_the_limit_and_the_turn_goes_on() {
    for (mode, may_ask, words) in [
        (Mode::Auto, false, "Nobody is available"),
        (Mode::Interactive, false, "as often as this phase allows"),
    ] {
        let stage = Stage::new(Script::new().then(which()).then(Reply::text(DONE)));
        let request = TurnRequest { mode, may_ask, ..stage.turn("r1", go()) };
        let report = stage.run(request).await;
        assert!(report.asked.is_empty());
        let told = stage.model.results_of("call_1").join("\n");
        assert!(told.contains(words), "{told}");
        assert_eq!(stage.project.run(&["questions"]).data()["items"], json!([]), "no record");
    }
}

#[tokio::test]
async fn an_engine_that_dies_in_mid_turn_is_an_error_and_its_conversation_goes_on() {
    let stage = Stage::new(Script::new().then(Reply::never()).then(Reply::text(DONE)));
    let request = stage.turn("r1", go());
    let (driver, host) = (&stage.driver, stage.host.clone());
    let killing = async {
        let model = Arc::clone(&stage.model);
        let seen = tokio::task::spawn_blocking(move || model.wait_for_main(1, PATIENCE)).await;
        assert!(seen.unwrap().is_some());
        let pid = stage.process().to_string();
        assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    };
    let (report, ()) = tokio::join!(driver.run(request, host), killing);
    let report = report.unwrap();
    assert!(failure(&report).starts_with("ENGINE_"), "{}", failure(&report));
    let done = stage.run(stage.resumed("r2", Input::Continue("You were cut off. Go on.".into()))).await;
    assert!(is_final(&done), "{done:?}");
    let said = stage.model.user_messages().join("\n");
    assert!(said.contains("Build the shop.") && said.contains("You were cut off."), "{said}");
}

#[tokio::test]
async fn what_the_model_service_refuses_is_an_error_of_the_engine() {
    let stage = Stage::new(Script::new().then(Reply::error(400, "the key is wrong")));
    let report = stage.run(stage.turn("r1", go())).await;
    assert!(failure(&report).starts_with("ENGINE_FAILED"), "{}", failure(&report));
    assert!(!is_alive(stage.process()));
}

#[tokio::test]
async fn a_conversation_that_is_gone_is_named_and_nothing_is_started() {
    let stage = Stage::new(Script::new().then(which()));
    let parked = stage.run(stage.turn("r1", go())).await;
    stage.answer(&parked.asked[0], "left");
    std::fs::remove_dir_all(stage.project.path(".aop/engines/gemini/.gemini/tmp")).unwrap();
    let request = stage.resumed("r2", stage.reply(&parked.asked[0]).await);
    match stage.driver.run(request, stage.host.clone()).await {
        Err(EngineError::ConversationGone { session, .. }) => {
            assert_eq!(session, parked.session.unwrap().session);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(stage.model.main().len(), 1);
}

#[tokio::test]
async fn sign_in_and_instructions_of_the_user_are_there_and_stay_as_they_are() {
    let stage = Stage::new(Script::new().then(Reply::text(DONE)));
    let own = stage.home.path().join(".gemini");
    std::fs::write(own.join("GEMINI.md"), "Always mention the heron.").unwrap();
    std::fs::write(own.join("oauth_creds.json"), "{\"refresh_token\": \"dummy\"}").unwrap();
    std::fs::write(own.join("trustedFolders.json"), "{}").unwrap();
    let settings = std::fs::read_to_string(own.join("settings.json")).unwrap();
    std::fs::write(own.join("settings.json"), format!("// mine\n{settings}")).unwrap();
    let before = tree(stage.home.path());
    assert!(is_final(&stage.run(stage.turn("r1", go())).await));
    assert!(stage.model.conversation().unwrap().mentions("Always mention the heron."));
    assert_eq!(tree(stage.home.path()), before);
    let lent = stage.project.path(".aop/engines/gemini/.gemini/oauth_creds.json");
    assert_eq!(std::fs::read_link(lent).unwrap(), own.join("oauth_creds.json"));
}
