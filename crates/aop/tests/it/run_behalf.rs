//! Programs that are an agent's work and that `aop` starts: checks, and the hooks and filters of git.

use crate::run_support::{Running, ask, built, git, script, workshop};
use crate::support::{Project, binary};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

fn spec(project: &Project, name: &str) -> String {
    let path = project.path(&format!("{name}.md"));
    std::fs::write(&path, format!("# The {name}\n")).unwrap();
    path.display().to_string()
}

/// What a builder may write: it tries to be a person, wherever it is started.
fn act(question: &str) -> String {
    let aop = binary();
    format!(
        "{aop} answer --feature-id other --question-id {question} --answer yes
         echo \"$1 $?\"
         {aop} token create --kind operator
         echo \"$1 $?\"
         {aop} tool call feature.get --role human --input '{{\"feature_id\": \"shop\"}}'
         echo \"$1 $?\"
         echo \"$1 $AOP_AGENT\""
    )
}

#[test]
fn what_an_agent_has_written_acts_as_an_agent_also_in_checks_and_in_the_hooks_and_filters_of_git() {
    let project = workshop("checks: { fast: ['sh ./act.sh check >> ../../../tried'] }\n");
    script(&project, "other", &json!({"planner": [ask("May it be deleted?")]}));
    let mut run = Running::start(&project, &["--exit-when-parked", &spec(&project, "other")]);
    let question = run.question("other")["question_id"].as_str().unwrap().to_owned();
    assert_eq!(run.end().0, Some(3));

    // Hooks and a filter of the project's own that start what is in the repository, as many projects have them.
    let tried = project.path("tried");
    std::fs::create_dir(project.path("hooks")).unwrap();
    for hook in ["post-commit", "post-merge"] {
        let path = project.path(&format!("hooks/{hook}"));
        std::fs::write(&path, format!("#!/bin/sh\nsh ./act.sh {hook} >> {}\n", tried.display())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::write(project.path(".gitattributes"), "work.txt filter=act\n").unwrap();
    git(&project, &["add", "hooks", ".gitattributes"]);
    git(&project, &["commit", "--quiet", "-m", "Hooks"]);
    let filter = format!("sh -c 'test ! -e act.sh || sh ./act.sh filter >> {}; cat'", tried.display());
    git(&project, &["config", "filter.act.clean", &filter]);
    git(&project, &["config", "core.hooksPath", "hooks"]);

    let builder = json!([
        {"write": {"path": "act.sh", "text": act(&question)}},
        {"write": {"path": "work.txt", "text": "work\n"}},
        built()
    ]);
    script(&project, "shop", &json!({"builder": builder}));
    assert_eq!(Running::start(&project, &["--exit-when-parked", &spec(&project, "shop")]).end().0, Some(3));
    assert_eq!(project.feature("shop")["status"], "ready_to_merge");
    assert_eq!(project.run(&["merge", "--feature-id", "shop"]).data()["status"], "merged");

    let tried = std::fs::read_to_string(tried).unwrap();
    for (by, claim) in
        [("check", "check:fast"), ("post-commit", "git"), ("post-merge", "git"), ("filter", "git")]
    {
        let told: Vec<&str> =
            tried.lines().filter_map(|line| line.strip_prefix(by)?.strip_prefix(' ')).take(4).collect();
        assert_eq!(told[..3], ["1", "1", "0"], "{by} did what only a person may: {tried}");
        let agent: Value = serde_json::from_str(told[3]).unwrap();
        assert_eq!(agent, json!({"feature_id": "shop", "role": "builder", "claim": claim}), "{by}");
    }
    assert_eq!(project.feature("other")["status"], "awaiting_input");
}
