//! The rules of adapters (contract 1.4), target by target.

use crate::native;
use crate::support::{platform, spec, three_kinds, with};
use aop_ask::{Dialogue, OnEscape, Options, Protocol, QuestionSpec, Step, Target};
use serde_json::{Value, json};

fn start(document: &Value, target: Target) -> Dialogue {
    Dialogue::start(spec(document), target, Options::default()).unwrap()
}

/// The next native request's arguments.
fn asked(dialogue: &Dialogue) -> Value {
    match dialogue.next() {
        Step::Ask(request) => request.input,
        other => panic!("not asking: {other:?}"),
    }
}

/// The answers the dialogue ended in.
fn ended(dialogue: &Dialogue) -> Value {
    match dialogue.next() {
        Step::Done(answers) => answers.to_json(),
        other => panic!("not done: {other:?}"),
    }
}

fn labels(native: &Value) -> Vec<&str> {
    native["options"].as_array().unwrap().iter().map(|option| option["label"].as_str().unwrap()).collect()
}

/// A spec with one choice question.
fn choice(kind: &str, names: &[&str], more: Value) -> Value {
    let options: Vec<Value> = names.iter().map(|name| json!({"label": name, "description": "d"})).collect();
    let mut question = json!({"id": "pick", "header": "Pick", "question": "Which?", "kind": kind,
                              "required": true, "options": options});
    question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"version": 1, "topic": "t", "questions": [question]})
}

fn claude(text: &str, answer: &str) -> Value {
    json!({"answers": {text: answer}})
}

fn codex(answer: &str) -> Value {
    json!({"answers": {"pick": {"answers": [answer]}}})
}

#[test]
fn seed_000_scenario_claude_code_and_codex_produce_identical_answer_records() {
    let mut one = start(&platform(), Target::ClaudeCode);
    one.reply(&claude("Which platform do you write for?", "Web")).unwrap();
    let mut two = start(&platform(), Target::Codex);
    two.reply(&json!({"answers": {"platform": {"answers": ["Web"]}}})).unwrap();
    let record = |dialogue: &Dialogue| dialogue.report("2026-03-04T22:00:00.000Z", "human").unwrap();
    assert_eq!(record(&one), record(&two));
    assert_eq!(
        record(&one),
        json!({"done": true, "answer": {"version": 1, "topic": "init", "answers": {"platform": "Web"},
               "answered_at": "2026-03-04T22:00:00.000Z", "answered_by": "human"}})
    );
}

#[test]
fn the_first_step_is_the_tools_own_call() {
    let dialogue = start(&platform(), Target::ClaudeCode);
    assert_eq!(
        dialogue.report("", "").unwrap(),
        json!({"done": false, "next": {"tool": "AskUserQuestion", "input": {"questions": [{
            "question": "Which platform do you write for?", "header": "Platform", "multiSelect": false,
            "options": [{"label": "Web", "description": "Serial chapters on a site"},
                        {"label": "Print", "description": "One volume, typeset"}]}]}},
            "unanswered": ["platform"]})
    );
}

#[test]
fn empty_blank_and_partial_replies_mean_unanswered() {
    for reply in [json!({}), json!({"answers": {}}), json!({"answers": null}), claude("Which?", " ")] {
        let mut dialogue = start(&choice("single_choice", &["A", "B"], json!({})), Target::ClaudeCode);
        dialogue.reply(&reply).unwrap();
        assert_eq!(dialogue.unanswered(), ["pick"], "{reply}");
    }
    for reply in [json!({"answers": {"pick": {"answers": []}}}), json!({"answers": {"pick": {}}}), codex("")]
    {
        let mut dialogue = start(&choice("single_choice", &["A", "B"], json!({})), Target::Codex);
        dialogue.reply(&reply).unwrap();
        assert_eq!(dialogue.unanswered(), ["pick"], "{reply}");
    }
}

#[test]
fn a_partial_reply_keeps_what_was_answered_and_drops_shown_optional_questions() {
    let mut dialogue = start(&three_kinds(), Target::ClaudeCode);
    dialogue.reply(&claude("Anything to add?", "ship it")).unwrap();
    assert_eq!(dialogue.unanswered(), ["channel"]);
    let again = asked(&dialogue);
    assert_eq!(again["questions"].as_array().unwrap().len(), 1);
    let text = again["questions"][0]["question"].as_str().unwrap();
    assert!(text.starts_with("Which channel?\n\nAsked again"), "{text}");
    dialogue.reply(&claude(text, "Beta")).unwrap();
    assert_eq!(ended(&dialogue), json!({"channel": "Beta", "notes": "ship it"}));
}

#[test]
fn an_optional_question_that_was_begun_is_asked_again_instead_of_losing_its_picks() {
    let document = choice("multi_choice", &["A", "B"], json!({"required": false}));
    let mut dialogue = start(&document, Target::Codex);
    dialogue.reply(&codex("A")).unwrap();
    dialogue.reply(&json!({"answers": {}})).unwrap();
    dialogue.reply(&codex("Done")).unwrap();
    assert_eq!(ended(&dialogue), json!({"pick": ["A"]}));
}

