//! `aop replay`: the state as the log alone tells it, up to any point, and what changed between two points.

use crate::cli::Global;
use crate::number::at_least;
use crate::output::style::{bold, clean, dim, green, red};
use crate::output::table::{cut, fitting};
use crate::output::{CommandResult, Reply, Screen};
use crate::project::{Project, Session};
use aop_kernel::feature::Feature;
use aop_kernel::ids::FeatureId;
use aop_kernel::replay::Replay;
use aop_kernel::status::Held;
use aop_kernel::tools::{Tool, digest_of};
use aop_kernel::{Envelope, Refusal};
use aop_store::EventPage;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Rebuild the state from the log, up to any point
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop replay                        what the log says, held against the store
  aop replay --to 120               the state after event 120
  aop replay --diff 120             what changed after event 120
  aop replay --diff 120 --to 140 --feature-id checkout")]
pub(crate) struct ReplayArgs {
    /// Stop after this event (default: the last one)
    #[arg(long, value_name = "SEQ", value_parser = at_least::<u64>(0))]
    to: Option<u64>,
    /// Only this feature
    #[arg(long)]
    feature_id: Option<String>,
    /// Show what changed after this event instead of the whole state
    #[arg(long, value_name = "SEQ", value_parser = at_least::<u64>(0))]
    diff: Option<u64>,
}

/// Events read at once; the state is kept, the events are not.
const CHUNK: usize = 1_000;

/// Replays, and compares with the store when it is the whole log.
pub(crate) fn run(global: &Global, screen: &Screen, args: &ReplayArgs) -> CommandResult {
    let feature = args.feature_id.as_deref().map(FeatureId::parse).transpose()?;
    let session = Project::find(global)?.open()?;
    let feature = feature.or_else(|| session.own_feature());
    if let Some(id) = &feature {
        session.call(Tool::FeatureGet, &json!({"feature_id": id}))?;
    }
    if let (Some(from), Some(to)) = (args.diff, args.to)
        && from > to
    {
        let message = format!("--diff {from} lies after --to {to}");
        return Err(Refusal::invalid_argument(message).hint("give the earlier event to --diff"));
    }
    for (option, seq) in [("--diff", args.diff), ("--to", args.to)] {
        not_ahead(&session, option, seq)?;
    }
    let mut replay = Replay::default();
    let before = match args.diff {
        Some(from) => {
            advance(&session, &mut replay, Some(from), feature.as_ref())?;
            Some(State::of(&replay))
        }
        None => None,
    };
    advance(&session, &mut replay, args.to, feature.as_ref())?;
    let state = State::of(&replay);
    match before {
        Some(before) => Ok(difference(&before, &state)),
        None => whole(&session, screen, &state, args.to.is_none() && feature.is_none()),
    }
}

/// Refuses an event that has not happened yet.
pub(super) fn not_ahead(session: &Session, option: &str, seq: Option<u64>) -> Result<(), Refusal> {
    let Some(seq) = seq else { return Ok(()) };
    let (_, last) = session.wait(session.store().changed_since(seq))?;
    if seq <= last {
        return Ok(());
    }
    Err(Refusal::invalid_argument(format!("{option} {seq} is past the last event ({last})"))
        .hint(format!("give {option} a number up to {last}, or leave it out"))
        .fact("last_seq", last))
}

/// Applies events up to and including `to`.
fn advance(
    session: &Session,
    replay: &mut Replay,
    to: Option<u64>,
    feature: Option<&FeatureId>,
) -> Result<(), Refusal> {
    loop {
        let page = EventPage { after: replay.seq, feature: feature.cloned(), limit: CHUNK };
        let chunk = session.wait(session.store().events(page))?;
        let is_last = chunk.len() < CHUNK;
        for recorded in &chunk {
            if to.is_some_and(|to| recorded.seq > to) {
                return Ok(());
            }
            replay.apply(recorded);
        }
        if is_last {
            return Ok(());
        }
    }
}

/// The digest of the state that a replay has come to: what `aop replay` prints.
pub(crate) fn digest(replay: &Replay) -> String {
    State::of(replay).data()["digest"].as_str().unwrap_or_default().to_owned()
}

/// A state as records, by id.
struct State {
    seq: u64,
    features: BTreeMap<String, Value>,
    questions: BTreeMap<String, Value>,
}

