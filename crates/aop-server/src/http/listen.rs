//! Connections: how many, how slow they may be, and how they end. Written on hyper itself, because a server that
//! faces browsers has to cut off clients that send their headers drop by drop, and those that read no answers.

use super::guard::Peer;
use super::steady::Steady;
use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// More connections wait in the system's queue until others end.
const MOST_CONNECTIONS: usize = 8_192;
/// So much of what comes in is kept for each of them, also of a head; hyper would keep six times as much.
const MOST_BUFFERED: usize = 64 * 1024;
/// After a stop, requests that do not end are cut off.
const DRAIN_TIME: Duration = Duration::from_secs(8);
/// The system is out of something; it is asked again after this.
const BREATHER: Duration = Duration::from_millis(50);

/// What is served, and how long the head of a request may take; also how long a connection may be idle.
#[derive(Clone)]
pub(crate) struct Served {
    pub(crate) router: Router,
    pub(crate) head_time: Duration,
    /// How long a client may leave unread what it asked for.
    pub(crate) unread_time: Duration,
    /// How connections are encrypted, if they are.
    pub(crate) tls: Option<TlsAcceptor>,
}

/// Serves until told to stop, then lets what is under way finish. Whether all of it did.
pub(crate) async fn serve(
    listener: TcpListener,
    served: Served,
    mut stopping: watch::Receiver<bool>,
) -> bool {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    while !*stopping.borrow_and_update() {
        let accepted = tokio::select! {
            _ = stopping.changed() => continue,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &room) => accepted,
        };
        let Some((stream, peer, seat)) = accepted else { continue };
        let (served, stopping) = (served.clone(), stopping.clone());
        connections.spawn(async move {
            // Answers are small and somebody waits for them. A socket that does not take the option works all the
            // same.
            let _ = stream.set_nodelay(true);
            let stream = Steady::new(stream, served.unread_time);
            match &served.tls {
                None => connection(stream, peer, served, stopping).await,
                Some(tls) => {
                    // Whoever does not come to terms in time, or speaks something else, is gone.
                    let hands = tokio::time::timeout(served.head_time, tls.accept(stream)).await;
                    if let Ok(Ok(stream)) = hands {
                        connection(stream, peer, served, stopping).await;
                    }
                }
            }
            drop(seat);
        });
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    // Those that are still there after this are cut off with the set.
    tokio::time::timeout(DRAIN_TIME, drained).await.is_ok()
}

type Seat = tokio::sync::OwnedSemaphorePermit;

async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> Option<(TcpStream, SocketAddr, Seat)> {
    let seat = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer, seat)),
        Err(_) => {
            // A client that was gone already, or no file descriptors left: neither is a reason to end.
            tokio::time::sleep(BREATHER).await;
            None
        }
    }
}

/// One connection, to its end.
pub(crate) async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    served: Served,
    mut stopping: watch::Receiver<bool>,
) {
    let inner = TowerToHyperService::new(served.router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        inner.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(served.head_time)
        .max_buf_size(MOST_BUFFERED)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let mut told = false;
    loop {
        tokio::select! {
            // A connection that breaks has nobody left to be told.
            _ = connection.as_mut() => return,
            stop = stopping.wait_for(|stop| *stop), if !told => {
                told = true;
                // A server whose switch is gone is stopping as well.
                drop(stop);
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}
