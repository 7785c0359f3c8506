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
        let parsed: jiff::Timestamp = text.parse().ok()?;
        Some(Timestamp::from_millis(parsed.as_millisecond()))
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

    #[test]
    fn a_timeout_beyond_the_calendar_stops_at_its_end() {
        let late = Timestamp::from_millis(0).plus_millis(u64::MAX);
        assert!(late.to_string().starts_with("9999-12-"), "{late}");
        assert_eq!(Timestamp::parse(&late.to_string()), Some(late));
    }
}
