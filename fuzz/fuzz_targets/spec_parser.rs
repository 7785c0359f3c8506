//! Any bytes as a spec: violations or a spec that round-trips.
#![no_main]

use aop_ask::QuestionSpec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(spec) = QuestionSpec::parse(data) {
        assert_eq!(QuestionSpec::from_json(&spec.to_json()), Ok(spec));
    }
});
