//! `aop engine doctor`: can this engine be used? With `--self-test` it has to prove it.

use super::list::{look, surroundings};
use super::self_test;
use crate::output::style::{green, red, yellow};
use crate::output::{CommandResult, Reply};
use aop_kernel::Envelope;
use aop_turn::Engine;
use serde::Serialize;
use serde_json::json;

/// One thing looked at.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) ok: bool,
    pub(super) message: String,
}

/// Looks at one engine; exit code 1 when it cannot be used.
pub(super) fn run(engine: Engine, prove: bool) -> CommandResult {
    let (runtime, around) = surroundings()?;
    let found = runtime.block_on(look(engine, &around));
    let message = match &found.hint {
        Some(hint) => format!("{}; {hint}", found.line()),
        None => found.line(),
    };
    let mut checks = vec![Check { name: "program", ok: found.is_usable(), message }];
    if found.is_usable() && prove {
        checks.extend(runtime.block_on(self_test::run(engine, &around)));
    }
    let usable = checks.iter().all(|check| check.ok);
    let lines: Vec<String> = checks
        .iter()
        .map(|check| {
            let mark = if check.ok { green("ok  ") } else { red("BAD ") };
            format!("{mark} {:<9} {}", check.name, check.message)
        })
        .collect();
    let closing = match (usable, prove) {
        (true, true) => green("Self-test passed: it asks, parks and resumes."),
        (true, false) => {
            format!("Installed. `aop engine doctor {engine} --self-test` tries it against a fake model.")
        }
        (false, _) => yellow("Not usable yet; see above."),
    };
    let text = format!("{}\n\n{closing}", lines.join("\n"));
    let envelope = Envelope::success(&json!({"engine": found, "usable": usable, "checks": checks}));
    Ok(Reply::ok(envelope, text).exit(u8::from(!usable)))
}
