//! The driver of iFlow, with a stand-in: the product was discontinued and cannot be installed, so nothing here is
//! known of the real program but its documented flags and the block at the end of its output.

use super::host::{StoreHost, turn};
use super::{around, is_alive};
use crate::support::Project;
use aop_engine::{Driver, EngineError, Input, Progress, Reply, ReplyKind, TurnReport, TurnRequest, driver};
use aop_turn::{Engine, Mode, Outcome, Rules, judge};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

struct Stage {
    project: Project,
    driver: Box<dyn Driver>,
    host: Arc<StoreHost>,
}

impl Stage {
    fn new(replies: &[&str]) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let project = Project::with_feature();
        let folder = project.path("home/iflow-stand-in/replies");
        std::fs::create_dir_all(&folder).unwrap();
        for (place, reply) in replies.iter().enumerate() {
            std::fs::write(folder.join((place + 1).to_string()), reply).unwrap();
        }
        let bin = project.path("bin");
        std::fs::create_dir(&bin).unwrap();
        std::fs::write(bin.join("iflow"), include_str!("iflow_stand_in.sh")).unwrap();
        std::fs::set_permissions(bin.join("iflow"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut around = around(&project.path("home"));
        let path = format!("{}:/usr/bin:/bin", bin.display());
        around.env.insert("PATH".into(), path.into());
        let driver = driver(Engine::Iflow, &around);
        let host = StoreHost::new(&project);
        Stage { project, driver, host }
    }

    async fn run(&self, request: TurnRequest) -> TurnReport {
        self.driver.run(request, self.host.clone()).await.unwrap()
    }

    /// What the conversation was told, message by message.
    fn told(&self, session: &str) -> Vec<String> {
        let path: PathBuf = self.project.path("home/iflow-stand-in").join(session);
        let text = std::fs::read_to_string(path).unwrap();
        text.split_terminator("\n===\n").map(str::to_owned).collect()
    }
}

fn outcome(report: &TurnReport) -> Outcome {
    let process = report.process;
    let rules = Rules { mode: Mode::Interactive, attempt: 1, max_attempt: 20, schema: None, process };
    judge(&report.turn, &rules).outcome
}

fn go() -> Input {
    Input::Message("Build the shop.".into())
}

#[tokio::test]
async fn it_asks_in_words_has_exited_and_gets_the_answer_as_the_next_message() {
    let ask = r#"{"__SKILL_DONE__": false, "message": "Which of the two?"}"#;
    let stage = Stage::new(&[ask, r#"{"__SKILL_DONE__": true, "summary": "done"}"#]);
    let asked = stage.run(turn(&stage.project, "r1", go())).await;
    let Outcome::AskUser(ask) = outcome(&asked) else { panic!("{asked:?}") };
    assert_eq!(ask.interaction.prompt, "Which of the two?");
    let progress = stage.host.progress.lock().unwrap().clone();
    let Some(Progress::Started { pgid, .. }) = progress.first() else { panic!("{progress:?}") };
    assert!(!is_alive(*pgid));
    let session = stage.host.session_ref().session;
    assert_eq!(asked.session.as_ref().map(|known| known.session.clone()), Some(session.clone()));

    let reply = Reply {
        question_id: "q_1".into(),
        call_id: None,
        kind: ReplyKind::Answered,
        answer: "the first".into(),
        question: Value::Null,
        words: "ANSWERED: a human (\"ann\") answered: \"the first, see @home\".".into(),
        notes: "A note of bob@home".into(),
        notes_are_secret: false,
    };
    let input = Input::Reply(Box::new(reply));
    let request = TurnRequest { session: Some(session.clone()), ..turn(&stage.project, "r2", input) };
    let done = stage.run(request).await;
    assert!(matches!(outcome(&done), Outcome::Final { .. }), "{done:?}");
    assert!(done.delivered);
    let told = stage.told(&session);
    assert_eq!(told.len(), 2);
    assert!(told[1].starts_with("The end of your question q_1: ANSWERED: a human"), "{told:?}");
    assert!(told[1].contains("\n\nA note of bob\\@home\n\n"), "{told:?}");
    let held =
        stage.driver.holds_reply(stage.project.root().into(), stage.host.session_ref(), "q_1".into(), None);
    assert_eq!(held.await, None, "what it keeps is not known");
}

#[tokio::test]
async fn a_prompt_that_no_command_line_takes_stands_in_a_file_of_the_owner_while_the_turn_runs() {
    let stage = Stage::new(&[r#"{"__SKILL_DONE__": true}"#]);
    let long = "word ".repeat(60_000);
    let report = stage.run(turn(&stage.project, "r1", Input::Message(long.clone()))).await;
    assert!(matches!(outcome(&report), Outcome::Final { .. }), "{report:?}");
    let told = stage.told(&stage.host.session_ref().session);
    let path = stage.project.path(".aop/runs/r1/prompt.md");
    assert!(told[0].contains(&path.display().to_string()), "{told:?}");
    assert!(told[0].contains(&format!("\n600 {long}")), "what stood in it, and for whom");
    assert!(!path.exists(), "an answer in it may be secret");
}

#[tokio::test]
async fn one_that_dies_is_an_error_and_one_that_is_not_there_is_named() {
    let stage = Stage::new(&["DIE"]);
    let report = stage.run(turn(&stage.project, "r1", go())).await;
    assert!(matches!(outcome(&report), Outcome::Error { .. }), "{report:?}");
    assert!(!report.delivered);

    std::fs::remove_file(stage.project.path("bin/iflow")).unwrap();
    match stage.driver.run(turn(&stage.project, "r2", go()), stage.host.clone()).await {
        Err(EngineError::NotInstalled { hint, .. }) => assert!(hint.contains("discontinued"), "{hint}"),
        other => panic!("{other:?}"),
    }
}
