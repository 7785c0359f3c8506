//! Any sequence of commands, with duplicates, reordered retries, clock jumps and changes of policy, on the
//! in-memory store and on a database at once: both say the same, and what must never break does not.

mod steps;

use crate::support::{everything, feature_id, page, rules, wait};
use aop_kernel::Refusal;
use aop_kernel::event::{Event, Recorded};
use aop_kernel::ids::{FeatureId, OperationId};
use aop_kernel::lifecycle::Request;
use aop_kernel::own::OwnOperation;
use aop_kernel::policy::{HumanInput, OnTimeout};
use aop_kernel::question::{Question, QuestionState, QuestionStatus};
use aop_kernel::replay::Replay;
use aop_kernel::role::{Caller, Role};
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
use aop_kernel::tools::{self, Call, QuestionFilter, Tool};
use aop_store::{EventPage, ManualClock, MemoryStore, SqliteStore, Store};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steps::{Step, answer, decision, expectation, steps, work};

/// So many cases, unless the environment says otherwise.
fn cases(usual: u32) -> Config {
    let wanted = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    Config {
        cases: wanted.unwrap_or(usual),
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn any_sequence_of_commands_keeps_the_promises_on_both_backends(steps in steps()) {
        let dir = tempfile::TempDir::new().unwrap();
        wait(Model::run(&steps, |clock| Arc::new(SqliteStore::open(dir.path(), clock.clone()).unwrap())));
    }
}

mod postgres {
    use super::*;
    use crate::support::{new_project, postgres};

    proptest! {
        // Each look at a server costs more than one at a file, and there are many in a case.
        #![proptest_config(Config { cases: cases(24).cases.min(500), ..cases(24) })]

        #[test]
        fn any_sequence_of_commands_keeps_the_promises(steps in steps()) {
            wait(Model::run(&steps, |clock| Arc::new(postgres(&new_project(), clock))));
        }
    }
}

/// A call as it was made, with question ids replaced by their position, so that it can be made again.
#[derive(Debug, Clone)]
enum Made {
    Tool { role: Role, tool: Tool, input: Value },
    Cancel { feature: String, operation: String },
    Retry { feature: String, operation: String },
    Work { what: usize, feature: String, epoch: u64, operation: String },
}

/// One of the two stores, with its own question ids in the order they were made, and whose they are.
struct Side {
    store: Arc<dyn Store>,
    ids: Vec<(String, String)>,
    /// The first success of each operation, byte for byte.
    successes: BTreeMap<String, String>,
    /// Every answer ever committed.
    answers: BTreeMap<String, QuestionState>,
}

struct Model {
    sides: [Side; 2],
    clock: Arc<ManualClock>,
    policy: HumanInput,
    calls: Vec<Made>,
    operations: usize,
}

impl Model {
    /// Takes the steps on the reference and on this store.
    async fn run(steps: &[Step], open: impl FnOnce(&Arc<ManualClock>) -> Arc<dyn Store>) {
        let mut model = Model::new(open);
        let start = [Step::CreateFeature { feature: 0 }, Step::CreateFeature { feature: 1 }];
        for step in start.iter().chain(steps) {
            model.take(step).await;
            model.compare().await;
        }
        model.check_logs().await;
    }

    fn new(open: impl FnOnce(&Arc<ManualClock>) -> Arc<dyn Store>) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(crate::support::START)));
        let side = |store: Arc<dyn Store>| Side {
            store,
            ids: Vec::new(),
            successes: BTreeMap::new(),
            answers: BTreeMap::new(),
        };
        let sides = [side(Arc::new(MemoryStore::new(clock.clone()))), side(open(&clock))];
        Model { sides, clock, policy: HumanInput::default(), calls: Vec::new(), operations: 0 }
    }

    async fn take(&mut self, step: &Step) {
        match step {
            Step::Clock { millis } => self.clock.advance(*millis),
            Step::Policy { strict, fail, enabled, limit, timeout_ms } => {
                self.policy = HumanInput {
                    strict: *strict,
                    on_timeout: if *fail { OnTimeout::FailFeature } else { OnTimeout::BlockFeature },
                    enabled: *enabled,
                    max_open_questions_per_feature: *limit,
                    timeout_ms: *timeout_ms,
                    ..HumanInput::default()
                };
            }
            Step::Expire => self.expire().await,
            Step::Again { call } => {
                if let Some(made) = self.calls.get(call % self.calls.len().max(1)).cloned() {
                    self.make(&made).await;
                }
            }
            other => {
                let made = self.made(other);
                self.calls.push(made.clone());
                self.make(&made).await;
            }
        }
    }

    /// The view before, and the state after: the same, and nothing is left to do.
    async fn expire(&mut self) {
        let mut changed = Vec::new();
        for side in &self.sides {
            let before = everything(side.store.as_ref()).await;
            changed.push(side.store.expire().await.unwrap());
            assert_eq!(everything(side.store.as_ref()).await, before);
            assert_eq!(side.store.expire().await.unwrap(), 0);
        }
        assert_eq!(changed[0], changed[1]);
    }

    /// The call that a step stands for.
    fn made(&mut self, step: &Step) -> Made {
        self.operations += 1;
        let operation = format!("op-{}", self.operations);
        let name = |feature: usize| format!("f{feature}");
        let known = &self.sides[0].ids;
        let asked = |question: usize| format!("#{}", question % known.len().max(1));
        let home = |question: usize| {
            known.get(question % known.len().max(1)).map_or_else(|| name(0), |(_, feature)| feature.clone())
        };
        let tool = |role: Role, tool: Tool, mut input: Value| {
            input["operation_id"] = json!(operation);
            Made::Tool { role, tool, input }
        };
        match step {
            Step::CreateFeature { feature } => tool(
                Role::Human,
                Tool::FeatureCreate,
                json!({"feature_id": name(*feature), "title": "t", "spec": "words"}),
            ),
            Step::Ask { feature, blocking, expected, policy, timeout_ms } => {
                let mut changes = expectation(*expected);
                changes["blocking"] = json!(blocking);
                changes["default_decision_policy"] = decision(*policy);
                changes["timeout_ms"] = json!(timeout_ms);
                let input = crate::support::question(&name(*feature), changes);
                tool(Role::Builder, Tool::QuestionCreate, input)
            }
            Step::Answer { question, answer: number, who } => tool(
                Role::Human,
                Tool::QuestionAnswer,
                json!({"feature_id": home(*question), "question_id": asked(*question),
                    "answer": answer(*number), "answered_by": format!("person{who}")}),
            ),
            Step::Withdraw { question, role } => tool(
                Role::parse(role).unwrap(),
                Tool::QuestionWithdraw,
                json!({"feature_id": home(*question), "question_id": asked(*question)}),
            ),
            Step::Reopen { question } => tool(
                Role::Human,
                Tool::QuestionReopen,
                json!({"feature_id": home(*question), "question_id": asked(*question), "note": "again"}),
            ),
            Step::Transition { feature, to } => tool(
                Role::Orchestrator,
                Tool::FeatureTransition,
                json!({"feature_id": name(*feature), "to": to, "reason": "because"}),
            ),
            Step::Note { feature } => {
                tool(Role::Qa, Tool::FeatureLogAppend, json!({"feature_id": name(*feature), "note": "n"}))
            }
            Step::Reuse { call, feature } => {
                let used = format!("op-{}", call % self.operations + 1);
                Made::Tool {
                    role: Role::Human,
                    tool: Tool::FeatureLogAppend,
                    input: json!({"feature_id": name(*feature), "note": "reused", "operation_id": used}),
                }
            }
            Step::Cancel { feature } => Made::Cancel { feature: name(*feature), operation },
            Step::Retry { feature } => Made::Retry { feature: name(*feature), operation },
            Step::Work { feature, what, epoch } => {
                Made::Work { what: *what, feature: name(*feature), epoch: *epoch, operation }
            }
            Step::Again { .. } | Step::Expire | Step::Clock { .. } | Step::Policy { .. } => {
                unreachable!("no call of its own")
            }
        }
    }

    /// Makes the call on both sides; both give the same, ids aside.
    async fn make(&mut self, made: &Made) {
        let rules = Arc::new(rules(self.policy.clone()));
        let mut replies = Vec::new();
        for side in &mut self.sides {
            let reply = match side.request(made, &rules) {
                Ok(request) => side.submit(request, &rules).await,
                Err(refusal) => Err(refusal),
            };
            replies.push(side.without_ids(&match reply {
                Ok(envelope) => envelope,
                Err(refusal) => refusal.to_json().to_string(),
            }));
        }
        assert_eq!(replies[0], replies[1], "{made:?}");
    }

    /// What readers see: the same on both sides, and consistent in itself.
    async fn compare(&mut self) {
        let mut views = Vec::new();
        for side in &mut self.sides {
            let (features, questions) = everything(side.store.as_ref()).await;
            for feature in &features {
                let open: Vec<&Question> = questions
                    .iter()
                    .filter(|question| question.feature_id == feature.id && question.is_open())
                    .collect();
                let blocking: Vec<_> = open.iter().filter(|question| question.asked.blocking).collect();
                assert!(blocking.len() <= 1, "{blocking:?}");
                assert_eq!(feature.open_question_count as usize, open.len());
                assert_eq!(feature.status == Status::AwaitingInput, blocking.len() == 1, "{feature:?}");
                let waits_for = feature.waiting.as_ref().map(|waiting| &waiting.question_id);
                assert_eq!(waits_for, blocking.first().map(|question| &question.id));
                let human_input = feature.human_input();
                assert_eq!(human_input.open_question_id.as_ref(), waits_for);
                assert_eq!(human_input.resume_status.is_some(), feature.status == Status::AwaitingInput);
                let phase = feature
                    .blocked_from
                    .filter(|from| from.worker().is_some() || *from == Status::ReadyToMerge);
                assert_eq!(phase, feature.blocked_from, "{feature:?}");
                assert!(feature.status != Status::Blocked || phase.is_some(), "{feature:?}");
                assert!(!feature.status.is_terminal() || open.is_empty());
                for again in blocking.iter().filter(|question| question.reopened_from.is_some()) {
                    let told = feature.work.replies.iter().any(|reply| reply.question_id == again.id);
                    assert!(told, "nobody would be told the end of {}: {feature:?}", again.id);
                }
            }
            side.no_answer_lost_or_changed(&questions).await;
            let deadline = side.store.next_deadline().await.unwrap();
            let shown = side.store.view(feature_id("f0"), 3).await.unwrap();
            let answers = shown.map(|view| view.answers);
            let open = page(QuestionFilter::Only(QuestionStatus::Open), 9);
            let open = side.store.questions(open).await.unwrap();
            let inbox = side.store.inbox(0, 9).await.unwrap();
            let view =
                json!([features, questions, deadline, answers, open, inbox.total, inbox.items]).to_string();
            views.push(side.without_ids(&view));
        }
        assert_eq!(views[0], views[1]);
    }

    /// The two logs tell the same story, and each gives the state again.
    async fn check_logs(&mut self) {
        self.expire().await;
        let mut logs = Vec::new();
        for side in &self.sides {
            let log = side.store.events(EventPage::default()).await.unwrap();
            let mut replay = Replay::default();
            for (index, recorded) in log.iter().enumerate() {
                assert_eq!(recorded.seq, index as u64 + 1);
                replay.apply(recorded);
            }
            nothing_begins_where_nothing_may(&log);
            every_turn_ends_before_the_next_begins(&log);
            let (features, mut questions) = everything(side.store.as_ref()).await;
            let states = replay.features.values();
            assert_eq!(
                states.clone().filter_map(|state| state.clone().into_feature()).collect::<Vec<_>>(),
                features
            );
            let mut replayed: Vec<_> =
                states.flat_map(|state| &state.questions).map(|question| (**question).clone()).collect();
            replayed.sort_by_key(|question| question.id.clone());
            questions.sort_by_key(|question| question.id.clone());
            assert_eq!(replayed, questions);
            assert_eq!(side.store.verify().await.unwrap(), Vec::<String>::new());
            logs.push(side.without_ids(&json!(log).to_string()));
        }
        assert_eq!(logs[0], logs[1]);
    }
}

