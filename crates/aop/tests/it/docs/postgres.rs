//! Blocks that need PostgreSQL, with a server of their own.

use super::reader::Reader;
use super::{How, blocks, pages_with, root};
use aop_testkit::postgres::Server;

#[test]
fn the_page_about_teams_goes_as_written_with_a_server() {
    assert_eq!(pages_with(&How::WithPostgres), ["docs/team.md"]);
    let server = Server::own("");
    let address = server.address("");
    let (_, there) = address.trim_end_matches('/').split_once('@').unwrap();
    let (_, port) = there.rsplit_once(':').unwrap();
    let variables =
        [("PGHOST", server.socket().as_os_str()), ("PGPORT", port.as_ref()), ("PGUSER", "aop".as_ref())];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut reader = Reader::with(&variables);
    for mut block in blocks(&root().join("docs/team.md")) {
        block.script = block.script.replace("db.example", there);
        reader.read(block);
    }
    reader.close();
}
