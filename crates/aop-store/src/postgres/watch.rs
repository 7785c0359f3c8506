//! Noticing commits. Those of this process are announced by the writer; those of others come by NOTIFY, on a
//! connection of its own. A look at the counter every now and then is the safety net: a notification may be lost
//! with its sender or with the connection, a commit never is.

use super::Inside;
use super::dial::silence;
use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Connection, Error, NoTls};

/// How often the counter is looked at without having been told to.
const SAFETY_NET: Duration = Duration::from_secs(1);

/// Listens as long as the store is open, whatever happens to the connection.
pub(super) async fn run(inside: Rc<Inside>) {
    loop {
        // However it ended, the next one begins with a look at the counter, so nothing is missed in between.
        let _ = listen(&inside).await;
        tokio::time::sleep(SAFETY_NET / 2).await;
    }
}

async fn listen(inside: &Inside) -> Result<(), Error> {
    let dial = inside.link.dial();
    match dial.tls() {
        Some(tls) => {
            let made = dial.first(async |config| config.connect(tls.maker()).await).await;
            let (client, connection) = made?;
            attend(inside, client, connection).await
        }
        None => {
            let made = dial.first(async |config| config.connect(NoTls).await).await;
            let (client, connection) = made?;
            attend(inside, client, connection).await
        }
    }
}

/// Listens on this connection until it breaks.
async fn attend<S, T>(inside: &Inside, client: Client, mut connection: Connection<S, T>) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let (tell, mut told) = mpsc::unbounded_channel();
    let drive = async move {
        loop {
            match poll_fn(|context| connection.poll_message(context)).await {
                Some(Ok(AsyncMessage::Notification(_))) => {
                    // The receiver lives as long as this future does.
                    let _ = tell.send(());
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            }
        }
    };
    let channel = &inside.channel;
    let looking = async {
        let begin = async {
            client.batch_execute(&format!("LISTEN {channel}")).await?;
            let counter = client.prepare("SELECT last_seq FROM projects WHERE project = $1").await?;
            let sql =
                "SELECT max(seq), feature_id FROM events WHERE project = $1 AND seq > $2 GROUP BY feature_id";
            Ok((counter, client.prepare(sql).await?))
        };
        let (counter, touched) = in_time(inside, begin).await?;
        let announce = async |seq: u64| {
            inside.wakes.raise(seq);
            let Some(behind) = inside.wakes.behind() else { return Ok(()) };
            let params: [&(dyn ToSql + Sync); 2] = [&inside.project, &behind.cast_signed()];
            let rows = in_time(inside, client.query(&touched, &params)).await?;
            let last = rows.iter().map(|row| row.get::<_, i64>(0).unsigned_abs()).max();
            inside.wakes.found(rows.iter().map(|row| row.get(1)), last.unwrap_or(behind));
            Ok(())
        };
        loop {
            let params: [&(dyn ToSql + Sync); 1] = [&inside.project];
            let seq: Option<i64> = in_time(inside, client.query_opt_scalar(&counter, &params)).await?;
            announce(seq.unwrap_or_default().unsigned_abs()).await?;
            // Whether it came or not: what it says is not taken from it. Channels belong to the whole database, and in
            // another schema of it there may be a project of the same number.
            let _ = tokio::time::timeout(SAFETY_NET, told.recv()).await;
            while told.try_recv().is_ok() {}
        }
    };
    tokio::select! {
        ended = drive => ended,
        ended = looking => ended,
    }
}

/// Does not wait for a silent server longer than a call does.
async fn in_time<T>(inside: &Inside, asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let limit = inside.link.options().patience;
    tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| Err(silence()))
}
