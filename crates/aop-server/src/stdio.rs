//! A server on standard input and output. It lives as long as its client: the end of input is the end of the
//! process, and whoever still waits then is let go at once, because the questions are in the store.

use crate::Door;
use crate::mcp::{Handler, Server};
use aop_kernel::{ErrorCode, Refusal};
use aop_store::Files;
use rmcp::ServiceExt;
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::io::stdio_pipes;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

/// Serves until the client closes standard input.
pub fn serve_stdio(door: Door) -> Result<(), Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Refusal::new(ErrorCode::Internal, format!("the runtime did not start: {error}")))?;
    let end = runtime.block_on(async {
        let (reader, writer) = stdio_pipes();
        serve(door, reader, writer).await
    });
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
    let end = match server.serve((UntilEnd { reader, gone }, writer)).await {
        Ok(running) => match running.waiting().await {
            Ok(QuitReason::Closed) => {
                memory.parted(store.as_ref()).await;
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(error) => Err(failed(&error)),
        },
        // A client that looks in and leaves again is no failure.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(failed(&error)),
    };
    if let Some(files) = files {
        files.finish().await;
    }
    end
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