/// No turn, check or merge begins while a blocking question is open, or after the end.
fn nothing_begins_where_nothing_may(log: &[Recorded]) {
    let mut statuses: BTreeMap<&FeatureId, Status> = BTreeMap::new();
    for recorded in log {
        let status = statuses.entry(&recorded.stamped.feature_id).or_insert(Status::Planning);
        match &recorded.stamped.event {
            Event::StatusChanged { to, .. } => *status = *to,
            Event::TurnBegan { .. }
            | Event::TurnContinued { .. }
            | Event::CheckBegan { .. }
            | Event::Merged { .. } => {
                assert!(*status != Status::AwaitingInput && !status.is_terminal(), "{recorded:?}");
            }
            _ => {}
        }
    }
}

/// Whatever becomes of its feature meanwhile, and if that is its end, before it.
fn every_turn_ends_before_the_next_begins(log: &[Recorded]) {
    let mut in_hand = BTreeSet::new();
    for recorded in log {
        let id = &recorded.stamped.feature_id;
        match &recorded.stamped.event {
            Event::TurnBegan { .. } => assert!(in_hand.insert(id), "another has no end yet: {recorded:?}"),
            Event::TurnContinued { .. } => assert!(in_hand.contains(id), "it is over: {recorded:?}"),
            Event::TurnEnded { .. } => assert!(in_hand.remove(id), "it has an end: {recorded:?}"),
            Event::StatusChanged { to, .. } if to.is_terminal() => {
                assert!(!in_hand.contains(id), "its turn has no end: {recorded:?}");
            }
            _ => {}
        }
    }
}