/// However many options there are: the step to add one may have no room for an end.
#[test]
fn whoever_adds_nothing_after_all_can_end_there() {
    let many = &["A", "B", "C", "D"][..];
    for (target, names, other) in [
        (Target::Codex, many, false),
        (Target::Codex, &many[..2], true),
        (Target::Elicitation, &many[..2], true),
    ] {
        let document = choice("multi_choice", names, json!({"required": true, "allow_other": other}));
        let mut dialogue = start(&document, target);
        let say = |word: &str| match (target, word) {
            (Target::Codex, "") => json!({"answers": {}}),
            (Target::Codex, word) => codex(word),
            (_, "A") => json!({"action": "accept", "content": {"pick": ["A"], "pick__other": "own"}}),
            (_, "") => json!({"action": "accept", "content": {}}),
            (_, word) => json!({"action": "accept", "content": {"pick": word}}),
        };
        for word in ["A", "Add another", "", "Done"] {
            dialogue.reply(&say(word)).unwrap();
        }
        let picked = if target == Target::Codex { json!(["A"]) } else { json!(["A", "own"]) };
        assert_eq!(ended(&dialogue), json!({"pick": picked}), "{target:?} {names:?}");
    }
}

#[test]
fn an_optional_question_left_inside_a_route_is_absent() {
    let names = ["A", "B", "C", "D", "E", "F", "G", "H", "I"];
    let document = choice("single_choice", &names, json!({"required": false}));
    let mut dialogue = start(&document, Target::Codex);
    dialogue.reply(&codex("A … C")).unwrap();
    dialogue.reply(&json!({"answers": {}})).unwrap();
    assert_eq!(ended(&dialogue), json!({}));
}

#[test]
fn a_reply_that_matches_no_label_is_the_free_answer_or_asked_again_with_the_reason() {
    let closed = choice("single_choice", &["A", "B"], json!({}));
    let mut dialogue = start(&closed, Target::Codex);
    dialogue.reply(&codex("a")).unwrap();
    let text = asked(&dialogue)["questions"][0]["question"].clone();
    assert_eq!(text, "Which?\n\nAsked again: \"a\" is not one of the options.");
    let open = choice("single_choice", &["A", "B"], json!({"allow_other": true}));
    let mut dialogue = start(&open, Target::Codex);
    dialogue.reply(&codex("a")).unwrap();
    assert_eq!(ended(&dialogue), json!({"pick": "a"}));
}

#[test]
fn a_reply_that_names_something_not_asked_is_not_dropped_in_silence() {
    let document = with(&platform(), "/questions/0/required", Some(json!(false)));
    let mut dialogue = start(&document, Target::ClaudeCode);
    dialogue.reply(&claude("Platform", "Web")).unwrap();
    let text = asked(&dialogue)["questions"][0]["question"].as_str().unwrap().to_owned();
    assert!(text.contains("the reply names \"Platform\", which was not asked"), "{text}");
    // The spec's own text is enough as a key, whatever was added below it.
    dialogue.reply(&claude("Which platform do you write for?", "Web")).unwrap();
    assert_eq!(ended(&dialogue), json!({"platform": "Web"}));
}

#[test]
fn what_is_said_beside_the_answers_is_asked_about_and_never_dropped() {
    let open = choice("single_choice", &["A", "B"], json!({"allow_other": true}));
    let closed = choice("single_choice", &["A", "B"], json!({}));
    let several = choice("multi_choice", &["A", "B"], json!({}));
    let note = "but NOT on production";
    let noted =
        json!({"answers": {"Which?": "A"}, "annotations": {"Which?": {"preview": "# A", "notes": note}}});
    let replied = json!({"answers": {"Which?": "A"}, "response": note});
    let stranger = json!({"answers": {"Which?": "A", "Where?": note}});
    let noted_stranger = json!({"answers": {"Which?": "A"}, "annotations": {"Where?": {"notes": note}}});
    for (reply, reason) in [
        (noted, "came back; choose the option or type, not both|takes an option without a note"),
        (replied, "\"but NOT on production\" came beside the answer"),
        (stranger, "the reply names \"Where?\", which was not asked"),
        (noted_stranger, "the reply names \"Where?\", which was not asked"),
    ] {
        for document in [&open, &closed, &several] {
            let mut dialogue = start(document, Target::ClaudeCode);
            dialogue.reply(&reply).unwrap();
            let text = asked(&dialogue)["questions"][0]["question"].as_str().unwrap().to_owned();
            assert!(reason.split('|').any(|reason| text.contains(reason)), "{reply}: {text}");
            dialogue.reply(&claude("Which?", "B")).unwrap();
            assert!(dialogue.unanswered().is_empty());
        }
    }
    // The same on the other tools that key their replies.
    let mut dialogue = start(&open, Target::Codex);
    dialogue.reply(&json!({"answers": {"pick": {"answers": ["A"]}, "place": {"answers": [note]}}})).unwrap();
    assert_eq!(dialogue.unanswered(), ["pick"]);
    dialogue.reply(&json!({"answers": {"pick": {"answers": ["mine", "user_note: and more"]}}})).unwrap();
    assert_eq!(dialogue.unanswered(), ["pick"]);
    let mut dialogue = start(&open, Target::Elicitation);
    dialogue.reply(&json!({"action": "accept", "content": {"pick": "A", "place": note}})).unwrap();
    assert_eq!(dialogue.unanswered(), ["pick"]);
}

