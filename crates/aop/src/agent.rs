//! Who is calling. Programs that an engine, a check or git in a worktree starts carry `AOP_AGENT`; it overrides every
//! `--role`, and a value that cannot be read takes all rights away instead of giving a human's,
//! also an empty one.

use aop_engine::process::AGENT_VARIABLE;
use aop_kernel::ids::FeatureId;
use aop_kernel::question::EngineRef;
use aop_kernel::role::{Caller, Role};
use aop_kernel::{ErrorCode, Refusal};
use serde::Deserialize;

/// `{"feature_id": …, "role": …, "claim": …}`
#[derive(Debug, Deserialize)]
pub(crate) struct Credential {
    #[serde(alias = "feature")]
    pub(crate) feature_id: FeatureId,
    pub(crate) role: Role,
    #[serde(default)]
    pub(crate) claim: String,
}

/// Whether an engine started this program.
pub(crate) fn present() -> bool {
    value().is_some()
}

/// The caller: the agent named by the environment, else the given role.
pub(crate) fn caller(role: Role, feature: Option<FeatureId>) -> Result<Caller, Refusal> {
    if !present() {
        return Ok(Caller { role, feature });
    }
    let credential = credential()?;
    Ok(Caller { role: credential.role, feature: Some(credential.feature_id) })
}

/// The agent named by the environment.
pub(crate) fn credential() -> Result<Credential, Refusal> {
    let named: Option<Credential> = value().and_then(|value| serde_json::from_str(value.to_str()?).ok());
    named.filter(|credential| credential.role.is_worker()).ok_or_else(|| {
        let state = if present() { "is set, but names no worker" } else { "is not set: no engine started this program" };
        Refusal::new(ErrorCode::ForbiddenForRole, format!("{AGENT_VARIABLE} {state}"))
            .hint(format!("it is JSON with feature_id, role and claim; unset it in a shell that no agent started (`unset {AGENT_VARIABLE}`)"))
    })
}

/// The variable in which a driver says which session its questions come from.
const ENGINE_VARIABLE: &str = "AOP_ENGINE";

/// `{"engine", "session", "cwd", "version", "refuses", "not_yet"}`
#[derive(Debug, Deserialize)]
pub(crate) struct EngineVariable {
    #[serde(flatten)]
    pub(crate) engine: EngineRef,
    /// Nobody may be asked, and these are the words for that.
    pub(crate) refuses: Option<String>,
    /// Nobody may be asked yet, and these are the words for that.
    pub(crate) not_yet: Option<String>,
}

/// The session that the environment names, when a driver started the client and parks it.
pub(crate) fn engine() -> Result<Option<EngineVariable>, Refusal> {
    let Some(value) = std::env::var_os(ENGINE_VARIABLE).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let read = value.to_str().and_then(|text| serde_json::from_str(text).ok());
    read.map(Some).ok_or_else(|| {
        Refusal::invalid_argument(format!("{ENGINE_VARIABLE} is set, but names no session"))
            .hint("only a driver of aop sets it; start `aop mcp` without it")
    })
}

fn value() -> Option<std::ffi::OsString> {
    std::env::var_os(AGENT_VARIABLE)
}
