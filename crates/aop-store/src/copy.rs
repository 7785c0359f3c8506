//! A project from one store into another, all of it: its history, its credentials and the secret answers that wait
//! for their engines. The target has none before; what it holds afterwards is compared with what was sent.

use crate::error::StoreError;
use crate::history::Entry;
use crate::port::{QuestionPage, Store};
use crate::shelf::{Expect, Shelf};
use aop_kernel::hex::hexadecimal;
use aop_kernel::question::QuestionStatus;
use aop_kernel::tools::QuestionFilter;
use sha2::{Digest, Sha256};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Entries under way between the two stores.
const UNDER_WAY: usize = 1_000;

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// The last event.
    pub seq: u64,
    /// Entries of the history.
    pub entries: u64,
    /// Credentials.
    pub tokens: u64,
    /// Secret answers that wait for delivery.
    pub secrets: u64,
    /// SHA-256 of the history, the same on both sides.
    pub digest: String,
}

/// Counts and digests what passes by.
#[derive(Default)]
struct Meter {
    entries: u64,
    digest: Sha256,
}

impl Meter {
    fn note(&mut self, entry: &Entry) -> Result<(), StoreError> {
        self.entries += 1;
        self.digest.update(crate::rows::json(entry)?.as_bytes());
        self.digest.update(b"\n");
        Ok(())
    }

    fn hex(&self) -> String {
        hexadecimal(self.digest.clone().finalize())
    }
}

/// The entries as they come; one that was not closed properly has broken off.
struct Arriving {
    channel: Receiver<Option<Entry>>,
    over: bool,
}

impl Iterator for Arriving {
    type Item = Result<Entry, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        match self.channel.recv() {
            Ok(Some(entry)) => Some(Ok(entry)),
            Ok(None) => {
                self.over = true;
                None
            }
            Err(_) => {
                self.over = true;
                Some(Err(broken("the source broke off")))
            }
        }
    }
}

/// Copies a project into a store that holds none.
pub async fn copy(source: &dyn Store, target: &dyn Store) -> Result<Copied, StoreError> {
    let (send, channel) = sync_channel(UNDER_WAY);
    let restoring = target.restore(Box::new(Arriving { channel, over: false }));
    let meter = Arc::new(Mutex::new(Meter::default()));
    let (metering, sending) = (Arc::clone(&meter), send.clone());
    let visit = move |entry: Entry| {
        metering.lock().unwrap_or_else(PoisonError::into_inner).note(&entry)?;
        // A target that gave up says why itself.
        sending.send(Some(entry)).map_err(|_| broken("the target gave up"))
    };
    let told = source.history(Box::new(visit)).await;
    if told.is_ok() {
        // Only now it is known that this was all.
        let _ = send.send(None);
    }
    drop(send);
    let restored = restoring.await;
    let seq = match (told, restored) {
        (Ok(origin), Ok(seq)) if origin.seq == seq => seq,
        (Ok(origin), Ok(seq)) => return Err(differs(&format!("it ends at {seq} instead of {}", origin.seq))),
        // The target's own refusal is the cause; a source that stopped because of it only says that.
        (_, Err(error)) | (Err(error), _) => return Err(error),
    };
    let tokens = tokens(source, target).await?;
    let secrets = secrets(source, target).await?;
    let sent = meter.lock().unwrap_or_else(PoisonError::into_inner).hex();
    let (arrived, entries) = digest(target).await?;
    if arrived != sent {
        return Err(differs(&format!("its digest is {arrived} instead of {sent}")));
    }
    if let Some(finding) = target.verify().await?.first() {
        return Err(differs(finding));
    }
    Ok(Copied { seq, entries, tokens, secrets, digest: sent })
}

/// The digest of a store's history, and how many entries it has.
async fn digest(store: &dyn Store) -> Result<(String, u64), StoreError> {
    let meter = Arc::new(Mutex::new(Meter::default()));
    let metering = Arc::clone(&meter);
    let visit = move |entry: Entry| metering.lock().unwrap_or_else(PoisonError::into_inner).note(&entry);
    store.history(Box::new(visit)).await?;
    let meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((meter.hex(), meter.entries))
}

/// Credentials are no history, but whoever has one wants to go on using it.
async fn tokens(source: &dyn Store, target: &dyn Store) -> Result<u64, StoreError> {
    let tokens = source.documents(Shelf::Tokens, String::new()).await?;
    let count = tokens.len() as u64;
    for (key, value) in tokens {
        target.place(Shelf::Tokens, key, Some(value), Expect::Anything).await?;
    }
    Ok(count)
}

/// Secret answers that no engine has been given yet.
async fn secrets(source: &dyn Store, target: &dyn Store) -> Result<u64, StoreError> {
    let mut count = 0;
    let filter = QuestionFilter::Only(QuestionStatus::Answered);
    let mut page = QuestionPage { feature: None, filter, after: None, limit: 1_000 };
    loop {
        let questions = source.questions(page.clone()).await?;
        let Some(last) = questions.last() else { return Ok(count) };
        page.after = Some((last.created_at, last.id.clone()));
        for question in questions.iter().filter(|question| question.asked.spec.is_some()) {
            if let Some(answer) = source.reveal(question.id.clone()).await? {
                target.entrust(question.id.clone(), answer).await?;
                count += 1;
            }
        }
    }
}

fn broken(cause: &str) -> StoreError {
    StoreError::Damaged { place: "copy".into(), cause: cause.into() }
}

fn differs(cause: &str) -> StoreError {
    StoreError::Damaged { place: "the copy differs from the original".into(), cause: cause.into() }
}
