//! `aop merge`: the branch of a checked feature into the branch that the project is on. The merge is made as a
//! commit that is on no branch; then the store takes the feature as merged, or refuses; only then the branch moves. So a
//! refusal of either side changes nothing, and what was interrupted after the commit can be finished, also when the branch
//! has gone on since. One folder merges one feature at a time; where several folders share a project, each has its own
//! branch.

use crate::SURFACE;
use crate::git::{Git, GitError};
use crate::reach::refuse_reach;
use crate::runners::known_runner;
use crate::shown;
use crate::turn::worktree_key;
use aop_engine::AOP_DIR;
use aop_kernel::feature::Feature;
use aop_kernel::ids::{FeatureId, OperationId};
use aop_kernel::lifecycle::{Action, Merge, feature_not_found, permit, send_back};
use aop_kernel::status::Status;
use aop_kernel::tools::merge_request;
use aop_kernel::work::MergeRecord;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::{Service, Shelf, crash_point, open_lock_file};
use std::fs::File;
use std::path::Path;
use std::process::Stdio;

/// What came of a merge.
pub struct Merged {
    /// What the caller is told.
    pub envelope: Envelope,
    /// What is in the feature's worktree and nowhere else; it stays there.
    pub left: Vec<String>,
}

/// Merges.
pub async fn merge(
    service: &Service,
    root: &Path,
    id: &FeatureId,
    operation: OperationId,
) -> Result<Merged, Refusal> {
    let git = Git::new(root).on_behalf_of(id);
    let alone = alone(root).await?;
    let feature = service.store.feature(id.clone()).await?.ok_or_else(|| feature_not_found(id))?;
    let merged = feature.work.merged.clone().filter(|_| feature.status == Status::Merged);
    if merged.is_none() {
        // An open question comes before everything that git may have to say.
        permit(&feature, Action::Merge)?;
    }
    git.check_repository().await?;
    if let Some(MergeRecord { commit, merge_commit, into }) = merged {
        // What was interrupted is finished.
        let merge = Merge { feature_id: id.clone(), commit, merge_commit, into };
        let receipt = service.submit(merge_request(merge, operation, SURFACE)).await?;
        return finish(service, &git, root, &alone, &feature, receipt.envelope, Begun::Before).await;
    }
    let Some(commit) = git.branch_head(id).await else {
        ready(&feature)?;
        return Err(no_work(service, &feature).await?);
    };
    if feature.work.checked.as_ref() != Some(&commit) && is_elsewhere(service, id, root).await? {
        return Err(no_work(service, &feature).await?);
    }
    // Said before all that may be in its way: who puts that in order for a feature that is not ready is led astray.
    ready(&feature)?;
    git.check_idle().await?;
    let Some(into) = git.current_branch().await else {
        return Err(Refusal::new(
            ErrorCode::UnsupportedOperation,
            "the project is on no branch (detached HEAD)",
        )
        .hint("go to the branch that should have the feature: `git switch BRANCH`"));
    };
    let dirty = git.dirty_files().await?;
    if !dirty.is_empty() {
        return Err(Refusal::new(
            ErrorCode::VersionConflict,
            format!("the working tree has changes that are not committed: {}", dirty.join(", ")),
        )
        .hint("commit or stash them (of a submodule: `git submodule update`), then merge again; nothing was changed")
        .fact("files", dirty));
    }
    let merge_commit = match git.prepare_merge(&commit, &message_of(&feature)).await {
        Ok(merge_commit) => merge_commit,
        Err(error) => return Err(conflict(&git, &feature, &into, error).await),
    };
    refuse_reach(&git, &feature, &into, &merge_commit).await?;
    git.check_submodules(id, &merge_commit).await?;
    git.can_move_to(&merge_commit).await.map_err(|error| in_the_way(&into, "nothing was changed", error))?;
    git.keep_prepared(id, &merge_commit).await?;
    let merge = Merge { feature_id: id.clone(), commit, merge_commit, into };
    let receipt = match service.submit(merge_request(merge, operation, SURFACE)).await {
        Err(refusal) if refusal.code != ErrorCode::StoreUnavailable => {
            git.forget_prepared(id).await;
            return Err(refusal);
        }
        other => other?,
    };
    crash_point("merge_committed");
    let feature = service.store.feature(id.clone()).await?.unwrap_or(feature);
    finish(service, &git, root, &alone, &feature, receipt.envelope, Begun::Now).await
}

/// The features that are merged in the store, and not on their branch in this folder: their merge was interrupted.
pub async fn unfinished_merges(service: &Service, root: &Path) -> Result<Vec<FeatureId>, Refusal> {
    let git = Git::new(root);
    let mut unfinished = Vec::new();
    for id in git.prepared_merges().await? {
        let feature = service.store.feature(id.clone()).await?;
        let Some(merged) = feature.and_then(|feature| feature.work.merged) else { continue };
        if !git.branch_contains(git.branch_meant(&merged.into).await, &merged.merge_commit).await {
            unfinished.push(id);
        }
    }
    Ok(unfinished)
}