impl State {
    fn of(replay: &Replay) -> Self {
        let snapshots = || replay.features.values();
        let record = |feature: &Feature| {
            let mut record = json!(feature.record(Held::No));
            // Earlier versions did not say it: the same log has the digest that their exports carry.
            record.as_object_mut().and_then(|record| record.remove("status_since"));
            record
        };
        let features = snapshots()
            .filter_map(|snapshot| snapshot.feature.as_ref())
            .map(|feature| (feature.id.to_string(), record(feature)))
            .collect();
        let questions = snapshots()
            .flat_map(|snapshot| &snapshot.questions)
            .map(|question| (question.id.to_string(), json!(question)))
            .collect();
        State { seq: replay.seq, features, questions }
    }

    fn data(&self) -> Value {
        let values = |map: &BTreeMap<String, Value>| map.values().cloned().collect::<Vec<_>>();
        let mut data = json!({"seq": self.seq, "features": values(&self.features), "questions": values(&self.questions)});
        // The same log gives the same digest, on any machine and any day.
        data["digest"] = json!(digest_of(&data));
        data
    }
}

fn whole(session: &Session, screen: &Screen, state: &State, is_everything: bool) -> CommandResult {
    let mut data = state.data();
    let findings = if is_everything { session.wait(session.store().verify())? } else { Vec::new() };
    data["matches_store"] = if is_everything { json!(findings.is_empty()) } else { Value::Null };
    let exit = u8::from(!findings.is_empty());
    if !screen.is_text() {
        return Ok(Reply::for_programs(Envelope::success(&data)).exit(exit));
    }
    let mut text = format!("{} {}\n", dim("state after event"), bold(&state.seq.to_string()));
    text.push_str(&table(state));
    text.push_str(&format!("\n\n{} {}\n", dim("digest"), data["digest"].as_str().unwrap_or_default()));
    if is_everything {
        text.push_str(&match findings.as_slice() {
            [] => green("This matches the store."),
            _ => format!("{} {}", red("The store differs:"), clean(&findings.join("; "))),
        });
    }
    Ok(Reply::ok(Envelope::success(&data), text).exit(exit))
}

/// The features, each with what it has asked. All questions are looked at once, not once for each feature.
fn table(state: &State) -> String {
    let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
    for question in state.questions.values() {
        *asked.entry(question["feature_id"].as_str().unwrap_or_default()).or_default() += 1;
    }
    let row = |(id, feature): (&String, &Value)| {
        feature_row(id, feature, asked.get(id.as_str()).copied().unwrap_or_default())
    };
    let rows: Vec<Vec<String>> = state.features.iter().map(row).collect();
    if rows.is_empty() {
        return "No feature yet.".to_owned();
    }
    fitting(&["FEATURE", "STATUS", "OPEN", "ASKED", "TITLE"], &rows, None)
}

fn feature_row(id: &str, feature: &Value, asked: usize) -> Vec<String> {
    vec![
        bold(id),
        super::status::coloured(feature["status"].as_str().unwrap_or_default()),
        feature["open_question_count"].to_string(),
        asked.to_string(),
        cut(&clean(feature["title"].as_str().unwrap_or_default()), 50),
    ]
}

fn difference(before: &State, after: &State) -> Reply {
    let features = changed(&before.features, &after.features);
    let questions = changed(&before.questions, &after.questions);
    let lines = features.iter().map(|change| line("feature", "feature_id", change));
    let lines: Vec<String> =
        lines.chain(questions.iter().map(|change| line("question", "question_id", change))).collect();
    let title = format!("{} {} → {}", dim("events"), before.seq, after.seq);
    let text = if lines.is_empty() {
        format!("{title}\nNothing changed.")
    } else {
        format!("{title}\n{}", lines.join("\n"))
    };
    let data = json!({"from": before.seq, "to": after.seq, "features": features, "questions": questions});
    Reply::ok(Envelope::success(&data), text)
}

/// What is new or different, with both sides. Nothing ever leaves a log.
fn changed(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Vec<Value> {
    after
        .iter()
        .filter(|(id, value)| before.get(*id) != Some(value))
        .map(|(id, value)| json!({"before": before.get(id), "after": value}))
        .collect()
}

fn line(what: &str, id: &str, change: &Value) -> String {
    let status = |side: &str| change[side]["status"].as_str().map(str::to_owned);
    let was = status("before").unwrap_or_else(|| "new".to_owned());
    let is = status("after").unwrap_or_default();
    let moved = if was == is { format!("{is}, other fields changed") } else { format!("{was} → {is}") };
    format!("{} {} {moved}", dim(what), bold(change["after"][id].as_str().unwrap_or_default()))
}
