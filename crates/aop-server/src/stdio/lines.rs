//! The messages of a client, one on each line. The protocol library reads lines too, but takes whatever comes before a
//! client has introduced itself for the end of the conversation. A client that was started anew may still send word of
//! what it asked of the server before: that is passed over, and the conversation begins with the first request that
//! can begin it.

use super::batches::{Batch, Batches};
use crate::mcp::message::{self, Batched};
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetExtensions, GetMeta, JsonRpcMessage,
    ProtocolVersion, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A longer line is not kept. What is too large for a request and shorter is kept to find the id in it.
const LONGEST: usize = 16 * 1024 * 1024;

/// Some clients begin with it; it is no part of JSON.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Where messages go; nothing once the conversation is closed.
type Output<W> = Arc<Mutex<Option<W>>>;

/// At the end of input so much time is left for our own answers to be read. The protocol library gives more to its.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The two ends of a conversation.
pub(super) struct Lines<R, W> {
    reader: BufReader<R>,
    /// What has come of the next line.
    line: Vec<u8>,
    /// The next line is too long, and what comes of it is thrown away.
    skips: bool,
    /// Messages that came together with the one before.
    coming: VecDeque<ClientJsonRpcMessage>,
    /// Whether the client has begun the conversation.
    begun: bool,
    /// The version of the protocol that a handshake agreed on.
    version: Option<ProtocolVersion>,
    batches: Batches,
    output: Output<W>,
    /// Becomes true when something was written that cannot have arrived.
    unheard: Arc<AtomicBool>,
    /// Answers of our own on their way out. Reading goes on meanwhile, or the end of a client that does not read would not
    /// be seen.
    saying: JoinSet<io::Result<()>>,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(reader: R, writer: W) -> Self {
        Lines {
            reader: BufReader::new(reader),
            line: Vec::new(),
            skips: false,
            coming: VecDeque::new(),
            begun: false,
            version: None,
            batches: Batches::default(),
            output: Arc::new(Mutex::new(Some(writer))),
            unheard: Arc::default(),
            saying: JoinSet::new(),
        }
    }

    /// Becomes true when something was to be written, and was not.
    pub(super) fn unheard(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.unheard)
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

    /// Takes the messages of a line. What is none may be answered.
    fn take(&mut self, line: &[u8]) {
        let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if let Some(refusal) = message::too_large(text, line.len()) {
            return self.say(message::text(&refusal));
        }
        match message::batch(text, self.version.as_ref().map(ProtocolVersion::as_str)) {
            Ok(Some(batch)) => self.take_batch(&batch),
            Ok(None) => match serde_json::from_slice(text) {
                Ok(message) => self.coming.push_back(message),
                Err(_) if message::is_awaited(text) => self.say(message::text(&message::unreadable(text))),
                Err(_) => {}
            },
            Err(refusal) if message::is_awaited(text) => self.say(message::text(&refusal)),
            Err(_) => {}
        }
    }

    fn take_batch(&mut self, messages: &[Box<RawValue>]) {
        let mut batch = Batch::default();
        for text in messages.iter().map(|message| message.get().as_bytes()) {
            if let Some(refusal) = message::unfit(text) {
                batch.answers.push(refusal);
                continue;
            }
            match serde_json::from_slice::<ClientJsonRpcMessage>(text) {
                Ok(mut message) => {
                    if let JsonRpcMessage::Request(message) = &mut message {
                        batch.open.insert(message.id.clone());
                        message.request.extensions_mut().insert(Batched);
                    }
                    self.coming.push_back(message);
                }
                Err(_) if message::is_awaited(text) => batch.answers.push(message::unreadable(text)),
                Err(_) => {}
            }
        }
        if let Some(line) = self.batches.begin(batch) {
            self.say(line);
        }
    }

    fn say(&mut self, line: String) {
        while self.saying.try_join_next().is_some() {}
        self.saying.spawn(self.write(Some(line)));
    }

    /// Writes a line, if there is one.
    fn write(&self, line: Option<String>) -> impl Future<Output = io::Result<()>> + Send + use<R, W> {
        let (output, unheard) = (Arc::clone(&self.output), Arc::clone(&self.unheard));
        async move {
            let Some(line) = line else { return Ok(()) };
            let mut output = output.lock().await;
            let written = written(output.as_mut(), line + "\n").await;
            unheard.fetch_or(written.is_err(), Ordering::Relaxed);
            written
        }
    }

    /// Whether this can be told to the protocol library.
    fn admits(&mut self, message: &ClientJsonRpcMessage) -> bool {
        match message {
            JsonRpcMessage::Request(message) => {
                self.begun |= begins(&message.request);
                return true;
            }
            JsonRpcMessage::Notification(message) => {
                if let ClientNotification::CancelledNotification(message) = &message.notification
                    && let Some(id) = &message.params.request_id
                    && let Some(line) = self.batches.cancelled(id)
                {
                    self.say(line);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
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

async fn written(writer: Option<&mut (impl AsyncWrite + Unpin)>, line: String) -> io::Result<()> {
    let writer = writer.ok_or(io::ErrorKind::NotConnected)?;
    writer.write_all(line.as_bytes()).await?;
    writer.flush().await
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        if let JsonRpcMessage::Response(message) = &message
            && let ServerResult::InitializeResult(agreed) = &message.result
        {
            self.version = Some(agreed.protocol_version.clone());
        }
        let line = self.batches.said(message);
        self.write(line)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let Some(message) = self.coming.pop_front() else {
                let Some(line) = self.next_line().await else {
                    let said = async { while self.saying.join_next().await.is_some() {} };
                    let _ = timeout(LAST_WORDS, said).await;
                    return None;
                };
                self.take(&line);
                continue;
            };
            if self.admits(&message) {
                return Some(message);
            }
        }
    }

    /// What is still being written now goes to a client that does not read, and is not waited for.
    async fn close(&mut self) -> io::Result<()> {
        match self.output.try_lock() {
            Ok(mut output) => drop(output.take()),
            Err(_) => self.unheard.store(true, Ordering::Relaxed),
        }
        Ok(())
    }
}
