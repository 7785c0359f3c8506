//! Tells lines that may matter from lines that cannot, without parsing them.
//!
//! A word in quotes, such as `"assistant"`, stands in a raw JSON line only where a string is exactly that
//! word: inside another string its quotes would be escaped. So a line without any of an engine's words is
//! none of the events we read. The opposite does not hold, and need not: a line that is read in vain costs
//! time, never a wrong event.

use aho_corasick::packed::Searcher;
use memchr::memmem;

/// One engine's words.
#[derive(Debug)]
pub(crate) struct Relevance {
    /// A vectorised search for all words at once, where the machine has one.
    at_once: Option<Searcher>,
    one_by_one: Vec<memmem::Finder<'static>>,
    marker: memmem::Finder<'static>,
}

impl Relevance {
    pub(crate) fn new(words: &'static [&'static str]) -> Self {
        Relevance {
            at_once: Searcher::new(words),
            one_by_one: words.iter().map(memmem::Finder::new).collect(),
            marker: memmem::Finder::new(crate::MARKER),
        }
    }

    /// Whether the line has to be read.
    pub(crate) fn is_relevant(&self, line: &[u8], open_calls: &[String]) -> bool {
        let has_word = match &self.at_once {
            Some(words) => words.find(line).is_some(),
            None => self.one_by_one.iter().any(|word| word.find(line).is_some()),
        };
        has_word || open_calls.iter().any(|call| memmem::find(line, call.as_bytes()).is_some())
    }

    /// Whether the line contains the marker's name anywhere.
    pub(crate) fn mentions_marker(&self, line: &[u8]) -> bool {
        self.marker.find(line).is_some()
    }
}
