//! A pile of questions, raised, listed and answered one by one: in our store, or in the bare database.

use crate::calls::{call, question_id};
use crate::place::Place;
use crate::wait::wait;
use crate::ways::floor::Bare;
use aop_kernel::ids::OperationId;
use aop_kernel::question::{Question, QuestionStatus};
use aop_kernel::role::{Caller, Role};
use aop_kernel::tools::{Call, QuestionFilter, Tool, lone_feature, parse};
use aop_store::{QuestionPage, Service, fresh_operation};
use serde_json::{Value, json};
use std::ops::Range;
use std::path::PathBuf;

pub(crate) const PROMPT: &str = "Which of the two would you rather have here?";

/// An open question, with the call that answers it.
#[derive(Clone)]
pub(crate) struct Open {
    pub(crate) id: String,
    answer: Value,
}

/// Every call that changes something returns when it is durable.
pub(crate) trait Desk: Sync {
    fn raise(&self, number: u64) -> String;

    /// Raises these in a few commits and names them; how many, which is none where there is no such shortcut.
    fn raise_in_bulk(&self, numbers: Range<u64>, said: &dyn Fn(&str)) -> u64;

    /// The oldest ones, as whoever passes them on has them; how many.
    fn page(&self, limit: usize) -> usize;

    /// The oldest ones by name.
    fn open(&self, limit: usize) -> Vec<Open>;

    /// The most urgent ones, with how many there are in all, as a person sees them.
    fn inbox(&self, limit: usize) -> usize;

    fn answer(&self, question: &Open);
}

/// Which one, so that another process can open it too.
#[derive(Clone)]
pub(crate) struct Which {
    pub(crate) place: Place,
    pub(crate) folder: PathBuf,
    /// `floor`, or the project.
    pub(crate) name: String,
}

impl Which {
    pub(crate) fn open(&self) -> Box<dyn Desk> {
        if self.name == FLOOR {
            std::fs::create_dir_all(&self.folder).unwrap();
            return Box::new(Floor(Bare::open(&self.folder.join("floor.db"))));
        }
        Box::new(Ours(self.place.open(&self.folder, &self.name)))
    }

    pub(crate) fn is_floor(&self) -> bool {
        self.name == FLOOR
    }

    /// A process that does this with it.
    pub(crate) fn child(&self, what: &str) -> std::process::Command {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args([what, self.place.text()]).arg(&self.folder).arg(&self.name);
        command
    }
}

pub(crate) const FLOOR: &str = "floor";

struct Ours(Service);

fn oldest(limit: usize) -> QuestionPage {
    QuestionPage { feature: None, filter: QuestionFilter::Only(QuestionStatus::Open), after: None, limit }
}

impl Desk for Ours {
    /// A question that brings its feature along, as with `aop ask`.
    fn raise(&self, _: u64) -> String {
        let operation = fresh_operation();
        let input = json!({"feature_id": lone_feature(&OperationId::parse(&operation).unwrap()),
            "role": "human", "session_id": "bench",
            "question_type": "clarification", "prompt": PROMPT,
            "expected_answer": {"kind": "single_choice", "choices": ["this", "that"]},
            "operation_id": operation});
        let parsed = parse(Tool::QuestionCreate, &Caller::new(Role::Human), &input, "bench", &self.0.rules);
        let Call::Mutate(request) = parsed.unwrap() else { unreachable!("asking changes something") };
        let receipt = wait(self.0.submit(request.bringing_feature(PROMPT.to_owned()))).unwrap();
        question_id(&receipt.envelope).to_string()
    }

    fn raise_in_bulk(&self, _: Range<u64>, _: &dyn Fn(&str)) -> u64 {
        0
    }

    fn page(&self, limit: usize) -> usize {
        wait(self.0.store.records(oldest(limit))).unwrap().len()
    }

    fn open(&self, limit: usize) -> Vec<Open> {
        let questions = wait(self.0.store.questions(oldest(limit))).unwrap();
        let open = |question: &Question| Open {
            id: question.id.to_string(),
            answer: json!({"feature_id": question.feature_id, "question_id": question.id, "answer": "this",
                "answered_by": "bench", "operation_id": fresh_operation()}),
        };
        questions.iter().map(open).collect()
    }

    fn inbox(&self, limit: usize) -> usize {
        wait(self.0.store.inbox(0, limit)).unwrap().items.len()
    }

    fn answer(&self, question: &Open) {
        wait(call(&self.0, Tool::QuestionAnswer, &question.answer));
    }
}

struct Floor(Bare);

/// As long as our ids, and growing like them.
fn floor_id(number: u64) -> String {
    format!("q_{number:026}")
}

impl Desk for Floor {
    fn raise(&self, number: u64) -> String {
        let id = floor_id(number);
        self.0.ask(std::slice::from_ref(&id));
        id
    }

    fn raise_in_bulk(&self, numbers: Range<u64>, said: &dyn Fn(&str)) -> u64 {
        let all: Vec<String> = numbers.map(floor_id).collect();
        for share in all.chunks(10_000) {
            self.0.ask(share);
            share.iter().for_each(|id| said(id));
        }
        all.len() as u64
    }

    fn page(&self, limit: usize) -> usize {
        self.0.page(limit).len()
    }

    fn open(&self, limit: usize) -> Vec<Open> {
        let open = |(id, _)| Open { id, answer: Value::Null };
        self.0.page(limit).into_iter().map(open).collect()
    }

    fn inbox(&self, limit: usize) -> usize {
        self.page(limit)
    }

    fn answer(&self, question: &Open) {
        self.0.answer(&question.id);
    }
}
