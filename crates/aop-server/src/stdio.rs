//! A server on standard input and output. It lives as long as its client: the end of input is the end of the
//! process, and whoever still waits then is let go at once, because the questions are in the store.

mod batches;
mod lines;

use crate::Door;
use crate::mcp::{Handler, Server};
use aop_kernel::{ErrorCode, Refusal};
use aop_store::Files;
use lines::Lines;
use rmcp::service::{QuitReason, RunningService, ServerInitializeError};
use rmcp::transport::io::stdio_pipes;
use rmcp::{RoleServer, ServiceExt};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

/// Serves until the client closes standard input.
pub fn serve_stdio(door: Door) -> Result<(), Refusal> {
    to_the_end(async {
        let (reader, writer) = stdio_pipes();
        serve(door, reader, writer).await
    })
}

/// The same where there is nothing to serve: the client sees the tools, and every call is refused like this.
pub fn refuse_stdio(refusal: Refusal) -> Result<(), Refusal> {
    to_the_end(async {
        let (reader, writer) = stdio_pipes();
        departure(Server::Refusing(refusal).serve(Lines::new(reader, writer)).await).await.map(|_| ())
    })
}

fn to_the_end(server: impl Future<Output = Result<(), Refusal>>) -> Result<(), Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Refusal::new(ErrorCode::Internal, format!("the runtime did not start: {error}")))?;
    let end = runtime.block_on(server);
    // Where standard input is no pipe, a thread may still be reading it; nobody waits for that thread.
    runtime.shutdown_background();
    end
}

/// The same on any two ends.
pub(crate) async fn serve(
    door: Door,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), Refusal> {
    let (gone, closed) = watch::channel(false);
    let store = Arc::clone(&door.service.store);
    let files = door.files.clone().map(|folder| Files::start(folder, Arc::clone(&store), door.warn));
    let handler = Handler::new(door, closed);
    let memory = handler.memory();
    let server = Server::Process(Box::new(handler));
    let lines = Lines::new(UntilEnd { reader, gone }, writer);
    let unheard = lines.unheard();
    let end = departure(server.serve(lines).await).await;
    if matches!(end, Ok(Some(QuitReason::Closed))) && !unheard.load(Ordering::Relaxed) {
        memory.parted(store.as_ref()).await;
    }
    if let Some(files) = files {
        files.finish().await;
    }
    end.map(|_| ())
}

/// How the client left, if it had come.
async fn departure(
    begun: Result<RunningService<RoleServer, Server>, ServerInitializeError>,
) -> Result<Option<QuitReason>, Refusal> {
    match begun {
        Ok(running) => running.waiting().await.map(Some).map_err(|error| failed(&error)),
        // A client that looks in and leaves again is no failure.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}

fn failed(error: &dyn std::error::Error) -> Refusal {
    Refusal::new(ErrorCode::Internal, format!("the connection ended: {error}"))
        .hint("start `aop mcp` from an MCP client; it speaks JSON-RPC on standard input and output")
}

/// Standard input that says so when it ends. The protocol library lets calls under way finish first, which for
/// a wait would be seconds of nothing.
struct UntilEnd<R> {
    reader: R,
    gone: watch::Sender<bool>,
}

impl<R: AsyncRead + Unpin> AsyncRead for UntilEnd<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.reader).poll_read(context, buffer);
        let ended = match &read {
            Poll::Ready(Ok(())) => buffer.filled().len() == before && buffer.remaining() > 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if ended {
            this.gone.send_replace(true);
        }
        read
    }
}

#[cfg(test)]
mod tests;
