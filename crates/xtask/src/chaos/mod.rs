//! `cargo xtask chaos`: a seeded campaign of faults against the real binary. After every round a written list of
//! invariants is checked; what is found broken comes with the seed that does it again.
//!
//! With the embedded store everything happens on a small disk of its own (a tmpfs in a mount namespace), so that it can
//! be filled; with PostgreSQL, on a server of its own, which is stopped and crashed. What the campaign does follows from
//! the seed; at which instruction a SIGKILL arrives does not.

mod binary;
mod faults;
mod invariants;
mod random;
mod running;
mod world;

use crate::{packages, process};
use anyhow::{Context, Result, ensure};
use aop_testkit::postgres::Server;
use binary::Binary;
use random::Random;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};
use world::{Disk, World};

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct ChaosArgs {
    /// For how long
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    minutes: f64,
    /// At most so many rounds
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// Where chance starts; the same seed does the same again (default: the time)
    #[arg(long)]
    seed: Option<u64>,
    /// The store under test
    #[arg(long, default_value = "sqlite", value_parser = ["sqlite", "postgres"])]
    store: String,
    /// Only this fault, for instance full_disk
    #[arg(long)]
    fault: Option<String>,
    /// Set when it runs inside its own mounts: an empty folder for the small disk
    #[arg(long, hide = true, value_name = "DIR")]
    inside: Option<PathBuf>,
}

/// Where the projects are on a server.
const DATABASE: &str = "chaos";

/// A project is used for so many rounds; then the next one begins, with its first start.
const ROUNDS_PER_PROJECT: u64 = 20;

/// The run that belongs to `cargo xtask test`: short, or long on another store with `--nightly`. It begins with a proof
/// that the campaign notices a loss.
pub(crate) fn proven(store: &str, minutes: f64) -> Result<()> {
    let args = |minutes, fault: Option<&str>| ChaosArgs {
        minutes,
        rounds: None,
        seed: None,
        store: store.to_owned(),
        fault: fault.map(str::to_owned),
        inside: None,
    };
    println!("chaos: throwing commits away; the campaign has to notice");
    ensure!(
        run(&args(0.1, Some("sabotage"))).is_err(),
        "lost commits went unnoticed: the campaign proves nothing"
    );
    run(&args(minutes, None))
}

