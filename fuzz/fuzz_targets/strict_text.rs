//! Any text as a strict-text reply.
#![no_main]

use aop_ask::Target;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| aop_fuzz::converse(Target::StrictText, &[text.into()]));
