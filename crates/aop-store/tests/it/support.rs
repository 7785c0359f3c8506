//! The world a test acts in: a store on some backend, a clock that stands still until it is told, the
//! project's policy, and the verbs of the contract as short methods.

use aop_kernel::Refusal;
use aop_kernel::envelope::Envelope;
use aop_kernel::event::Recorded;
use aop_kernel::feature::Feature;
use aop_kernel::ids::{FeatureId, OperationId, QuestionId};
use aop_kernel::lifecycle::Request;
use aop_kernel::policy::{HumanInput, Rules, SchemaVerdict};
use aop_kernel::question::Question;
use aop_kernel::role::{Caller, Role};
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
use aop_kernel::tools::{self, Call, QuestionFilter, Tool};
use aop_store::{
    EventPage, ManualClock, MemoryStore, PostgresOptions, PostgresStore, QuestionPage, Service, SqliteStore,
    Store, TimeSource,
};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// 2026-03-04T22:00:00.000Z, when every test begins.
pub(crate) const START: i64 = 1_772_661_600_000;
/// How long a question waits by the default policy.
pub(crate) const QUARTER: i64 = 900_000;

/// What a contract test runs on. A new backend joins here and in `on_every_backend!`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Backend {
    Memory,
    Sqlite,
    Postgres,
}

pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    policy: Mutex<HumanInput>,
    prefix: String,
    operations: AtomicU32,
    dir: TempDir,
}

