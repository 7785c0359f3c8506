//! The rules of a question spec. One function per object of the document; each notes everything that is
//! wrong below it and returns the typed value only when its own part is sound.

use super::read::{flag, list, member, object, one_of, optional_flag, string, text};
use super::{Choice, Kind, Question, QuestionSpec, RESERVED_LABELS};
use crate::answer::AnswerValue;
use crate::violation::{Report, Violation, close, join, quote, show};
use serde_json::{Map, Value};
use std::collections::HashSet;

const SPEC_KEYS: [&str; 3] = ["version", "topic", "questions"];
const QUESTION_KEYS: [&str; 9] =
    ["id", "header", "question", "kind", "required", "options", "allow_other", "default", "secret"];
const OPTION_KEYS: [&str; 4] = ["label", "description", "preview", "cluster"];

/// Checks a whole document.
pub(super) fn spec(document: Value, mut report: Report) -> Result<QuestionSpec, Vec<Violation>> {
    let parts = document_parts(&mut report, &document);
    let (version, topic, questions) = report.finish(parts)?;
    Ok(QuestionSpec { document, version, topic, questions })
}

fn document_parts(report: &mut Report, document: &Value) -> Option<(u64, String, Vec<Question>)> {
    let map = object(report, "", document, "a question spec")?;
    close(report, "", map, &SPEC_KEYS);
    let version = version(report, map);
    let topic = text(report, "", map, "topic");
    let questions = questions(report, map);
    Some((version?, topic?, questions?))
}

fn version(report: &mut Report, map: &Map<String, Value>) -> Option<u64> {
    let value = member(report, "", map, "version")?;
    let version = value.as_u64().filter(|version| *version >= 1);
    if version.is_none() {
        report.add(
            "invalid_version",
            "/version",
            format!("version is {}, but must be an integer of at least 1", show(value)),
            "write \"version\": 1",
        );
    }
    version
}

fn questions(report: &mut Report, map: &Map<String, Value>) -> Option<Vec<Question>> {
    let value = member(report, "", map, "questions")?;
    let items = list(report, "/questions", value)?;
    if items.is_empty() {
        report.add("empty_list", "/questions", "the spec asks no question", "add at least one question");
        return None;
    }
    let mut seen = HashSet::new();
    let mut questions = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if report.is_full() {
            break;
        }
        let path = join("/questions", index);
        let question = question(report, &path, item);
        if let Some(id) = item.get("id").and_then(Value::as_str)
            && !seen.insert(id)
        {
            report.add(
                "duplicate_id",
                &join(&path, "id"),
                format!("the id {} is taken by an earlier question", quote(id)),
                "give each question its own id; answers are recorded under it",
            );
        }
        questions.extend(question);
    }
    (questions.len() == items.len()).then_some(questions)
}

fn question(report: &mut Report, path: &str, value: &Value) -> Option<Question> {
    let map = object(report, path, value, "a question")?;
    close(report, path, map, &QUESTION_KEYS);
    let id = id(report, path, map);
    let header = text(report, path, map, "header");
    let question = text(report, path, map, "question");
    let kind = kind(report, path, map);
    let required = member(report, path, map, "required").and_then(|v| flag(report, path, "required", v));
    let secret = optional_flag(report, path, map, "secret");
    if kind == Some(Kind::FreeText) {
        refuse_choice_keys(report, path, map);
        let (options, allow_other, default) = (Vec::new(), false, None);
        return Some(Question {
            id: id?,
            header: header?,
            question: question?,
            kind: Kind::FreeText,
            required: required?,
            options,
            allow_other,
            default,
            secret: secret?,
        });
    }
    let allow_other = optional_flag(report, path, map, "allow_other");
    let options = match (map.get("options"), kind) {
        // Without a kind nobody knows whether options are due; the missing kind is complaint enough.
        (None, None) => None,
        _ => options(report, path, map),
    };
    let default = default(report, path, map, kind);
    Some(Question {
        id: id?,
        header: header?,
        question: question?,
        kind: kind?,
        required: required?,
        options: options?,
        allow_other: allow_other?,
        default: default?,
        secret: secret?,
    })
}

fn refuse_choice_keys(report: &mut Report, path: &str, map: &Map<String, Value>) {
    for key in ["options", "allow_other", "default"] {
        if map.contains_key(key) {
            report.add(
                "not_for_free_text",
                &join(path, key),
                format!("a free_text question carries no {key}"),
                format!("remove {key}, or make the kind single_choice or multi_choice"),
            );
        }
    }
}

fn id(report: &mut Report, path: &str, map: &Map<String, Value>) -> Option<String> {
    let id = text(report, path, map, "id")?;
    if is_snake_case(&id) {
        return Some(id);
    }
    report.add(
        "invalid_id",
        &join(path, "id"),
        format!("the id {} is not snake_case", quote(&id)),
        "use lower-case letters and digits, starting with a letter, single underscores between words",
    );
    None
}

