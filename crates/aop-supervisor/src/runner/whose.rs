//! Which runner a feature is for. One that nobody has begun is for any runner that has the engine of its next role.
//! From then on it is bound: a session lives in files of the machine that began it, and so does the work on its
//! branch. Only when that runner has been gone for long does another go on, in a new session, and says so.

use super::context::{Context, Stop};
use crate::SURFACE;
use crate::gate::short_digest;
use crate::git::Git;
use crate::phase;
use crate::runners::{Identity, RunnerRecord, millis, runners};
use crate::settings::Worktrees;
use crate::step::Step;
use crate::turn::{Kept, engine_for, session_key, worktree_key};
use aop_kernel::feature::Feature;
use aop_kernel::lifecycle::{AppendLog, Command};
use aop_kernel::own::OwnOperation;
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
use aop_kernel::tools::runner_request;
use aop_store::Shelf;
use aop_turn::{Engine, Role};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Who may take the next step of a feature.
pub(super) enum Whose {
    /// This run.
    Ours,
    /// This run, in place of a runner that is gone.
    OursNow(Gone),
    /// Not this run.
    Left(Left),
}

/// Where finished work is looked for.
#[derive(Clone, Copy)]
enum Where {
    /// On the feature's branch: what was done elsewhere may have come here in part.
    OnBranch,
    /// In the repository: a branch whose history was written anew still has the work.
    Anywhere,
}

/// What a feature is like that was made this run's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    /// As it was.
    AsItWas,
    /// What was committed is not here.
    WorkIsMissing,
}

/// A runner that is gone.
pub(super) struct Gone {
    name: String,
    since: Option<Timestamp>,
}

/// Why a feature is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Left {
    /// Another runner works on it.
    Held,
    /// Its session or its work is with another runner.
    Bound {
        /// Its id, where it has one.
        runner_id: Option<String>,
        name: String,
        /// Since when nobody runs there.
        gone: Option<Timestamp>,
    },
    /// The engine of its next role is not here.
    NoEngine {
        engine: Engine,
        /// Another runner that is at work can take it.
        other: bool,
        /// Its session or its work is here, so that no other runner takes it.
        here: bool,
    },
}

impl Left {
    /// Whether no runner that is at work can do anything for it.
    pub(super) fn is_nobodys(&self) -> bool {
        match self {
            Left::Held => false,
            Left::Bound { gone, .. } => gone.is_some(),
            Left::NoEngine { other, .. } => !other,
        }
    }

    /// What people are told, when they have to be.
    pub(super) fn in_words(&self, away_ms: u64) -> Option<String> {
        match self {
            Left::Bound { name, gone: Some(since), .. } if away_ms > 0 => Some(format!(
                "waits for its runner {name}, gone since {since}; another takes it from {} on",
                since.plus_millis(away_ms)
            )),
            Left::Bound { name, gone: Some(since), .. } => Some(format!(
                "waits for its runner {name}, gone since {since}, and for no other (`aop runners forget` gives it up)"
            )),
            Left::NoEngine { engine, here: true, .. } => {
                Some(format!("waits: its work is in this folder, and {engine} is not installed here"))
            }
            Left::NoEngine { engine, other: false, .. } => {
                Some(format!("waits for a runner that has {engine}; no active runner has it"))
            }
            Left::Held | Left::Bound { gone: None, .. } | Left::NoEngine { .. } => None,
        }
    }

    /// Whether somebody should look at the feature again, now that these are the runners.
    pub(super) fn is_outdated(&self, runners: &[RunnerRecord], now: Timestamp, away_ms: u64) -> bool {
        match self {
            Left::Held => true,
            Left::Bound { runner_id, gone, .. } => {
                let record = runners.iter().find(|record| Some(&record.runner_id) == runner_id.as_ref());
                let known = runner_id.is_none() || record.is_some();
                let seen = record.map_or(*gone, |record| record.gone_since(now));
                !known || seen != *gone || is_away(seen, now, away_ms)
            }
            Left::NoEngine { engine, other, here } => !here && *other != has_it(runners, *engine, now),
        }
    }
}

