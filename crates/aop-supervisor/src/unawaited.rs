//! Questions that a check asks and does not wait for. The feature waits for them, and then the check runs again, from the
//! start, and has to find the answer. One that asks the same anew each time would never come to an end: a person has to
//! look at its command.

use crate::gate::short_digest;
use crate::process::Ending;
use crate::runner::{Context, Stop};
use aop_kernel::feature::Feature;
use aop_kernel::role::Role;
use aop_kernel::work::CheckName;
use aop_kernel::{ErrorCode, Refusal};
use aop_store::Shelf;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::HashSet;

/// So many questions a check may leave behind, however different they are, before it has come to an end.
const MOST: usize = 8;

/// What a check has left behind since it last came to an end, each by the digest of who asked what.
#[derive(Debug, Serialize, Deserialize)]
struct Unawaited {
    name: CheckName,
    asked: Vec<String>,
    /// The last one stood there and waited until its time was over.
    #[serde(default)]
    was_cut_off: bool,
}

impl Unawaited {
    fn goes_round(&self) -> bool {
        let different: HashSet<&String> = self.asked.iter().collect();
        different.len() < self.asked.len() || self.asked.len() >= MOST
    }
}

/// Stops a check that has asked the same again, although it was answered.
pub(crate) async fn admit(context: &Context, feature: &Feature, name: CheckName) -> Result<(), Stop> {
    let left = load(context, feature, name).await?;
    let Some(left) = left.filter(Unawaited::goes_round) else { return Ok(()) };
    // After `aop retry` it is tried anew.
    forget(context, feature).await?;
    let (fault, remedy) = if left.was_cut_off {
        let seconds = context.settings.checks.timeout.as_secs();
        let fault = format!("wait for its answer until their {seconds} s are over");
        (fault, format!("give them more time (`checks.timeout_s` in aop.yaml is {seconds})"))
    } else {
        ("do not wait for the answer".to_owned(), "let the command wait in `aop ask`".to_owned())
    };
    let message = format!("the {name} checks ask the same each time they run, and {fault}");
    Err(Stop::Feature(Refusal::new(ErrorCode::ChecksFailed, message).hint(format!(
        "{remedy}, or give the question an --operation-id, so that it is asked once and the answer is found; then \
         `aop retry --feature-id {}`",
        feature.id
    ))))
}

/// After a command of a check: while the feature waits the check does not go on.
pub(crate) async fn stop_if_left(
    context: &Context,
    feature: &Feature,
    name: CheckName,
    command: &str,
    ending: &Ending,
) -> Result<(), Stop> {
    let now = context.store().feature(feature.id.clone()).await?.ok_or(Stop::Stale)?;
    let Some(waiting) = &now.waiting else { return Ok(()) };
    if waiting.role == Role::Builder && context.has_asked(&now, &waiting.question_id).await? {
        let question = context.store().question(waiting.question_id.clone()).await?.ok_or(Stop::Stale)?;
        let left = load(context, feature, name).await?;
        let mut left = left.unwrap_or(Unawaited { name, asked: Vec::new(), was_cut_off: false });
        left.was_cut_off = matches!(ending, Ending::TimedOut);
        left.asked.push(short_digest(&json!([command, question.asked.prompt]).to_string()));
        context.place(&feature.id, Shelf::Results, key(feature), Some(json!(left))).await?;
    }
    Err(Stop::Stale)
}

/// The check has come to an end.
pub(crate) async fn forget(context: &Context, feature: &Feature) -> Result<(), Stop> {
    if context.store().document(Shelf::Results, key(feature)).await?.is_none() {
        return Ok(());
    }
    context.place(&feature.id, Shelf::Results, key(feature), None).await
}

async fn load(context: &Context, feature: &Feature, name: CheckName) -> Result<Option<Unawaited>, Stop> {
    let document = context.store().document(Shelf::Results, key(feature)).await?;
    let left: Option<Unawaited> = document.and_then(|document| serde_json::from_value(document).ok());
    Ok(left.filter(|left| left.name == name))
}

fn key(feature: &Feature) -> String {
    format!("{}/check-asked", feature.id)
}
