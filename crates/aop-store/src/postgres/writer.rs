//! The writer: drains its queue into one transaction, commits, then answers.
//!
//! Two flights per commit, whatever its size. The first begins, locks the project's row and reads what the
//! members need; the second writes all rows by one statement, commits and wakes whoever listens. The lock comes
//! first: at READ COMMITTED each statement behind it sees everything that was committed before, so the rules are
//! decided on the truth, the counter has no gap, and whoever looks up an operation after a lost connection waits
//! until the server is done with the attempt it lost.

use super::batch::{Batch, Writes};
use super::history::restore;
use super::learn;
use super::link::{Failure, unavailable};
use super::{Inside, TimeSource};
use crate::clock::Ids;
use crate::decide::{BATCH, EXPIRE_AT_ONCE};
use crate::error::StoreError;
use crate::fault::crash_point;
use crate::history::Entries;
use crate::port::Receipt;
use aop_kernel::ids::FeatureId;
use aop_kernel::lifecycle::Request;
use aop_kernel::policy::Rules;
use aop_kernel::time::Timestamp;
use deadpool_postgres::Object;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// Everything is found by its key, however many there are: one plan for ever, instead of one for every commit.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL plan_cache_mode = force_generic_plan";

const LOCK: &str = "SELECT last_seq, last_at FROM projects WHERE project = $1 FOR NO KEY UPDATE";

const LOAD: &str = "
    SELECT 0::int2, (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)::text, NULL::text, NULL::text
    UNION ALL SELECT 1::int2, operation_id, digest, envelope FROM operations
        WHERE project = $1 AND operation_id = ANY($2)
    UNION ALL SELECT 2::int2, feature_id, record, NULL FROM features WHERE project = $1 AND feature_id = ANY($3)
    UNION ALL SELECT 3::int2, feature_id, record, NULL FROM questions
        WHERE project = $1 AND feature_id = ANY($3) AND status = 'open'
    UNION ALL SELECT 4::int2, question_id, record, NULL FROM questions
        WHERE project = $1 AND question_id = ANY($4) AND status <> 'open'";

const DUE: &str = "
    SELECT feature_id FROM questions WHERE project = $1 AND status = 'open' AND expires_at <= $2
    GROUP BY feature_id ORDER BY min(expires_at), feature_id LIMIT $3";

const WRITE: &str = "
    WITH e AS (
        INSERT INTO events (project, seq, feature_id, at, question_id, line, event)
        SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[])
    ), f AS (
        INSERT INTO features (project, feature_id, status, adhoc, version, record)
        SELECT $1, * FROM unnest($8::text[], $9::text[], $10::boolean[], $11::bigint[], $12::text[])
        ON CONFLICT (project, feature_id) DO UPDATE
        SET status = excluded.status, version = excluded.version, record = excluded.record
    ), q AS (
        INSERT INTO questions
            (project, question_id, feature_id, status, created_at, expires_at, answered_at, record)
        SELECT $1, * FROM unnest($13::text[], $14::text[], $15::text[], $16::bigint[], $17::bigint[],
            $18::bigint[], $19::text[])
        ON CONFLICT (project, question_id) DO UPDATE
        SET status = excluded.status, answered_at = excluded.answered_at, record = excluded.record
    ), o AS (
        INSERT INTO operations (project, operation_id, digest, envelope)
        SELECT $1, * FROM unnest($20::text[], $21::text[], $22::text[])
    )
    UPDATE projects SET last_seq = $23, last_at = greatest(last_at, $24) WHERE project = $1";

/// Only of what is committed: when the transaction before it failed, there is nothing to tell.
const NOTIFY: &str = "
    SELECT pg_notify($2, last_seq::text) FROM projects WHERE project = $1 AND last_seq >= $3";

/// One queued call.
pub(super) enum Job {
    Submit(Box<Submit>),
    /// Answers with the number of features that changed in one commit, and whether there may be more.
    Expire(oneshot::Sender<Result<(usize, bool), StoreError>>),
    /// Takes the history of another store; answers with the last event.
    Restore(Entries, oneshot::Sender<Result<u64, StoreError>>),
}

pub(super) struct Submit {
    pub(super) request: Request,
    pub(super) rules: Arc<Rules>,
    pub(super) reply: oneshot::Sender<Result<Receipt, StoreError>>,
}

