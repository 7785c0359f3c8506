//! Runtime patches: what an engine is told beside its task.
//!
//! Two independent parts. Where deliverables go is the same in both modes. How to end a turn depends on
//! the mode: in auto mode nobody is there; in interactive mode a person is, structure is offered and never
//! demanded, and no sentence stands in the way of a question.

mod interactive;

use crate::engine::{Engine, Mode, Role};

/// What a patch is rendered for.
#[derive(Debug, Clone, Copy)]
pub struct PatchFor<'a> {
    /// The engine that will read it.
    pub engine: Engine,
    /// Whether a human may be asked.
    pub mode: Mode,
    /// What the worker is there for.
    pub role: Role,
    /// The run's folder for deliverables.
    pub artifacts: &'a str,
}

/// The whole patch.
pub fn patch(target: &PatchFor<'_>) -> String {
    format!("{}\n{}", artifact_patch(target.artifacts), mode_patch(target))
}

/// Where deliverables go.
fn artifact_patch(artifacts: &str) -> String {
    let folder = artifacts.trim_end_matches('/');
    format!(
        "## Where deliverables go\n\
         \n\
         Write every file that you hand over (reports, documents, data, whatever a person is meant to open) below\n\
         `{folder}/`. Create the folder if it is missing. In your result, name such files by their path inside it.\n\
         Source files of the project stay where the project keeps them.\n"
    )
}

/// How to work and how to end the turn.
fn mode_patch(target: &PatchFor<'_>) -> String {
    let body = match target.mode {
        Mode::Interactive => interactive::text(target.engine, target.role),
        Mode::Auto => auto_text(target.role),
    };
    format!("{body}\n{FINISHING}")
}

const FINISHING: &str = "\
## Finishing

When the work is done, end your last message with one JSON object: the fields of the result, and
`\"__SKILL_DONE__\": true` among them. Write `true` there only when the work really is done.
";

fn auto_text(role: Role) -> String {
    let advice = match role {
        Role::Planner => "Write the assumptions you made into the plan.",
        Role::Builder => "Where two changes would do, make the smaller one.",
        Role::Qa => "A doubt that remains goes into your report as a doubt.",
    };
    format!(
        "## Working alone\n\
         \n\
         Nobody is available while you work. Do not ask for decisions, confirmations or clarifications, by any tool\n\
         or in text: nobody would reply. Decide for yourself, take the most reasonable reading, carry on to the end,\n\
         and list the decisions you took in your result. {advice}\n"
    )
}
