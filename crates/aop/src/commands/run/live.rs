//! What a run shows on a terminal: a table that lives, the questions that wait, and the prompt that answers them right
//! there. It stands on a thread of its own: whoever answers takes as long as they take, and the run goes on.

use super::frame::{Picture, Way};
use super::keys::{Keys, Wish};
use super::{Answers, Rest, leave};
use crate::commands::status::{Prompts, overview};
use crate::output::live::{Painter, give_back};
use crate::output::question::{above_prompt, too_late};
use crate::output::style::{bold, clean, dim, yellow};
use crate::output::table::fit;
use crate::output::{has_room, say, talk};
use crate::project::{Project, operation_id};
use crate::prompt::{self, Ended, Typing};
use aop_kernel::event::{Event, Recorded};
use aop_kernel::feature::FeatureRecord;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::question::{Question, QuestionStatus};
use aop_kernel::role::Caller;
use aop_kernel::status::{Held, Status};
use aop_kernel::tools::{QuestionFilter, Tool};
use aop_kernel::work::TurnEnd;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::{EventPage, FeaturePage, Inbox, QuestionPage, Service, Store};
use aop_supervisor::{Notice, Reason, RunEnd, RunInfo};
use crossterm::event;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// One step of the spinner.
const TICK: Duration = Duration::from_millis(100);
/// How often times are painted anew when nothing moves.
const STILL: Duration = Duration::from_secs(5);
/// How many lines of the terminal an event takes at most; `aop log` has all of it.
const LONGEST: usize = 3;
/// How long the view has for its last lines when somebody has stopped the run, or the store is gone.
const LAST_LINES: Duration = Duration::from_secs(2);
/// How many open questions are looked at.
const SHOWN_QUESTIONS: usize = 20;

/// The view.
pub(crate) struct Live {
    store: Arc<dyn Store>,
    messages: Sender<Message>,
    stop: watch::Sender<bool>,
    feeder: JoinHandle<()>,
    /// Whether somebody has stopped the run.
    stopped: watch::Receiver<bool>,
    /// Closed when the thread has ended.
    ended: oneshot::Receiver<()>,
}

enum Message {
    Event(Box<Recorded>),
    State(Box<Picture>),
    Said(Notice),
    End,
}

/// What the view needs of its run.
pub(crate) struct Watched<'a> {
    pub(crate) service: &'a Service,
    pub(crate) info: &'a RunInfo,
    pub(crate) project: &'a Project,
    /// The last event before the run.
    pub(crate) after: u64,
    pub(crate) bell: bool,
    pub(crate) answers: Answers,
    /// Stops the run.
    pub(crate) stop: watch::Sender<bool>,
}

impl Live {
    /// Takes the terminal.
    pub(crate) fn start(watched: Watched<'_>, notices: mpsc::UnboundedReceiver<Notice>) -> Self {
        let title = dim(&format!("run {}", watched.info.run_id));
        let (messages, inbox) = channel();
        let (stop, rest) = watch::channel(false);
        let feeder =
            tokio::spawn(feed(watched.service.clone(), watched.after, messages.clone(), notices, rest));
        let stopped = watched.stop.subscribe();
        let store = Arc::clone(&watched.service.store);
        let view = View {
            service: watched.service.clone(),
            runtime: Handle::current(),
            stop: watched.stop,
            keys: (watched.answers == Answers::Person && prompt::possible()).then(Keys::default),
            bell: watched.bell,
            answers: watched.answers,
            picture: Picture { elsewhere: watched.project.elsewhere(), ..Picture::default() },
            left_open: Vec::new(),
        };
        let (alive, ended) = oneshot::channel();
        std::thread::spawn(move || {
            let _alive: oneshot::Sender<()> = alive;
            say(&title);
            view.run(&inbox);
        });
        Live { store, messages, stop, feeder, stopped, ended }
    }

