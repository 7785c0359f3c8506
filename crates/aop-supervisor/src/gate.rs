//! Instruction packets: `.aop/features/<id>/packets/<phase>.json` may ask something before the phase begins. The gate
//! opens on an answer that is in the store and stands, unchanged, at the packet's `answer_path`, whether this run asked
//! or `aop packet ask` did: a file that somebody else put there opens nothing.

use crate::SURFACE;
use crate::place::Place;
use crate::room::{full, is_full};
use crate::runner::{Context, Stop};
use crate::shown;
use crate::turn::mode_for;
use aop_ask::gate::{Gate, GateState, Packet};
use aop_ask::{AnswerSpec, Answers, Violation};
use aop_kernel::feature::Feature;
use aop_kernel::hex::hexadecimal;
use aop_kernel::ids::QuestionId;
use aop_kernel::own::OwnOperation;
use aop_kernel::policy::{HumanInput, OnTimeout, Rules};
use aop_kernel::question::QuestionState;
use aop_kernel::role::{Caller, Role};
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
use aop_kernel::tools::{Tool, own_request};
use aop_kernel::{ErrorCode, Refusal};
use aop_store::{Expect, Shelf, Store, crash_point, read_file};
use aop_turn::Mode;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Opens the gate of the feature's phase, or asks. True when the phase may begin.
pub(crate) async fn open_gate(context: &Context, feature: &Feature) -> Result<bool, Stop> {
    let phase = feature.status.as_str();
    let folder = context.settings.dir().join("features").join(feature.id.as_str()).join("packets");
    if let Some(path) =
        of_no_phase(&folder).map_err(|error| unusable(feature, &folder, &error.to_string()))?
    {
        let cause = "no phase has this name, so that it would close no gate";
        let hint = format!(
            "call it planning.json, building.json or qa.json, then `aop retry --feature-id {}`",
            feature.id
        );
        return Err(unusable(feature, &path, cause).hint(hint).into());
    }
    let path = folder.join(format!("{phase}.json"));
    let bytes = match read_file(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(unusable(feature, &path, &error.to_string()).into()),
    };
    let packet = Packet::parse(&bytes).map_err(|violations| {
        unusable(feature, &path, &first_of(&violations)).fact("violations", violations)
    })?;
    let Some(gate) = packet.gate() else { return Ok(true) };
    let place = Place::resolve(&context.settings.root, &gate.answer_path)
        .map_err(|violation| unusable(feature, &path, &violation.message))?;
    // A file that cannot be read or written concerns this feature alone, not the run.
    let stuck = |refusal: Refusal| {
        let hint = format!("{}, then `aop retry --feature-id {}`", refusal.hint, feature.id);
        unusable(feature, &path, &refusal.message).hint(hint)
    };
    let other = || {
        let cause = format!("'{}' holds something that is not the answer in the store", gate.answer_path);
        in_the_way(&path, gate, feature, &cause)
    };
    if let Some(standing) = place.read().map_err(stuck)? {
        if opens(context, feature, gate, &standing).await? {
            return Ok(true);
        }
        let GateState::Invalid(violations) = packet.judge(Some(&standing)) else {
            return Err(other().into());
        };
        let cause = format!("'{}' is not a valid answer ({})", gate.answer_path, first_of(&violations));
        return Err(in_the_way(&path, gate, feature, &cause).fact("violations", violations).into());
    }
    let Some(given) = ask(context, feature, gate, &path).await? else { return Ok(false) };
    let record = answer_record(gate, &given.answer, given.at, &given.by)?;
    // First what the file will be, then the file: a crash in between leaves a gate that is closed and can be opened.
    let kept = keep_answer(context.store(), gate, &record, &given.question_id).await?;
    place.write_new(&record).map_err(stuck)?;
    crash_point("gate_written");
    let standing = place.read().map_err(stuck)?.unwrap_or_default();
    if !kept.settle(context.store(), &standing).await? {
        // Somebody else was first with another answer, and it may be a person's too.
        let opens = opens(context, feature, gate, &standing).await?;
        return if opens { Ok(true) } else { Err(other().into()) };
    }
    crash_point("gate_settled");
    context.store().forget(given.question_id).await?;
    Ok(true)
}

/// The first violation in one sentence. What is about the whole document has no place in it to name.
fn first_of(violations: &[Violation]) -> String {
    match violations.first() {
        Some(found) if found.path.is_empty() => found.message.clone(),
        Some(found) => format!("{}: {}", found.path, found.message),
        None => String::new(),
    }
}

