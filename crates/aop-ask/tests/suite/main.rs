//! The crate from outside: each rule of the contract by its name.
#![cfg(test)]

mod answer_rules;
mod arbitrary;
mod dialogue_rules;
mod gate_rules;
mod human;
mod import_rules;
mod law;
mod mistakes;
mod native;
mod prompt_rules;
mod routing_rules;
mod schemas;
mod spec_rules;
mod support;
mod totality;
