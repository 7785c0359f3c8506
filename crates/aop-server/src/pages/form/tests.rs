//! What a form makes of what was typed.
use super::*;
use crate::pages::fixture::asked;

fn answered(changes: Value, typed: &[(&str, &str)]) -> (Form, Option<Value>) {
    let mut form = Form::of(&asked(changes));
    form.fill(&typed.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Vec<_>>());
    let answer = form.answer();
    (form, answer)
}

fn spec() -> Value {
    json!({"spec": {"version": 1, "topic": "t", "questions": [
        {"id": "db", "header": "Database", "question": "Which?", "kind": "single_choice", "required": true,
         "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}], "default": "B"},
        {"id": "on", "header": "Platforms", "question": "Where?", "kind": "multi_choice", "required": false,
         "options": [{"label": "x, y", "description": "x"}, {"label": "z", "description": "z"}], "allow_other": true},
        {"id": "key", "header": "Key", "question": "Key?", "kind": "free_text", "required": true, "secret": true}]}})
}

#[test]
fn what_allows_something_hides_no_sign_beside_its_question_either() {
    let mut asks = spec();
    asks["spec"]["questions"][0]["header"] = json!("Data\u{200b}base");
    asks["spec"]["questions"][0]["options"][0] =
        json!({"label": "A", "description": "a\u{200b}b", "preview": "rm\u{200b}  -rf"});
    for (kind, header, description) in [
        ("risk_ack", "Data⟨U+200B⟩base", "a⟨U+200B⟩b"),
        ("permission_override", "Data⟨U+200B⟩base", "a⟨U+200B⟩b"),
        ("clarification", "Data\u{200b}base", "a\u{200b}b"),
    ] {
        asks["question_type"] = json!(kind);
        let field = &Form::of(&asked(asks.clone())).fields[0];
        assert_eq!(field.header, header);
        assert_eq!(field.options[0].description.as_deref(), Some(description));
        let preview = field.options[0].preview.as_deref().unwrap();
        assert_eq!(preview.contains("rm⟨U+200B⟩  -rf"), kind != "clarification", "{preview}");
    }
}

#[test]
fn a_choice_is_its_label_exactly() {
    let choices = json!({"expected_answer": {"kind": "single_choice", "choices": [" yes ", "no\r\nnever"]}});
    assert_eq!(answered(choices.clone(), &[("f0", "1")]).1, Some(json!("no\r\nnever")));
    assert_eq!(answered(choices, &[("f0", "0")]).1, Some(json!(" yes ")));
}

#[test]
fn several_choices_stand_in_the_order_of_the_options_and_other_text_last() {
    let choices =
        json!({"expected_answer": {"kind": "multi_choice", "choices": ["a", "b"], "allow_other": true}});
    let typed = [("f0", "1"), ("f0.text", "c"), ("f0", "0")];
    assert_eq!(answered(choices, &typed).1, Some(json!(["a", "b", "c"])));
}

#[test]
fn nothing_typed_is_no_consent_to_a_default() {
    let (form, answer) = answered(spec(), &[]);
    assert_eq!(answer, Some(json!({})));
    assert!(form.fields[0].options[1].recommended);
    assert!(form.fields.iter().all(|field| field.options.iter().all(|option| !option.chosen)));
}

#[test]
fn a_default_that_is_no_option_is_shown_and_not_filled_in() {
    for (expected, shown) in [
        (json!({"kind": "free_text", "default": "main"}), Some("main")),
        (json!({"kind": "json", "default": {"a": 1}}), Some("{\n  \"a\": 1\n}")),
        (json!({"kind": "single_choice", "choices": ["a", "b"], "default": "b"}), None),
        (json!({"kind": "free_text"}), None),
    ] {
        let (form, answer) = answered(json!({"expected_answer": expected}), &[]);
        assert_eq!((form.fields[0].default.as_deref(), answer), (shown, None), "{expected}");
        assert_eq!(form.fields[0].text(), "");
    }
}

#[test]
fn nothing_typed_is_no_answer_whatever_the_question_takes() {
    for (expected, words) in [
        (json!(null), "Write an answer."),
        (json!({"kind": "json"}), "Write an answer."),
        (json!({"kind": "single_choice", "choices": ["a"]}), "Choose one."),
        (json!({"kind": "multi_choice", "choices": ["a"]}), "Choose at least one."),
    ] {
        for typed in [&[][..], &[("f0.text", " \r\n")], &[("f0", "7")]] {
            let (form, answer) = answered(json!({"expected_answer": expected}), typed);
            assert_eq!((answer, form.fields[0].error.as_deref()), (None, Some(words)), "{expected}");
        }
    }
}

#[test]
fn a_page_names_no_schema_that_no_text_is_held_to() {
    let schema = json!({"pattern": "^T-"});
    for (kind, open, shown) in
        [("free_text", false, true), ("free_text", true, false), ("json", false, true), ("json", true, true)]
    {
        let mut question = json!({"expected_answer": {"kind": kind, "schema": schema}});
        if open {
            question["interaction"] = json!({"prompt": "p"});
        }
        let (form, _) = answered(question, &[]);
        assert_eq!(form.fields[0].schema.is_some(), shown, "{kind} {open}");
    }
}

#[test]
fn a_form_is_a_mapping_of_what_was_filled_in() {
    let typed = [("f0", "0"), ("f1", "0"), ("f1.text", "w"), ("f2.secret", "s3cret")];
    assert_eq!(answered(spec(), &typed).1, Some(json!({"db": "A", "on": ["x, y", "w"], "key": "s3cret"})));
}

#[test]
fn a_choice_and_a_text_at_once_are_asked_about() {
    let choices =
        json!({"expected_answer": {"kind": "single_choice", "choices": ["a"], "allow_other": true}});
    let (form, answer) = answered(choices.clone(), &[("f0", "0"), ("f0.text", "b")]);
    assert_eq!(answer, None);
    assert!(form.fields[0].error.as_ref().unwrap().contains("also wrote"));
    assert_eq!(answered(choices.clone(), &[("f0", "other"), ("f0.text", "b")]).1, Some(json!("b")));
    assert_eq!(answered(choices, &[("f0.text", "b")]).1, Some(json!("b")), "typing alone is enough");
}

#[test]
fn an_optional_choice_that_was_made_can_be_taken_back() {
    let choice = |id: &str, required: bool| {
        json!({"id": id, "header": id, "question": "Which?", "kind": "single_choice", "required": required,
            "allow_other": true, "options": [{"label": "A", "description": "a"}]})
    };
    let spec =
        json!({"spec": {"version": 1, "topic": "t", "questions": [choice("a", true), choice("b", false)]}});
    let (_, answer) = answered(spec.clone(), &[("f0", "0"), ("f1", "none")]);
    assert_eq!(answer, Some(json!({"a": "A"})));
    let (form, answer) = answered(spec, &[("f0", "0"), ("f1", "none"), ("f1.text", "b")]);
    assert_eq!(answer, None, "not both at once");
    assert!(form.fields[1].error.as_ref().unwrap().contains("You chose no answer and also wrote"));
}

#[test]
fn something_else_without_a_text_is_asked_about_and_never_taken_for_no_answer() {
    for (required, shape) in [(true, "spec"), (false, "spec"), (true, "choice")] {
        let choice = json!({"id": "a", "header": "a", "question": "Which?", "kind": "single_choice",
            "required": required, "allow_other": true, "options": [{"label": "A", "description": "a"}]});
        let asks = match shape {
            "spec" => json!({"spec": {"version": 1, "topic": "t", "questions": [choice]}}),
            _ => json!({"expected_answer": {"kind": "single_choice", "choices": ["A"], "allow_other": true}}),
        };
        for blank in [&[("f0", "other")][..], &[("f0", "other"), ("f0.text", " \r\n")]] {
            let (form, answer) = answered(asks.clone(), blank);
            assert_eq!(answer, None, "{required} {shape}");
            let error = form.fields[0].error.as_deref().unwrap();
            assert!(error.starts_with("You chose “Something else” and wrote nothing."), "{error}");
            assert!(form.fields[0].other_chosen, "it comes back as it was sent");
        }
    }
    let mut card = spec();
    card["spec"]["questions"][0]["allow_other"] = json!(true);
    card["interaction"] = json!({"prompt": "p"});
    let (form, answer) = answered(card.clone(), &[("words", "x"), ("f0", "other")]);
    assert_eq!(
        answer,
        Some(json!("x")),
        "it can be chosen and not be taken back: own words are the answer then"
    );
    assert!(form.error.is_none());
    let (form, answer) = answered(card, &[("words", "x"), ("f0", "other"), ("f0.text", "y")]);
    assert!(answer.is_none() && form.error.is_some(), "which of the two counts is not plain");
}

#[test]
fn a_secret_is_never_sent_back() {
    let (form, _) = answered(spec(), &[("f2.secret", "s3cret")]);
    assert_eq!(form.fields[2].text(), "");
    assert!(form.kept().iter().all(|(_, text)| !text.contains("s3cret")));
}

#[test]
fn a_secret_that_is_taken_out_of_a_form_is_asked_for_again() {
    let secret = |kind: &str| {
        let mut spec = spec();
        spec["spec"]["questions"][2] = json!({"id": "key", "header": "Key", "question": "Key?", "kind": kind,
            "required": false, "secret": true});
        if kind != "free_text" {
            spec["spec"]["questions"][2]["options"] = json!([{"label": "s3cret", "description": "x"}]);
            spec["spec"]["questions"][2]["allow_other"] = json!(true);
        }
        spec
    };
    let again = "Type this again: secrets are not sent back.";
    for (kind, typed) in [
        ("free_text", ("f2.secret", "s3cret")),
        ("single_choice", ("f2", "0")),
        ("multi_choice", ("f2", "0")),
    ] {
        let (mut form, _) = answered(secret(kind), &[typed]);
        form.refuse(&["/db: the required question \"db\" is not answered".into()]);
        form.forget();
        assert_eq!(form.fields[2].error.as_deref(), Some(again));
        assert!(!form.fields[2].is_filled() && form.forgot);
        assert_eq!(form.fields[0].error.as_deref(), Some("Choose one."));
    }
    let (mut form, answer) = answered(secret("single_choice"), &[("f2", "0"), ("f2.secret", "x")]);
    form.forget();
    let error = form.fields[2].error.as_deref().unwrap();
    assert!(answer.is_none() && error.ends_with(again) && !error.contains("s3cret"), "{error}");
    let (mut form, _) = answered(secret("free_text"), &[("f0", "0")]);
    form.forget();
    assert!(!form.has_error() && !form.forgot, "one that was left alone is not asked for");
}

#[test]
fn what_was_typed_is_kept_for_a_late_answer() {
    let (form, _) = answered(spec(), &[("f0", "1"), ("f1.text", "w\r\nv")]);
    assert_eq!(form.kept(), [("Database".into(), "B".into()), ("Platforms".into(), "w\nv".into())]);
}

#[test]
fn reasons_stand_beside_their_fields() {
    let (mut form, _) = answered(spec(), &[("f0", "0"), ("f1.text", "w")]);
    form.refuse(&[
        "/key: the required question \"key\" is not answered".into(),
        "/on/0: odd".into(),
        "x".into(),
    ]);
    assert_eq!(form.fields[2].error.as_deref(), Some("Write an answer."));
    assert_eq!(form.fields[1].error.as_deref(), Some("odd"));
    assert_eq!(form.error.as_deref(), Some("x"));
    assert!(form.has_error());
}

#[test]
fn text_that_is_no_json_says_where() {
    let json = json!({"expected_answer": {"kind": "json"}});
    let (form, answer) = answered(json.clone(), &[("f0.text", "{a}")]);
    assert_eq!(answer, None);
    assert!(form.fields[0].error.as_ref().unwrap().starts_with("This is not JSON"));
    assert_eq!(answered(json, &[("f0.text", "[1]")]).1, Some(json!([1])));
}

#[test]
fn an_engines_own_question_takes_its_options_and_any_text() {
    let open = json!({"interaction": {"options": [{"label": "Yes, go", "value": "yes"}, {"label": "No", "value": 0}]}});
    assert_eq!(answered(open.clone(), &[("f0", "0")]).1, Some(json!("yes")));
    assert_eq!(answered(open.clone(), &[("f0", "1")]).1, Some(json!("No")));
    let (both, _) = answered(open.clone(), &[("f0", "0"), ("f0.text", "maybe")]);
    let error = both.fields[0].error.as_deref().unwrap();
    assert!(error.starts_with("You chose “Yes, go” and"), "as the page shows it: {error}");
    assert_eq!(answered(open, &[("f0.text", "maybe")]).1, Some(json!("maybe")));
}

#[test]
fn a_whole_card_can_be_answered_in_ones_own_words_but_not_both_ways_at_once() {
    let mut card = spec();
    card["interaction"] = json!({"prompt": "p"});
    assert_eq!(answered(card.clone(), &[("words", "do as you like")]).1, Some(json!("do as you like")));
    let (form, answer) = answered(card, &[("words", "x"), ("f0", "0")]);
    assert_eq!(answer, None);
    assert!(form.error.is_some());
}
