//! The way to the server: a small pool, what its errors mean to a person, and patience while it restarts or
//! another server takes its place.

use super::dial::{Dial, is_silence, silence};
use super::options::{PostgresOptions, with_causes};
use crate::error::StoreError;
use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType, Timeouts,
};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// More connections win nothing: the commits of a project are one queue, and reads are short.
const CONNECTIONS: usize = 8;

/// The first pause before another attempt; each is twice as long as the one before, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Connections to one database.
pub(super) struct Link {
    pool: Pool,
    dial: Dial,
    options: PostgresOptions,
}

/// How long an attempt may rightly take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// Not longer than a caller is patient.
    Short,
    /// It depends on how much there is.
    Any,
}

/// What is known after some attempts.
struct Patience {
    start: Instant,
    /// How long to wait before the next.
    pause: Duration,
    /// Whether one of them may have been carried out.
    doubt: bool,
}

/// Why an attempt failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// For good.
    Final(StoreError),
    /// The server, or the way to it. `in_doubt`: it may have done what it was told.
    Medium { error: Error, in_doubt: bool },
}

impl From<Error> for Failure {
    /// A single statement: when the connection broke, nobody knows whether it was carried out.
    fn from(error: Error) -> Self {
        let in_doubt = error.as_db_error().is_none();
        Failure::Medium { error, in_doubt }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Final(error)
    }
}

impl Failure {
    /// Nothing had been told to the server yet that changes anything.
    pub(super) fn before_any_write(self) -> Self {
        match self {
            Failure::Medium { error, .. } => Failure::Medium { error, in_doubt: false },
            Failure::Final(error) => Failure::Final(error),
        }
    }
}

impl Link {
    pub(super) fn new(options: PostgresOptions) -> Result<Self, StoreError> {
        let settings = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let dial = Dial::new(&options);
        let manager = Manager::from_connect(options.config.clone(), dial.clone(), settings);
        let pool = Pool::builder(manager).max_size(CONNECTIONS).runtime(Runtime::Tokio1).build();
        let pool = pool.map_err(|error| unavailable(&options, &error.to_string(), "report this"))?;
        Ok(Link { pool, dial, options })
    }

    /// The same connections with other options, for another patience.
    pub(super) fn with(self, options: PostgresOptions) -> Self {
        Link { options, ..self }
    }

    pub(super) fn options(&self) -> &PostgresOptions {
        &self.options
    }

    /// What makes its connections.
    pub(super) fn dial(&self) -> &Dial {
        &self.dial
    }

    /// A connection from the pool, or a new one; one attempt. `wait` is for those who have all of them: while the server is
    /// silent they have them for long, and a queue behind them would wait for ever longer.
    pub(super) async fn connection(&self, wait: Option<Duration>) -> Result<Object, Failure> {
        let limits = Timeouts { wait, ..Timeouts::default() };
        self.pool.timeout_get(&limits).await.map_err(|error| match error {
            PoolError::Backend(error) => Failure::Medium { error, in_doubt: false },
            PoolError::Timeout(TimeoutType::Wait) => Failure::Medium { error: silence(), in_doubt: false },
            other => {
                Failure::Final(unavailable(&self.options, &with_causes(&other), "run the command again"))
            }
        })
    }

    /// Does something on a connection, and again on another one while the server is away or silent. The work is
    /// told whether an earlier attempt may have been carried out.
    pub(super) async fn patiently<T>(
        &self,
        work: impl AsyncFnMut(Object, bool) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.attempts(Length::Short, work).await
    }

    /// The same.
    pub(super) async fn attempts<T>(
        &self,
        length: Length,
        mut work: impl AsyncFnMut(Object, bool) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let mut patience = Patience { start: Instant::now(), pause: FIRST_PAUSE, doubt: false };
        loop {
            let wait =
                (length == Length::Short).then(|| self.left(&patience).max(self.options.answers_within()));
            let result = match (self.connection(wait).await, length) {
                (Ok(connection), Length::Short) => {
                    let limit = self.limit(&patience);
                    // Nobody knows what became of an attempt that had no answer.
                    let unanswered = |_| Err(Failure::Medium { error: silence(), in_doubt: true });
                    timeout(limit, work(connection, patience.doubt)).await.unwrap_or_else(unanswered)
                }
                (Ok(connection), Length::Any) => work(connection, patience.doubt).await,
                (Err(failure), _) => Err(failure),
            };
            match result {
                Ok(value) => return Ok(value),
                Err(failure) => self.sit_out(failure, &mut patience).await?,
            }
        }
    }