/// Whether `id` matches `^[a-z][a-z0-9]*(_[a-z0-9]+)*$`.
pub(crate) fn is_snake_case(id: &str) -> bool {
    id.starts_with(|c: char| c.is_ascii_lowercase())
        && id.split('_').all(|word| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

fn kind(report: &mut Report, path: &str, map: &Map<String, Value>) -> Option<Kind> {
    let name = one_of(report, path, map, "kind", &Kind::NAMES.map(|(name, _)| name))?;
    Kind::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

fn options(report: &mut Report, path: &str, map: &Map<String, Value>) -> Option<Vec<Choice>> {
    let path = join(path, "options");
    let Some(value) = map.get("options") else {
        report.add(
            "missing_key",
            &path,
            "a choice question needs options",
            "add \"options\": [{\"label\": …, \"description\": …}], or make the kind free_text",
        );
        return None;
    };
    let items = list(report, &path, value)?;
    if items.is_empty() {
        report.add("empty_list", &path, "a choice question has no option", "add at least one option");
        return None;
    }
    let mut seen = HashSet::with_capacity(items.len());
    let mut options = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if report.is_full() {
            break;
        }
        let item_path = join(&path, index);
        let option = option(report, &item_path, item);
        if let Some(label) = item.get("label").and_then(Value::as_str)
            && !seen.insert(label)
        {
            report.add(
                "duplicate_label",
                &join(&item_path, "label"),
                format!("the label {} is taken by an earlier option", quote(label)),
                "give each option its own label; the label is what is recorded",
            );
        }
        options.extend(option);
    }
    (options.len() == items.len()).then_some(options)
}

fn option(report: &mut Report, path: &str, value: &Value) -> Option<Choice> {
    let map = object(report, path, value, "an option")?;
    close(report, path, map, &OPTION_KEYS);
    let label = text(report, path, map, "label");
    let description = text(report, path, map, "description");
    let preview = match map.get("preview") {
        Some(value) => string(report, &join(path, "preview"), value).map(Some),
        None => Some(None),
    };
    let cluster = match map.get("cluster") {
        Some(_) => text(report, path, map, "cluster").map(Some),
        None => Some(None),
    };
    let label = label?;
    if RESERVED_LABELS.contains(&label.as_str()) {
        report.add(
            "reserved_label",
            &join(path, "label"),
            format!("the label {} is reserved for navigation", quote(&label)),
            "choose another label",
        );
        return None;
    }
    Some(Choice { label, description: description?, preview: preview?, cluster: cluster? })
}

/// The default, as `Some(None)` when there is none. It is held against the labels as they stand in the
/// document, so that a mistake elsewhere in the options does not hide one here; where nobody knows the labels or the kind,
/// only its form is judged.
#[expect(clippy::option_option, reason = "the outer level says whether this part of the document is sound")]
fn default(
    report: &mut Report,
    path: &str,
    map: &Map<String, Value>,
    kind: Option<Kind>,
) -> Option<Option<AnswerValue>> {
    let Some(value) = map.get("default") else { return Some(None) };
    let path = join(path, "default");
    let items = map.get("options").and_then(Value::as_array);
    let label = |item: &'_ Value| item.get("label").and_then(Value::as_str).map(str::to_owned);
    let labels = items.map(|items| items.iter().filter_map(label).collect::<HashSet<String>>());
    let labels = labels.as_ref();
    let (wanted, kind) = match (kind, value) {
        (Some(Kind::SingleChoice) | None, Value::String(given)) => {
            return label_of(report, &path, given, labels).map(|label| Some(AnswerValue::One(label)));
        }
        (Some(Kind::MultiChoice) | None, Value::Array(given)) => {
            return default_list(report, &path, given, labels).map(Some);
        }
        (Some(kind @ Kind::MultiChoice), _) => ("a list of labels", kind.as_str()),
        (Some(kind), _) => ("one label", kind.as_str()),
        (None, _) => ("a label or a list of them", "a choice"),
    };
    report.add(
        "wrong_type",
        &path,
        format!("default is {}, but must be {wanted} for {kind}", show(value)),
        format!("write {wanted}, or leave default out when nothing is recommended"),
    );
    None
}

fn default_list(
    report: &mut Report,
    path: &str,
    items: &[Value],
    labels: Option<&HashSet<String>>,
) -> Option<AnswerValue> {
    if items.is_empty() {
        let hint = "name at least one label, or leave default out when nothing is recommended";
        report.add("empty_list", path, "default is an empty list", hint);
        return None;
    }
    let mut seen = HashSet::new();
    let mut chosen = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let path = join(path, index);
        let Some(label) = string(report, &path, item) else { continue };
        let label = label_of(report, &path, &label, labels);
        match label {
            Some(label) if !seen.insert(label.clone()) => report.add(
                "duplicate_choice",
                &path,
                format!("default names {} twice", quote(&label)),
                "name each label once",
            ),
            other => chosen.extend(other),
        }
    }
    (chosen.len() == items.len()).then_some(AnswerValue::Many(chosen))
}

fn label_of(
    report: &mut Report,
    path: &str,
    label: &str,
    labels: Option<&HashSet<String>>,
) -> Option<String> {
    if labels.is_none_or(|labels| labels.contains(label)) {
        return Some(label.to_owned());
    }
    report.add(
        "default_not_an_option",
        path,
        format!("default names {}, which is not a label of this question", quote(label)),
        "write a label exactly as it stands in options; case and spaces count",
    );
    None
}
