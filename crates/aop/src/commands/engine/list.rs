//! `aop engine list`: which engines there are on this machine, which version, whether that was tried, and what each
//! can do.

use crate::output::style::{dim, green, yellow};
use crate::output::table::fitting;
use crate::output::{CommandResult, Reply};
use aop_engine::program::{Known, known, version};
use aop_engine::{Capabilities, Surroundings, capabilities};
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_turn::Engine;
use aop_turn::command::Version;
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;

/// What is known of one engine on this machine.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    pub(crate) engine: Engine,
    program: Option<&'static str>,
    installed: bool,
    path: Option<PathBuf>,
    version: Option<String>,
    /// `tested`, `untested`, `too_old`, `built_in` or `missing`.
    pub(super) state: &'static str,
    /// What to do about it, where there is something to do.
    pub(super) hint: Option<String>,
    capabilities: Capabilities,
}

impl Found {
    pub(crate) fn is_usable(&self) -> bool {
        matches!(self.state, "tested" | "untested" | "built_in")
    }

    /// One line for people.
    pub(super) fn line(&self) -> String {
        let version = self.version.as_deref().unwrap_or("no version");
        match self.state {
            "built_in" => "built in".to_owned(),
            "missing" => "not installed".to_owned(),
            "too_old" => format!("{version}, too old"),
            "tested" => format!("{version}, tested"),
            _ => format!("{version}, not tested with this version"),
        }
    }
}

/// Looks at every engine.
pub(super) fn run() -> CommandResult {
    let (runtime, around) = surroundings()?;
    let found = runtime.block_on(installed(&around));
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    let text = fitting(&["engine", "state", "can"], &rows, None);
    Ok(Reply::ok(Envelope::success(&json!({"engines": found})), text))
}

/// Every engine as it is on this machine.
pub(crate) async fn installed(around: &Surroundings) -> Vec<Found> {
    let mut found = Vec::new();
    for engine in Engine::ALL {
        found.push(look(*engine, around).await);
    }
    found
}

/// A runtime, and this process's surroundings.
pub(super) fn surroundings() -> Result<(tokio::runtime::Runtime, Surroundings), Refusal> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: std::io::Error| Refusal::new(ErrorCode::Internal, format!("{what}: {error}"))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed("the runtime did not start"))?;
    let around =
        Surroundings::of_this_process().map_err(failed("cannot determine the path of the aop binary"))?;
    Ok((runtime, around))
}

/// Looks at one engine.
pub(super) async fn look(engine: Engine, around: &Surroundings) -> Found {
    let mut found = Found {
        engine,
        program: None,
        installed: true,
        path: None,
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        state: "built_in",
        hint: None,
        capabilities: capabilities(engine),
    };
    let Some(Known { program, install, oldest, tested }) = known(engine) else { return found };
    found.program = Some(program);
    found.version = None;
    let Some(path) = around.find(program) else {
        found.installed = false;
        found.state = "missing";
        found.hint = Some(format!("install it with `{install}`"));
        return found;
    };
    match version(&path, around).await {
        Ok(printed) => {
            let number = Version::parse(&printed);
            found.state = match number {
                Some(number) if Some(number) == tested => "tested",
                Some(number) if oldest.is_some_and(|oldest| number < oldest) => "too_old",
                Some(_) | None => "untested",
            };
            if found.state == "too_old" {
                found.hint = Some(format!("bring it up to date with `{install}`"));
            }
            found.version = Some(number.map_or(printed, |Version(a, b, c)| format!("{a}.{b}.{c}")));
        }
        Err(cause) => {
            found.state = "untested";
            found.hint = Some(cause);
        }
    }
    found.path = Some(path);
    found
}

fn row(found: &Found) -> Vec<String> {
    let line = found.line();
    let state = match found.state {
        "tested" | "built_in" => green(&line),
        "missing" => dim(&line),
        _ => yellow(&line),
    };
    vec![found.engine.to_string(), state, abilities(found.capabilities)]
}

fn abilities(can: Capabilities) -> String {
    let list = [
        (can.native_ask, "own ask tool"),
        (can.parks_to_nothing, "no process while waiting"),
        (can.inject_answer, "answer as tool result"),
        (can.resume_by_message && !can.inject_answer, "answer as next message"),
        (can.permission_questions, "asks permission"),
    ];
    let words: Vec<&str> = list.iter().filter(|(can, _)| *can).map(|(_, word)| *word).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::look;
    use aop_engine::Surroundings;
    use aop_turn::Engine;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn a_codex_that_its_driver_refuses_is_listed_as_too_old() {
        for (version, state) in [("0.97.9", "too_old"), ("0.98.0", "untested"), ("0.166.0", "tested")] {
            let dir = tempfile::tempdir().unwrap();
            let codex = dir.path().join("codex");
            std::fs::write(&codex, format!("#!/bin/sh\necho codex-cli {version}\n")).unwrap();
            std::fs::set_permissions(&codex, std::fs::Permissions::from_mode(0o755)).unwrap();
            let env = [("PATH".into(), dir.path().into())].into();
            let found = look(Engine::Codex, &Surroundings { aop: dir.path().join("aop"), env }).await;
            assert_eq!((found.state, found.is_usable()), (state, state != "too_old"), "{found:?}");
        }
    }
}
