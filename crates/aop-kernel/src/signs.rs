//! Signs in texts of others that are obeyed or swallowed instead of being shown, and their names. A text that has to be seen
//! exactly, because somebody allows what it says, is the same on a page and on a terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a sign turns the direction of the text around it: obeyed, `evil` reads `live`.
pub fn turns(sign: char) -> bool {
    matches!(sign, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a sign is not seen: controls, signs without a width, tags.
fn hides(sign: char) -> bool {
    let control = sign.is_control() && !matches!(sign, '\n' | '\t');
    control
        || matches!(sign, '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// A text that turns no direction.
pub fn straight(text: &str) -> Cow<'_, str> {
    named(text, |sign, _| turns(sign))
}

/// A text in which nothing is invisible but the space between words and lines.
pub fn visible(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    named(&text, |sign, _| turns(sign) || hides(sign)).into_owned()
}

/// A label that looks like no other: what is invisible has its name, but for the joiners within words of scripts and
/// pictures that are written with them.
pub fn label(text: &str) -> Cow<'_, str> {
    let joins = |sign: char| matches!(sign, '\u{200c}' | '\u{200d}');
    let is_inside =
        |(before, after): Around| !before.is_ascii() && !after.is_ascii() && !hides(before) && !hides(after);
    named(text, |sign, around| turns(sign) || (hides(sign) && !(joins(sign) && is_inside(around))))
}

/// The signs before and after one; a space at the ends.
type Around = (char, char);

/// The text with the names of some signs in their place.
fn named(text: &str, which: impl Fn(char, Around) -> bool) -> Cow<'_, str> {
    if text.is_ascii() && !text.contains(char::is_control) {
        return text.into();
    }
    let mut words = String::with_capacity(text.len() + 16);
    let mut before = ' ';
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        if which(sign, (before, signs.peek().copied().unwrap_or(' '))) {
            // Writing to a String cannot fail.
            let _ = write!(words, "⟨U+{:04X}⟩", u32::from(sign));
        } else {
            words.push(sign);
        }
        before = sign;
    }
    words.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_to_be_seen_exactly_hides_nothing() {
        assert_eq!(
            visible("a\u{1b}[2K\u{200b}\r\nb\rc\td\u{202e}"),
            "a⟨U+001B⟩[2K⟨U+200B⟩\nb⟨U+000D⟩c\td⟨U+202E⟩"
        );
    }

    #[test]
    fn no_two_labels_look_the_same_and_scripts_stay_readable() {
        for hidden in ['\u{200b}', '\u{200d}', '\u{feff}', '\u{e0041}', '\u{202e}', '\u{8}'] {
            let shown = label(&format!("allow{hidden}")).into_owned();
            assert_eq!(shown, format!("allow⟨U+{:04X}⟩", u32::from(hidden)));
        }
        for plain in ["می\u{200c}خواهم", "👩\u{200d}💻", "allow once", "שלום"] {
            assert_eq!(label(plain), plain);
        }
    }
}
