//! Claude Code when something dies: the engine, the hook, or `aop` at any moment. Afterwards the conversation goes on,
//! and the answer is in it once.

use super::real_claude::{DONE, Stage, ask, assert_final, card, only, verdict};
use super::until;
use aop_engine::{EngineError, Input, Progress};
use aop_testkit::{Gate, Reply, Script};
use aop_turn::Outcome;
use serde_json::json;
use std::time::Duration;

fn script() -> Script {
    Script::new().then(ask("toolu_1", &[card("Which database?", false)])).then(Reply::text(DONE))
}

/// How often the model's latest conversation holds the answer: in a result, or in a message of the user's.
fn told(stage: &Stage, answer: &str) -> usize {
    let conversation = stage.model.conversation().unwrap();
    let results = conversation.tool_results().into_iter().map(|result| result.text);
    results.chain(conversation.user_messages()).filter(|text| text.contains(answer)).count()
}

#[tokio::test]
async fn an_engine_that_dies_in_mid_turn_is_an_error_and_goes_on() {
    let gate = Gate::closed();
    let stage = Stage::new(Script::new().then(Reply::text("never").after(&gate)).then(Reply::text(DONE)));
    let kill = async {
        loop {
            let started = stage.host.progress.lock().unwrap().iter().find_map(|progress| match progress {
                Progress::Started { pgid, .. } => Some(*pgid),
                Progress::Said(_) | Progress::Uses(_) => None,
            });
            match started {
                Some(pgid) if !stage.model.main().is_empty() => {
                    let group = format!("-{pgid}");
                    std::process::Command::new("kill").args(["-9", "--", &group]).status().unwrap();
                    return;
                }
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let (dead, ()) = tokio::join!(stage.start(), kill);
    assert!(matches!(verdict(&dead).outcome, Outcome::Error { .. }), "{dead:?}");
    stage.assert_nothing_runs().await;
    gate.open();
    assert_final(&stage.run(stage.go_on("r2", Input::Continue("Go on with the shop.".into()))).await);
}

#[tokio::test]
async fn aop_gone_before_the_model_answers_loses_nothing() {
    for begun in [false, true] {
        let gate = Gate::closed();
        let stage = Stage::new(Script::new().then(Reply::text("never").after(&gate)).then(Reply::text(DONE)));
        let cut_off = async {
            if begun {
                while stage.model.main().is_empty() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            } else {
                while stage.host.progress.lock().unwrap().is_empty() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        };
        tokio::select! {
            report = stage.start() => panic!("{report:?}"),
            () = cut_off => {}
        }
        stage.assert_nothing_runs().await;
        gate.open();
        let done = stage.run(stage.go_on("r2", Input::Continue("Plan the shop.".into()))).await;
        // The script's first reply may not have been used up.
        if matches!(verdict(&done).outcome, Outcome::AskUser(_)) {
            assert!(!begun);
            continue;
        }
        assert_final(&done);
    }
}

#[tokio::test]
async fn a_hook_that_dies_after_the_commit_leaves_a_question_whose_answer_still_arrives_once() {
    let mut stage = Stage::new(script().then(Reply::text(DONE)));
    stage.around.env.insert("AOP_CRASH_AT".into(), "hook_recorded".into());
    stage.driver = aop_engine::driver(aop_turn::Engine::ClaudeCode, &stage.around);
    stage.start().await;
    stage.around.env.remove(std::ffi::OsStr::new("AOP_CRASH_AT"));
    stage.driver = aop_engine::driver(aop_turn::Engine::ClaudeCode, &stage.around);
    let items = stage.project.run(&["questions"]).data()["items"].clone();
    let id = items[0]["question_id"].as_str().unwrap().to_owned();
    stage.answer(&id, "SQLite");
    let done = stage.run(stage.resume("r2", &id).await).await;
    assert!(done.delivered);
    assert_eq!(told(&stage, "SQLite"), 1, "{:#?}", stage.model.conversation());
}

#[tokio::test]
async fn aop_gone_while_the_hook_works_leaves_one_question_and_one_answer() {
    // The engine writes its conversation down while the hook works, sooner or later; in the last round it has.
    for delay in [Some(0), Some(5), Some(20), Some(60), Some(200), None] {
        let stage = Stage::new(script().then(Reply::text(DONE)));
        let recorded = async {
            while stage.project.run(&["questions"]).data()["items"].as_array().unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            match delay {
                Some(delay) => tokio::time::sleep(Duration::from_millis(delay)).await,
                None => {
                    while !stage.has_conversation() {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                }
            }
        };
        tokio::select! {
            _ = stage.start() => {}
            () = recorded => {}
        }
        stage.assert_nothing_runs().await;
        let items = stage.project.run(&["questions"]).data()["items"].clone();
        assert_eq!(items.as_array().unwrap().len(), 1);
        let id = items[0]["question_id"].as_str().unwrap().to_owned();
        stage.answer(&id, "SQLite");
        let resume = stage.resume("r2", &id).await;
        if !stage.has_conversation() {
            // A run begins another one then, and tells it everything:
            // `a_conversation_that_is_gone_is_begun_anew_and_told_everything_with_the_answer_once`.
            assert!(delay.is_some());
            let refused = stage.driver.run(resume, stage.host.clone()).await;
            assert!(matches!(refused, Err(EngineError::ConversationGone { .. })), "delay {delay:?}");
            assert_eq!(stage.model.main().len(), 1, "delay {delay:?}: nothing is said in its place");
            continue;
        }
        let done = stage.run(resume).await;
        assert_final(&done);
        assert!(done.delivered, "delay {delay:?}");
        assert_eq!(told(&stage, "SQLite"), 1, "delay {delay:?}: {:#?}", stage.model.conversation());
    }
}

#[tokio::test]
async fn aop_gone_while_the_answer_is_delivered_delivers_it_once() {
    for delay in [100, 300, 500, 700, 900, 1100] {
        let gate = Gate::closed();
        let stage = Stage::new(
            Script::new()
                .then(ask("toolu_1", &[card("Which database?", false)]))
                .then(Reply::text(DONE).after(&gate))
                .then(Reply::text(DONE)),
        );
        let id = stage.start().await.asked.remove(0);
        stage.answer(&id, "SQLite");
        let cut_off = tokio::time::sleep(Duration::from_millis(delay));
        tokio::select! {
            report = stage.run(stage.resume("r2", &id).await) => panic!("{report:?}"),
            () = cut_off => {}
        }
        stage.assert_nothing_runs().await;
        gate.open();
        let call = Some("toolu_1".to_owned());
        let session = stage.host.session_ref();
        let held = stage.driver.holds_reply(stage.project.root().into(), session, id.clone(), call).await;
        let request = match held {
            Some(true) => stage.go_on("r3", Input::Continue("Go on.".into())),
            _ => stage.resume("r3", &id).await,
        };
        assert_final(&stage.run(request).await);
        assert_eq!(
            told(&stage, "SQLite"),
            1,
            "delay {delay}, held {held:?}: {:#?}",
            stage.model.conversation()
        );
    }
}

#[tokio::test]
async fn an_answer_given_before_the_park_is_complete_is_delivered_on_resume() {
    let stage = Stage::new(script());
    let answering = async {
        loop {
            match stage.project.run(&["questions"]).data()["items"][0]["question_id"].as_str() {
                Some(question) => return stage.answer(question, &json!({"whichdat": "SQLite"}).to_string()),
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    };
    let (parked, ()) = tokio::join!(stage.start(), answering);
    let id = only(&parked.asked).clone();
    let done = stage.run(stage.resume("r2", &id).await).await;
    assert_final(&done);
    assert_eq!(told(&stage, "SQLite"), 1);
    until("nothing is left", || !stage.project.path(".aop/runs/r2/process.json").exists());
}