/// Runs the campaign, or starts itself again where it has a disk of its own.
pub(crate) fn run(args: &ChaosArgs) -> Result<()> {
    if let Some(folder) = &args.inside {
        small_disk(folder)?;
        return campaign(args, folder, None);
    }
    process::cargo(&["build", "--quiet", "-p", "aop"])?;
    let folder = std::env::temp_dir().join(format!("aop-chaos-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    if args.store == "postgres" {
        packages::require(&[packages::POSTGRES])?;
        let server = Server::own("");
        server.sql("postgres", &format!("CREATE DATABASE {DATABASE}"));
        let result = campaign(args, &folder, Some(&Rc::new(server)));
        std::fs::remove_dir_all(&folder)?;
        return result;
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user"]).arg(std::env::current_exe()?);
    command
        .args(["chaos", "--minutes", &args.minutes.to_string(), "--store", &args.store, "--inside"])
        .arg(&folder);
    command.args(args.rounds.iter().flat_map(|rounds| ["--rounds".to_owned(), rounds.to_string()]));
    command.args(args.seed.iter().flat_map(|seed| ["--seed".to_owned(), seed.to_string()]));
    command.args(args.fault.iter().flat_map(|fault| ["--fault", fault.as_str()]));
    let status = command.status().context("unshare does not start; it is in the package util-linux");
    std::fs::remove_dir(&folder)?;
    ensure!(status?.success(), "the campaign found something, see above");
    Ok(())
}

fn small_disk(folder: &Path) -> Result<()> {
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"])
        .arg(folder)
        .status()
        .context("mount does not start; it is in the package mount")?;
    ensure!(
        mounted.success(),
        "no small disk: mounts are not allowed here (unprivileged user namespaces are off)"
    );
    Ok(())
}

fn campaign(args: &ChaosArgs, folder: &Path, database: Option<&Rc<Server>>) -> Result<()> {
    let since_1970 = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let seed = args.seed.unwrap_or(since_1970.as_secs());
    let mut random = Random::new(seed);
    let program = process::target().join("debug/aop");
    let until = Instant::now() + Duration::from_secs_f64(args.minutes * 60.0);
    let mut tally = Tally::default();
    let mut world = first_start(&program, folder, 0, database, &mut random)?;
    while Instant::now() < until && args.rounds.is_none_or(|rounds| tally.rounds < rounds) {
        tally.rounds += 1;
        let found = round(args, &mut world, &mut random);
        if let Err(error) = found {
            let kept = keep(&world, seed);
            eprintln!("chaos: round {} of seed {seed} broke something: {error:#}", tally.rounds);
            eprintln!("chaos: the project is kept in {}", kept.display());
            let only = args.fault.as_ref().map(|fault| format!(" --fault {fault}")).unwrap_or_default();
            eprintln!(
                "chaos: repeat it with: cargo xtask chaos --store {} --seed {seed} --rounds {} --minutes 60{only}",
                args.store, tally.rounds
            );
            anyhow::bail!("an invariant is broken");
        }
        if tally.rounds.is_multiple_of(ROUNDS_PER_PROJECT) {
            tally.add(&world);
            last_check(&mut world).with_context(|| format!("after round {} of seed {seed}", tally.rounds))?;
            std::fs::remove_dir_all(&world.aop.folder)?;
            world = first_start(&program, folder, tally.rounds, database, &mut random)?;
        }
    }
    last_check(&mut world).with_context(|| format!("after round {} of seed {seed}", tally.rounds))?;
    tally.add(&world);
    println!(
        "chaos: seed {seed}, {} rounds, {} operations acknowledged, {} refused for their state, {} never answered; all {} invariants held after each round",
        tally.rounds,
        tally.acknowledged,
        tally.refused,
        tally.unsure,
        invariants::ALL.len()
    );
    Ok(())
}

/// What a whole campaign did.
#[derive(Default)]
struct Tally {
    rounds: u64,
    acknowledged: usize,
    refused: u64,
    unsure: usize,
}

impl Tally {
    fn add(&mut self, world: &World) {
        self.acknowledged += world.acknowledged.len();
        self.refused += world.refused;
        self.unsure += world.unsure.len();
    }
}

/// A new project. Half of them are killed in the middle of their first start.
fn first_start(
    program: &Path,
    disk: &Path,
    number: u64,
    database: Option<&Rc<Server>>,
    random: &mut Random,
) -> Result<World> {
    let folder = disk.join(format!("project-{number}"));
    std::fs::create_dir_all(&folder)?;
    let store = database.map(|server| format!("{}?project=p-{number}", server.address(DATABASE)));
    let aop = Binary { program: program.to_owned(), folder, store };
    let points = ["first_start", "first_start_before_commit", "none", "none"];
    let point = random.pick(&points).copied().unwrap_or_default();
    aop.run(&["init".to_owned()], &[("AOP_CRASH_AT", point.to_owned())])?;
    aop.ask(&["init"])?.data().context("init after a crash")?;
    let mut world = World::new(aop, database.cloned());
    for _ in 0..3 {
        let operation = world.create();
        world.send(operation, &[], Disk::Roomy)?;
    }
    Ok(world)
}

/// One fault, then every invariant.
fn round(args: &ChaosArgs, world: &mut World, random: &mut Random) -> Result<()> {
    let all = faults::of(world.database.is_some());
    let chosen = random.pick(&all);
    let named = args.fault.as_ref().map(|name| {
        let mut known = all.iter().chain([&faults::SABOTAGE]);
        let found = known.find(|(fault, _)| fault == name);
        let names = || all.iter().map(|(fault, _)| *fault).collect::<Vec<_>>().join(", ");
        found.with_context(|| format!("there is no fault '{name}'; there are {}", names()))
    });
    let (name, fault) = match named {
        Some(found) => found?,
        None => chosen.context("a fault")?,
    };
    fault(world, random).with_context(|| format!("during {name}"))?;
    for (invariant, check) in invariants::ALL {
        check(world, random).with_context(|| format!("{invariant}, after {name}"))?;
    }
    Ok(())
}

/// Before a project is left: every retry once more, and its history survives an export and an import.
fn last_check(world: &mut World) -> Result<()> {
    for done in world.acknowledged.iter().rev().take(50) {
        let again = world.aop.run(&done.operation.args, &[])?;
        ensure!(again.stdout == done.stdout, "retries_are_byte_identical: {done:?} gave {again:?}");
    }
    world.aop.ask(&["export", "--output", "export.jsonl"])?.data()?;
    let copy = world.aop.below("copy");
    std::fs::create_dir_all(&copy.folder)?;
    copy.ask(&["init", "--project", "."])?.data()?;
    copy.ask(&["import", "--project", ".", "../export.jsonl"])?.data()?;
    let digest = |aop: &Binary| {
        Ok::<_, anyhow::Error>(aop.ask(&["replay", "--project", "."])?.data()?["digest"].clone())
    };
    let (was, is) = (digest(&world.aop)?, digest(&copy)?);
    ensure!(was == is, "export_and_import_keep_everything: {was} became {is}");
    std::fs::remove_dir_all(&copy.folder)?;
    Ok(())
}

/// The small disk goes away with the campaign; what broke is copied to where it stays.
fn keep(world: &World, seed: u64) -> PathBuf {
    let kept = process::target().join(format!("chaos/seed-{seed}"));
    let _ = std::fs::remove_dir_all(&kept);
    let _ = std::fs::create_dir_all(&kept);
    let _ = Command::new("cp").arg("-r").arg(&world.aop.folder).arg(&kept).status();
    kept
}
