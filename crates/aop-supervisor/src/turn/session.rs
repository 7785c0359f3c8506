//! Engine sessions as assignments in the store: one per feature and role, kept while the feature is parked. Each says
//! which runner has it, because engines keep their conversations in files; so does the worktree of a feature.

use crate::phase::kernel_role;
use crate::runner::{Context, Stop};
use aop_engine::{SessionRef, capabilities};
use aop_kernel::Refusal;
use aop_kernel::ids::FeatureId;
use aop_store::{Shelf, Store};
use aop_turn::{Engine, Role};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A session, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) session: SessionRef,
    /// The runner that has it; none in a store that knows no runners.
    pub(crate) runner: Option<String>,
}

impl Kept {
    pub(super) fn document(session: &SessionRef, runner: Option<&str>) -> Value {
        let mut document = json!(session);
        if let Some(runner) = runner {
            document["runner"] = json!(runner);
        }
        document
    }

    pub(crate) fn read(document: &Value) -> Option<Self> {
        let session = SessionRef {
            engine: Engine::parse(document["engine"].as_str()?)?,
            session: document["session"].as_str()?.to_owned(),
            cwd: PathBuf::from(document["cwd"].as_str()?),
            version: document["version"].as_str().map(str::to_owned),
        };
        Some(Kept { session, runner: document["runner"].as_str().map(str::to_owned) })
    }

    /// Whether a conversation can go on wherever its feature does.
    pub(crate) fn travels(&self) -> bool {
        capabilities(self.session.engine).session_travels
    }

    /// Whether the session can go on in this folder.
    pub(crate) fn is_here(&self, runner: Option<&str>, root: &Path) -> bool {
        match &self.runner {
            Some(whose) => self.travels() || Some(whose.as_str()) == runner,
            // Made by a run that was no runner: it is where its files are.
            None => runner.is_none() || self.session.cwd.starts_with(root),
        }
    }
}

/// The key of a session.
pub(crate) fn key(feature: &FeatureId, role: Role) -> String {
    format!("{feature}/{}", kernel_role(role))
}

/// The key of the worktree.
pub(crate) fn worktree_key(feature: &FeatureId) -> String {
    format!("{feature}/worktree")
}

/// The session that a role of a feature has, if it has one.
pub async fn session_of(
    store: &dyn Store,
    feature: &FeatureId,
    role: Role,
) -> Result<Option<SessionRef>, Refusal> {
    let document = store.document(Shelf::Sessions, key(feature, role)).await?;
    Ok(document.as_ref().and_then(Kept::read).map(|kept| kept.session))
}

pub(super) async fn load(context: &Context, feature: &FeatureId, role: Role) -> Result<Option<Kept>, Stop> {
    let document = context.store().document(Shelf::Sessions, key(feature, role)).await?;
    Ok(document.as_ref().and_then(Kept::read))
}
