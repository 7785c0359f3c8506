//! The Canonical Prompt Spec (contract 2, seed 003), rule by rule.

use crate::support::{brief, spec, three_kinds, with};
use aop_ask::prompts::tasks::{PlanTool, TaskCall, TaskMapper, calls};
use aop_ask::prompts::{Compiled, Plan, check_json, compile, inputs};
use aop_ask::{OnEscape, QuestionSpec};
use serde_json::{Value, json};
use std::collections::HashSet;

fn plan(task_sync: bool) -> Plan {
    Plan {
        protocol: "demo".to_owned(),
        version: "1.0.0".to_owned(),
        source: "demo.md".to_owned(),
        on_escape: OnEscape::Terminate,
        task_sync,
    }
}

fn compiled(document: &Value) -> Compiled {
    compile(&[spec(document)], &plan(false)).unwrap()
}

fn many(kind: &str, count: usize) -> Value {
    let options: Vec<Value> =
        (0..count).map(|i| json!({"label": format!("L{i}"), "description": "d"})).collect();
    json!({"version": 1, "topic": "phase one", "questions": [
        {"id": "pick", "header": "A header that is long", "question": "Which?", "kind": kind, "required": true, "options": options}]})
}

/// A linear document with one step.
fn small() -> Value {
    json!({
        "protocol": "demo-one", "version": "0.1.0", "source": "demo.md",
        "source_prompts": [{"id": "p", "source_phase": "1", "source_options_count": 2, "mapped_step_ids": ["s"]}],
        "steps": [{"id": "s", "intent": "confirm", "question": "Go?", "on_escape": "terminate", "options": [
            {"label": "Yes", "description": "d", "implication": "i"}, {"label": "No", "description": "d"}]}],
    })
}

fn errors(value: &Value) -> Vec<String> {
    brief(&check_json(value).errors)
}

fn warnings(value: &Value) -> Vec<String> {
    let findings = check_json(value);
    assert_eq!(brief(&findings.errors), Vec::<String>::new());
    brief(&findings.warnings)
}

#[test]
fn a_small_linear_document_is_valid() {
    assert_eq!(warnings(&small()), Vec::<String>::new());
}

#[test]
fn documents_steps_options_and_prompts_are_closed() {
    for pointer in ["/x", "/steps/0/x", "/steps/0/options/0/x", "/source_prompts/0/x", "/_comment"] {
        assert_eq!(errors(&with(&small(), pointer, Some(json!(1)))), [format!("unknown_key {pointer}")]);
    }
}

#[test]
fn protocol_version_and_source_have_their_form() {
    for (key, bad) in [
        ("protocol", "Demo"),
        ("protocol", "1a"),
        ("version", "1.0"),
        ("version", "1.0.x"),
        ("source", "demo.txt"),
        ("source", ".md"),
    ] {
        assert_eq!(
            errors(&with(&small(), &format!("/{key}"), Some(json!(bad)))),
            [format!("invalid_format /{key}")]
        );
    }
}

#[test]
fn every_step_has_an_intent_and_an_escape_rule() {
    for (key, code) in [("intent", "unknown_word"), ("on_escape", "unknown_word")] {
        let pointer = format!("/steps/0/{key}");
        assert_eq!(errors(&with(&small(), &pointer, Some(json!("maybe")))), [format!("{code} {pointer}")]);
        assert_eq!(errors(&with(&small(), &pointer, None)), [format!("missing_key {pointer}")]);
    }
}

#[test]
fn a_step_has_two_or_three_options_with_unique_labels() {
    let option = |label: &str| json!({"label": label, "description": "d"});
    let four = json!([option("a"), option("b"), option("c"), option("d")]);
    assert_eq!(errors(&with(&small(), "/steps/0/options", Some(four))), ["option_count /steps/0/options"]);
    let twice = json!([option("a"), option("a")]);
    assert_eq!(
        errors(&with(&small(), "/steps/0/options", Some(twice))),
        ["duplicate_label /steps/0/options/1/label"]
    );
}

