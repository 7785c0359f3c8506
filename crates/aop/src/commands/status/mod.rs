//! `aop status`: where every feature stands, and what waits for a human.

mod watch;

use super::runners;
use crate::cli::Global;
use crate::output::style::{bold, clean, cyan, dim, green, red, yellow};
use crate::output::table::{cut, fitting};
use crate::output::when::relative;
use crate::output::{CommandResult, Reply, Screen};
use crate::project::{Project, Session};
use aop_kernel::question::{Question, QuestionStatus};
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
use aop_kernel::tools::{QuestionFilter, Tool};
use aop_kernel::{Envelope, Refusal};
use aop_store::{Inbox, QuestionPage, Store};
use aop_supervisor::AtWork;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Show where every feature stands and what waits for a human
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  aop status\n  aop status --watch\n  aop status --json | jq -r '.data.features[] | .feature_id + \" \" + .status'"
)]
pub(crate) struct StatusArgs {
    /// Also features that `aop ask` made for a single question
    #[arg(long)]
    all: bool,
    /// Go on and show every change: a table on a terminal, one JSON object a line when piped
    #[arg(long)]
    watch: bool,
}

/// Lists the features.
pub(crate) fn run(global: &Global, screen: &Screen, args: &StatusArgs) -> CommandResult {
    let session = Project::find(global)?.open()?;
    if args.watch {
        return watch::run(&session, screen, args.all);
    }
    let (features, work) = look(&session, &json!({"all": args.all}))?;
    let prompts = Prompts::shown_on(screen, &session, &features);
    let mut text = overview(&features, &prompts, work.anybody);
    let notes = notes(&session, &features, work.anybody)?;
    for note in notes.into_iter().chain(runners::line(&work)) {
        text.push_str(&format!("\n\n{note}"));
    }
    let data = json!({"features": features, "at_work": work.anybody, "runners": runners::shown(&work)});
    Ok(Reply::ok(Envelope::success(&data), text))
}

