//! Making connections. A server may take one and never say a word: it was stopped, or a proxy or a tunnel holds the line
//! of one that is gone. Each server has its time for the whole beginning, and then the next one is tried.

use super::options::PostgresOptions;
use super::tls::Tls;
use deadpool_postgres::Connect;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_postgres::{Client, Config, Connection, Error, NoTls};

/// A server that was silent is tried behind the others for so long.
const AVOIDED: Duration = Duration::from_secs(30);

/// What every connection is told first. A client that lost its power must not hold a project's row for long;
/// and what was acknowledged has to be on disk, whatever the server's default is. Everything has its index: no table,
/// which has other projects in it too, is ever looked through.
const SESSION: &str = "SET idle_in_transaction_session_timeout = '10s'; SET enable_seqscan = off;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// Makes connections and tells them how to behave.
#[derive(Clone)]
pub(super) struct Dial {
    tls: Option<Tls>,
    servers: Arc<[Server]>,
    limit: Duration,
}

/// One server of the address.
struct Server {
    config: Config,
    /// When it last said nothing.
    silent: Mutex<Option<Instant>>,
}

impl Server {
    fn was_silent(&self) -> bool {
        let silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        silent.is_some_and(|at| at.elapsed() < AVOIDED)
    }

    fn is_silent(&self) {
        *self.silent.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

impl Dial {
    pub(super) fn new(options: &PostgresOptions) -> Self {
        let server = |config| Server { config, silent: Mutex::new(None) };
        let servers = options.servers().into_iter().map(server).collect();
        Dial { tls: options.tls.clone(), servers, limit: options.answers_within() }
    }

    pub(super) fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Does something with the first server that lets it be done in time.
    pub(super) async fn first<T, F>(&self, reach: impl Fn(Config) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut servers: Vec<&Server> = self.servers.iter().collect();
        servers.sort_by_key(|server| server.was_silent());
        let mut last = None;
        for server in servers {
            match tokio::time::timeout(self.limit, reach(server.config.clone())).await {
                Ok(Ok(reached)) => return Ok(reached),
                Ok(Err(error)) => last = Some(error),
                Err(_) => {
                    server.is_silent();
                    last = Some(silence());
                }
            }
        }
        Err(last.unwrap_or_else(silence))
    }
}

impl Connect for Dial {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        Box::pin(self.first(move |config| async move {
            match &self.tls {
                Some(tls) => {
                    let (client, connection) = config.connect(tls.maker()).await?;
                    begin(client, connection).await
                }
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    begin(client, connection).await
                }
            }
        }))
    }
}

/// Tells a new connection how to behave, and has it driven from then on.
async fn begin<S, T>(
    client: Client,
    mut connection: Connection<S, T>,
) -> Result<(Client, JoinHandle<()>), Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    {
        // Driven from here until it has answered: whoever stops waiting takes the connection along.
        let mut told = pin!(client.batch_execute(SESSION));
        tokio::select! {
            done = &mut told => done,
            Err(error) = &mut connection => Err(error),
            else => Err(silence()),
        }?;
    }
    // How a connection ends is told by the calls that were under way on it.
    let task = tokio::spawn(async move { drop(connection.await) });
    Ok((client, task))
}

/// That there was no answer in time.
pub(super) fn silence() -> Error {
    Error::__private_api_timeout()
}

/// Whether it was that.
pub(super) fn is_silence(error: &Error) -> bool {
    error.to_string() == silence().to_string()
}
