//! The crate from outside: each rule of the contract by its name.
#![cfg(test)]

mod answer_rules;
mod spec_rules;
mod support;