    /// How long an attempt may take: half of what is left, so that another connection can be tried.
    fn limit(&self, patience: &Patience) -> Duration {
        (self.left(patience) / 2).max(self.options.answers_within())
    }

    /// How long a caller is still patient.
    fn left(&self, patience: &Patience) -> Duration {
        self.options.patience.saturating_sub(patience.start.elapsed())
    }

    /// Waits before another attempt, unless there is to be none.
    async fn sit_out(&self, failure: Failure, patience: &mut Patience) -> Result<(), StoreError> {
        // The connection may stand in the middle of a transaction. Its neighbours in the pool are no better
        // off when the server is gone, or has become a standby.
        self.pool.retain(|_, _| false);
        let error = match failure {
            Failure::Final(error) => return Err(error),
            Failure::Medium { error, in_doubt } => {
                patience.doubt |= in_doubt;
                error
            }
        };
        if !passes(&error) || patience.start.elapsed() + patience.pause > self.options.patience {
            return Err(self.explain(&error, patience.doubt));
        }
        tokio::time::sleep(patience.pause.mul_f64(jitter())).await;
        patience.pause = (patience.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }

    /// What an error means to a person, and what to do about it.
    fn explain(&self, error: &Error, in_doubt: bool) -> StoreError {
        if in_doubt {
            let cause = if is_silence(error) {
                "the server did not answer in time".to_owned()
            } else {
                format!("the connection broke before the answer came ({})", with_causes(error))
            };
            let hint = "run it again with the same operation id: it tells whether it was written, and is written once";
            return unavailable(&self.options, &cause, hint);
        }
        if is_silence(error) {
            let cause = "the server takes connections and does not answer";
            let hint = "look at the server, and at a proxy or tunnel on the way; a slow one gets more time by connect_timeout=SECONDS in the address";
            return unavailable(&self.options, cause, hint);
        }
        let hint = match error.code() {
            Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
                "check user and password; the password may also stand in PGPASSWORD"
            }
            Some(&SqlState::INVALID_CATALOG_NAME) => "create the database first: createdb NAME",
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                "the role lacks a right: see \"Roles\" in docs/team.md, or run `aop store migrate` as the owner"
            }
            Some(&SqlState::UNDEFINED_TABLE) => "run `aop store migrate`",
            Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => {
                "this server is a standby: name all servers and add target_session_attrs=read-write"
            }
            Some(&SqlState::QUERY_CANCELED) => {
                "raise the server's statement_timeout for this role: ALTER ROLE NAME SET statement_timeout = '1min'"
            }
            Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                "another session held the project for longer than the server's lock_timeout: look for it in pg_stat_activity, or raise lock_timeout for this role"
            }
            Some(&SqlState::TOO_MANY_CONNECTIONS) => "raise max_connections, or put a pooler in front",
            Some(&SqlState::DISK_FULL) => "the server's disk is full: free some space",
            // The driver's own words, before the server could say anything.
            None if with_causes(error).contains("password missing") => {
                "the server wants a password: put it into the address (AOP_STORE) or into PGPASSWORD"
            }
            _ => "check that the server runs and can be reached from here, then run the command again",
        };
        unavailable(&self.options, &with_causes(error), hint)
    }
}

/// Whether an error passes by itself, on another connection or a little later.
fn passes(error: &Error) -> bool {
    let Some(code) = error.code() else {
        // No word from the server: the connection broke or could not be made. What cannot be understood at all
        // (a wrong parameter, a row of another shape) is no loss of connection and does not pass.
        return error.is_closed()
            || is_silence(error)
            || caused_by_io(error)
            || error.to_string().contains("connect");
    };
    code.code().starts_with("08")
        || [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            SqlState::READ_ONLY_SQL_TRANSACTION,
            // The server's own timeouts: what held the statement up may be over.
            SqlState::QUERY_CANCELED,
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ]
        .contains(code)
}

fn caused_by_io(error: &Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(inner) = cause {
        if inner.is::<std::io::Error>() {
            return true;
        }
        cause = inner.source();
    }
    false
}

/// Between a half and one and a half, so that many clients of a server that comes back do not knock at once.
fn jitter() -> f64 {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    0.5 + f64::from(nanos.subsec_nanos() % 1_000) / 1_000.0
}

/// An unavailable store, in words.
pub(super) fn unavailable(options: &PostgresOptions, cause: &str, hint: &str) -> StoreError {
    StoreError::Unavailable { place: options.place(), cause: cause.into(), hint: hint.into() }
}
