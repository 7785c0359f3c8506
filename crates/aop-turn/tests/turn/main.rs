//! The crate from outside: the scenarios it was asked for, a table of transcripts, and properties.

mod patches;
mod properties;
mod scenarios;
mod streams;
mod support;
mod table;
