//! The gate before every action on a feature. Whoever wants to run a turn, a check, a patch, a merge or a
//! transition asks here first, whichever door the wish came through.

use crate::code::ErrorCode;
use crate::envelope::Refusal;
use crate::feature::Feature;
use crate::status::Status;

/// Something that is done to a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A worker's turn.
    Turn,
    /// A check command.
    Check,
    /// A change to its worktree.
    Patch,
    /// The merge.
    Merge,
    /// A change of status.
    Transition,
}

impl Action {
    /// Every action.
    pub const ALL: &[Action] =
        &[Action::Turn, Action::Check, Action::Patch, Action::Merge, Action::Transition];

    fn as_str(self) -> &'static str {
        match self {
            Action::Turn => "turn",
            Action::Check => "check",
            Action::Patch => "patch",
            Action::Merge => "merge",
            Action::Transition => "transition",
        }
    }

    /// The same for people, who know neither the tool nor its name.
    fn in_words(self) -> &'static str {
        match self {
            Action::Transition => "status change",
            Action::Turn | Action::Check | Action::Patch | Action::Merge => self.as_str(),
        }
    }
}

/// Refuses every action while a blocking question is open, and after the end.
pub fn permit(feature: &Feature, action: Action) -> Result<(), Refusal> {
    let id = &feature.id;
    let (action, what_happens) = (action.as_str(), action.in_words());
    // The status alone decides: a record that lost what it waits for is no reason to let anything through.
    if feature.status == Status::AwaitingInput {
        let question = feature.waiting.as_ref().map(|waiting| waiting.question_id.as_str());
        let what = question.map_or("an answer".to_owned(), |question| format!("an answer to {question}"));
        return Err(Refusal::new(
            ErrorCode::QuestionOpenBlocksAction,
            format!("feature '{id}' waits for {what}; no {what_happens} until then"),
        )
        .hint(match question {
            Some(question) => {
                format!("answer with `aop answer {question}`")
            }
            None => format!("see what it waits for with `aop questions --feature-id {id}`"),
        })
        .fact("feature_id", id)
        .fact("question_id", question)
        .fact("action", action));
    }
    if feature.status.is_terminal() {
        return Err(illegal(
            feature,
            &format!("feature '{id}' is {}; no {what_happens} after that", feature.status),
        ));
    }
    Ok(())
}

/// `invalid_status_transition` with where the feature could go instead.
pub(super) fn illegal(feature: &Feature, message: &str) -> Refusal {
    let targets: Vec<&str> = feature
        .status
        .targets()
        .iter()
        .filter(|status| **status != Status::AwaitingInput)
        .map(|status| status.as_str())
        .collect();
    let hint = if targets.is_empty() {
        "a merged or failed feature stays as it is; create a new one".to_owned()
    } else {
        format!("from {} it can go to {}", feature.status, targets.join(", "))
    };
    Refusal::new(ErrorCode::InvalidStatusTransition, message)
        .hint(hint)
        .fact("feature_id", &feature.id)
        .fact("status", feature.status)
        .fact("allowed", targets)
}
