//! Numbers and times on the command line: what is none is told what to write.

use aop_kernel::Refusal;
use aop_kernel::ids::quoted;

/// Reads a whole number that is not below `least`.
pub(crate) fn at_least<N>(least: i128) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static
where
    N: TryFrom<i128>,
{
    move |text| {
        let right = || match least {
            ..0 => "write a whole number".to_owned(),
            _ => format!("write a whole number, {least} or more"),
        };
        let number = text.trim().parse().ok().filter(|number| *number >= least).ok_or_else(right)?;
        N::try_from(number).map_err(|_| "write a smaller number".to_owned())
    }
}

/// Reads how long something lasts, in milliseconds: "90s", "15m", "1h 30m", "10d".
pub(crate) fn lasting(option: &str, text: &str, hint: &str) -> Result<u64, Refusal> {
    let wrong = || {
        Refusal::invalid_argument(format!("--{option} {} is not a time", quoted(text)))
            .hint(format!("write it like 90s, 15m, 2h, 10d or '1h 30m'{hint}"))
            .fact("argument", option)
    };
    millis(text).filter(|ms| *ms > 0).ok_or_else(wrong)
}

fn millis(text: &str) -> Option<u64> {
    let clock = |text: &str| {
        let duration: jiff::SignedDuration = text.parse().ok()?;
        u64::try_from(duration.as_millis()).ok()
    };
    // Days are no time of a clock, and here they are 24 hours.
    let days = text.split_once('d').and_then(|(days, rest)| Some((days.trim().parse::<u64>().ok()?, rest)));
    let Some((days, rest)) = days else { return clock(text) };
    let rest = ["ays", "ay", ""].iter().find_map(|end| rest.strip_prefix(end)).unwrap_or(rest).trim();
    let rest = if rest.is_empty() { 0 } else { clock(rest)? };
    days.checked_mul(24 * 60 * 60 * 1_000)?.checked_add(rest)
}

/// Reads milliseconds; a variable that is set to nothing is not set.
pub(crate) fn millis_or(unset: u64) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| if text.is_empty() { Ok(unset) } else { at_least(0)(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_set_to_nothing_is_not_set() {
        let millis = millis_or(50);
        assert_eq!((millis(""), millis("0")), (Ok(50), Ok(0)));
        assert_eq!(millis("soon"), Err("write a whole number, 0 or more".to_owned()));
    }

    #[test]
    fn times_are_written_as_people_write_them_days_too() {
        let lasting = |text: &str| lasting("timeout", text, "");
        for (text, seconds) in [
            ("90s", 90),
            ("15m", 900),
            ("1h 30m", 5_400),
            ("10 seconds", 10),
            ("10d", 864_000),
            ("1 day", 86_400),
            ("2 days 12h", 216_000),
            ("1d12h", 129_600),
        ] {
            assert_eq!(lasting(text).unwrap(), seconds * 1_000, "{text}");
        }
        for bad in ["", "soon", "0s", "0d", "-5m", "-1d", "15", "10dx", "d", "99999999999999d"] {
            let refusal = lasting(bad).unwrap_err();
            assert_eq!(refusal.facts["argument"], "timeout", "{bad}");
            assert!(refusal.hint.contains("10d"), "{}", refusal.hint);
        }
    }

    #[test]
    fn what_is_no_number_is_told_what_to_write() {
        let (count, code) = (at_least::<u32>(1), at_least::<i32>(i128::MIN));
        assert_eq!((count("7"), code("-9")), (Ok(7), Ok(-9)));
        for wrong in ["x", "", "0", "-3", "1.5", "0x10"] {
            assert_eq!(count(wrong), Err("write a whole number, 1 or more".to_owned()), "{wrong}");
        }
        assert_eq!(code("x"), Err("write a whole number".to_owned()));
        assert_eq!(count("99999999999"), Err("write a smaller number".to_owned()));
    }
}
