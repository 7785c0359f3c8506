//! The scripted engine as a real process: asks, is parked to nothing, resumes, crashes and fails as it is told.

use super::host::{FEATURE, StoreHost, turn};
use super::{around, is_alive};
use crate::support::Project;
use aop_engine::{Driver, EngineError, Input, Progress, TurnReport, TurnRequest, driver};
use aop_turn::{Engine, Mode, Outcome, Rules, Verdict, judge};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

struct Stage {
    project: Project,
    driver: Box<dyn Driver>,
    host: Arc<StoreHost>,
}

impl Stage {
    fn new(steps: &Value) -> Self {
        let project = Project::with_feature();
        std::fs::create_dir_all(project.path(".aop/scripted")).unwrap();
        let scenario = json!({"roles": {"planner": steps}});
        std::fs::write(project.path(".aop/scripted/shop.json"), scenario.to_string()).unwrap();
        let driver = driver(Engine::Scripted, &around(project.root()));
        let host = StoreHost::new(&project);
        Stage { project, driver, host }
    }

    async fn run(&self, request: TurnRequest) -> TurnReport {
        self.driver.run(request, self.host.clone()).await.unwrap()
    }

    fn turn(&self, run: &str, input: Input) -> TurnRequest {
        turn(&self.project, run, input)
    }

    async fn reply(&self, question: &str) -> Input {
        let call = Some(format!("{}:call", self.host.session_ref().session));
        Input::Reply(Box::new(self.host.reply(question, call).await.unwrap()))
    }

    fn answer(&self, question: &str, answer: &str) {
        self.project
            .run(&["answer", "--feature-id", FEATURE, "--question-id", question, "--answer", answer])
            .data();
    }

