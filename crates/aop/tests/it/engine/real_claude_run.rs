//! `aop run` with the real Claude Code against a fake model: a feature goes its whole way, and a kill of `aop` at any
//! step in between costs nothing and doubles nothing.

use super::processes_of;
use super::real_claude::{ask, card};
use crate::run_support::{Running, git, workshop};
use crate::support::{Project, question, tree};
use aop_testkit::{CleanHome, Engines, FakeModel, Reply, Script, Wire};
use serde_json::json;

/// What every role takes for its result.
const RESULT: &str = "{\"__SKILL_DONE__\": true, \"summary\": \"done\", \"steps\": [\"one\"], \"files_changed\": [], \"verdict\": \"pass\"}";

struct Shop {
    project: Project,
    model: FakeModel,
    home: CleanHome,
}

impl Shop {
    fn open() -> Self {
        let project = workshop("");
        let room = "policy: { execution: { human_input: { max_open_questions_per_feature: 2 } } }";
        std::fs::write(project.path("aop.yaml"), format!("engines: {{ default: claude-code }}\n{room}\n"))
            .unwrap();
        git(&project, &["commit", "--quiet", "-am", "Claude Code"]);
        project.create_feature("shop");
        let mut script = Script::new().then(ask("toolu_1", &[card("Which database?", false)]));
        for _ in 0..12 {
            script = script.then(Reply::text(RESULT));
        }
        let model = FakeModel::start(Wire::Anthropic, script).unwrap();
        let home = CleanHome::new(&project.path(".aop/home"), &Engines::required(), &model).unwrap();
        Shop { project, model, home }
    }

    /// One `aop run`, killed at a point or not, until it ends.
    fn run(&self, crash: Option<&str>) {
        let mut variables: Vec<(&str, &str)> = self
            .home
            .variables()
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        variables.extend(crash.map(|point| ("AOP_CRASH_AT", point)));
        Running::start_with(&self.project, &["--exit-when-parked"], &variables).end();
        super::until("no process is left", || processes_of(self.project.root()).is_empty());
    }

    fn status(&self) -> String {
        self.project.feature("shop")["status"].as_str().unwrap().to_owned()
    }

    /// Runs until the feature stands there.
    fn run_to(&self, status: &str, crash: Option<&str>) {
        self.run(crash);
        for _ in 0..3 {
            if self.status() == status {
                return;
            }
            self.run(None);
        }
        assert_eq!(self.status(), status, "{}", self.project.run(&["log"]).stdout);
    }

    fn open_question(&self) -> String {
        let items = self.project.run(&["questions", "--status", "all"]).data()["items"].clone();
        assert_eq!(items.as_array().unwrap().len(), 1, "{items:#}");
        items[0]["question_id"].as_str().unwrap().to_owned()
    }

    /// How often the conversation that asked was told: by results of its call, and by messages that name the question.
    fn told(&self, question: &str) -> usize {
        let conversation =
            self.model.main().into_iter().rev().find(|request| request.mentions("toolu_1")).unwrap();
        let results = conversation.results_of("toolu_1").into_iter().filter(|text| text.contains("SQLite"));
        let message = format!("The end of your question {question}");
        results.chain(conversation.user_messages().into_iter().filter(|text| text.contains(&message))).count()
    }

    fn whole_way(&self, first: Option<&str>, second: Option<&str>) {
        self.run_to("awaiting_input", first);
        let question = self.open_question();
        let answer = json!({"whichdat": "SQLite"}).to_string();
        self.project.answer(&question, &answer).data();
        self.run_to("ready_to_merge", second);
        assert_eq!(self.told(&question), 1, "{first:?} {second:?}");
        assert_eq!(self.open_question(), question, "nothing was asked twice");
        self.project.assert_healthy();
    }
}

