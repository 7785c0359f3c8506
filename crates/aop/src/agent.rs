//! Who is calling. Programs that an engine starts carry `AOP_AGENT`; it overrides every `--role`, and a value
//! that cannot be read takes all rights away instead of giving a human's.

use aop_kernel::ids::FeatureId;
use aop_kernel::role::{Caller, Role};
use aop_kernel::{ErrorCode, Refusal};
use serde::Deserialize;

/// The variable that marks a program started by an engine.
pub(crate) const AGENT_VARIABLE: &str = "AOP_AGENT";

/// `{"feature_id": …, "role": …, "claim": …}`
#[derive(Debug, Deserialize)]
struct Credential {
    #[serde(alias = "feature")]
    feature_id: FeatureId,
    role: Role,
}

/// Whether an engine started this program.
pub(crate) fn present() -> bool {
    std::env::var_os(AGENT_VARIABLE).is_some_and(|value| !value.is_empty())
}

/// The caller: the agent named by the environment, else the given role.
pub(crate) fn caller(role: Role, feature: Option<FeatureId>) -> Result<Caller, Refusal> {
    let Some(value) = std::env::var_os(AGENT_VARIABLE).filter(|value| !value.is_empty()) else {
        return Ok(Caller { role, feature });
    };
    let credential: Credential = value
        .to_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .filter(|credential: &Credential| credential.role.is_worker())
        .ok_or_else(|| {
            Refusal::new(ErrorCode::ForbiddenForRole, format!("{AGENT_VARIABLE} is set, but names no worker"))
                .hint(format!("it is JSON with feature_id, role and claim; unset it in a shell that no agent started (`unset {AGENT_VARIABLE}`)"))
        })?;
    Ok(Caller { role: credential.role, feature: Some(credential.feature_id) })
}
