//! From a tool call to a request or a query. The order of checks is the contract's: role, arguments,
//! operation id; replay and state come later, inside the store's transaction.

use super::access::Tool;
use super::args::{Args, mistyped, too_large, wrong};
use super::digest::{Sorted, SortedExpectation, SortedMap, digest, without_defaults};
use crate::code::ErrorCode;
use crate::envelope::Refusal;
use crate::ids::{FeatureId, OperationId, QuestionId};
use crate::lifecycle::{
    Answer, AppendLog, Command, CreateFeature, CreateQuestion, Reopen, Request, Transition, Withdraw,
};
use crate::own::OwnId;
use crate::policy::{DecisionPolicy, Rules};
use crate::question::{Asked, EngineRef, ExpectedAnswer, QuestionStatus, QuestionType};
use crate::role::{Caller, Role};
use crate::status::Status;
use aop_ask::{QuestionSpec, is_unseen};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// A whole request is no larger than this.
pub const MAX_REQUEST_BYTES: usize = 1024 * 1024;

/// A request nests no deeper than this. Readers of JSON give up at 128 levels, and a record and its event wrap
/// what they hold in a few more: what is taken here can always be read back.
const MAX_REQUEST_DEPTH: usize = 96;

pub(super) const ROLES: &str = "planner, builder, qa, orchestrator, human";
pub(super) const QUESTION_TYPES: &str = "clarification, permission_override, external_decision, risk_ack";
pub(super) const POLICIES: &str = "engine_judgement, use_default, decline";
const TARGETS: &str = "planning, building, qa, blocked, ready_to_merge, merged, failed";
const STATUSES: &str = "planning, building, qa, blocked, awaiting_input, ready_to_merge, merged, failed";

/// What a tool call asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// A change.
    Mutate(Box<Request>),
    /// A look.
    Read(Query),
}

/// A read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// `feature.get`
    Feature(FeatureId),
    /// `feature.list`
    Features {
        /// Only those with this status.
        status: Option<Status>,
        /// Also those that `aop ask` made.
        all: bool,
        /// Only this one: what a bound worker may see.
        only: Option<FeatureId>,
    },
    /// `feature.get_context`
    Context(ContextQuery),
    /// `feature.question_list`
    Questions {
        /// Whose questions.
        feature_id: FeatureId,
        /// Which of them.
        status: QuestionFilter,
    },
}

/// `feature.get_context`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextQuery {
    /// Whose context.
    pub feature_id: FeatureId,
    /// How many answers to show.
    pub history_limit: u32,
}

/// Which questions a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionFilter {
    /// All of them.
    All,
    /// Those with this status.
    Only(QuestionStatus),
}

impl QuestionFilter {
    /// Reads `open|answered|expired|withdrawn|all`; the refusal names the value.
    pub fn parse(name: &str) -> Result<Self, Refusal> {
        if name == "all" {
            return Ok(QuestionFilter::All);
        }
        QuestionStatus::parse(name).map(QuestionFilter::Only).ok_or_else(|| {
            wrong("status", format!("status {} is not known", crate::ids::quoted(name)))
                .hint("status is one of open, answered, expired, withdrawn, all")
        })
    }

    /// Whether a question with this status is shown.
    pub fn admits(self, status: QuestionStatus) -> bool {
        match self {
            QuestionFilter::All => true,
            QuestionFilter::Only(wanted) => wanted == status,
        }
    }
}

/// Checks a tool call as far as that is possible without the state.
pub fn parse(
    tool: Tool,
    caller: &Caller,
    input: &Value,
    surface: &'static str,
    rules: &Rules,
) -> Result<Call, Refusal> {
    let mut args = checked(tool, caller, input)?;
    if !tool.is_mutating() {
        return read(tool, caller, args, rules).map(Call::Read);
    }
    let operation_id = args.optional("operation_id");
    let (command, digest) = mutation(tool, caller, args, rules)?;
    let operation_id = match operation_id {
        None => {
            return Err(Refusal::new(
                ErrorCode::OperationIdRequired,
                format!("{} changes something and needs an operation_id", tool.name()),
            ));
        }
        Some(Value::String(text)) => OperationId::given(text, caller)?,
        Some(other) => return Err(wrong("operation_id", format!("operation_id is text, not {other}"))),
    };
    Ok(Call::Mutate(Box::new(Request { caller: caller.clone(), surface, operation_id, digest, command })))
}

