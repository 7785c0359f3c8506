//! Arbitrary valid specs with arbitrary intended answers.

use aop_ask::{AnswerValue, QuestionSpec};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// A spec, what the human means, and the required questions they overlook at first.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) spec: QuestionSpec,
    pub(crate) means: HashMap<String, AnswerValue>,
    pub(crate) overlooks: HashSet<String>,
}

/// A pattern, parsed once; a bare pattern as a strategy would be parsed for every text it makes.
fn regex(pattern: &str) -> impl Strategy<Value = String> + use<> {
    prop::string::string_regex(pattern).unwrap()
}

/// Short texts with everything that could confuse a tool, and the words we use ourselves.
fn label() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => regex("[A-D]"),
        2 => regex("[A-C], [A-C]"),
        3 => regex("[a-zA-Z0-9 ,;'\"`éß漢字🎈/~.:(){}-]{1,14}"),
        1 => prop::sample::select(vec!["Done", "Skip", "Back", "Add another", "Done (aop)", "None of the above"])
            .prop_map(str::to_owned),
    ]
    .prop_filter("labels are not blank", |label| !label.trim().is_empty())
}

fn prose() -> impl Strategy<Value = String> {
    regex("[a-zA-Z ,.'\"é漢\n]{0,20}[a-z?]")
}

/// Text that a human might type. What equals one of our own words could not be told from picking it on
/// tools that return a bare text, so nobody types those here; the same holds for Codex's own markers.
fn typed() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => regex("[a-z]{1,6}(, [A-C]){0,2}!"),
        1 => regex("[ \n]{0,2}[a-zé漢\"',]{1,12}\\?[ \n]{0,2}"),
    ]
}

#[derive(Debug, Clone)]
struct Draft {
    kind: u8,
    required: bool,
    allow_other: bool,
    labels: Vec<String>,
    clusters: Option<Vec<u8>>,
    text: String,
    others: Vec<String>,
    picks: Vec<prop::sample::Index>,
    default: Option<prop::sample::Index>,
    answered: bool,
    overlooked: bool,
}

fn draft() -> impl Strategy<Value = Draft> {
    let shape =
        (0u8..3, any::<bool>(), any::<bool>(), vec(label(), 1..=40), prop::option::of(vec(0u8..6, 40)));
    let says = (prose(), vec(typed(), 1..=3), vec(any::<prop::sample::Index>(), 1..=5));
    let rest = (prop::option::of(any::<prop::sample::Index>()), any::<bool>(), any::<bool>());
    (shape, says, rest).prop_map(
        |((kind, required, allow_other, labels, clusters), (text, others, picks), rest)| {
            let (default, answered, overlooked) = rest;
            let mut seen = HashSet::new();
            let labels: Vec<String> = labels.into_iter().filter(|label| seen.insert(label.clone())).collect();
            Draft {
                kind,
                required,
                allow_other,
                labels,
                clusters,
                text,
                others,
                picks,
                default,
                answered,
                overlooked,
            }
        },
    )
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    (vec(draft(), 1..=12), any::<bool>()).prop_map(|(drafts, same_text)| {
        let mut questions = Vec::new();
        let mut means = HashMap::new();
        let mut overlooks = HashSet::new();
        for (index, draft) in drafts.iter().enumerate() {
            let id = format!("q_{index}");
            // Questions that share one text, as careless authors write them.
            let text = if same_text && index % 3 == 1 { "Which one?" } else { &draft.text };
            questions.push(question(&id, index, text, draft));
            if draft.required || draft.answered {
                means.insert(id.clone(), meant(draft));
            }
            if draft.required && draft.overlooked {
                overlooks.insert(id);
            }
        }
        let spec = json!({"version": 1, "topic": "law", "questions": questions});
        Case { spec: QuestionSpec::from_json(&spec).unwrap(), means, overlooks }
    })
}

fn question(id: &str, index: usize, text: &str, draft: &Draft) -> Value {
    let kind = ["single_choice", "multi_choice", "free_text"][usize::from(draft.kind)];
    let mut question = json!({
        "id": id, "header": format!("Q{index} in a long header"), "question": text, "kind": kind,
        "required": draft.required,
    });
    if draft.kind == 2 {
        return question;
    }
    let options: Vec<Value> = draft
        .labels
        .iter()
        .enumerate()
        .map(|(at, label)| {
            let mut option = json!({"label": label, "description": "What it means,\n\"quoted\""});
            match draft.clusters.as_ref().map(|clusters| clusters[at]) {
                None | Some(0) => {}
                Some(cluster) => option["cluster"] = format!("cluster {cluster}").into(),
            }
            option
        })
        .collect();
    question["options"] = options.into();
    question["allow_other"] = draft.allow_other.into();
    if let Some(index) = &draft.default {
        let label = index.get(&draft.labels);
        question["default"] = if draft.kind == 0 { json!(label) } else { json!([label]) };
    }
    question
}

fn meant(draft: &Draft) -> AnswerValue {
    let other = &draft.others[0];
    let label = draft.picks[0].get(&draft.labels);
    match draft.kind {
        0 if draft.allow_other && draft.answered => AnswerValue::One(other.clone()),
        0 => AnswerValue::One(label.clone()),
        1 => {
            let others = draft.others.iter().filter(|_| draft.allow_other);
            let mut seen = HashSet::new();
            let all = draft.picks.iter().map(|pick| pick.get(&draft.labels)).chain(others);
            AnswerValue::Many(all.filter(|item| seen.insert((*item).clone())).cloned().collect())
        }
        _ => AnswerValue::One(other.clone()),
    }
}
