//! What stands beside the prompt of a question, for whoever decides on it: on a page and in a client's form alike.

use aop_kernel::question::Asked;
use aop_kernel::signs::visible;
use serde_json::Value;

/// What else the asker wants shown, and what an engine's own question says beside its prompt and options. All of it: who
/// decides has nothing to look up elsewhere, and what is allowed may stand here alone.
pub(crate) fn details(asked: &Asked) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| format!("{value:#}"), str::to_owned);
    let shown = |text: &str| if asked.question_type.grants() { visible(text) } else { text.to_owned() };
    asked.material().map(|(key, value)| (shown(key), shown(&text(value)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::fixture::asked;
    use serde_json::json;

    #[test]
    fn details_are_shown_to_their_end_and_hide_no_sign_of_what_is_allowed() {
        let input = json!({"input": {"note": "x".repeat(16_000), "sql": "DROP\u{200b} TABLE users"}});
        for (kind, shown) in [
            ("permission_override", "DROP⟨U+200B⟩ TABLE users"),
            ("risk_ack", "DROP⟨U+200B⟩ TABLE users"),
            ("clarification", "DROP\u{200b} TABLE users"),
        ] {
            let details = details(&asked(json!({"question_type": kind, "details": input})));
            assert!(details[0].1.contains(shown), "{kind}");
        }
    }
}