/// The request of a mutating tool that aop's own code calls, under a name that no caller can have used.
pub fn own_request(
    tool: Tool,
    caller: &Caller,
    input: &Value,
    id: OwnId,
    surface: &'static str,
    rules: &Rules,
) -> Result<Request, Refusal> {
    let args = checked(tool, caller, input)?;
    let (command, digest) = mutation(tool, caller, args, rules)?;
    Ok(Request { caller: caller.clone(), surface, operation_id: id.into_operation(), digest, command })
}

/// The arguments, once it is clear that the caller may call the tool and that they are no burden.
fn checked<'a>(tool: Tool, caller: &Caller, input: &'a Value) -> Result<Args<'a>, Refusal> {
    tool.authorise(caller)?;
    if !nests_within(input, MAX_REQUEST_DEPTH) {
        let message = format!("the arguments of {} nest deeper than {MAX_REQUEST_DEPTH} levels", tool.name());
        return Err(Refusal::invalid_argument(message).hint("flatten them, or send the deep part as text"));
    }
    // Written out to be counted only when it could be too long.
    let size = if longest(input) > MAX_REQUEST_BYTES { input.to_string().len() } else { 0 };
    if size > MAX_REQUEST_BYTES {
        return Err(too_large("the request", size, MAX_REQUEST_BYTES));
    }
    Args::new(tool.name(), input)
}

/// The request that asks, by the arguments of `feature.question_create`.
pub fn question_request(
    caller: &Caller,
    input: &Value,
    surface: &'static str,
    rules: &Rules,
) -> Result<Request, Refusal> {
    match parse(Tool::QuestionCreate, caller, input, surface, rules)? {
        Call::Mutate(request) => Ok(*request),
        Call::Read(_) => Err(Refusal::new(ErrorCode::Internal, "asking is a mutation")),
    }
}

