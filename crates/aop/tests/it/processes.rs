//! Several processes at the same moment.

use crate::support::{Project, question, wait};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn of_many_processes_that_answer_at_once_one_wins_and_the_others_learn_who() {
    let project = Project::with_feature();
    for round in 0..3 {
        let id = project.ask(&format!("op-{round}"));
        let names: Vec<String> = (0..8).map(|number| format!("person-{number}")).collect();
        let racing: Vec<_> = names
            .iter()
            .map(|name| {
                let answer = if name.ends_with(['0', '2', '4', '6']) { "yes" } else { "no" };
                project.spawn(&[
                    "answer",
                    "--feature-id",
                    "shop",
                    "--question-id",
                    &id,
                    "--answer",
                    answer,
                    "--answered-by",
                    name,
                ])
            })
            .collect();
        let envelopes: Vec<Value> = racing.into_iter().map(|child| wait(child).envelope()).collect();
        let winners: Vec<usize> = (0..8).filter(|number| envelopes[*number]["ok"] == true).collect();
        assert_eq!(winners.len(), 1, "{envelopes:?}");
        for (number, envelope) in envelopes.iter().enumerate().filter(|(number, _)| !winners.contains(number))
        {
            assert_eq!(envelope["error"]["code"], "question_already_answered", "{number}");
            assert_eq!(envelope["error"]["details"]["answered_by"], names[winners[0]].as_str());
            let with = if winners[0].is_multiple_of(2) { " with 'yes'; " } else { " with 'no'; " };
            assert!(envelope["error"]["message"].as_str().unwrap().contains(with), "{envelope}");
        }
    }
    project.assert_healthy();
}

#[test]
fn sixty_four_processes_with_one_operation_id_have_one_effect_and_equal_envelopes() {
    let project = Project::with_feature();
    let input = question("shop", "one-for-all").to_string();
    let args = ["tool", "call", "feature.question_create", "--role", "builder", "--input", &input];
    let racing: Vec<_> = (0..64).map(|_| project.spawn(&args)).collect();
    let outputs: BTreeSet<String> = racing.into_iter().map(|child| wait(child).stdout).collect();
    assert_eq!(outputs.len(), 1, "{outputs:?}");
    assert!(outputs.first().unwrap().starts_with(r#"{"ok":true"#));
    assert_eq!(project.run(&["questions", "--status", "all"]).data()["items"].as_array().unwrap().len(), 1);
    project.assert_healthy();
}

#[test]
fn processes_that_write_at_once_leave_no_gap_in_the_log_and_no_old_file_on_a_new_one() {
    let project = Project::with_feature();
    let racing: Vec<_> = (0..24)
        .map(|number| {
            let input =
                format!(r#"{{"feature_id":"shop","note":"note {number}","operation_id":"n-{number}"}}"#);
            project.spawn(&["tool", "call", "feature.log_append", "--role", "human", "--input", &input])
        })
        .collect();
    for child in racing {
        wait(child).data();
    }
    let log = project.run(&["log"]).data();
    let seqs: Vec<u64> =
        log["items"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=25).collect::<Vec<u64>>());
    project.assert_healthy();
}
