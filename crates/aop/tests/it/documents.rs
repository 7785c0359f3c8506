//! `aop spec`, `aop prompts`, `aop turn` and `aop engine` through the real binary; none of them needs a project.

use crate::support::{Project, Run};
use serde_json::{Value, json};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

fn write(project: &Project, name: &str, value: &Value) {
    std::fs::write(project.path(name), value.to_string()).unwrap();
}

fn spec() -> Value {
    let options = |labels: &[&str]| -> Vec<Value> {
        labels.iter().map(|label| json!({"label": label, "description": format!("about {label}")})).collect()
    };
    let platforms = options(&["Web", "Print", "Radio", "Film", "Stage"]);
    let parts = options(&["A", "B", "A, B"]);
    json!({"version": 1, "topic": "init", "questions": [
        {"id": "platform", "header": "Platform", "question": "Which platform?", "kind": "single_choice",
         "required": true, "options": platforms},
        {"id": "parts", "header": "Parts", "question": "Which parts?", "kind": "multi_choice", "required": true,
         "options": parts}]})
}

/// Plays a human who wants Radio, and A and B, against the native requests of a tool until the end.
fn play(project: &Project, target: &str, reply: impl Fn(&Value) -> Value) -> Value {
    write(project, "spec.json", &spec());
    let mut replies = Vec::new();
    for _ in 0..30 {
        write(project, "replies.json", &json!(replies));
        let at = ["--answered-at", "2026-03-04T22:00:00.000Z"];
        let decode = ["spec", "decode", "spec.json", "--from", target, "--replies", "replies.json"];
        let step = project.run(&[&decode[..], &at].concat()).data();
        if step["done"] == true {
            return step["answer"].clone();
        }
        replies.push(reply(&step["next"]["input"]));
    }
    panic!("{target} never came to an end: {replies:?}");
}

/// Which of the offered labels leads to what the human wants.
fn wanted(question: &Value) -> String {
    let options = question["options"].as_array().unwrap();
    let text = question["question"].as_str().unwrap();
    let label = |option: &Value| option["label"].as_str().unwrap().to_owned();
    let says =
        |part: &str| options.iter().find(|option| option["description"].as_str().unwrap().contains(part));
    let exact = |wanted: &str| options.iter().find(|option| option["label"] == wanted).map(label);
    if text.contains("Which platform?") {
        return exact("Radio").or_else(|| says("Radio").map(label)).unwrap();
    }
    let has_a = text.contains("“A”");
    let has_b = text.contains("“B”");
    match (has_a, has_b, exact("Add another")) {
        (true, true, _) => exact("Done").unwrap(),
        (_, _, Some(more)) => more,
        (true, false, None) => exact("B").unwrap(),
        (_, _, None) => exact("A").unwrap(),
    }
}

