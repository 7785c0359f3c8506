//! `aop replay`: the log alone rebuilds the state, up to any point.

use crate::support::Project;

#[test]
fn a_replay_of_the_whole_log_is_what_the_store_holds() {
    let project = Project::with_feature();
    let question = project.ask("op-1");
    project.answer(&question, "yes").data();
    let replay = project.run(&["replay"]).data();
    assert_eq!(replay["matches_store"], true);
    assert_eq!(replay["features"][0]["status"], project.feature("shop")["status"]);
    assert_eq!(replay["questions"][0]["answer"], "yes");
    assert_eq!(replay["digest"], project.run(&["replay"]).data()["digest"], "the same log, the same digest");
}

#[test]
fn a_replay_stops_where_it_is_told_and_shows_the_state_of_that_moment() {
    let project = Project::with_feature();
    let question = project.ask("op-1");
    let asked = project.run(&["replay"]).data();
    project.answer(&question, "yes").data();
    let to = asked["seq"].to_string();
    let then = project.run(&["replay", "--to", &to]).data();
    assert_eq!(then["digest"], asked["digest"]);
    assert_eq!(then["features"][0]["status"], "awaiting_input");
    assert_eq!(then["questions"][0]["status"], "open");
    assert_eq!(then["matches_store"], serde_json::Value::Null, "an earlier moment is compared with nothing");
    let nothing = project.run(&["replay", "--to", "0"]).data();
    assert_eq!(nothing["features"], serde_json::json!([]));
}

#[test]
fn the_difference_between_two_points_names_what_changed_with_both_sides() {
    let project = Project::with_feature();
    project.create_feature("other");
    let question = project.ask("op-1");
    let before = project.run(&["replay"]).data()["seq"].to_string();
    project.answer(&question, "no").data();
    let diff = project.run(&["replay", "--diff", &before]).data();
    assert_eq!(diff["features"].as_array().unwrap().len(), 1, "{diff}");
    assert_eq!(diff["features"][0]["before"]["status"], "awaiting_input");
    assert_eq!(diff["features"][0]["after"]["status"], "planning");
    assert_eq!(diff["questions"][0]["before"]["status"], "open");
    assert_eq!(diff["questions"][0]["after"]["answer"], "no");
    let other = project.run(&["replay", "--diff", &before, "--feature-id", "other"]).data();
    assert_eq!(other["features"], serde_json::json!([]));
    project.run(&["replay", "--diff", "5", "--to", "4"]).refused("invalid_argument", 2);
}

#[test]
fn a_replay_of_what_is_not_there_names_what_is() {
    let project = Project::with_feature();
    project.run(&["replay", "--feature-id", "nope"]).refused("feature_not_found", 1);
    let last = project.run(&["replay"]).data()["seq"].as_u64().unwrap();
    for option in ["--to", "--diff"] {
        project.run(&["replay", option, &last.to_string()]).data();
        let error = project.run(&["replay", option, "99"]).refused("invalid_argument", 2);
        let message = format!("{option} 99 is past the last event ({last})");
        assert_eq!(error["message"], message.as_str());
    }
}
