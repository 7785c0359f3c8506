//! The faults: each round does its work under one of them.

use super::DATABASE;
use super::binary::{Reply, files_below, finish};
use super::random::Random;
use super::running::killed_run;
use super::world::{Disk, Operation, World};
use anyhow::{Context, Result, ensure};
use aop_testkit::postgres::Server;
use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

/// A fault by its name.
pub(super) type Fault = (&'static str, fn(&mut World, &mut Random) -> Result<()>);

/// Those of every store.
const EVERYWHERE: &[Fault] = &[
    ("calm", calm),
    ("kill", kill),
    ("crash_point", crash_point),
    ("duplicates", duplicates),
    ("concurrent_writers", concurrent_writers),
    ("torn_files", torn_files),
    ("killed_waiter", killed_waiter),
    ("killed_run", killed_run),
];

/// Those of a store in a file, whose clock and disk are the machine's.
const EMBEDDED: &[Fault] = &[
    ("clock_jump", clock_jump),
    ("full_disk", full_disk),
    ("slow_sync", slow_sync),
    ("wal_tail", wal_tail),
    ("lost_shared_memory", lost_shared_memory),
];

/// Those of a server.
const SERVED: &[Fault] = &[
    ("server_restart", server_restart),
    ("server_crash", server_crash),
    ("cut_connections", cut_connections),
];

/// All of a store; a round takes one.
pub(super) fn of(served: bool) -> Vec<Fault> {
    [EVERYWHERE, if served { SERVED } else { EMBEDDED }].concat()
}

/// Not a fault but a crime: commits that were synced are thrown away. The campaign has to notice, else its other
/// findings mean nothing.
pub(super) const SABOTAGE: Fault = ("sabotage", sabotage);

fn sabotage(world: &mut World, random: &mut Random) -> Result<()> {
    calm(world, random)?;
    if let Some(server) = &world.database {
        server.sql(
            DATABASE,
            "DELETE FROM events USING projects WHERE events.project = projects.project AND seq > last_seq - 2",
        );
        return Ok(());
    }
    for name in ["aop.db-wal", "aop.db-shm"] {
        let _ = fs::remove_file(world.aop.path(&format!(".aop/{name}")));
    }
    Ok(())
}

/// Where the program can be told to die (debug builds).
const CRASH_POINTS: &[&str] = &["before_commit", "after_commit", "mid_projection"];

/// Nothing is wrong; and what was delayed comes at last.
fn calm(world: &mut World, random: &mut Random) -> Result<()> {
    for operation in std::mem::take(&mut world.delayed) {
        world.send(operation, &[], Disk::Roomy)?;
    }
    for operation in std::mem::take(&mut world.unsure) {
        world.send(operation, &[], Disk::Roomy)?;
    }
    for _ in 0..6 {
        let operation = world.any(random);
        world.send(operation, &[], Disk::Roomy)?;
    }
    Ok(())
}

/// SIGKILL at any moment.
fn kill(world: &mut World, random: &mut Random) -> Result<()> {
    // A process that has to find its server first takes longer.
    let longest = if world.database.is_some() { 150_000 } else { 25_000 };
    for _ in 0..8 {
        let operation = world.any(random);
        let after = Duration::from_micros(random.below(longest));
        let reply = world.aop.kill_after(&operation.args, after)?;
        world.note(operation, &reply, Disk::Roomy)?;
    }
    Ok(())
}

/// SIGKILL at the moments that matter most. Some of them are retried at once, some in a later round.
fn crash_point(world: &mut World, random: &mut Random) -> Result<()> {
    for _ in 0..5 {
        let operation = world.any(random);
        let point = random.pick(CRASH_POINTS).copied().unwrap_or_default();
        world.send(operation, &[("AOP_CRASH_AT", point.to_owned())], Disk::Roomy)?;
        if random.once_in(2)
            && let Some(again) = world.unsure.pop()
        {
            world.send(again, &[], Disk::Roomy)?;
        }
    }
    Ok(())
}

/// Everything twice; and some things are made up now and sent much later.
fn duplicates(world: &mut World, random: &mut Random) -> Result<()> {
    for _ in 0..5 {
        let operation = world.any(random);
        if random.once_in(3) {
            world.delayed.push(operation);
            continue;
        }
        let first = world.aop.run(&operation.args, &[])?;
        let second = world.aop.run(&operation.args, &[])?;
        if first.envelope().is_some_and(|envelope| envelope["ok"] == true) {
            ensure!(first.stdout == second.stdout, "sent twice: {first:?} and {second:?}");
        }
        world.note(operation, &first, Disk::Roomy)?;
    }
    Ok(())
}

/// Several processes at once: copies of one operation, and different answers to one question.
fn concurrent_writers(world: &mut World, random: &mut Random) -> Result<()> {
    concurrently(world, random, Disk::Roomy, |_| ())
}

/// The server is stopped by its administrator and started again while several processes write.
fn server_restart(world: &mut World, random: &mut Random) -> Result<()> {
    concurrently(world, random, Disk::Away, |server| {
        server.stop();
        server.start();
    })
}

/// The same without a farewell: no checkpoint, every connection cut.
fn server_crash(world: &mut World, random: &mut Random) -> Result<()> {
    concurrently(world, random, Disk::Away, |server| {
        server.crash();
        server.start();
    })
}

/// Every connection is cut again and again while several processes write.
fn cut_connections(world: &mut World, random: &mut Random) -> Result<()> {
    concurrently(world, random, Disk::Away, |server| {
        for _ in 0..5 {
            server.sql(
                DATABASE,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()",
            );
        }
    })
}

/// Several processes write while something happens to their server, if there is one.
fn concurrently(
    world: &mut World,
    random: &mut Random,
    disk: Disk,
    happens: impl FnOnce(&Server),
) -> Result<()> {
    let mut operations: Vec<Operation> = Vec::new();
    if let Some((feature, question)) = random.pick(&world.open).cloned() {
        operations.extend((0..3).map(|_| world.answer(random, &feature, &question)));
    }
    let one = world.any(random);
    operations.extend([one.clone(), one.clone(), one]);
    operations.extend((0..2).map(|_| world.any(random)));
    let started = operations
        .into_iter()
        .map(|operation| Ok((world.aop.start(&operation.args, &[])?, operation)))
        .collect::<Result<Vec<_>>>()?;
    if let Some(server) = &world.database {
        std::thread::sleep(Duration::from_micros(random.below(150_000)));
        happens(server);
    }
    let mut replies: Vec<(Operation, Reply)> = Vec::new();
    for (child, operation) in started {
        replies.push((operation.clone(), finish(child, &operation.args)?));
    }
    for (operation, reply) in &replies {
        let same = replies.iter().filter(|(other, _)| other.id == operation.id);
        let succeeded = |reply: &Reply| reply.envelope().is_some_and(|envelope| envelope["ok"] == true);
        for (_, other) in same.filter(|(_, other)| succeeded(other) && succeeded(reply)) {
            ensure!(other.stdout == reply.stdout, "one operation, two envelopes: {other:?} {reply:?}");
        }
        world.note(operation.clone(), reply, disk)?;
    }
    Ok(())
}

/// The machine's clock jumps by up to two minutes, both ways. Questions wait for a quarter of an hour, so none of
/// them expires for real time; the store must not let time run backwards.
fn clock_jump(world: &mut World, random: &mut Random) -> Result<()> {
    for _ in 0..6 {
        let offset = i64::try_from(random.below(240_000)).unwrap_or_default() - 120_000;
        let operation = world.any(random);
        world.send(operation, &[("AOP_CLOCK_OFFSET_MS", offset.to_string())], Disk::Roomy)?;
    }
    Ok(())
}

/// No space left, or only a few pages.
fn full_disk(world: &mut World, random: &mut Random) -> Result<()> {
    let ballast = world.aop.path("ballast");
    let mut file = fs::File::create(&ballast)?;
    let mut written = 0;
    while file.write_all(&[0; 4_096]).is_ok() {
        written += 4_096;
        ensure!(written < 1 << 30, "the disk does not get full: a small one is needed");
    }
    file.set_len(written - 4_096 * random.below(12).min(written / 4_096))?;
    let mut outcome = Ok(());
    for _ in 0..6 {
        let operation = world.any(random);
        outcome = outcome.and_then(|()| world.send(operation, &[], Disk::Full));
    }
    fs::remove_file(&ballast)?;
    outcome
}

/// A disk that syncs slowly: commits take up to half a second, others queue behind them, and some of those who wait
/// are killed meanwhile. Before the commit nothing is on the disk yet; after it everything is, and nobody was told.
fn slow_sync(world: &mut World, random: &mut Random) -> Result<()> {
    let mut started = Vec::new();
    for _ in 0..5 {
        let operation = world.any(random);
        let point = random.pick(&["before_commit", "after_commit"]).copied().unwrap_or_default();
        let slow = [("AOP_SLOW_AT", point.to_owned()), ("AOP_SLOW_MS", random.below(500).to_string())];
        let variables = if random.once_in(3) { &[][..] } else { &slow[..] };
        started.push((world.aop.start(&operation.args, variables)?, operation));
    }
    let mut replies = Vec::new();
    for (mut child, operation) in started {
        if random.once_in(4) {
            std::thread::sleep(Duration::from_millis(random.below(250)));
            // It may have ended already; then there is nothing to kill.
            let _ = child.kill();
        }
        replies.push((finish(child, &operation.args)?, operation));
    }
    for (reply, operation) in replies {
        world.note(operation, &reply, Disk::Roomy)?;
    }
    Ok(())
}

/// Files below `.aop/features/` are cut, overwritten and lost; they are no truth.
fn torn_files(world: &mut World, random: &mut Random) -> Result<()> {
    let mut files = files_below(&world.aop.path(".aop/features"));
    files.push(world.aop.path(".aop/projected"));
    for _ in 0..4 {
        let Some(path) = random.pick(&files) else { break };
        let Ok(mut content) = fs::read(path) else { continue };
        match random.below(3) {
            0 => fs::remove_file(path)?,
            1 => {
                content.truncate(usize::try_from(random.below(content.len() as u64 + 1)).unwrap_or_default());
                fs::write(path, content)?;
            }
            _ => fs::write(path, random.bytes(200))?,
        }
    }
    calm(world, random)
}

/// Garbage behind the last commit in SQLite's log, as a torn write leaves it, while nobody has the file open.
fn wal_tail(world: &mut World, random: &mut Random) -> Result<()> {
    let wal = world.aop.path(".aop/aop.db-wal");
    let Ok(content) = fs::read(&wal) else { return calm(world, random) };
    // A frame is a header of 24 bytes and a page; half of one looks most like the real thing.
    let copied = usize::try_from(random.below(5_000)).unwrap_or_default().min(content.len());
    let tail = match random.below(3) {
        0 => random.bytes(4_120),
        1 => content[content.len() - copied..].to_vec(),
        _ => vec![0; 8_192],
    };
    fs::OpenOptions::new().append(true).open(&wal)?.write_all(&tail)?;
    if random.once_in(2) {
        let _ = fs::remove_file(world.aop.path(".aop/aop.db-shm"));
    }
    calm(world, random)
}

/// The index beside SQLite's log is lost or garbage, as after a power loss.
fn lost_shared_memory(world: &mut World, random: &mut Random) -> Result<()> {
    let shm = world.aop.path(".aop/aop.db-shm");
    if random.once_in(2) {
        let _ = fs::remove_file(&shm);
    } else {
        fs::write(&shm, random.bytes(32_768))?;
    }
    calm(world, random)
}

/// Somebody waits, is killed, comes back with the same operation id, and gets the answer that was given meanwhile.
fn killed_waiter(world: &mut World, random: &mut Random) -> Result<()> {
    let created = world.create();
    let feature = world.features.last().cloned().unwrap_or_default();
    world.send(created, &[], Disk::Roomy)?;
    let id = format!("ask-{feature}");
    let ask = [
        "ask",
        "Go on?",
        "--choice",
        "yes",
        "--choice",
        "no",
        "--feature-id",
        &feature,
        "--operation-id",
        &id,
    ];
    let ask = ask.map(str::to_owned).to_vec();
    let mut waiter = world.aop.start(&ask, &[])?;
    let question = opened(world, &feature)?;
    let comes_back = random.once_in(2);
    if comes_back {
        waiter.kill()?;
        finish(waiter, &ask)?;
        waiter = world.aop.start(&ask, &[])?;
    }
    let answer = world.answer(random, &feature, &question);
    world.send(answer, &[], Disk::Roomy)?;
    let told = finish(waiter, &ask)?.data()?;
    let given = world.given.get(&question).and_then(|given| given.last()).context("an answer")?;
    ensure!(told["answer"] == given.1, "the waiter was told {told}, and the answer was {given:?}");
    Ok(())
}

/// Waits until the feature has an open question.
fn opened(world: &World, feature: &str) -> Result<String> {
    let started = Instant::now();
    loop {
        let listed = world.aop.ask(&["questions", "--feature-id", feature])?.data()?;
        if let Some(id) = listed["items"][0]["question_id"].as_str() {
            return Ok(id.to_owned());
        }
        ensure!(started.elapsed() < Duration::from_secs(30), "no question appears for {feature}");
    }
}