/// Waits until nobody else merges in this folder: a merge that is prepared on a head which another one moves is in the
/// store and not on the branch.
async fn alone(root: &Path) -> Result<File, Refusal> {
    let path = root.join(AOP_DIR).join("merge.lock");
    let shown = path.display().to_string();
    let lock = move || {
        let file = open_lock_file(&path)?;
        file.lock().map(|()| file)
    };
    let locked = tokio::task::spawn_blocking(lock).await.unwrap_or_else(|error| Err(error.into()));
    locked.map_err(|error| {
        Refusal::new(ErrorCode::Internal, format!("{shown} cannot be locked: {error}"))
            .hint("check the permissions of that file and its folder")
    })
}

fn message_of(feature: &Feature) -> String {
    format!("Merge feature {}: {}", feature.id, feature.title)
}

/// Files of the project stand where the feature has some of its own.
fn in_the_way(into: &str, so_far: &str, error: GitError) -> Refusal {
    let cannot = |said: &str| {
        Refusal::new(ErrorCode::VersionConflict, format!("{into} cannot be moved to the merge: {said}"))
    };
    match error {
        GitError::InTheWay(files) => cannot(&GitError::InTheWay(files.clone()).to_string())
            .hint(format!("move them away, then merge again; {so_far}"))
            .fact("files", files),
        GitError::Failed { said, .. } => cannot(&said.trim().replace('\n', ", "))
            .hint(format!("move these files away or commit them, then merge again; {so_far}")),
        other => other.into(),
    }
}

/// Why there is nothing to merge here: nobody has worked on it, or the work is elsewhere.
async fn no_work(service: &Service, feature: &Feature) -> Result<Refusal, Refusal> {
    let (id, branch) = (&feature.id, Git::branch(&feature.id));
    let refused = |message: String| Refusal::new(ErrorCode::UnsupportedOperation, message);
    let home = service.store.document(Shelf::Sessions, worktree_key(id)).await?;
    let home = home.as_ref().and_then(|home| Some((home["host"].as_str()?, home["folder"].as_str()?)));
    Ok(match home {
        None => refused(format!("feature '{id}' has no branch {branch}, so there is nothing to merge"))
            .hint(format!("bring the branch back, or have it built again: {}", send_back(feature, "branch"))),
        Some((host, folder)) => refused(format!(
            "the work on feature '{id}' is not on a branch {branch} here: it is in {folder} on {host}"
        ))
        .hint(format!(
            "merge it there, or bring the branch here with `git fetch {} refs/heads/{branch}:refs/heads/{branch}`",
            shown::word(format!("{host}:{folder}"))
        )),
    })
}

/// Whether the work on a feature is in another folder than this.
async fn is_elsewhere(service: &Service, id: &FeatureId, root: &Path) -> Result<bool, Refusal> {
    let home = service.store.document(Shelf::Sessions, worktree_key(id)).await?;
    let runner = home.as_ref().and_then(|home| home["runner"].as_str());
    Ok(runner.is_some_and(|runner| known_runner(&root.join(AOP_DIR)).as_deref() != Some(runner)))
}

fn ready(feature: &Feature) -> Result<(), Refusal> {
    if feature.status == Status::ReadyToMerge {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorCode::InvalidStatusTransition,
        format!("feature '{}' is {}, not ready_to_merge", feature.id, feature.status),
    )
    .hint(match feature.status {
        Status::Blocked => {
            format!("fix what blocks it, then `aop retry --feature-id {}` and `aop run`", feature.id)
        }
        Status::Merged | Status::Failed => "it is over; create a new feature if the work goes on".to_owned(),
        _ => "let `aop run` bring it there first".to_owned(),
    }))
}

async fn conflict(git: &Git, feature: &Feature, into: &str, error: GitError) -> Refusal {
    let (id, branch) = (&feature.id, Git::branch(&feature.id));
    match error {
        GitError::Conflict(files) => Refusal::new(
            ErrorCode::VersionConflict,
            match &files[..] {
                [] => format!("{branch} does not merge into {into} without conflicts"),
                files => format!("{branch} does not merge into {into} without conflicts: {}", shown::names(files)),
            },
        )
        .hint(format!(
            "nothing was changed; resolve it by hand with `cd .aop/worktrees/{id} && git merge {}` and commit, {}",
            shown::word(git.unmistakable(into).await),
            send_back(feature, "conflict")
        ))
        .fact("files", files),
        other => other.into(),
    }
}

/// When a merge has begun.
#[derive(Clone, Copy, PartialEq)]
enum Begun {
    /// With this call: no git has written anything of it yet.
    Now,
    /// With an earlier one, which may have been cut off while git wrote.
    Before,
}

