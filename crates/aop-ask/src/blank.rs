//! What counts as no text at all: a prompt or an answer of signs that nobody sees says nothing.

/// Whether nothing of a text is seen.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(is_unseen)
}

/// Whether a sign is not seen: controls, white space, signs without a width, the blank of Braille.
pub fn is_unseen(sign: char) -> bool {
    sign.is_control()
        || sign.is_whitespace()
        || is_ignorable(sign)
        || matches!(sign, '\u{2800}' | '\u{fff9}'..='\u{fffb}')
}

/// Whether a sign is drawn as nothing where nothing obeys it: `Default_Ignorable_Code_Point` of Unicode.
fn is_ignorable(sign: char) -> bool {
    matches!(sign, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::is_blank;

    #[test]
    fn a_text_of_signs_that_nobody_sees_is_blank() {
        for text in ["", " \n\t", "\u{200b}\u{2060}", "\u{a0}\u{feff} \u{3164}", "\u{e0041}", "\u{8}\u{2800}"]
        {
            assert!(is_blank(text), "{text:?}");
        }
        for text in ["a", "\u{200b}.", "⚠\u{fe0f}", "0"] {
            assert!(!is_blank(text), "{text:?}");
        }
    }
}
