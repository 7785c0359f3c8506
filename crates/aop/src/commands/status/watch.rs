//! `aop status --watch`: the features after every commit; those that follow each other closely are shown as one. What does
//! not fit on the terminal is counted, and what needs a person is shown before anything else.

use super::{
    HEADER, Prompts, TITLE, has_open_question, is_stuck, look, notes, row, stands_still, told_below, waits,
};
use crate::output::live::{AIRY, Painter, give_back};
use crate::output::style::dim;
use crate::output::table::{Listed, and_more, fit_into, within};
use crate::output::voice::Voice;
use crate::output::wrap::wrapped;
use crate::output::{CommandResult, INTERRUPTED, Reply, Screen, is_heard, print_json, reader_gone};
use crate::project::Session;
use crate::prompt;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::sync::watch::Receiver;

/// Commits that follow each other this closely are one picture.
const CLOSELY: Duration = Duration::from_millis(50);

/// Shows the features again after every commit until it is interrupted or nobody reads it any more.
pub(super) fn run(session: &Session, screen: &Screen, all: bool) -> CommandResult {
    let voice = Voice::start();
    let mut painter = None;
    let ended = watch(session, screen, all, &voice, &mut painter);
    // The painter leaves its last picture and gives the terminal back, unless it waits for one that nobody reads.
    if !session.say_last(&voice, move || painter.map_or((), Painter::leave)) {
        give_back();
    }
    ended
}

fn watch(
    session: &Session,
    screen: &Screen,
    all: bool,
    voice: &Voice,
    painter: &mut Option<Painter>,
) -> CommandResult {
    let mut interrupts = session.notice_interrupts()?;
    let mut quit = (screen.is_text() && prompt::possible()).then(Quit::listen);
    let keys = quit.is_some();
    let mut changes = session.store().changes();
    loop {
        // Marked as seen before reading, so that a commit in between wakes the next wait.
        changes.borrow_and_update();
        let (features, work) = look(session, &json!({"all": all}))?;
        let at_work = work.anybody;
        let shown = if screen.is_text() {
            let (notes, painter) = (notes(session, &features, at_work)?, painter.take());
            let prompts = session.wait(Prompts::of(session.store(), &features));
            voice.say(move || {
                Some(paint(painter, keys, &Picture { features: &features, prompts, at_work, notes }))
            })
        } else {
            let line = json!({"features": features, "at_work": at_work}).to_string();
            voice.say(move || {
                print_json(&line);
                None
            })
        };
        let Some(Ok(shown)) = session.wait_patiently(&mut interrupts, shown) else {
            return Ok(Reply::printed().exit(INTERRUPTED));
        };
        *painter = shown;
        if !is_heard() {
            return Ok(Reply::printed());
        }
        // Times grow old without a commit; a person sees them, a program reads the clock.
        let patience = Duration::from_secs(if screen.is_text() { 5 } else { 3600 });
        let waited = session.wait_patiently(&mut interrupts, async {
            tokio::select! {
                // Either way the features are looked at again.
                _ = tokio::time::timeout(patience, committed(&mut changes)) => Waited::Look,
                () = reader_gone() => Waited::Quit,
                waited = Quit::pressed(&mut quit) => waited,
            }
        });
        match waited {
            None | Some(Waited::Interrupted) => return Ok(Reply::printed().exit(INTERRUPTED)),
            Some(Waited::Quit) => return Ok(Reply::printed()),
            Some(Waited::Look) => {}
        }
    }
}

/// Waits for a commit, and for those that follow it closely: all features are read for a picture.
async fn committed(changes: &mut Receiver<u64>) {
    // A store that announces nothing any more is looked at all the same.
    let _ = changes.changed().await;
    tokio::time::sleep(CLOSELY).await;
}

/// What the wait for a commit ended with.
enum Waited {
    /// The features are looked at again.
    Look,
    /// Somebody has seen enough.
    Quit,
    Interrupted,
}

/// Keys, read on a thread of their own: Ctrl-C is one of them while the painter has the terminal, and would leave its mark
/// below the table otherwise.
struct Quit(mpsc::UnboundedReceiver<Waited>);

