//! The store held to the contract: one suite for every backend, a model, and what only SQLite has.
#![cfg(test)]

mod contract;
mod model;
mod sqlite;
mod support;
