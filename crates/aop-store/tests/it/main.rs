//! The store held to the contract: one suite for every backend, a model, and what only one of them has.
#![cfg(test)]

mod contract;
mod model;
mod postgres;
mod projection;
mod settling;
mod sqlite;
mod support;