/// Moves the branch that was merged into, if that is still to be done, and no other.
async fn finish(
    service: &Service,
    git: &Git,
    root: &Path,
    alone: &File,
    feature: &Feature,
    envelope: Envelope,
    begun: Begun,
) -> Result<Merged, Refusal> {
    let Some(merged) = &feature.work.merged else {
        return Err(Refusal::new(ErrorCode::Internal, format!("feature '{}' has no merge", feature.id)));
    };
    let into = git.branch_meant(&merged.into).await.to_owned();
    let merged = &MergeRecord { into, ..merged.clone() };
    let MergeRecord { commit, merge_commit, into } = merged;
    let is_here = git.has(merge_commit).await;
    // What was lost before it was on the branch is there as a merge of the same work.
    let is_in = if is_here {
        git.contains("HEAD", merge_commit).await || git.branch_contains(into, merge_commit).await
    } else {
        git.branch_contains(into, commit).await
    };
    if !is_in {
        let is_work_here = git.has(commit).await && !is_elsewhere(service, &feature.id, root).await?;
        let source = match (is_here, is_work_here) {
            (true, _) => Some(merge_commit),
            (false, true) => Some(commit),
            (false, false) => None,
        };
        bring_in(git, alone, feature, merged, source, begun).await?;
    }
    git.forget_prepared(&feature.id).await;
    // The branch keeps the history; the folder is only in the way, unless somebody left something there.
    let left = git.remove_worktree(&feature.id).await.unwrap_or_default();
    Ok(Merged { envelope, left })
}

/// Brings into the branch what the store has as merged: the prepared merge, or the work itself where that is gone. A branch
/// that has gone on since then gets a merge of its own.
async fn bring_in(
    git: &Git,
    alone: &File,
    feature: &Feature,
    merged: &MergeRecord,
    source: Option<&String>,
    begun: Begun,
) -> Result<(), Refusal> {
    let (id, MergeRecord { commit, merge_commit, into }) = (&feature.id, merged);
    let stuck = |cause: String| {
        let message = format!("feature '{id}' is merged as {merge_commit}, and {cause}");
        Refusal::new(ErrorCode::VersionConflict, message)
    };
    let Some(source) = source else {
        return Err(stuck(format!("neither that nor its work {commit} is in this repository")).hint(format!(
            "bring {into} here from the repository that it was merged in, as in `git pull REMOTE {}`; no branch was moved",
            // That one may have a tag of this name, and would give it instead.
            shown::word(format!("refs/heads/{into}"))
        )));
    };
    git.check_idle().await?;
    let on = git.current_branch().await;
    if on.as_deref() != Some(into) {
        let here = on.map_or("no branch (detached HEAD)".to_owned(), |on| format!("branch {on}"));
        return Err(stuck(format!("{into} does not have it yet, but the project is on {here}")).hint(
            format!(
                "go there with `git switch {}`, then `aop merge --feature-id {id}`; no branch was moved",
                shown::word(into)
            ),
        ));
    }
    let next = if source == merge_commit && git.contains(merge_commit, "HEAD").await {
        merge_commit.clone()
    } else {
        git.prepare_merge(source, &message_of(feature)).await.map_err(|error| match error {
            GitError::Conflict(files) => stuck(format!(
                "{into} has gone on since and does not merge with it without conflicts: {}",
                shown::names(&files)
            ))
            .hint(format!(
                "no branch was moved; merge it by hand with `git merge {source}`, resolve and commit, then `aop merge --feature-id {id}`"
            ))
            .fact("files", files),
            other => other.into(),
        })?
    };
    refuse_reach(git, feature, into, &next).await?;
    let in_the_way = |error| in_the_way(into, "no branch was moved", error);
    let in_doubt = match begun {
        Begun::Now => Vec::new(),
        Begun::Before => git.clear_torn(&next).await.map_err(in_the_way)?,
    };
    if !in_doubt.is_empty() {
        let named: Vec<String> = in_doubt.iter().map(|file| pathspec(file)).collect();
        return Err(stuck(format!(
            "these files are neither as {into} has them nor as the merge does: {}",
            shown::names(&in_doubt)
        ))
        .hint(format!(
            "no branch was moved; `git stash push --all -- {}` puts them aside, `aop merge --feature-id {id}` goes on, and `git stash show -p --include-untracked` shows what they were",
            named.join(" ")
        ))
        .fact("files", in_doubt));
    }
    git.can_move_to(&next).await.map_err(in_the_way)?;
    // It holds the lock for as long as it lives: whoever comes after a kill waits for it.
    let hand = alone.try_clone().map_or_else(|_| Stdio::null(), Stdio::from);
    git.fast_forward(into, &next, hand).await.map_err(|error| {
        stuck(format!("{into} could not be moved there: {error}"))
            .hint(format!("when that is fixed, `aop merge --feature-id {id}` goes on; no branch was moved"))
    })
}

/// A file for the command line of git, from the top of the repository.
fn pathspec(file: &str) -> String {
    shown::word(format!(":(top,literal){file}"))
}
