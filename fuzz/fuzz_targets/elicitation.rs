//! Any list of JSON values as native replies.
#![no_main]

use aop_ask::Target;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| aop_fuzz::converse_json(Target::Elicitation, data));
