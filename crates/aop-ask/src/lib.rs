//! The question IR (`NOVEL_ASK`): specs, answers, validation, and the dialogues that put a spec to a human.
//!
//! An author writes a [`QuestionSpec`] once; whichever tool puts it to a human, the result is the same
//! [`AnswerSpec`]. Everything here is pure: documents and replies come in as values, time as an argument.

pub mod answer;
mod blank;
pub mod dialogue;
pub mod gate;
mod ids;
pub mod import;
pub mod json;
pub mod prompts;
pub mod schema;
pub mod spec;
mod target;
pub mod violation;

pub use answer::{AnswerSpec, AnswerValue, Answers};
pub use blank::{is_blank, is_unseen};
pub use dialogue::wording::RECOMMENDED;
pub use dialogue::{Dialogue, OnEscape, Options, Protocol, Request, Step, Target};
pub use ids::Ids;
pub use spec::{Choice, Kind, Question, QuestionSpec};
pub use violation::Violation;