/// A packet that somebody wrote for a phase that there is none of. A folder that is there and cannot be looked into may
/// hold any packet.
fn of_no_phase(folder: &Path) -> std::io::Result<Option<PathBuf>> {
    let is_of_none = |path: &PathBuf| {
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        let phase = path.file_stem().and_then(OsStr::to_str).and_then(Status::parse);
        // `planning.JSON` is read by nobody either.
        extension.eq_ignore_ascii_case("json")
            && (extension != "json" || phase.and_then(Status::worker).is_none())
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound && !folder.is_symlink() => return Ok(None),
        Err(error) => return Err(error),
    };
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    Ok(paths.into_iter().filter(is_of_none).min())
}

/// Whether what stands at its `answer_path` opens the gate. Its secrets were told with that; whoever wrote it may have been
/// killed before they were erased.
async fn opens(context: &Context, feature: &Feature, gate: &Gate, standing: &[u8]) -> Result<bool, Stop> {
    let opens = is_answer(context, feature, gate, standing).await?;
    if opens && gate.spec.has_secret() {
        forget_written(context.store(), gate, standing).await?;
    }
    Ok(opens)
}

/// Whether this is the record of an answer to the gate that is in the store: of those that came at the same moment, the one
/// that was written.
async fn is_answer(context: &Context, feature: &Feature, gate: &Gate, record: &[u8]) -> Result<bool, Stop> {
    let document = |key| context.store().document(Shelf::Results, key);
    let kept = match document(answer_key(gate)).await? {
        Some(kept) => kept,
        // Stores of earlier versions have it by feature and phase.
        None => document(format!("{}/gate/{}", feature.id, feature.status)).await?.unwrap_or_default(),
    };
    let (asked, written) = (digest(&gate.spec.to_json()), hex(record));
    Ok(unfold(kept).iter().any(|kept| kept["asked"] == asked && kept["sha256"] == written))
}

/// Keeps in the store what the record of the answer to a gate is. What stands at its `answer_path` is held against that:
/// not against the answer, which is forgotten when it was secret, nor against an earlier one.
pub async fn keep_answer(
    store: &dyn Store,
    gate: &Gate,
    record: &[u8],
    question_id: &QuestionId,
) -> Result<KeptAnswer, Refusal> {
    let asked = digest(&gate.spec.to_json());
    let answer = json!({"asked": asked, "sha256": hex(record), "question_id": question_id});
    let kept = KeptAnswer { key: answer_key(gate), answer };
    kept.change(store, |answers| answers.push(kept.answer.clone())).await?;
    Ok(kept)
}

/// Has the store forget the secrets of the answer whose record stands there: whoever wrote it may have been killed before.
pub async fn forget_written(store: &dyn Store, gate: &Gate, standing: &[u8]) -> Result<(), Refusal> {
    let kept = store.document(Shelf::Results, answer_key(gate)).await?;
    for kept in kept.map_or_else(Vec::new, unfold) {
        if kept["sha256"] == hex(standing) {
            store.forget(QuestionId::parse(kept["question_id"].as_str().unwrap_or_default())?).await?;
        }
    }
    Ok(())
}

/// An answer to a gate whose record is to be written.
#[derive(Debug)]
pub struct KeptAnswer {
    key: String,
    answer: Value,
}

/// Where an answer holds those that were kept before it, oldest first.
const BEFORE: &str = "before";

impl KeptAnswer {
    /// Keeps it, or takes it back, by what stands where its record belongs: whether that is it.
    pub async fn settle(self, store: &dyn Store, standing: &[u8]) -> Result<bool, Refusal> {
        let is_written = self.answer["sha256"] == hex(standing);
        if is_written {
            self.written(store).await?
        } else {
            self.put_back(store).await?
        }
        Ok(is_written)
    }

    /// Its record stands there: none of the others will.
    async fn written(self, store: &dyn Store) -> Result<(), Refusal> {
        self.change(store, |answers| *answers = vec![self.answer.clone()]).await
    }

    /// Its record could not be written because another stood there first: of the others the last one counts again.
    async fn put_back(self, store: &dyn Store) -> Result<(), Refusal> {
        self.change(store, |_| ()).await
    }

    /// Takes it out of what is kept, lets `change` have the rest, oldest first, and keeps what is left.
    async fn change(&self, store: &dyn Store, change: impl Fn(&mut Vec<Value>)) -> Result<(), Refusal> {
        loop {
            let now = store.document(Shelf::Results, self.key.clone()).await?;
            let mut answers = now.clone().map_or_else(Vec::new, unfold);
            answers.retain(|answer| *answer != self.answer);
            change(&mut answers);
            let expected = now.map_or(Expect::Absent, Expect::Value);
            if store.place(Shelf::Results, self.key.clone(), fold(answers), expected).await? {
                return Ok(());
            }
        }
    }
}