#[test]
fn max_choices_belongs_to_select_many() {
    let many = with(&small(), "/steps/0/intent", Some(json!("select_many")));
    assert_eq!(errors(&many), ["missing_key /steps/0/max_choices"]);
    for good in 1..=3 {
        assert_eq!(errors(&with(&many, "/steps/0/max_choices", Some(json!(good)))), Vec::<String>::new());
    }
    assert_eq!(
        errors(&with(&many, "/steps/0/max_choices", Some(json!(4)))),
        ["invalid_max_choices /steps/0/max_choices"]
    );
    assert_eq!(
        errors(&with(&small(), "/steps/0/max_choices", Some(json!(2)))),
        ["invalid_max_choices /steps/0/max_choices"]
    );
    assert_eq!(errors(&with(&small(), "/steps/0/max_choices", Some(json!(1)))), Vec::<String>::new());
}

#[test]
fn source_prompts_map_existing_steps_and_have_unique_ids() {
    let pointer = "/source_prompts/0/mapped_step_ids";
    assert_eq!(
        errors(&with(&small(), pointer, Some(json!(["gone"])))),
        [format!("unknown_step {pointer}/0")]
    );
    assert_eq!(errors(&with(&small(), pointer, Some(json!([])))), [format!("too_few_steps {pointer}")]);
    let count = "/source_prompts/0/source_options_count";
    assert_eq!(errors(&with(&small(), count, Some(json!(1)))), [format!("invalid_count {count}")]);
}

#[test]
fn overflow_rule_above_three_options_routing_is_mandatory() {
    let four = with(&small(), "/source_prompts/0/source_options_count", Some(json!(4)));
    assert_eq!(
        errors(&four),
        [
            "overflow_strategy /source_prompts/0/overflow_strategy",
            "too_few_steps /source_prompts/0/mapped_step_ids",
            "compressed /source_prompts/0/source_options_count"
        ]
    );
    let merged = with(&four, "/source_prompts/0/overflow_strategy", Some(json!("compress")));
    assert!(errors(&merged).contains(&"overflow_strategy /source_prompts/0/overflow_strategy".to_owned()));
}

#[test]
fn a_document_without_next_is_linear_and_doubts_are_warnings() {
    let mut document = small();
    document["source_prompts"][0] = json!({"id": "p", "source_phase": "1", "source_options_count": 6,
        "mapped_step_ids": ["s", "t"], "overflow_strategy": "two_stage_routing"});
    let mut second = document["steps"][0].clone();
    second["id"] = json!("t");
    second["options"][1]["label"] = json!("Back to start");
    document["steps"].as_array_mut().unwrap().push(second);
    assert_eq!(
        warnings(&document),
        [
            "uncovered_cluster /source_prompts/0/mapped_step_ids",
            "dangling_back /steps/1/options/1",
            "compressed /source_prompts/0/source_options_count"
        ]
    );
}

#[test]
fn a_document_that_uses_next_is_judged_as_executable() {
    let mut document = small();
    let mut second = document["steps"][0].clone();
    second["id"] = json!("t");
    second["next"] = json!([{"answer": "Yes", "next_step": "t"}, {"answer": "No", "next_step": "t"}]);
    document["steps"].as_array_mut().unwrap().push(second);
    document["steps"][0]["next"] =
        json!([{"answer": "Yes", "next_step": "gone"}, {"answer": "Maybe", "next_step": "end"}]);
    assert_eq!(
        errors(&document),
        [
            "unknown_step /steps/0/next/0/next_step",
            "unknown_answer /steps/0/next/1/answer",
            "uncovered_option /steps/0/next",
            "unreachable_step /steps/1",
            "no_way_to_end /steps/1",
        ]
    );
}

