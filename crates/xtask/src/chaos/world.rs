//! What the campaign knows: what it asked for, what was acknowledged, and what it cannot know because it killed
//! the program before it could say.

use super::binary::{Binary, Reply};
use super::random::Random;
use anyhow::{Result, bail, ensure};
use aop_testkit::postgres::Server;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;

/// One operation, with the id that makes a retry of it safe.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) id: String,
    pub(super) args: Vec<String>,
}

/// An operation that was acknowledged, and with which bytes.
#[derive(Debug, Clone)]
pub(super) struct Acknowledged {
    pub(super) operation: Operation,
    pub(super) stdout: String,
}

/// Whether a disk without space, or a server that is away, may be the reason for a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disk {
    Roomy,
    Full,
    Away,
}

/// One project and everything the campaign did to it.
pub(super) struct World {
    pub(super) aop: Binary,
    /// The server that the store is on, when there is one.
    pub(super) database: Option<Rc<Server>>,
    pub(super) acknowledged: Vec<Acknowledged>,
    /// Killed before they answered; their ids tell later.
    pub(super) unsure: Vec<Operation>,
    /// Made up, and sent in a later round.
    pub(super) delayed: Vec<Operation>,
    /// Every answer that was ever sent, by question: who, and what.
    pub(super) given: BTreeMap<String, Vec<(String, Value)>>,
    pub(super) features: Vec<String>,
    /// Open questions as of the last check: feature and question.
    pub(super) open: Vec<(String, String)>,
    /// The log as of the last check.
    pub(super) log: Vec<Value>,
    counter: u64,
    pub(super) refused: u64,
}

/// Refusals that follow from the state of a feature: the campaign runs into them on purpose.
const EXPECTED: &[&str] = &[
    "question_not_found",
    "question_already_answered",
    "question_closed",
    "question_conflict_open",
    "question_answer_not_allowed_in_terminal_state",
    "question_open_blocks_action",
    "invalid_status_transition",
    "feature_already_exists",
    "feature_not_found",
];

impl World {
    pub(super) fn new(aop: Binary, database: Option<Rc<Server>>) -> Self {
        World {
            aop,
            database,
            acknowledged: Vec::new(),
            unsure: Vec::new(),
            delayed: Vec::new(),
            given: BTreeMap::new(),
            features: Vec::new(),
            open: Vec::new(),
            log: Vec::new(),
            counter: 0,
            refused: 0,
        }
    }

    fn fresh(&mut self) -> String {
        self.counter += 1;
        format!("op-{}", self.counter)
    }

    fn tool(&mut self, tool: &str, role: &str, mut input: Value) -> Operation {
        let id = self.fresh();
        input["operation_id"] = json!(id);
        let args = ["tool", "call", tool, "--role", role, "--input", &input.to_string()];
        Operation { id, args: args.map(str::to_owned).to_vec() }
    }

    /// A feature that is not there yet.
    pub(super) fn create(&mut self) -> Operation {
        let feature = format!("f{}", self.features.len());
        self.features.push(feature.clone());
        self.tool("feature.create", "human", json!({"feature_id": feature, "title": "T"}))
    }

    /// A question for this feature.
    pub(super) fn question(&mut self, random: &mut Random, feature: &str) -> Operation {
        let input = json!({"feature_id": feature, "role": "builder", "session_id": "s", "prompt": "May I?",
            "question_type": "clarification", "blocking": !random.once_in(5),
            "expected_answer": {"kind": "single_choice", "choices": ["yes", "no"]}});
        self.tool("feature.question_create", "builder", input)
    }

    /// An answer to this question; it is written down before it is sent.
    pub(super) fn answer(&mut self, random: &mut Random, feature: &str, question: &str) -> Operation {
        let value = if random.once_in(2) { "yes" } else { "no" };
        let who = format!("person-{}", random.below(1_000));
        self.given.entry(question.to_owned()).or_default().push((who.clone(), json!(value)));
        let input =
            json!({"feature_id": feature, "question_id": question, "answer": value, "answered_by": who});
        self.tool("feature.question_answer", "human", input)
    }

    /// Something that a project does all day.
    pub(super) fn any(&mut self, random: &mut Random) -> Operation {
        let Some(feature) = random.pick(&self.features).cloned() else { return self.create() };
        let open = random.pick(&self.open).cloned();
        match (random.below(10), open) {
            (0, _) => self.create(),
            (1, _) => {
                let to = ["building", "qa", "ready_to_merge", "blocked"]
                    [usize::from(random.next().to_le_bytes()[0]) % 4];
                self.tool("feature.transition", "orchestrator", json!({"feature_id": feature, "to": to}))
            }
            (2, Some((feature, question))) => self.tool(
                "feature.question_withdraw",
                "human",
                json!({"feature_id": feature, "question_id": question}),
            ),
            (3, _) => self.tool("feature.log_append", "human", json!({"feature_id": feature, "note": "n"})),
            (4..=6, Some((feature, question))) => self.answer(random, &feature, &question),
            _ => self.question(random, &feature),
        }
    }

    /// Sends an operation and takes note of what came of it.
    pub(super) fn send(
        &mut self,
        operation: Operation,
        variables: &[(&str, String)],
        disk: Disk,
    ) -> Result<()> {
        let reply = self.aop.run(&operation.args, variables)?;
        self.note(operation, &reply, disk)
    }

    /// Takes note of a reply.
    pub(super) fn note(&mut self, operation: Operation, reply: &Reply, disk: Disk) -> Result<()> {
        let Some(envelope) = reply.envelope() else {
            ensure!(reply.code.is_none(), "no envelope, and it was not killed: {operation:?} {reply:?}");
            self.unsure.push(operation);
            return Ok(());
        };
        if envelope["ok"] == true {
            self.acknowledged.push(Acknowledged { operation, stdout: reply.stdout.clone() });
            return Ok(());
        }
        self.refused += 1;
        match reply.refusal() {
            Some((code, details)) if code == "question_already_answered" => {
                self.told_the_winner(&operation, &details)
            }
            Some((code, _)) if EXPECTED.contains(&code.as_str()) => Ok(()),
            Some((code, _)) if code == "store_unavailable" && disk != Disk::Roomy => {
                // It is tried again when there is space, or a server; its id tells whether it was done.
                self.delayed.push(operation);
                Ok(())
            }
            _ => bail!("an unexpected refusal of {operation:?}: {reply:?}"),
        }
    }

    /// Whoever came too late is told the answer that stands, and that one was given by somebody.
    fn told_the_winner(&self, operation: &Operation, details: &Value) -> Result<()> {
        let by = details["answered_by"].as_str().unwrap_or_default();
        let known = self.given.values().flatten().any(|(who, what)| who == by && *what == details["answer"]);
        ensure!(known, "loser_is_told_the_winner: {operation:?} was told {details}");
        Ok(())
    }
}
