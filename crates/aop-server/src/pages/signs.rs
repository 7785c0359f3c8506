//! Signs that a page would obey or swallow instead of showing them. Those that turn the direction of a text are named
//! on every page.

use aop_kernel::signs::turns;
use std::borrow::Cow;
use std::fmt::Write;

/// A whole page in which no text turns direction. What somebody typed goes back into its field sign by sign.
pub(super) fn tamed(page: String) -> String {
    if !page.contains(turns) {
        return page;
    }
    let mut tame = String::with_capacity(page.len() + 64);
    // All text is escaped, so these are the tags of our own templates.
    for part in page.split_inclusive("</textarea>") {
        let (around, typed) = part.split_at(part.find("<textarea").unwrap_or(part.len()));
        tame.push_str(&straight(around));
        tame.push_str(typed);
    }
    tame
}

/// A text that turns no direction.
pub(super) fn straight(text: &str) -> Cow<'_, str> {
    named(text, turns)
}

/// A text in which nothing is invisible but the space between words and lines.
pub(super) fn visible(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    named(&text, |sign| turns(sign) || hides(sign)).into_owned()
}

/// Whether a sign is not seen: controls, signs without a width, tags.
fn hides(sign: char) -> bool {
    let control = sign.is_control() && !matches!(sign, '\n' | '\t');
    control
        || matches!(sign, '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// The text with the names of some signs in their place.
fn named(text: &str, which: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&which) {
        return text.into();
    }
    let mut words = String::with_capacity(text.len() + 16);
    for sign in text.chars() {
        if which(sign) {
            // Writing to a String cannot fail.
            let _ = write!(words, "⟨U+{:04X}⟩", u32::from(sign));
        } else {
            words.push(sign);
        }
    }
    words.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_turns_direction_but_what_somebody_typed_stays_as_it_is() {
        let page = "<p>\u{202e}evil</p><textarea>a\u{202a}b</textarea>\u{2066}c";
        assert_eq!(tamed(page.to_owned()), "<p>⟨U+202E⟩evil</p><textarea>a\u{202a}b</textarea>⟨U+2066⟩c");
        assert_eq!(tamed("<p>שלום</p>".to_owned()), "<p>שלום</p>");
    }

    #[test]
    fn what_has_to_be_seen_exactly_hides_nothing() {
        assert_eq!(
            visible("a\u{1b}[2K\u{200b}\r\nb\rc\td\u{202e}"),
            "a⟨U+001B⟩[2K⟨U+200B⟩\nb⟨U+000D⟩c\td⟨U+202E⟩"
        );
    }
}
