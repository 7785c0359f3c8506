//! One file per command: its arguments and its `run`.

pub(crate) mod engine;
pub(crate) mod explain;
pub(crate) mod turn;
