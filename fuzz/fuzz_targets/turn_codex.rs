//! The stream parser of `Engine::Codex`.
#![no_main]

mod turn_support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| turn_support::check(aop_turn::Engine::Codex, data));