#[test]
fn what_is_wrong_is_told_at_its_place_also_behind_something_malformed() {
    let mut document = small();
    document["steps"][0]["next"] = json!([
        5, {"answer": "Yes", "next_step": 5}, {"next_step": "end"}, {"answer": "Yes", "next_step": "gone"},
        {"answer": "No", "next_step": "end"}, {"answer": "No", "next_step": "end"}]);
    let found = errors(&document);
    for expected in ["unknown_step /steps/0/next/3/next_step", "duplicate_answer /steps/0/next/5/answer"] {
        assert!(found.iter().any(|error| error == expected), "{expected}: {found:?}");
    }
}

#[test]
fn task_sync_is_exactly_what_the_runtime_can_do() {
    let good = compile(&[spec(&three_kinds())], &plan(true)).unwrap().spec.task_sync.unwrap();
    let synced = |sync: Value| errors(&with(&small(), "/task_sync", Some(sync)));
    assert_eq!(synced(good.clone()), Vec::<String>::new());
    for pointer in [
        "/source_tool",
        "/target_tool",
        "/single_in_progress",
        "/fallback_mode",
        "/create/emit",
        "/create/default_status",
    ] {
        assert_eq!(
            synced(with(&good, pointer, Some(json!("x")))),
            [format!("invalid_task_sync /task_sync{pointer}")]
        );
    }
    let quiet = json!([{"from": "pending", "to": "pending", "emit_update_plan": false},
                       {"from": "pending", "to": "in_progress", "emit_update_plan": false},
                       {"from": "pending", "to": "completed", "emit_update_plan": true}]);
    assert_eq!(
        synced(with(&good, "/transitions", Some(quiet))),
        [
            "invalid_task_sync /task_sync/transitions/1/emit_update_plan",
            "invalid_task_sync /task_sync/transitions/2/emit_update_plan",
            "missing_transition /task_sync/transitions",
        ]
    );
}

#[test]
fn what_the_compiler_makes_is_executable_and_loses_no_label() {
    for kind in ["single_choice", "multi_choice"] {
        for count in [1, 2, 3, 4, 9, 10, 40] {
            let Compiled { spec, .. } = compiled(&many(kind, count));
            let value = serde_json::to_value(&spec).unwrap();
            let findings = check_json(&value);
            assert_eq!(brief(&findings.errors), Vec::<String>::new(), "{kind} {count}");
            assert_eq!(brief(&findings.warnings), Vec::<String>::new(), "{kind} {count}");
            let shown: Vec<&str> =
                spec.steps.iter().flat_map(|step| &step.options).map(|o| o.label.as_str()).collect();
            for i in 0..count {
                let label = format!("L{i}");
                assert_eq!(shown.iter().filter(|shown| **shown == label).count(), 1, "{label}");
            }
            let routed = spec.source_prompts[0].overflow_strategy.is_some();
            assert_eq!(routed, count > 3);
        }
    }
}

#[test]
fn multi_select_rule_pick_one_add_another_until_stop() {
    let Compiled { spec, .. } = compiled(&many("multi_choice", 3));
    let steps: Vec<_> =
        spec.steps.iter().map(|s| (s.id.as_str(), s.intent.as_str(), s.max_choices)).collect();
    assert_eq!(steps, [("pick", "select_many", Some(1)), ("pick_more", "confirm", None)]);
    let targets = |step: usize| -> Vec<String> {
        spec.steps[step]
            .next
            .iter()
            .flatten()
            .map(|next| format!("{} → {}", next.answer, next.next_step))
            .collect()
    };
    assert_eq!(targets(0), ["L0 → pick_more", "L1 → pick_more", "L2 → pick_more"]);
    assert_eq!(targets(1), ["Add another → pick", "Done → end"]);
}

#[test]
fn a_missing_version_is_told_its_own_form() {
    let found = aop_ask::prompts::check(b"{}").errors;
    let version = found.iter().find(|violation| violation.path == "/version").unwrap();
    assert_eq!(version.hint, "add \"version\": three numbers, for instance 1.0.0");
}

