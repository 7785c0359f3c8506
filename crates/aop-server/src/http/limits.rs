//! How often a wrong credential is listened to. Tokens have 256 random bits and cannot be guessed; the limit keeps a
//! program that tries anyway from costing more than it is worth, and makes it visible. A right credential is taken
//! at any time, so that nobody can lock an operator out by failing on purpose.

use aop_kernel::{ErrorCode, Refusal};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many failures from one address …
const ALLOWED: u32 = 20;
/// … in this time.
const WINDOW: Duration = Duration::from_secs(60);
/// More addresses than this are not told apart.
const ADDRESSES: usize = 10_000;

/// Failures by address.
#[derive(Default)]
pub(crate) struct Failures(Mutex<HashMap<IpAddr, (Instant, u32)>>);

impl Failures {
    /// Counts one, and says what the caller is told.
    pub(super) fn count(&self, address: IpAddr) -> Refusal {
        self.count_at(address, Instant::now())
    }

    fn count_at(&self, address: IpAddr, now: Instant) -> Refusal {
        // Counters are whole after any panic.
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= ADDRESSES {
            seen.retain(|_, (since, _)| now.duration_since(*since) < WINDOW);
        }
        if seen.len() >= ADDRESSES && !seen.contains_key(&address) {
            return too_many(WINDOW);
        }
        let (since, failures) = seen.entry(address).or_insert((now, 0));
        if now.duration_since(*since) >= WINDOW {
            (*since, *failures) = (now, 0);
        }
        *failures = failures.saturating_add(1);
        if *failures > ALLOWED {
            return too_many(WINDOW.saturating_sub(now.duration_since(*since)));
        }
        Refusal::new(ErrorCode::Unauthenticated, "the token is not valid: unknown, expired or revoked")
    }
}

fn too_many(left: Duration) -> Refusal {
    let seconds = left.as_secs().max(1);
    Refusal::new(ErrorCode::RateLimited, format!("more than {ALLOWED} wrong credentials within a minute"))
        .hint(format!("wait {seconds} seconds, and check the token: `aop token list` shows which are good"))
        .fact("retry_after_s", seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_twenty_failures_an_address_is_told_to_wait_and_others_are_not() {
        let failures = Failures::default();
        let (here, there) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 0, 0, 1]));
        let start = Instant::now();
        for _ in 0..ALLOWED {
            assert_eq!(failures.count_at(here, start).code, ErrorCode::Unauthenticated);
        }
        assert_eq!(failures.count_at(here, start).code, ErrorCode::RateLimited);
        assert_eq!(failures.count_at(there, start).code, ErrorCode::Unauthenticated);
        assert_eq!(failures.count_at(here, start + WINDOW).code, ErrorCode::Unauthenticated);
    }
}
