//! Times as people say them.

use aop_kernel::time::Timestamp;
use aop_store::{Clock, SystemClock};

/// "3 min ago", "in 12 min", "just now".
pub(crate) fn relative(at: Timestamp) -> String {
    describe(at.as_millis() - SystemClock.now().as_millis())
}

/// When a deadline is: "in 12 min", "in under a second", "now".
pub(crate) fn ahead(at: Timestamp) -> String {
    left(at.as_millis() - SystemClock.now().as_millis())
}

fn left(millis: i64) -> String {
    match millis {
        ..=0 => "now".to_owned(),
        1..1_000 => "in under a second".to_owned(),
        _ => describe(millis),
    }
}

fn describe(millis: i64) -> String {
    let seconds = millis.unsigned_abs() / 1000;
    // To the nearest: what expires in a quarter of an hour does so a moment later too.
    let (amount, unit) = match seconds {
        0..60 => (seconds, "s"),
        60..3_570 => ((seconds + 30) / 60, "min"),
        3_570..171_000 => ((seconds + 1_800) / 3_600, "h"),
        _ => ((seconds + 43_200) / 86_400, "days"),
    };
    match (millis, amount) {
        (-4_999..=999, _) => "just now".to_owned(),
        (1_000.., _) => format!("in {amount} {unit}"),
        _ => format!("{amount} {unit} ago"),
    }
}

#[cfg(test)]
mod tests {
    use super::{describe, left};

    #[test]
    fn a_deadline_is_never_said_to_be_over_before_it_is() {
        for (millis, words) in [
            (900_000, "in 15 min"),
            (1_000, "in 1 s"),
            (999, "in under a second"),
            (1, "in under a second"),
            (0, "now"),
            (-7_000, "now"),
        ] {
            assert_eq!(left(millis), words, "{millis}");
        }
    }

    #[test]
    fn times_read_as_people_say_them() {
        assert_eq!(describe(0), "just now");
        assert_eq!(describe(-59_000), "59 s ago");
        assert_eq!(describe(-61_000), "1 min ago");
        assert_eq!(describe(-7_200_000), "2 h ago");
        assert_eq!(describe(-172_800_000), "2 days ago");
        assert_eq!(describe(720_000), "in 12 min");
        assert_eq!(describe(899_000), "in 15 min");
        assert_eq!(describe(3_599_000), "in 1 h");
        assert_eq!(describe(-172_000_000), "2 days ago");
    }
}
