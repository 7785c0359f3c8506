//! The keys of the engines, which are nobody else's: programs that an agent's work may start get the user's environment
//! without them.

use std::ffi::OsStr;

const KEYS: [&str; 8] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "IFLOW_API_KEY",
];

/// Whether a variable of this name holds one.
pub(crate) fn is_key(name: &OsStr) -> bool {
    KEYS.iter().any(|key| name == *key)
}
