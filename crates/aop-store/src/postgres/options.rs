//! Which server, which database, which project: what a `postgres://` address says. The password in it is never
//! shown to anybody.

use super::tls::{Tls, connector};
use crate::error::StoreError;
use crate::variable::variable;
use std::fmt;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode};

/// How long a call goes on trying while the server restarts or another one takes its place.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a server may take for the beginning of a connection, unless the address says `connect_timeout`.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Where a project lives on PostgreSQL.
#[derive(Clone)]
pub struct PostgresOptions {
    pub(super) config: Config,
    pub(super) project: Option<String>,
    pub(super) patience: Duration,
    /// What makes connections, when they have to be encrypted.
    pub(super) tls: Option<Tls>,
}

impl PostgresOptions {
    /// Reads `postgres://user@host:port/database?project=NAME`. Every option of PostgreSQL's own addresses may
    /// stand there, several hosts too; `project` is ours.
    pub fn parse(address: &str) -> Result<Self, StoreError> {
        let (base, query) = address.split_once('?').unwrap_or((address, ""));
        let mut project = None;
        let mut roots = None;
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("project", name)) => project = Some(name.to_owned()),
                Some(("sslrootcert", file)) => roots = Some(file.replace("%2F", "/")),
                _ => rest.push(pair),
            }
        }
        if let Some(name) = &project {
            check_project(name)?;
        }
        let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
        let mut config: Config = format!("{base}{query}").parse().map_err(|error| {
            // Only what the parser says of the form: the address itself may hold a password.
            unusable(&format!("the address cannot be read: {}", with_causes(&error)))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(unusable("the address names no host"));
        }
        if config.get_user().is_none() {
            config.user(variable("PGUSER").or_else(|| variable("USER")).unwrap_or("aop".into()));
        }
        if config.get_application_name().is_none() {
            config.application_name("aop");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(ANSWERS_WITHIN);
        }
        if config.get_tcp_user_timeout().is_none() {
            // A host that is gone does not say so: without this a call would wait for it for many minutes.
            config.tcp_user_timeout(Duration::from_secs(15)).keepalives_idle(Duration::from_secs(15));
        }
        let tls = match config.get_ssl_mode() {
            SslMode::Require => Some(connector(roots.as_deref()).map_err(|cause| unusable(&cause))?),
            // What could be read on the way anyway is not worth a server that cannot prove who it is.
            _ => {
                config.ssl_mode(SslMode::Disable);
                None
            }
        };
        Ok(PostgresOptions { config, project, patience: PATIENCE, tls })
    }

    /// Takes this password when the address has none.
    #[must_use]
    pub fn or_password(mut self, password: &str) -> Self {
        if self.config.get_password().is_none() {
            self.config.password(password);
        }
        self
    }

    /// Gives up after this long without a server.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The same place, and this project of it.
    #[must_use]
    pub fn project(mut self, project_id: &str) -> Self {
        self.project = Some(project_id.to_owned());
        self
    }

    /// The project that is named, if one is.
    pub fn project_id(&self) -> Option<&str> {
        self.project.as_deref()
    }

    /// How long a server may take for the beginning of a connection.
    pub(super) fn answers_within(&self) -> Duration {
        self.config.get_connect_timeout().copied().unwrap_or(ANSWERS_WITHIN)
    }

    /// Every server of the address by itself.
    pub(super) fn servers(&self) -> Vec<Config> {
        let all = &self.config;
        let (hosts, addresses, ports) = (all.get_hosts(), all.get_hostaddrs(), all.get_ports());
        let count = hosts.len().max(addresses.len());
        let fits = |length: usize| length == 0 || length == count;
        if count < 2
            || !fits(hosts.len())
            || !fits(addresses.len())
            || !(fits(ports.len()) || ports.len() == 1)
        {
            // What does not fit together is refused where it is used.
            return vec![all.clone()];
        }
        let mut servers: Vec<Config> = (0..count)
            .map(|index| {
                let mut one = without_servers(all);
                match hosts.get(index) {
                    Some(Host::Tcp(name)) => drop(one.host(name)),
                    Some(Host::Unix(path)) => drop(one.host_path(path)),
                    None => {}
                }
                if let Some(address) = addresses.get(index) {
                    one.hostaddr(*address);
                }
                if let Some(port) = ports.get(index).or(ports.first()) {
                    one.port(*port);
                }
                one
            })
            .collect();
        if all.get_load_balance_hosts() == LoadBalanceHosts::Random {
            servers.rotate_left(std::process::id() as usize % count);
        }
        servers
    }

    /// The address as it may be shown: without the password.
    pub fn place(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        });
        let ports = self.config.get_ports();
        let hosts: Vec<String> = hosts
            .enumerate()
            .map(|(index, host)| match ports.get(index).or(ports.first()) {
                Some(port) => format!("{host}:{port}"),
                None => host,
            })
            .collect();
        let user = self.config.get_user().unwrap_or_default();
        let database = self.config.get_dbname().unwrap_or(user);
        format!("postgres://{user}@{}/{database}", hosts.join(","))
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("place", &self.place())
            .field("project", &self.project)
            .finish_non_exhaustive()
    }
}

