//! `aop log`: what happened, oldest first.

use crate::cli::Global;
use crate::number::at_least;
use crate::output::style::{bold, clean, dim};
use crate::output::voice::Voice;
use crate::output::{CommandResult, INTERRUPTED, Reply, Screen, is_heard, print_json, reader_gone, say};
use crate::project::{Project, Session};
use aop_kernel::event::Recorded;
use aop_kernel::ids::FeatureId;
use aop_kernel::tools::Tool;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::{EventPage, Items};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};

/// So many events are read at once by whoever follows.
const PAGE: usize = 1_000;

/// Show what happened, oldest first
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  aop log --feature-id checkout\n  aop log --last 20\n  aop log --last 5 --follow\n  aop log --after 120 --json"
)]
pub(crate) struct LogArgs {
    /// Only this feature's events
    #[arg(long)]
    feature_id: Option<String>,
    /// Only events after this number
    #[arg(long, value_name = "SEQ", default_value_t = 0, value_parser = at_least::<u64>(0))]
    after: u64,
    /// At most so many (default: all)
    #[arg(long, value_name = "N", value_parser = at_least::<usize>(1))]
    limit: Option<usize>,
    /// Only the last so many (with --follow: begin with them; 0 = only what comes)
    #[arg(long, value_name = "N", conflicts_with_all = ["after", "limit"], value_parser = at_least::<usize>(0))]
    last: Option<usize>,
    /// Go on and print events as they happen, one JSON object a line when piped
    #[arg(long)]
    follow: bool,
}

/// Lists events, and follows them when asked to.
pub(crate) fn run(global: &Global, screen: &Screen, args: &LogArgs) -> CommandResult {
    let feature = args.feature_id.as_deref().map(FeatureId::parse).transpose()?;
    // Whoever follows may wish to see only what comes; nobody wishes to see nothing.
    if args.last == Some(0) && !args.follow {
        return Err(Refusal::invalid_argument("--last 0 would show nothing")
            .hint("write a whole number, 1 or more, or leave --last out to see all")
            .fact("argument", "last"));
    }
    let session = Project::find(global)?.open()?;
    let feature = feature.or_else(|| session.own_feature());
    if let Some(id) = &feature {
        session.call(Tool::FeatureGet, &json!({"feature_id": id}))?;
    }
    let after = match args.last {
        Some(count) => before_last(&session, feature.as_ref(), count)?,
        None => args.after,
    };
    if args.follow {
        // What never comes would be waited for without a word.
        super::replay::not_ahead(&session, "--after", Some(after))?;
        return follow(&session, screen, feature, after);
    }
    let page = EventPage { after, feature, limit: args.limit.unwrap_or_default() };
    let items = session.wait(session.store().events(page))?;
    let text: Vec<String> =
        if screen.is_text() { Calendar::of_this_place().lines(&items) } else { Vec::new() };
    let text = match after {
        0 if items.is_empty() => "Nothing happened yet.".to_owned(),
        after if items.is_empty() => format!("Nothing happened after event {after}."),
        _ => text.join("\n"),
    };
    Ok(Reply::ok(Envelope::success(&Items { items }), text))
}

/// The event before the last so many.
fn before_last(session: &Session, feature: Option<&FeatureId>, count: usize) -> Result<u64, Refusal> {
    let last = session.wait(session.store().last())?;
    let Some(id) = feature.filter(|_| count > 0) else { return Ok(last.saturating_sub(count as u64)) };
    let found = session.wait(session.store().last_events(id.clone(), None, count))?;
    Ok(found.last().map_or(last, |first| first.seq - 1))
}