    fn deliveries(&self) -> Vec<Value> {
        let text =
            std::fs::read_to_string(self.project.path(".aop/scripted/deliveries.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn process(&self) -> i32 {
        let progress = self.host.progress.lock().unwrap();
        let started = progress.iter().rev().find_map(|progress| match progress {
            Progress::Started { pgid, .. } => Some(*pgid),
            Progress::Said(_) | Progress::Uses(_) => None,
        });
        started.unwrap()
    }
}

fn verdict(report: &TurnReport) -> Verdict {
    judge(
        &report.turn,
        &Rules {
            mode: Mode::Interactive,
            attempt: 1,
            max_attempt: 20,
            schema: None,
            process: report.process,
        },
    )
}

fn final_data(report: &TurnReport) -> Value {
    match verdict(report).outcome {
        Outcome::Final { data } => Value::Object(data),
        other => panic!("{other:?}"),
    }
}

fn failure(report: &TurnReport) -> String {
    match verdict(report).outcome {
        Outcome::Error { code, message } => format!("{}: {message}", code.as_str()),
        other => panic!("{other:?}"),
    }
}

fn go() -> Input {
    Input::Message("go".into())
}

#[tokio::test]
async fn an_ask_is_recorded_the_process_is_gone_and_the_answer_resumes_it_once() {
    let stage = Stage::new(&json!([{"say": "hello"}, {"ask": {"questions": [
        {"question": "Which database?", "header": "Db", "options": [{"label": "Postgres", "description": "a"}, {"label": "SQLite", "description": "b"}]},
        {"question": "Which parts?", "header": "Parts", "multiSelect": true, "options": [{"label": "Auth", "description": "a"}, {"label": "Export", "description": "b"}]}]}},
        {"write": {"path": "notes/answer.txt", "text": "{answer}"}}, {"finish": {"summary": "chose {answer}"}}]));
    let parked = stage.run(stage.turn("r1", go())).await;
    let [question] = parked.asked.as_slice() else { panic!("{parked:?}") };
    assert!(!is_alive(stage.process()), "no process is left while a person thinks");
    assert!(matches!(verdict(&parked).outcome, Outcome::AskUser(_)));
    let record = stage.host.question(question).await;
    let spec = json!(record)["spec"].clone();
    assert_eq!(spec["questions"][0]["question"], "[scripted] Which database?");
    assert_eq!(spec["questions"][1]["options"][1]["label"], "Export");
    assert_eq!(stage.deliveries(), [Value::Null; 0]);

    stage.answer(question, &json!({"db": "SQLite", "parts": ["Auth", "Export"]}).to_string());
    let session = stage.host.session_ref();
    let held =
        || stage.driver.holds_reply(stage.project.root().into(), session.clone(), question.clone(), None);
    assert_eq!(held().await, Some(false));
    let resumed = TurnRequest {
        session: Some(session.session.clone()),
        ..stage.turn("r2", stage.reply(question).await)
    };
    let done = stage.run(resumed).await;
    assert!(done.delivered);
    assert_eq!(held().await, Some(true));
    let answer = json!({"db": "SQLite", "parts": ["Auth", "Export"]});
    assert_eq!(final_data(&done), json!({"summary": format!("chose {answer}")}));
    assert_eq!(
        std::fs::read_to_string(stage.project.path("work/notes/answer.txt")).unwrap(),
        answer.to_string()
    );
    assert_eq!(
        stage.deliveries(),
        [json!({"claim": "claim-r2", "question_id": question, "answer": answer, "session": session.session})]
    );
}

#[tokio::test]
async fn a_turn_that_is_cut_off_while_asking_asks_the_same_question() {
    let stage = Stage::new(&json!([{"ask": {"prompt": "Which?", "choices": ["a", "b"]}}, {"finish": {}}]));
    let first = stage.run(stage.turn("r1", go())).await;
    let session = Some(stage.host.session_ref().session);
    let again = TurnRequest { session, ..stage.turn("r2", Input::Continue("go on".into())) };
    assert_eq!(stage.run(again).await.asked, first.asked, "one call, one question");
}

#[tokio::test]
async fn an_answer_within_the_warm_window_is_given_live() {
    let stage = Stage::new(
        &json!([{"ask": {"prompt": "Which?", "choices": ["a", "b"]}}, {"finish": {"got": "{answer}"}}]),
    );
    let request = TurnRequest { warm: Duration::from_secs(60), ..stage.turn("r1", go()) };
    let answering = async {
        loop {
            let data = stage.project.run(&["questions", "--json"]).data();
            match data["items"][0]["question_id"].as_str() {
                Some(question) => return stage.answer(question, "b"),
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let (done, ()) = tokio::join!(stage.run(request), answering);
    assert_eq!(final_data(&done), json!({"got": "b"}));
    assert_eq!((done.asked.len(), stage.deliveries().len()), (0, 1));

    let stage = Stage::new(&json!([{"ask": {"prompt": "Which?"}}, {"finish": {}}]));
    let request = TurnRequest { warm: Duration::from_millis(50), ..stage.turn("r1", go()) };
    assert_eq!(stage.run(request).await.asked.len(), 1, "nobody answered: parked");
    assert!(!is_alive(stage.process()));
}

#[tokio::test]
async fn a_question_in_prose_ends_the_turn_and_the_reply_is_the_next_message() {
    let stage = Stage::new(&json!([{"ask_prose": "Shall I?"}, {"finish": {"said": "{answer}"}}]));
    let parked = stage.run(stage.turn("r1", go())).await;
    assert_eq!(parked.asked, [""; 0]);
    let Outcome::AskUser(ask) = verdict(&parked).outcome else { panic!() };
    assert_eq!(ask.interaction.prompt, "[scripted] Shall I?");
    let session = Some(stage.host.session_ref().session);
    let reply = aop_engine::Reply {
        question_id: "q_X".into(),
        call_id: None,
        kind: aop_engine::ReplyKind::Answered,
        answer: "yes".into(),
        question: Value::Null,
        words: "yes".into(),
        notes: String::new(),
        notes_are_secret: false,
    };
    let resumed = TurnRequest { session, ..stage.turn("r2", Input::Reply(Box::new(reply))) };
    let done = stage.run(resumed).await;
    assert!(done.delivered);
    assert_eq!(final_data(&done), json!({"said": "yes"}));
}

#[tokio::test]
async fn failures_crashes_and_garbage_are_told_apart_and_a_crashed_turn_goes_on() {
    let stage =
        Stage::new(&json!([{"fail": "no model"}, "crash", {"garbage": "%%%"}, {"finish": {"ok": true}}]));
    let failed = stage.run(stage.turn("r1", go())).await;
    assert_eq!(failure(&failed), "ENGINE_FAILED: the engine failed: [scripted] no model");
    let session = Some(stage.host.session_ref().session);
    let next = |run: &str| TurnRequest {
        session: session.clone(),
        ..stage.turn(run, Input::Continue("go on".into()))
    };
    let crashed = stage.run(next("r2")).await;
    assert_eq!(crashed.process.exit_code, Some(137));
    assert!(failure(&crashed).starts_with("ENGINE_FAILED: the engine exited with 137"));
    let done = stage.run(next("r3")).await;
    assert_eq!(final_data(&done), json!({"ok": true}), "a line that is no line of the stream is skipped");
    assert_eq!(
        final_data(&stage.run(next("r4")).await),
        json!({"ok": true}),
        "an end that nobody heard is repeated"
    );
}

#[tokio::test]
async fn a_missing_or_broken_scenario_says_where_it_belongs() {
    let stage = Stage::new(&json!([{"dance": 1}]));
    let refused = stage.driver.run(stage.turn("r1", go()), stage.host.clone()).await;
    let Err(EngineError::Unusable { cause, hint, .. }) = refused else { panic!("{refused:?}") };
    assert!(cause.contains("shop.json is not a scenario") && cause.contains("dance"), "{cause}");
    assert!(hint.contains("ask_prose"), "{hint}");
    std::fs::remove_file(stage.project.path(".aop/scripted/shop.json")).unwrap();
    let refused = stage.driver.run(stage.turn("r2", go()), stage.host.clone()).await;
    let Err(EngineError::Unusable { cause, .. }) = refused else { panic!("{refused:?}") };
    assert!(cause.contains("there is no scenario") && cause.contains("shop.json"), "{cause}");
}