#[test]
fn a_feature_goes_its_whole_way_around_a_question() {
    let shop = Shop::open();
    shop.whole_way(None, None);
    assert_eq!((shop.model.main().len(), shop.model.unscripted()), (4, 0));
    let results = shop.model.main()[1].results_of("toolu_1");
    assert_eq!(
        results,
        [
            "Your questions have been answered: \"Which database?\"=\"SQLite\". You can now continue with these answers in mind."
        ]
    );
}

/// The names of folders for deliverables that a model was told.
fn folders(text: &str) -> Vec<&str> {
    text.split('`').filter(|part| part.starts_with('/') && part.ends_with("/artifacts/")).collect()
}

#[test]
fn a_note_and_the_folder_of_the_turn_come_with_the_answer_once() {
    const NOTE: &str = "Use the existing date picker";
    let shop = Shop::open();
    shop.run_to("awaiting_input", None);
    let question = shop.open_question();
    shop.project.run(&["send", "--feature-id", "shop", "--role", "planner", NOTE]).data();
    shop.project.answer(&question, &json!({"whichdat": "SQLite"}).to_string()).data();
    shop.run_to("ready_to_merge", None);
    let requests = shop.model.main();
    assert_eq!((requests.len(), shop.model.unscripted()), (4, 0));
    let noted: Vec<usize> =
        requests.iter().map(|request| request.body.to_string().matches(NOTE).count()).collect();
    assert_eq!(noted, [0, 1, 0, 0], "the planner reads it, once");
    assert_eq!(shop.told(&question), 1);
    let (first, second) = (requests[0].body.to_string(), requests[1].body["messages"].to_string());
    let [folder] = folders(&second)[..] else { panic!("{second}") };
    assert!(!folders(&first).contains(&folder), "{folder} is the one of the turn that asked");
}

#[test]
fn a_secret_that_comes_along_with_an_answer_is_told_once_and_stands_in_no_file_of_aop() {
    let shop = Shop::open();
    shop.run_to("awaiting_input", None);
    let waited_for = shop.open_question();
    let mut secret = question("shop", "op-secret");
    secret["role"] = "planner".into();
    secret["blocking"] = false.into();
    secret.as_object_mut().unwrap().remove("expected_answer");
    secret["spec"] = json!({"version": 1, "topic": "t", "questions": [{"id": "token", "header": "Token",
        "question": "Which token?", "kind": "free_text", "required": true, "secret": true}]});
    let asked =
        shop.project.tool("feature.question_create", "planner", &secret).data()["question_id"].clone();
    shop.project.answer(asked.as_str().unwrap(), "hunter2").data();
    shop.project.answer(&waited_for, &json!({"whichdat": "SQLite"}).to_string()).data();
    shop.run_to("ready_to_merge", None);
    let told: Vec<usize> =
        shop.model.main().iter().map(|request| request.body.to_string().matches("hunter2").count()).collect();
    assert_eq!(told, [0, 0, 1, 0, 0], "the planner is told after the answer, and nobody else");
    assert_eq!(shop.told(&waited_for), 1);
    assert_eq!(shop.project.kept_secret(&asked), None);
    // What the engine keeps of its own conversations, in its home, is its own.
    std::fs::remove_dir_all(shop.project.path(".aop/home")).unwrap();
    for (path, content) in tree(&shop.project.path(".aop")) {
        let is_store = path.file_name().unwrap().to_str().unwrap().starts_with("aop.db");
        let holds = content.windows(7).any(|window| window == b"hunter2");
        assert!(is_store || !holds, "{}", path.display());
    }
}

#[test]
fn aop_killed_at_any_step_before_the_answer_asks_once() {
    for point in ["turn_claimed", "turn_spawned", "session_kept", "turn_played", "turn_ended"] {
        Shop::open().whole_way(Some(point), None);
    }
}

#[test]
fn aop_killed_at_any_step_after_the_answer_delivers_once() {
    for point in ["turn_claimed", "turn_spawned", "turn_played", "turn_judged", "turn_ended"] {
        Shop::open().whole_way(None, Some(point));
    }
}
