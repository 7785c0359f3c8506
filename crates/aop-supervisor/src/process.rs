//! Check commands as processes, under the same guard as engines: nothing of them is left when the command is over, took
//! too long, or this program is gone.

use crate::settings::Settings;
use aop_engine::process::{Cause, Guarded, Launch, Stdin};
use aop_engine::{EngineError, Limits};
use std::ffi::OsString;
use std::path::Path;

/// More output than this ends a command.
const MAX_OUTPUT: u64 = 256 << 20;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With this code; a signal counts as 128 plus its number.
    Exited(i32),
    /// It took too long.
    TimedOut,
    /// It wrote too much.
    TooMuch,
}

/// Runs a command of the user's with `sh -c`; what it wrote is in the folder as `transcript.jsonl` (both streams).
pub(crate) async fn run_shell(
    settings: &Settings,
    command: &str,
    worktree: &Path,
    folder: &Path,
    variables: Vec<(OsString, OsString)>,
) -> Result<Ending, EngineError> {
    let env = settings.around.for_agent(variables);
    let timeout = settings.checks.timeout;
    let guarded = Guarded::spawn(Launch {
        aop: settings.around.aop.clone(),
        // One file for both streams, so that they stand in the order in which they were written.
        argv: vec![
            "/bin/sh".into(),
            "-c".into(),
            "exec 2>&1; eval \"$1\"".into(),
            "sh".into(),
            command.into(),
        ],
        env,
        cwd: worktree.to_owned(),
        stdin: Stdin::Null,
        run_dir: folder.to_owned(),
        limits: Limits { hard: timeout, idle: timeout, output_bytes: MAX_OUTPUT, ..Limits::default() },
    })
    .await?;
    let end = guarded.wait().await;
    Ok(match end.cause {
        Cause::HardTimeout | Cause::IdleTimeout => Ending::TimedOut,
        Cause::OutputLimit => Ending::TooMuch,
        Cause::Exited | Cause::Killed | Cause::Lingered | Cause::GuardLost => {
            Ending::Exited(end.code.unwrap_or(-1))
        }
    })
}