fn is_away(gone: Option<Timestamp>, now: Timestamp, away_ms: u64) -> bool {
    away_ms > 0 && gone.is_some_and(|since| since.plus_millis(away_ms) <= now)
}

fn has_it(runners: &[RunnerRecord], engine: Engine, now: Timestamp) -> bool {
    runners.iter().any(|record| record.has(engine) && record.gone_since(now).is_none())
}

/// Where the feature is bound to.
enum Home {
    Nowhere,
    Here,
    At(Option<String>),
}

impl Context {
    /// How long a runner is waited for; 0 is for ever.
    pub(super) fn away_ms(&self) -> u64 {
        millis(self.settings.away)
    }

    /// Decides who may take this step.
    pub(super) async fn whose(&self, feature: &Feature, step: &Step) -> Result<Whose, Stop> {
        let Some(me) = &self.lease.runner else { return Ok(Whose::Ours) };
        let prefix = format!("{}/", feature.id);
        let documents: HashMap<String, Value> =
            self.store().documents(Shelf::Sessions, prefix).await?.into_iter().collect();
        let home = self.home(me, feature, &documents);
        let mut gone = None;
        if let Home::At(runner_id) = &home {
            let (now, all) = (self.store().now().await?, runners(self.store()).await?);
            let record = all.iter().find(|record| Some(&record.runner_id) == runner_id.as_ref());
            let (name, since) = match (record, runner_id) {
                (Some(record), _) => (record.name(), record.gone_since(now)),
                // Struck off the list: nobody waits for it.
                (None, Some(id)) => (id.clone(), Some(Timestamp::from_millis(0))),
                (None, None) => ("of an earlier store".to_owned(), Some(feature.updated_at)),
            };
            let forgotten = record.is_none() && runner_id.is_some();
            if !forgotten && !is_away(since, now, self.away_ms()) {
                return Ok(Whose::Left(Left::Bound { runner_id: runner_id.clone(), name, gone: since }));
            }
            gone = Some(Gone { name, since: since.filter(|_| !forgotten) });
        }
        if let Some(engine) = self.engine_of_step(feature, step, &documents)
            && !me.engines.contains(&engine)
        {
            let (now, all) = (self.store().now().await?, runners(self.store()).await?);
            let here = matches!(home, Home::Here);
            let other = !here && has_it(&all, engine, now);
            return Ok(Whose::Left(Left::NoEngine { engine, other, here }));
        }
        Ok(gone.map_or(Whose::Ours, Whose::OursNow))
    }

    fn home(&self, me: &Identity, feature: &Feature, documents: &HashMap<String, Value>) -> Home {
        let session = |role: Role| documents.get(&session_key(&feature.id, role)).and_then(Kept::read);
        let kept = match (feature.status, phase::worker(feature.status)) {
            (Status::Planning, _) => session(Role::Planner).filter(|kept| !kept.travels()),
            (_, Some(role)) => {
                if let Some(worktree) = documents.get(&worktree_key(&feature.id)) {
                    let runner = worktree["runner"].as_str();
                    let is_here = runner == Some(me.id.as_str());
                    return if is_here { Home::Here } else { Home::At(runner.map(str::to_owned)) };
                }
                session(Role::Builder).or_else(|| session(role))
            }
            (_, None) => None,
        };
        match kept {
            None => Home::Nowhere,
            Some(kept) if kept.is_here(Some(&me.id), &self.settings.root) => Home::Here,
            Some(kept) => Home::At(kept.runner),
        }
    }

    /// The engine that the step needs.
    fn engine_of_step(
        &self,
        feature: &Feature,
        step: &Step,
        documents: &HashMap<String, Value>,
    ) -> Option<Engine> {
        let is_bound = match step {
            Step::Turn { reply_to, .. } => reply_to.is_some(),
            Step::Continue(_) => true,
            Step::Leave(_) | Step::Advance | Step::Check(_) | Step::SendBack | Step::Rest => return None,
        };
        let role = phase::worker(feature.status)?;
        let kept = documents.get(&session_key(&feature.id, role)).and_then(Kept::read);
        Some(engine_for(self, role, kept.filter(|kept| self.is_here(kept)).as_ref(), is_bound))
    }