impl Quit {
    fn listen() -> Self {
        let (told, heard) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            while !told.is_closed() {
                let pressed = match event::poll(prompt::PULSE) {
                    Ok(false) => continue,
                    Ok(true) => event::read(),
                    Err(error) => Err(error),
                };
                // A terminal that is gone presses nothing more; its end is noticed elsewhere.
                let Ok(pressed) = pressed else { return };
                if let Some(waited) = meaning(&pressed) {
                    let _ = told.send(waited);
                }
            }
        });
        Quit(heard)
    }

    /// Waits for a key that ends it; for ever, where none is read.
    async fn pressed(quit: &mut Option<Quit>) -> Waited {
        match quit {
            Some(Quit(heard)) => match heard.recv().await {
                Some(waited) => waited,
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }
}

/// What an event of the terminal means.
fn meaning(pressed: &Event) -> Option<Waited> {
    match pressed {
        Event::Key(key) if key.kind == KeyEventKind::Press => match (key.code, key.modifiers) {
            (KeyCode::Char('c'), KeyModifiers::CONTROL) => Some(Waited::Interrupted),
            (KeyCode::Char('q' | 'Q'), _) => Some(Waited::Quit),
            _ => None,
        },
        Event::Resize(..) => Some(Waited::Look),
        Event::Key(_) | Event::Mouse(_) | Event::Paste(_) | Event::FocusGained | Event::FocusLost => None,
    }
}

/// What is shown.
struct Picture<'a> {
    features: &'a [Value],
    prompts: Prompts,
    at_work: bool,
    notes: Vec<String>,
}

/// Paints, and takes the terminal for that the first time.
fn paint(painter: Option<Painter>, keys: bool, picture: &Picture<'_>) -> Painter {
    let mut painter = painter.unwrap_or_else(|| Painter::start(keys));
    let leave = if keys { "q or Ctrl-C quits" } else { "Ctrl-C quits" };
    painter.paint(&[], &lines(picture, leave, painter.size()));
    painter
}

/// The lines for a terminal of this size, never more than it has beside the cursor's own. What waits is summed up below
/// the table, which gives way to that.
fn lines(picture: &Picture<'_>, leave: &str, (columns, rows): (usize, usize)) -> Vec<String> {
    let Picture { features, notes, .. } = picture;
    // Nothing is painted in the last column.
    let columns = columns.saturating_sub(1);
    let left = rows.saturating_sub(1);
    let gap = usize::from(left >= AIRY);
    let notes: Vec<String> =
        waits(features).into_iter().chain(notes.iter().cloned()).chain([dim(leave)]).collect();
    let mut end: Vec<String> = notes.iter().flat_map(|note| paragraph(note, columns, gap)).collect();
    end.truncate(left);
    let mut lines = match features {
        [] => paragraph(&super::none_yet(), columns, 0),
        _ => work(picture, columns, left - end.len(), gap),
    };
    lines.truncate(left - end.len());
    lines.extend(end);
    lines
}

/// The table, and below it why something stands still.
fn work(picture: &Picture<'_>, columns: usize, left: usize, gap: usize) -> Vec<String> {
    let mut features: Vec<&Value> = picture.features.iter().collect();
    features.sort_by_key(|feature| urgency(feature));
    let total = features.len();
    // No more of them can be seen; there may be thousands.
    features.truncate(left);
    let urgent = features.iter().filter(|feature| urgency(feature) < REST).count();
    let stuck = features.iter().filter(|feature| is_stuck(feature)).count();
    // Their rows come first, then the reasons of those that somebody can bring on, then all other rows.
    for told in (0..=stuck).rev() {
        let mut reasons = Vec::new();
        let (mut rows, mut needed) = (Vec::new(), urgent);
        let mut untold = told;
        for (place, feature) in features.iter().enumerate() {
            let is_told = is_stuck(feature) && untold > 0;
            if is_told {
                untold -= 1;
                reasons.extend(paragraph(&stands_still(feature, picture.at_work), columns, gap));
                needed = if place < urgent { needed } else { total };
            }
            let reason = if is_told { told_below(feature) } else { "see `aop status`" };
            rows.push(row(feature, &picture.prompts, reason));
        }
        let room = left.saturating_sub(1 + reasons.len());
        let table = within(columns, HEADER, &rows, Some(TITLE));
        let heights = table.iter().skip(1).map(|row| row.lines().count());
        let shown = fit_into(room, heights.chain(std::iter::repeat_n(1, total - features.len())));
        if shown < needed && told > 0 {
            continue;
        }
        let mut lines: Vec<String> =
            table.iter().take(1 + shown).flat_map(|row| row.lines()).map(str::to_owned).collect();
        lines.extend((shown < total).then(|| and_more(total - shown, Listed::ByStatus)));
        lines.extend(reasons);
        return lines;
    }
    Vec::new()
}

/// The last of the urgencies.
const REST: u8 = 2;

/// What waits for an answer comes first, then what is blocked, then the rest.
fn urgency(feature: &Value) -> u8 {
    match feature["status"].as_str() {
        _ if has_open_question(feature) => 0,
        Some("blocked") => 1,
        _ => REST,
    }
}

