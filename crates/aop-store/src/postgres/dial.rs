//! Making connections. A server may take one and never say a word: it was stopped, or a proxy or a tunnel holds the line
//! of one that is gone. Each server has its time for the whole beginning, at each address that its name stands for, and then
//! the next one is tried.

use super::options::PostgresOptions;
use super::tls::Tls;
use deadpool_postgres::Connect;
use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_postgres::config::{Host, LoadBalanceHosts};
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
    /// When it last said nothing, as a whole (`None`) and at each address.
    silent: Mutex<HashMap<Option<IpAddr>, Instant>>,
}

impl Server {
    fn was_silent(&self, at: Option<IpAddr>) -> bool {
        self.silent().get(&at).is_some_and(|when| when.elapsed() < AVOIDED)
    }

    fn is_silent(&self, at: Option<IpAddr>) {
        self.silent().insert(at, Instant::now());
    }

    fn silent(&self) -> MutexGuard<'_, HashMap<Option<IpAddr>, Instant>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name whose addresses have to be found.
    fn name(&self) -> Option<&str> {
        match (self.config.get_hosts(), self.config.get_hostaddrs()) {
            ([Host::Tcp(name)], []) if name.parse::<IpAddr>().is_err() => Some(name),
            _ => None,
        }
    }

    /// One way for each of these addresses, those that were silent last; without any, the server as it was given.
    fn ways(&self, mut addresses: Vec<IpAddr>) -> Vec<(Option<IpAddr>, Config)> {
        if addresses.is_empty() {
            return vec![(None, self.config.clone())];
        }
        if self.config.get_load_balance_hosts() == LoadBalanceHosts::Random {
            let count = addresses.len();
            addresses.rotate_left(std::process::id() as usize % count);
        }
        addresses.sort_by_key(|address| self.was_silent(Some(*address)));
        let way = |address| {
            let mut config = self.config.clone();
            // The name stays, for the server's certificate.
            config.hostaddr(address);
            (Some(address), config)
        };
        addresses.into_iter().map(way).collect()
    }
}

impl Dial {
    pub(super) fn new(options: &PostgresOptions) -> Self {
        let server = |config| Server { config, silent: Mutex::default() };
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
        self.first_of(addresses_of, reach).await
    }

    /// The same, with the addresses that names have.
    async fn first_of<T, F, A>(
        &self,
        find: impl Fn(String) -> A,
        reach: impl Fn(Config) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
        A: Future<Output = Vec<IpAddr>>,
    {
        let mut servers: Vec<&Server> = self.servers.iter().collect();
        servers.sort_by_key(|server| server.was_silent(None));
        let mut last = None;
        for server in servers {
            let found = match server.name() {
                Some(name) => tokio::time::timeout(self.limit, find(name.to_owned())).await,
                None => Ok(Vec::new()),
            };
            let ways = found.map(|addresses| server.ways(addresses)).unwrap_or_default();
            let mut all_silent = true;
            for (address, config) in ways {
                match tokio::time::timeout(self.limit, reach(config)).await {
                    Ok(Ok(reached)) => return Ok(reached),
                    Ok(Err(error)) => {
                        all_silent = false;
                        last = Some(error);
                    }
                    Err(_) => {
                        server.is_silent(address);
                        last = Some(silence());
                    }
                }
            }
            if all_silent {
                server.is_silent(None);
            }
        }
        Err(last.unwrap_or_else(silence))
    }
}

/// What a name stands for; none where that cannot be found out, which is told by whoever uses the name then.
async fn addresses_of(name: String) -> Vec<IpAddr> {
    let found = tokio::net::lookup_host((name, 0)).await;
    found.map(|found| found.map(|socket| socket.ip()).collect()).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_address_of_a_name_has_its_time_and_a_silent_one_is_asked_last_from_then_on() {
        let options = PostgresOptions::parse("postgres://ann@db.example/team").unwrap();
        let dial = Dial { limit: Duration::from_millis(1), ..Dial::new(&options) };
        let [dead, well] = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])];
        let asked = Mutex::new(Vec::new());
        let reach = async |config: Config| {
            assert_eq!(config.get_hosts(), [Host::Tcp("db.example".into())]);
            asked.lock().unwrap().extend_from_slice(config.get_hostaddrs());
            if config.get_hostaddrs() == [dead] { std::future::pending().await } else { Ok(()) }
        };
        for _ in 0..2 {
            dial.first_of(async |_| vec![dead, well], reach).await.unwrap();
        }
        assert_eq!(*asked.lock().unwrap(), [dead, well, well]);
    }
}