#[test]
fn empty_words_beside_the_answers_say_nothing_and_words_alone_are_the_answer() {
    let open = choice("single_choice", &["A", "B"], json!({"allow_other": true}));
    let beside = |answers: Value, note: &str, response: &str| {
        let mut dialogue = start(&open, Target::ClaudeCode);
        let annotations = json!({"Which?": {"preview": "# A", "notes": note}});
        dialogue
            .reply(&json!({"answers": answers, "annotations": annotations, "response": response}))
            .unwrap();
        ended(&dialogue)
    };
    assert_eq!(beside(json!({"Which?": "A", "Where?": " "}), " ", ""), json!({"pick": "A"}));
    assert_eq!(beside(json!({}), "neither", " "), json!({"pick": "neither"}));
    assert_eq!(beside(json!({}), "", "neither"), json!({"pick": "neither"}));
}

#[test]
fn a_reply_to_the_whole_card_keeps_the_answers_and_asks_for_the_rest() {
    let mut dialogue = start(&three_kinds(), Target::ClaudeCode);
    let all = json!({"Which channel?": "Beta", "Which targets?": "Linux", "Anything to add?": "no"});
    dialogue.reply(&json!({"answers": all, "response": "as you like"})).unwrap();
    assert_eq!(dialogue.unanswered(), ["channel", "targets", "notes"]);
    dialogue.reply(&json!({"answers": {"Which channel?": "Beta"}, "response": "as you like"})).unwrap();
    assert_eq!(dialogue.unanswered(), ["targets", "notes"]);
    let text = asked(&dialogue)["questions"][0]["question"].as_str().unwrap().to_owned();
    assert!(text.contains("\"as you like\" answers the card as a whole"), "{text}");
}

#[test]
fn claude_code_takes_several_labels_joined_when_they_can_be_told_apart() {
    let mut dialogue = start(&choice("multi_choice", &["A", "B, b", "C"], json!({})), Target::ClaudeCode);
    assert_eq!(asked(&dialogue)["questions"][0]["multiSelect"], true);
    dialogue.reply(&claude("Which?", "C, B, b")).unwrap();
    assert_eq!(ended(&dialogue), json!({"pick": ["B, b", "C"]}));
}

#[test]
fn labels_that_cannot_be_told_apart_when_joined_are_asked_one_by_one() {
    let mut dialogue = start(&choice("multi_choice", &["A", "B", "A, B"], json!({})), Target::ClaudeCode);
    assert_eq!(asked(&dialogue)["questions"][0]["multiSelect"], false);
    for answer in ["A, B", "Add another", "A", "Done"] {
        dialogue.reply(&claude("Which?", answer)).unwrap();
    }
    assert_eq!(ended(&dialogue), json!({"pick": ["A", "A, B"]}));
}

#[test]
fn free_answers_beside_several_labels_are_asked_one_by_one_because_they_may_hold_commas() {
    let document = choice("multi_choice", &["A", "B"], json!({"allow_other": true}));
    let mut dialogue = start(&document, Target::ClaudeCode);
    for answer in ["B", "x, y", "Add another", "A", "z", "Done"] {
        dialogue.reply(&claude("Which?", answer)).unwrap();
    }
    assert_eq!(ended(&dialogue), json!({"pick": ["A", "B", "x, y", "z"]}));
}

#[test]
fn two_questions_with_the_same_text_are_never_in_one_claude_code_call() {
    let mut document = three_kinds();
    let first = document["questions"][0].clone();
    document["questions"][1] = with(&first, "/id", Some(json!("second")));
    let mut dialogue = start(&document, Target::ClaudeCode);
    assert_eq!(asked(&dialogue)["questions"].as_array().unwrap().len(), 1);
    dialogue.reply(&claude("Which channel?", "Beta")).unwrap();
    dialogue.reply(&json!({"answers": {"Which channel?": "Stable", "Anything to add?": "no"}})).unwrap();
    assert_eq!(ended(&dialogue), json!({"channel": "Beta", "second": "Stable", "notes": "no"}));
}