/// All that an address says besides its servers.
fn without_servers(all: &Config) -> Config {
    let mut one = Config::new();
    if let Some(user) = all.get_user() {
        one.user(user);
    }
    if let Some(password) = all.get_password() {
        one.password(password);
    }
    if let Some(database) = all.get_dbname() {
        one.dbname(database);
    }
    if let Some(options) = all.get_options() {
        one.options(options);
    }
    if let Some(name) = all.get_application_name() {
        one.application_name(name);
    }
    if let Some(timeout) = all.get_connect_timeout() {
        one.connect_timeout(*timeout);
    }
    if let Some(timeout) = all.get_tcp_user_timeout() {
        one.tcp_user_timeout(*timeout);
    }
    if let Some(interval) = all.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = all.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .keepalives(all.get_keepalives())
        .keepalives_idle(all.get_keepalives_idle())
        .target_session_attrs(all.get_target_session_attrs())
        .channel_binding(all.get_channel_binding())
        .load_balance_hosts(all.get_load_balance_hosts());
    one
}

/// A project's name goes into addresses and messages.
fn check_project(name: &str) -> Result<(), StoreError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 100 || !name.chars().all(fits) {
        return Err(unusable(&format!(
            "'{name}' cannot name a project: 1 to 100 letters, digits, '-', '_' or '.'"
        )));
    }
    Ok(())
}

/// An error with what lies behind it, in one line.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    text
}

fn unusable(cause: &str) -> StoreError {
    StoreError::Unavailable {
        place: "store".into(),
        cause: cause.into(),
        hint: "write it as postgres://user@host:5432/database?project=NAME".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_never_shown() {
        let options =
            PostgresOptions::parse("postgres://ann:hunter2@db.example:6432/team?project=shop").unwrap();
        assert_eq!(options.place(), "postgres://ann@db.example:6432/team");
        assert!(!format!("{options:?}").contains("hunter2"));
        for broken in ["postgres://ann:hunter2@db/x?no=such", "postgres://ann:hunter2@db:port/x", "hunter2"] {
            let error = PostgresOptions::parse(broken).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn the_address_names_the_project_and_everything_that_postgresql_knows() {
        let address = "postgres://ann@one,two:5433/team?target_session_attrs=read-write&project=shop.v-2";
        let options = PostgresOptions::parse(address).unwrap();
        assert_eq!(options.project_id(), Some("shop.v-2"));
        assert_eq!(options.config.get_hosts().len(), 2);
        let servers = options.servers();
        assert_eq!(servers.iter().map(|one| one.get_hosts().len()).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(servers[1].get_ports(), [5433]);
        let rest = |config: &Config| {
            let text = format!("{config:?}");
            text.split(", ")
                .filter(|part| !["host", "port"].iter().any(|name| part.starts_with(name)))
                .count()
        };
        assert_eq!(
            rest(&servers[0]),
            rest(&PostgresOptions::parse("postgres://ann@one/team").unwrap().config)
        );
        let error = PostgresOptions::parse("postgres://ann@one/team?project=../x").unwrap_err();
        assert!(error.to_string().contains("../x"), "{error}");
    }
}
