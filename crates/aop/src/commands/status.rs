//! `aop status`: where every feature stands, and what waits for a human.

use super::runners;
use crate::cli::Global;
use crate::output::live::Painter;
use crate::output::style::{bold, clean, cyan, dim, green, red, yellow};
use crate::output::table::{cut, fitting};
use crate::output::when::relative;
use crate::output::wrap::wrapped;
use crate::output::{CommandResult, INTERRUPTED, Reply, Screen, is_heard, print_json, reader_gone};
use crate::project::{Project, Session};
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
use aop_kernel::tools::Tool;
use aop_kernel::{Envelope, Refusal};
use aop_supervisor::AtWork;
use serde_json::{Value, json};
use std::time::Duration;

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
        return watch(&session, screen, args.all);
    }
    let (features, work) = look(&session, &json!({"all": args.all}))?;
    let mut text = with_questions(&session, &features, work.anybody)?;
    if let Some(line) = runners::line(&work) {
        text.push_str(&format!("\n\n{line}"));
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

/// Shows the features again after every commit until it is interrupted or nobody reads it any more.
fn watch(session: &Session, screen: &Screen, all: bool) -> CommandResult {
    let mut interrupts = session.notice_interrupts()?;
    let mut changes = session.store().changes();
    let mut painter = screen.is_text().then(|| Painter::start(false));
    loop {
        // Marked as seen before reading, so that a commit in between wakes the next wait.
        changes.borrow_and_update();
        let (features, work) = look(session, &json!({"all": all}))?;
        let at_work = work.anybody;
        match &mut painter {
            Some(painter) => {
                let (columns, rows) = painter.size();
                let text = wrapped(&with_questions(session, &features, at_work)?, columns.saturating_sub(1));
                let lines = text.lines().take(rows.saturating_sub(4)).map(str::to_owned);
                let lines: Vec<String> = lines.chain([String::new(), dim("Ctrl-C leaves")]).collect();
                painter.paint(&[], &lines);
            }
            None => print_json(&json!({"features": features, "at_work": at_work}).to_string()),
        }
        if !is_heard() {
            return Ok(Reply::printed());
        }
        // Times grow old without a commit; a person sees them, a program reads the clock.
        let patience = Duration::from_secs(if painter.is_some() { 5 } else { 3600 });
        let waited = session.wait_patiently(&mut interrupts, async {
            tokio::select! {
                // Either way the features are looked at again.
                _ = tokio::time::timeout(patience, changes.changed()) => true,
                () = reader_gone() => false,
            }
        });
        match waited {
            None => return Ok(Reply::printed().exit(INTERRUPTED)),
            Some(false) => return Ok(Reply::printed()),
            Some(true) => {}
        }
    }
}

/// The overview, with the questions of `aop ask` whose features are not listed.
fn with_questions(session: &Session, features: &[Value], at_work: bool) -> Result<String, Refusal> {
    let mut text = overview(features, at_work);
    if !at_work && features.iter().any(is_in_work) {
        text.push_str(&format!("\n\nNo run is at work: {} goes on.", bold("`aop run`")));
    }
    // Their number alone: there may be very many of them.
    let inbox = session.wait(session.store().inbox(0, 0))?;
    let listed: u64 = features.iter().filter_map(|feature| feature["open_question_count"].as_u64()).sum();
    let what = match ((inbox.total as u64).saturating_sub(listed), inbox.more) {
        (0, false) => return Ok(text),
        (1, false) => "1 question waits".to_owned(),
        (count, false) => format!("{count} questions wait"),
        // They are counted up to a limit, whosever they are.
        (0, true) => "More questions wait".to_owned(),
        (count, true) => format!("More than {count} questions wait"),
    };
    text.push_str(&format!("\n\n{what} for an answer: {}", bold("`aop answer`")));
    Ok(text)
}

/// Whether a run has something to do for it.
fn is_in_work(feature: &Value) -> bool {
    feature["adhoc"] != true && feature["status"].as_str().is_some_and(has_worker)
}

/// Whether a worker has a feature in this phase.
pub(super) fn has_worker(status: &str) -> bool {
    Status::parse(status).and_then(Status::worker).is_some()
}

/// Features as a table, and the commands that answer what they wait for.
pub(crate) fn overview(features: &[Value], at_work: bool) -> String {
    if features.is_empty() {
        return format!(
            "No features yet. Write what you want into a file, then:\n  {}  {}",
            bold("aop run SPEC.md"),
            dim("agents build it and ask you")
        );
    }
    let field = |feature: &Value, key: &str| feature[key].as_str().map(clean).unwrap_or_default();
    let rows: Vec<Vec<String>> = features
        .iter()
        .map(|feature| {
            let waits = feature["open_question_id"].as_str().map(yellow);
            let why = waits.unwrap_or_else(|| match is_stuck(feature) {
                true => dim("see below"),
                false => dim(&cut(&field(feature, "status_reason"), 80)),
            });
            let at = |key: &str| {
                feature[key].as_str().and_then(Timestamp::parse).map(relative).unwrap_or_default()
            };
            // A record of an earlier version says since when it waits, or only when it last changed.
            let known = ["status_since", "awaiting_since"].into_iter().find(|key| feature[*key].is_string());
            let since = at(known.unwrap_or("updated_at"));
            let title = cut(&field(feature, "title"), 40);
            vec![
                bold(&field(feature, "feature_id")),
                coloured(&field(feature, "status")),
                dim(&since),
                title,
                why,
            ]
        })
        .collect();
    let mut text = fitting(&["FEATURE", "STATUS", "SINCE", "TITLE", "WAITS FOR"], &rows, Some(3));
    let waiting = features.iter().filter(|feature| feature["open_question_id"].is_string()).count();
    if waiting > 0 {
        let what =
            if waiting == 1 { "1 feature waits".to_owned() } else { format!("{waiting} features wait") };
        text.push_str(&format!("\n\n{} for an answer: {}", what, bold("`aop answer`")));
    }
    for feature in features.iter().filter(|feature| is_stuck(feature)) {
        let reason = field(feature, "status_reason");
        let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        let (id, status) = (field(feature, "feature_id"), coloured(&field(feature, "status")));
        text.push_str(&format!("\n\n{} is {status}: {reason}", bold(&id)));
        text.extend(way_on(feature, at_work).map(|way| format!("\n  {way}")));
    }
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
        return Some(format!("{or}ask anew: {}", bold("`aop ask`")));
    }
    let run = if at_work { String::new() } else { format!(", then {}", bold("`aop run`")) };
    let retry = bold(&format!("`aop retry --feature-id {}`", clean(id)));
    Some(match reason {
        // Asking again is the other way. A packet lets nothing begin without its answer, so a retry asks for that anew.
        reason if reason.contains("`aop reopen") => {
            format!("or go on without an answer (what a packet asks is asked anew): {retry}{run}")
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
            told.contains("without an answer") && told.contains("what a packet asks is asked anew"),
            "{told}"
        );
        assert!(way_on("the disk is full").starts_with("go on with"));
    }

    #[test]
    fn nobody_is_told_that_a_run_works_on_a_lone_question() {
        let reason = "question q expired without an answer; ask it again: `aop reopen --feature-id ask-1`";
        let lone =
            json!({"feature_id": "ask-1", "status": "blocked", "status_reason": reason, "adhoc": true});
        assert_eq!(super::way_on(&lone, false).unwrap(), "or ask anew: `aop ask`");
    }
}
