//! What Claude Code is given beside its command line: a settings file with the hook, and for the hook a file with the
//! turn. Both lie in the turn's folder. The user's own settings (model, sign-in, rules) stay in force below ours, and
//! none of their files is touched.

use super::hook::HookTurn;
use crate::port::{EngineError, TurnRequest};
use aop_turn::command::{Permissions, shell_quoted};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A question may wait for a week within a turn (sub-agents cannot be put aside); a hook that runs out of time lets
/// the engine go by its own rules.
const HOOK_SECONDS: u64 = 7 * 24 * 3600;

/// Tools that may need a permission. Others never prompt, or the engine refuses them by itself.
const MAY_NEED_PERMISSION: &str = "AskUserQuestion|ExitPlanMode|Bash|PowerShell|Edit|MultiEdit|Write|NotebookEdit|WebFetch|WebSearch|Skill|mcp__.*";

/// Writes both files; the settings file. `more_follows`: after this process another one tells the rest.
pub(super) fn write(
    aop: &Path,
    request: &TurnRequest,
    version: &str,
    more_follows: bool,
) -> Result<PathBuf, EngineError> {
    let failed = |error: std::io::Error| EngineError::System {
        what: format!("writing settings to {}", request.run_dir.display()),
        cause: error.to_string(),
    };
    // A turn that is continued after a crash has the folder of the one that was cut off.
    super::asked::forget(&request.run_dir).map_err(failed)?;
    let turn = request.run_dir.join("hook.json");
    let content = serde_json::to_vec(&HookTurn::of(request, version, more_follows))
        .map_err(|error| failed(error.into()))?;
    std::fs::write(&turn, content).map_err(failed)?;
    let path = request.run_dir.join("claude-settings.json");
    std::fs::write(&path, settings(aop, &turn, request.permissions).to_string()).map_err(failed)?;
    Ok(path)
}

fn settings(aop: &Path, turn: &Path, permissions: Permissions) -> Value {
    let quoted = |path: &Path| shell_quoted(&path.display().to_string());
    let command = format!("{} hook claude --turn {}", quoted(aop), quoted(turn));
    let matcher = match permissions {
        Permissions::Auto => "AskUserQuestion|ExitPlanMode",
        Permissions::Ask => MAY_NEED_PERMISSION,
    };
    json!({
        // A user who has switched hooks off would otherwise have switched off ours.
        "disableAllHooks": false,
        "hooks": {"PreToolUse": [{"matcher": matcher,
            "hooks": [{"type": "command", "command": command, "timeout": HOOK_SECONDS}]}]},
    })
}