/// The last answer, which counts, with those before it.
fn fold(mut answers: Vec<Value>) -> Option<Value> {
    let mut last = answers.pop()?;
    if !answers.is_empty() {
        last[BEFORE] = Value::Array(answers);
    }
    Some(last)
}

/// All answers that are kept, oldest first.
fn unfold(mut last: Value) -> Vec<Value> {
    let before = last.as_object_mut().and_then(|last| last.remove(BEFORE));
    let mut answers = before.and_then(|before| before.as_array().cloned()).unwrap_or_default();
    answers.push(last);
    answers
}

/// One file, one answer, whichever features have a gate there. No feature is called like that.
fn answer_key(gate: &Gate) -> String {
    format!("_gate/{}", hex(gate.answer_path.as_bytes()))
}

/// What somebody answered.
struct Given {
    question_id: QuestionId,
    answer: Value,
    at: Timestamp,
    by: String,
}

/// Asks, or finds what was asked; `None` while it is open. A gate is asked again when the feature comes back to it and
/// nobody answered, or when the answer is gone: it was secret, and the file that it went to is no longer there.
async fn ask(
    context: &Context,
    feature: &Feature,
    gate: &Gate,
    packet: &Path,
) -> Result<Option<Given>, Stop> {
    let spec = gate.spec.to_json();
    let asked = digest(&json!([spec, gate.answer_path]));
    let rules = Arc::new(rules_of_asking(&context.service.rules, mode_for(context, feature).await?));
    // The first round that was not asked yet is new, and open.
    let mut round = 0_u64;
    loop {
        let input = json!({
            "feature_id": feature.id,
            "role": Role::Orchestrator,
            // Not this run's own name: another run has to find the same question.
            "session_id": "orchestrator",
            "question_type": "clarification",
            "prompt": format!("Before {} begins: {}", feature.status, gate.spec.topic()),
            "spec": spec,
        });
        let id = format!("{}:{}:{}:{round}", feature.id, feature.status, &asked[..16]);
        let id = OwnOperation::Gate.id(id)?;
        let caller = Caller::new(Role::Orchestrator);
        let request = own_request(Tool::QuestionCreate, &caller, &input, id, SURFACE, &rules)?;
        let submitted = context.store().submit(request, Arc::clone(&rules)).await;
        let envelope = submitted.map_err(|error| unasked(context, feature, packet, error.into()))?.envelope;
        let id = QuestionId::parse(envelope.data()["question_id"].as_str().unwrap_or_default())?;
        let question = context.store().question(id).await?.ok_or(Stop::Stale)?;
        let question = context.service.last_asked(question).await?;
        match &question.state {
            QuestionState::Open => return Ok(None),
            QuestionState::Answered { at, by, .. } => {
                let secret = context.store().reveal(question.id.clone()).await?;
                if let Some(answer) = question.whole_answer(secret.as_ref()) {
                    let (at, by) = (*at, by.clone());
                    return Ok(Some(Given { question_id: question.id, answer, at, by }));
                }
            }
            QuestionState::Expired { .. } | QuestionState::Withdrawn { .. } => {}
        }
        round += 1;
    }
}

/// Behind a gate stands no engine that could decide when nobody answers: whatever the policy says, the feature stops. In
/// auto mode nothing is asked; what was asked before that is found all the same.
fn rules_of_asking(rules: &Rules, mode: Mode) -> Rules {
    let policy = &rules.human_input;
    let on_timeout = if policy.strict { policy.on_timeout } else { OnTimeout::BlockFeature };
    let enabled = mode == Mode::Interactive;
    Rules { human_input: HumanInput { enabled, strict: true, on_timeout, ..policy.clone() }, ..rules.clone() }
}

/// What stops the feature when nobody can be asked, with the ways to go on.
fn unasked(context: &Context, feature: &Feature, packet: &Path, refusal: Refusal) -> Refusal {
    let (id, packet) = (&feature.id, packet.strip_prefix(&context.settings.root).unwrap_or(packet));
    let (packet, file) = (shown::name(packet), shown::word(packet));
    if is_full(&refusal) {
        let message = format!("{packet} wants an answer first: {}", refusal.message);
        return full(Refusal { message, ..refusal }, id);
    }
    if refusal.code != ErrorCode::UnsupportedOperation {
        return refusal;
    }
    let (cause, way) = if context.service.rules.human_input.enabled {
        let ask = format!("ask with `aop packet ask {file}`, or `aop features mode {id} interactive`");
        ("in auto mode nobody is asked".to_owned(), ask)
    } else {
        (refusal.message, "set it to true in aop.yaml".to_owned())
    };
    Refusal::new(refusal.code, format!("{packet} wants an answer first: {cause}"))
        .hint(format!("{way}, then `aop retry --feature-id {id}`"))
}