impl Side {
    /// The request on this side: positions become ids.
    fn request(&self, made: &Made, rules: &aop_kernel::policy::Rules) -> Result<Request, Refusal> {
        let human = Caller::new(Role::Human);
        match made {
            Made::Cancel { feature, operation } => tools::OperatorCommand::Cancel.request(
                &human,
                feature_id(feature),
                OperationId::parse(operation)?,
                "test",
            ),
            Made::Retry { feature, operation } => tools::OperatorCommand::Retry.request(
                &human,
                feature_id(feature),
                OperationId::parse(operation)?,
                "test",
            ),
            Made::Work { what, feature, epoch, operation } => {
                let id = OwnOperation::Check.id(operation)?;
                Ok(tools::runner_request(work(*what, feature_id(feature), *epoch), id, "test"))
            }
            Made::Tool { role, tool, input } => {
                let mut input = input.clone();
                if let Some(position) =
                    input["question_id"].as_str().map(|text| text[1..].parse::<usize>().unwrap())
                {
                    let unknown = "q_01J9ZQ4V7K3M2N1P0R5S6T7V8W".to_owned();
                    let known = self.ids.get(position).map(|(id, _)| id);
                    input["question_id"] = json!(known.unwrap_or(&unknown));
                }
                match tools::parse(*tool, &Caller::new(*role), &input, "test", rules)? {
                    Call::Mutate(request) => Ok(*request),
                    Call::Read(query) => unreachable!("{query:?}"),
                }
            }
        }
    }

