//! `aop run` with the real Gemini CLI and a fake model, killed with -9 at each step in between: the run that comes
//! after goes on in the same conversation, and the model is told the end of its question once.

use crate::run_support::{Running, assert_nothing_left, events, workshop, workshop_in};
use crate::support::{Project, tree};
use aop_testkit::{CleanHome, Engines, FakeModel, Gate, Received, Reply, Script, Wire};
use serde_json::{Value, json};
use std::time::Duration;
use tempfile::TempDir;

const FEATURE: &str = "shop";
/// Longer than any of this takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

struct Shop {
    project: Project,
    home: TempDir,
    model: FakeModel,
    variables: Vec<(String, String)>,
}

impl Shop {
    fn new(settings: &str, script: Script) -> Self {
        Shop::of(workshop(settings), script)
    }

    fn of(project: Project, script: Script) -> Self {
        let path = project.path("aop.yaml");
        let yaml = std::fs::read_to_string(&path).unwrap().replace("default: scripted", "default: gemini");
        std::fs::write(path, yaml).unwrap();
        project.create_feature(FEATURE);
        let home = TempDir::with_prefix("aop-home-").unwrap();
        let model = FakeModel::start(Wire::Gemini, script).unwrap();
        let clean = CleanHome::new(home.path(), &Engines::required(), &model).unwrap();
        let mut variables: Vec<(String, String)> = clean
            .variables()
            .iter()
            .map(|(name, value)| (name.clone(), value.to_str().unwrap().to_owned()))
            .collect();
        variables.push(("GEMINI_MODEL".into(), "gemini-2.5-flash".into()));
        Shop { project, home, model, variables }
    }

    fn run(&self, crash_at: Option<&str>) -> Running {
        let crash = crash_at.map(|point| ("AOP_CRASH_AT", point));
        let variables = self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let variables: Vec<(&str, &str)> = variables.chain(crash).collect();
        Running::start_with(&self.project, &[], &variables)
    }

    /// Runs until it is killed at the point.
    fn crash(&self, point: &str) {
        let (code, lines) = self.run(Some(point)).end();
        assert_eq!(code, None, "it is killed at {point}: {lines:#?}");
        assert_nothing_left(&self.project);
    }

    /// Runs until the planner has asked and nothing of it is left.
    fn ask(&self) -> Value {
        let mut run = self.run(None);
        let question = run.question(FEATURE);
        run.until("the end of the turn", |line| line["type"] == "turn.ended");
        assert_nothing_left(&self.project);
        question
    }

    /// Runs until the plan is made, which ends what these tests are about.
    fn plan(&self) {
        let mut run = self.run(None);
        run.status(FEATURE, "building");
    }

    fn answer(&self, question: &Value) {
        self.project.answer_to(question, "right").data();
    }

    /// The model was told the end of the question once, with these words, and one question was ever asked.
    fn told_once(&self, question: &Value, words: &str) {
        let id = question["question_id"].as_str().unwrap();
        let ends = |request: &Received| -> Vec<String> {
            let beginning = format!("The end of your question {id}");
            request.user_messages().into_iter().filter(|text| text.starts_with(&beginning)).collect()
        };
        let planner = self.model.main().into_iter().rfind(|request| !ends(request).is_empty());
        let told = planner.as_ref().map(ends).unwrap_or_default();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(words), "{told:?}");
        assert_eq!(events(&self.project, FEATURE, "question.opened").len(), 1);
        // The run was killed, so its files may be behind; what is stored is whole.
        self.project.run(&["doctor", "--repair"]).data();
        self.project.assert_healthy();
    }
}

fn which() -> Reply {
    Reply::call("mcp_aop_ask_human", "call_1", json!({"prompt": "Which?", "choices": ["left", "right"]}))
}