impl World {
    pub(crate) fn new(backend: Backend) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(START)));
        let dir = TempDir::new().unwrap();
        let store: Arc<dyn Store> = match backend {
            Backend::Memory => Arc::new(MemoryStore::new(clock.clone())),
            Backend::Sqlite => Arc::new(SqliteStore::open(dir.path(), clock.clone()).unwrap()),
            Backend::Postgres => Arc::new(postgres(&new_project(), &clock)),
        };
        World { prefix: "op".into(), ..World::on(store, clock, dir) }
    }

    pub(crate) fn on(store: Arc<dyn Store>, clock: Arc<ManualClock>, dir: TempDir) -> Self {
        // Worlds may share a project: their operations are told apart by the world's number.
        static WORLDS: AtomicU32 = AtomicU32::new(0);
        let number = WORLDS.fetch_add(1, Ordering::SeqCst);
        let prefix = format!("op{number}");
        World { store, clock, policy: Mutex::default(), prefix, operations: AtomicU32::new(0), dir }
    }

    /// The `.aop` folder of this world.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Changes the project's policy from here on.
    pub(crate) fn policy(&self, change: impl FnOnce(&mut HumanInput)) {
        change(&mut self.policy.lock().unwrap());
    }

    pub(crate) fn rules(&self) -> Rules {
        rules(self.policy.lock().unwrap().clone())
    }

    pub(crate) fn service(&self) -> Service {
        Service::new(Arc::clone(&self.store), Arc::new(self.rules()))
    }

    pub(crate) fn later(&self, millis: i64) {
        self.clock.advance(millis);
    }

    fn fresh_operation(&self) -> String {
        format!("{}-{}", self.prefix, self.operations.fetch_add(1, Ordering::SeqCst))
    }

    /// A tool call as it came in, operation id and all.
    pub(crate) async fn raw(&self, caller: &Caller, tool: &str, input: &Value) -> Result<Envelope, Refusal> {
        self.service().call(Tool::find(tool).unwrap(), caller, input, "test").await
    }

    /// A tool call, with an operation id of its own when it needs one; the `data` of the envelope.
    pub(crate) async fn call(&self, role: Role, tool: &str, input: Value) -> Result<Value, Refusal> {
        self.call_as(&Caller::new(role), tool, input).await
    }

    pub(crate) async fn call_as(&self, caller: &Caller, tool: &str, input: Value) -> Result<Value, Refusal> {
        let mut input = input;
        if Tool::find(tool).unwrap().is_mutating() && input.get("operation_id").is_none() {
            input["operation_id"] = self.fresh_operation().into();
        }
        Ok(self.raw(caller, tool, &input).await?.data())
    }

    /// A new feature in `planning`.
    pub(crate) async fn feature(&self, id: &str) {
        self.call(Role::Human, "feature.create", json!({"feature_id": id, "title": id})).await.unwrap();
    }

    /// A new feature, taken along the table to this status.
    pub(crate) async fn feature_in(&self, id: &str, status: Status) {
        self.feature(id).await;
        let way: &[Status] = match status {
            Status::Planning => &[],
            Status::Building => &[Status::Building],
            Status::Qa => &[Status::Building, Status::Qa],
            Status::ReadyToMerge => &[Status::Building, Status::Qa, Status::ReadyToMerge],
            Status::Merged => &[Status::Building, Status::Qa, Status::ReadyToMerge, Status::Merged],
            Status::Blocked => &[Status::Building, Status::Blocked],
            Status::Failed => &[Status::Failed],
            Status::AwaitingInput => {
                self.ask(id).await;
                return;
            }
        };
        for to in way {
            self.transition(id, *to).await.unwrap();
        }
    }

    pub(crate) async fn transition(&self, id: &str, to: Status) -> Result<Value, Refusal> {
        self.call(Role::Orchestrator, "feature.transition", json!({"feature_id": id, "to": to})).await
    }

    /// The builder asks a blocking question; its id.
    pub(crate) async fn ask(&self, feature: &str) -> String {
        let data = self.ask_with(feature, json!({})).await.unwrap();
        data["question_id"].as_str().unwrap().to_owned()
    }

    /// The builder asks something that does not block; its id.
    pub(crate) async fn ask_aside(&self, feature: &str) -> String {
        let data = self.ask_with(feature, json!({"blocking": false})).await.unwrap();
        data["question_id"].as_str().unwrap().to_owned()
    }

    /// The builder asks, with some arguments added or changed.
    pub(crate) async fn ask_with(&self, feature: &str, changes: Value) -> Result<Value, Refusal> {
        self.call(Role::Builder, "feature.question_create", question(feature, changes)).await
    }

    /// A human answers.
    pub(crate) async fn answer(
        &self,
        feature: &str,
        question: &str,
        answer: Value,
    ) -> Result<Value, Refusal> {
        self.answer_as("ann", feature, question, answer).await
    }

    pub(crate) async fn answer_as(
        &self,
        who: &str,
        feature: &str,
        question: &str,
        answer: Value,
    ) -> Result<Value, Refusal> {
        let input =
            json!({"feature_id": feature, "question_id": question, "answer": answer, "answered_by": who});
        self.call(Role::Human, "feature.question_answer", input).await
    }

    pub(crate) async fn withdraw(&self, feature: &str, question: &str) -> Result<Value, Refusal> {
        let input = json!({"feature_id": feature, "question_id": question});
        self.call(Role::Human, "feature.question_withdraw", input).await
    }

    pub(crate) async fn reopen(&self, feature: &str, question: &str) -> Result<Value, Refusal> {
        let input = json!({"feature_id": feature, "question_id": question});
        self.call(Role::Human, "feature.question_reopen", input).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> Result<Value, Refusal> {
        let operation = OperationId::parse(&self.fresh_operation()).unwrap();
        self.submit(tools::OperatorCommand::Cancel.request(
            &Caller::new(Role::Human),
            feature_id(id),
            operation,
            "test",
        )?)
        .await
    }

    pub(crate) async fn retry(&self, id: &str) -> Result<Value, Refusal> {
        let operation = OperationId::parse(&self.fresh_operation()).unwrap();
        self.submit(tools::OperatorCommand::Retry.request(
            &Caller::new(Role::Human),
            feature_id(id),
            operation,
            "test",
        )?)
        .await
    }

    async fn submit(&self, request: Request) -> Result<Value, Refusal> {
        Ok(self.service().submit(request).await?.envelope.data())
    }

    /// The feature as a reader sees it now.
    pub(crate) async fn show(&self, id: &str) -> Feature {
        self.store.feature(feature_id(id)).await.unwrap().unwrap()
    }

    pub(crate) async fn status(&self, id: &str) -> Status {
        self.show(id).await.status
    }

    /// The question's record as a reader sees it now.
    pub(crate) async fn record(&self, question: &str) -> Value {
        json!(self.store.question(question_id(question)).await.unwrap().unwrap())
    }

    pub(crate) async fn list(&self, feature: &str, status: &str) -> Vec<String> {
        let input = json!({"feature_id": feature, "status": status});
        let data = self.call(Role::Human, "feature.question_list", input).await.unwrap();
        ids(&data["items"])
    }

    pub(crate) async fn context(&self, feature: &str) -> Value {
        self.call(Role::Builder, "feature.get_context", json!({"feature_id": feature})).await.unwrap()
    }

    pub(crate) async fn events(&self) -> Vec<Recorded> {
        self.store.events(EventPage::default()).await.unwrap()
    }

    /// The decision log of a feature in words.
    pub(crate) async fn log(&self, feature: &str) -> Vec<String> {
        let page = EventPage { feature: Some(feature_id(feature)), ..EventPage::default() };
        self.store
            .events(page)
            .await
            .unwrap()
            .iter()
            .map(|recorded| aop_kernel::log::sentence(&recorded.stamped))
            .collect()
    }

    /// Every feature and question as a reader sees them now.
    pub(crate) async fn everything(&self) -> (Vec<Feature>, Vec<Question>) {
        everything(self.store.as_ref()).await
    }

    /// Refused with this code, and nothing changed.
    pub(crate) async fn refuses(
        &self,
        code: &str,
        call: impl Future<Output = Result<Value, Refusal>>,
    ) -> Refusal {
        let before = (self.events().await, self.everything().await);
        let refusal = call.await.unwrap_err();
        assert_eq!(refusal.code.as_str(), code, "{refusal}");
        assert_eq!((self.events().await, self.everything().await), before, "a refusal changed something");
        refusal
    }

    /// Refused with this code; what was due is written all the same.
    pub(crate) async fn refuses_and_expires(
        &self,
        code: &str,
        call: impl Future<Output = Result<Value, Refusal>>,
    ) -> Refusal {
        let refusal = call.await.unwrap_err();
        assert_eq!(refusal.code.as_str(), code, "{refusal}");
        refusal
    }

    /// What holds at the end of every test: the log has no gap and the tables are what it says.
    pub(crate) async fn check(&self) {
        let seqs: Vec<u64> = self.events().await.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
        assert_eq!(self.store.verify().await.unwrap(), Vec::<String>::new());
    }
}

