//! What a run tells programs: one JSON object a line. Lines are the committed events, with a first and a last one of the
//! run's own, and one when an engine was started. A reader who pauses holds nothing up: what was committed meanwhile stays
//! in the store until they read on.

use super::Rest;
use crate::output::voice::Voice;
use crate::output::{print_json, warn};
use aop_store::{EventPage, Service, Store};
use aop_supervisor::{Notice, Reason, RunEnd, RunInfo};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// So many events are read at once.
const PAGE: usize = 256;

/// The view, on a task of its own.
pub(super) struct Lines {
    voice: Voice,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Lines {
    /// Shows what is committed after this event.
    pub(super) fn start(
        service: &Service,
        info: &RunInfo,
        after: u64,
        mut notices: mpsc::UnboundedReceiver<Notice>,
    ) -> Self {
        let started = json!({"type": "run.started", "run_id": info.run_id, "pid": info.pid, "host": info.host,
            "since": info.since});
        let voice = Voice::start();
        voice.say(move || print_json(&started.to_string()));
        let (stop, mut stopped) = watch::channel(false);
        let (store, teller) = (Arc::clone(&service.store), voice.clone());
        let task = tokio::spawn(async move {
            let mut changes = store.changes();
            let mut seen = after;
            loop {
                changes.borrow_and_update();
                let mut showing = std::pin::pin!(show(store.as_ref(), &teller, seen));
                seen = loop {
                    // What is said waits neither for the store nor here for the reader.
                    tokio::select! {
                        seen = &mut showing => break seen,
                        Some(notice) = notices.recv() => tell(&teller, notice),
                    }
                };
                if *stopped.borrow() {
                    while let Ok(notice) = notices.try_recv() {
                        tell(&teller, notice);
                    }
                    return;
                }
                tokio::select! {
                    _ = changes.changed() => {}
                    _ = stopped.changed() => {}
                    Some(notice) = notices.recv() => tell(&teller, notice),
                }
            }
        });
        Lines { voice, stop, task }
    }

    /// Shows the rest.
    pub(super) async fn finish(self, end: Option<&RunEnd>, rest: Rest) {
        match rest {
            Rest::Shown => drop(self.stop.send_replace(true)),
            Rest::Dropped => self.task.abort(),
        }
        // A task that panicked has nothing left to show.
        let _ = self.task.await;
        let last = end.map(last_line);
        // Until they are read; a second signal leaves all the same.
        let _ = self.voice.say(move || last.iter().for_each(|line| print_json(line))).await;
    }
}

fn last_line(end: &RunEnd) -> String {
    let reason = match end.reason {
        Reason::Finished => "finished",
        Reason::Parked => "parked",
        Reason::Stopped => "stopped",
        Reason::TakenOver => "taken_over",
    };
    let mut ended = json!({"type": "run.ended", "reason": reason, "features": end.features});
    if let Some(RunInfo { run_id, pid, host, since, .. }) = &end.taken_over_by {
        ended["taken_over_by"] = json!({"run_id": run_id, "pid": pid, "host": host, "since": since});
    }
    ended.to_string()
}

/// Prints what was committed since; the last number. The next page is read when this one is out.
async fn show(store: &dyn Store, voice: &Voice, mut seen: u64) -> u64 {
    loop {
        let page = EventPage { after: seen, feature: None, limit: PAGE };
        let Ok(events) = store.events(page).await else { return seen };
        let Some(last) = events.last() else { return seen };
        seen = last.seq;
        let _ =
            voice.say(move || events.iter().for_each(|event| print_json(&json!(event).to_string()))).await;
    }
}

/// Has it said in its turn, without waiting for that.
fn tell(voice: &Voice, notice: Notice) {
    // The words of engines are on no line; nor are they kept for one.
    if !matches!(notice, Notice::Said { .. }) {
        voice.say(move || said(&notice));
    }
}

fn said(notice: &Notice) {
    match notice {
        Notice::Warning(message) => warn(message),
        Notice::Started { feature_id, claim } => {
            print_json(
                &json!({"type": "engine.started", "feature_id": feature_id, "claim": claim}).to_string(),
            );
        }
        Notice::Waits { feature_id, text } => {
            print_json(&json!({"type": "feature.waits", "feature_id": feature_id, "text": text}).to_string());
        }
        Notice::Said { .. } => {}
    }
}
