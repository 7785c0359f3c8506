//! The gate cycle: ask durably, somebody waits, answer durably, the waiter has it. In process, over HTTP, over MCP and
//! through the command line, on SQLite and on PostgreSQL; then many parked questions, and kill -9 with many parked.
//! Always beside a floor that does the same durable commits with the bare database and nothing else, beside the rate
//! at which the disk syncs, and with the syncs counted. JSON lines on stdout; nothing is asserted but that nothing is
//! lost. `cargo xtask bench gate` runs it.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark stops at the first surprise and prints its figures"
)]

#[path = "../common/calls.rs"]
mod calls;
mod desk;
mod killed;
mod machine;
mod measure;
mod options;
mod park;
mod place;
mod syncs;
mod wait;
mod ways;

use aop_testkit::postgres::Server;
use options::Options;
use place::Place;
use std::path::Path;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if options::child(&args, |child| child.run()) {
        return;
    }
    let options = Options::read(&args);
    let folder = tempfile::tempdir_in(&options.folder).unwrap();
    eprintln!("measuring in {} …", folder.path().display());
    println!("{}", machine::line(folder.path()));
    if options.stores("sqlite") {
        all(&options, &folder.path().join("sqlite"), &Place::Sqlite, None);
    }
    if options.stores("postgres") {
        let server = Server::own("-c shared_buffers=512MB -c max_connections=1000");
        server.sql("postgres", "CREATE DATABASE bench");
        let place = Place::Postgres(server.address("bench"));
        all(&options, &folder.path().join("postgres"), &place, Some(&server));
    }
}

/// Everything on one kind of store.
fn all(options: &Options, folder: &Path, place: &Place, server: Option<&Server>) {
    std::fs::create_dir_all(folder).unwrap();
    if options.does("cycle") {
        measure::cycles(options, folder, place);
    }
    if options.does("syncs") {
        syncs::count(options, folder, place, server);
    }
    if options.does("park") {
        park::all(options, folder, place, server);
    }
    if options.does("killed") {
        killed::all(options, folder, place, server);
    }
}
