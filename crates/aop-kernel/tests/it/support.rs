//! States and requests made by hand.

use aop_kernel::envelope::Refusal;
use aop_kernel::event::Snapshot;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::lifecycle::{self, BeginTurn, Command, EndTurn, Moment, Outcome, Request};
use aop_kernel::own::OwnOperation;
use aop_kernel::policy::{HumanInput, Rules};
use aop_kernel::role::{Caller, Role};
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
use aop_kernel::tools::{Call, Tool, parse, runner_request};
use aop_kernel::work::TurnEnd;
use serde_json::{Map, Value, json};

/// Where a test's time begins.
pub(crate) const START: i64 = 1_772_661_600_000;

pub(crate) fn rules(human_input: HumanInput) -> Rules {
    Rules { human_input, check_schema: |_| Ok(()), check_instance: |_, _| Ok(()) }
}

/// The n-th question id.
pub(crate) fn id(number: usize) -> QuestionId {
    QuestionId::parse(&format!("q_{number:026}")).unwrap()
}

pub(crate) fn request(tool: Tool, input: &Value) -> Request {
    let mut input = input.clone();
    input["operation_id"] = json!("op");
    match parse(tool, &Caller::new(Role::Human), &input, "test", &rules(HumanInput::default())).unwrap() {
        Call::Mutate(request) => *request,
        Call::Read(query) => panic!("{query:?}"),
    }
}

/// Decides one call on a state; a new question gets the given number.
pub(crate) fn decide(
    state: &Snapshot,
    tool: Tool,
    input: &Value,
    number: usize,
    policy: HumanInput,
) -> Result<Outcome, Refusal> {
    let moment = Moment { now: Timestamp::from_millis(START), question_id: id(number) };
    lifecycle::apply(state, &request(tool, input), &moment, &rules(policy))
}

/// The state after one call that succeeds.
pub(crate) fn after(
    mut state: Snapshot,
    tool: Tool,
    input: &Value,
    number: usize,
    policy: HumanInput,
) -> Snapshot {
    for event in decide(&state, tool, input, number, policy).unwrap().events {
        state.evolve(&event);
    }
    state
}

/// Decides something a runner does.
pub(crate) fn decide_work(state: &Snapshot, command: Command) -> Result<Outcome, Refusal> {
    let moment = Moment { now: Timestamp::from_millis(START), question_id: id(0) };
    let request = runner_request(command, OwnOperation::Check.id("op").unwrap(), "test");
    lifecycle::apply(state, &request, &moment, &rules(HumanInput::default()))
}

/// The state after something a runner did.
pub(crate) fn worked(mut state: Snapshot, command: Command) -> Snapshot {
    for event in decide_work(&state, command).unwrap().events {
        state.evolve(&event);
    }
    state
}

/// A turn of this role begins, with the end of a question or without.
pub(crate) fn begins(state: Snapshot, role: Role, reply_to: Option<QuestionId>) -> Snapshot {
    let feature_id = FeatureId::parse("a").unwrap();
    let (claim, engine) = ("claim".to_owned(), "scripted".to_owned());
    worked(state, Command::BeginTurn(BeginTurn { feature_id, claim, epoch: 1, role, engine, reply_to }))
}

/// It ends like this.
pub(crate) fn ends(state: Snapshot, end: TurnEnd, to: Option<Status>) -> Snapshot {
    let (feature_id, claim) = (FeatureId::parse("a").unwrap(), "claim".to_owned());
    let to = to.map(|to| (to, String::new()));
    worked(
        state,
        Command::EndTurn(Box::new(EndTurn { feature_id, claim, epoch: 1, end, notes: Vec::new(), to })),
    )
}

/// It is done.
pub(crate) fn finishes(state: Snapshot, to: Option<Status>) -> Snapshot {
    ends(state, TurnEnd::Final { result: Map::new(), goes_on: true }, to)
}

pub(crate) fn feature() -> Snapshot {
    let input = json!({"feature_id": "a", "title": "A"});
    after(Snapshot::default(), Tool::FeatureCreate, &input, 0, HumanInput::default())
}

pub(crate) fn question(changes: Value) -> Value {
    let mut input = json!({"feature_id": "a", "role": "builder", "session_id": "s",
        "question_type": "clarification", "prompt": "Which way?"});
    input.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    input
}