/// The record of an answer to a gate, as it is written to its `answer_path`.
pub fn answer_record(gate: &Gate, answer: &Value, at: Timestamp, by: &str) -> Result<Vec<u8>, Refusal> {
    let unfit = |violations: Vec<Violation>| {
        Refusal::new(ErrorCode::Internal, "the accepted answer does not make a valid record")
            .fact("violations", violations)
    };
    let answers = Answers::check(&gate.spec, answer).map_err(unfit)?;
    let record = AnswerSpec::new(&gate.spec, &answers, &at.to_string(), by).map_err(unfit)?;
    Ok(format!("{:#}\n", record.to_json()).into_bytes())
}

fn unusable(feature: &Feature, path: &Path, cause: &str) -> Refusal {
    Refusal::new(ErrorCode::InvalidDocument, format!("{}: {cause}", path.display())).hint(format!(
        "correct the packet (`aop packet check FILE` judges it), then `aop retry --feature-id {}`",
        feature.id
    ))
}

/// Something else stands where the answer belongs.
fn in_the_way(path: &Path, gate: &Gate, feature: &Feature, cause: &str) -> Refusal {
    unusable(feature, path, &format!("{cause}; it was left alone"))
        .hint(format!("move {} away, then `aop retry --feature-id {}`", gate.answer_path, feature.id))
}

fn digest(value: &Value) -> String {
    hex(value.to_string().as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    hexadecimal(Sha256::digest(bytes))
}

/// So that other modules name things the same way.
pub(crate) fn short_digest(text: &str) -> String {
    hex(text.as_bytes())[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aop_store::{MemoryStore, SystemClock};

    #[test]
    fn what_is_wrong_with_a_whole_document_is_told_without_a_place_and_without_a_secret() {
        let packet = json!({"answer_path": "a.json", "novel_ask": {"version": 1, "topic": "t", "questions": [
            {"id": "q", "header": "H", "question": "Q?", "kind": "free_text", "required": true, "secret": true}]}});
        let packet = Packet::parse(packet.to_string().as_bytes()).unwrap();
        for (standing, told) in [
            (&b"\"hunter2\""[..], "an answer record must be an object, but this is a text"),
            (b"{\"answers\": \"hunter2\"}", "/version: version is missing"),
        ] {
            let GateState::Invalid(violations) = packet.judge(Some(standing)) else { panic!("not invalid") };
            assert_eq!(first_of(&violations), told);
        }
    }

    #[tokio::test]
    async fn of_several_answers_at_one_path_the_one_that_was_written_stays_known() {
        let packet = json!({"intent": "i", "answer_path": "answers/a.json", "novel_ask": {"version": 1,
            "topic": "t", "questions": [{"id": "q", "header": "H", "question": "Q?", "kind": "free_text",
            "required": true}]}});
        let packet = Packet::parse(packet.to_string().as_bytes()).unwrap();
        let (gate, store) = (packet.gate().unwrap(), MemoryStore::new(Arc::new(SystemClock)));
        let id = QuestionId::from_ulid("01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap();
        let known = async || store.document(Shelf::Results, answer_key(gate)).await.unwrap();
        let keep = async |record: &[u8]| keep_answer(&store, gate, record, &id).await.unwrap();
        let counts = async || known().await.map(|kept| kept["sha256"].clone());
        // Whichever of four was written, and in whichever order the others learn that.
        for written in 0..4_u8 {
            for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                let mut others = Vec::new();
                for record in 0..4_u8 {
                    others.push(Some(keep(&[b'a' + record]).await));
                }
                let stays = others.remove(usize::from(written)).unwrap();
                for place in order {
                    others[place].take().unwrap().put_back(&store).await.unwrap();
                }
                assert_eq!(counts().await, Some(hex(&[b'a' + written]).into()), "{written} {order:?}");
                stays.put_back(&store).await.unwrap();
                assert_eq!(known().await, None);
            }
        }
        let (first, second) = (keep(b"first").await, keep(b"second").await);
        first.written(&store).await.unwrap();
        let third = keep(b"third").await;
        for late in [second, third] {
            late.put_back(&store).await.unwrap();
        }
        assert_eq!(
            known().await.map(unfold).map(|kept| kept.len()),
            Some(1),
            "what was written stands alone"
        );
        assert_eq!(counts().await, Some(hex(b"first").into()));
        store.place(Shelf::Results, answer_key(gate), None, Expect::Anything).await.unwrap();
        keep(b"same").await;
        keep(b"same").await.put_back(&store).await.unwrap();
        assert_eq!(known().await, None, "what was kept again after a crash is one answer");
    }
}