fn planned() -> Reply {
    Reply::text(r#"{"__SKILL_DONE__": true, "summary": "a plan", "steps": ["build it"]}"#)
}

/// Whether the model has been told how its question ended.
fn is_answered(request: &Received) -> bool {
    request.user_messages().iter().any(|text| text.starts_with("The end of your question"))
}

/// A model that asks until it is answered, and then has a plan.
fn model() -> Script {
    let step = |request: &Received| if is_answered(request) { planned() } else { which() };
    (0..6).fold(Script::new(), |script, _| script.then_with(step))
}

#[test]
fn gemini_plans_after_an_answer_from_another_process_and_nothing_of_the_users_is_touched() {
    let shop = Shop::new("", model());
    let before = tree(shop.home.path());
    let question = shop.ask();
    assert_eq!(question["engine_ref"]["engine"], "gemini");
    assert_eq!(shop.project.feature(FEATURE)["status"], "awaiting_input");
    shop.answer(&question);
    shop.plan();
    shop.told_once(&question, "ANSWERED: a human");
    assert_eq!(tree(shop.home.path()), before);
}

/// The settings of the folder name a store that is not there.
#[test]
fn geminis_server_asks_the_store_that_the_environment_names() {
    let nowhere = "store: postgres://nobody@127.0.0.1:1/none?project=shop\n";
    let shop = Shop::of(workshop_in(Project::at("sqlite"), nowhere), model());
    let question = shop.ask();
    shop.answer(&question);
    shop.plan();
    shop.told_once(&question, "ANSWERED: a human");
}

#[test]
fn gemini_killed_with_aop_before_it_is_parked_asks_once() {
    for point in ["turn_claimed", "session_kept", "turn_played", "turn_judged", "turn_ended"] {
        let shop = Shop::new("", model());
        shop.crash(point);
        let question = match shop.project.run(&["questions"]).data()["items"].get(0) {
            Some(open) => open.clone(),
            None => shop.ask(),
        };
        shop.answer(&question);
        shop.plan();
        shop.told_once(&question, "ANSWERED: a human");
    }
}

#[test]
fn gemini_killed_with_aop_while_the_answer_is_delivered_is_told_once() {
    for point in ["turn_began", "turn_spawned", "turn_played", "turn_judged"] {
        let shop = Shop::new("", model());
        let question = shop.ask();
        shop.answer(&question);
        shop.crash(point);
        shop.plan();
        shop.told_once(&question, "ANSWERED: a human");
    }
}

#[test]
fn gemini_killed_with_aop_while_its_model_thinks_about_the_answer_is_told_once() {
    let gate = Gate::closed();
    let held = planned().after(&gate);
    let shop = Shop::new("", model().when(is_answered, held));
    let question = shop.ask();
    shop.answer(&question);
    let run = shop.run(None);
    shop.model.wait_for(is_answered, PATIENCE).unwrap();
    drop(run);
    assert_nothing_left(&shop.project);
    gate.open();
    shop.plan();
    shop.told_once(&question, "ANSWERED: a human");
}

#[test]
fn gemini_is_told_in_words_of_its_own_that_nobody_answered_or_that_it_is_not_permitted() {
    let settings = "policy: { execution: { human_input: { timeout_ms: 1000, strict: false } } }\n";
    for (kind, words) in [("clarification", "EXPIRED: nobody answered"), ("permission_override", "DECLINED:")]
    {
        let step = move |request: &Received| {
            let ask = json!({"prompt": "May I?", "choices": ["yes", "no"], "question_type": kind});
            if is_answered(request) { planned() } else { Reply::call("mcp_aop_ask_human", "call_1", ask) }
        };
        let shop = Shop::new(settings, Script::new().then_with(step).then_with(step).then_with(step));
        let mut run = shop.run(None);
        let question = run.question(FEATURE);
        run.status(FEATURE, "building");
        drop(run);
        shop.told_once(&question, words);
    }
}

/// The program takes a message back when the request with it fails: a conversation can end up empty.
#[test]
fn gemini_begins_anew_when_the_service_refused_its_first_message() {
    let refused = || Reply::error(401, "the key was revoked");
    let shop = Shop::new("run: { retry_wait_s: 1 }\n", Script::new().then(refused()).then(planned()));
    shop.plan();
    let log = shop.project.run(&["log", "--feature-id", FEATURE]).stdout;
    assert!(log.contains("the key was revoked"), "{log}");
    assert!(log.contains("the next turn begins in 1 second"), "{log}");
    let told = shop.model.main().last().unwrap().user_messages();
    assert_eq!(told.iter().filter(|text| text.contains("# Feature shop")).count(), 1, "{told:?}");
}

#[test]
fn gemini_is_told_the_answer_again_when_the_service_refused_the_message_with_it() {
    let refused = Reply::error(401, "the key was revoked");
    let shop = Shop::new(
        "run: { retry_wait_s: 0 }\n",
        Script::new().then(which()).then(refused).then_with(|request| {
            if is_answered(request) { planned() } else { Reply::text("I was told nothing.") }
        }),
    );
    let question = shop.ask();
    shop.answer(&question);
    shop.plan();
    shop.told_once(&question, "ANSWERED: a human");
}
