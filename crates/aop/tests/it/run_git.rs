//! What a run does with the repository: in a copy of a project, after a move, and with what agents and people do there.

use crate::run_support::{Running, ask, built, events, git, pass, plan, script, workshop};
use crate::support::{Project, finish};
use crate::terminal::screen;
use serde_json::{Value, json};

fn spec(project: &Project, name: &str) -> String {
    let path = project.path(&format!("{name}.md"));
    std::fs::write(&path, format!("# The {name}\n")).unwrap();
    path.display().to_string()
}

/// A project whose feature `shop` waits for an answer to its planner; the question.
fn parked() -> (Project, Value) {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    let mut run = Running::start(&project, &["--exit-when-parked", &spec(&project, "shop")]);
    let question = run.question("shop");
    assert_eq!(run.end().0, Some(3));
    (project, question)
}

/// `cp -a`, as a person would.
fn copied(project: &Project) -> Project {
    let copy = project.beside();
    let mut command = std::process::Command::new("cp");
    let ran = finish(command.arg("-a").arg(project.path(".")).arg(copy.root()));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    copy
}

/// The same project in another place.
fn moved(project: &Project) -> Project {
    let place = project.beside();
    for entry in std::fs::read_dir(project.root()).unwrap().flatten() {
        std::fs::rename(entry.path(), place.root().join(entry.file_name())).unwrap();
    }
    place
}

pub(crate) fn head(project: &Project, branch: &str) -> String {
    git(project, &["rev-parse", branch])
}

#[test]
fn a_copied_project_works_in_its_own_repository_and_leaves_the_original_alone() {
    let (project, question) = parked();
    let (link, before) = (project.path(".aop/worktrees/shop/.git"), head(&project, "aop/shop"));
    let was = std::fs::read_to_string(&link).unwrap();
    let copy = copied(&project);
    copy.answer_to(&question, "yes").data();
    assert_eq!(Running::start(&copy, &[]).end().0, Some(0));
    assert_ne!(head(&copy, "aop/shop"), before, "the copy has built it");
    assert_eq!(head(&project, "aop/shop"), before);
    assert_eq!(std::fs::read_to_string(&link).unwrap(), was);
    assert!(!project.path(".aop/worktrees/shop/work.txt").exists());
    project.answer_to(&question, "yes").data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    for project in [project, copy] {
        assert_eq!(project.run(&["merge", "--feature-id", "shop"]).data()["status"], "merged");
        assert!(project.path("work.txt").exists() && !project.path(".aop/worktrees/shop").exists());
    }
}

#[test]
fn a_moved_project_goes_on_and_a_new_feature_costs_the_others_nothing() {
    let (project, question) = parked();
    std::fs::write(project.path(".aop/worktrees/shop/begun.txt"), "not committed\n").unwrap();
    let place = moved(&project);
    place.assert_healthy();
    // A worktree that is made has git forget those that it takes for gone.
    script(&place, "other", &json!({}));
    assert_eq!(Running::start(&place, &["--exit-when-parked", &spec(&place, "other")]).end().0, Some(3));
    place.answer_to(&question, "yes").data();
    assert_eq!(Running::start(&place, &[]).end().0, Some(0));
    for (id, file) in [("shop", "begun.txt"), ("other", "work.txt")] {
        assert_eq!(git(&place, &["cat-file", "-t", &format!("aop/{id}:{file}")]), "blob");
    }
    assert_eq!(place.run(&["merge", "--feature-id", "shop"]).data()["status"], "merged");
}

#[test]
fn doctor_names_a_worktree_that_needs_a_person() {
    let (project, _) = parked();
    std::fs::remove_file(project.path(".aop/worktrees/shop/.git")).unwrap();
    git(&project, &["worktree", "prune"]);
    let doctor = project.run(&["doctor"]).data();
    let found = doctor["checks"].as_array().unwrap().iter().find(|check| check["name"] == "git").unwrap();
    assert_eq!(found["warning"], true, "{found}");
    let told = found["message"].as_str().unwrap();
    assert!(told.contains(".aop/worktrees/shop") && told.contains("aop retry --feature-id shop"), "{told}");
}

