//! The files below `.aop/features/`: made from the store after a commit, for people and scripts to read, and
//! never read back as truth.
//!
//! `.aop/projected` holds the last event that all files show. Whoever writes next starts from there, so a
//! crash between a commit and its files is mended by the next command. One process projects at a time and
//! from a fresh snapshot, so an older file never lands on a newer one.
//!
//! A long index is the one file that may be left: it lists every feature there ever was, and is written once a second at
//! most. `.aop/index.owed` then says that it is behind, until somebody has written it: whoever writes next, after that
//! second, or the process that left it, where that stays.

mod background;
mod files;
mod render;

use crate::error::StoreError;
use crate::fault::crash_point;
use crate::port::{FeaturePage, Store};
use aop_kernel::feature::FeatureRecord;
use aop_kernel::ids::{FeatureId, QuestionId};
use aop_kernel::status::Held;
pub use background::Files;
use files::{read_number, remove, try_lock_for, write_atomically};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A long index is not written more often than this.
const INDEX_PERIOD: Duration = Duration::from_secs(1);
/// Up to so many bytes, which are about a thousand features, it is written every time: it costs nothing and is never
/// behind.
const SHORT_INDEX: u64 = 512 << 10;
/// How long to wait for another process that is writing files.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why a file could not be brought up to date. The operation it belongs to stands all the same.
#[derive(Debug, thiserror::Error)]
pub enum ProjectionError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file could not be written.
    #[error("{}: {cause}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// Another process has been writing files for too long.
    #[error("another process is still writing the files below .aop/features/")]
    Busy,
}

/// Where a pass begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begin {
    /// Behind the last event that all files show.
    AtMark,
    /// With the first event.
    Anew,
}

/// Writes the files of one project.
#[derive(Debug, Clone)]
pub struct Projector {
    dir: PathBuf,
    /// The clock that files are dated by.
    now: fn() -> SystemTime,
}

impl Projector {
    /// For this `.aop` folder.
    pub fn new(dir: &Path) -> Self {
        Projector { dir: dir.to_owned(), now: SystemTime::now }
    }

    /// The same by another clock.
    pub fn with_clock(self, now: fn() -> SystemTime) -> Self {
        Projector { now, ..self }
    }

    /// Brings the files of every feature that changed up to date, and the index. One that cannot be written holds up
    /// no other; the first error is returned after all have been tried, and the next call starts there again. A long index
    /// that was written just now is left for the time that comes back; a process that stays calls again after it.
    pub async fn catch_up(&self, store: &dyn Store) -> Result<Option<Duration>, ProjectionError> {
        self.pass(store, Begin::AtMark, Projector::index_rests).await.map(|(_, left)| left)
    }

    /// The same for a process that stayed and ends: it leaves nothing.
    pub async fn finish(&self, store: &dyn Store) -> Result<(), ProjectionError> {
        self.pass(store, Begin::AtMark, |_| None).await.map(drop)
    }

    /// Writes every file anew; for how many features.
    pub async fn rebuild(&self, store: &dyn Store) -> Result<usize, ProjectionError> {
        self.pass(store, Begin::Anew, |_| None).await.map(|(features, _)| features)
    }

    /// How many features were written, and how long the index is left.
    async fn pass(
        &self,
        store: &dyn Store,
        begin: Begin,
        rests: fn(&Projector) -> Option<Duration>,
    ) -> Result<(usize, Option<Duration>), ProjectionError> {
        let _lock = try_lock_for(&self.dir.join("projections.lock"), PATIENCE)?;
        let watermark = self.dir.join("projected");
        if begin == Begin::Anew {
            // Not before the lock is ours: another process that is writing would put it back.
            remove(&watermark)?;
        }
        let done = read_number(&watermark);
        let (mut changed, last) = store.changed_since(done).await?;
        if last < done {
            // The mark is of another history: the database was made anew or came from a backup.
            (changed, _) = store.changed_since(0).await?;
        }
        let mut written = Ok(());
        for (id, first) in &changed {
            written = written.and(self.write_feature(store, id, *first, begin).await);
        }
        let mut left = None;
        if begin == Begin::Anew || !changed.is_empty() || self.owed().exists() || !self.index().exists() {
            left = rests(self);
            written = written.and(match left {
                None => self.write_index(store).await,
                Some(_) => self.owe_index(),
            });
        }
        written?;
        if last != done {
            write_atomically(&self.dir, &watermark, last.to_string().as_bytes())?;
        }
        Ok((changed.len(), left))
    }

