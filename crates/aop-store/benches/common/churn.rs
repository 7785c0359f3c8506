//! Questions and answers one after the other, and how long each took.

use crate::calls::{call, create, question_id};
use aop_kernel::ids::QuestionId;
use aop_kernel::tools::Tool;
use aop_store::Service;
use serde_json::json;
use std::time::{Duration, Instant};

pub(crate) async fn ask(service: &Service, feature: &str, operation: u64) -> QuestionId {
    let input = json!({"feature_id": feature, "role": "builder", "session_id": "bench", "blocking": true,
        "question_type": "clarification", "prompt": "Which of the two would you rather have here?",
        "expected_answer": {"kind": "single_choice", "choices": ["this", "that"]},
        "operation_id": format!("ask-{feature}-{operation}")});
    question_id(&call(service, Tool::QuestionCreate, &input).await)
}

pub(crate) async fn answer(service: &Service, feature: &str, question: &QuestionId, operation: u64) {
    let input = json!({"feature_id": feature, "question_id": question, "answer": "this", "answered_by": "bench",
        "operation_id": format!("answer-{feature}-{operation}")});
    call(service, Tool::QuestionAnswer, &input).await;
}

/// Asks and answers as often as fits into the spell, on so many threads; how long each took, and the rate.
pub(crate) fn churn(service: &Service, callers: u64, prefix: &str, spell: Duration) -> (Vec<Duration>, f64) {
    let start = Instant::now();
    let times: Vec<Duration> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers)
            .map(|caller| {
                scope.spawn(move || {
                    let runtime =
                        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                    let feature = format!("{prefix}-{caller}");
                    runtime.block_on(create(service, &feature));
                    let mut times = Vec::new();
                    while start.elapsed() < spell {
                        let operation = times.len() as u64;
                        let one = Instant::now();
                        let question = runtime.block_on(ask(service, &feature, operation));
                        times.push(one.elapsed());
                        let other = Instant::now();
                        runtime.block_on(answer(service, &feature, &question, operation));
                        times.push(other.elapsed());
                    }
                    times
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let rate = times.len() as f64 / start.elapsed().as_secs_f64();
    (times, rate)
}

/// The time within which this share was done, in microseconds.
pub(crate) fn percentile(times: &mut [Duration], share: f64) -> u64 {
    times.sort_unstable();
    let index = ((times.len() - 1) as f64 * share) as usize;
    u64::try_from(times[index].as_micros()).unwrap()
}