#[test]
fn a_run_in_a_copy_leaves_the_run_of_the_original_alone() {
    let project = workshop("");
    script(&project, "shop", &json!({"planner": [ask("Which?"), plan()]}));
    let mut run = Running::start(&project, &[&spec(&project, "shop")]);
    let question = run.question("shop");
    let tell = |signal: &str| {
        let told =
            std::process::Command::new("kill").args([signal, &run.pid().to_string()]).status().unwrap();
        assert!(told.success());
    };
    // Nothing is written while it is copied.
    tell("-STOP");
    let (copy, taken) = (copied(&project), copied(&project));
    tell("-CONT");
    let is_at_work = |project: &Project| project.run(&["status"]).data()["at_work"] == true;
    assert!(is_at_work(&project) && !is_at_work(&copy), "the run is the original's");
    assert_eq!(Running::start(&copy, &["--exit-when-parked"]).end().0, Some(3));
    assert_eq!(Running::start(&taken, &["--exit-when-parked", "--takeover"]).end().0, Some(3));
    project.answer_to(&question, "yes").data();
    assert_eq!(run.end().0, Some(0), "the original's run was stopped");
}

/// The builder's work, twice if need be, and a question of qa in between.
fn asks_in_qa() -> Value {
    let write = json!({"write": {"path": "work.txt", "text": "work\n"}});
    json!({"builder": [write, built(), write, built()], "qa": [ask("Good?"), pass(), pass()]})
}

/// How often the log says that work is not there.
fn missed(project: &Project) -> usize {
    let notes = events(project, "shop", "feature.noted");
    let is_told =
        |note: &&Value| note["note"].as_str().unwrap().contains("is not on the branch aop/shop here");
    notes.iter().filter(is_told).count()
}

/// The work is not there: it is built again, and what is merged has it.
fn assert_built_again(project: &Project, question: &Value) {
    project.answer_to(question, "yes").data();
    assert_eq!(Running::start(project, &[]).end().0, Some(0));
    assert_eq!(missed(project), 1);
    assert_eq!(project.run(&["merge", "--feature-id", "shop"]).data()["status"], "merged");
    assert_eq!(std::fs::read_to_string(project.path("work.txt")).unwrap(), "work\n");
}

fn parked_in_qa() -> (Project, Value) {
    let project = workshop("");
    script(&project, "shop", &asks_in_qa());
    let mut run = Running::start(&project, &["--exit-when-parked", &spec(&project, "shop")]);
    let question = run.question("shop");
    assert_eq!(run.end().0, Some(3));
    (project, question)
}

#[test]
fn qa_does_not_judge_work_that_is_not_in_the_repository() {
    let (project, question) = parked_in_qa();
    git(&project, &["worktree", "remove", "--force", ".aop/worktrees/shop"]);
    git(&project, &["branch", "--quiet", "-D", "aop/shop"]);
    assert_built_again(&project, &question);
}

#[test]
fn a_history_that_was_written_anew_is_no_missing_work() {
    let (project, question) = parked_in_qa();
    git(&project, &["-C", ".aop/worktrees/shop", "commit", "--quiet", "--amend", "-m", "Said better"]);
    project.answer_to(&question, "yes").data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    assert_eq!(missed(&project), 0);
}

#[test]
fn an_import_without_its_branches_builds_again_and_one_with_them_goes_on() {
    for with_branches in [false, true] {
        let (project, question) = parked_in_qa();
        project.run(&["export", "--output", "out.jsonl"]).data();
        let clone = project.beside();
        git(&clone, &["clone", "--quiet", project.root().to_str().unwrap(), "."]);
        git(&clone, &["config", "user.name", "Tester"]);
        git(&clone, &["config", "user.email", "tester@localhost"]);
        clone.run(&["init"]).data();
        clone.run(&["import", project.path("out.jsonl").to_str().unwrap()]).data();
        std::fs::create_dir_all(clone.path(".aop/scripted")).unwrap();
        // Sessions stay where they began.
        script(&clone, "shop", &json!({}));
        if !with_branches {
            assert_built_again(&clone, &question);
            continue;
        }
        git(&clone, &["fetch", "--quiet", "origin", "refs/heads/aop/*:refs/heads/aop/*"]);
        clone.answer_to(&question, "yes").data();
        assert_eq!(Running::start(&clone, &[]).end().0, Some(0));
        assert_eq!(missed(&clone), 0);
        assert_eq!(head(&clone, "aop/shop"), head(&project, "aop/shop"), "nothing was built again");
    }
}