fn nests_within(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| nests_within(item, levels - 1)),
        Value::Object(map) => levels > 0 && map.values().all(|item| nests_within(item, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// At least as many bytes as the value has when it is written: a character may become `\u0000`.
fn longest(value: &Value) -> usize {
    let text = |text: &str| text.len() * 6 + 3;
    match value {
        Value::Array(items) => 2 + items.iter().map(|item| longest(item) + 1).sum::<usize>(),
        Value::Object(map) => 2 + map.iter().map(|(key, item)| text(key) + longest(item) + 1).sum::<usize>(),
        Value::String(value) => text(value),
        Value::Number(_) => 32,
        Value::Null | Value::Bool(_) => 5,
    }
}

fn read(tool: Tool, caller: &Caller, mut args: Args<'_>, rules: &Rules) -> Result<Query, Refusal> {
    if tool == Tool::FeatureList {
        let status = args.optional_one_of("status", STATUSES)?;
        let all = args.optional_bool("all")?.unwrap_or(false);
        args.finish()?;
        return Ok(Query::Features {
            status,
            all,
            only: caller.feature.clone().filter(|_| caller.role.is_worker()),
        });
    }
    let feature_id = args.id("feature_id", FeatureId::parse)?;
    tool.authorise_feature(caller, &feature_id)?;
    let query = match tool {
        Tool::QuestionList => {
            let status = match args.optional_text("status")? {
                Some(name) => QuestionFilter::parse(&name)?,
                None => QuestionFilter::Only(QuestionStatus::Open),
            };
            Query::Questions { feature_id: feature_id.clone(), status }
        }
        Tool::FeatureGetContext => Query::Context(ContextQuery {
            feature_id: feature_id.clone(),
            history_limit: rules.human_input.context_answer_history_limit,
        }),
        _ => Query::Feature(feature_id.clone()),
    };
    args.finish()?;
    Ok(query)
}

/// The command, and the digest of its arguments in normal form. Whether the caller may act for the feature is decided as
/// soon as the feature is known: a caller that may not is told nothing about its other arguments.
fn mutation(
    tool: Tool,
    caller: &Caller,
    mut args: Args<'_>,
    rules: &Rules,
) -> Result<(Command, String), Refusal> {
    let digest = |normal: &Value| digest(tool.name(), caller.role, &Sorted(normal));
    let feature_id = args.id("feature_id", FeatureId::parse)?;
    tool.authorise_feature(caller, &feature_id)?;
    let parsed = match tool {
        Tool::FeatureCreate => {
            let title = args.text("title")?;
            let spec = args.optional_document("spec")?;
            let digest = digest(&json!({"feature_id": feature_id, "title": title, "spec": spec}));
            (Command::CreateFeature(CreateFeature { feature_id, title, spec }), digest)
        }
        Tool::FeatureTransition => {
            let to: Status = args.one_of("to", TARGETS)?;
            let reason = args.optional_text("reason")?;
            let digest = digest(&json!({"feature_id": feature_id, "to": to, "reason": reason}));
            (Command::Transition(Transition { feature_id, to, reason }), digest)
        }
        Tool::FeatureLogAppend => {
            let note = args.text("note")?;
            let digest = digest(&json!({"feature_id": feature_id, "note": note}));
            (Command::AppendLog(AppendLog { feature_id, note }), digest)
        }
        Tool::QuestionCreate => question_create(caller, feature_id, &mut args, rules)?,
        Tool::QuestionAnswer => {
            let question_id = args.id("question_id", QuestionId::parse)?;
            let answer = args.any("answer")?.clone();
            let answered_by = answerer(caller, args.text("answered_by")?)?;
            let answer = Answer { feature_id, question_id, answer, answered_by };
            let digest = answer.digest(caller.role);
            (Command::Answer(answer), digest)
        }
        Tool::QuestionWithdraw | Tool::QuestionReopen => {
            let question_id = args.id("question_id", QuestionId::parse)?;
            let note = args.optional_text("note")?;
            let digest = digest(&json!({"feature_id": feature_id, "question_id": question_id, "note": note}));
            let command = if tool == Tool::QuestionWithdraw {
                Command::Withdraw(Withdraw { feature_id, question_id, note })
            } else {
                Command::Reopen(Reopen { feature_id, question_id, note })
            };
            (command, digest)
        }
        Tool::FeatureGet | Tool::FeatureList | Tool::FeatureGetContext | Tool::QuestionList => {
            return Err(Refusal::new(ErrorCode::Internal, format!("{} changes nothing", tool.name())));
        }
    };
    args.finish()?;
    Ok(parsed)
}

fn question_create(
    caller: &Caller,
    feature_id: FeatureId,
    args: &mut Args<'_>,
    rules: &Rules,
) -> Result<(Command, String), Refusal> {
    let role: Role = args.one_of("role", ROLES)?;
    asks_as_itself(caller, role)?;
    let session_id = args.text("session_id")?;
    let question_type: QuestionType = args.one_of("question_type", QUESTION_TYPES)?;
    let prompt = args.text("prompt")?;
    let details = args.optional_object("details")?;
    let spec = args.optional("spec").map(spec).transpose()?;
    let expected_answer = match args.optional("expected_answer") {
        Some(value) => Some(expectation(value)?.checked(spec.as_ref(), rules)?),
        None => spec.as_ref().map(|_| ExpectedAnswer::form()),
    };
    let interaction = args.optional_object("interaction")?;
    let wanted: Option<DecisionPolicy> = args.optional_one_of("default_decision_policy", POLICIES)?;
    let asked = Asked {
        blocking: args.optional_bool("blocking")?.unwrap_or(true),
        question_type,
        role,
        session_id,
        prompt,
        details,
        expected_answer,
        spec,
        interaction,
        default_decision_policy: question_type.decision_policy(wanted),
        timeout_ms: args.optional_number("timeout_ms")?,
        engine_ref: None,
    };
    let command = CreateQuestion { feature_id, asked: Arc::new(asked), adhoc_title: None };
    let digest = command.digest(caller.role);
    Ok((Command::CreateQuestion(Box::new(command)), digest))
}

// These two are what people and agents do all day: their normal forms are written straight from their fields, which
// stand in the order of their names.

impl CreateQuestion {
    fn digest(&self, role: Role) -> String {
        #[derive(Serialize)]
        struct Normal<'a> {
            adhoc_title: Option<&'a str>,
            blocking: bool,
            default_decision_policy: DecisionPolicy,
            details: Option<SortedMap<'a>>,
            expected_answer: Option<SortedExpectation<'a>>,
            feature_id: &'a FeatureId,
            interaction: Option<SortedMap<'a>>,
            prompt: &'a str,
            question_type: QuestionType,
            role: Role,
            session_id: &'a str,
            spec: Option<Sorted<'a>>,
            timeout_ms: Option<u64>,
        }
        let asked = &self.asked;
        let spec = asked.spec.as_ref().map(|spec| without_defaults(spec.to_json()));
        let normal = Normal {
            adhoc_title: self.adhoc_title.as_deref(),
            blocking: asked.blocking,
            default_decision_policy: asked.default_decision_policy,
            details: asked.details.as_ref().map(SortedMap),
            expected_answer: asked.expected_answer.as_ref().map(SortedExpectation::of),
            feature_id: &self.feature_id,
            interaction: asked.interaction.as_ref().map(SortedMap),
            prompt: &asked.prompt,
            question_type: asked.question_type,
            role: asked.role,
            session_id: &asked.session_id,
            spec: spec.as_ref().map(Sorted),
            timeout_ms: asked.timeout_ms,
        };
        digest(Tool::QuestionCreate.name(), role, &normal)
    }
}

impl Answer {
    fn digest(&self, role: Role) -> String {
        #[derive(Serialize)]
        struct Normal<'a> {
            answer: Sorted<'a>,
            answered_by: &'a str,
            feature_id: &'a FeatureId,
            question_id: &'a QuestionId,
        }
        let Answer { feature_id, question_id, answer, answered_by } = self;
        digest(
            Tool::QuestionAnswer.name(),
            role,
            &Normal { answer: Sorted(answer), answered_by, feature_id, question_id },
        )
    }
}

