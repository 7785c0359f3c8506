//! Where time and chance come in. A store is given a clock; tests give one they can set.

use aop_kernel::Refusal;
use aop_kernel::ids::QuestionId;
use aop_kernel::time::Timestamp;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};
use ulid::Generator;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The time now. May jump; the store never lets it run backwards.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX).saturating_add(skew()))
    }
}

/// How far off the clock is. In builds with debug assertions `AOP_CLOCK_OFFSET_MS` sets it, so that tests can make
/// the machine's clock jump; release builds look at the clock alone.
fn skew() -> i64 {
    #[cfg(debug_assertions)]
    if let Ok(offset) = std::env::var("AOP_CLOCK_OFFSET_MS") {
        return offset.parse().unwrap_or_default();
    }
    0
}

/// A clock that stands still until it is set: for tests.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Starts at this time.
    pub fn at(time: Timestamp) -> Self {
        ManualClock(AtomicI64::new(time.as_millis()))
    }

    /// Jumps by so many milliseconds, also backwards.
    pub fn advance(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// Makes question ids that sort by time, also within one millisecond.
#[derive(Debug)]
pub(crate) struct Ids(Generator);

impl Ids {
    pub(crate) fn new() -> Self {
        Ids(Generator::new())
    }

    /// A fresh id for a question asked at this time.
    pub(crate) fn question(&mut self, now: Timestamp) -> Result<QuestionId, Refusal> {
        let millis = u64::try_from(now.as_millis()).unwrap_or_default();
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        let ulid = match self.0.generate_from_datetime(time) {
            Ok(ulid) => ulid,
            Err(overflow) => overflow.commit_overflow_random(),
        };
        QuestionId::from_ulid(ulid.array_to_str(&mut [0; ulid::ULID_LEN]))
    }
}
