//! RFC 3339 times, checked to the letter. The crate has no clock and does no arithmetic with times; it only
//! has to know that a record carries a real one.

/// Accepts `2026-03-04T22:00:00.000Z` and its like: a date that exists, a time of day, a zone.
///
/// # Errors
/// What is wrong, as the end of a sentence.
pub(super) fn check(text: &str) -> Result<(), &'static str> {
    const SHAPE: &str = "not of the form YYYY-MM-DDThh:mm:ss[.fraction]zone";
    let bytes = text.as_bytes();
    let punctuation = [(4, b"-"), (7, b"-"), (13, b":"), (16, b":")];
    if !text.is_ascii() || bytes.len() < 20 || punctuation.iter().any(|(at, mark)| bytes[*at] != mark[0]) {
        return Err(SHAPE);
    }
    if !matches!(bytes[10], b'T' | b't') {
        return Err(SHAPE);
    }
    let number = |from: usize, to: usize| digits(&text[from..to]).ok_or(SHAPE);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return Err("that day does not exist");
    }
    if hour > 23 || minute > 59 || second > 60 {
        return Err("that time of day does not exist");
    }
    let offset = zone(fraction(&text[19..])?)?;
    let utc_minute = (i64::from(hour * 60 + minute) - offset).rem_euclid(24 * 60);
    if second == 60 && utc_minute != 24 * 60 - 1 {
        return Err("a leap second only follows 23:59:59 UTC");
    }
    Ok(())
}

/// Skips `.123456789` and returns what follows.
fn fraction(rest: &str) -> Result<&str, &'static str> {
    let Some(rest) = rest.strip_prefix('.') else { return Ok(rest) };
    let len = rest.bytes().take_while(u8::is_ascii_digit).count();
    match len {
        0 => Err("the fraction has no digits"),
        1..=9 => Ok(&rest[len..]),
        _ => Err("the fraction has more than 9 digits"),
    }
}

/// The offset from UTC in minutes.
fn zone(rest: &str) -> Result<i64, &'static str> {
    const MISSING: &str = "it has no zone (Z or +hh:mm)";
    if matches!(rest, "Z" | "z") {
        return Ok(0);
    }
    let sign = match rest.bytes().next() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return Err(MISSING),
    };
    let (hours, minutes) = rest[1..].split_once(':').ok_or(MISSING)?;
    match (hours.len(), minutes.len(), digits(hours), digits(minutes)) {
        (2, 2, Some(hours @ 0..=23), Some(minutes @ 0..=59)) => Ok(sign * i64::from(hours * 60 + minutes)),
        _ => Err("its zone does not exist"),
    }
}

fn digits(text: &str) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn days_in(year: u32, month: u32) -> u32 {
    let leap = (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn real_times_pass() {
        for time in [
            "2026-03-04T22:00:00Z",
            "2026-03-04T22:00:00.000Z",
            "2026-03-04t22:00:00.123456789z",
            "2024-02-29T23:59:59+05:30",
            "2016-12-31T23:59:60Z",
            "2017-01-01T00:59:60+01:00",
            "2000-02-29T00:00:00-00:00",
        ] {
            assert_eq!(check(time), Ok(()), "{time}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for time in [
            "",
            "now",
            "2026-03-04",
            "2026-03-04T22:00:00",
            "2026-03-04 22:00:00Z",
            "2026-02-30T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T12:00:60Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.1234567890Z",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00+0100",
            "2026-01-01T00:00:00+1:00",
            "2026-01-01T00:00:00Zulu",
            "2026-01-01T00:00:00é",
            "+026-01-01T00:00:00Z",
        ] {
            assert!(check(time).is_err(), "{time}");
        }
    }
}