/// The loop: one commit at a time, because a project's commits are one queue anyway.
pub(super) async fn run(inside: std::rc::Rc<Inside>, mut queue: mpsc::UnboundedReceiver<Job>) {
    let mut ids = Ids::new();
    let mut next = None;
    let mut known = inside.wakes.last();
    loop {
        let first = match next.take() {
            Some(job) => job,
            None => match queue.recv().await {
                Some(job) => job,
                None => return,
            },
        };
        match first {
            Job::Expire(reply) => {
                let result = expire(&inside, &mut ids).await;
                // A caller that stopped waiting loses nothing.
                let _ = reply.send(result);
            }
            Job::Restore(entries, reply) => {
                let result = restore(&inside, &mut ids, entries).await;
                let _ = reply.send(result);
            }
            Job::Submit(submit) => {
                let mut members = vec![*submit];
                while members.len() < BATCH && next.is_none() {
                    match queue.try_recv() {
                        Ok(Job::Submit(submit)) => members.push(*submit),
                        Ok(other) => next = Some(other),
                        Err(_) => break,
                    }
                }
                submit_all(&inside, &mut ids, members).await;
            }
        }
        let last = inside.wakes.last();
        if learn::is_due(known, last) {
            tokio::task::spawn_local(learn::count(std::rc::Rc::clone(&inside)));
        }
        known = last;
    }
}

/// One transaction for all of them, then one answer for each.
async fn submit_all(inside: &Inside, ids: &mut Ids, members: Vec<Submit>) {
    let mut settled: Vec<Option<String>> = vec![None; members.len()];
    let mut results = Vec::new();
    let outcome = inside
        .link
        .patiently(async |connection, in_doubt| {
            if !in_doubt {
                settled.fill(None);
            }
            results = attempt(inside, ids, &connection, &members, &mut settled).await?;
            Ok(())
        })
        .await;
    // Refusals too are only told after the commit: one may rest on a neighbour's change.
    if let Err(error) = outcome {
        results = members.iter().map(|_| Err(error.clone())).collect();
    }
    for (member, result) in members.into_iter().zip(results) {
        // A caller that stopped waiting loses nothing: its operation id tells it later.
        let _ = member.reply.send(result);
    }
}

/// One attempt. `settled` keeps what each member came to while nobody knows whether it was committed.
async fn attempt(
    inside: &Inside,
    ids: &mut Ids,
    connection: &Object,
    members: &[Submit],
    settled: &mut [Option<String>],
) -> Result<Vec<Result<Receipt, StoreError>>, Failure> {
    let operations: Vec<&str> = members.iter().map(|member| member.request.operation_id.as_str()).collect();
    let features: Vec<&str> =
        members.iter().map(|member| member.request.command.feature_id().as_str()).collect();
    let named: Vec<&str> = members
        .iter()
        .filter_map(|member| member.request.command.question_id())
        .map(|id| id.as_str())
        .collect();
    let mut batch = load(inside, ids, connection, &operations, &features, &named)
        .await
        .map_err(Failure::before_any_write)?;
    let results: Vec<_> = members
        .iter()
        .zip(settled.iter())
        .map(|(member, settled)| batch.submit(&member.request, &member.rules, settled.as_deref()))
        .collect();
    for (result, settled) in results.iter().zip(settled) {
        if let Ok(receipt) = result
            && receipt.fresh
        {
            *settled = Some(receipt.envelope.as_str().to_owned());
        }
    }
    let (now, seq) = (batch.now, batch.seq);
    commit(inside, connection, &batch.writes, now, seq).await?;
    Ok(results)
}

/// Expires what is due in at most [`EXPIRE_AT_ONCE`] features; how many changed, and whether there may be more.
async fn expire(inside: &Inside, ids: &mut Ids) -> Result<(usize, bool), StoreError> {
    inside
        .link
        .patiently(async |connection, _| {
            let due = connection.prepare_cached(DUE).await?;
            let limit = EXPIRE_AT_ONCE as i64;
            let project = inside.project;
            // A look without the lock: most of the time nothing is due.
            let now = inside.now(&connection).await.map_err(Failure::before_any_write)?;
            let rows = connection.query(&due, &[&project, &now.as_millis(), &limit]).await?;
            if rows.is_empty() {
                return Ok((0, false));
            }
            let features: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            let names: Vec<&str> = features.iter().map(String::as_str).collect();
            let mut batch =
                load(inside, ids, &connection, &[], &names, &[]).await.map_err(Failure::before_any_write)?;
            let mut changed = 0;
            for id in &features {
                changed += usize::from(batch.expire(&FeatureId::parse(id).map_err(StoreError::from)?)?);
            }
            let (now, seq) = (batch.now, batch.seq);
            commit(inside, &connection, &batch.writes, now, seq).await?;
            Ok((changed, features.len() == EXPIRE_AT_ONCE))
        })
        .await
}

