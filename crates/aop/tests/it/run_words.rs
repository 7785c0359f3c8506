//! `aop send` and `aop features mode` are operations like every other: done once under one name.

use crate::run_support::{Running, ask, events, heard, heard_by, plan, script, workshop};
use crate::support::Project;
use serde_json::json;

#[test]
fn a_note_that_is_sent_again_under_its_operation_is_one_note_also_when_it_has_been_read() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    project.create_feature("shop");
    let send = |args: &[&str]| project.run(&[&["send", "--feature-id", "shop"], args].concat());
    let sent = send(&["--operation-id", "s1", "Use the date picker"]);
    assert_eq!(sent.data()["operation_id"], "s1");
    assert_eq!(send(&["--operation-id", "s1", "Use the date picker"]).stdout, sent.stdout);
    for other in [
        &["Use another"][..],
        &["--role", "qa", "Use the date picker"],
        &["--from", "x", "Use the date picker"],
    ] {
        send(&[&["--operation-id", "s1"], other].concat()).refused("operation_id_reuse_mismatch", 1);
    }
    project
        .run(&["retry", "--feature-id", "shop", "--operation-id", "s1"])
        .refused("operation_id_reuse_mismatch", 1);
    let mut run = Running::start(&project, &["--exit-when-parked"]);
    let question = run.question("shop");
    assert_eq!(run.end().0, Some(3));
    assert_eq!(
        send(&["--operation-id", "s1", "Use the date picker"]).stdout,
        sent.stdout,
        "read, and waiting"
    );
    project.answer_to(&question, "no").data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    let told: usize = heard(&project).iter().map(|text| text.matches("Use the date picker").count()).sum();
    assert_eq!(told, 1, "{:#?}", heard(&project));
    let noted = events(&project, "shop", "feature.noted");
    let lines: Vec<&str> = noted.iter().filter_map(|event| event["note"].as_str()).collect();
    let line = "note for whoever is next from \"human\": Use the date picker";
    assert_eq!(lines.iter().filter(|found| **found == line).count(), 1, "{lines:?}");
    let fresh = [send(&["One"]).data(), send(&["One"]).data()].map(|data| data["operation_id"].clone());
    assert_ne!(fresh[0], fresh[1], "without an id each sending is its own");
    project.run(&["cancel", "--feature-id", "shop"]).data();
    assert_eq!(send(&["--operation-id", "s1", "Use the date picker"]).stdout, sent.stdout, "and over");
    send(&["--operation-id", "s2", "Too late"]).refused("invalid_status_transition", 1);
    project.assert_healthy();
}

#[test]
fn a_mode_is_set_once_under_its_operation_whatever_was_set_since() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    project.create_feature("shop");
    let mode = |mode: &str, operation: &str| {
        project.run(&["features", "mode", "shop", mode, "--operation-id", operation])
    };
    let first = mode("interactive", "m1");
    assert_eq!(first.data()["operation_id"], "m1");
    mode("run", "m2").data();
    mode("auto", "m3").data();
    assert_eq!(mode("interactive", "m1").stdout, first.stdout);
    mode("auto", "m1").refused("operation_id_reuse_mismatch", 1);
    assert_eq!(Running::start(&project, &[]).end().0, Some(0), "the last one holds: nobody is asked");
    assert_eq!(events(&project, "shop", "question.opened").len(), 0);
}

#[test]
fn a_feature_that_is_over_takes_no_mode_but_says_again_what_it_said() {
    let project = Project::with_feature();
    let mode = |operation| project.run(&["features", "mode", "shop", "auto", "--operation-id", operation]);
    let first = mode("m1");
    first.data();
    project.run(&["cancel", "--feature-id", "shop"]).data();
    let error = mode("m2").refused("invalid_status_transition", 1);
    assert!(error["message"].as_str().unwrap().starts_with("feature 'shop' is failed"), "{error}");
    assert_eq!(mode("m1").stdout, first.stdout);
}

#[test]
fn a_long_note_is_read_as_a_whole_and_its_log_tells_it_from_another() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    project.create_feature("shop");
    let text = format!("{}\u{20ac} the end", "long ".repeat(14_000));
    let send = |text: &str| project.run(&["send", "--feature-id", "shop", "--operation-id", "s1", text]);
    let sent = send(&text);
    assert_eq!(sent.data()["operation_id"], "s1");
    assert_eq!(send(&text).stdout, sent.stdout);
    send(&text.replace("end", "END")).refused("operation_id_reuse_mismatch", 1);
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    assert!(heard_by(&project, "planner")[0].contains("\u{20ac} the end"));
    let noted = events(&project, "shop", "feature.noted");
    assert!(noted[0]["note"].as_str().unwrap().contains(" bytes, sha256 "), "{noted:?}");
}
