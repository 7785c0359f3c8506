//! For tests: fake model servers on loopback that play a script and keep what they received, and throw-away
//! PostgreSQL servers.

pub mod postgres;
