//! Waiting costs nothing and answering wakes at once: a thousand parked features under `aop run`, measured. The figures
//! are printed, times are never asserted.

use crate::run_support::{Running, ask, assert_nothing_left, left_over, plan, script, workshop};
use crate::support::{Project, binary, question};
use aop_engine::{Limits, Surroundings};
use aop_kernel::ids::QuestionId;
use aop_kernel::policy::{HumanInput, Rules};
use aop_kernel::role::{Caller, Role};
use aop_kernel::tools::{QuestionFilter, Tool};
use aop_store::{Service, SqliteStore, SystemClock};
use aop_supervisor::{Checks, EngineChoice, Notice, RunLease, Runner, Settings, Takeover, Worktrees};
use aop_turn::{Engine, Mode};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

const PARKED: usize = 1_000;
const ANSWERED: usize = 20;

fn service(project: &Project) -> Service {
    let store = SqliteStore::open(&project.path(".aop"), Arc::new(SystemClock)).unwrap();
    let human_input = HumanInput { timeout_ms: 0, ..HumanInput::default() };
    let rules = Rules { human_input, check_schema: |_| Ok(()), check_instance: |_, _| Ok(()) };
    Service::new(Arc::new(store), Arc::new(rules))
}

/// Features that wait, each for an answer to a question of its planner; the questions.
async fn park(service: &Service, count: usize) -> Vec<(String, QuestionId)> {
    let human = Caller::new(Role::Human);
    let mut parked = Vec::new();
    for number in 0..count {
        let feature = format!("f{number:04}");
        let create = json!({"feature_id": feature, "title": "t", "operation_id": format!("c{number}")});
        service.call(Tool::FeatureCreate, &human, &create, "test").await.unwrap();
        let ask = question(&feature, &format!("q{number}"));
        let asked = service.call(Tool::QuestionCreate, &human, &ask, "test").await.unwrap();
        let id = QuestionId::parse(asked.data()["question_id"].as_str().unwrap()).unwrap();
        parked.push((feature, id));
    }
    parked
}

async fn answer(service: &Service, (feature, id): &(String, QuestionId)) {
    let input = json!({"feature_id": feature, "question_id": id, "answer": "yes", "answered_by": "human",
        "operation_id": format!("a-{id}")});
    service.call(Tool::QuestionAnswer, &Caller::new(Role::Human), &input, "test").await.unwrap();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Milliseconds on a core so far, and kilobytes of memory.
fn usage(pid: u32) -> (u64, u64) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    (ticks * 10, line.split_whitespace().nth(1).unwrap().parse().unwrap())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[test]
fn measured_a_thousand_parked_features_and_the_way_from_an_answer_in_another_process_to_the_engine() {
    let project = workshop("policy: { execution: { human_input: { timeout_ms: 0 } } }\nprojections: off\n");
    script(&project, "default", &json!({"planner": [ask("Which?"), plan()]}));
    let runtime = runtime();
    let service = service(&project);
    runtime.block_on(park(&service, PARKED - ANSWERED));
    let names: Vec<String> = (0..ANSWERED).map(|number| format!("g{number:02}")).collect();
    names.iter().for_each(|name| project.create_feature(name));
    let mut run = Running::start(&project, &[]);
    let mut parked = Vec::new();
    for _ in &names {
        let asked = run.until("a question", |line| line["type"] == "question.opened");
        let id = QuestionId::parse(asked["question"]["question_id"].as_str().unwrap()).unwrap();
        parked.push((asked["feature_id"].as_str().unwrap().to_owned(), id));
    }
    assert_nothing_left(&project);
    let (before, _) = usage(run.pid());
    let watched = Instant::now();
    std::thread::sleep(Duration::from_secs(4));
    let (after, memory) = usage(run.pid());
    let share = (after - before) as f64 / watched.elapsed().as_millis() as f64 * 100.0;
    println!("{PARKED} parked: {share:.2} % of a core, {} MB", memory / 1024);
    let mut times = Vec::new();
    for question in &parked {
        let began = Instant::now();
        runtime.block_on(answer(&service, question));
        let feature = Value::from(question.0.as_str());
        run.until("the engine", |line| line["type"] == "engine.started" && line["feature_id"] == feature);
        times.push(began.elapsed());
        run.status(&question.0, "ready_to_merge");
    }
    let median = median(times);
    println!("answer in another process → engine started: p50 {median:?}");
    assert!(memory < 200 * 1024, "{memory} kB");
}

#[test]
fn measured_the_way_from_an_answer_in_the_same_process_to_the_engine() {
    let project = workshop("policy: { execution: { human_input: { timeout_ms: 0 } } }\n");
    script(&project, "default", &json!({"planner": [ask("Which?"), plan()]}));
    let runtime = runtime();
    let service = service(&project);
    let names: Vec<String> = (0..ANSWERED).map(|number| format!("g{number:02}")).collect();
    names.iter().for_each(|name| project.create_feature(name));
    runtime.block_on(async {
        let around = Surroundings { aop: binary().into(), env: std::env::vars_os().collect() };
        let drivers = around.clone();
        let settings = Settings {
            root: project.root().canonicalize().unwrap(),
            mode: Mode::Interactive,
            max_parallel: 4,
            max_attempt: 20,
            repair_rounds: 2,
            retries: 2,
            retry_wait: Duration::ZERO,
            warm: Duration::ZERO,
            engines: EngineChoice::all(Engine::Scripted),
            permissions: aop_turn::command::Permissions::Auto,
            limits: Limits::default(),
            checks: Checks { timeout: Duration::from_secs(10), ..Checks::default() },
            around,
            git_timeout: Duration::from_secs(60),
            worktrees: Worktrees::Git,
            away: Duration::ZERO,
            exit_when_parked: false,
        };
        let lease = RunLease::acquire(Arc::clone(&service.store), project.root(), Takeover::IfDead, None)
            .await
            .unwrap();
        let (notices, mut shown) = mpsc::unbounded_channel();
        let (stop, stopped) = watch::channel(false);
        let drivers = Arc::new(move |engine| Ok(Arc::from(aop_engine::driver(engine, &drivers))));
        let runner = Runner::new(service.clone(), settings, drivers, lease, notices);
        let running = tokio::spawn(runner.run(stopped));
        let mut parked = Vec::new();
        for name in &names {
            loop {
                let questions = service.questions_of(&feature_id(name), QuestionFilter::All).await.unwrap();
                let working = service.feature(&feature_id(name)).await.unwrap().status.worker().is_some();
                if let Some(question) = questions.first().filter(|_| !working) {
                    parked.push((name.clone(), question.id.clone()));
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        // Every engine is gone, every turn has its end. The run, which sees to that, shares this thread.
        while !left_over(&project).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        while shown.try_recv().is_ok() {}
        let mut times = Vec::new();
        for question in &parked {
            let began = Instant::now();
            answer(&service, question).await;
            loop {
                match shown.recv().await.unwrap() {
                    Notice::Started { feature_id, .. } if feature_id.as_str() == question.0 => break,
                    _ => {}
                }
            }
            times.push(began.elapsed());
            // Until it is at its end nothing else is measured.
            while service.feature(&feature_id(&question.0)).await.unwrap().status.worker().is_some() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        stop.send_replace(true);
        running.await.unwrap().unwrap();
        let median = median(times);
        println!("answer in the same process → engine started: p50 {median:?}");
    });
}

fn feature_id(id: &str) -> aop_kernel::ids::FeatureId {
    aop_kernel::ids::FeatureId::parse(id).unwrap()
}
