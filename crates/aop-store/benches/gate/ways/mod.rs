//! The ways a question and its answer can go.

mod command_line;
pub(crate) mod floor;
mod http;
mod in_process;
mod mcp;
mod server;

use crate::place::Place;
use aop_store::fresh_operation;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) use server::{Http, Serving};

/// One gate cycle, from before the question to the waiter's answer.
pub(crate) type Cycle<'a> = Box<dyn FnMut() + Send + 'a>;

pub(crate) trait Way: Sync {
    fn name(&self) -> &'static str;

    /// Sets up a caller with a feature of this name.
    fn caller(&self, feature: &str) -> Cycle<'_>;
}

pub(crate) use command_line::NAME as COMMAND_LINE;

/// The names of all of them.
pub(crate) const NAMES: [&str; 5] =
    [floor::NAME, in_process::NAME, http::NAME, mcp::NAME, command_line::NAME];

/// All of them on one kind of store.
pub(crate) fn all(place: &Place, folder: &Path, aop: &Path) -> Vec<Box<dyn Way>> {
    NAMES.iter().map(|name| one(name, place, &folder.join(name.replace(' ', "-")), aop)).collect()
}

/// A way by its name, with a store of its own.
pub(crate) fn one(name: &str, place: &Place, folder: &Path, aop: &Path) -> Box<dyn Way> {
    std::fs::create_dir_all(folder).unwrap();
    let digest = folder
        .display()
        .to_string()
        .bytes()
        .fold(7_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let project = format!("bench-{digest:x}");
    match name {
        floor::NAME => floor::set_up(place, folder),
        in_process::NAME => Box::new(in_process::InProcess { service: place.open(folder, &project) }),
        http::NAME => Box::new(http::OverHttp { serving: Serving::start(place, folder, &project, aop) }),
        mcp::NAME => Box::new(mcp::OverMcp { serving: Serving::start(place, folder, &project, aop) }),
        command_line::NAME => {
            place.init(aop, folder, &project);
            Box::new(command_line::CommandLine {
                place: place.clone(),
                root: folder.to_owned(),
                project,
                aop: aop.to_owned(),
            })
        }
        other => panic!("there is no way {other}; there are {NAMES:?}"),
    }
}

fn feature(id: &str) -> Value {
    json!({"feature_id": id, "title": "bench", "operation_id": format!("create-{id}")})
}

fn question(feature: &str) -> Value {
    json!({"feature_id": feature, "role": "builder", "session_id": "bench", "question_type": "clarification",
        "prompt": crate::desk::PROMPT, "expected_answer": {"kind": "single_choice", "choices": ["this", "that"]},
        "operation_id": fresh_operation()})
}

fn answer(feature: &str, id: &Value) -> Value {
    json!({"feature_id": feature, "question_id": id, "answer": "this", "answered_by": "bench",
        "operation_id": fresh_operation()})
}