/// The first flight: begin, lock, read.
pub(super) async fn load<'a>(
    inside: &Inside,
    ids: &'a mut Ids,
    connection: &Object,
    operations: &[&str],
    features: &[&str],
    named: &[&str],
) -> Result<Batch<'a>, Failure> {
    // Those of the second flight too: nobody who has the lock waits for a plan. In one flight, on a new connection.
    let (lock, load, _write, _notify) = tokio::try_join!(
        connection.prepare_cached(LOCK),
        connection.prepare_cached(LOAD),
        connection.prepare_cached(WRITE),
        connection.prepare_cached(NOTIFY),
    )?;
    let project = inside.project;
    let lock_params: [&(dyn ToSql + Sync); 1] = [&project];
    let load_params: [&(dyn ToSql + Sync); 4] = [&project, &operations, &features, &named];
    // Polled together they are sent together: one round trip.
    let (begun, counters, rows) = tokio::join!(
        connection.batch_execute(BEGIN),
        connection.query_opt(&lock, &lock_params),
        connection.query(&load, &load_params),
    );
    begun?;
    let (counters, rows) = (counters?, rows?);
    let Some(counters) = counters else { return Err(inside.project_is_gone().into()) };
    let last_at = Timestamp::from_millis(counters.get(1));
    let clock = rows.iter().find(|row| row.get::<_, i16>(0) == 0).and_then(|row| text(row, 1).parse().ok());
    let clock = match &inside.time {
        TimeSource::Database => Timestamp::from_millis(clock.unwrap_or_default()),
        TimeSource::Given(clock) => clock.now(),
    };
    let mut batch = Batch::new(clock.max(last_at), counters.get::<_, i64>(0).unsigned_abs(), ids);
    for row in &rows {
        match row.get::<_, i16>(0) {
            1 => batch.know_operation(text(row, 1), text(row, 2), text(row, 3)),
            2 => batch.know_feature(text(row, 1), text(row, 2)),
            3 => batch.know_open(text(row, 1), text(row, 2)),
            4 => batch.know_named(text(row, 1), text(row, 2)),
            _ => {}
        }
    }
    Ok(batch)
}

fn text(row: &Row, column: usize) -> String {
    row.get::<_, Option<String>>(column).unwrap_or_default()
}

/// The second flight: write, commit, wake.
async fn commit(
    inside: &Inside,
    connection: &Object,
    writes: &Writes,
    now: Timestamp,
    seq: u64,
) -> Result<(), Failure> {
    if writes.is_empty() {
        let ended = connection.batch_execute("ROLLBACK").await;
        return ended.map_err(|error| Failure::from(error).before_any_write());
    }
    crash_point("before_commit");
    rare(inside, connection, writes).await.map_err(Failure::before_any_write)?;
    let write =
        connection.prepare_cached(WRITE).await.map_err(|error| Failure::from(error).before_any_write())?;
    let notify =
        connection.prepare_cached(NOTIFY).await.map_err(|error| Failure::from(error).before_any_write())?;
    let columns = Columns::of(writes);
    let (project, seq, now) = (inside.project, seq.cast_signed(), now.as_millis());
    let params = columns.params(&project, &seq, &now);
    let notify_params: [&(dyn ToSql + Sync); 3] = [&project, &inside.channel, &seq];
    // Polled together they are sent together. Nobody waits until the others have been told.
    let told = async {
        let _ = connection.execute(&notify, &notify_params).await;
        std::future::pending::<Infallible>().await
    };
    let ended =
        async { tokio::join!(connection.execute(&write, &params), connection.batch_execute("COMMIT")) };
    let (written, committed) = tokio::select! {
        biased;
        ended = ended => ended,
        never = told => match never {},
    };
    // A COMMIT of a transaction that has failed answers as if all were well, and rolls back. One that answers
    // with an error may have been carried out all the same: a server that is shut down while it waits for its
    // standby says so.
    let rows = written?;
    committed.map_err(|error| Failure::Medium { error, in_doubt: true })?;
    if rows != 1 {
        return Err(inside.project_is_gone().into());
    }
    crash_point("after_commit");
    // Announced before it is answered: whoever has the answer finds the commit among the changes.
    let (last, events) = (seq.unsigned_abs(), writes.events.len() as u64);
    inside.wakes.committed(last - events, last, writes.features.keys().map(String::as_str));
    Ok(())
}

