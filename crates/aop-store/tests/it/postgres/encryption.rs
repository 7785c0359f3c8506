//! TLS: demanded by the address, and then the server has to prove who it is.

use super::live;
use crate::support::wait;
use aop_store::{PostgresOptions, PostgresStore};
use aop_testkit::postgres::Server;
use std::time::Duration;

#[test]
fn an_address_that_demands_tls_gets_it_from_a_server_that_proves_itself() {
    let (server, address, certificate) = Server::encrypted();
    server.sql("postgres", "CREATE DATABASE team");
    let parse = |query: &str| PostgresOptions::parse(&format!("{address}/team?project=shop&{query}"));
    if cfg!(feature = "postgres-tls") {
        let options = parse(&format!("sslmode=require&sslrootcert={}", certificate.display())).unwrap();
        PostgresStore::create(&options).unwrap();
        let w = live(&options);
        let mut changes = w.store.changes();
        wait(w.feature("a"));
        wait(async { changes.changed().await.unwrap() });
        let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                         WHERE ssl AND application_name = 'aop'";
        let count: u32 = server.sql("team", encrypted).parse().unwrap();
        assert!(count >= 1, "{count}");
        wait(w.check());
        // The system does not know this certificate: no connection, and no fall-back to one without TLS.
        let stranger = parse("sslmode=require").unwrap().patience(Duration::from_millis(100));
        let refused = PostgresStore::create(&stranger).unwrap_err().to_string();
        assert!(refused.contains("certificate"), "{refused}");
    } else {
        let refused = parse("sslmode=require").unwrap_err().to_string();
        assert!(refused.contains("postgres-tls"), "{refused}");
    }
}