/// The features that are meant, and who works on the project.
pub(super) fn look(session: &Session, which: &Value) -> Result<(Vec<Value>, AtWork), Refusal> {
    let mut listed = session.call(Tool::FeatureList, which)?.data();
    let work = runners::look(session)?;
    let features = listed["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    Ok((features, work))
}

/// What there is to know besides the features: that nobody works on them, and the questions of `aop ask` whose features
/// are not listed.
fn notes(session: &Session, features: &[Value], at_work: bool) -> Result<Vec<String>, Refusal> {
    let mut notes = Vec::new();
    if !at_work && features.iter().any(is_in_work) {
        notes.push(format!("No run is active; start one with {}.", bold("`aop run`")));
    }
    // Their number alone: there may be very many of them.
    let inbox = session.wait(session.store().inbox(0, 0))?;
    let listed: u64 = features.iter().filter_map(|feature| feature["open_question_count"].as_u64()).sum();
    let what = match ((inbox.total as u64).saturating_sub(listed), inbox.more) {
        (0, false) => return Ok(notes),
        (1, false) => "1 question waits".to_owned(),
        (count, false) => format!("{count} questions wait"),
        // They are counted up to a limit, whosever they are.
        (0, true) => "More questions wait".to_owned(),
        (count, true) => format!("More than {count} questions wait"),
    };
    notes.push(format!("{what} for an answer: {}", bold("`aop answer`")));
    Ok(notes)
}

/// Whether a run has something to do for it, or will have once somebody has answered.
fn is_in_work(feature: &Value) -> bool {
    let status = feature["resume_status"].as_str().or(feature["status"].as_str());
    feature["adhoc"] != true && status.is_some_and(has_worker)
}

/// Whether a worker has a feature in this phase.
pub(super) fn has_worker(status: &str) -> bool {
    Status::parse(status).and_then(Status::worker).is_some()
}

const HEADER: &[&str] = &["FEATURE", "STATUS", "SINCE", "TITLE", "WAITS FOR"];

/// The column that gives way first.
const TITLE: usize = 3;

/// Features as a table, and the commands that answer what they wait for.
pub(crate) fn overview(features: &[Value], prompts: &Prompts, at_work: bool) -> String {
    if features.is_empty() {
        return none_yet();
    }
    let rows: Vec<Vec<String>> =
        features.iter().map(|feature| row(feature, prompts, told_below(feature))).collect();
    let mut text = fitting(HEADER, &rows, Some(TITLE));
    let stuck = features.iter().filter(|feature| is_stuck(feature));
    for part in waits(features).into_iter().chain(stuck.map(|feature| stands_still(feature, at_work))) {
        text.push_str(&format!("\n\n{part}"));
    }
    text
}

fn none_yet() -> String {
    format!(
        "No features yet. Write what you want into a file, then:\n  {}  {}",
        bold("aop run SPEC.md"),
        dim("agents build it and ask you")
    )
}

/// A text of a feature, as a terminal may show it.
fn field(feature: &Value, key: &str) -> String {
    feature[key].as_str().map(clean).unwrap_or_default()
}

/// What the open questions ask, by their ids.
#[derive(Default)]
pub(crate) struct Prompts(BTreeMap<String, String>);

impl Prompts {
    /// Those that a person is shown; a program has the ids.
    pub(super) fn shown_on(screen: &Screen, session: &Session, features: &[Value]) -> Self {
        if screen.is_text() {
            session.wait(Prompts::of(session.store(), features))
        } else {
            Prompts::default()
        }
    }

    /// Those of the features that wait, the oldest questions first, and no more than are counted. What cannot be read is
    /// shown by its id.
    pub(crate) async fn of(store: &dyn Store, features: &[Value]) -> Self {
        if !features.iter().any(has_open_question) {
            return Prompts::default();
        }
        let filter = QuestionFilter::Only(QuestionStatus::Open);
        let page = QuestionPage { feature: None, filter, after: None, limit: Inbox::COUNTED };
        let questions = store.questions(page).await.unwrap_or_default();
        let prompt = |question: Question| (question.id.to_string(), question.asked.prompt.clone());
        Prompts(questions.into_iter().map(prompt).collect())
    }
}

/// How much of a question stands in the table; the whole of it is put by `aop answer`.
const PROMPT: usize = 66;

/// What a row says of a reason that stands below the table. What failed waits for nothing.
fn told_below(feature: &Value) -> &'static str {
    if feature["status"] == "failed" { "" } else { "see below" }
}

/// The cells of a feature, with where it is said why it stands still.
fn row(feature: &Value, prompts: &Prompts, reason: &str) -> Vec<String> {
    let asked = |id: &str| {
        let prompt = prompts.0.get(id).map_or(id, String::as_str);
        yellow(&cut(&clean(prompt), PROMPT))
    };
    let why = match (feature["open_question_id"].as_str(), feature["status"].as_str()) {
        (Some(id), _) => asked(id),
        (None, _) if is_stuck(feature) => dim(reason),
        // Of other statuses the reason says how they came about, and nothing that is waited for.
        (None, Some("ready_to_merge")) => dim(&cut(&field(feature, "status_reason"), 120)),
        (None, _) => String::new(),
    };
    let since = feature["status_since"].as_str().and_then(Timestamp::parse).map(relative).unwrap_or_default();
    let title = cut(&field(feature, "title"), 40);
    vec![bold(&field(feature, "feature_id")), coloured(&field(feature, "status")), dim(&since), title, why]
}

/// How many features wait for an answer, and the command that gives it.
fn waits(features: &[Value]) -> Option<String> {
    let what = match features.iter().filter(|feature| has_open_question(feature)).count() {
        0 => return None,
        1 => "1 feature waits".to_owned(),
        waiting => format!("{waiting} features wait"),
    };
    Some(format!("{what} for an answer: {}", bold("`aop answer`")))
}

fn has_open_question(feature: &Value) -> bool {
    feature["open_question_id"].is_string()
}

/// Why a feature stands still, and what brings it on.
fn stands_still(feature: &Value, at_work: bool) -> String {
    let reason = field(feature, "status_reason");
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let (id, status) = (field(feature, "feature_id"), coloured(&field(feature, "status")));
    let mut text = format!("{} is {status}: {reason}", bold(&id));
    text.extend(way_on(feature, at_work).map(|way| format!("\n  {way}")));
    text
}

