//! Signs in texts of others that change how what stands around them is read.

/// Whether a sign turns the direction of the text around it: obeyed, `evil` reads `live`.
pub fn turns(sign: char) -> bool {
    matches!(sign, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
