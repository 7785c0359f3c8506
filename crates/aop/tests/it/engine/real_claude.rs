//! Claude Code, the real program, against a fake model: asks, is parked to nothing, and gets the answer once, as the
//! result of its own call.

use super::host::{FEATURE, StoreHost, turn};
use super::{processes_of, until};
use crate::support::Project;
use aop_engine::{Driver, EngineError, Input, Surroundings, TurnReport, TurnRequest, driver};
use aop_testkit::{Call, CleanHome, Engines, FakeModel, Reply, Script, Wire};
use aop_turn::command::Permissions;
use aop_turn::{Engine, Mode, Outcome, Rules, Verdict, judge};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(super) const DONE: &str = "All done.\n{\"__SKILL_DONE__\": true, \"summary\": \"done\"}";

pub(super) struct Stage {
    pub(super) project: Project,
    pub(super) model: FakeModel,
    pub(super) driver: Box<dyn Driver>,
    pub(super) host: Arc<StoreHost>,
    pub(super) around: Surroundings,
    pub(super) home: PathBuf,
}

impl Stage {
    pub(super) fn new(script: Script) -> Self {
        Stage::with_settings("", script)
    }

    pub(super) fn with_settings(yaml: &str, script: Script) -> Self {
        let project = Project::with_settings(yaml);
        let model = FakeModel::start(Wire::Anthropic, script).unwrap();
        let home = project.path("home");
        let clean = CleanHome::new(&home, &Engines::required(), &model).unwrap();
        let env = clean.variables().iter().map(|(name, value)| (name.into(), value.clone())).collect();
        let around = Surroundings { aop: crate::support::binary().into(), env };
        let driver = driver(Engine::ClaudeCode, &around);
        let host = StoreHost::new(&project);
        Stage { project, model, driver, host, around, home }
    }

    pub(super) async fn run(&self, request: TurnRequest) -> TurnReport {
        self.driver.run(request, self.host.clone()).await.unwrap()
    }

    pub(super) async fn start(&self) -> TurnReport {
        self.run(self.turn("r1", Input::Message("Plan the shop.".into()))).await
    }

    pub(super) fn turn(&self, run: &str, input: Input) -> TurnRequest {
        turn(&self.project, run, input)
    }

    /// The turn that brings the end of a question back to its conversation.
    pub(super) async fn resume(&self, run: &str, question: &str) -> TurnRequest {
        let record = self.host.question(question).await;
        let call = record.asked.engine_ref.as_ref().and_then(|engine| engine.call_id.clone());
        let reply = self.host.reply(question, call).await.unwrap();
        self.go_on(run, Input::Reply(Box::new(reply)))
    }

    pub(super) fn go_on(&self, run: &str, input: Input) -> TurnRequest {
        TurnRequest { session: Some(self.host.session_ref().session), ..self.turn(run, input) }
    }

    pub(super) fn answer(&self, question: &str, answer: &str) {
        let args = ["answer", "--feature-id", FEATURE, "--question-id", question, "--answer", answer];
        self.project.run(&args).data();
    }

    /// Whether the engine has written anything of its conversation down.
    pub(super) fn has_conversation(&self) -> bool {
        let file = format!("{}.jsonl", self.host.session_ref().session);
        let projects = std::fs::read_dir(self.home.join(".claude/projects")).into_iter().flatten();
        projects.flatten().any(|project| project.path().join(&file).exists())
    }

    pub(super) async fn assert_nothing_runs(&self) {
        let mut left = processes_of(self.project.root());
        for _ in 0..500 {
            if left.is_empty() {
                return;
            }
            // Not a blocking wait: the runtime has pipes to close.
            tokio::time::sleep(Duration::from_millis(10)).await;
            left = processes_of(self.project.root());
        }
        panic!("still there: {left:?}");
    }
}