/// Prints events until it is interrupted or nobody reads them any more.
fn follow(session: &Session, screen: &Screen, feature: Option<FeatureId>, mut after: u64) -> CommandResult {
    let mut interrupts = session.notice_interrupts()?;
    let mut changes = session.store().changes();
    let voice = Voice::start();
    let calendar = screen.is_text().then(|| Arc::new(Mutex::new(Calendar::of_this_place())));
    loop {
        // Marked as seen before reading, so that a commit in between wakes the next wait.
        changes.borrow_and_update();
        loop {
            let page = EventPage { after, feature: feature.clone(), limit: PAGE };
            let events = session.wait(session.store().events(page))?;
            let Some(last) = events.last() else { break };
            after = last.seq;
            let calendar = calendar.clone();
            let told = voice.say(move || tell(&events, calendar.as_deref()));
            if session.wait_patiently(&mut interrupts, told).is_none() {
                session.say_last(&voice, || ());
                return Ok(Reply::printed().exit(INTERRUPTED));
            }
            if !is_heard() {
                return Ok(Reply::printed());
            }
        }
        let news = session.wait_patiently(&mut interrupts, async {
            tokio::select! {
                changed = changes.changed() => Some(changed),
                () = reader_gone() => None,
            }
        });
        match news {
            None => return Ok(Reply::printed().exit(INTERRUPTED)),
            Some(None) => return Ok(Reply::printed()),
            Some(Some(Ok(()))) => {}
            Some(Some(Err(_))) => {
                return Err(Refusal::new(ErrorCode::Internal, "the store stopped announcing changes"));
            }
        }
    }
}

/// Tells events to people, who have a calendar, or to programs.
fn tell(events: &[Recorded], calendar: Option<&Mutex<Calendar>>) {
    for recorded in events.iter().take_while(|_| is_heard()) {
        match calendar {
            // Nothing is half done where it was left.
            Some(calendar) => {
                let mut calendar = calendar.lock().unwrap_or_else(PoisonError::into_inner);
                calendar.line(recorded).iter().for_each(|line| say(line));
            }
            None => print_json(&json!(recorded).to_string()),
        }
    }
}

/// The time as the clock on the wall has it: each day is said once, above its events.
struct Calendar {
    zone: TimeZone,
    /// The day that was said last.
    day: Option<Date>,
}

impl Calendar {
    /// Where nobody knows which place this is, it is UTC, and says so.
    fn of_this_place() -> Self {
        Calendar { zone: TimeZone::try_system().unwrap_or(TimeZone::UTC), day: None }
    }

    fn lines(mut self, events: &[Recorded]) -> Vec<String> {
        events.iter().flat_map(|recorded| self.line(recorded)).collect()
    }

    /// The line of an event, behind that of its day when this is another one.
    fn line(&mut self, recorded: &Recorded) -> Vec<String> {
        let stamped = &recorded.stamped;
        let at = jiff::Timestamp::from_millisecond(stamped.at.as_millis()).unwrap_or_default();
        let at = at.to_zoned(self.zone.clone());
        let day = (self.day != Some(at.date())).then(|| dim(&at.strftime("%Y-%m-%d (%Z)").to_string()));
        self.day = Some(at.date());
        let line = format!(
            "{} {} {} {}",
            dim(&format!("{:>4}", recorded.seq)),
            dim(&at.strftime("%H:%M:%S").to_string()),
            bold(stamped.feature_id.as_str()),
            clean(&aop_kernel::log::sentence(stamped))
        );
        day.into_iter().chain([line]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_day_is_said_once_and_times_are_those_of_the_place() {
        let event = |seq: u64, at: &str| -> Recorded {
            serde_json::from_value(json!({"seq": seq, "feature_id": "shop", "at": at, "actor": "human",
                "operation_id": null, "type": "feature.noted", "note": "n"}))
            .unwrap()
        };
        let events = [
            event(1, "2026-11-19T20:38:13.677Z"),
            event(2, "2026-11-19T22:59:59.999Z"),
            event(3, "2026-11-19T23:00:00.000Z"),
        ];
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let lines = Calendar { zone, day: None }.lines(&events);
        assert_eq!(
            lines,
            [
                "2026-11-19 (CET)",
                "   1 21:38:13 shop human noted: n",
                "   2 23:59:59 shop human noted: n",
                "2026-11-20 (CET)",
                "   3 00:00:00 shop human noted: n",
            ]
        );
        let lines = Calendar { zone: TimeZone::UTC, day: None }.lines(&events);
        assert_eq!((lines.len(), lines[0].as_str()), (4, "2026-11-19 (UTC)"));
    }
}
