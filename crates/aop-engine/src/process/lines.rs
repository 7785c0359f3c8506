//! Output as lines: bytes come in portions, whole lines go out, and no byte is moved more often than twice.

/// A line beyond this is handed on in pieces.
const MAX_LINE: usize = 64 << 20;

/// What has come and was not handed on yet.
#[derive(Debug, Default)]
pub(super) struct Lines {
    held: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// There is no end of a line before this.
    searched: usize,
}

impl Lines {
    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.start >= self.held.len() - self.start {
            // No more is moved than was handed on since the last time.
            self.held.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.held.extend_from_slice(bytes);
    }

    /// The next line with its end, or a piece of one that is too long.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let end = match memchr::memchr(b'\n', &self.held[self.searched..]) {
            Some(place) => self.searched + place + 1,
            None => {
                self.searched = self.held.len();
                if self.searched - self.start <= MAX_LINE {
                    return None;
                }
                self.searched
            }
        };
        let line = self.held[self.start..end].to_vec();
        (self.start, self.searched) = (end, end);
        Some(line)
    }

    /// Whatever is left, all at once.
    pub(super) fn rest(&mut self) -> Option<Vec<u8>> {
        let rest = self.held.split_off(self.start);
        *self = Lines::default();
        Some(rest).filter(|rest| !rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(portions: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for portion in portions {
            lines.push(portion);
            found.extend(std::iter::from_fn(|| lines.next()));
        }
        found.extend(lines.rest());
        found
    }

    #[test]
    fn any_cutting_gives_the_same_lines() {
        let text = b"\none\n\n\ntwo and more\nlast";
        let whole = all(&[text]);
        let expected: Vec<&[u8]> = vec![b"\n", b"one\n", b"\n", b"\n", b"two and more\n", b"last"];
        assert_eq!(whole, expected);
        for size in 1..text.len() {
            assert_eq!(all(&text.chunks(size).collect::<Vec<_>>()), whole, "{size}");
        }
        for cut in 0..text.len() {
            assert_eq!(all(&[&text[..cut], &text[cut..]]), whole, "{cut}");
        }
    }

    /// Were the rest moved with every line, this would move terabytes.
    #[test]
    fn many_tiny_lines_in_one_portion_are_each_copied_once() {
        let mut lines = Lines::default();
        lines.push(&vec![b'\n'; 4 << 20]);
        assert_eq!(std::iter::from_fn(|| lines.next()).map(|line| line.len()).sum::<usize>(), 4 << 20);
        assert_eq!(lines.rest(), None);
    }

    #[test]
    fn what_was_handed_on_does_not_pile_up() {
        let mut lines = Lines::default();
        for _ in 0..1000 {
            lines.push(b"a line\nand the beginning of");
            lines.push(b" another\n");
            assert_eq!(std::iter::from_fn(|| lines.next()).count(), 2);
            assert!(lines.held.len() < 100, "{}", lines.held.len());
        }
    }

    #[test]
    fn a_line_without_an_end_is_handed_on_in_pieces() {
        let mut lines = Lines::default();
        lines.push(&vec![b'x'; MAX_LINE]);
        assert_eq!(lines.next(), None);
        lines.push(b"yz");
        assert_eq!(lines.next().map(|piece| piece.len()), Some(MAX_LINE + 2));
        lines.push(b"!\n");
        assert_eq!(lines.next().as_deref(), Some(&b"!\n"[..]));
    }
}