pub(super) fn card(question: &str, multi: bool) -> Value {
    let header: String = question.chars().filter(char::is_ascii_alphabetic).take(8).collect();
    json!({"question": question, "header": header, "multiSelect": multi, "options": [
        {"label": "Postgres, managed", "description": "a server"}, {"label": "SQLite", "description": "a file"},
        {"label": "None", "description": "nothing"}]})
}

pub(super) fn ask(call: &str, cards: &[Value]) -> Reply {
    Reply::call("AskUserQuestion", call, json!({"questions": cards}))
}

pub(super) fn verdict(report: &TurnReport) -> Verdict {
    let rules =
        Rules { mode: Mode::Interactive, attempt: 1, max_attempt: 20, schema: None, process: report.process };
    judge(&report.turn, &rules)
}

pub(super) fn assert_final(report: &TurnReport) {
    match verdict(report).outcome {
        Outcome::Final { data } => assert_eq!(data["summary"], "done"),
        other => panic!("{other:?}: {}", std::fs::read_to_string(&report.transcript).unwrap_or_default()),
    }
}

#[track_caller]
pub(super) fn only(asked: &[String]) -> &String {
    let [question] = asked else { panic!("{asked:?}") };
    question
}

#[tokio::test]
async fn two_questions_are_recorded_the_process_goes_and_the_model_gets_the_answer_once() {
    let cards = [card("Which database?", false), card("Which parts?", true)];
    let stage = Stage::new(Script::new().then(ask("toolu_1", &cards)).then(Reply::text(DONE)));
    let parked = stage.start().await;
    stage.assert_nothing_runs().await;
    assert!(matches!(verdict(&parked).outcome, Outcome::AskUser(_)));
    let id = only(&parked.asked);
    let record = json!(stage.host.question(id).await);
    let spec = &record["spec"]["questions"];
    assert_eq!(spec[0]["question"], "Which database?");
    assert_eq!(spec[0]["options"][0]["label"], "Postgres, managed");
    assert_eq!((&spec[1]["kind"], &spec[1]["options"][2]["label"]), (&json!("multi_choice"), &json!("None")));
    let engine = &record["engine_ref"];
    assert_eq!((&engine["engine"], &engine["call_id"]), (&json!("claude-code"), &json!("toolu_1")));
    assert_eq!(engine["session"], parked.session.as_ref().unwrap().session.as_str());
    assert_eq!(stage.project.feature(FEATURE)["status"], "awaiting_input");

    stage.answer(id, &json!({"whichdat": "SQLite", "whichpar": ["SQLite", "None"]}).to_string());
    let session = stage.host.session_ref();
    let call = Some("toolu_1".to_owned());
    let held =
        || stage.driver.holds_reply(stage.project.root().into(), session.clone(), id.clone(), call.clone());
    assert_eq!(held().await, Some(false));
    let done = stage.run(stage.resume("r2", id).await).await;
    assert_final(&done);
    assert!(done.delivered && done.asked.is_empty());
    assert_eq!(held().await, Some(true));
    assert_eq!(
        stage.model.results_of("toolu_1"),
        [
            "Your questions have been answered: \"Which database?\"=\"SQLite\", \"Which parts?\"=\"SQLite, None\". You can now \
          continue with these answers in mind."
        ]
    );
    assert_eq!((stage.model.main().len(), stage.model.unscripted()), (2, 0));
    stage.assert_nothing_runs().await;
}

