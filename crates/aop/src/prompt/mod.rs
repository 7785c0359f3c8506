//! Putting a question to the human at this terminal: arrow keys, several choices, free text, Esc. What is asked
//! and what a reply means is the terminal dialogue's business; this shows it.

mod beside;
mod draw;
mod editor;
mod keys;
mod list;
mod stage;
mod widgets;

pub(crate) use beside::{Beside, Ended, QUIET, Typing, ask_while_open, time_left, typed_out};
pub(crate) use stage::{PULSE, Wanted};

use crate::output::live::is_in_front;
use crate::output::question::above_prompt;
use crate::output::style::{clean, is_dumb};
use crate::output::talk;
use aop_ask::{Dialogue, OnEscape, Options, QuestionSpec, Step, Target};
use aop_kernel::question::{AnswerKind, Asked, Question};
use aop_kernel::{ErrorCode, Refusal};
use draw::{Look, Stop, draw};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::IsTerminal;

/// How a prompt ended.
#[derive(Debug)]
pub(crate) enum Reply {
    /// With this answer.
    Answer(Value),
    /// With Esc: not now.
    Skipped,
    /// With Ctrl-C: stop everything.
    Interrupted,
}

/// Whether a person can be asked here: keys come in from a terminal, and the prompt is drawn on one that can do more than
/// print lines.
pub(crate) fn possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !is_dumb() && is_in_front()
}

/// Asks until the answer is complete, or the human does not want to. It begins with the answer that the same human gave
/// before, never with a default: enter alone would send that as the human's own.
fn ask(question: &Question, begun: Option<&Value>, wanted: &Wanted) -> Result<Reply, Refusal> {
    let asked = &question.asked;
    let expected = asked.expected_answer.as_ref();
    let careful = asked.question_type.grants();
    let above = &above_prompt(question);
    if expected.is_some_and(|expected| expected.kind == AnswerKind::Json) {
        return json_value(&asked.prompt, above, begun, wanted);
    }
    match &asked.spec {
        Some(spec) => form(spec, above, begun, careful, wanted),
        None => {
            let begun = begun.map(|begun| json!({ONLY: begun}));
            Ok(match form(&as_spec(question)?, above, begun.as_ref(), careful, wanted)? {
                Reply::Answer(mapping) => Reply::Answer(told(asked, mapping[ONLY].clone())),
                other => other,
            })
        }
    }
}

/// Asks a whole form; the answer is its bare mapping. Esc goes back to the question before, and leaves the first.
fn form(
    spec: &QuestionSpec,
    above: &str,
    begun: Option<&Value>,
    careful: bool,
    wanted: &Wanted,
) -> Result<Reply, Refusal> {
    let mut answers = Answering::begin(spec, begun)?;
    loop {
        let request = match answers.dialogue.next() {
            Step::Done(answers) => return Ok(Reply::Answer(answers.to_json())),
            Step::Escaped { .. } => return Ok(Reply::Skipped),
            Step::Ask(request) => request.input,
        };
        let id = request["id"].as_str().unwrap_or_default();
        let look = Look {
            place: &place(spec, id),
            above,
            escape: if answers.trail.is_empty() { "esc to skip" } else { "esc to go back" },
            begun: answers.said.get(id).map(Vec::as_slice).unwrap_or_default(),
            careful,
            secret: request["secret"] == true,
            wanted,
        };
        match draw(&request, &look) {
            Ok(reply) => answers.take(id, &reply)?,
            Err(Stop::Escaped) => {
                if !answers.go_back(id)? {
                    return Ok(Reply::Skipped);
                }
            }
            Err(stop) => return stopped(stop),
        }
    }
}

/// Where a form stands, and what was said to each of its questions, which they begin with when they come again. What was
/// said to a secret one is not kept: nobody sees what would be there.
struct Answering {
    dialogue: Dialogue,
    said: HashMap<String, Vec<String>>,
    /// The questions that were replied to, one for each reply.
    trail: Vec<String>,
}

impl Answering {
    fn begin(spec: &QuestionSpec, begun: Option<&Value>) -> Result<Self, Refusal> {
        let options = Options { on_escape: OnEscape::ReturnPrevious, ..Options::default() };
        let dialogue = Dialogue::start(spec.clone(), Target::Terminal, options)
            .map_err(|violation| Refusal::new(ErrorCode::Internal, violation.message))?;
        let mut answers = Answering { dialogue, said: HashMap::new(), trail: Vec::new() };
        for (id, answer) in begun.and_then(Value::as_object).into_iter().flatten() {
            answers.keep(id, answer);
        }
        Ok(answers)
    }