#[test]
fn a_one_option_question_becomes_confirm_and_free_text_has_no_step() {
    let Compiled { spec, .. } = compiled(&many("single_choice", 1));
    assert_eq!(spec.steps[0].intent, "confirm");
    assert_eq!(spec.steps[0].options[1].label, "Skip");
    assert_eq!(spec.steps[0].options[1].description, "Leave this question unanswered", "its next leads on");
    let Compiled { spec, warnings, .. } = compiled(&three_kinds());
    assert_eq!(brief(&warnings), ["free_text_has_no_step /0/questions/2"]);
    assert!(spec.steps.iter().all(|step| step.id != "notes"));
}

#[test]
fn the_tool_call_takes_the_questions_header_cut_to_twelve_characters() {
    let Compiled { spec, .. } = compiled(&many("single_choice", 2));
    let call = spec.steps[0].request("A header that is long");
    assert_eq!(call["questions"][0]["header"].as_str().unwrap().chars().count(), 12);
    assert_eq!(call["questions"][0]["options"][1], json!({"label": "L1", "description": "d"}));
}

#[test]
fn the_compiler_gives_the_call_of_every_step() {
    let Compiled { spec, calls, .. } = compiled(&many("multi_choice", 10));
    let steps: Vec<&str> = calls.iter().map(|call| call.step.as_str()).collect();
    assert_eq!(steps, spec.steps.iter().map(|step| step.id.as_str()).collect::<Vec<_>>());
    for (call, step) in calls.iter().zip(&spec.steps) {
        assert_eq!(
            (call.tool, &call.arguments),
            ("request_user_input", &step.request("A header that is long"))
        );
    }
}

#[test]
fn a_linear_document_that_merges_options_is_an_error() {
    let merged = with(&small(), "/source_prompts/0/source_options_count", Some(json!(3)));
    assert_eq!(errors(&merged), ["compressed /source_prompts/0/source_options_count"]);
}

#[test]
fn an_option_that_stands_in_two_clusters_is_an_error_with_and_without_next() {
    for kind in ["single_choice", "multi_choice"] {
        // Thirteen options: clusters of clusters, and one whose name is that of an option is none.
        let mut document = serde_json::to_value(compiled(&many(kind, 13)).spec).unwrap();
        assert_eq!(errors(&document), Vec::<String>::new());
        let text = document.to_string().replace("\"L12\"", "\"L0\"");
        document = serde_json::from_str(&text).unwrap();
        let [missing, repeated] = &errors(&document)[..] else { panic!("{kind}: {:?}", errors(&document)) };
        assert_eq!(missing, "compressed /source_prompts/0/source_options_count", "L12 has no place any more");
        assert!(repeated.starts_with("repeated_option /steps/"), "{repeated}");
    }
    let step = |id: &str, labels: [&str; 3]| {
        let options = labels.map(|label| json!({"label": label, "description": "d"}));
        json!({"id": id, "intent": "select_one", "question": "Which?", "on_escape": "terminate", "options": options})
    };
    let mut linear = small();
    linear["source_prompts"][0] = json!({"id": "p", "source_phase": "1", "source_options_count": 4,
        "mapped_step_ids": ["s", "t", "u", "v"], "overflow_strategy": "two_stage_routing"});
    linear["steps"] = json!([
        step("s", ["A", "B", "C"]),
        step("t", ["A", "D", "Back"]),
        step("u", ["E", "F", "Back"]),
        step("v", ["G", "H", "Skip"])
    ]);
    assert_eq!(errors(&linear), Vec::<String>::new(), "a cluster may be called like an option of it");
    linear["steps"][3]["options"][0]["label"] = json!("E");
    assert_eq!(errors(&linear), ["repeated_option /steps/3/options/0"]);
}

/// A step: its id, its intent, and its options with where they lead.
type Routes<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