#[test]
fn claude_code_and_codex_produce_identical_answer_records() {
    let project = Project::empty();
    let claude = play(&project, "claude-code", |input| {
        let questions = input["questions"].as_array().unwrap();
        let answers: serde_json::Map<String, Value> = questions
            .iter()
            .map(|question| (question["question"].as_str().unwrap().to_owned(), json!(wanted(question))))
            .collect();
        json!({"answers": answers})
    });
    let codex = play(&project, "codex", |input| {
        let questions = input["questions"].as_array().unwrap();
        let answers: serde_json::Map<String, Value> = questions
            .iter()
            .map(|question| {
                (question["id"].as_str().unwrap().to_owned(), json!({"answers": [wanted(question)]}))
            })
            .collect();
        json!({"answers": answers})
    });
    let text = play(&project, "strict-text", |_| {
        json!(r#"{"answers": {"platform": "Radio", "parts": ["B", "A"]}}"#)
    });
    assert_eq!(claude["answers"], json!({"platform": "Radio", "parts": ["A", "B"]}));
    assert_eq!(claude, codex);
    assert_eq!(claude, text);
}

#[test]
fn a_spec_with_mistakes_lists_every_violation_with_its_pointer() {
    let project = Project::empty();
    let mut broken = spec();
    broken["questions"][0]["kind"] = json!("riddle");
    broken["questions"][1]["options"][0]["colour"] = json!("red");
    broken["version"] = json!(0);
    write(&project, "spec.json", &broken);
    let error = project.run(&["spec", "check", "spec.json"]).refused("invalid_document", 2);
    let violations = error["details"]["violations"].as_array().unwrap();
    let paths: Vec<&str> = violations.iter().map(|found| found["path"].as_str().unwrap()).collect();
    for path in ["/version", "/questions/0/kind", "/questions/1/options/0/colour"] {
        assert!(paths.contains(&path), "{paths:?}");
    }
    for key in ["code", "path", "message", "hint"] {
        assert!(violations.iter().all(|found| found[key].is_string()), "{violations:?}");
    }
    write(&project, "spec.json", &spec());
    assert_eq!(project.run(&["spec", "check", "spec.json"]).data()["valid"], true);
}

#[test]
fn an_answer_record_is_held_against_its_spec() {
    let project = Project::empty();
    write(&project, "spec.json", &spec());
    let mut record = json!({"version": 1, "topic": "init", "answers": {"platform": "Web", "parts": ["A, B"]},
        "answered_at": "2026-03-04T22:00:00Z", "answered_by": "human"});
    write(&project, "answer.json", &record);
    project.run(&["spec", "check-answer", "spec.json", "answer.json"]).data();
    record["answers"]["platform"] = json!("web");
    record["answered_at"] = json!("2026-02-30T22:00:00Z");
    write(&project, "answer.json", &record);
    let error =
        project.run(&["spec", "check-answer", "spec.json", "answer.json"]).refused("invalid_document", 2);
    assert_eq!(error["details"]["violations"].as_array().unwrap().len(), 2, "{error}");
}

#[test]
fn a_command_line_that_says_what_cannot_be_is_refused_in_its_words() {
    let project = Project::empty();
    write(&project, "spec.json", &spec());
    // Before the first reply there is no record: nobody has answered it, at no time.
    for option in ["--answered-at", "--answered-by"] {
        let run = project.run(&["spec", "compile", "spec.json", "--to", "codex", option, "x"]);
        assert_eq!(run.code, Some(2), "{run:?}");
    }
    for twice in [
        &["spec", "check-answer", "-", "-"][..],
        &["spec", "decode", "-", "--from", "codex", "--replies", "-"],
        &["prompts", "check", "-", "spec.json", "-"],
        &["prompts", "compile", "-", "-"],
    ] {
        let error = project.run(twice).refused("invalid_argument", 2);
        assert!(error["message"].as_str().unwrap().contains("named twice"), "{error}");
    }
    std::fs::write(project.path("replies.json"), " ".repeat((16 << 20) + 1)).unwrap();
    let decode = ["spec", "decode", "spec.json", "--from", "codex", "--replies", "replies.json"];
    let error = project.run(&decode).refused("invalid_document", 2);
    assert_eq!(error["details"]["violations"][0]["code"], "json_too_large", "{error}");
}

#[test]
fn escape_ends_a_dialogue_with_what_was_said_before() {
    let project = Project::empty();
    write(&project, "spec.json", &spec());
    write(&project, "replies.json", &json!([{"escaped": true}]));
    let decode = ["spec", "decode", "spec.json", "--from", "codex", "--replies", "replies.json"];
    let ended = project.run(&decode).data();
    assert_eq!(ended, json!({"done": true, "escaped": "terminate", "answers_so_far": {}}));
    let deferred = project.run(&[&decode[..], &["--on-escape", "defer"]].concat()).data();
    assert_eq!(deferred["escaped"], "defer");
}

#[test]
fn the_worked_examples_are_valid_and_compile_to_themselves_in_kind() {
    let project = Project::empty();
    let mut files: Vec<String> = std::fs::read_dir(format!("{EXAMPLES}/prompts"))
        .unwrap()
        .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
        .filter(|path| path.ends_with(".json"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 4);
    let args: Vec<&str> = ["prompts", "check"].into_iter().chain(files.iter().map(String::as_str)).collect();
    project.run(&args).data();
    write(&project, "spec.json", &spec());
    let compiled = project.run(&["prompts", "compile", "spec.json", "--task-sync"]).data();
    assert_eq!(compiled["document"]["source_prompts"][0]["overflow_strategy"], "two_stage_routing");
    let call = &compiled["calls"][0];
    assert_eq!(
        (&call["step"], &call["tool"]),
        (&compiled["document"]["steps"][0]["id"], &json!("request_user_input"))
    );
    write(&project, "compiled.json", &compiled["document"]);
    project.run(&["prompts", "check", "compiled.json"]).data();
    let mut broken = compiled["document"].clone();
    broken["steps"][0]["options"] = json!([]);
    write(&project, "compiled.json", &broken);
    let alone = project.run(&["prompts", "check", "compiled.json"]).refused("invalid_document", 2);
    // A file that is not there hides nothing of the others.
    let both = ["prompts", "check", "nowhere.json", "compiled.json"];
    let both = project.run(&both).refused("invalid_document", 2);
    let found = |error: &Value| error["details"]["violations"].as_array().unwrap().clone();
    let (alone, both) = (found(&alone), found(&both));
    assert!(both[0]["message"].as_str().unwrap().contains("nowhere.json' cannot be read"), "{both:?}");
    assert_eq!(both[1..], alone[..]);
}

#[test]
fn task_calls_become_plans_and_without_the_tool_only_state() {
    let project = Project::empty();
    let update = |status: &str| json!({"name": "TaskUpdate", "input": {"taskId": "1", "status": status}});
    let calls = json!([{"name": "TaskCreate", "input": {"subject": "one"}}, update("pending"), update("in_progress")]);
    write(&project, "calls.json", &calls);
    let plan = |status: &str| json!({"plan": [{"step": "one", "status": status}]});
    let told = |status: &str| json!({"tool": "update_plan", "arguments": plan(status)});
    assert_eq!(
        project.run(&["prompts", "tasks", "calls.json"]).data(),
        json!({"calls": [told("pending"), told("in_progress")], "state": plan("in_progress")})
    );
    assert_eq!(
        project.run(&["prompts", "tasks", "calls.json", "--no-update-plan"]).data(),
        json!({"calls": [], "state": plan("in_progress")})
    );
    write(&project, "calls.json", &json!([{"name": "TaskCreate", "input": {}}]));
    project.run(&["prompts", "tasks", "calls.json"]).refused("invalid_document", 2);
}

fn judge(project: &Project, engine: &str, mode: &str, transcript: &str) -> Run {
    std::fs::write(project.path("turn.jsonl"), transcript).unwrap();
    project.run(&["turn", "judge", "--engine", engine, "--mode", mode, "--attempt", "1", "turn.jsonl"])
}

#[test]
fn a_turn_is_judged_whatever_its_outcome_with_exit_code_0() {
    let project = Project::empty();
    let claude = |text: &str| {
        let message = json!({"type": "assistant", "message": {"id": "m", "role": "assistant",
            "content": [{"type": "text", "text": text}]}, "parent_tool_use_id": null, "session_id": "s"});
        let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": text,
            "stop_reason": "end_turn", "session_id": "s"});
        format!("{message}\n{result}\n")
    };
    let done = claude("{\"__SKILL_DONE__\": true, \"plan\": \"x\"}");
    let outcome = judge(&project, "claude-code", "interactive", &done).data();
    assert_eq!(outcome["outcome"], "final");
    assert_eq!(outcome["final_data"], json!({"plan": "x"}));
    let prose = claude("Which database do you want?");
    let outcome = judge(&project, "claude-code", "interactive", &prose).data();
    assert_eq!(outcome["outcome"], "ask_user");
    assert_eq!(outcome["interaction"]["prompt"], "Which database do you want?");
    let outcome = judge(&project, "claude-code", "auto", &prose).data();
    assert_eq!(outcome["error"]["code"], "AUTO_COMPLETION_EVIDENCE_MISSING");
    let cut = judge(&project, "claude-code", "interactive", "{\"type\":\"assist").data();
    assert_eq!(cut["error"]["code"], "ENGINE_STREAM_TRUNCATED");
}

