//! `aop merge`: the branch of a checked feature into the branch that the project is on. The merge is made as a
//! commit that nothing points at; then the store takes the feature as merged, or refuses; only then the branch
//! moves. So a refusal of either side changes nothing, and what was interrupted after the commit can be finished.

use crate::SURFACE;
use crate::git::{Git, GitError};
use crate::runners::known_runner;
use crate::turn::worktree_key;
use aop_kernel::feature::Feature;
use aop_kernel::ids::FeatureId;
use aop_kernel::lifecycle::{Action, Command, Merge, feature_not_found, permit};
use aop_kernel::status::Status;
use aop_kernel::tools::runner_request;
use aop_kernel::work::MergeRecord;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::{Service, Shelf, crash_point};
use std::path::Path;

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
    operation: &str,
) -> Result<Merged, Refusal> {
    let git = Git::new(root);
    let feature = service.store.feature(id.clone()).await?.ok_or_else(|| feature_not_found(id))?;
    let merged = feature.work.merged.clone().filter(|_| feature.status == Status::Merged);
    if merged.is_none() {
        // An open question comes before everything that git may have to say.
        permit(&feature, Action::Merge)?;
    }
    git.check_repository().await?;
    if let Some(MergeRecord { commit, merge_commit, into }) = merged {
        // What was interrupted is finished.
        let command = Command::Merge(Merge { feature_id: id.clone(), commit, merge_commit, into });
        let receipt = service.submit(runner_request(command, operation, SURFACE)?).await?;
        return finish(&git, &feature, receipt.envelope).await;
    }
    let Some(commit) = git.branch_head(id).await else {
        ready(&feature)?;
        return Err(no_work(service, &feature).await?);
    };
    if feature.work.checked.as_ref() != Some(&commit) && is_elsewhere(service, id, root).await? {
        return Err(no_work(service, &feature).await?);
    }
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
        .hint("commit or stash them, then merge again; nothing was changed")
        .fact("files", dirty));
    }
    // Said before the merge is tried: who reads "conflict" for a feature that was never ready is led astray.
    ready(&feature)?;
    let message = format!("Merge feature {id}: {}", feature.title);
    let merge_commit =
        git.prepare_merge(&commit, &message).await.map_err(|error| conflict(&feature, &into, error))?;
    git.can_move_to(&merge_commit).await.map_err(|error| in_the_way(&into, &error))?;
    let command = Command::Merge(Merge { feature_id: id.clone(), commit, merge_commit, into });
    let receipt = service.submit(runner_request(command, operation, SURFACE)?).await?;
    crash_point("merge_committed");
    let feature = service.store.feature(id.clone()).await?.unwrap_or(feature);
    finish(&git, &feature, receipt.envelope).await
}

/// Files of the project that git does not know stand where the feature has some of its own.
fn in_the_way(into: &str, error: &GitError) -> Refusal {
    let said = match error {
        GitError::Failed { said, .. } => said.trim().replace('\n', ", "),
        other => other.to_string(),
    };
    Refusal::new(ErrorCode::VersionConflict, format!("{into} cannot be moved to the merge: {said}"))
        .hint("move these files away or commit them, then merge again; nothing was changed")
}

/// Why there is nothing to merge here: nobody has worked on it, or the work is elsewhere.
async fn no_work(service: &Service, feature: &Feature) -> Result<Refusal, Refusal> {
    let (id, branch) = (&feature.id, Git::branch(&feature.id));
    let refused = |message: String| Refusal::new(ErrorCode::UnsupportedOperation, message);
    let home = service.store.document(Shelf::Sessions, worktree_key(id)).await?;
    let home = home.as_ref().and_then(|home| Some((home["host"].as_str()?, home["folder"].as_str()?)));
    Ok(match home {
        None => refused(format!("feature '{id}' has no branch {branch}, so there is nothing to merge")).hint(
            "bring the branch back, or send the feature to building: it gets one when `aop run` works on it",
        ),
        Some((host, folder)) => refused(format!(
            "the work on feature '{id}' is not on a branch {branch} here: it is in {folder} on {host}"
        ))
        .hint(format!(
            "merge it there, or bring the branch here with `git fetch {host}:{folder} {branch}:{branch}`"
        )),
    })
}

/// Whether the work on a feature is in another folder than this.
async fn is_elsewhere(service: &Service, id: &FeatureId, root: &Path) -> Result<bool, Refusal> {
    let home = service.store.document(Shelf::Sessions, worktree_key(id)).await?;
    let runner = home.as_ref().and_then(|home| home["runner"].as_str());
    Ok(runner.is_some_and(|runner| known_runner(&root.join(".aop")).as_deref() != Some(runner)))
}

fn ready(feature: &Feature) -> Result<(), Refusal> {
    if feature.status == Status::ReadyToMerge {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorCode::InvalidStatusTransition,
        format!("feature '{}' is {}, not ready_to_merge", feature.id, feature.status),
    )
    .hint("let `aop run` bring it there first"))
}

fn conflict(feature: &Feature, into: &str, error: GitError) -> Refusal {
    let (id, branch) = (&feature.id, Git::branch(&feature.id));
    match error {
        GitError::Conflict(files) => Refusal::new(
            ErrorCode::VersionConflict,
            match &files[..] {
                [] => format!("{branch} does not merge into {into} without conflicts"),
                files => format!("{branch} does not merge into {into} without conflicts: {}", files.join(", ")),
            },
        )
        .hint(format!(
            "nothing was changed; resolve it by hand with `cd .aop/worktrees/{id} && git merge {into}` and commit, send \
             the feature back with `aop tool call feature.transition --role human --input '{{\"feature_id\": \"{id}\", \
             \"to\": \"building\", \"operation_id\": \"conflict-{id}-{}\"}}'`, so that it is checked again by `aop run`, \
             then `aop merge --feature-id {id}`",
            feature.version
        ))
        .fact("files", files),
        other => other.into(),
    }
}

/// Moves the branch that was merged into, if that is still to be done, and no other.
async fn finish(git: &Git, feature: &Feature, envelope: Envelope) -> Result<Merged, Refusal> {
    let Some(MergeRecord { merge_commit, into, .. }) = &feature.work.merged else {
        return Err(Refusal::new(ErrorCode::Internal, format!("feature '{}' has no merge", feature.id)));
    };
    if !git.contains("HEAD", merge_commit).await && !git.branch_contains(into, merge_commit).await {
        let stuck = |cause: String| {
            let message = format!("feature '{}' is merged as {merge_commit}, and {cause}", feature.id);
            Refusal::new(ErrorCode::VersionConflict, message)
        };
        let on = git.current_branch().await;
        if on.as_deref() != Some(into) {
            let here = on.map_or("no branch (detached HEAD)".to_owned(), |on| format!("branch {on}"));
            return Err(stuck(format!("{into} does not have it yet, but the project is on {here}")).hint(format!(
                "go there with `git switch {into}`, then `aop merge --feature-id {}`; no branch was moved",
                feature.id
            )));
        }
        git.fast_forward(merge_commit).await.map_err(|error| {
            stuck(format!("{into} could not be moved there: {error}"))
                .hint(format!("bring it in with `git merge {merge_commit}`"))
        })?;
    }
    // The branch keeps the history; the folder is only in the way, unless somebody left something there.
    let left = git.remove_worktree(&feature.id).await.unwrap_or_default();
    Ok(Merged { envelope, left })
}