    /// Shows the rest and gives the terminal back.
    pub(super) async fn finish(self, end: Option<&RunEnd>, rest: Rest) {
        match rest {
            Rest::Shown => drop(self.stop.send_replace(true)),
            Rest::Dropped => self.feeder.abort(),
        }
        // A task that panicked has nothing left to show; the thread likewise.
        let _ = self.feeder.await;
        let _ = self.messages.send(Message::End);
        tokio::select! {
            _ = self.ended => {}
            // It may wait for the store with an answer, or for a terminal that nobody reads.
            () = patience(self.stopped, rest) => {
                give_back();
                if !has_room() {
                    return;
                }
            }
        }
        if let Some(end) = end {
            let features: Vec<_> = end.features.iter().map(|feature| json!(feature)).collect();
            say(&match features.is_empty() {
                true => format!("Nothing is left to do. {} adds a feature.", bold("`aop run SPEC.md`")),
                false => {
                    let prompts = match rest {
                        Rest::Shown => Prompts::of(self.store.as_ref(), &features).await,
                        Rest::Dropped => Prompts::default(),
                    };
                    overview(&features, &prompts, end.reason == Reason::TakenOver)
                }
            });
            if end.features.iter().any(|feature| feature.status == Status::Failed) {
                say(
                    "\nA failed feature stays failed. To start over, run the specification under another file name.",
                );
            }
        }
    }
}

