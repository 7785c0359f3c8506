//! Check commands as processes, under the same guard as engines: nothing of them is left when the command is over, took
//! too long, or this program is gone.

use crate::keys::is_key;
use crate::settings::Settings;
use aop_engine::process::{Cause, Guarded, Launch, Stdin};
use aop_engine::{EngineError, Limits, Surroundings};
use std::collections::BTreeMap;
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

/// The environment of a check: the user's, since it may need whatever the project's tests need, but not the keys of the
/// engines. It runs what an agent wrote, and what it prints is shown to one.
fn environment(around: &Surroundings, variables: Vec<(OsString, OsString)>) -> BTreeMap<OsString, OsString> {
    let mut env = around.for_agent(variables);
    env.retain(|name, _| !is_key(name));
    env
}

/// Runs a command of the user's with `sh -c`; what it wrote is in the folder as `transcript.jsonl` (both streams).
pub(crate) async fn run_shell(
    settings: &Settings,
    command: &str,
    worktree: &Path,
    folder: &Path,
    variables: Vec<(OsString, OsString)>,
) -> Result<Ending, EngineError> {
    let env = environment(&settings.around, variables);
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

#[cfg(test)]
mod tests {
    use super::environment;
    use aop_engine::Surroundings;
    use std::ffi::OsStr;

    #[test]
    fn a_check_has_the_users_environment_without_the_keys_of_the_engines() {
        let env = ["HOME", "PGPASSWORD", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"];
        let env = env.map(|name| (name.into(), "x".into())).into();
        let around = Surroundings { aop: "/opt/aop/aop".into(), env };
        let env = environment(&around, vec![("AOP_AGENT".into(), "{}".into())]);
        let names: Vec<&OsStr> = env.keys().map(|name| name.as_os_str()).collect();
        assert_eq!(names, ["AOP_AGENT", "HOME", "PATH", "PGPASSWORD"]);
    }
}