    /// Whether a session can go on in this folder.
    pub(crate) fn is_here(&self, kept: &Kept) -> bool {
        kept.is_here(self.runner_id.as_deref(), &self.settings.root)
    }

    /// Makes a feature that this run holds its own: from now on its work is here. In place of a runner that is gone
    /// the log says that; and work that is finished and not here is found missing, wherever it stayed.
    pub(super) async fn settle(&self, feature: &Feature, gone: Option<Gone>) -> Result<Settled, Stop> {
        let (id, branch) = (&feature.id, Git::branch(&feature.id));
        let is_missing = match (feature.status, feature.work.finished) {
            (Status::Planning, _) => false,
            _ if gone.is_some() && !self.has_branch_of(feature).await => true,
            _ if gone.is_some() => !self.has_work_of(feature, Where::OnBranch).await?,
            (Status::Qa, _) | (Status::Building, Some(_)) => {
                !self.has_branch_of(feature).await || !self.has_work_of(feature, Where::Anywhere).await?
            }
            _ => false,
        };
        let from_here = "the builder begins from what is here";
        let (note, operation) = match (gone, &self.lease.runner) {
            (Some(gone), Some(me)) => {
                let since =
                    gone.since.map_or("was given up".to_owned(), |since| format!("is gone since {since}"));
                let mut note = format!(
                    "its runner {} {since}: it goes on at {}:{} in a new session; work that was not committed to the branch stays there",
                    gone.name,
                    self.lease.info.host,
                    me.folder.display()
                );
                if is_missing {
                    note.push_str(&format!(", and so does the branch {branch}: {from_here}"));
                }
                let epoch = self.fence(id)?.epoch;
                let operation =
                    OwnOperation::Moved.id(format_args!("{id}:{epoch}:{}", short_digest(&note)))?;
                (note, operation)
            }
            _ if is_missing => {
                let note =
                    format!("the work that was done on it is not on the branch {branch} here: {from_here}");
                (note, OwnOperation::Missing.id(format_args!("{id}:{}", feature.version))?)
            }
            _ => return Ok(Settled::AsItWas),
        };
        let command = Command::AppendLog(AppendLog { feature_id: id.clone(), note });
        self.submit(runner_request(command, operation, SURFACE)).await?;
        Ok(if is_missing { Settled::WorkIsMissing } else { Settled::AsItWas })
    }

    /// Writes down that the work on a feature is here.
    pub(super) async fn move_in(&self, feature: &Feature) -> Result<(), Stop> {
        let Some(me) = self.lease.runner.as_ref().filter(|_| feature.status != Status::Planning) else {
            return Ok(());
        };
        let key = worktree_key(&feature.id);
        let home = json!({"runner": me.id, "host": self.lease.info.host, "folder": me.folder});
        if self.store().document(Shelf::Sessions, key.clone()).await?.as_ref() != Some(&home) {
            self.place(&feature.id, Shelf::Sessions, key, Some(home)).await?;
        }
        Ok(())
    }

    async fn has_branch_of(&self, feature: &Feature) -> bool {
        self.settings.worktrees == Worktrees::Plain || self.git.branch_head(&feature.id).await.is_some()
    }

    /// Whether what the workers before have committed is here.
    async fn has_work_of(&self, feature: &Feature, place: Where) -> Result<bool, Stop> {
        // Each goes on from what the one before has done; what was committed in an earlier round may have been lost since
        // and done again.
        let last: &[Role] = match (feature.status, feature.work.finished) {
            (Status::Qa, Some(_)) => &[Role::Qa],
            (Status::Qa, None) | (_, Some(_)) => &[Role::Builder],
            (_, None) => &[Role::Builder, Role::Qa],
        };
        for role in last {
            let key = format!("{}/{}", feature.id, phase::result_name(*role));
            let result = self.store().document(Shelf::Results, key).await?;
            let commit = result.as_ref().and_then(|result| result["commit"].as_str());
            let Some(commit) = commit else { continue };
            let is_here = match place {
                Where::OnBranch => self.git.branch_contains(&Git::branch(&feature.id), commit).await,
                Where::Anywhere => self.git.has(commit).await,
            };
            if !is_here {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
