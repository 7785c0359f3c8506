//! Tells lines that may matter from lines that cannot, without parsing them.
//!
//! A word in quotes, such as `"assistant"`, stands in a raw JSON line only where a string is exactly that
//! word: inside another string its quotes would be escaped. So a line without any of an engine's words is
//! none of the events we read. The opposite does not hold, and need not: a line that is read in vain costs
//! time, never a wrong event.

use aho_corasick::AhoCorasick;
use memchr::memmem;

/// One engine's words.
#[derive(Debug)]
pub(crate) struct Relevance {
    /// `None` when the words could not be compiled; then every line is read.
    words: Option<AhoCorasick>,
    marker: memmem::Finder<'static>,
}

impl Relevance {
    pub(crate) fn new(words: &[&str]) -> Self {
        Relevance {
            words: AhoCorasick::new(words).ok(),
            marker: memmem::Finder::new(crate::MARKER.as_bytes()),
        }
    }

    /// Whether the line has to be read.
    pub(crate) fn is_relevant(&self, line: &[u8], open_calls: &[String]) -> bool {
        self.words.as_ref().is_none_or(|words| words.is_match(line))
            || open_calls.iter().any(|call| memmem::find(line, call.as_bytes()).is_some())
    }

    /// Whether the line contains the marker's name anywhere.
    pub(crate) fn mentions_marker(&self, line: &[u8]) -> bool {
        self.marker.find(line).is_some()
    }
}
