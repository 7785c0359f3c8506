//! What the planner knows. The server counts the rows of a table now and then, at first after a minute, and until then
//! takes every table for nearly empty: it would look through all that is open where one entry of an index is enough. So
//! a project that grows has its rows counted as it does.

use super::Inside;
use std::rc::Rc;

/// From so many events on, and again whenever there are four times as many.
const FIRST: u64 = 256;

/// Whether a project that has grown from `before` to `after` events is to be counted.
pub(super) fn is_due(before: u64, after: u64) -> bool {
    let step = |events: u64| (events / FIRST).checked_ilog(4);
    step(after) > step(before)
}

/// Has the rows counted. A role that may not is only warned by the server.
pub(super) async fn count(inside: Rc<Inside>) {
    // When it fails the server counts by itself later.
    if let Ok(connection) = inside.link.connection(None).await {
        let _ = connection.batch_execute("ANALYZE features, questions, events, operations").await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_counted_each_time_it_has_become_four_times_as_large() {
        let mut counted = Vec::new();
        for events in 1..20_000 {
            if is_due(events - 1, events) {
                counted.push(events);
            }
        }
        assert_eq!(counted, [256, 1_024, 4_096, 16_384]);
        assert!(is_due(0, 1_000_000) && !is_due(1_000, 1_000) && !is_due(300, 299));
    }
}
