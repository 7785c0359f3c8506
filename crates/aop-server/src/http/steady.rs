//! A connection whose client has to read what it asked for. Whoever sends requests and takes no answers would otherwise
//! hold its seat for ever, and with all seats everybody else would be locked out. A wait in which nothing is written, or
//! a stream that the client follows, may last as long as it likes.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream that breaks when nothing of what is written goes out for so long.
pub(super) struct Steady<S> {
    stream: S,
    patience: Duration,
    /// Since a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Steady<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Steady { stream, patience, waiting: None }
    }

    /// A write that goes on, or waits no longer than it may.
    fn judged(&mut self, context: &mut Context<'_>, written: Poll<Result<usize>>) -> Poll<Result<usize>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        waiting
            .as_mut()
            .poll(context)
            .map(|()| Err(Error::new(ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Steady<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Steady<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judged(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judged(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_reads_breaks_and_one_that_is_read_slowly_goes_on() {
        let (mut client, stream) = duplex(8);
        let mut server = Steady::new(stream, PATIENCE);
        let reading = async {
            let mut piece = [0; 8];
            for _ in 0..9 {
                sleep(PATIENCE - Duration::from_secs(1)).await;
                client.read_exact(&mut piece).await.unwrap();
            }
            client
        };
        let (written, client) = tokio::join!(server.write_all(&[b'x'; 80]), reading);
        written.unwrap();
        let refused = server.write_all(b"more").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TimedOut);
        drop(client);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_no_stall() {
        let (mut client, stream) = duplex(8);
        let mut server = Steady::new(stream, PATIENCE);
        for _ in 0..3 {
            server.write_all(b"12345678").await.unwrap();
            let mut piece = [0; 8];
            client.read_exact(&mut piece).await.unwrap();
            sleep(PATIENCE * 10).await;
        }
    }
}