/// How long the view is waited for: a terminal may be held for as long as somebody likes, until they stop the run.
async fn patience(mut stopped: watch::Receiver<bool>, rest: Rest) {
    if rest == Rest::Shown {
        // Without anybody who could stop it, it is as good as stopped.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }
    tokio::time::sleep(LAST_LINES).await;
}

/// Tells the view what is committed and what is said.
async fn feed(
    service: Service,
    after: u64,
    messages: Sender<Message>,
    mut notices: mpsc::UnboundedReceiver<Notice>,
    mut stopped: watch::Receiver<bool>,
) {
    let store = service.store;
    let mut changes = store.changes();
    let mut seen = after;
    let mut known = Known::default();
    loop {
        changes.borrow_and_update();
        let mut shown = std::pin::pin!(show(store.as_ref(), &mut seen, &mut known, &messages));
        loop {
            tokio::select! {
                // A store that cannot be read for a moment leaves the picture as it was.
                _ = &mut shown => break,
                // What is said does not wait for the store.
                Some(notice) = notices.recv() => drop(messages.send(Message::Said(notice))),
            }
        }
        if *stopped.borrow() {
            while let Ok(notice) = notices.try_recv() {
                let _ = messages.send(Message::Said(notice));
            }
            return;
        }
        loop {
            tokio::select! {
                _ = changes.changed() => break,
                _ = stopped.changed() => break,
                Some(notice) = notices.recv() => drop(messages.send(Message::Said(notice))),
            }
        }
        // Commits that follow each other closely are one picture.
        tokio::select! {
            () = tokio::time::sleep(TICK / 2) => {}
            _ = stopped.wait_for(|stop| *stop) => {}
        }
    }
}

/// Tells the view what was committed since, and how things stand.
async fn show(
    store: &dyn Store,
    seen: &mut u64,
    known: &mut Known,
    messages: &Sender<Message>,
) -> Result<(), Refusal> {
    let page = EventPage { after: *seen, feature: None, limit: 0 };
    for recorded in store.events(page).await? {
        *seen = recorded.seq;
        let _ = messages.send(Message::Event(Box::new(recorded)));
    }
    known.catch_up(store).await?;
    let page = QuestionPage {
        feature: None,
        filter: QuestionFilter::Only(QuestionStatus::Open),
        after: None,
        limit: SHOWN_QUESTIONS,
    };
    let questions = store.questions(page).await?;
    let Inbox { total: open, more: uncounted, .. } = store.inbox(0, 0).await?;
    let features = known.features.values().cloned().collect();
    let picture = Picture { features, questions, open, uncounted, ..Picture::default() };
    let _ = messages.send(Message::State(Box::new(picture)));
    Ok(())
}

/// The features as they stand. After the first time only those are read that a commit has touched.
#[derive(Default)]
struct Known {
    features: BTreeMap<FeatureId, FeatureRecord>,
    /// The last event that they show.
    seen: Option<u64>,
}

impl Known {
    async fn catch_up(&mut self, store: &dyn Store) -> Result<(), Refusal> {
        // Before reading: what is committed meanwhile is read again the next time.
        let mut features = Vec::new();
        let last = match self.seen {
            None => {
                let last = store.last().await?;
                features = store.features(FeaturePage::default()).await?;
                last
            }
            Some(seen) => {
                let (changed, last) = store.changed_since(seen).await?;
                for (id, _) in changed {
                    features.extend(store.feature(id).await?.filter(|feature| !feature.adhoc));
                }
                last
            }
        };
        for feature in features {
            self.features.insert(feature.id.clone(), feature.record(Held::No));
        }
        self.seen = Some(last);
        Ok(())
    }
}

/// What the table shows anyway need not stay.
fn is_passing(event: &Event) -> bool {
    match event {
        Event::TurnBegan { .. }
        | Event::CheckBegan { .. }
        | Event::StatusChanged { .. }
        | Event::FeatureCreated { .. }
        | Event::TurnEnded { end: TurnEnd::AskUser { .. }, .. } => true,
        Event::CheckEnded { passed, .. } => *passed,
        Event::Noted { .. }
        | Event::TurnContinued { .. }
        | Event::TurnEnded { .. }
        | Event::Merged { .. }
        | Event::QuestionOpened { .. }
        | Event::QuestionAnswered { .. }
        | Event::QuestionExpired { .. }
        | Event::QuestionWithdrawn { .. } => false,
    }
}

/// The thread's own.
struct View {
    service: Service,
    runtime: Handle,
    stop: watch::Sender<bool>,
    /// What is typed, where somebody can answer.
    keys: Option<Keys>,
    bell: bool,
    answers: Answers,
    picture: Picture,
    /// Questions that the person at this terminal did not want to answer now.
    left_open: Vec<QuestionId>,
}

impl View {
    fn run(mut self, inbox: &Receiver<Message>) {
        let mut painter = Painter::start(self.keys.is_some());
        let began = Instant::now();
        let mut painted = Instant::now() - STILL;
        let mut above = Vec::new();
        loop {
            let mut dirty = false;
            let mut next = inbox.recv_timeout(TICK);
            loop {
                match next {
                    Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => {
                        painter.paint(&above, &[]);
                        return;
                    }
                    Ok(message) => {
                        dirty = true;
                        above.extend(self.take(message, &painter));
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                }
                next = inbox.recv_timeout(Duration::ZERO);
            }
            if self.key(&mut painter, &mut above) {
                dirty = true;
            }
            if dirty || self.picture.is_moving() || painted.elapsed() >= STILL {
                let tick =
                    usize::try_from(began.elapsed().as_millis() / TICK.as_millis()).unwrap_or_default();
                // Where nothing can be painted again the events alone are told.
                let block = painter.moves().then(|| self.picture.lines(painter.size(), tick, self.way()));
                painter.paint(&above, &block.unwrap_or_default());
                above.clear();
                painted = Instant::now();
            }
        }
    }

    fn way(&self) -> Way {
        match (self.answers, &self.keys) {
            (Answers::Itself, _) => Way::Nothing,
            (Answers::Person, Some(_)) => Way::Key,
            (Answers::Person, None) => Way::Command,
        }
    }

    /// What a message changes; the lines that stay.
    fn take(&mut self, message: Message, painter: &Painter) -> Vec<String> {
        match message {
            Message::End => Vec::new(),
            Message::State(mut picture) => {
                picture.said = std::mem::take(&mut self.picture.said);
                picture.elsewhere = self.picture.elsewhere.take();
                self.picture = *picture;
                Vec::new()
            }
            Message::Said(Notice::Said { feature_id, text }) => {
                self.picture.said.insert(feature_id, text);
                Vec::new()
            }
            Message::Said(Notice::Started { .. }) => Vec::new(),
            Message::Said(Notice::Waits { feature_id, text }) => {
                vec![format!("{}  {}", bold(feature_id.as_str()), yellow(&clean(&text)))]
            }
            Message::Said(Notice::Warning(text)) => vec![format!("{} {}", yellow("warning:"), clean(&text))],
            Message::Event(recorded) => {
                if self.bell && matches!(recorded.stamped.event, Event::QuestionOpened { .. }) {
                    painter.bell();
                }
                let line = format!(
                    "{}  {}",
                    bold(recorded.stamped.feature_id.as_str()),
                    clean(&aop_kernel::log::sentence(&recorded.stamped))
                );
                let line = fit(&line, LONGEST * painter.size().0);
                if is_passing(&recorded.stamped.event) { Vec::new() } else { vec![line] }
            }
        }
    }

    /// Does what the keys that were pressed mean. Whether the picture has to be painted again.
    fn key(&mut self, painter: &mut Painter, above: &mut Vec<String>) -> bool {
        let Some(keys) = &mut self.keys else { return false };
        let (mut dirty, mut wish) = (false, None);
        while event::poll(Duration::ZERO).unwrap_or(false) {
            let Ok(event) = event::read() else { break };
            dirty = true;
            wish = wish.or(keys.hear(&event, Instant::now()));
        }
        match wish.or_else(|| keys.settled(Instant::now())) {
            None => return dirty,
            Some(Wish::Stop) if *self.stop.borrow() => {
                painter.pause();
                leave();
            }
            Some(Wish::Stop) => {
                let on = if self.picture.elsewhere.is_some() { "" } else { "; `aop run` continues" };
                above.push(dim(&format!("stopping{on}")));
                self.stop.send_replace(true);
            }
            Some(Wish::Answer) => {
                painter.paint(above, &[]);
                above.clear();
                painter.pause();
                self.answer();
                painter.resume();
            }
        }
        true
    }

    /// Puts the oldest question that was not left open before to the person.
    fn answer(&mut self) {
        let waiting = self.picture.questions.iter();
        let next = waiting.clone().find(|question| !self.left_open.contains(&question.id));
        let Some(question) = next.or_else(|| self.picture.questions.first()).cloned() else { return };
        talk(&format!("\n{}", above_prompt(&question)));
        let mut begun = None;
        loop {
            match self.ask(&question, begun.take()) {
                Ok(None) => return,
                Ok(Some(Ended::Closed(closed, typing))) => {
                    talk(&too_late(&closed));
                    if typing == Typing::Yes {
                        self.let_type();
                    }
                    break;
                }
                Ok(Some(Ended::Said(prompt::Reply::Answer(answer)))) => match self.send(&question, &answer) {
                    Ok(()) => break,
                    Err(refusal) => {
                        talk(&format!("{} {}", yellow("not taken:"), clean(&refusal.message)));
                        if refusal.code != ErrorCode::QuestionInvalidAnswer {
                            break;
                        }
                        begun = Some(answer);
                    }
                },
                Ok(Some(Ended::Said(prompt::Reply::Skipped))) => {
                    self.left_open.push(question.id.clone());
                    talk(&dim("left open"));
                    return;
                }
                Ok(Some(Ended::Said(prompt::Reply::Interrupted))) => {
                    self.stop.send_replace(true);
                    return;
                }
                Err(refusal) => {
                    talk(&clean(&refusal.message));
                    return;
                }
            }
        }
        self.picture.questions.retain(|other| other.id != question.id);
        self.picture.open = self.picture.open.saturating_sub(1);
    }

    /// Shows the form while its question is open. `None` when the run is stopped meanwhile.
    fn ask(&self, question: &Question, begun: Option<Value>) -> Result<Option<Ended>, Refusal> {
        let mut stopped = self.stop.subscribe();
        self.runtime.block_on(async {
            tokio::select! {
                ended = prompt::ask_while_open(self.service.store.as_ref(), question, begun) => ended.map(Some),
                _ = stopped.wait_for(|stopped| *stopped) => Ok(None),
            }
        })
    }

    /// Lets somebody type on who has not seen yet that there is no question any more: a key means something else here.
    fn let_type(&self) {
        let mut stopped = self.stop.subscribe();
        let goes_on = self.runtime.block_on(async {
            tokio::select! {
                goes_on = prompt::typed_out(Some(prompt::QUIET)) => goes_on,
                _ = stopped.wait_for(|stopped| *stopped) => Ok(true),
            }
        });
        if goes_on.is_ok_and(|goes_on| !goes_on) {
            self.stop.send_replace(true);
        }
    }

    fn send(&self, question: &Question, answer: &Value) -> Result<(), Refusal> {
        let input = json!({"feature_id": question.feature_id, "question_id": question.id, "answer": answer,
            "answered_by": "human", "operation_id": operation_id(None)?});
        let caller = Caller::new(aop_kernel::role::Role::Human);
        let sent = self.service.call(Tool::QuestionAnswer, &caller, &input, "terminal");
        self.runtime.block_on(sent).map(drop)
    }
}