/// The first questions of all features.
pub(crate) fn page(filter: QuestionFilter, limit: usize) -> QuestionPage {
    QuestionPage { feature: None, filter, after: None, limit }
}

/// Every feature and question of a store as a reader sees them now.
pub(crate) async fn everything(store: &dyn Store) -> (Vec<Feature>, Vec<Question>) {
    let features = aop_store::FeaturePage { adhoc: true, ..Default::default() };
    let questions = store.questions(page(QuestionFilter::All, usize::MAX)).await.unwrap();
    (store.features(features).await.unwrap(), questions)
}

/// Rules with a small stand-in for the schema engine: a schema is an object, and `required` is enforced.
pub(crate) fn rules(human_input: HumanInput) -> Rules {
    fn check_schema(schema: &Value) -> SchemaVerdict {
        if schema.is_object() { Ok(()) } else { Err(vec!["a schema is an object".into()]) }
    }
    fn check_instance(schema: &Value, instance: &Value) -> SchemaVerdict {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let names = required.iter().filter_map(Value::as_str);
        let missing: Vec<String> = names
            .filter(|name| instance.get(name).is_none())
            .map(|name| format!("{name} is missing"))
            .collect();
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }
    Rules { human_input, check_schema, check_instance }
}

/// The arguments of a builder's question, with some added or changed.
pub(crate) fn question(feature: &str, changes: Value) -> Value {
    let mut input = json!({"feature_id": feature, "role": "builder", "session_id": "s1",
        "question_type": "clarification", "prompt": "Which way?"});
    for (key, value) in changes.as_object().unwrap() {
        input[key] = value.clone();
    }
    input
}

/// The request that a tool call becomes.
pub(crate) fn request(world: &World, role: Role, tool: &str, input: &Value) -> Request {
    match tools::parse(Tool::find(tool).unwrap(), &Caller::new(role), input, "test", &world.rules()).unwrap()
    {
        Call::Mutate(request) => *request,
        Call::Read(query) => panic!("{query:?} changes nothing"),
    }
}

/// A worker bound to its feature.
pub(crate) fn worker(role: Role, feature: &str) -> Caller {
    Caller { role, feature: Some(feature_id(feature)) }
}

pub(crate) fn feature_id(id: &str) -> FeatureId {
    FeatureId::parse(id).unwrap()
}

pub(crate) fn question_id(id: &str) -> QuestionId {
    QuestionId::parse(id).unwrap()
}

pub(crate) fn at(offset: i64) -> String {
    Timestamp::from_millis(START + offset).to_string()
}

/// The ids in a list of question records.
pub(crate) fn ids(items: &Value) -> Vec<String> {
    let items = items.as_array().unwrap().iter();
    items.map(|item| item["question_id"].as_str().unwrap().to_owned()).collect()
}

/// Runs a future to its end on a runtime of its own.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// A project that no other test knows, on the server that all tests share.
pub(crate) fn new_project() -> PostgresOptions {
    // All of them: what an older version made on that server lacks the later ones.
    let schema = concat!(
        include_str!("../../migrations/postgres/0001_start.sql"),
        include_str!("../../migrations/postgres/0002_several_replies.sql"),
    );
    let address = aop_testkit::postgres::shared(schema);
    let options = PostgresOptions::parse(&address).unwrap().project(&format!("p_{}", ulid::Ulid::generate()));
    PostgresStore::create(&options).unwrap();
    options
}

/// A store on this project with this clock.
pub(crate) fn postgres(options: &PostgresOptions, clock: &Arc<ManualClock>) -> PostgresStore {
    PostgresStore::open(options.clone(), TimeSource::Given(clock.clone())).unwrap()
}

/// One test body on one backend, and then what must hold at the end of each.
pub(crate) fn run(backend: Backend, body: impl AsyncFnOnce(&World)) {
    wait(async {
        let world = World::new(backend);
        body(&world).await;
        world.check().await;
    });
}

/// Makes one test per backend of each body in this module.
macro_rules! on_every_backend {
    ($($name:ident),* $(,)?) => {
        mod memory {
            use $crate::support::{Backend, run};
            $(#[test] fn $name() { run(Backend::Memory, super::$name); })*
        }
        mod sqlite {
            use $crate::support::{Backend, run};
            $(#[test] fn $name() { run(Backend::Sqlite, super::$name); })*
        }
        mod postgres {
            use $crate::support::{Backend, run};
            $(#[test] fn $name() { run(Backend::Postgres, super::$name); })*
        }
    };
}
pub(crate) use on_every_backend;
