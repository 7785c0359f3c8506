//! `aop serve` over HTTP: two connections for each caller, one of them waits. The addresses are those that
//! `docs/howto/load.md` shows to drivers from outside.

use super::{Cycle, Serving, Way, feature};
use serde_json::json;

pub(super) const NAME: &str = "HTTP";

pub(super) struct OverHttp {
    pub(super) serving: Serving,
}

impl Way for OverHttp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn caller(&self, id: &str) -> Cycle<'_> {
        let (mut acts, mut waits) = (self.serving.connect(), self.serving.connect());
        acts.call("POST", "/api/v1/tools/feature.create", &feature(id));
        let ask = json!({"feature_id": id, "prompt": crate::desk::PROMPT,
            "expected_answer": {"kind": "single_choice", "choices": ["this", "that"]}});
        Box::new(move || {
            let asked = acts.call("POST", "/api/v1/questions", &ask);
            let question = format!("/api/v1/questions/{}", asked["question_id"].as_str().unwrap());
            waits.send("GET", &format!("{question}/wait?timeout_s=50"), "", "");
            acts.call("POST", &format!("{question}/answer"), &json!({"answer": "this"}));
            assert_eq!(waits.data()["answer"], "this");
        })
    }
}
