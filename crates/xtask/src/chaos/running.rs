//! `aop run` killed again and again, on the scripted engine: the feature arrives all the same, and its question was
//! asked once.

use super::binary::finish;
use super::invariants;
use super::random::Random;
use super::world::{Disk, World};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// After so many starts the feature must have arrived; the last ones are not killed.
const STARTS: u64 = 12;

/// A repository of its own, a feature whose builder asks, and a run that dies at any moment.
pub(super) fn killed_run(outer: &mut World, random: &mut Random) -> Result<()> {
    let aop = outer.aop.below(&format!("workshop-{}", random.next()));
    fs::create_dir_all(aop.path(".aop/scripted"))?;
    let mut world = World::new(aop, None);
    repository(&world)?;
    let (mut asked, mut last) = (None, None);
    for start in 0..STARTS {
        let args = ["run", "--project", ".", "--exit-when-parked", "--takeover", "--no-bell"];
        let mut args = args.map(str::to_owned).to_vec();
        if start == 0 || asked.is_none() {
            args.push("shop.md".to_owned());
        }
        if start < STARTS - 4 {
            world.aop.kill_after(&args, Duration::from_micros(random.below(900_000)))?;
        } else {
            last = Some(finish(world.aop.start(&args, &[])?, &args)?);
        }
        let open = world.aop.ask(&["questions", "--project", "."])?.data()?;
        if let Some(id) = open["items"][0]["question_id"].as_str() {
            let before = asked.replace(id.to_owned());
            ensure!(before.is_none_or(|before| before == id), "the same step asked twice: {open}");
            if random.once_in(2) {
                let answer = world.answer(random, "shop", id);
                world.send(answer, &[], Disk::Roomy)?;
            }
        }
    }
    let all = world.aop.ask(&["questions", "--project", ".", "--status", "all"])?.data()?;
    let open = all["items"].as_array().context("questions")?;
    ensure!(open.len() == 1, "one step asks one question: {all}; the last run said {last:?}");
    if let Some(id) = open[0]["question_id"].as_str().filter(|_| open[0]["status"] == "open") {
        let answer = world.answer(random, "shop", id);
        world.send(answer, &[], Disk::Roomy)?;
        let args = ["run", "--project", ".", "--exit-when-parked", "--takeover", "--no-bell"]
            .map(str::to_owned)
            .to_vec();
        finish(world.aop.start(&args, &[])?, &args)?;
    }
    let features = world.aop.ask(&["features", "list", "--project", "."])?.data()?;
    ensure!(features["items"][0]["status"] == "ready_to_merge", "it did not arrive: {features}");
    let delivered = fs::read_to_string(world.aop.path(".aop/scripted/deliveries.jsonl"))?;
    let times = delivered.lines().count();
    ensure!(times == 1, "an_answer_is_delivered_once: the answer was delivered {times} times: {delivered}");
    for (name, check) in invariants::ALL {
        check(&mut world, random).context(*name)?;
    }
    fs::remove_dir_all(&world.aop.folder)?;
    Ok(())
}

fn repository(world: &World) -> Result<()> {
    world.aop.ask(&["init", "--project", "."])?.data()?;
    fs::write(world.aop.path("aop.yaml"), "engines: { default: scripted }\n")?;
    fs::write(world.aop.path("shop.md"), "# Shop\n\nA shop.\n")?;
    let roles = json!({"roles": {
        "planner": [{"finish": {"summary": "a plan", "steps": ["build it"]}}],
        "builder": [{"ask": {"prompt": "Go on?", "choices": ["yes", "no"]}},
            {"write": {"path": "work.txt", "text": "work\n"}},
            {"finish": {"summary": "built", "files_changed": ["work.txt"]}}],
        "qa": [{"finish": {"verdict": "pass", "summary": "good"}}]}});
    fs::write(world.aop.path(".aop/scripted/shop.json"), roles.to_string())?;
    let identity = ["-c", "user.name=Chaos", "-c", "user.email=chaos@localhost"];
    for args in [
        &["init", "--quiet", "--initial-branch", "main"][..],
        &["add", "-A"],
        &["commit", "--quiet", "-m", "First"],
    ] {
        let mut git = Command::new("git");
        git.args(identity).args(args).current_dir(&world.aop.folder).env("HOME", &world.aop.folder);
        let output = git.stdin(Stdio::null()).output().context("git does not start")?;
        ensure!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
