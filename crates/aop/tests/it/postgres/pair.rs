//! A primary and a standby that has everything that was acknowledged, and one address for both.

use aop_testkit::postgres::Server;

pub(super) struct Pair {
    primary: Server,
    standby: Server,
    /// A project on whichever of them takes writes.
    pub(super) address: String,
}

impl Pair {
    pub(super) fn new() -> Self {
        let settings = "-c synchronous_commit=remote_apply -c wal_level=replica -c max_wal_senders=4 \
                        -c wal_retrieve_retry_interval=200ms";
        let primary = Server::own(settings);
        primary.sql("postgres", "CREATE DATABASE team");
        let standby = primary.standby("s1");
        primary.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 's1'");
        primary.sql("postgres", "SELECT pg_reload_conf()");
        let hosts =
            [&primary, &standby].map(|server| server.socket().display().to_string().replace('/', "%2F"));
        let address = format!(
            "postgres://aop@{}:5432,{}:5432/team?target_session_attrs=read-write&project=shop",
            hosts[0], hosts[1]
        );
        Pair { primary, standby, address }
    }

    /// Stops the primary in good order and starts it again.
    pub(super) fn restart(&self) {
        self.primary.stop();
        self.primary.start();
    }

    /// The primary is lost, and the standby takes over.
    pub(super) fn change_hands(&self) {
        self.primary.crash();
        self.standby.promote();
    }
}
