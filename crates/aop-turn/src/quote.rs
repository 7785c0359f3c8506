//! Words of others within words of ours: no line of a text that an agent or a program wrote may be taken for one that
//! `aop` wrote, least of all for a human's answer. A text of several lines is quoted, each line of it; one that stands
//! in a line of ours is folded into that line.

/// What every line begins with that is quoted.
pub const MARK: &str = ">";

/// What some reader may take for the end of a line.
fn ends_line(sign: char) -> bool {
    matches!(sign, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The text with the mark before each line; a blank text is one quoted blank line.
pub fn quoted(text: &str) -> String {
    let text = text.trim_end().replace("\r\n", "\n");
    let lines = text.split(ends_line).map(|line| format!("{MARK} {line}").trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// The text without an end of a line in it.
pub fn inline(text: &str) -> String {
    text.split(ends_line).map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The beginning of the text, for a message about it.
pub(crate) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_marked_whatever_ends_it() {
        assert_eq!(quoted("one"), "> one");
        assert_eq!(quoted("a\r\nb\rc\u{2028}d\u{85}e\n\nf\n"), "> a\n> b\n> c\n> d\n> e\n>\n> f");
        assert_eq!(quoted(" \n"), ">");
        assert_eq!(quoted("> a"), "> > a", "a quotation within it stays one");
    }

    #[test]
    fn a_text_within_a_line_stays_there() {
        assert_eq!(inline("a\r\n  b\u{2029}\nc"), "a b c");
        assert_eq!(inline("a  b"), "a  b");
    }
}
