//! Time as the kernel sees it: milliseconds since 1970 in UTC, written as RFC 3339 with `Z`. The kernel
//! never asks for the time; it is told.

use crate::text;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A point in time with millisecond precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since 1970, held between 1970 and the end of what the calendar library can write.
    pub fn from_millis(millis: i64) -> Self {
        // The last whole second: the library writes a little more than it reads back.
        Timestamp(millis.clamp(0, jiff::Timestamp::MAX.as_second() * 1_000))
    }

    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// This time plus so many milliseconds.
    #[must_use]
    pub fn plus_millis(self, millis: u64) -> Self {
        Timestamp::from_millis(self.0.saturating_add_unsigned(millis))
    }

    /// Reads the form that `Display` writes, or any other RFC 3339 time with a zone.
    pub fn parse(text: &str) -> Option<Self> {
        let parsed = match text.as_bytes().try_into().ok().and_then(Timestamp::read) {
            Some(instant) => instant,
            None => text.parse().ok()?,
        };
        Some(Timestamp::from_millis(parsed.as_millisecond()))
    }

    /// Reads what [`Timestamp::written`] writes and nothing else, digit by digit for the same reason.
    fn read(text: &[u8; 24]) -> Option<jiff::Timestamp> {
        let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
        if separators.iter().any(|(at, separator)| text[*at] != *separator) {
            return None;
        }
        let number = |digits: std::ops::Range<usize>| {
            text[digits].iter().try_fold(0_i16, |number, digit| {
                digit.is_ascii_digit().then(|| number * 10 + i16::from(digit - b'0'))
            })
        };
        let small = |from: usize| number(from..from + 2).and_then(|number| i8::try_from(number).ok());
        let nanos = i32::from(number(20..23)?) * 1_000_000;
        let utc = jiff::civil::DateTime::new(
            number(0..4)?,
            small(5)?,
            small(8)?,
            small(11)?,
            small(14)?,
            small(17)?,
            nanos,
        );
        jiff::tz::Offset::UTC.to_timestamp(utc.ok()?).ok()
    }

    fn written(self) -> [u8; 24] {
        let instant = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let utc = jiff::tz::Offset::UTC.to_datetime(instant);
        // Digit by digit: records are full of times, and formatting machinery costs more than all the rest.
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut put = |at: usize, number: u16| {
            text[at] = b'0' + (number / 10 % 10) as u8;
            text[at + 1] = b'0' + (number % 10) as u8;
        };
        put(0, utc.year().unsigned_abs() / 100);
        put(2, utc.year().unsigned_abs());
        put(5, utc.month().unsigned_abs().into());
        put(8, utc.day().unsigned_abs().into());
        put(11, utc.hour().unsigned_abs().into());
        put(14, utc.minute().unsigned_abs().into());
        put(17, utc.second().unsigned_abs().into());
        put(20, utc.millisecond().unsigned_abs() / 10);
        put(21, utc.millisecond().unsigned_abs());
        text
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.written()).unwrap_or_default())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(&self.written()).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text::read(deserializer, |text| {
            Timestamp::parse(text).ok_or_else(|| format!("'{text}' is not an RFC 3339 time"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc_with_milliseconds_and_z() {
        assert_eq!(Timestamp::from_millis(1_772_661_600_007).to_string(), "2026-03-04T22:00:00.007Z");
        assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_written_time_reads_back() {
        let time = Timestamp::from_millis(1_772_661_600_123);
        assert_eq!(Timestamp::parse(&time.to_string()), Some(time));
    }

    /// With an offset of nothing in place of `Z` the library reads it, and has to read the same.
    #[test]
    fn the_written_form_is_read_as_the_library_reads_it() {
        let day = 86_400_000;
        for millis in (0..4_000).map(|step| step * 17 * day + step * 86_399_999).chain([i64::MAX]) {
            let time = Timestamp::from_millis(millis);
            let text = time.to_string();
            assert_eq!(Timestamp::parse(&text), Some(time));
            assert_eq!(Timestamp::parse(&text.replace('Z', "+00:00")), Some(time));
        }
        for wrong in [
            "2026-02-30T00:00:00.000Z",
            "2026-01-01T24:00:00.000Z",
            "2026-13-01T00:00:00.000Z",
            "2026-01-01T00:60:00.000Z",
            "2026-1 -01T00:00:00.000Z",
            "2026-01-01T00:00:00.+00Z",
        ] {
            assert_eq!(Timestamp::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_timeout_beyond_the_calendar_stops_at_its_end() {
        let late = Timestamp::from_millis(0).plus_millis(u64::MAX);
        assert!(late.to_string().starts_with("9999-12-"), "{late}");
        assert_eq!(Timestamp::parse(&late.to_string()), Some(late));
    }
}
