//! Compiles question specs and native calls into a Canonical Prompt Spec whose steps can be executed: every
//! option leads somewhere, every step is reached, an end is reachable from everywhere.

use super::sync;
use super::{
    END, MAX_OPTIONS, PromptOption, PromptSpec, PromptStep, SourcePrompt, TWO_STAGE_ROUTING, Transition,
};
use crate::dialogue::OnEscape;
use crate::dialogue::ask::{Nav, Role};
use crate::dialogue::route::{Node, tree};
use crate::dialogue::walk;
use crate::dialogue::wording::{self, Labels, Names};
use crate::ids::Ids;
use crate::import;
use crate::spec::{Kind, Question, QuestionSpec};
use crate::violation::{Report, Violation};
use serde::Serialize;
use serde_json::Value;

/// What the document says about itself, and how its steps behave.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The protocol's name.
    pub protocol: String,
    /// `x.y.z`.
    pub version: String,
    /// The Markdown file that the protocol is written in.
    pub source: String,
    /// What Esc does in every step.
    pub on_escape: OnEscape,
    /// Whether task tools are mapped.
    pub task_sync: bool,
}

/// A compiled document, and what it could not take in.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The document.
    pub spec: PromptSpec,
    /// The call that puts each step to a user, in the order of the steps.
    pub calls: Vec<StepCall>,
    /// Questions without a step: free text has none.
    pub warnings: Vec<Violation>,
}

/// A native call for one step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepCall {
    /// The step.
    pub step: String,
    /// The tool.
    pub tool: &'static str,
    /// What it is called with.
    pub arguments: Value,
}

/// Reads one input: a question spec, an `AskUserQuestion` call, or a list of either.
///
/// # Errors
/// Every violation of what was found.
pub fn inputs(value: &Value) -> Result<Vec<QuestionSpec>, Vec<Violation>> {
    if let Value::Array(items) = value {
        let (mut specs, mut report) = (Vec::new(), Report::default());
        for (index, item) in items.iter().enumerate() {
            let below = |v: Violation| Violation { path: format!("/{index}{}", v.path), ..v };
            match one_input(item) {
                Ok(spec) => specs.push(spec),
                Err(found) => report.extend(found.into_iter().map(below).collect()),
            }
            if report.is_full() {
                break;
            }
        }
        return report.finish(Some(specs));
    }
    one_input(value).map(|spec| vec![spec])
}

fn one_input(value: &Value) -> Result<QuestionSpec, Vec<Violation>> {
    let is_spec = value.get("version").is_some() || value.pointer("/questions/0/kind").is_some();
    if is_spec { QuestionSpec::from_json(value) } else { import::claude_code(value, None) }
}

/// Compiles specs in their order into one document.
///
/// # Errors
/// The plan or the outcome breaks a rule; in particular, nothing but free text was asked.
pub fn compile(specs: &[QuestionSpec], plan: &Plan) -> Result<Compiled, Vec<Violation>> {
    let mut maker = Maker { plan, ids: Ids::default(), steps: Vec::new(), prompts: Vec::new() };
    let mut warnings = Vec::new();
    let mut questions = Vec::new();
    for (number, spec) in specs.iter().enumerate() {
        for (index, question) in spec.questions().iter().enumerate() {
            if question.kind() == Kind::FreeText {
                warnings.push(Violation {
                    code: "free_text_has_no_step",
                    path: format!("/{number}/questions/{index}"),
                    message: format!("the free text question \"{}\" has no step", question.id()),
                    hint: "ask it as text; steps only choose".to_owned(),
                });
            } else {
                let id = maker.unique(question.id());
                questions.push((spec.topic(), question, id));
            }
        }
    }
    let mut calls = Vec::new();
    for (at, (phase, question, id)) in questions.iter().enumerate() {
        let after = questions.get(at + 1).map_or(END, |(_, _, id)| id.as_str());
        let first = maker.steps.len();
        maker.question(phase, question, id, after);
        calls.extend(maker.steps[first..].iter().map(|step| StepCall {
            step: step.id.clone(),
            tool: "request_user_input",
            arguments: step.request(question.header()),
        }));
    }
    let spec = PromptSpec {
        protocol: plan.protocol.clone(),
        version: plan.version.clone(),
        source: plan.source.clone(),
        source_prompts: maker.prompts,
        steps: maker.steps,
        task_sync: plan.task_sync.then(sync::standard),
    };
    let value = serde_json::to_value(&spec).unwrap_or_default();
    let mut findings = super::check_json(&value);
    if questions.is_empty() && !warnings.is_empty() {
        // That there is no step has a reason.
        findings.errors.retain(|found| !["/steps", "/source_prompts"].contains(&found.path.as_str()));
        findings.errors.append(&mut warnings);
    }
    if findings.errors.is_empty() { Ok(Compiled { spec, calls, warnings }) } else { Err(findings.errors) }
}

