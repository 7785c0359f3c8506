//! Every parser that eats foreign bytes, one function each: it takes any bytes and panics when a law is broken.
//! `cargo xtask fuzz` looks for such bytes; the committed corpus is replayed by `tests/corpus.rs` with all other tests.

mod ask;
mod engine;
mod files;
mod store;
mod turn;

/// A target by its name, which is also the name of its folder in `corpus/`.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: &[Target] = &[
    ("spec", ask::spec),
    ("answers", ask::answers),
    ("packet", ask::packet),
    ("prompts", ask::prompts),
    ("native_call", ask::native_call),
    ("reply_claude_code", ask::reply_claude_code),
    ("reply_codex", ask::reply_codex),
    ("reply_elicitation", ask::reply_elicitation),
    ("reply_strict_text", ask::reply_strict_text),
    ("reply_terminal", ask::reply_terminal),
    ("turn_claude_code", turn::claude_code),
    ("turn_codex", turn::codex),
    ("turn_gemini", turn::gemini),
    ("turn_iflow", turn::iflow),
    ("turn_scripted", turn::scripted),
    ("turn_message", turn::message),
    ("hook_claude", engine::hook_claude),
    ("hook_gemini", engine::hook_gemini),
    ("guard_frames", aop_engine::fuzz::guard_frames),
    ("codex_server", aop_engine::fuzz::codex_server),
    ("conversations", aop_engine::fuzz::conversations),
    ("scenario", aop_engine::fuzz::scenario),
    ("settings_gemini", aop_engine::fuzz::gemini_settings),
    ("settings_json", files::settings_json),
    ("settings_toml", files::settings_toml),
    ("aop_yaml", files::aop_yaml),
    ("schema", store::schema),
    ("tool_calls", store::tool_calls),
    ("history", store::history),
    ("markdown", engine::markdown),
    ("http", aop_server::fuzz::http),
    ("mcp", aop_server::fuzz::mcp),
];

/// The target of this name.
pub fn target(name: &str) -> Option<fn(&[u8])> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, run)| *run)
}