/// An executable document with one routed prompt.
fn routed(count: usize, steps: &[Routes<'_>]) -> Value {
    let mut document = small();
    let ids: Vec<&str> = steps.iter().map(|(id, _, _)| *id).collect();
    document["source_prompts"][0] = json!({"id": "p", "source_phase": "1", "source_options_count": count,
        "mapped_step_ids": ids, "overflow_strategy": "two_stage_routing"});
    let steps = steps.iter().map(|(id, intent, ways)| {
        let options: Vec<Value> =
            ways.iter().map(|(label, _)| json!({"label": label, "description": "d"})).collect();
        let next: Vec<Value> =
            ways.iter().map(|(label, target)| json!({"answer": label, "next_step": target})).collect();
        let mut step = json!({"id": id, "intent": intent, "question": "Which?", "on_escape": "terminate",
            "options": options, "next": next});
        if *intent == "select_many" {
            step["max_choices"] = json!(1);
        }
        step
    });
    document["steps"] = steps.collect();
    document
}

#[test]
fn an_executable_document_that_has_fewer_options_than_its_source_is_compressed() {
    const COMPRESSED: [&str; 1] = ["compressed /source_prompts/0/source_options_count"];
    let more: Routes<'_> = ("more", "confirm", &[("Add another", "r"), ("Done", "end")]);
    let many: Routes<'_> = ("r", "select_many", &[("X", "a"), ("Y", "b")]);
    let one: Routes<'_> = ("r", "select_one", &[("X", "a"), ("Y", "b")]);
    let a: Routes<'_> = ("a", "select_many", &[("A", "more"), ("B", "more")]);
    let b: Routes<'_> = ("b", "select_many", &[("C", "more"), ("D", "more")]);
    // "Add another?" holds no option of the source.
    assert_eq!(errors(&routed(4, &[many, a, b, more])), [""; 0]);
    assert_eq!(errors(&routed(5, &[many, a, b, more])), COMPRESSED);
    // Nor is a way back one.
    let back = |target| {
        let (a, b) =
            ([("A", "end"), ("B", "end"), ("Back", target)], [("C", "end"), ("D", "end"), ("Back", target)]);
        move |count| errors(&routed(count, &[one, ("a", "select_one", &a), ("b", "select_one", &b)]))
    };
    assert_eq!(back("r")(4), [""; 0]);
    assert_eq!(back("r")(6), COMPRESSED);
    // Two clusters that lead to one step have the options of one.
    let three: Routes<'_> = ("r", "select_many", &[("X", "a"), ("Y", "b"), ("Z", "b")]);
    assert_eq!(errors(&routed(5, &[three, a, b, more])), COMPRESSED);
    // What is only judged is no pick.
    let yes_no: &[(&str, &str)] = &[("Yes", "end"), ("No", "end")];
    assert_eq!(errors(&routed(4, &[one, ("a", "judge", yes_no), ("b", "judge", yes_no)])), COMPRESSED);
    // One after the other may be picked without a step that asks whether to.
    let root: Routes<'_> = ("r", "select_many", &[("X", "a"), ("Y", "b"), ("Done", "end")]);
    let (a, b) = ([("A", "r"), ("B", "a"), ("Back", "r")], [("C", "r"), ("D", "b"), ("Back", "r")]);
    let loops = |count| errors(&routed(count, &[root, ("a", "select_many", &a), ("b", "select_many", &b)]));
    assert_eq!(loops(4), [""; 0]);
    assert_eq!(loops(6), COMPRESSED);
}

#[test]
fn the_worked_example_with_two_options_made_one_is_compressed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/prompts/gap-review.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let step =
        document["steps"].as_array_mut().unwrap().iter_mut().find(|step| step["id"] == "gaps_1").unwrap();
    for list in ["options", "next"] {
        step[list].as_array_mut().unwrap().truncate(2);
    }
    step["options"][1]["label"] = json!("No alarm, no load test");
    step["next"][1]["answer"] = json!("No alarm, no load test");
    assert_eq!(errors(&document), ["compressed /source_prompts/0/source_options_count"]);
}

