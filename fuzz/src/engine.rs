//! What engines tell their hooks, and agents' texts on pages.

use aop_engine::claude::{HookCall, answered_input};
use aop_engine::gemini::after_tool;
use aop_turn::ask::question_arguments;
use aop_turn::command::Permissions;
use serde_json::json;

/// A call of Claude Code's hook: refused, or a question whose answer goes back under the call's own texts.
pub(crate) fn hook_claude(data: &[u8]) {
    let Ok(call) = HookCall::parse(&String::from_utf8_lossy(data)) else { return };
    let _ = call.concern(Permissions::Auto);
    let _ = call.concern(Permissions::Ask);
    if let Ok(ask) = call.ask(&[("sibling".to_owned(), call.tool_input.clone())], 1) {
        let arguments = question_arguments(&ask);
        for answer in [json!("words"), json!({}), json!({"q": ["a, b", "c"]})] {
            let input = answered_input(&call.tool_input, arguments.get("spec"), &answer);
            assert!(input.is_object(), "the tool runs with an object: {input}");
        }
    }
}

/// What Gemini CLI tells its hook: the agent is stopped, or nothing is said.
pub(crate) fn hook_gemini(data: &[u8]) {
    let said = after_tool(&serde_json::from_slice(data).unwrap_or_default());
    assert!(said == json!({}) || said["continue"] == false, "{said}");
}

/// The elements that agents' texts may become.
const HARMLESS: &[&str] = &[
    "a",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "input",
    "li",
    "ol",
    "p",
    "pre",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];

/// Markdown as HTML: nothing in it but elements that can only be read.
pub(crate) fn markdown(data: &[u8]) {
    let page = aop_server::fuzz::markdown(&String::from_utf8_lossy(data));
    for piece in page.split('<').skip(1) {
        let name = piece.trim_start_matches('/');
        let end = name.find(|sign: char| !sign.is_ascii_alphanumeric()).unwrap_or(name.len());
        assert!(HARMLESS.contains(&&name[..end]), "<{piece} in {page}");
        let attributes = piece.split('>').next().unwrap_or_default().to_ascii_lowercase();
        assert!(!attributes.contains("href=\"javascript:"), "<{piece}");
    }
}