    async fn submit(
        &mut self,
        request: Request,
        rules: &Arc<aop_kernel::policy::Rules>,
    ) -> Result<String, Refusal> {
        let operation = request.operation_id.to_string();
        let feature = request.command.feature_id().to_string();
        let before = self.store.events(EventPage::default()).await.unwrap().len();
        let receipt = self.store.submit(request, Arc::clone(rules)).await?;
        let envelope = receipt.envelope.as_str().to_owned();
        assert_eq!(receipt.fresh, !self.successes.contains_key(&operation));
        if let Some(first) = self.successes.get(&operation) {
            assert_eq!(*first, envelope);
            assert_eq!(self.store.events(EventPage::default()).await.unwrap().len(), before);
        } else if let Some(id) = receipt.envelope.data()["question_id"].as_str()
            && !self.ids.iter().any(|(known, _)| known == id)
        {
            self.ids.push((id.to_owned(), feature));
        }
        self.successes.insert(operation, envelope.clone());
        Ok(envelope)
    }

    async fn no_answer_lost_or_changed(&mut self, questions: &[Question]) {
        for (id, state) in &self.answers {
            let found = questions.iter().find(|question| question.id.as_str() == id);
            assert_eq!(found.map(|question| &question.state), Some(state), "{id}");
        }
        let log = self.store.events(EventPage::default()).await.unwrap();
        for event in log.iter().map(|recorded| &recorded.stamped.event) {
            if let Event::QuestionAnswered { question_id, .. } = event {
                let question = questions.iter().find(|question| question.id == *question_id).unwrap();
                self.answers.insert(question_id.to_string(), question.state.clone());
            }
        }
    }

    fn without_ids(&self, text: &str) -> String {
        let ids = self.ids.iter().enumerate();
        ids.fold(text.to_owned(), |text, (index, (id, _))| text.replace(id, &format!("#{index}")))
    }
}