/// Writes rows and goes on in the same transaction.
pub(super) async fn flush(
    inside: &Inside,
    connection: &Object,
    writes: &Writes,
    now: Timestamp,
    seq: u64,
) -> Result<(), Failure> {
    rare(inside, connection, writes).await?;
    let write = connection.prepare_cached(WRITE).await?;
    let columns = Columns::of(writes);
    let (project, seq, now) = (inside.project, seq.cast_signed(), now.as_millis());
    connection.execute(&write, &columns.params(&project, &seq, &now)).await?;
    Ok(())
}

/// What few commits have: specifications and secrets. Their statements go first, in the same transaction.
async fn rare(inside: &Inside, connection: &Object, writes: &Writes) -> Result<(), Failure> {
    let project = inside.project;
    for (feature, spec) in &writes.specs {
        let sql = "INSERT INTO specs (project, feature_id, spec) VALUES ($1, $2, $3)";
        connection.execute(sql, &[&project, feature, &spec.as_bytes()]).await?;
    }
    if !writes.wipes.is_empty() {
        let sql = "DELETE FROM secrets WHERE project = $1 AND feature_id = ANY($2)";
        let statement = connection.prepare_cached(sql).await?;
        connection.execute(&statement, &[&project, &writes.wipes]).await?;
    }
    for (question, feature, answer) in &writes.secrets {
        let sql = "INSERT INTO secrets (project, question_id, feature_id, answer) VALUES ($1, $2, $3, $4)";
        connection.execute(sql, &[&project, question, feature, answer]).await?;
    }
    Ok(())
}

/// The rows as columns, which is how one statement takes many.
#[derive(Default)]
struct Columns<'a> {
    event_seq: Vec<i64>,
    event_feature: Vec<&'a str>,
    event_at: Vec<i64>,
    event_question: Vec<Option<&'a str>>,
    event_line: Vec<&'a str>,
    event: Vec<&'a str>,
    feature: Vec<&'a str>,
    feature_status: Vec<&'a str>,
    feature_adhoc: Vec<bool>,
    feature_version: Vec<i64>,
    feature_record: Vec<&'a str>,
    question: Vec<&'a str>,
    question_feature: Vec<&'a str>,
    question_status: Vec<&'a str>,
    question_created: Vec<i64>,
    question_expires: Vec<Option<i64>>,
    question_answered: Vec<Option<i64>>,
    question_record: Vec<&'a str>,
    operation: Vec<&'a str>,
    operation_digest: Vec<&'a str>,
    operation_envelope: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    fn of(writes: &'a Writes) -> Self {
        let mut columns = Columns::default();
        for row in &writes.events {
            columns.event_seq.push(row.seq);
            columns.event_feature.push(&row.feature_id);
            columns.event_at.push(row.at);
            columns.event_question.push(row.question_id.as_deref());
            columns.event_line.push(&row.line);
            columns.event.push(&row.event);
        }
        for row in writes.features.values() {
            let (id, status, adhoc, version) = &row.columns;
            columns.feature.push(id);
            columns.feature_status.push(status);
            columns.feature_adhoc.push(*adhoc);
            columns.feature_version.push(*version);
            columns.feature_record.push(&row.record);
        }
        for row in writes.questions.values() {
            let (id, feature, status, created, expires, answered) = &row.columns;
            columns.question.push(id);
            columns.question_feature.push(feature);
            columns.question_status.push(status);
            columns.question_created.push(*created);
            columns.question_expires.push(*expires);
            columns.question_answered.push(*answered);
            columns.question_record.push(&row.record);
        }
        for (id, digest, envelope) in &writes.operations {
            columns.operation.push(id);
            columns.operation_digest.push(digest);
            columns.operation_envelope.push(envelope);
        }
        columns
    }

    /// In the order of [`WRITE`].
    fn params<'b>(&'b self, project: &'b i64, seq: &'b i64, now: &'b i64) -> [&'b (dyn ToSql + Sync); 24] {
        [
            project,
            &self.event_seq,
            &self.event_feature,
            &self.event_at,
            &self.event_question,
            &self.event_line,
            &self.event,
            &self.feature,
            &self.feature_status,
            &self.feature_adhoc,
            &self.feature_version,
            &self.feature_record,
            &self.question,
            &self.question_feature,
            &self.question_status,
            &self.question_created,
            &self.question_expires,
            &self.question_answered,
            &self.question_record,
            &self.operation,
            &self.operation_digest,
            &self.operation_envelope,
            seq,
            now,
        ]
    }
}

impl Inside {
    /// The refusal when the project's row is not there any more.
    fn project_is_gone(&self) -> StoreError {
        let cause = "the project is not in this database any more";
        unavailable(self.link.options(), cause, "restore the database from a backup")
    }
}
