//! Cuts a byte stream into lines as it comes, with their place in the stream and a cap on their length.

use std::ops::Range;

/// Lines beyond this are not kept. Engines cap their own tool output far below it.
pub(crate) const MAX_LINE_BYTES: usize = 16 << 20;

/// One line without its end.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// Where it stands in the stream.
    pub(crate) range: Range<u64>,
    /// Its bytes; of an oversized line, the beginning.
    pub(crate) bytes: &'a [u8],
    /// Whether `bytes` is only the beginning.
    pub(crate) oversized: bool,
}

/// Keeps the unfinished line between two chunks.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    kept: Vec<u8>,
    /// Length of the unfinished line so far; more than `kept` holds once it is oversized.
    length: usize,
    /// Where the unfinished line starts.
    start: u64,
}

impl LineSplitter {
    /// Takes the next bytes and hands out every line that is complete now.
    pub(crate) fn feed(&mut self, mut chunk: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (head, rest) = chunk.split_at(end);
            if self.length == 0 {
                // The common case: the line lies whole in the chunk and is looked at in place.
                hand_out(self.start, head.len(), &head[..head.len().min(MAX_LINE_BYTES)], &mut each);
                self.start += head.len() as u64 + 1;
            } else {
                self.keep(head);
                self.hand_out_kept(&mut each);
            }
            chunk = &rest[1..];
        }
        self.keep(chunk);
    }

    /// Hands out the last line when the stream ends without a line end.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if self.length > 0 {
            self.hand_out_kept(&mut each);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MAX_LINE_BYTES.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.length += bytes.len();
    }

    fn hand_out_kept(&mut self, each: &mut impl FnMut(Line<'_>)) {
        hand_out(self.start, self.length, &self.kept, each);
        self.start += self.length as u64 + 1;
        self.length = 0;
        self.kept.clear();
    }
}

fn hand_out(start: u64, length: usize, kept: &[u8], each: &mut impl FnMut(Line<'_>)) {
    let oversized = length > MAX_LINE_BYTES;
    let bytes = if oversized { kept } else { kept.strip_suffix(b"\r").unwrap_or(kept) };
    let visible = if oversized { length } else { bytes.len() };
    each(Line { range: start..start + visible as u64, bytes, oversized });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<(Range<u64>, Vec<u8>, bool)> {
        let mut found = Vec::new();
        let mut splitter = LineSplitter::default();
        for chunk in chunks {
            splitter.feed(chunk, |line| found.push((line.range, line.bytes.to_vec(), line.oversized)));
        }
        splitter.finish(|line| found.push((line.range, line.bytes.to_vec(), line.oversized)));
        found
    }

    #[test]
    fn lines_end_with_lf_or_crlf_and_know_their_place() {
        let expected =
            vec![(0..2, b"ab".to_vec(), false), (4..4, Vec::new(), false), (5..6, b"c".to_vec(), false)];
        assert_eq!(lines(&[b"ab\r\n\nc"]), expected);
        assert_eq!(lines(&[b"a", b"b\r", b"\n", b"\nc"]), expected);
    }

    #[test]
    fn an_oversized_line_keeps_its_beginning_and_its_place() {
        let long = vec![b'x'; MAX_LINE_BYTES + 10];
        let mut whole = long.clone();
        whole.extend_from_slice(b"\ny\n");
        let at_once = lines(&[&whole]);
        assert_eq!(at_once, lines(&[&long[..100], &whole[100..]]));
        assert_eq!(at_once[0].0, 0..long.len() as u64);
        assert_eq!(at_once[0].1.len(), MAX_LINE_BYTES);
        assert!(at_once[0].2);
        assert_eq!(at_once[1].1, b"y");
    }
}