/// Whether a feature stands still for a reason that somebody has to read to its end.
fn is_stuck(feature: &Value) -> bool {
    let told = feature["status_reason"].as_str().is_some_and(|reason| !reason.is_empty());
    told && matches!(feature["status"].as_str(), Some("blocked" | "failed"))
}

/// What brings a blocked feature back to work.
pub(super) fn way_on(feature: &Value, at_work: bool) -> Option<String> {
    let id = feature["feature_id"].as_str().filter(|_| feature["status"] == "blocked")?;
    let reason = feature["status_reason"].as_str().unwrap_or_default();
    if feature["adhoc"] == true {
        let or = if reason.contains("`aop reopen") { "or " } else { "" };
        return Some(format!("{or}ask again: {}", bold("`aop ask`")));
    }
    let run = if at_work { String::new() } else { format!(", then {}", bold("`aop run`")) };
    let retry = format!("`aop retry --feature-id {}`", clean(id));
    if reason.contains(&retry) {
        // The reason ends with it already, and said twice it would look like two things to do.
        return (!at_work).then(|| format!("then: {}", bold("`aop run`")));
    }
    let retry = bold(&retry);
    Some(match reason {
        // Asking again is the other way. A packet lets nothing begin without its answer, so a retry asks for that again.
        reason if reason.contains("`aop reopen") => {
            format!("or go on without an answer (what a packet asks is asked again): {retry}{run}")
        }
        _ => format!("go on with: {retry}{run}"),
    })
}

/// A status in its colour.
pub(crate) fn coloured(status: &str) -> String {
    match status {
        "awaiting_input" => yellow(status),
        "blocked" | "failed" => red(status),
        "merged" | "ready_to_merge" => green(status),
        _ => cyan(status),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn whoever_may_retry_a_question_that_expired_is_told_what_comes_of_it() {
        let way_on = |reason: &str| {
            let feature = json!({"feature_id": "shop", "status": "blocked", "status_reason": reason});
            super::way_on(&feature, true).unwrap()
        };
        let told =
            way_on("question q expired without an answer; ask it again: `aop reopen --feature-id shop`");
        assert!(
            told.contains("without an answer") && told.contains("what a packet asks is asked again"),
            "{told}"
        );
        assert!(way_on("the disk is full").starts_with("go on with"));
    }

    #[test]
    fn a_way_on_that_the_reason_names_is_not_told_twice() {
        let reason = "it failed (see `aop log --feature-id shop`, then `aop retry --feature-id shop`)";
        let feature = json!({"feature_id": "shop", "status": "blocked", "status_reason": reason});
        assert_eq!(super::way_on(&feature, true), None);
        assert_eq!(super::way_on(&feature, false).unwrap(), "then: `aop run`");
    }

    #[test]
    fn a_feature_that_waits_shows_the_question_and_one_that_works_nothing_to_wait_for() {
        let prompts = super::Prompts([("q".to_owned(), "Which\none?".to_owned())].into());
        let why = |status: &str, question: Option<&str>| {
            let feature = json!({"feature_id": "shop", "status": status, "status_reason": "sent back by retry",
                "open_question_id": question});
            super::row(&feature, &prompts, super::told_below(&feature)).pop().unwrap()
        };
        assert_eq!(why("awaiting_input", Some("q")), "Which one?");
        assert_eq!(why("awaiting_input", Some("q_unread")), "q_unread");
        assert_eq!(why("building", None), "");
        assert_eq!(why("blocked", None), "see below");
        assert_eq!(why("failed", None), "");
        assert_eq!(why("ready_to_merge", None), "sent back by retry");
    }

    #[test]
    fn nobody_is_told_that_a_run_works_on_a_one_off_question() {
        let reason = "question q expired without an answer; ask it again: `aop reopen --feature-id ask-1`";
        let lone =
            json!({"feature_id": "ask-1", "status": "blocked", "status_reason": reason, "adhoc": true});
        assert_eq!(super::way_on(&lone, false).unwrap(), "or ask again: `aop ask`");
    }
}
