//! A server on standard input and output. It lives as long as its client: the end of input is the end of the
//! process.

use crate::mcp::Handler;
use crate::{Door, files};
use aop_kernel::{ErrorCode, Refusal};
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::stdio_pipes;
use std::sync::Arc;

/// Serves until the client closes standard input.
pub fn serve_stdio(door: Door) -> Result<(), Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Refusal::new(ErrorCode::Internal, format!("the runtime did not start: {error}")))?;
    let end = runtime.block_on(serve(door));
    // Where standard input is no pipe, a thread may still be reading it; nobody waits for that thread.
    runtime.shutdown_background();
    end
}

async fn serve(door: Door) -> Result<(), Refusal> {
    let (written, background) = files::start(door.files.clone(), Arc::clone(&door.service.store), door.warn);
    let (reader, writer) = stdio_pipes();
    let handler = Handler::new(door, written);
    let end = match handler.serve((reader, writer)).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| failed(&error)),
        // A client that looks in and leaves again is no failure.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(failed(&error)),
    };
    background.finish().await;
    end
}

fn failed(error: &dyn std::error::Error) -> Refusal {
    Refusal::new(ErrorCode::Internal, format!("the connection ended: {error}"))
        .hint("start `aop mcp` from an MCP client; it speaks JSON-RPC on standard input and output")
}
