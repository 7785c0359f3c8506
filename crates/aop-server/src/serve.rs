//! `aop serve`: one process with every door open, until it is told to stop. It also expires what is due and keeps
//! the files up to date. Other processes work on the same store meanwhile.

use crate::feed::Feed;
use crate::http::tls::{self, TlsFiles};
use crate::http::{App, Shared, listen, router};
use crate::secret::Sealed;
use crate::{expiry, tokens};
use aop_kernel::{ErrorCode, Refusal};
use aop_store::{Files, Service};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// What a server needs to know.
pub struct Serve {
    /// The store and the rules.
    pub service: Service,
    /// The `.aop` folder, if the files below it are wanted.
    pub files: Option<PathBuf>,
    /// The `.aop` folder, for the worktrees and transcripts that pages show.
    pub folder: PathBuf,
    /// What the project is called.
    pub project: String,
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Names under which browsers may call it, beside its addresses.
    pub hosts: Vec<String>,
    /// Certificate and key, to encrypt connections.
    pub tls: Option<TlsFiles>,
    /// How long a wait for an answer lasts at most.
    pub patience: Duration,
    /// How long the head of a request may take.
    pub head_time: Duration,
    /// How long a client may leave unread what it asked for.
    pub unread_time: Duration,
    /// Called once, when the first request can be made.
    pub ready: fn(&Ready),
    /// Where to say what no client has to know.
    pub warn: fn(&str),
}

/// Where the server is and how to come in.
#[derive(Debug, Clone)]
pub struct Ready {
    /// The address, as a browser takes it.
    pub url: String,
    /// The link that signs an operator in.
    pub login_url: String,
    /// The operator's token that lives as long as this process.
    pub token: String,
}

/// What ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// SIGTERM.
    Terminated,
    /// Ctrl-C.
    Interrupted,
}

/// Serves until SIGTERM or Ctrl-C.
pub fn serve_http(serve: Serve) -> Result<Ended, Refusal> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Refusal::new(ErrorCode::Internal, format!("the runtime did not start: {error}")))?;
    let ended = runtime.block_on(run(serve));
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

async fn run(serve: Serve) -> Result<Ended, Refusal> {
    // Signals are noticed before anybody can know that there is somebody to signal.
    let mut stop = Stop::new()?;
    let tls = serve.tls.as_ref().map(tls::acceptor).transpose()?;
    let listener =
        TcpListener::bind(serve.listen).await.map_err(|error| cannot_listen(serve.listen, &error))?;
    let address = listener.local_addr().map_err(|error| cannot_listen(serve.listen, &error))?;
    let (switch, stopping) = watch::channel(false);
    let store = Arc::clone(&serve.service.store);
    let files = serve.files.map(|folder| Files::start(folder, Arc::clone(&store), serve.warn));
    let clock = expiry::start(Arc::clone(&store), serve.warn);
    let (_, token) = tokens::fresh()?;
    let app: Shared = Arc::new(App {
        feed: Feed::start(store).await?,
        service: serve.service,
        patience: serve.patience,
        stopping: stopping.clone(),
        project: serve.project,
        address,
        secure: tls.is_some(),
        hosts: serve.hosts,
        own_token: Sealed::of(&token),
        memories: Default::default(),
        pages: crate::pages::Memory::of(Some(serve.folder)),
        sessions: Default::default(),
        failures: Default::default(),
    });
    let (head_time, unread_time) = (serve.head_time, serve.unread_time);
    let served = listen::Served { router: router(&app), head_time, unread_time, tls };
    let serving = tokio::spawn(listen::serve(listener, served, stopping));
    let scheme = if app.secure { "https" } else { "http" };
    let url = format!("{scheme}://{}", shown(address));
    (serve.ready)(&Ready { login_url: format!("{url}/login?token={token}"), url, token });
    let ended = stop.wait().await;
    switch.send_replace(true);
    tokio::select! {
        // A server that panicked has nothing left to drain.
        drained = serving => {
            if drained.unwrap_or(false) {
                app.memories.all_parted(app.service.store.as_ref()).await;
            }
        }
        // Whoever signals twice does not want to wait.
        _ = stop.wait() => {}
    }
    clock.abort();
    if let Some(files) = files {
        files.finish().await;
    }
    Ok(ended)
}

/// An address that listens everywhere is reached on this machine.
fn shown(address: SocketAddr) -> SocketAddr {
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            std::net::Ipv4Addr::LOCALHOST.into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
    }
    address
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> Refusal {
    Refusal::new(ErrorCode::InvalidArgument, format!("cannot listen on {address}: {error}"))
        .hint("choose another address, for instance `aop serve --listen 127.0.0.1:0` for any free port")
        .fact("argument", "listen")
}

/// The two signals that end a server.
struct Stop {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Stop {
    fn new() -> Result<Self, Refusal> {
        let on = |kind| {
            signal(kind).map_err(|error| {
                Refusal::new(ErrorCode::Internal, format!("cannot install signal handlers: {error}"))
            })
        };
        Ok(Stop { terminate: on(SignalKind::terminate())?, interrupt: on(SignalKind::interrupt())? })
    }

    async fn wait(&mut self) -> Ended {
        tokio::select! {
            _ = self.terminate.recv() => Ended::Terminated,
            _ = self.interrupt.recv() => Ended::Interrupted,
        }
    }
}
