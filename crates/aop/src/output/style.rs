//! Colour for terminals that want it, and the removal of control characters from what agents wrote.

use aop_kernel::question::QuestionType;
use aop_kernel::signs::{turns, visible};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::LazyLock;

/// Colour only when both streams a person sees are a terminal, and nothing in the environment objects.
pub(crate) static COLOUR: LazyLock<bool> = LazyLock::new(|| {
    let objects = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && std::io::stderr().is_terminal() && !objects("NO_COLOR") && !is_dumb()
});

/// Whether the terminal says that it can do nothing but print lines.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn paint(code: &str, text: &str) -> String {
    if *COLOUR && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

pub(crate) fn bold(text: &str) -> String {
    paint("1", text)
}

pub(crate) fn dim(text: &str) -> String {
    paint("2", text)
}

pub(crate) fn red(text: &str) -> String {
    paint("31", text)
}

pub(crate) fn green(text: &str) -> String {
    paint("32", text)
}

pub(crate) fn yellow(text: &str) -> String {
    paint("33", text)
}

pub(crate) fn cyan(text: &str) -> String {
    paint("36", text)
}

/// What an agent wrote, made safe for a terminal: no escape sequence survives, lines and tabs do.
pub(crate) fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).filter(|c| !turns(*c)).collect()
}

/// The same for what a question says. Where somebody gives a permission or takes a risk, nothing is left out: each sign that
/// would not be seen is named, as on the pages of `aop serve`.
pub(crate) fn exact(text: &str, kind: QuestionType) -> String {
    if kind.grants() { visible(text) } else { clean(text) }
}

/// JSON as a terminal may show it: what that would obey is escaped, and the document says what it said.
pub(crate) fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for sign in json.chars() {
        if turns(sign) || (sign.is_control() && !matches!(sign, '\n' | '\t')) {
            // Writing to a String cannot fail. All of them are below U+10000.
            let _ = write!(text, "\\u{:04x}", u32::from(sign));
        } else {
            text.push(sign);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{clean, escaped};

    #[test]
    fn no_escape_sequence_of_an_agent_reaches_the_terminal() {
        assert_eq!(clean("a\x1b]0;pwned\x07\u{9b}31mb\nc\u{202e}d"), "a]0;pwned31mb\ncd");
    }

    #[test]
    fn json_says_the_same_when_it_is_escaped_for_a_terminal() {
        let value = serde_json::json!({"a\u{9b}": "\u{202e}\u{7f}é\u{85}"});
        let text = escaped(&format!("{value:#}"));
        assert_eq!(text, "{\n  \"a\\u009b\": \"\\u202e\\u007fé\\u0085\"\n}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
