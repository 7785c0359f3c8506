//! The tools: one contract for every door. A tool call is a name, a caller and a JSON object; what comes out
//! is a request that a store can commit, or a query it can read, or a refusal.

mod access;
mod args;
mod ask_user;
mod digest;
mod operator;
mod parse;
mod runner;
mod schema;

pub use access::{Access, Tool};
pub use ask_user::{
    ASK_HUMAN, ASK_USER, AWAIT_ANSWER, AskUser, CallIdentity, await_answer, await_answer_schema,
    is_lone_feature, lone_feature,
};
pub use digest::digest_of;
pub use operator::OperatorCommand;
pub use parse::{
    Call, ContextQuery, MAX_REQUEST_BYTES, Query, QuestionFilter, RESERVED_NAMES, is_reserved_name,
    own_request, parse, question_request,
};
pub use runner::{merge_request, runner_request};
pub use schema::envelope_schema;