#[test]
fn an_option_is_no_way_back_because_its_first_word_is_back() {
    let twice: [(&str, &str); 3] = [("A", "end"), ("B", "end"), ("Back up the database", "end")];
    let other: [(&str, &str); 3] = [("C", "end"), ("D", "end"), ("Back up the database", "end")];
    let r: Routes<'_> = ("r", "select_one", &[("X", "a"), ("Y", "b")]);
    let document = routed(5, &[r, ("a", "select_one", &twice), ("b", "select_one", &other)]);
    assert_eq!(errors(&document), ["repeated_option /steps/2/options/2"]);
    for (label, dangles) in [
        ("Back up the database", false),
        ("Return shipping", false),
        ("Backwards", false),
        ("Back", true),
        ("BACK to the clusters", true),
        ("Return to the start", true),
        ("Go back", true),
    ] {
        let document = with(&small(), "/steps/0/options/0/label", Some(json!(label)));
        let expected: &[&str] = if dangles { &["dangling_back /steps/0/options/0"] } else { &[] };
        assert_eq!(warnings(&document), expected, "{label}");
    }
}

#[test]
fn recorded_task_calls_are_read_and_those_of_other_tools_passed_over() {
    let recorded = json!([{"name": "Bash", "input": {}}, {"name": "TaskCreate", "input": {"subject": "one"}},
        {"type": "tool_use", "name": "TaskUpdate", "input": {"taskId": "1", "status": "in_progress"}}]);
    assert_eq!(calls(recorded.to_string().as_bytes()).unwrap().len(), 2);
    let bad = json!([{"name": "TaskCreate", "input": {}}, {"input": {}}, 7,
        {"name": "TaskUpdate", "input": {"taskId": "1", "status": "whim"}}]);
    let found = calls(bad.to_string().as_bytes()).unwrap_err();
    assert_eq!(brief(&found), ["invalid_call /0", "invalid_call /1", "invalid_call /2", "invalid_call /3"]);
    assert_eq!(brief(&calls(b"{}").unwrap_err()), ["not_a_list "]);
}

#[test]
fn escape_rule_every_step_says_what_esc_does_and_the_default_is_terminate() {
    let escapes = |plan: &Plan| -> HashSet<String> {
        let made = compile(&[spec(&many("multi_choice", 9))], plan).unwrap().spec;
        made.steps.iter().map(|step| step.on_escape.clone()).collect()
    };
    assert_eq!(escapes(&plan(false)), HashSet::from(["terminate".to_owned()]));
    let deferring = Plan { on_escape: OnEscape::Defer, ..plan(false) };
    assert_eq!(escapes(&deferring), HashSet::from(["defer".to_owned()]));
}

#[test]
fn step_ids_never_collide_across_questions() {
    let mut document = many("multi_choice", 10);
    for (index, id) in ["pick_1", "pick_more", "end"].iter().enumerate() {
        let question = with(&document["questions"][index], "/id", Some(json!(id)));
        document["questions"].as_array_mut().unwrap().push(question);
    }
    let Compiled { spec, .. } = compiled(&document);
    let ids: HashSet<&str> = spec.steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids.len(), spec.steps.len());
}

#[test]
fn native_calls_and_specs_and_lists_of_them_are_inputs() {
    let call = json!({"questions": [{"question": "Q?", "header": "H", "multiSelect": false, "options": [
        {"label": "A", "description": "d"}, {"label": "B", "description": "d"}]}]});
    assert_eq!(inputs(&call).unwrap().len(), 1);
    assert_eq!(inputs(&json!([call, three_kinds()])).unwrap().len(), 2);
    let broken = brief(&inputs(&json!([{"version": 1}, call, {"version": 1, "topic": "t"}])).unwrap_err());
    assert_eq!(broken, ["missing_key /0/topic", "missing_key /0/questions", "missing_key /2/questions"]);
}

