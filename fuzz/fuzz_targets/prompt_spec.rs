//! Any bytes as a prompt spec: findings, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = aop_ask::prompts::check(data);
});
