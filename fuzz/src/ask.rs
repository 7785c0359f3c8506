//! Documents about questions, and native replies to them.

use aop_ask::gate::Packet;
use aop_ask::prompts::{self, Plan};
use aop_ask::{AnswerSpec, Answers, Dialogue, OnEscape, Options, QuestionSpec, Step, Target, import, json};
use serde_json::Value;

/// One question of each kind, with labels that are easily mistaken for each other.
const SPEC: &str = include_str!("../spec.json");

fn known_spec() -> QuestionSpec {
    QuestionSpec::parse(SPEC.as_bytes()).expect("fuzz/spec.json is a spec")
}

/// Violations, or a spec that comes back from its own JSON.
pub(crate) fn spec(data: &[u8]) {
    if let Ok(spec) = QuestionSpec::parse(data) {
        assert_eq!(QuestionSpec::from_json(&spec.to_json()), Ok(spec));
    }
}

/// Violations, or a record that comes back from its own JSON.
pub(crate) fn answers(data: &[u8]) {
    let spec = known_spec();
    if let Ok(record) = AnswerSpec::parse(&spec, data) {
        assert_eq!(AnswerSpec::from_json(&spec, &record.to_json()), Ok(record));
    }
}

/// Two documents with a zero byte between them: the packet and what stands at its answer path.
pub(crate) fn packet(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let (packet, record) = (parts.next().unwrap_or_default(), parts.next());
    if let Ok(packet) = Packet::parse(packet) {
        let _ = packet.judge(record);
        let _ = packet.judge(None);
    }
}

/// A prompt document: findings. And the same bytes as specs: what is compiled from them passes its own check.
pub(crate) fn prompts(data: &[u8]) {
    let _ = prompts::check(data);
    let _ = prompts::tasks::calls(data);
    let Ok(value) = json::read(data) else { return };
    let Ok(specs) = prompts::inputs(&value) else { return };
    let plan = Plan {
        protocol: "fuzz".into(),
        version: "1.0.0".into(),
        source: "fuzz.md".into(),
        on_escape: OnEscape::Terminate,
        task_sync: true,
    };
    if let Ok(compiled) = prompts::compile(&specs, &plan) {
        let document = serde_json::to_value(&compiled.spec).expect("a document is JSON");
        let findings = prompts::check_json(&document);
        assert!(findings.errors.is_empty(), "what was compiled does not pass: {findings:?}");
    }
}

/// A native call as a spec: what is imported is a valid spec.
pub(crate) fn native_call(data: &[u8]) {
    let Ok(call) = json::read(data) else { return };
    for spec in [import::claude_code(&call, None), import::codex(&call, Some("t"))].into_iter().flatten() {
        assert_eq!(QuestionSpec::from_json(&spec.to_json()), Ok(spec));
    }
}

/// Replies to a dialogue until it ends or the list does. A reply that is refused changes nothing; a dialogue ends in
/// answers that its spec takes.
fn converse(target: Target, replies: &[Value]) {
    let Ok(mut dialogue) = Dialogue::start(known_spec(), target, Options::default()) else { return };
    for reply in replies.iter().take(64) {
        let before = dialogue.unanswered().len();
        if dialogue.reply(reply).is_err() {
            assert_eq!(dialogue.unanswered().len(), before, "a refused reply changed something");
        }
    }
    if let Step::Done(answers) = dialogue.next() {
        let checked = Answers::check(dialogue.spec(), &answers.to_json());
        assert!(checked.is_ok(), "a dialogue ended in answers that its spec refuses");
    }
}

fn converse_json(target: Target, data: &[u8]) {
    if let Ok(Value::Array(replies)) = json::read(data) {
        converse(target, &replies);
    }
}

pub(crate) fn reply_claude_code(data: &[u8]) {
    converse_json(Target::ClaudeCode, data);
}

pub(crate) fn reply_codex(data: &[u8]) {
    converse_json(Target::Codex, data);
}

pub(crate) fn reply_elicitation(data: &[u8]) {
    converse_json(Target::Elicitation, data);
}

/// Strict text is text: the bytes are the reply itself.
pub(crate) fn reply_strict_text(data: &[u8]) {
    converse(Target::StrictText, &[String::from_utf8_lossy(data).into()]);
}

pub(crate) fn reply_terminal(data: &[u8]) {
    converse_json(Target::Terminal, data);
}