    fn keep(&mut self, id: &str, answer: &Value) {
        if self.dialogue.spec().question(id).is_some_and(|question| !question.secret()) {
            self.said.insert(id.to_owned(), words(answer));
        }
    }

    fn take(&mut self, id: &str, reply: &Value) -> Result<(), Refusal> {
        self.keep(id, if reply["text"].is_string() { &reply["text"] } else { &reply["selected"] });
        self.trail.push(id.to_owned());
        self.reply(reply)
    }

    /// Back to the question before this one, past all that was said to this one itself. False when there is none.
    fn go_back(&mut self, id: &str) -> Result<bool, Refusal> {
        while let Some(before) = self.trail.pop() {
            self.reply(&json!({"escaped": true}))?;
            if before != id {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn reply(&mut self, reply: &Value) -> Result<(), Refusal> {
        self.dialogue.reply(reply).map_err(|violation| Refusal::new(ErrorCode::Internal, violation.message))
    }
}

/// "(2 of 5, optional) ", as far as there is something to say.
fn place(spec: &QuestionSpec, id: &str) -> String {
    let questions = spec.questions();
    let index = questions.iter().position(|question| question.id() == id);
    let number =
        index.filter(|_| questions.len() > 1).map(|index| format!("{} of {}", index + 1, questions.len()));
    let optional = index.filter(|index| !questions[*index].required()).map(|_| "optional".to_owned());
    let parts: Vec<String> = number.into_iter().chain(optional).collect();
    if parts.is_empty() { String::new() } else { format!("({}) ", parts.join(", ")) }
}

/// The texts of an answer: one, or those of a list.
fn words(answer: &Value) -> Vec<String> {
    let texts = answer.as_array().map_or_else(|| std::slice::from_ref(answer), Vec::as_slice);
    texts.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What a prompt that has no answer means.
fn stopped(stop: Stop) -> Result<Reply, Refusal> {
    match stop {
        Stop::Escaped | Stop::Withdrawn => Ok(Reply::Skipped),
        Stop::Interrupted => Ok(Reply::Interrupted),
        Stop::Failed(cause) => {
            Err(Refusal::new(ErrorCode::Internal, format!("the prompt could not be shown: {cause}"))
                .hint("answer with --answer or --answer-file instead"))
        }
    }
}

/// The one field of a question that is no form.
const ONLY: &str = "answer";

/// What is told of a chosen option that an engine's own interaction has another word for.
fn told(asked: &Asked, answer: Value) -> Value {
    let chosen = asked.offered().into_iter().find(|option| answer == option.label);
    chosen.filter(|_| asked.expected_answer.is_none()).map_or(answer, |option| Value::String(option.value))
}

/// A question with choices or free text, as a form of one field, so that there is one way to ask.
fn as_spec(question: &Question) -> Result<QuestionSpec, Refusal> {
    let asked = &question.asked;
    let expected = asked.expected_answer.as_ref();
    let choices = expected.and_then(|expected| expected.choices.as_ref());
    let mut field = json!({"id": ONLY, "header": "Answer", "question": asked.prompt, "required": true});
    let offered: Vec<String> = asked.offered().into_iter().map(|option| option.label).collect();
    let options = |labels: &[String]| -> Value {
        labels.iter().map(|label| json!({"label": label, "description": label})).collect()
    };
    match (choices, expected.map(|expected| expected.kind)) {
        (Some(choices), Some(kind)) => {
            field["kind"] = json!(kind);
            field["options"] = options(choices);
            let other = expected.and_then(|expected| expected.allow_other) == Some(true);
            field["allow_other"] = json!(other || asked.interaction.is_some());
            // A default in own words is none of the options; it stands above the prompt, as every default does.
            let is_offered = |default: &&Value| words(default).iter().all(|word| choices.contains(word));
            let default = expected.and_then(|expected| expected.default.as_ref());
            if let Some(default) = default.filter(is_offered) {
                field["default"] = default.clone();
            }
        }
        (_, None) if !offered.is_empty() => {
            field["kind"] = json!("single_choice");
            field["options"] = options(&offered);
            field["allow_other"] = json!(true);
        }
        (_, _) => field["kind"] = json!("free_text"),
    }
    let build = |field: &Value| {
        QuestionSpec::from_json(&json!({"version": 1, "topic": "question", "questions": [field]}))
    };
    // Choices that no form can have (reserved labels, in records of earlier versions) are typed instead.
    let typed = json!({"id": ONLY, "header": "Answer", "question": asked.prompt, "required": true, "kind": "free_text"});
    build(&field).or_else(|_| build(&typed)).map_err(|violations| {
        let found = violations.first().map(|found| found.message.clone()).unwrap_or_default();
        Refusal::new(ErrorCode::Internal, format!("question {} cannot be asked here: {found}", question.id))
    })
}

/// Asks for JSON until it is some; what was typed stays.
fn json_value(prompt: &str, above: &str, begun: Option<&Value>, wanted: &Wanted) -> Result<Reply, Refusal> {
    let mut begun: Vec<String> = begun.map(Value::to_string).into_iter().collect();
    loop {
        let question = format!("{prompt}\n\nThe answer, as JSON:");
        let input = json!({"kind": "text", "question": question, "required": true});
        let escape = "esc to skip";
        let look = Look { place: "", above, escape, begun: &begun, careful: false, secret: false, wanted };
        let typed = match draw(&input, &look) {
            Ok(reply) => reply["text"].as_str().unwrap_or_default().to_owned(),
            Err(stop) => return stopped(stop),
        };
        match aop_ask::json::read_plainly(typed.as_bytes()) {
            Ok(value) => return Ok(Reply::Answer(value)),
            Err(error) => talk(&clean(&format!("that is not JSON: {error}"))),
        }
        begun = vec![typed];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> QuestionSpec {
        let text = |id: &str, required: bool| json!({"id": id, "header": id, "question": format!("{id}?"), "kind": "free_text", "required": required});
        let pick = json!({"id": "b", "header": "b", "question": "b?", "kind": "multi_choice", "required": true,
            "default": ["x"], "options": [{"label": "x", "description": "X"}, {"label": "y", "description": "Y"}]});
        let questions = json!([text("a", true), pick, text("c", false)]);
        QuestionSpec::from_json(&json!({"version": 1, "topic": "t", "questions": questions})).unwrap()
    }

    /// The question that is being asked.
    fn asked(answering: &Answering) -> String {
        match answering.dialogue.next() {
            Step::Ask(request) => request.input["id"].as_str().unwrap().to_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn esc_goes_back_one_question_keeps_what_was_said_and_leaves_the_first() {
        let mut answering = Answering::begin(&spec(), None).unwrap();
        assert!(!answering.go_back("a").unwrap());
        answering.take("a", &json!({"text": "one"})).unwrap();
        answering.take("b", &json!({"selected": ["y"]})).unwrap();
        assert_eq!(asked(&answering), "c");
        assert!(answering.go_back("c").unwrap());
        assert_eq!((asked(&answering).as_str(), &answering.said["b"]), ("b", &vec!["y".to_owned()]));
        // A reply that was not taken is no question of its own to go back to.
        answering.take("b", &json!({"selected": []})).unwrap();
        assert_eq!(asked(&answering), "b");
        assert!(answering.go_back("b").unwrap());
        assert_eq!((asked(&answering).as_str(), &answering.said["a"]), ("a", &vec!["one".to_owned()]));
        assert!(!answering.go_back("a").unwrap());
        for (id, reply) in
            [("a", json!({"text": "two"})), ("b", json!({"selected": ["y"]})), ("c", json!({"text": ""}))]
        {
            answering.take(id, &reply).unwrap();
        }
        assert!(matches!(answering.dialogue.next(), Step::Done(answers)
            if answers.to_json() == json!({"a": "two", "b": ["y"]})));
    }

    #[test]
    fn a_form_says_which_question_of_how_many_it_is_and_which_is_optional() {
        assert_eq!(place(&spec(), "b"), "(2 of 3) ");
        assert_eq!(place(&spec(), "c"), "(3 of 3, optional) ");
    }

    #[test]
    fn a_form_begins_with_what_was_answered_before_and_never_with_its_defaults_or_a_secret() {
        let begun = json!({"a": "one", "b": ["x", "y"]});
        let said = |spec: &QuestionSpec, begun: Option<&Value>| Answering::begin(spec, begun).unwrap().said;
        assert_eq!(said(&spec(), Some(&begun))["b"], ["x", "y"]);
        assert_eq!(said(&spec(), Some(&begun))["a"], ["one"]);
        assert!(said(&spec(), None).is_empty());
        let mut secret = spec().to_json();
        secret["questions"][1]["secret"] = json!(true);
        let secret = QuestionSpec::from_json(&secret).unwrap();
        assert_eq!(said(&secret, Some(&begun)).len(), 1);
        let mut answering = Answering::begin(&secret, None).unwrap();
        answering.take("a", &json!({"text": "one"})).unwrap();
        answering.take("b", &json!({"selected": ["y"]})).unwrap();
        assert!(!answering.said.contains_key("b"));
    }
}
