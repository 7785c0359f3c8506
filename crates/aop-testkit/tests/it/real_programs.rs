//! Each real program has one turn with its fake model. What every other test of an engine relies on.

use aop_testkit::{CleanHome, Engines, FakeModel, Part, Program, Reply, Script, Wire};
use serde_json::json;
use std::process::Command;
use tempfile::TempDir;

const PROMPT: &str = "Say something about turtles.";
const WORDS: &str = "They carry their house.";

struct Lab {
    _folder: TempDir,
    model: FakeModel,
    command: Command,
}

fn lab(program: Program, wire: Wire, script: Script) -> Lab {
    let engines = Engines::required();
    let folder = TempDir::with_prefix("aop-kit-").unwrap();
    let model = FakeModel::start(wire, script).unwrap();
    let home = CleanHome::new(&folder.path().join("home"), &engines, &model).unwrap();
    let project = folder.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let command = home.command(&engines.program(program), &project);
    Lab { _folder: folder, model, command }
}

/// One turn: the program printed the model's words, and the model got the prompt once, in one request.
fn one_turn(mut lab: Lab) {
    let output = lab.command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains(WORDS), "{output:?}");
    let main = lab.model.main();
    assert_eq!(main.len(), 1, "{:#?}", lab.model.received());
    let told: Vec<String> =
        main[0].user_messages().into_iter().filter(|text| text.contains(PROMPT)).collect();
    assert_eq!(told.len(), 1, "{:#?}", main[0].body);
    assert!(!main[0].tools().is_empty());
    assert_eq!(lab.model.unscripted(), 0);
}

#[test]
fn claude_has_a_turn_with_its_fake_model() {
    let mut lab = lab(Program::Claude, Wire::Anthropic, Script::new().then(Reply::text(WORDS)));
    lab.command.args(["-p", "--output-format", "stream-json", "--verbose", PROMPT]);
    one_turn(lab);
}

#[test]
fn codex_has_a_turn_with_its_fake_model() {
    let mut lab = lab(Program::Codex, Wire::OpenAi, Script::new().then(Reply::text(WORDS)));
    lab.command.args(["exec", "--json", "--skip-git-repo-check", PROMPT]);
    one_turn(lab);
}

#[test]
fn gemini_has_a_turn_with_its_fake_model() {
    let mut lab = lab(Program::Gemini, Wire::Gemini, Script::new().then(Reply::text(WORDS)));
    lab.command.args(["--skip-trust", "-m", "gemini-2.5-flash", "-o", "stream-json", "-p", PROMPT]);
    one_turn(lab);
}

#[test]
fn the_programs_of_claude_codex_and_gemini_are_the_pinned_versions() {
    let engines = Engines::required();
    for program in [Program::Claude, Program::Codex, Program::Gemini] {
        let home = TempDir::with_prefix("aop-kit-").unwrap();
        let mut command = Command::new(engines.program(program));
        command.env_clear().env("PATH", engines.search_path()).env("HOME", home.path());
        let output = command.arg("--version").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(&program.version()), "{program:?} says {said}");
    }
}

/// The sub-agent's request came, and the step after the call still went to the main agent.
fn a_sub_agent_uses_up_no_step(mut lab: Lab) {
    let output = lab.command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains(WORDS), "{output:?}");
    assert!(lab.model.received().iter().any(|request| request.part == Part::SubAgent));
    assert_eq!(lab.model.main().len(), 2);
    assert_eq!(lab.model.results_of("call_1").len(), 1);
}

#[test]
fn a_sub_agent_of_claude_uses_up_no_step() {
    let task = json!({"description": "look", "prompt": "Look.", "subagent_type": "general-purpose",
        "run_in_background": false});
    let script = Script::new().then(Reply::call("Agent", "call_1", task)).then(Reply::text(WORDS));
    let mut lab = lab(Program::Claude, Wire::Anthropic, script);
    lab.command.args(["-p", "--output-format", "stream-json", "--verbose", PROMPT]);
    a_sub_agent_uses_up_no_step(lab);
}

#[test]
fn a_sub_agent_of_gemini_uses_up_no_step() {
    let task = json!({"agent_name": "codebase_investigator", "prompt": "Look."});
    let script = Script::new().then(Reply::call("invoke_agent", "call_1", task)).then(Reply::text(WORDS));
    let mut lab = lab(Program::Gemini, Wire::Gemini, script);
    lab.command.args(["--skip-trust", "-y", "-m", "gemini-2.5-flash", "-o", "stream-json", "-p", PROMPT]);
    a_sub_agent_uses_up_no_step(lab);
}
