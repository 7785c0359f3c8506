//! The last look at a branch before it comes into the checkout that the project lives in: also one that was made elsewhere,
//! or by an earlier version, must leave the project's own folder alone.

use crate::git::Git;
use aop_kernel::feature::Feature;
use aop_kernel::lifecycle::send_back;
use aop_kernel::status::Status;
use aop_kernel::{ErrorCode, Refusal};

/// Refuses to move the checkout to a commit that changes anything of a project's own folder.
pub(crate) async fn refuse_reach(
    git: &Git,
    feature: &Feature,
    into: &str,
    commit: &str,
) -> Result<(), Refusal> {
    let Some(reach) = git.reaching(commit).await? else { return Ok(()) };
    let (id, branch, take_away) = (&feature.id, Git::branch(&feature.id), reach.take_away(into));
    let hint = if feature.status == Status::Merged {
        // It is recorded, by an earlier version: its branch gets what was to come, without that.
        format!(
            "no branch was moved; in a worktree of {branch}, `git merge {commit}`, `{take_away}` and commit; then `git merge \
             refs/heads/{branch}` here and `aop merge --feature-id {id}`"
        )
    } else {
        format!(
            "nothing was changed; take it away with `cd .aop/worktrees/{id} && {take_away}` and commit, {}",
            send_back(feature, "reach")
        )
    };
    Err(Refusal::new(ErrorCode::UnsupportedOperation, reach.told(&branch))
        .hint(hint)
        .fact("files", reach.files))
}
