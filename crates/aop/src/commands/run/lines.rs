//! What a run shows as lines: for programs one JSON object each, for people a sentence each. Lines are the committed
//! events, with a first and a last one of the run's own.

use crate::output::style::{bold, clean, dim};
use crate::output::{Screen, print, warn};
use aop_kernel::event::Recorded;
use aop_store::{EventPage, Service, Store};
use aop_supervisor::{Notice, Reason, RunEnd, RunInfo};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// The view, on a task of its own.
pub(super) struct Lines {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    text: bool,
}

impl Lines {
    /// Shows what is committed after this event.
    pub(super) fn start(
        service: &Service,
        screen: &Screen,
        info: &RunInfo,
        after: u64,
        mut notices: mpsc::UnboundedReceiver<Notice>,
    ) -> Self {
        let text = screen.is_text();
        if text {
            print(&dim(&format!("run {} (Ctrl-C stops; the next run goes on)", info.run_id)));
        } else {
            print(&json!({"type": "run.started", "run_id": info.run_id, "pid": info.pid, "host": info.host, "since": info.since}).to_string());
        }
        let (stop, mut stopped) = watch::channel(false);
        let store = Arc::clone(&service.store);
        let task = tokio::spawn(async move {
            let mut changes = store.changes();
            let mut seen = after;
            loop {
                changes.borrow_and_update();
                seen = show(store.as_ref(), seen, text).await;
                if *stopped.borrow() {
                    return;
                }
                tokio::select! {
                    _ = changes.changed() => {}
                    _ = stopped.changed() => {}
                    Some(notice) = notices.recv() => said(&notice, text),
                }
            }
        });
        Lines { stop, task, text }
    }

    /// Shows the rest.
    pub(super) async fn finish(self, end: Option<&RunEnd>) {
        self.stop.send_replace(true);
        // A task that panicked has nothing left to show.
        let _ = self.task.await;
        let Some(end) = end else { return };
        let reason = match end.reason {
            Reason::Finished => "finished",
            Reason::Parked => "parked",
            Reason::Stopped => "stopped",
        };
        if self.text {
            let features: Vec<_> = end.features.iter().map(|feature| json!(feature)).collect();
            print(&format!("\n{}", crate::commands::status::overview(&features)));
        } else {
            print(&json!({"type": "run.ended", "reason": reason, "features": end.features}).to_string());
        }
    }
}

/// Prints what was committed since; the last number.
async fn show(store: &dyn Store, mut seen: u64, text: bool) -> u64 {
    let page = EventPage { after: seen, feature: None, limit: 0 };
    let Ok(events) = store.events(page).await else { return seen };
    for recorded in events {
        seen = recorded.seq;
        print(&if text { sentence(&recorded) } else { json!(recorded).to_string() });
    }
    seen
}

fn sentence(recorded: &Recorded) -> String {
    format!(
        "{} {}",
        bold(recorded.stamped.feature_id.as_str()),
        clean(&aop_kernel::log::sentence(&recorded.stamped))
    )
}

fn said(notice: &Notice, text: bool) {
    match notice {
        Notice::Warning(message) => warn(message),
        Notice::Said { feature_id, text: said } if text => {
            print(&dim(&format!("{feature_id} {}", clean(&aop_kernel::log::one_line(said)))));
        }
        Notice::Said { .. } | Notice::Started { .. } => {}
    }
}
