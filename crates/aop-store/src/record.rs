//! A question as it is stored.

use crate::error::StoreError;
use crate::rows::{json, parse, parse_question};
use aop_kernel::question::Question;
use serde_json::value::RawValue;

/// The record of a question as text: a list is found faster than it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record(String);

impl Record {
    pub(crate) fn of(question: &Question) -> Result<Self, StoreError> {
        json(question).map(Record)
    }

    pub(crate) fn stored(text: String) -> Self {
        Record(text)
    }

    /// What it says.
    pub fn question(&self) -> Result<Question, StoreError> {
        parse_question(&self.0)
    }

    /// To be passed on as it is. A record that is damaged is not.
    pub fn json(&self) -> Result<&RawValue, StoreError> {
        parse("question record", &self.0)
    }
}
