//! Tells lines that may matter from lines that cannot, without parsing them.
//!
//! In a raw JSON line a word stands between two quotes of its own only where a string is exactly that word:
//! inside another string its quotes would be escaped. So a line without any of an engine's words is none of the
//! events we read. The opposite does not hold, and need not: a line that is read in vain costs time, never a
//! wrong event.

use memchr::memmem;

/// One engine's words.
#[derive(Debug)]
pub(crate) struct Relevance {
    words: &'static [&'static str],
    /// One bit for each length that a word has: most strings are ruled out by theirs.
    lengths: u64,
    marker: memmem::Finder<'static>,
}

impl Relevance {
    pub(crate) fn new(words: &'static [&'static str]) -> Self {
        let lengths = words.iter().fold(0, |lengths, word| lengths | length_bit(word.len()));
        Relevance { words, lengths, marker: memmem::Finder::new(crate::MARKER) }
    }

    /// Whether the line has to be read.
    pub(crate) fn is_relevant(&self, line: &[u8], open_calls: &[String]) -> bool {
        let mut start = line.len();
        let has_word = memchr::memchr_iter(b'"', line).any(|quote| {
            let between = line.get(start..quote).unwrap_or_default();
            start = quote + 1;
            self.lengths & length_bit(between.len()) != 0
                && self.words.iter().any(|word| word.as_bytes() == between)
        });
        has_word || open_calls.iter().any(|call| memmem::find(line, call.as_bytes()).is_some())
    }

    /// Whether the line contains the marker's name anywhere.
    pub(crate) fn mentions_marker(&self, line: &[u8]) -> bool {
        self.marker.find(line).is_some()
    }
}

/// Lengths from 63 on share a bit; a comparison settles them.
fn length_bit(length: usize) -> u64 {
    1 << length.min(63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_string_is_a_word() {
        let relevance = Relevance::new(&["assistant", "result"]);
        let is_relevant = |line: &str| relevance.is_relevant(line.as_bytes(), &["call_7".to_owned()]);
        for line in [r#"{"type":"assistant"}"#, r#"{"a":"x\\","type":"result"}"#, r#""result""#, "… call_7 …"]
        {
            assert!(is_relevant(line), "{line}");
        }
        for line in [r#"{"a":"say \"assistant\" twice"}"#, r#"{"type":"results"}"#, "assistant", r#"""#, ""] {
            assert!(!is_relevant(line), "{line}");
        }
    }
}
