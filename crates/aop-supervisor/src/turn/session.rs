//! Engine sessions as assignments in the store: one per feature and role, kept while the feature is parked.

use crate::phase::kernel_role;
use crate::runner::{Context, Stop};
use aop_engine::SessionRef;
use aop_kernel::Refusal;
use aop_kernel::ids::FeatureId;
use aop_store::{Shelf, Store};
use aop_turn::{Engine, Role};
use serde_json::Value;
use std::path::PathBuf;

/// The key of a session.
pub(super) fn key(feature: &FeatureId, role: Role) -> String {
    format!("{feature}/{}", kernel_role(role))
}

/// The session that a role of a feature has, if it has one.
pub async fn session_of(
    store: &dyn Store,
    feature: &FeatureId,
    role: Role,
) -> Result<Option<SessionRef>, Refusal> {
    let document = store.document(Shelf::Sessions, key(feature, role)).await?;
    Ok(document.as_ref().and_then(read))
}

pub(super) async fn load(
    context: &Context,
    feature: &FeatureId,
    role: Role,
) -> Result<Option<SessionRef>, Stop> {
    Ok(session_of(context.store(), feature, role).await?)
}

fn read(document: &Value) -> Option<SessionRef> {
    Some(SessionRef {
        engine: Engine::parse(document["engine"].as_str()?)?,
        session: document["session"].as_str()?.to_owned(),
        cwd: PathBuf::from(document["cwd"].as_str()?),
        version: document["version"].as_str().map(str::to_owned),
    })
}
