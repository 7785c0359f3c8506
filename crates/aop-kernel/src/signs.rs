//! Signs in texts of others that are obeyed or swallowed instead of being shown, and their names. A text that has to be seen
//! exactly, because somebody allows what it says, is the same on a page and on a terminal.

use aop_ask::is_unseen;
use std::borrow::Cow;
use std::fmt::Write;

/// Whether a sign turns the direction of the text around it: obeyed, `evil` reads `live`.
pub fn turns(sign: char) -> bool {
    matches!(sign, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a sign is not seen, or taken for the space that it is not.
fn hides(sign: char) -> bool {
    is_unseen(sign) && !matches!(sign, ' ' | '\n' | '\t')
}

/// Whether this sign has the one before it drawn as a picture. Behind a picture it hides nothing.
fn draws(sign: char, (before, _): Around) -> bool {
    sign == '\u{fe0f}'
        && matches!(before, '©' | '®' | '‼' | '⁉' | '™' | 'ℹ' | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}'
            | '\u{2460}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}' | '〰' | '〽' | '㊗' | '㊙'
            | '\u{1f000}'..='\u{1faff}')
}

/// A text that turns no direction.
pub fn straight(text: &str) -> Cow<'_, str> {
    named(text, |sign, _| turns(sign))
}

/// A text in which nothing is invisible but the space between words and lines.
pub fn visible(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    named(&text, |sign, around| turns(sign) || (hides(sign) && !draws(sign, around))).into_owned()
}

/// A label that looks like no other: what is invisible has its name, but for the space between two words, and the joiners
/// within words of scripts and pictures that are written with them.
pub fn label(text: &str) -> Cow<'_, str> {
    let joins = |sign: char| matches!(sign, '\u{200c}' | '\u{200d}');
    let is_shown = |sign: char| !sign.is_ascii() && (!hides(sign) || sign == '\u{fe0f}');
    let is_inside = |(before, after): Around| is_shown(before) && is_shown(after);
    let is_lost = |sign: char, (before, after): Around| {
        sign.is_whitespace() && (sign != ' ' || before == ' ' || after == ' ')
    };
    named(text, |sign, around| {
        let is_kept = (joins(sign) && is_inside(around)) || draws(sign, around);
        turns(sign) || is_lost(sign, around) || (hides(sign) && !is_kept)
    })
}

/// The signs before and after one; a space at the ends.
type Around = (char, char);

/// The text with the names of some signs in their place.
fn named(text: &str, which: impl Fn(char, Around) -> bool) -> Cow<'_, str> {
    let is_plain = |sign: char| sign.is_ascii_graphic() || sign == ' ';
    if text.chars().all(is_plain) && text.trim_matches(' ') == text && !text.contains("  ") {
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

    /// Signs that are not seen behind a letter.
    const HIDDEN: [char; 16] = [
        '\u{8}',
        '\u{a0}',
        '\u{ad}',
        '\u{34f}',
        '\u{17b4}',
        '\u{180b}',
        '\u{2003}',
        '\u{200b}',
        '\u{200d}',
        '\u{202e}',
        '\u{2800}',
        '\u{3000}',
        '\u{fe0f}',
        '\u{feff}',
        '\u{1d173}',
        '\u{e0041}',
    ];

    #[test]
    fn what_has_to_be_seen_exactly_hides_nothing() {
        assert_eq!(
            visible("a\u{1b}[2K\u{200b}\r\nb\rc\td\u{202e}"),
            "a⟨U+001B⟩[2K⟨U+200B⟩\nb⟨U+000D⟩c\td⟨U+202E⟩"
        );
        for hidden in HIDDEN {
            assert_eq!(visible(&format!("a{hidden}")), format!("a⟨U+{:04X}⟩", u32::from(hidden)));
        }
        for plain in [" a  b ", "⚠\u{fe0f} a", "שלום"] {
            assert_eq!(visible(plain), plain);
        }
        assert_eq!(visible("⚠\u{fe0f}\u{fe0f}"), "⚠\u{fe0f}⟨U+FE0F⟩", "one draws the picture");
    }

    #[test]
    fn no_two_labels_look_the_same_and_scripts_stay_readable() {
        for hidden in HIDDEN {
            let shown = label(&format!("allow{hidden}")).into_owned();
            assert_eq!(shown, format!("allow⟨U+{:04X}⟩", u32::from(hidden)));
        }
        for (spaced, shown) in [
            (" allow", "⟨U+0020⟩allow"),
            ("allow ", "allow⟨U+0020⟩"),
            ("allow  once", "allow⟨U+0020⟩⟨U+0020⟩once"),
            ("allow\nonce", "allow⟨U+000A⟩once"),
        ] {
            assert_eq!(label(spaced), shown);
        }
        for hiding in ["allow…\u{fe0f}", "allowe\u{301}\u{fe0f}", "allow–\u{fe0f}"] {
            assert!(
                label(hiding).ends_with("⟨U+FE0F⟩") && visible(hiding).ends_with("⟨U+FE0F⟩"),
                "{hiding:?}"
            );
        }
        for plain in ["می\u{200c}خواهم", "👩\u{200d}💻", "❤\u{fe0f}\u{200d}🔥", "allow once", "שלום"]
        {
            assert_eq!(label(plain), plain);
        }
    }
}