struct Maker<'a> {
    plan: &'a Plan,
    ids: Ids,
    steps: Vec<PromptStep>,
    prompts: Vec<SourcePrompt>,
}

impl Maker<'_> {
    fn unique(&mut self, wish: &str) -> String {
        self.ids.give(if wish == END { "end_question" } else { wish })
    }

    /// All steps of one question. `after` is where a finished answer leads.
    fn question(&mut self, phase: &str, question: &Question, id: &str, after: &str) {
        let first = self.steps.len();
        let members: Vec<usize> = (0..question.options().len()).collect();
        let multi = question.kind() == Kind::MultiChoice;
        let more = if multi && members.len() > 1 { Some(self.unique(&format!("{id}_more"))) } else { None };
        let picked = more.as_deref().unwrap_or(after).to_owned();
        let nodes = tree(question.options(), &members, MAX_OPTIONS);
        let labels = &Labels::of(question);
        self.step(labels, id, &nodes, None, &picked, after);
        if let Some(more) = more {
            self.more(labels, &more, id, after);
        }
        let routed = members.len() > MAX_OPTIONS;
        self.prompts.push(SourcePrompt {
            id: id.to_owned(),
            source_phase: phase.to_owned(),
            // A single option is shown beside Skip.
            source_options_count: members.len().max(2),
            mapped_step_ids: self.steps[first..].iter().map(|step| step.id.clone()).collect(),
            overflow_strategy: routed.then(|| TWO_STAGE_ROUTING.to_owned()),
        });
    }

    /// One step for `nodes`, and below it the steps that its routes lead to.
    fn step(
        &mut self,
        labels: &Labels<'_>,
        id: &str,
        nodes: &[Node],
        within: Option<&str>,
        picked: &str,
        after: &str,
    ) {
        let (question, mut names) = (labels.question, Names::new(labels));
        let mut options = Vec::new();
        let mut next = Vec::new();
        let mut below = Vec::new();
        let flat = nodes.iter().all(|node| matches!(node, Node::Leaf(_)));
        for item in walk::items(question, nodes, &mut names, flat && within.is_none()) {
            let target = match item.role {
                Role::Route(child) => {
                    let target = self.unique(&format!("{id}_{}", child + 1));
                    if let Node::Group { children, .. } = &nodes[child] {
                        below.push((target.clone(), children, item.label.clone()));
                    }
                    target
                }
                Role::Pick(_) | Role::Nav(_) => picked.to_owned(),
            };
            next.push(Transition { answer: item.label.clone(), next_step: target });
            options.push(plain(item.label, &item.description));
        }
        if let [_] = options.as_slice() {
            let skip = names.give(Nav::Skip.label());
            next.push(Transition { answer: skip.clone(), next_step: after.to_owned() });
            // Steps lead on from here, also where the question is required.
            options.push(plain(skip, wording::UNANSWERED));
        }
        let text = match within {
            Some(label) => format!("{}\n\nChoose within: {label}", question.question()),
            None => question.question().to_owned(),
        };
        let intent = match (question.options().len(), question.kind()) {
            (1, _) => "confirm",
            (_, Kind::MultiChoice) => "select_many",
            (_, Kind::SingleChoice | Kind::FreeText) => "select_one",
        };
        self.push(id, intent, text, options, next);
        for (id, children, label) in below {
            self.step(labels, &id, children, Some(&label), picked, after);
        }
    }

    /// "Add another?" after each pick.
    fn more(&mut self, labels: &Labels<'_>, id: &str, again: &str, after: &str) {
        let (question, mut names) = (labels.question, Names::new(labels));
        let (mut options, mut next) = (Vec::new(), Vec::new());
        for (nav, target) in [(Nav::AddAnother, again), (Nav::Done, after)] {
            let label = names.give(nav.label());
            next.push(Transition { answer: label.clone(), next_step: target.to_owned() });
            options.push(plain(label, wording::nav_description(nav, question, false)));
        }
        let text = format!("{}\n\nAdd another?", question.question());
        self.push(id, "confirm", text, options, next);
    }

    fn push(
        &mut self,
        id: &str,
        intent: &str,
        question: String,
        options: Vec<PromptOption>,
        next: Vec<Transition>,
    ) {
        let on_escape = match self.plan.on_escape {
            OnEscape::Terminate => "terminate",
            OnEscape::ReturnPrevious => "return_previous",
            OnEscape::Defer => "defer",
        };
        self.steps.push(PromptStep {
            id: id.to_owned(),
            intent: intent.to_owned(),
            question,
            options,
            on_escape: on_escape.to_owned(),
            max_choices: (intent == "select_many").then_some(1),
            next: Some(next),
        });
    }
}

fn plain(label: String, description: &str) -> PromptOption {
    PromptOption { label, description: description.to_owned(), implication: None }
}