#[test]
fn later_steps_of_questions_with_the_same_text_are_not_in_one_claude_code_call_either() {
    let mut document = choice("single_choice", &["A", "B", "C", "D", "E"], json!({}));
    let first = document["questions"][0].clone();
    document["questions"] = json!([first, with(&first, "/id", Some(json!("second")))]);
    let mut dialogue = start(&document, Target::ClaudeCode);
    dialogue.reply(&claude("Which?", "A … B")).unwrap();
    let texts: Vec<Value> = asked(&dialogue)["questions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|question| question["question"].clone())
        .collect();
    assert_eq!(texts, ["Which?\n\nChoose within: A … B"]);
}

#[test]
fn add_another_with_every_option_chosen_asks_for_text_and_not_the_same_again() {
    let document = choice("multi_choice", &["A", "B"], json!({"allow_other": true}));
    let mut dialogue = start(&document, Target::Codex);
    for answer in ["A", "Add another", "B", "Add another"] {
        dialogue.reply(&codex(answer)).unwrap();
    }
    assert_eq!(labels(&asked(&dialogue)["questions"][0]), ["Done", "Back"]);
    dialogue.reply(&codex("Back")).unwrap();
    assert_eq!(labels(&asked(&dialogue)["questions"][0]), ["Add another", "Done"]);
    for answer in ["Add another", "mine", "Done"] {
        dialogue.reply(&codex(answer)).unwrap();
    }
    assert_eq!(ended(&dialogue), json!({"pick": ["A", "B", "mine"]}));
}

#[test]
fn more_questions_than_one_call_takes_go_into_several() {
    let mut document = platform();
    let template = document["questions"][0].clone();
    let questions: Vec<Value> = (0..9)
        .map(|i| {
            let question = with(&template, "/id", Some(json!(format!("q{i}"))));
            with(&question, "/question", Some(json!(format!("Question {i}?"))))
        })
        .collect();
    document["questions"] = questions.into();
    for (target, per_call) in [(Target::ClaudeCode, 4), (Target::Codex, 3), (Target::Terminal, 1)] {
        let input = asked(&start(&document, target));
        let count = input["questions"].as_array().map_or(1, Vec::len);
        assert_eq!(count, per_call, "{target:?}");
    }
}

#[test]
fn multi_select_on_codex_is_pick_one_add_another_until_done() {
    let mut dialogue = start(&choice("multi_choice", &["A", "B", "C"], json!({})), Target::Codex);
    assert_eq!(labels(&asked(&dialogue)["questions"][0]), ["A", "B", "C"]);
    dialogue.reply(&codex("C")).unwrap();
    assert_eq!(labels(&asked(&dialogue)["questions"][0]), ["Add another", "Done"]);
    dialogue.reply(&codex("Add another")).unwrap();
    assert_eq!(labels(&asked(&dialogue)["questions"][0]), ["A", "B"]);
    dialogue.reply(&codex("A")).unwrap();
    dialogue.reply(&codex("Add another")).unwrap();
    assert_eq!(labels(&asked(&dialogue)["questions"][0]), ["B", "Done"]);
    dialogue.reply(&codex("Done")).unwrap();
    assert_eq!(ended(&dialogue), json!({"pick": ["A", "C"]}));
}

#[test]
fn picking_the_last_option_ends_the_iteration() {
    let mut dialogue = start(&choice("multi_choice", &["A", "B"], json!({})), Target::Codex);
    for answer in ["B", "Add another", "A"] {
        dialogue.reply(&codex(answer)).unwrap();
    }
    assert_eq!(ended(&dialogue), json!({"pick": ["A", "B"]}));
}

#[test]
fn navigation_gets_a_suffix_where_a_label_of_the_spec_is_the_same() {
    let mut dialogue =
        start(&choice("multi_choice", &["Done", "Add another", "x"], json!({})), Target::Codex);
    dialogue.reply(&codex("Done")).unwrap();
    assert_eq!(labels(&asked(&dialogue)["questions"][0]), ["Add another (aop)", "Done (aop)"]);
    dialogue.reply(&codex("Done (aop)")).unwrap();
    assert_eq!(ended(&dialogue), json!({"pick": ["Done"]}));
}

#[test]
fn one_option_only_is_the_option_and_skip() {
    for target in [Target::ClaudeCode, Target::Codex, Target::Terminal] {
        let shown = |dialogue: &Dialogue| {
            let input = asked(dialogue);
            input.pointer("/questions/0").cloned().unwrap_or(input)
        };
        let reply = |answer: &str| match target {
            Target::Codex => codex(answer),
            Target::Terminal => json!({"selected": [answer]}),
            _ => claude("Which?", answer),
        };
        for (kind, only) in [("single_choice", json!("Only")), ("multi_choice", json!(["Only"]))] {
            for required in [true, false] {
                let document = choice(kind, &["Only"], json!({"required": required}));
                let mut dialogue = start(&document, target);
                assert_eq!(labels(&shown(&dialogue)), ["Only", "Skip"], "{target:?} {kind}");
                dialogue.reply(&reply("Skip")).unwrap();
                assert_eq!(dialogue.unanswered().is_empty(), !required, "{target:?} {kind}");
                if required {
                    dialogue.reply(&reply("Only")).unwrap();
                    assert_eq!(ended(&dialogue), json!({"pick": only}));
                } else {
                    assert_eq!(ended(&dialogue), json!({}));
                }
            }
        }
    }
}

#[test]
fn a_default_is_offered_first_and_marked_in_the_description_and_never_applied() {
    let dialogue = start(&choice("single_choice", &["A", "B", "C"], json!({"default": "C"})), Target::Codex);
    let native = asked(&dialogue)["questions"][0].clone();
    assert_eq!(labels(&native), ["C", "A", "B"]);
    assert_eq!(native["options"][0]["description"], "Recommended. d");
    let mut dialogue = start(&three_kinds(), Target::StrictText);
    dialogue.reply(&json!("{}")).unwrap();
    assert_eq!(dialogue.unanswered(), ["channel"]);
}

#[test]
fn in_routed_questions_a_default_keeps_its_place_and_is_only_marked() {
    let names = ["A", "B", "C", "D", "E"];
    let mut dialogue = start(&choice("single_choice", &names, json!({"default": "D"})), Target::Codex);
    let native = asked(&dialogue)["questions"][0].clone();
    assert_eq!(labels(&native), ["A … B", "C … D", "E"]);
    assert_eq!(native["options"][1]["description"], "Contains what is recommended. Leads to “C”, “D”");
    dialogue.reply(&codex("C … D")).unwrap();
    let native = asked(&dialogue)["questions"][0].clone();
    assert_eq!(labels(&native), ["C", "D", "Back"]);
    assert_eq!(native["options"][1]["description"], "Recommended. d");
    dialogue.reply(&codex("Back")).unwrap();
    assert_eq!(labels(&asked(&dialogue)["questions"][0]), ["A … B", "C … D", "E"]);
    dialogue.reply(&codex("D")).unwrap();
    assert_eq!(ended(&dialogue), json!({"pick": "D"}), "a label typed at a routing step is that option");
}

#[test]
fn in_routed_questions_order_is_kept_after_a_pick_too() {
    let names = ["A", "B", "C", "D"];
    let mut dialogue = start(&choice("multi_choice", &names, json!({"default": ["D"]})), Target::Codex);
    for answer in ["A … B", "A", "Add another"] {
        dialogue.reply(&codex(answer)).unwrap();
    }
    // What is left fits into one step.
    let native = asked(&dialogue)["questions"][0].clone();
    assert_eq!(labels(&native), ["B", "C", "D"]);
    assert_eq!(native["options"][2]["description"], "Recommended. d");
}

#[test]
fn free_text_on_choice_only_tools_uses_their_free_form_field() {
    let document = json!({"version": 1, "topic": "t", "questions": [
        {"id": "a", "header": "A", "question": "First?", "kind": "free_text", "required": true},
        {"id": "b", "header": "B", "question": "Second?", "kind": "free_text", "required": true}]});
    let mut dialogue = start(&document, Target::ClaudeCode);
    let input = asked(&dialogue);
    native::check(
        Target::ClaudeCode,
        dialogue.spec(),
        &match dialogue.next() {
            Step::Ask(request) => request,
            other => panic!("{other:?}"),
        },
    );
    assert_eq!(labels(&input["questions"][0]), ["Skip", "Back"]);
    dialogue.reply(&json!({"answers": {"First?": "one", "Second?": "Back"}})).unwrap();
    assert_eq!(dialogue.unanswered(), ["a", "b"], "Back returns to the question before");
    dialogue.reply(&json!({"answers": {"First?": "1", "Second?": "two, 2"}})).unwrap();
    assert_eq!(ended(&dialogue), json!({"a": "1", "b": "two, 2"}));
}

#[test]
fn codex_notes_are_typed_text() {
    let open = choice("single_choice", &["A", "B"], json!({"allow_other": true}));
    let reply = |words: Value| json!({"answers": {"pick": {"answers": words}}});
    let mut dialogue = start(&open, Target::Codex);
    dialogue.reply(&reply(json!(["A", "user_note: and B"]))).unwrap();
    assert_eq!(dialogue.unanswered(), ["pick"], "an option and a text are asked again, neither is dropped");
    dialogue.reply(&reply(json!(["None of the above", "user_note: both"]))).unwrap();
    assert_eq!(ended(&dialogue), json!({"pick": "both"}));
}

#[test]
fn escape_ends_for_good_or_for_now_with_the_answers_so_far() {
    for (on_escape, name) in [(OnEscape::Terminate, "terminate"), (OnEscape::Defer, "defer")] {
        let options = Options { on_escape, ..Options::default() };
        let mut dialogue = Dialogue::start(spec(&three_kinds()), Target::Terminal, options).unwrap();
        dialogue.reply(&json!({"selected": ["Beta"]})).unwrap();
        dialogue.reply(&json!({"escaped": true})).unwrap();
        let report = dialogue.report("", "").unwrap();
        assert_eq!(report, json!({"done": true, "escaped": name, "answers_so_far": {"channel": "Beta"}}));
        assert_eq!(dialogue.reply(&json!({})).unwrap_err().code, "dialogue_over");
    }
}

#[test]
fn escape_can_return_to_the_previous_step() {
    let options = Options { on_escape: OnEscape::ReturnPrevious, ..Options::default() };
    let mut dialogue = Dialogue::start(spec(&three_kinds()), Target::Terminal, options).unwrap();
    dialogue.reply(&json!({"escaped": true})).unwrap();
    assert_eq!(asked(&dialogue)["id"], "channel", "at the first step there is nothing before");
    dialogue.reply(&json!({"selected": ["Beta"]})).unwrap();
    assert_eq!(asked(&dialogue)["id"], "targets");
    dialogue.reply(&json!({"escaped": true})).unwrap();
    assert_eq!(asked(&dialogue)["id"], "channel");
}

#[test]
fn elicitation_closes_on_decline_and_cancel_and_never_asks_for_secrets() {
    for action in ["decline", "cancel"] {
        let mut dialogue = start(&platform(), Target::Elicitation);
        dialogue.reply(&json!({"action": action})).unwrap();
        assert_eq!(dialogue.report("", "").unwrap()["escaped"], "terminate");
    }
    let secret = spec(&with(&platform(), "/questions/0/secret", Some(json!(true))));
    let refused = Dialogue::start(secret, Target::Elicitation, Options::default()).unwrap_err();
    assert_eq!((refused.code, refused.path.as_str()), ("secret_not_for_elicitation", "/questions/0/secret"));
}

#[test]
fn elicitation_has_lists_only_where_the_protocol_has_them() {
    let document = choice("multi_choice", &["A", "B"], json!({}));
    let new = start(&document, Target::Elicitation);
    assert_eq!(asked(&new)["requestedSchema"]["properties"]["pick"]["type"], "array");
    let options = Options { protocol: Protocol::V2025_06_18, ..Options::default() };
    let mut old = Dialogue::start(spec(&document), Target::Elicitation, options).unwrap();
    assert_eq!(asked(&old)["requestedSchema"]["properties"]["pick"]["enum"], json!(["A", "B"]));
    for answer in ["A", "Done"] {
        old.reply(&json!({"action": "accept", "content": {"pick": answer}})).unwrap();
    }
    assert_eq!(ended(&old), json!({"pick": ["A"]}));
}

#[test]
fn elicitation_takes_other_text_in_its_own_field_or_where_the_choice_stands() {
    let document = choice("multi_choice", &["A", "B"], json!({"allow_other": true}));
    let accept = |content: Value| json!({"action": "accept", "content": content});
    let mut dialogue = start(&document, Target::Elicitation);
    dialogue.reply(&accept(json!({"pick": ["B"], "pick__other": "mine"}))).unwrap();
    dialogue.reply(&accept(json!({"pick": "Done"}))).unwrap();
    assert_eq!(ended(&dialogue), json!({"pick": ["B", "mine"]}));
    let mut dialogue = start(&document, Target::Elicitation);
    dialogue.reply(&accept(json!({"pick": ["mine", "B"]}))).unwrap();
    assert_eq!(ended(&dialogue), json!({"pick": ["B", "mine"]}));
    let single = choice("single_choice", &["A", "B"], json!({"allow_other": true}));
    let mut dialogue = start(&single, Target::Elicitation);
    dialogue.reply(&accept(json!({"pick": "A", "pick__other": "mine"}))).unwrap();
    assert_eq!(dialogue.unanswered(), ["pick"], "a choice and a text are asked again, neither is dropped");
    dialogue.reply(&accept(json!({"pick__other": "Done"}))).unwrap();
    assert_eq!(
        ended(&dialogue),
        json!({"pick": "Done"}),
        "a field of its own cannot be mistaken for navigation"
    );
}

#[test]
fn strict_text_asks_again_with_the_reason_and_takes_one_object_only() {
    let mut dialogue = start(&three_kinds(), Target::StrictText);
    dialogue.reply(&json!("I would say Beta")).unwrap();
    let prompt = asked(&dialogue)["prompt"].as_str().unwrap().to_owned();
    assert!(prompt.contains("the reply is not one JSON object"), "{prompt}");
    dialogue.reply(&json!(r#"{"answers": {"channel": "beta", "targets": ["BeOS", "Linux"]}}"#)).unwrap();
    assert_eq!(dialogue.unanswered(), ["channel"]);
    dialogue.reply(&json!("```json\n{\"answers\": {\"channel\": \"Beta\"}}\n```")).unwrap();
    assert_eq!(ended(&dialogue), json!({"channel": "Beta", "targets": ["Linux", "BeOS"]}));
}

#[test]
fn what_a_tool_never_returns_is_a_violation() {
    for (target, reply) in [
        (Target::ClaudeCode, json!("Web")),
        (Target::ClaudeCode, json!({"answers": ["Web"]})),
        (Target::ClaudeCode, json!({"answers": {"Which platform do you write for?": 7}})),
        (Target::Codex, json!({"answers": {"platform": "Web"}})),
        (Target::StrictText, json!({"answers": {}})),
        (Target::Elicitation, json!({"action": "maybe"})),
        (Target::Terminal, json!({"selected": "Web"})),
    ] {
        let mut dialogue = start(&platform(), target);
        assert_eq!(dialogue.reply(&reply).unwrap_err().code, "malformed_reply", "{target:?} {reply}");
        assert_eq!(dialogue.unanswered(), ["platform"]);
    }
}

#[test]
fn answers_without_the_wrapper_of_their_tool_are_refused_and_not_dropped_in_silence() {
    let optional = with(&platform(), "/questions/0/required", Some(json!(false)));
    let text = "Which platform do you write for?";
    for (target, reply) in [
        (Target::ClaudeCode, json!({text: "Web"})),
        (Target::ClaudeCode, json!({"questions": [], "answers": null, text: "Web"})),
        (Target::ClaudeCode, json!({"answers": {text: " "}, text: "Web"})),
        (Target::Codex, json!({"platform": {"answers": ["Web"]}})),
        (Target::Codex, json!({"answers": {}, "platform": {"answers": ["Web"]}})),
        (Target::Elicitation, json!({"action": "accept", "platform": "Web"})),
        (Target::Elicitation, json!({"action": "accept", "content": {}, "platform": "Web"})),
        (Target::Elicitation, json!({"action": "accept", "content": null, "answer": {"platform": "Web"}})),
    ] {
        let mut dialogue = start(&optional, target);
        assert_eq!(dialogue.reply(&reply).unwrap_err().code, "malformed_reply", "{target:?} {reply}");
        asked(&dialogue);
    }
    for (target, reply) in [
        (Target::ClaudeCode, json!({})),
        (Target::ClaudeCode, json!({"questions": [{"question": text}], "annotations": {}})),
        (
            Target::ClaudeCode,
            json!({"questions": [{"question": text}], "answers": {}, "metadata": {"source": "x"}}),
        ),
        (Target::ClaudeCode, json!({text: " "})),
        (Target::Codex, json!({"platform": {"answers": []}})),
        (Target::Elicitation, json!({"action": "accept", "_meta": {"n": 1}})),
        (Target::Elicitation, json!({"action": "accept", "platform": ""})),
    ] {
        let mut dialogue = start(&optional, target);
        dialogue.reply(&reply).unwrap();
        assert_eq!(ended(&dialogue), json!({}), "{target:?} {reply}: unanswered");
    }
}

#[test]
fn an_answer_beside_the_wrapper_that_holds_the_others_is_refused_as_well() {
    let mut both = with(&platform(), "/questions/0/required", Some(json!(false)));
    let second = json!({"id": "size", "header": "Size", "question": "How long?", "kind": "free_text", "required": false});
    both["questions"].as_array_mut().unwrap().push(second);
    let text = "Which platform do you write for?";
    for (target, reply) in [
        (Target::ClaudeCode, json!({"answers": {text: "Web"}, "size": "long"})),
        (
            Target::Codex,
            json!({"answers": {"platform": {"answers": ["Web"]}}, "size": {"answers": ["long"]}}),
        ),
        (Target::Elicitation, json!({"action": "accept", "content": {"platform": "Web"}, "size": "long"})),
    ] {
        let mut dialogue = start(&both, target);
        assert_eq!(dialogue.reply(&reply).unwrap_err().path, "/size", "{target:?} {reply}");
    }
    // A form has a second field for an answer of one's own.
    let options = json!([{"label": "S", "description": "small"}, {"label": "L", "description": "large"}]);
    both["questions"][1] = json!({"id": "size", "header": "Size", "question": "How long?", "kind": "single_choice",
        "required": false, "options": options, "allow_other": true});
    let mut dialogue = start(&both, Target::Elicitation);
    let reply = json!({"action": "accept", "content": {"platform": "Web"}, "size__other": "long"});
    assert_eq!(dialogue.reply(&reply).unwrap_err().path, "/size__other");
    // What the tool may have beside its wrapper one day is no answer.
    let mut dialogue = start(&both, Target::Codex);
    dialogue.reply(&json!({"answers": {"platform": {"answers": ["Web"]}}, "took_ms": 7})).unwrap();
    assert_eq!(ended(&dialogue), json!({"platform": "Web"}));
}

#[test]
fn a_dialogue_survives_being_written_down_half_way() {
    let mut dialogue = start(&choice("multi_choice", &["A", "B", "C", "D", "E"], json!({})), Target::Codex);
    for answer in ["C … D", "D", "Add another"] {
        let written = serde_json::to_value(&dialogue).unwrap();
        let mut copy: Dialogue = serde_json::from_value(written).unwrap();
        copy.reply(&codex(answer)).unwrap();
        dialogue = copy;
    }
    let written = serde_json::to_string(&dialogue).unwrap();
    let back: Dialogue = serde_json::from_str(&written).unwrap();
    assert_eq!(back.next(), dialogue.next());
    let broken = written.replace("\"codex\"", "\"terminal\"");
    assert!(serde_json::from_str::<Dialogue>(&broken).is_err(), "replies of another tool are not taken");
}

#[test]
fn codex_without_its_tool_falls_back_to_strict_text() {
    assert_eq!(Target::Codex.fallback(), Target::StrictText);
}

#[test]
fn previews_and_clusters_survive_the_round_trip_and_previews_are_shown() {
    let document = with(&platform(), "/questions/0/options/0/preview", Some(json!("# Web")));
    let document = with(&document, "/questions/0/options/0/cluster", Some(json!("screens")));
    assert_eq!(QuestionSpec::from_json(&document).unwrap().to_json(), document);
    let native = asked(&start(&document, Target::ClaudeCode));
    assert_eq!(native["questions"][0]["options"][0]["preview"], "# Web");
    assert_eq!(asked(&start(&document, Target::Terminal))["options"][0]["preview"], "# Web");
}

#[test]
fn strict_text_shows_a_preview_below_its_option() {
    let document =
        with(&platform(), "/questions/0/options/0/preview", Some(json!("# Web\n## platform (required)")));
    let prompt = asked(&start(&document, Target::StrictText))["prompt"].as_str().unwrap().to_owned();
    let shown = "- \"Web\": Serial chapters on a site\n  Preview:\n    # Web\n    ## platform (required)\n- \"Print\"";
    assert!(prompt.contains(shown), "{prompt}");
}

#[test]
fn every_question_stands_verbatim_in_what_each_target_shows() {
    let mut document = three_kinds();
    for (index, text) in ["Which *channel*,\n  and \"why\"?", "Which — targets?\t", "Anything\n\n# to add?"]
        .into_iter()
        .enumerate()
    {
        document["questions"][index]["question"] = text.into();
    }
    let all: Vec<String> = spec(&document).questions().iter().map(|q| q.question().to_owned()).collect();
    for target in Target::ALL {
        let dialogue = start(&document, target);
        let Step::Ask(request) = dialogue.next() else { panic!("{target:?} asks nothing") };
        native::check(target, dialogue.spec(), &request);
        let seen = texts(&request.input);
        // One question at a time on a terminal.
        let count = if target == Target::Terminal { 1 } else { all.len() };
        assert!(all.iter().take(count).all(|text| seen.contains(text)), "{target:?}: {seen}");
    }
}

/// Every text of a request, one after the other.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(items) => items.iter().map(texts).collect(),
        Value::Object(map) => map.values().map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

#[test]
fn what_was_typed_for_a_secret_stands_in_no_request_and_no_complaint() {
    let secret = choice("multi_choice", &["A", "B"], json!({"secret": true}));
    let open = choice("multi_choice", &["A", "B"], json!({"secret": true, "allow_other": true}));
    let claude = |text: &str| json!({"answers": {"Which?": text}});
    let replies = [
        (Target::ClaudeCode, claude("hunter2")),
        (Target::ClaudeCode, json!({"response": "hunter2"})),
        (Target::ClaudeCode, json!({"answers": "hunter2"})),
        (Target::Codex, codex("hunter2")),
        (Target::Codex, json!({"answers": {"pick": "hunter2"}})),
        (Target::Terminal, json!({"selected": ["hunter2"]})),
        (Target::Terminal, json!({"selected": [], "text": "hunter2"})),
        (Target::StrictText, json!("\"hunter2\"")),
        (Target::StrictText, json!("{\"answers\": {\"pick\": [\"hunter2\"]}}")),
        (Target::StrictText, json!({"hunter2": 1})),
    ];
    for document in [&secret, &open] {
        for (target, reply) in &replies {
            let mut dialogue = start(document, *target);
            let said = match dialogue.reply(reply) {
                Err(violation) => violation.to_string(),
                Ok(_) => match dialogue.next() {
                    Step::Ask(request) => request.input.to_string(),
                    // What the asking engine is given has it.
                    _ => continue,
                },
            };
            assert!(!said.contains("hunter2"), "{target:?} {reply}: {said}");
        }
    }
}

#[test]
fn one_option_of_a_form_stands_beside_skip_which_leaves_it_unanswered() {
    for protocol in [Protocol::V2025_06_18, Protocol::V2025_11_25] {
        for kind in ["single_choice", "multi_choice"] {
            let options = Options { protocol, ..Options::default() };
            let only = spec(&choice(kind, &["Only"], json!({})));
            let mut dialogue = Dialogue::start(only, Target::Elicitation, options).unwrap();
            let offered = asked(&dialogue).to_string();
            assert!(offered.contains("\"Skip\""), "{offered}");
            dialogue.reply(&json!({"action": "accept", "content": {"pick": "Skip"}})).unwrap();
            assert!(asked(&dialogue).to_string().contains("needs an answer"));
        }
    }
}
