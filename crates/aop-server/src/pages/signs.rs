//! Signs that turn the direction of a text, which a page would obey, are named on every page.

use aop_kernel::signs::{straight, turns};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_turns_direction_but_what_somebody_typed_stays_as_it_is() {
        let page = "<p>\u{202e}evil</p><textarea>a\u{202a}b</textarea>\u{2066}c";
        assert_eq!(tamed(page.to_owned()), "<p>⟨U+202E⟩evil</p><textarea>a\u{202a}b</textarea>⟨U+2066⟩c");
        assert_eq!(tamed("<p>שלום</p>".to_owned()), "<p>שלום</p>");
    }
}