fn paragraph(text: &str, columns: usize, gap: usize) -> Vec<String> {
    let text = wrapped(text, columns);
    std::iter::repeat_n(String::new(), gap).chain(text.lines().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::seen;

    const QUESTION: &str = "q_01JA0000000000000000000000";

    fn feature(id: &str, status: &str) -> Value {
        let question = (status == "awaiting_input").then_some(QUESTION);
        let reason = matches!(status, "blocked" | "failed").then_some("the disk is full");
        json!({"feature_id": id, "title": format!("What is built as {id}"), "status": status, "status_reason": reason,
            "open_question_id": question})
    }

    fn thirty(others: &[(&str, &str)]) -> Vec<Value> {
        let mut features: Vec<Value> = (1..=30).map(|n| feature(&format!("f{n:02}"), "planning")).collect();
        features.extend(others.iter().map(|(id, status)| feature(id, status)));
        features
    }

    #[test]
    fn what_waits_stands_first_the_rest_is_counted_and_the_summary_stays() {
        let features = thirty(&[("stuck", "blocked"), ("late", "awaiting_input")]);
        let prompts = Prompts([(QUESTION.to_owned(), "Which one?".to_owned())].into());
        let picture = Picture { features: &features, prompts, at_work: true, notes: Vec::new() };
        let lines = lines(&picture, "q or Ctrl-C quits", (80, 24));
        assert_eq!(lines.len(), 23, "{lines:#?}");
        assert!(lines[1].starts_with("late ") && lines[1].ends_with("Which one?"), "{lines:#?}");
        assert!(lines[2].starts_with("stuck ") && lines[2].ends_with("see below"), "{lines:#?}");
        let shown = lines.iter().filter(|line| line.contains(" planning ")).count();
        let rest = [
            &format!("  … and {} more (`aop status` lists all)", 30 - shown),
            "",
            "stuck is blocked: the disk is full",
            "  go on with: `aop retry --feature-id stuck`",
            "",
            "1 feature waits for an answer: `aop answer`",
            "",
            "q or Ctrl-C quits",
        ];
        assert_eq!(lines[lines.len() - rest.len()..], rest);
    }

    #[test]
    fn a_terminal_of_any_size_is_never_flooded_and_says_what_it_does_not_show() {
        let sets = [
            vec![],
            thirty(&[]),
            thirty(&[("late", "awaiting_input"), ("stuck", "blocked"), ("gone", "failed")]),
            (0..40).map(|n| feature(&format!("b{n:02}"), "blocked")).collect(),
        ];
        for (columns, rows) in
            [3, 4, 7, 10, 14, 15, 24, 39].iter().flat_map(|rows| [(40, *rows), (80, *rows), (120, *rows)])
        {
            for features in &sets {
                let notes = vec!["No run is active; start one with `aop run`.".into()];
                let picture = Picture { features, prompts: Prompts::default(), at_work: false, notes };
                let lines = lines(&picture, "q or Ctrl-C quits", (columns, rows));
                assert!(lines.len() < rows, "{columns}x{rows}: {lines:#?}");
                let fits = |line: &String| seen(line) < columns.max(60);
                assert!(lines.iter().all(fits), "{columns}x{rows}: {lines:#?}");
                let listed = |id: &Value| {
                    lines.iter().any(|line| line.starts_with(&format!("{} ", id.as_str().unwrap())))
                };
                let shown = features.iter().filter(|feature| listed(&feature["feature_id"])).count();
                let told =
                    lines.iter().any(|line| line.contains(&format!("… and {} more", features.len() - shown)));
                assert!(shown == features.len() || told || rows < 10, "{columns}x{rows}: {lines:#?}");
                let waits = features.iter().any(has_open_question);
                let summed = lines.iter().any(|line| line.starts_with("1 feature waits for an answer"));
                assert_eq!(waits, summed, "{columns}x{rows}: {lines:#?}");
            }
        }
    }

    #[tokio::test]
    async fn commits_that_follow_each_other_closely_are_one_picture() {
        let (commits, mut changes) = tokio::sync::watch::channel(0);
        commits.send_replace(1);
        {
            let mut committed = std::pin::pin!(committed(&mut changes));
            tokio::select! {
                biased;
                () = &mut committed => panic!("the first is not shown alone"),
                () = std::future::ready(()) => {}
            }
            commits.send_replace(2);
            committed.await;
        }
        assert_eq!(*changes.borrow_and_update(), 2);
        assert!(!changes.has_changed().unwrap());
    }
}
