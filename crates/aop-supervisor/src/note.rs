//! Notes of `aop send`: a word for a role's next turn. It answers no question and stops nothing. A note lies under the
//! name of its operation, so that the same sending leaves one; what its sender was told stays there when it has been read.

use crate::phase::kernel_role;
use aop_kernel::Refusal;
use aop_kernel::ids::{FeatureId, OperationId};
use aop_kernel::time::Timestamp;
use aop_store::{Expect, Shelf, Store};
use aop_turn::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// What it says.
    pub text: String,
    /// Whose it is.
    pub from: String,
    /// Since when it lies there.
    pub at: Timestamp,
}

/// What the sender of a note was told, if one was left under this operation before.
pub async fn sent_note(
    store: &dyn Store,
    feature: &FeatureId,
    role: Option<Role>,
    operation: &OperationId,
) -> Result<Option<Value>, Refusal> {
    let document = store.document(Shelf::Notes, key(feature, role, operation)).await?;
    Ok(document.as_ref().and_then(|document| document.get(REPLY)).cloned())
}

/// Leaves a note for a role, or for whoever is next. What its sender is told: `reply`, or what was told under this
/// operation before; then nothing is left again.
pub async fn leave_note(
    store: &dyn Store,
    feature: &FeatureId,
    role: Option<Role>,
    operation: &OperationId,
    note: &Note,
    reply: Value,
) -> Result<Value, Refusal> {
    let mut document = json!(note);
    document[REPLY] = reply.clone();
    let key = key(feature, role, operation);
    if store.place(Shelf::Notes, key, Some(document), Expect::Absent).await? {
        return Ok(reply);
    }
    Ok(sent_note(store, feature, role, operation).await?.unwrap_or(reply))
}

/// Where a note says what its sender was told.
const REPLY: &str = "reply";

/// The notes that a role's turn is given, oldest first, with their keys.
pub(crate) async fn notes_for(
    store: &dyn Store,
    feature: &FeatureId,
    role: Role,
) -> Result<Vec<(String, Note)>, Refusal> {
    let mut found = Vec::new();
    for whose in [Some(role), None] {
        found.extend(store.documents(Shelf::Notes, prefix(feature, whose)).await?);
    }
    let mut notes: Vec<(String, Note)> = found
        .into_iter()
        .filter_map(|(key, value)| Some((key, serde_json::from_value(value).ok()?)))
        .collect();
    notes.sort_by_key(|(_, note)| note.at);
    Ok(notes)
}

/// How many notes for a feature no turn has read, whoever they are for.
pub(crate) async fn count_unread(store: &dyn Store, feature: &FeatureId) -> Result<usize, Refusal> {
    let all = store.documents(Shelf::Notes, format!("{feature}/")).await?;
    Ok(all.into_iter().filter(|(_, value)| serde_json::from_value::<Note>(value.clone()).is_ok()).count())
}

/// Takes away notes that a turn was given, all but what their senders were told.
pub(crate) async fn forget_notes(store: &dyn Store, keys: &[String]) -> Result<(), Refusal> {
    for key in keys {
        let note = store.document(Shelf::Notes, key.clone()).await?;
        let left = note.as_ref().and_then(|note| note.get(REPLY)).map(|reply| json!({REPLY: reply}));
        store.place(Shelf::Notes, key.clone(), left, Expect::Anything).await?;
    }
    Ok(())
}

fn key(feature: &FeatureId, role: Option<Role>, operation: &OperationId) -> String {
    format!("{}{operation}", prefix(feature, role))
}

fn prefix(feature: &FeatureId, role: Option<Role>) -> String {
    format!("{feature}/{}/", role.map_or("any", |role| kernel_role(role).as_str()))
}