#[test]
fn only_free_text_makes_no_document_and_that_is_what_is_told() {
    let document = json!({"version": 1, "topic": "t", "questions": [
        {"id": "a", "header": "h", "question": "q", "kind": "free_text", "required": true}]});
    let refused = compile(&[spec(&document)], &plan(false)).unwrap_err();
    assert_eq!(brief(&refused), ["free_text_has_no_step /0/questions/0"]);
    let unnamed = Plan { protocol: "Demo".to_owned(), ..plan(false) };
    let refused = compile(&[spec(&document)], &unnamed).unwrap_err();
    assert_eq!(brief(&refused), ["invalid_format /protocol", "free_text_has_no_step /0/questions/0"]);
    let nothing = compile(&[], &plan(false)).unwrap_err();
    assert_eq!(brief(&nothing), ["empty_list /steps", "empty_list /source_prompts"]);
}

#[test]
fn task_sync_rule_creation_and_high_signal_transitions_are_told_and_never_two_in_progress() {
    let mut mapper = TaskMapper::new(PlanTool::Available);
    let mut run = |tool: &str, input: Value| mapper.apply(TaskCall::read(tool, &input).unwrap());
    let update = |id: &str, status: &str| json!({"taskId": id, "status": status});
    assert_eq!(
        run("TaskCreate", json!({"subject": "one", "description": "d"})),
        Some(json!({"plan": [{"step": "one", "status": "pending"}]}))
    );
    run("TaskCreate", json!({"subject": "two", "description": "d"}));
    assert_eq!(run("TaskUpdate", update("1", "pending")), None, "low-signal transitions are not mirrored");
    assert!(run("TaskUpdate", update("1", "in_progress")).is_some());
    assert_eq!(
        run("TaskUpdate", update("2", "in_progress")),
        Some(
            json!({"plan": [{"step": "one", "status": "pending"}, {"step": "two", "status": "in_progress"}]})
        )
    );
    assert_eq!(
        run("TaskUpdate", update("2", "completed")),
        Some(
            json!({"plan": [{"step": "one", "status": "in_progress"}, {"step": "two", "status": "completed"}]})
        )
    );
    assert_eq!(run("TaskUpdate", update("9", "completed")), None);
    assert_eq!(run("TaskUpdate", update("1", "deleted")), None);
    assert_eq!(mapper.plan(), json!({"plan": [{"step": "two", "status": "completed"}]}));
}

#[test]
fn without_update_plan_only_internal_state_is_kept() {
    let mut mapper = TaskMapper::new(PlanTool::Missing);
    let create = TaskCall::read("TaskCreate", &json!({"subject": "one", "description": "d"})).unwrap();
    assert_eq!(mapper.apply(create), None);
    assert_eq!(mapper.plan(), json!({"plan": [{"step": "one", "status": "pending"}]}));
}

/// The worked examples are compiled from the specs beside them; `UPDATE_EXAMPLES=1` writes them anew.
#[test]
fn the_four_worked_examples_are_what_the_compiler_makes() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    for (name, task_sync) in [
        ("clarification", false),
        ("gap-review", true),
        ("goal-interview", true),
        ("comprehension-check", false),
    ] {
        let bytes = std::fs::read(format!("{root}/specs/{name}.json")).unwrap();
        let source = QuestionSpec::parse(&bytes).unwrap();
        let plan = Plan { protocol: name.to_owned(), source: format!("{name}.md"), ..plan(task_sync) };
        let made = compile(&[source], &plan).unwrap().spec;
        let text = serde_json::to_string_pretty(&made).unwrap() + "\n";
        let path = format!("{root}/prompts/{name}.json");
        if std::env::var_os("UPDATE_EXAMPLES").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{name}");
        assert!(std::fs::exists(format!("{root}/prompts/{name}.md")).unwrap());
        let findings = check_json(&serde_json::from_str(&text).unwrap());
        assert_eq!((findings.errors, findings.warnings), (vec![], vec![]));
    }
}