#[test]
fn a_branch_that_was_there_before_its_feature_is_not_built_upon() {
    let project = workshop("");
    git(&project, &["switch", "--quiet", "-c", "aop/shop"]);
    git(&project, &["commit", "--quiet", "--allow-empty", "-m", "Of somebody else"]);
    git(&project, &["switch", "--quiet", "main"]);
    script(&project, "shop", &json!({}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(3));
    let before = head(&project, "aop/shop");
    let blocked = || {
        let feature = project.feature("shop");
        assert_eq!(feature["status"], "blocked");
        feature["status_reason"].as_str().unwrap().to_owned()
    };
    assert!(blocked().contains("git branch -m aop/shop aop/shop-old"), "{}", blocked());
    // To try again is not enough.
    project.run(&["retry", "--feature-id", "shop"]).data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(3));
    assert!(blocked().contains("nobody has worked on feature 'shop' yet"), "{}", blocked());
    git(&project, &["branch", "-m", "aop/shop", "aop/shop-old"]);
    project.run(&["retry", "--feature-id", "shop"]).data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    assert_eq!(head(&project, "aop/shop-old"), before);
    assert_eq!(git(&project, &["merge-base", "aop/shop", "aop/shop-old"]), head(&project, "main"));
}

#[test]
fn a_branch_that_is_in_the_way_of_those_of_all_features_is_named_with_the_way_out() {
    let project = workshop("");
    git(&project, &["branch", "aop"]);
    script(&project, "shop", &json!({}));
    assert_eq!(Running::start(&project, &[&spec(&project, "shop")]).end().0, Some(3));
    let reason = project.feature("shop")["status_reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("git makes no aop/shop beside it"), "{reason}");
    let commands: Vec<&str> = reason.split('`').skip(1).step_by(2).collect();
    assert_eq!(commands, ["git branch -m aop aop-old", "aop retry --feature-id shop"]);
    git(&project, &["branch", "-m", "aop", "aop-old"]);
    project.run(&["retry", "--feature-id", "shop"]).data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
}

#[test]
fn an_agent_that_left_its_branch_can_still_be_merged() {
    let (project, question) = parked();
    git(&project, &["-C", ".aop/worktrees/shop", "switch", "--quiet", "-c", "other"]);
    project.answer_to(&question, "yes").data();
    assert_eq!(Running::start(&project, &[]).end().0, Some(0));
    assert_eq!(project.run(&["merge", "--feature-id", "shop"]).data()["status"], "merged");
    assert!(project.path("work.txt").exists());
}

#[test]
fn a_feature_branches_off_the_branch_of_its_enrolment_whatever_is_checked_out_when_its_turn_comes() {
    // A person who goes on elsewhere while the first is worked on, and the second waits.
    let elsewhere =
        "cd ../../.. && git switch -c experiment && touch wip.txt && git add wip.txt && git commit -m wip";
    let project =
        workshop(&format!("checks: {{ fast: ['test \"$AOP_FEATURE\" = two || {{ {elsewhere}; }}'] }}\n"));
    script(&project, "default", &json!({}));
    let specs = [spec(&project, "one"), spec(&project, "two")];
    let run = Running::start(&project, &["--max-parallel", "1", &specs[0], &specs[1]]);
    assert_eq!(run.end().0, Some(0));
    assert_eq!(git(&project, &["branch", "--show-current"]), "experiment");
    for id in ["one", "two"] {
        let base = git(&project, &["merge-base", "experiment", &format!("aop/{id}")]);
        assert_eq!(base, head(&project, "main"), "{id}");
    }
}

#[test]
fn a_filter_of_the_users_finds_what_it_finds_by_hand() {
    let project = workshop("");
    script(&project, "shop", &json!({}));
    std::fs::write(project.path(".gitattributes"), "readme.txt filter=key\n").unwrap();
    git(&project, &["add", ".gitattributes"]);
    git(&project, &["commit", "--quiet", "-m", "A filter"]);
    let smudge = "sh -c 'test -n \"$SSH_AUTH_SOCK\" && test -z \"$AOP_STORE$OPENAI_API_KEY\" && cat'";
    for (name, value) in [("smudge", smudge), ("clean", "cat"), ("required", "true")] {
        git(&project, &["config", &format!("filter.key.{name}"), value]);
    }
    let around =
        [("SSH_AUTH_SOCK", "/s"), ("OPENAI_API_KEY", "k"), ("AOP_STORE", "sqlite"), ("GIT_DIR", "/x")];
    let run = Running::start_with(&project, &[&spec(&project, "shop")], &around);
    assert_eq!(run.end().0, Some(0), "{}", project.feature("shop"));
}

/// A project with features that can be merged, each with a file of its own name.
fn ready(features: &[&str]) -> Project {
    let project = workshop("");
    let mut specs = Vec::new();
    for id in features {
        let write = json!({"write": {"path": format!("{id}.txt"), "text": "work\n"}});
        script(&project, id, &json!({"builder": [write, built()]}));
        specs.push(spec(&project, id));
    }
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    assert_eq!(Running::start(&project, &specs).end().0, Some(0));
    project
}

#[test]
fn a_check_that_makes_commits_does_not_pass_and_one_that_has_made_its_last_does() {
    let commit = |when: &str| {
        let all = format!("{when}git commit --quiet --allow-empty -m Sneaky");
        let project = workshop(&format!("run: {{ repair_rounds: 1 }}\nchecks: {{ full: ['{all}'] }}\n"));
        script(&project, "shop", &json!({"builder": [built(), built()], "qa": [pass(), pass()]}));
        let code = Running::start(&project, &[&spec(&project, "shop")]).end().0;
        (project, code)
    };
    let (project, code) = commit("");
    assert_eq!((code, &project.feature("shop")["status"]), (Some(3), &json!("blocked")));
    let checks = events(&project, "shop", "check.ended");
    let failed = checks.iter().find(|check| check["name"] == "full").unwrap();
    let note = failed["note"].as_str().unwrap();
    assert!(note.contains("moved the branch aop/shop away from") && note.contains("no commits"), "{note}");
    let (project, code) = commit("git log | grep Sneaky || ");
    assert_eq!(code, Some(0));
    assert_eq!(project.run(&["merge", "--feature-id", "shop"]).data()["status"], "merged");
}

#[test]
fn merges_at_the_same_time_are_all_on_the_branch() {
    let ids = ["one", "two", "three", "four"];
    let project = ready(&ids);
    let merges: Vec<_> = ids.iter().map(|id| project.spawn(&["merge", "--feature-id", id])).collect();
    for merge in merges {
        assert_eq!(crate::support::wait(merge).data()["status"], "merged");
    }
    for id in ids {
        assert!(project.path(&format!("{id}.txt")).exists(), "{id} is merged and not there");
        let recorded = project.run(&["merge", "--feature-id", id]).data()["merge_commit"].clone();
        git(&project, &["merge-base", "--is-ancestor", recorded.as_str().unwrap(), "main"]);
    }
    assert_eq!(git(&project, &["status", "--porcelain", "--untracked-files=no"]), "");
    assert_eq!(git(&project, &["for-each-ref", "refs/aop"]), "", "nothing is left of it");
}

/// A merge that was killed when the store had it and the branch did not.
fn interrupted() -> Project {
    let project = ready(&["shop"]);
    let merge = ["merge", "--feature-id", "shop", "--operation-id", "m1"];
    assert_eq!(project.run_with(&merge, &[("AOP_CRASH_AT", "merge_committed")]).code, None);
    assert!(!project.path("shop.txt").exists());
    project
}

fn commit_file(project: &Project, name: &str) {
    std::fs::write(project.path(name), "mine\n").unwrap();
    git(project, &["add", name]);
    git(project, &["commit", "--quiet", "-m", "My own"]);
}

#[test]
fn an_interrupted_merge_is_finished_on_a_branch_that_has_gone_on_and_after_gc() {
    let project = interrupted();
    commit_file(&project, "mine.txt");
    git(&project, &["reflog", "expire", "--expire=now", "--all"]);
    git(&project, &["gc", "--quiet", "--prune=now"]);
    let merge = ["merge", "--feature-id", "shop", "--operation-id", "m1"];
    let first = project.run(&merge);
    let recorded = first.data()["merge_commit"].as_str().unwrap().to_owned();
    git(&project, &["merge-base", "--is-ancestor", &recorded, "main"]);
    for file in ["shop.txt", "mine.txt"] {
        assert!(project.path(file).exists(), "{file}");
    }
    let (is, again) = (head(&project, "main"), project.run(&merge));
    assert_eq!(
        (again.stdout, head(&project, "main")),
        (first.stdout, is),
        "the same bytes, and nothing moved"
    );
    assert_eq!(git(&project, &["for-each-ref", "refs/aop"]), "");
}

#[test]
fn a_tag_with_the_name_of_the_branch_changes_no_merge_and_does_not_keep_one_from_being_finished() {
    let project = interrupted();
    git(&project, &["tag", "main"]);
    let merged = project.run(&["merge", "--feature-id", "shop", "--operation-id", "m1"]).data();
    assert_eq!(merged["merge_commit"], git(&project, &["rev-parse", "HEAD"]));
    let project = ready(&["shop"]);
    git(&project, &["tag", "main"]);
    assert_eq!(project.run(&["merge", "--feature-id", "shop"]).data()["into"], "main");
}

/// What a hint says first, word for word but for `REMOTE`.
fn typed(project: &Project, hint: &Value, remote: &Project) -> crate::support::Run {
    let line = hint.as_str().unwrap().split('`').nth(1).unwrap();
    let line = line.replace("REMOTE", remote.root().to_str().unwrap());
    finish(std::process::Command::new("sh").args(["-c", &line]).current_dir(project.root()))
}

#[test]
fn what_a_conflict_says_to_type_leads_to_the_branch_also_beside_a_tag_of_its_name() {
    let project = ready(&["shop"]);
    git(&project, &["tag", "main"]);
    commit_file(&project, "shop.txt");
    let refused = project.run(&["merge", "--feature-id", "shop"]).refused("version_conflict", 1);
    let ran = typed(&project, &refused["details"]["hint"], &project);
    assert_eq!(ran.code, Some(1), "there is a conflict, and git says so: {ran:?}");
    let conflicts = ["-C", ".aop/worktrees/shop", "diff", "--name-only", "--diff-filter=U"];
    assert_eq!(git(&project, &conflicts), "shop.txt");
}

#[test]
fn what_brings_a_branch_here_is_the_branch_also_beside_a_tag_of_its_name() {
    let project = interrupted();
    let remote = copied(&project);
    git(&remote, &["tag", "main"]);
    git(&remote, &["merge", "--quiet", "refs/aop/merge/shop"]);
    git(&project, &["worktree", "remove", "--force", ".aop/worktrees/shop"]);
    git(&project, &["branch", "--quiet", "-D", "aop/shop"]);
    git(&project, &["update-ref", "-d", "refs/aop/merge/shop"]);
    git(&project, &["gc", "--quiet", "--prune=now"]);
    let refused = project.run(&["merge", "--feature-id", "shop"]).refused("version_conflict", 1);
    let ran = typed(&project, &refused["details"]["hint"], &remote);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let merged = project.run(&["merge", "--feature-id", "shop"]).data();
    assert_eq!(merged["merge_commit"], head(&project, "main"));
}

#[test]
fn what_shows_a_strange_branch_shows_the_branch_also_beside_a_tag_of_its_name() {
    let project = workshop("");
    git(&project, &["tag", "aop/shop"]);
    git(&project, &["switch", "--quiet", "-c", "aop/shop"]);
    commit_file(&project, "strange.txt");
    git(&project, &["switch", "--quiet", "main"]);
    project.create_feature("shop");
    assert_eq!(Running::start(&project, &["--exit-when-parked"]).end().0, Some(3));
    let reason = project.feature("shop")["status_reason"].clone();
    let ran = typed(&project, &reason, &project);
    assert!(ran.stdout.contains("commit "), "{reason}: {ran:?}");
}

#[test]
fn what_removes_the_worktree_of_a_cancelled_feature_is_said_and_leaves_what_is_not_committed() {
    let (project, _) = parked();
    let said = screen(&project, "cancel --feature-id shop");
    let command = said.lines().last().unwrap().trim().to_owned();
    let typed =
        || finish(std::process::Command::new("sh").args(["-c", &command]).current_dir(project.root()));
    std::fs::write(project.path(".aop/worktrees/shop/new.txt"), "new").unwrap();
    assert_ne!(typed().code, Some(0), "{said}");
    std::fs::remove_file(project.path(".aop/worktrees/shop/new.txt")).unwrap();
    assert_eq!(typed().code, Some(0), "{said}");
    assert!(!project.path(".aop/worktrees/shop").exists());
    head(&project, "aop/shop");
}

#[test]
fn a_merge_into_a_name_that_an_earlier_version_wrote_for_a_branch_beside_a_tag_is_finished_on_the_branch() {
    let project = ready(&["shop"]);
    // That is what it wrote; here it is a branch, as long as there is one that is called so.
    git(&project, &["switch", "--quiet", "-c", "heads/main"]);
    let merge = ["merge", "--feature-id", "shop", "--operation-id", "m1"];
    assert_eq!(project.run_with(&merge, &[("AOP_CRASH_AT", "merge_committed")]).code, None);
    git(&project, &["switch", "--quiet", "main"]);
    project.run(&merge).refused("version_conflict", 1);
    git(&project, &["branch", "--quiet", "-D", "heads/main"]);
    assert_eq!(project.run(&merge).data()["merge_commit"], head(&project, "main"));
    assert_eq!(git(&project, &["for-each-ref", "refs/aop"]), "");
}

#[test]
fn an_interrupted_merge_whose_commit_is_lost_is_made_again_from_the_work() {
    let project = interrupted();
    git(&project, &["update-ref", "-d", "refs/aop/merge/shop"]);
    git(&project, &["gc", "--quiet", "--prune=now"]);
    let merge = ["merge", "--feature-id", "shop", "--operation-id", "m1"];
    let first = project.run(&merge);
    assert_eq!(first.data()["status"], "merged");
    assert!(project.path("shop.txt").exists());
    let is = head(&project, "main");
    assert_eq!((project.run(&merge).stdout, head(&project, "main")), (first.stdout, is));
}

#[test]
fn an_interrupted_merge_that_conflicts_by_now_changes_nothing_and_says_how_to_go_on() {
    let project = interrupted();
    commit_file(&project, "shop.txt");
    let before = head(&project, "main");
    let refused = project.run(&["merge", "--feature-id", "shop"]).refused("version_conflict", 1);
    assert_eq!(refused["details"]["files"], json!(["shop.txt"]));
    assert_eq!(
        (head(&project, "main"), git(&project, &["status", "--porcelain", "--untracked-files=no"])),
        (before, String::new())
    );
    let hint = refused["details"]["hint"].as_str().unwrap();
    let by_hand: Vec<&str> = hint.split('`').nth(1).unwrap().split(' ').skip(1).collect();
    git(&project, &[&by_hand[..], &["--quiet", "-X", "ours"]].concat());
    assert_eq!(project.run(&["merge", "--feature-id", "shop"]).data()["status"], "merged");
}

#[test]
fn what_a_cancelled_feature_leaves_behind_goes_as_the_page_on_running_says() {
    let (project, _) = parked();
    std::fs::write(project.path(".aop/worktrees/shop/readme.txt"), "changed").unwrap();
    std::fs::write(project.path(".aop/worktrees/shop/new.txt"), "new").unwrap();
    project.run(&["cancel", "--feature-id", "shop"]).data();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/running.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, item) = page.split_once("- `.aop/worktrees/<id>` of a feature that was cancelled").unwrap();
    let (item, _) = item.split_once("\n- ").unwrap();
    let commands: Vec<&str> = item.split('`').skip(1).step_by(2).collect();
    assert_eq!(commands.len(), 4, "{commands:?}");
    for command in commands {
        let command = command.replace("<id>", "shop");
        let mut shell = std::process::Command::new("sh");
        let ran = finish(shell.args(["-c", &command]).current_dir(project.root()));
        assert_eq!(ran.code, Some(0), "{command}: {ran:?}");
    }
    let left: Vec<_> = std::fs::read_dir(project.path(".aop/worktrees")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(git(&project, &["branch", "--list", "aop/*"]), "");
    project.assert_healthy();
}
