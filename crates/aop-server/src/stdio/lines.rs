//! The messages of a client, one on each line. The protocol library reads lines too, but takes whatever comes before a
//! client has introduced itself for the end of the conversation. A client that was started anew may still send word of
//! what it asked of the server before: that is passed over, and the conversation begins with the first request that
//! can begin it.

use crate::mcp::message;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

/// A longer line is not kept. What is too large for a request and shorter is kept to find the id in it.
const LONGEST: usize = 16 * 1024 * 1024;

/// Some clients begin with it; it is no part of JSON.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Where messages go; nothing once the conversation is closed.
type Output<W> = Arc<Mutex<Option<W>>>;

type Writing = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// The two ends of a conversation.
pub(super) struct Lines<R, W> {
    reader: BufReader<R>,
    /// What has come of the next line.
    line: Vec<u8>,
    /// The next line is too long, and what comes of it is thrown away.
    skips: bool,
    /// Whether the client has begun the conversation.
    begun: bool,
    output: Output<W>,
    /// An answer of our own on its way out. Nothing more is read before it is written.
    saying: Option<Writing>,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(reader: R, writer: W) -> Self {
        Lines {
            reader: BufReader::new(reader),
            line: Vec::new(),
            skips: false,
            begun: false,
            output: Arc::new(Mutex::new(Some(writer))),
            saying: None,
        }
    }

    /// The next line; `None` at the end of input, where what has no end was not meant to be read. Whoever waits may go away
    /// at any time and come again: what has come of a line stays here.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let come = self.reader.fill_buf().await.ok()?;
            let end = come.iter().position(|byte| *byte == b'\n');
            let size = end.unwrap_or(come.len());
            if come.is_empty() {
                return None;
            }
            if self.line.len() + size > LONGEST {
                self.line = Vec::new();
                self.skips = true;
            } else if !self.skips {
                self.line.extend_from_slice(&come[..size]);
            }
            self.reader.consume(end.map_or(size, |end| end + 1));
            if end.is_some() && !std::mem::take(&mut self.skips) {
                return Some(std::mem::take(&mut self.line));
            }
        }
    }

    /// The message of a line. What is none may be answered.
    fn read(&mut self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if let Some(refusal) = message::too_large(text, line.len()) {
            self.say(refusal);
            return None;
        }
        let read = serde_json::from_slice(text);
        if read.is_err() && message::is_awaited(text) {
            self.say(message::unreadable(text));
        }
        read.ok()
    }

    fn say(&mut self, message: ServerJsonRpcMessage) {
        self.saying = Some(Box::pin(write(Arc::clone(&self.output), message::text(&message))));
    }

    /// Whether this can be told to the protocol library.
    fn admits(&mut self, message: &ClientJsonRpcMessage) -> bool {
        if let JsonRpcMessage::Request(message) = message {
            self.begun |= begins(&message.request);
            return true;
        }
        self.begun
    }
}

/// Whether a request begins the conversation: by a handshake, or under the protocol that has none by itself. Others the
/// protocol library answers before, with what they lack.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            let meta = request.get_meta();
            let known = |version| ProtocolVersion::KNOWN_VERSIONS.contains(&version);
            meta.protocol_version().is_some_and(known) && meta.client_capabilities().is_some()
        }
    }
}

/// Writes one line.
fn write<W: AsyncWrite + Send + Unpin>(
    output: Output<W>,
    message: String,
) -> impl Future<Output = io::Result<()>> + Send {
    async move {
        let line = message + "\n";
        let mut output = output.lock().await;
        let writer = output.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        writer.write_all(line.as_bytes()).await?;
        writer.flush().await
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        write(Arc::clone(&self.output), message::text(&message))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(writing) = &mut self.saying {
                let said = writing.await;
                self.saying = None;
                said.ok()?;
            }
            let line = self.next_line().await?;
            if let Some(message) = self.read(&line)
                && self.admits(&message)
            {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        // Whoever still writes then finishes first.
        let output = Arc::clone(&self.output);
        async move {
            drop(output.lock().await.take());
            Ok(())
        }
    }
}
