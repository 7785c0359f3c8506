//! The kernel from outside: rules that need a state no store would give, or every state there is.
#![cfg(test)]

mod asked_again;
mod blocked;
mod expiry;
mod json;
mod left;
mod lifecycle;
mod schemas;
mod support;