#[tokio::test]
async fn words_and_labels_with_a_comma_reach_the_model_unchanged() {
    for (answer, told) in [
        (json!({"whichpar": ["Postgres, managed", "None"]}).to_string(), r#"["Postgres, managed","None"]"#),
        (json!({"whichpar": ["something else"]}).to_string(), "something else"),
    ] {
        let stage = Stage::new(
            Script::new().then(ask("toolu_1", &[card("Which parts?", true)])).then(Reply::text(DONE)),
        );
        let id = stage.start().await.asked.remove(0);
        stage.answer(&id, &answer);
        assert_final(&stage.run(stage.resume("r2", &id).await).await);
        let results = stage.model.results_of("toolu_1");
        assert!(results.len() == 1 && results[0].contains(told), "{results:?}");
    }
}

#[tokio::test]
async fn two_asks_in_one_message_become_one_form() {
    let calls = [("toolu_1", "Which database?"), ("toolu_2", "Which colour?")].map(|(id, question)| {
        Call::new("AskUserQuestion", id, json!({"questions": [card(question, false)]}))
    });
    let stage = Stage::new(Script::new().then(Reply::calls(calls)).then(Reply::text(DONE)));
    let parked = stage.start().await;
    let id = only(&parked.asked);
    let record = json!(stage.host.question(id).await);
    assert_eq!(record["spec"]["questions"].as_array().unwrap().len(), 2);
    stage.answer(id, &json!({"whichdat": "SQLite", "whichcol": "None"}).to_string());
    assert_final(&stage.run(stage.resume("r2", id).await).await);
    let first = stage.model.results_of("toolu_1");
    assert!(first.len() == 1 && first[0].contains("\"Which database?\"=\"SQLite\""), "{first:?}");
    assert!(first[0].contains("\"Which colour?\"=\"None\""), "{first:?}");
    let second = stage.model.results_of("toolu_2");
    assert!(second.len() == 1 && second[0].contains("come as the result of that other call"), "{second:?}");
}

#[tokio::test]
async fn nobody_answered_or_it_was_taken_back_is_told_in_words() {
    let lenient = "policy: {execution: {human_input: {timeout_ms: 1000, strict: false}}}\n";
    let script = || Script::new().then(ask("toolu_1", &[card("Which?", false)])).then(Reply::text(DONE));
    let stage = Stage::with_settings(lenient, script());
    let id = stage.start().await.asked.remove(0);
    until("the question expires", || stage.project.feature(FEATURE)["status"] == "planning");
    assert_final(&stage.run(stage.resume("r2", &id).await).await);
    let results = stage.model.results_of("toolu_1");
    assert!(results.len() == 1 && results[0].contains("EXPIRED: nobody answered in time"), "{results:?}");

    let stage = Stage::new(script());
    let id = stage.start().await.asked.remove(0);
    stage.project.run(&["withdraw", "--feature-id", FEATURE, "--question-id", &id]).data();
    assert_final(&stage.run(stage.resume("r2", &id).await).await);
    let results = stage.model.results_of("toolu_1");
    assert!(results.len() == 1 && results[0].contains("WITHDRAWN"), "{results:?}");
}

/// The system prompt stays as it was when the conversation began.
#[tokio::test]
async fn what_a_later_turn_is_to_read_reaches_the_model_once_however_its_question_ended() {
    const NOTE: &str = "Use the existing date picker";
    for answered in [true, false] {
        let script = Script::new().then(ask("toolu_1", &[card("Which?", false)]));
        let stage = Stage::new(script.then(Reply::text(DONE)).then(Reply::text(DONE)));
        let told = |request: TurnRequest, instructions: &str| TurnRequest {
            instructions: instructions.to_owned(),
            ..request
        };
        let first = stage.turn("r1", Input::Message("Plan the shop.".into()));
        let id = stage.run(told(first, "Deliver to one.")).await.asked.remove(0);
        if answered {
            stage.answer(&id, "SQLite");
        } else {
            stage.project.run(&["withdraw", "--feature-id", FEATURE, "--question-id", &id]).data();
        }
        let mut second = told(stage.resume("r2", &id).await, "Deliver to two.");
        let Input::Reply(reply) = &mut second.input else { panic!() };
        reply.notes = NOTE.to_owned();
        assert_final(&stage.run(second).await);
        let third = stage.go_on("r3", Input::Message("And now the rest.".into()));
        assert_final(&stage.run(told(third, "Deliver to three.")).await);
        let requests = stage.model.main();
        let counts = |text: &str| -> Vec<usize> {
            requests
                .iter()
                .map(|request| request.body["messages"].to_string().matches(text).count())
                .collect()
        };
        assert_eq!(counts(NOTE), [0, 1, 1], "{answered}");
        assert_eq!(counts("Deliver to two."), [0, 1, 1], "{answered}");
        assert_eq!(counts("Deliver to three."), [0, 0, 1], "{answered}");
        assert_eq!(requests[1].results_of("toolu_1").len(), 1);
        assert_eq!(requests.len(), 3);
    }
}

/// The engine shows the model 10 000 characters of what stands beside a result.
#[tokio::test]
async fn what_is_too_long_to_stand_beside_an_answer_comes_as_the_next_message_whole() {
    for (length, at_once) in [(1_000, true), (8_900, true), (9_100, false), (30_000, false)] {
        let script = Script::new().then(ask("toolu_1", &[card("Which?", false)]));
        let script = if at_once { script } else { script.then(ask("toolu_2", &[card("And then?", false)])) };
        let script = if at_once { script } else { script.then(Reply::text("I wait.")) };
        let stage = Stage::new(script.then(Reply::text(DONE)));
        let id = stage.start().await.asked.remove(0);
        stage.answer(&id, "SQLite");
        let mut second = stage.resume("r2", &id).await;
        let Input::Reply(reply) = &mut second.input else { panic!() };
        reply.notes = format!("BEGIN{}END", "\u{e9}".repeat(length));
        let note = reply.notes.clone();
        let done = stage.run(second).await;
        assert_final(&done);
        assert!(done.delivered && done.asked.is_empty(), "{length}: {done:?}");
        let requests = stage.model.main();
        let told: Vec<usize> = requests
            .iter()
            .map(|request| request.body["messages"].to_string().matches(&note).count())
            .collect();
        assert_eq!(told, if at_once { vec![0, 1] } else { vec![0, 0, 0, 1] }, "{length}");
        assert_eq!(stage.model.results_of("toolu_1").len(), 1, "{length}");
        let refused = stage.model.results_of("toolu_2");
        assert!(refused.iter().all(|text| text.contains("read first")), "{refused:?}");
        assert_eq!((refused.len(), stage.model.unscripted()), (usize::from(!at_once), 0), "{length}");
    }
}

#[tokio::test]
async fn at_the_limit_and_without_anybody_nothing_is_recorded() {
    let script = || Script::new().then(ask("toolu_1", &[card("Which?", false)])).then(Reply::text(DONE));
    let stage = Stage::new(script());
    let request = stage.turn("r1", Input::Message("go".into()));
    let done = stage.run(TurnRequest { may_ask: false, ..request }).await;
    assert_final(&done);
    assert!(stage.model.results_of("toolu_1")[0].contains("as often as this phase allows"));
    assert_eq!(stage.project.run(&["questions", "--status", "all"]).data()["items"], json!([]));

    let stage = Stage::new(Script::new().then(Reply::text(DONE)));
    let request = stage.turn("r1", Input::Message("go".into()));
    assert_final(&stage.run(TurnRequest { mode: Mode::Auto, ..request }).await);
    assert!(!stage.model.main()[0].tools().contains(&"AskUserQuestion".to_owned()));
}

#[tokio::test]
async fn a_store_that_cannot_be_reached_blocks_the_ask() {
    let stage =
        Stage::new(Script::new().then(ask("toolu_1", &[card("Which?", false)])).then(Reply::text(DONE)));
    std::fs::write(stage.project.path("aop.yaml"), "no settings: at all\n").unwrap();
    let done = stage.start().await;
    assert_final(&done);
    let results = stage.model.results_of("toolu_1");
    assert!(results.len() == 1 && results[0].contains("aop could not ask anybody"), "{results:?}");
}

#[tokio::test]
async fn permissions_become_questions_and_only_allow_allows() {
    let write = |call: &str, file: &str| {
        Reply::call("Bash", call, json!({"command": format!("touch {file}"), "description": "make it"}))
    };
    for (answer, runs) in [("allow", true), ("deny", false), ("rather not", false)] {
        let look = Reply::call("Bash", "toolu_0", json!({"command": "ls", "description": "look"}));
        let stage =
            Stage::new(Script::new().then(look).then(write("toolu_1", "made")).then(Reply::text(DONE)));
        let ask_me = |request| TurnRequest { permissions: Permissions::Ask, ..request };
        let parked = stage.run(ask_me(stage.turn("r1", Input::Message("go".into())))).await;
        stage.assert_nothing_runs().await;
        let id = only(&parked.asked);
        let record = json!(stage.host.question(id).await);
        assert_eq!(record["question_type"], "permission_override");
        assert!(record["prompt"].as_str().unwrap().contains("touch made"), "{record}");
        assert!(!stage.project.path("work/made").exists(), "nothing ran before the answer");
        stage.answer(id, answer);
        assert_final(&stage.run(ask_me(stage.resume("r2", id).await)).await);
        assert_eq!(stage.project.path("work/made").exists(), runs, "{answer}");
        let results = stage.model.results_of("toolu_1");
        assert_eq!(results.len(), 1);
        assert_eq!(results[0].contains("Not permitted"), !runs, "{results:?}");
    }
}

#[tokio::test]
async fn a_plan_is_approved_by_a_person_or_by_nobody() {
    let plan = || {
        Script::new()
            .then(Reply::call("EnterPlanMode", "toolu_0", json!({})))
            .then(Reply::call("ExitPlanMode", "toolu_1", json!({"plan": "# Build it"})))
            .then(Reply::text(DONE))
    };
    let stage = Stage::new(plan());
    let done = stage.start().await;
    assert_final(&done);
    assert!(done.asked.is_empty(), "nobody wants to be asked about plans");

    let stage = Stage::new(plan());
    let ask_me = |request| TurnRequest { permissions: Permissions::Ask, ..request };
    let parked = stage.run(ask_me(stage.turn("r1", Input::Message("go".into())))).await;
    let id = only(&parked.asked);
    let record = json!(stage.host.question(id).await);
    assert!(record["prompt"].as_str().unwrap().contains("go ahead with this plan"), "{record}");
    stage.answer(id, "allow");
    let done = stage.run(ask_me(stage.resume("r2", id).await)).await;
    assert_final(&done);
    let results = stage.model.results_of("toolu_1");
    assert!(results.len() == 1 && results[0].contains("approved"), "{results:?}");
}

#[tokio::test]
async fn an_answer_within_the_warm_window_is_given_live_and_none_parks() {
    let script = || Script::new().then(ask("toolu_1", &[card("Which?", false)])).then(Reply::text(DONE));
    let stage = Stage::new(script());
    let warm = |request, time| TurnRequest { warm: Duration::from_millis(time), ..request };
    let request = warm(stage.turn("r1", Input::Message("go".into())), 60_000);
    let answering = async {
        loop {
            match stage.project.run(&["questions"]).data()["items"][0]["question_id"].as_str() {
                Some(question) => return stage.answer(question, "SQLite"),
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let (done, ()) = tokio::join!(stage.run(request), answering);
    assert_final(&done);
    assert!(done.asked.is_empty());
    let results = stage.model.results_of("toolu_1");
    assert!(results.len() == 1 && results[0].contains("\"Which?\"=\"SQLite\""), "{results:?}");

    let stage = Stage::new(script());
    let parked = stage.run(warm(stage.turn("r1", Input::Message("go".into())), 300)).await;
    let id = only(&parked.asked);
    stage.assert_nothing_runs().await;
    stage.answer(id, "SQLite");
    assert_final(&stage.run(stage.resume("r2", id).await).await);
}

#[tokio::test]
async fn a_sub_agent_is_answered_live() {
    let task = json!({"description": "sub", "prompt": "make the file", "subagent_type": "general-purpose",
        "run_in_background": false});
    let bash = Reply::call("Bash", "toolu_sub", json!({"command": "touch made", "description": "make it"}));
    let stage = Stage::new(
        Script::new()
            .then(Reply::call("Agent", "toolu_1", task))
            .then(Reply::text(DONE))
            .when(|received| received.part == aop_testkit::Part::SubAgent, bash)
            .when(|received| received.part == aop_testkit::Part::SubAgent, Reply::text("made it")),
    );
    let request =
        TurnRequest { permissions: Permissions::Ask, ..stage.turn("r1", Input::Message("go".into())) };
    let answering = async {
        loop {
            match stage.project.run(&["questions"]).data()["items"][0]["question_id"].as_str() {
                Some(question) => return stage.answer(question, "allow"),
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let (done, ()) = tokio::join!(stage.run(request), answering);
    assert_final(&done);
    assert!(done.asked.is_empty());
    assert!(stage.project.path("work/made").exists());
}

#[tokio::test]
async fn nothing_of_the_users_is_changed_and_their_settings_stay_in_force() {
    let stage =
        Stage::new(Script::new().then(ask("toolu_1", &[card("Which?", false)])).then(Reply::text(DONE)));
    let own = [
        (
            ".claude/settings.json",
            r#"{"disableAllHooks": true, "model": "claude-sonnet-5", "permissions": {"allow": ["Bash(ls)"]}}"#,
        ),
        (".claude/CLAUDE.md", "Be brief.\n"),
    ];
    for (file, text) in own {
        let path = stage.home.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let id = stage.start().await.asked.remove(0);
    stage.answer(&id, "SQLite");
    assert_final(&stage.run(stage.resume("r2", &id).await).await);
    for (file, text) in own {
        assert_eq!(std::fs::read_to_string(stage.home.join(file)).unwrap(), text, "{file}");
    }
    assert_eq!(stage.model.main()[0].body["model"], "claude-sonnet-5");
    assert!(!stage.project.path("work/.claude").exists());
}

#[tokio::test]
async fn a_missing_old_or_broken_program_is_told_apart() {
    let stage = Stage::new(Script::new());
    let refused = |path: String| {
        let mut around = stage.around.clone();
        around.env.insert("PATH".into(), path.into());
        let request = stage.turn("r1", Input::Message("go".into()));
        let (driver, host) = (driver(Engine::ClaudeCode, &around), stage.host.clone());
        async move { driver.run(request, host).await }
    };
    let Err(EngineError::NotInstalled { program, hint, .. }) = refused("/usr/bin:/bin".into()).await else {
        panic!()
    };
    assert_eq!(program, "claude");
    assert!(hint.contains("npm install -g @anthropic-ai/claude-code"), "{hint}");

    let stand_in = |name: &str, script: &str| {
        use std::os::unix::fs::PermissionsExt;
        let folder = stage.project.path(name);
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("claude");
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        format!("{}:/usr/bin:/bin", folder.display())
    };
    let old = refused(stand_in("old", "echo '1.0.99 (Claude Code)'")).await;
    let Err(EngineError::Unusable { cause, .. }) = old else { panic!("{old:?}") };
    assert!(cause.contains("1.0.99") && cause.contains("2.1.197"), "{cause}");
    let odd = refused(stand_in("odd", "echo hello")).await;
    assert!(matches!(odd, Err(EngineError::Unusable { .. })), "{odd:?}");
    let version = "if [ \"$1\" = --version ]; then echo '2.1.325 (Claude Code)'; exit; fi";
    let garbage =
        refused(stand_in("garbage", &format!("{version}; echo '%%% {{'; echo oops >&2"))).await.unwrap();
    let Outcome::Error { code, .. } = verdict(&garbage).outcome else { panic!("{garbage:?}") };
    assert_eq!(code.as_str(), "ENGINE_STREAM_TRUNCATED");
    let failing =
        refused(stand_in("failing", &format!("{version}; echo 'out of paper' >&2; exit 3"))).await.unwrap();
    let Outcome::Error { code, message } = verdict(&failing).outcome else { panic!("{failing:?}") };
    assert_eq!(code.as_str(), "ENGINE_FAILED");
    assert!(message.contains("exited with 3") && message.contains("out of paper"), "{message}");
}
