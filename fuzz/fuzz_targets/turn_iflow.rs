//! The stream parser of `Engine::Iflow`.
#![no_main]

mod turn_support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| turn_support::check(aop_turn::Engine::Iflow, data));
