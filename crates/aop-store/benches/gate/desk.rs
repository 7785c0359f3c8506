//! A pile of questions, raised, listed and answered one by one: in our store, or in the bare database.

use crate::calls::call;
use crate::place::Place;
use crate::ways::floor;
use aop_kernel::ids::QuestionId;
use aop_kernel::question::QuestionStatus;
use aop_kernel::role::{Caller, Role};
use aop_kernel::tools::{Call, QuestionFilter, Tool, parse};
use aop_store::{QuestionPage, Service};
use rusqlite::Connection;
use serde_json::json;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;

pub(crate) const PROMPT: &str = "Which of the two would you rather have here?";

/// An open question.
#[derive(Clone)]
pub(crate) struct Open {
    pub(crate) id: String,
    feature: String,
}

/// Every call that changes something returns when it is durable.
pub(crate) trait Desk: Sync {
    fn raise(&self, number: u64) -> String;

    /// Raises these in a few commits and names them; how many, which is none where there is no such shortcut.
    fn raise_in_bulk(&self, numbers: Range<u64>, said: &dyn Fn(&str)) -> u64;

    /// The oldest ones.
    fn page(&self, limit: usize) -> Vec<Open>;

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
            return Box::new(Floor(Mutex::new(floor::open(&self.folder.join("floor.db")))));
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

/// Waits on a runtime of the thread's own.
fn wait<T>(future: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}

struct Ours(Service);

impl Desk for Ours {
    /// A question that brings its feature along, as with `aop ask`.
    fn raise(&self, number: u64) -> String {
        let input = json!({"feature_id": format!("ask-{number}"), "role": "human", "session_id": "bench",
            "question_type": "clarification", "prompt": PROMPT,
            "expected_answer": {"kind": "single_choice", "choices": ["this", "that"]},
            "operation_id": format!("raise-{number}")});
        let parsed = parse(Tool::QuestionCreate, &Caller::new(Role::Human), &input, "bench", &self.0.rules);
        let Call::Mutate(request) = parsed.unwrap() else { unreachable!("asking changes something") };
        let receipt = wait(self.0.submit(request.bringing_feature(PROMPT.to_owned()))).unwrap();
        receipt.envelope.data()["question_id"].as_str().unwrap().to_owned()
    }

    fn raise_in_bulk(&self, _: Range<u64>, _: &dyn Fn(&str)) -> u64 {
        0
    }

    fn page(&self, limit: usize) -> Vec<Open> {
        let filter = QuestionFilter::Only(QuestionStatus::Open);
        let questions =
            wait(self.0.store.questions(QuestionPage { feature: None, filter, after: None, limit })).unwrap();
        let open = |id: &QuestionId, feature: String| Open { id: id.to_string(), feature };
        questions.iter().map(|question| open(&question.id, question.feature_id.to_string())).collect()
    }

    fn inbox(&self, limit: usize) -> usize {
        wait(self.0.store.inbox(0, limit)).unwrap().items.len()
    }

    fn answer(&self, question: &Open) {
        let input = json!({"feature_id": question.feature, "question_id": question.id, "answer": "this",
            "answered_by": "bench", "operation_id": format!("answer-{}", question.id)});
        wait(call(&self.0, Tool::QuestionAnswer, input));
    }
}

struct Floor(Mutex<Connection>);

/// As long as our ids, and growing like them.
fn floor_id(number: u64) -> String {
    format!("q_{number:026}")
}

impl Floor {
    fn commit(&self, sql: &str, id: &str, value: &str) {
        let connection = self.0.lock().unwrap();
        assert_eq!(connection.prepare_cached(sql).unwrap().execute((id, value)).unwrap(), 1);
    }
}

impl Desk for Floor {
    fn raise(&self, number: u64) -> String {
        let id = floor_id(number);
        self.commit(floor::ASK, &id, PROMPT);
        id
    }

    fn raise_in_bulk(&self, numbers: Range<u64>, said: &dyn Fn(&str)) -> u64 {
        let (connection, mut next) = (self.0.lock().unwrap(), numbers.start);
        while next < numbers.end {
            let share: Vec<String> = (next..numbers.end).take(10_000).map(floor_id).collect();
            let commit = connection.unchecked_transaction().unwrap();
            let mut ask = commit.prepare_cached(floor::ASK).unwrap();
            share.iter().for_each(|id| assert_eq!(ask.execute((id, PROMPT)).unwrap(), 1));
            drop(ask);
            commit.commit().unwrap();
            share.iter().for_each(|id| said(id));
            next += share.len() as u64;
        }
        numbers.end - numbers.start
    }

    fn page(&self, limit: usize) -> Vec<Open> {
        let connection = self.0.lock().unwrap();
        let sql = "SELECT id, prompt FROM q WHERE answer IS NULL ORDER BY id LIMIT ?1";
        let mut query = connection.prepare_cached(sql).unwrap();
        let limit = i64::try_from(limit).unwrap_or(-1);
        let rows =
            query.query_map([limit], |row| Ok(Open { id: row.get(0)?, feature: row.get(1)? })).unwrap();
        rows.map(Result::unwrap).collect()
    }

    fn inbox(&self, limit: usize) -> usize {
        self.page(limit).len()
    }

    fn answer(&self, question: &Open) {
        self.commit(floor::ANSWER, &question.id, "this");
    }
}
