//! What `aop` and a guard say to each other: frames of a kind, a length and so many bytes, one stream each way.

use std::io::{self, Read, Write};
use tokio::io::{AsyncRead, AsyncReadExt};

/// No frame is longer. A longer one means that the two sides do not speak the same version.
const MAX_BYTES: usize = 1 << 20;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To the guard: bytes for the engine's standard input.
    Input,
    /// To the guard: the engine's standard input ends here.
    CloseInput,
    /// To the guard: end everything.
    Kill,
    /// From the guard: the engine runs ([`super::Started`] as JSON).
    Started,
    /// From the guard: the engine could not be started, and why.
    NotStarted,
    /// From the guard: bytes of the engine's standard output.
    Output,
    /// From the guard: bytes of the engine's standard error.
    Errors,
    /// From the guard: the engine wrote more than it may.
    TooMuch,
    /// From the guard: nothing is left of the engine; how it exited, as a number, 128 more for a signal.
    Ended,
}

const KINDS: [(Kind, u8); 9] = [
    (Kind::Input, b'i'),
    (Kind::CloseInput, b'c'),
    (Kind::Kill, b'k'),
    (Kind::Started, b's'),
    (Kind::NotStarted, b'n'),
    (Kind::Output, b'o'),
    (Kind::Errors, b'e'),
    (Kind::TooMuch, b't'),
    (Kind::Ended, b'x'),
];

/// One frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) bytes: Vec<u8>,
}

/// The frames that carry these bytes: one, or several when there are many.
pub(crate) fn encoded(kind: Kind, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 5);
    let mut part = |part: &[u8]| {
        out.push(KINDS.iter().find(|(known, _)| *known == kind).map_or(0, |(_, letter)| *letter));
        out.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(part);
    };
    if bytes.is_empty() {
        part(bytes);
    }
    bytes.chunks(MAX_BYTES).for_each(&mut part);
    out
}

/// Writes one frame.
pub(crate) fn send(to: &mut impl Write, kind: Kind, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&encoded(kind, bytes))?;
    to.flush()
}

fn head(head: [u8; 5]) -> io::Result<(Kind, usize)> {
    let [letter, a, b, c, d] = head;
    let kind = KINDS.iter().find(|(_, known)| *known == letter).map(|(kind, _)| *kind);
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    match kind {
        Some(kind) if length <= MAX_BYTES => Ok((kind, length)),
        _ => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the guard and aop do not understand each other"))
        }
    }
}

/// The next frame; an error at the end of the stream.
pub(crate) fn receive(from: &mut impl Read) -> io::Result<Frame> {
    let mut first = [0; 5];
    from.read_exact(&mut first)?;
    let (kind, length) = head(first)?;
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(Frame { kind, bytes })
}

/// The next frame; an error at the end of the stream. Not to be dropped half-way.
pub(crate) async fn receive_async(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Frame> {
    let mut first = [0; 5];
    from.read_exact(&mut first).await?;
    let (kind, length) = head(first)?;
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).await?;
    Ok(Frame { kind, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_out_as_it_went_in() {
        for (kind, _) in KINDS {
            for bytes in [b"".as_slice(), b"x", &[7; 70_000]] {
                let wire = encoded(kind, bytes);
                assert_eq!(receive(&mut wire.as_slice()).unwrap(), Frame { kind, bytes: bytes.to_vec() });
            }
        }
    }

    #[test]
    fn many_bytes_travel_in_several_frames() {
        let wire = encoded(Kind::Input, &vec![1; MAX_BYTES + 1]);
        let mut from = wire.as_slice();
        assert_eq!(receive(&mut from).unwrap().bytes.len(), MAX_BYTES);
        assert_eq!(receive(&mut from).unwrap().bytes.len(), 1);
    }

    #[test]
    fn other_bytes_are_an_error() {
        for wire in [b"".as_slice(), b"o", b"z\0\0\0\0", b"o\xff\xff\xff\xff", b"o\0\0\0\x02a"] {
            assert!(receive(&mut &*wire).is_err(), "{wire:?}");
        }
    }
}