fn spec(value: &Value) -> Result<QuestionSpec, Refusal> {
    QuestionSpec::from_json(value).map_err(|violations| {
        let first =
            violations.first().map(|found| format!("{}: {}", found.path, found.message)).unwrap_or_default();
        Refusal::new(ErrorCode::InvalidDocument, format!("spec is not a valid question spec: {first}"))
            .hint("correct each violation; `aop spec check FILE` shows them all")
            .fact("argument", "spec")
            .fact("violations", violations)
    })
}

fn expectation(value: &Value) -> Result<ExpectedAnswer, Refusal> {
    // A list would be read as the fields in their order, which nobody means.
    let read = if value.is_object() {
        ExpectedAnswer::deserialize(value)
            .map_err(|error| wrong("expected_answer", format!("expected_answer cannot be used: {error}")))
    } else {
        Err(mistyped("expected_answer", "an object", value))
    };
    read.map_err(|refusal| {
        refusal.hint(
            "it is {kind, choices?, allow_other?, schema?, default?} with kind single_choice, multi_choice, free_text, json or form",
        )
    })
}

/// Why a name is reserved.
pub const RESERVED_NAMES: &str = "names that start with 'policy:' mark what no person decided";

/// Whether a name could be taken for a decision of policy.
pub fn is_reserved_name(name: &str) -> bool {
    // A capital I, and a one, look like the letter l; so all of them are taken for one.
    let alike = |sign: char| if matches!(sign, 'l' | '1' | '|') { 'i' } else { sign };
    as_read(name).chars().map(alike).collect::<String>().starts_with("poiicy:")
}

/// A name as it is read: without what nobody sees in it, in small letters, however wide its signs are, and with the Cyrillic
/// and Greek letters that look like those of the reserved word taken for them.
fn as_read(name: &str) -> String {
    let plain = |sign: char| match sign {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(sign) - 0xfee0).unwrap_or(sign),
        // Thirteen alphabets for mathematics, each with its capitals before its small letters.
        '\u{1d400}'..='\u{1d6a3}' => {
            let letters = ('A'..='Z').chain('a'..='z').cycle();
            letters.zip('\u{1d400}'..=sign).last().map_or(sign, |(letter, _)| letter)
        }
        '\u{2236}' | '\u{a789}' | '\u{fe13}' | '\u{fe55}' => ':',
        'р' | 'Р' | 'ρ' | 'Ρ' => 'p',
        'о' | 'О' | 'ο' | 'Ο' => 'o',
        'ӏ' | 'Ӏ' | 'І' | 'Ι' | 'ⅼ' => 'l',
        'і' | 'ι' | 'ı' | 'ⅰ' => 'i',
        'с' | 'С' | 'ϲ' | 'Ϲ' | 'ⅽ' => 'c',
        'у' | 'У' | 'Υ' | 'ү' | 'Ү' => 'y',
        other => other,
    };
    name.chars().filter(|sign| !is_unseen(*sign)).map(|sign| plain(sign).to_ascii_lowercase()).collect()
}