#[test]
fn command_lines_keep_their_auto_execution_flags_in_both_modes() {
    let project = Project::empty();
    for mode in ["auto", "interactive"] {
        for (engine, flags) in
            [("gemini", &["--yolo"][..]), ("iflow", &["--yolo", "--thinking"]), ("codex", &["--yolo"])]
        {
            for resume in [None, Some("11111111-2222-4333-8444-555555555555")] {
                let mut args = vec!["engine", "command", "--engine", engine, "--mode", mode];
                args.extend(resume.map(|id| ["--resume", id]).into_iter().flatten());
                let argv = project.run(&args).data()["argv"].clone();
                for flag in flags {
                    assert!(argv.as_array().unwrap().contains(&json!(flag)), "{args:?}: {argv}");
                }
            }
        }
        let patch = project.run(&["engine", "patch", "--engine", "gemini", "--mode", mode]).data();
        assert!(patch["text"].as_str().unwrap().contains("artifacts/"), "{patch}");
    }
}

#[test]
fn no_command_line_is_printed_that_runs_its_tools_unasked_where_people_are_to_be_asked() {
    let project = Project::empty();
    let command = |engine: &str, permissions: &str| {
        let args = ["engine", "command", "--mode", "interactive", "--engine", engine];
        project.run(&[&args[..], &["--permissions", permissions]].concat())
    };
    for (engine, named) in
        [("gemini", "gemini"), ("iflow", "iflow"), ("scripted", "scripted"), ("codex", "codex exec")]
    {
        let error = command(engine, "ask").refused("invalid_argument", 2);
        let message = error["message"].as_str().unwrap();
        assert_eq!(message, format!("--permissions is ask, and {named} cannot ask for permissions"));
        assert_eq!(error["details"]["argument"], "permissions");
        command(engine, "auto").data();
    }
    let asking = command("claude-code", "ask").data()["argv"].clone();
    assert_ne!(asking, command("claude-code", "auto").data()["argv"]);
}
