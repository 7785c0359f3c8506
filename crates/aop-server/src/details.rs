//! What stands beside the prompt of a question, for whoever decides on it: on a page and in a client's form alike.

use crate::pages::words::cut;
use aop_kernel::question::Asked;
use aop_kernel::signs::visible;
use serde_json::Value;

/// A detail is shown up to this length, where nothing is allowed by it.
const DETAIL: usize = 8_000;

/// What else the asker wants shown, and what an engine's own question says beside its prompt and options.
pub(crate) fn details(asked: &Asked) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| format!("{value:#}"), str::to_owned);
    let shown = |(key, value): (&str, &Value)| match asked.question_type.grants() {
        // What is allowed may stand here alone: all of it is shown.
        true => (visible(key), visible(&text(value))),
        false => (key.to_owned(), cut(&text(value), DETAIL)),
    };
    asked.material().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::fixture::asked;
    use serde_json::json;

    #[test]
    fn the_details_of_what_is_allowed_are_shown_to_their_end() {
        let input = json!({"input": {"note": "x".repeat(2 * DETAIL), "sql": "DROP TABLE users"}});
        for (kind, is_whole) in [("permission_override", true), ("risk_ack", true), ("clarification", false)]
        {
            let details = details(&asked(json!({"question_type": kind, "details": input})));
            assert_eq!(details[0].1.contains("DROP TABLE users"), is_whole, "{kind}");
        }
    }
}