/// Who answers. Nobody but the clock decides as policy, and the orchestrator conveys what a person said: its own name, or
/// that of an agent, is nobody's answer.
fn answerer(caller: &Caller, name: String) -> Result<String, Refusal> {
    let role = Role::parse(&as_read(&name)).filter(|role| *role != Role::Human);
    if caller.role == Role::Orchestrator && role.is_some() {
        return Err(wrong(
            "answered_by",
            format!("answered_by {} is not a person", crate::ids::quoted(&name)),
        )
        .hint("the orchestrator conveys what a person answered; give that person's name, or 'human'"));
    }
    if is_reserved_name(&name) {
        return Err(wrong("answered_by", format!("answered_by {} is reserved", crate::ids::quoted(&name)))
            .hint(format!("{RESERVED_NAMES}; give the name of who answers")));
    }
    if name.chars().any(char::is_control) || name.len() > 200 {
        return Err(wrong("answered_by", format!("answered_by {} is not a name", crate::ids::quoted(&name)))
            .hint("use at most 200 bytes without control characters"));
    }
    Ok(name)
}

/// A worker asks as itself; the orchestrator and a human ask for any role.
fn asks_as_itself(caller: &Caller, role: Role) -> Result<(), Refusal> {
    if !caller.role.is_worker() || role == caller.role {
        return Ok(());
    }
    Err(Refusal::new(ErrorCode::ForbiddenForRole, format!("{} may not ask as {role}", caller.role))
        .hint("a worker asks as itself")
        .fact("role", caller.role))
}

impl Request {
    /// A question of an engine's session carries the way back to it.
    #[must_use]
    pub fn asked_by(mut self, engine: EngineRef) -> Self {
        if let Command::CreateQuestion(create) = &mut self.command {
            Arc::make_mut(&mut create.asked).engine_ref = Some(engine);
        }
        self
    }

    /// `aop ask` without a feature: the question brings its own feature along, in the same commit.
    #[must_use]
    pub fn bringing_feature(mut self, title: String) -> Self {
        if let Command::CreateQuestion(create) = &mut self.command {
            create.adhoc_title = Some(title);
            self.digest = create.digest(self.caller.role);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_reads_as_policy_is_reserved_whatever_is_unseen_in_it() {
        for bad in [
            "policy:default",
            "𝐩𝐨𝐥𝐢𝐜𝐲:default",
            "𝘗𝑜𝕝𝚒𝖈𝓎:x",
            "poIicy:x",
            "po1Icy:x",
            " Policy:x",
            "policy\u{200b}:default",
            "\u{200b}policy:default",
            "pol\u{ad}icy:default",
            "\u{202e}policy:",
            "policy\u{a0}:x",
            "policy\u{ff1a}default",
            "\u{ff50}olicy:x",
            "POLICY\u{2236}x",
            "р\u{43e}licy:default",
            "pοlіϲү:x",
        ] {
            assert!(is_reserved_name(bad), "{bad:?}");
            assert!(answerer(&Caller::new(Role::Human), bad.to_owned()).is_err(), "{bad:?}");
        }
        for good in
            ["", "policy", "policymaker: Ana", "Ana (policy: none)", "Ana\u{200d}", "保险", "Роман: Ольга"]
        {
            assert!(!is_reserved_name(good), "{good:?}");
        }
    }

    #[test]
    fn the_orchestrator_answers_in_the_name_of_a_person_and_in_no_other() {
        let by = |role, name: &str| answerer(&Caller::new(role), name.to_owned());
        for bad in ["orchestrator", "Builder", " planner ", "q\u{200b}a"] {
            let refusal = by(Role::Orchestrator, bad).unwrap_err();
            assert_eq!(refusal.facts["argument"], "answered_by", "{bad}");
            assert!(refusal.message.contains("is not a person"), "{refusal:?}");
            assert!(by(Role::Human, bad).is_ok(), "a person may be called {bad}");
        }
        for good in ["human", "Ana", "claude_code", "codex"] {
            assert!(by(Role::Orchestrator, good).is_ok(), "{good}");
        }
    }
}
