//! Notes of `aop send`: a word for a role's next turn. It answers no question and stops nothing.

use crate::phase::kernel_role;
use aop_kernel::Refusal;
use aop_kernel::ids::FeatureId;
use aop_kernel::time::Timestamp;
use aop_store::{Expect, Shelf, Store};
use aop_turn::Role;
use serde::{Deserialize, Serialize};
use serde_json::json;

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

/// Leaves a note for a role, or for whoever is next. The key it lies under.
pub async fn leave_note(
    store: &dyn Store,
    feature: &FeatureId,
    role: Option<Role>,
    note: &Note,
) -> Result<String, Refusal> {
    let key = format!("{}{}", prefix(feature, role), ulid::Ulid::generate());
    store.place(Shelf::Notes, key.clone(), Some(json!(note)), Expect::Absent).await?;
    Ok(key)
}

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

/// Takes away notes that a turn was given.
pub(crate) async fn forget_notes(store: &dyn Store, keys: &[String]) -> Result<(), Refusal> {
    for key in keys {
        store.place(Shelf::Notes, key.clone(), None, Expect::Anything).await?;
    }
    Ok(())
}

fn prefix(feature: &FeatureId, role: Option<Role>) -> String {
    format!("{feature}/{}/", role.map_or("any", |role| kernel_role(role).as_str()))
}