    /// The files that are missing or differ from what the store would write, and answers that nobody gave.
    pub async fn stale(&self, store: &dyn Store) -> Result<Vec<PathBuf>, ProjectionError> {
        let (features, last) = store.changed_since(0).await?;
        let mut stale = Vec::new();
        for (id, first) in features {
            let mut known = HashSet::new();
            for (path, content) in self.files_of(store, &id, first).await? {
                if differs(&path, &content) {
                    stale.push(path.clone());
                }
                known.insert(path);
            }
            stale.extend(self.strays(store, &id, &known).await?);
        }
        // The index is written as readers see the features. While something is due and not yet committed, that
        // depends on the moment, and a difference says nothing.
        let now = store.now().await?;
        let settled = store.next_deadline().await?.is_none_or(|deadline| deadline > now);
        // Nothing is written before the first event.
        let written = last > 0 || self.index().exists();
        // Whoever writes next writes it, too.
        let left = self.owed().exists() && self.index().exists();
        if written && settled && !left && differs(&self.index(), &render::index(&listed(store).await?)) {
            stale.push(self.index());
        }
        Ok(stale)
    }

    /// Files that stand where answers do, for questions of no such answer: a reader would take one for a person's word.
    async fn strays(
        &self,
        store: &dyn Store,
        id: &FeatureId,
        known: &HashSet<PathBuf>,
    ) -> Result<Vec<PathBuf>, ProjectionError> {
        let answers = self.dir.join("features").join(id.as_str()).join("answers");
        let mut strays = Vec::new();
        // Where there is no such folder there is nothing in it.
        for entry in fs::read_dir(answers).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let named = name.to_str().and_then(|name| name.strip_suffix(".json"));
            let Some(question) = named.and_then(|named| QuestionId::parse(named).ok()) else { continue };
            if known.contains(&entry.path()) {
                continue;
            }
            // It may have been answered since the files were looked at.
            let found = store.question(question).await?.filter(|found| found.feature_id == *id);
            if found.as_ref().and_then(render::answer).is_none() {
                strays.push(entry.path());
            }
        }
        strays.sort();
        Ok(strays)
    }

    async fn write_feature(
        &self,
        store: &dyn Store,
        id: &FeatureId,
        since: u64,
        begin: Begin,
    ) -> Result<(), ProjectionError> {
        // One that cannot be written keeps none of the others back.
        let (mut known, mut written) = (HashSet::new(), Ok(()));
        for (path, content) in self.files_of(store, id, since).await? {
            written = written.and(write_atomically(&self.dir, &path, content.as_bytes()));
            crash_point("mid_projection");
            known.insert(path);
        }
        if begin == Begin::Anew {
            for stray in self.strays(store, id, &known).await? {
                written = written.and(remove(&stray));
            }
        }
        written
    }

    /// Paths and contents of a feature's files.
    async fn files_of(
        &self,
        store: &dyn Store,
        id: &FeatureId,
        since: u64,
    ) -> Result<Vec<(PathBuf, String)>, ProjectionError> {
        let Some(files) = store.feature_files(id.clone(), since).await? else { return Ok(Vec::new()) };
        let dir = self.dir.join("features").join(id.as_str());
        let mut list = vec![
            (dir.join("questions.json"), render::questions(&files)),
            (dir.join("decisions.md"), render::decisions(&files)),
        ];
        list.extend(files.spec.as_ref().map(|spec| (dir.join("spec.md"), spec.clone())));
        for question in &files.forms {
            let path = dir.join("answers").join(format!("{}.json", question.id));
            list.extend(render::answer(question).map(|content| (path, content)));
        }
        // Last, because its version says that the others are at least as new.
        list.push((dir.join("state.md"), render::state(&files)));
        Ok(list)
    }

    async fn write_index(&self, store: &dyn Store) -> Result<(), ProjectionError> {
        let content = render::index(&listed(store).await?);
        write_atomically(&self.dir, &self.index(), content.as_bytes())?;
        remove(&self.owed())
    }

    /// Says that the index is behind, before the mark says that all files are up to date.
    fn owe_index(&self) -> Result<(), ProjectionError> {
        if self.owed().exists() { Ok(()) } else { write_atomically(&self.dir, &self.owed(), b"") }
    }

    /// How long an index that is long and fresh is left alone.
    fn index_rests(&self) -> Option<Duration> {
        let there = fs::metadata(self.index()).ok().filter(|there| there.len() > SHORT_INDEX)?;
        let age = (self.now)().duration_since(there.modified().ok()?).ok()?;
        INDEX_PERIOD.checked_sub(age).filter(|rest| !rest.is_zero())
    }

    fn owed(&self) -> PathBuf {
        self.dir.join("index.owed")
    }

    fn index(&self) -> PathBuf {
        self.dir.join("features").join("index.json")
    }
}

/// The features that the index lists.
async fn listed(store: &dyn Store) -> Result<Vec<FeatureRecord>, ProjectionError> {
    let features = store.features(FeaturePage::default()).await?;
    Ok(features.iter().map(|feature| feature.record(Held::No)).collect())
}

/// Whether the file is missing or says something else.
fn differs(path: &Path, content: &str) -> bool {
    crate::plain::read_file(path).ok().as_deref() != Some(content.as_bytes())
}
