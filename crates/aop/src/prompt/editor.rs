//! One line of text that is edited: a cursor between what is seen as characters, and the ways to move and to erase.
//! Pure; where it stands on the screen is worked out here too.

use aop_kernel::signs::turns;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What a key does to the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edit {
    Left,
    Right,
    WordLeft,
    WordRight,
    Start,
    End,
    /// Takes the character before the cursor away.
    Erase,
    /// The word before it.
    EraseWord,
    /// All before it.
    EraseLine,
    /// The character behind it.
    Delete,
    /// All behind it.
    DeleteLine,
}

/// How a text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Plainly,
    /// A star for each character.
    Hidden,
}

/// The line.
#[derive(Debug, Clone, Default)]
pub(super) struct Editor {
    text: String,
    /// In bytes, and always between two characters as they are seen.
    at: usize,
}

impl Editor {
    /// With a text, the cursor behind it.
    pub(super) fn new(text: &str) -> Self {
        Editor { text: text.to_owned(), at: text.len() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Puts text in at the cursor.
    pub(super) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.at, text);
        self.at += text.len();
        self.settle();
    }

    /// Puts in what was pasted. Lines stay lines, and the end of the last one is no part of it: whoever copies a line
    /// means what stands in it. Other control characters are left out.
    pub(super) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let kept: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        self.insert(kept.trim_end_matches('\n'));
    }

    pub(super) fn edit(&mut self, edit: Edit) {
        let from = self.at;
        match edit {
            Edit::Left => self.at = self.before(from),
            Edit::Right => self.at = self.behind(from),
            Edit::WordLeft => self.at = self.word_before(from),
            Edit::WordRight => self.at = self.word_behind(from),
            Edit::Start => self.at = 0,
            Edit::End => self.at = self.text.len(),
            Edit::Erase => self.erase(self.before(from)),
            Edit::EraseWord => self.erase(self.word_before(from)),
            Edit::EraseLine => self.erase(0),
            Edit::Delete => self.delete(self.behind(from)),
            Edit::DeleteLine => self.delete(self.text.len()),
        }
    }

    fn erase(&mut self, begin: usize) {
        self.text.replace_range(begin..self.at, "");
        self.at = begin;
        self.settle();
    }

    fn delete(&mut self, end: usize) {
        self.text.replace_range(self.at..end, "");
        self.settle();
    }

    /// What stood apart may have grown together.
    fn settle(&mut self) {
        while !self.is_between(self.at) {
            self.at = self.char_after(self.at);
        }
    }

    fn char_after(&self, at: usize) -> usize {
        at + self.text[at..].chars().next().map_or(0, char::len_utf8)
    }

    /// Whether something that is seen by itself begins here.
    fn is_between(&self, at: usize) -> bool {
        at == 0 || !self.text[at..].starts_with(|c: char| c.width() == Some(0))
    }

    fn before(&self, at: usize) -> usize {
        let mut places = self.text[..at].char_indices().rev().map(|(place, _)| place);
        places.find(|place| self.is_between(*place)).unwrap_or(0)
    }

    fn behind(&self, at: usize) -> usize {
        let mut place = self.char_after(at);
        while !self.is_between(place) {
            place = self.char_after(place);
        }
        place
    }

    fn word_before(&self, at: usize) -> usize {
        let text = self.text[..at].trim_end();
        let begin = text.rfind(char::is_whitespace).map_or(0, |gap| self.char_after(gap));
        if self.is_between(begin) { begin } else { self.before(begin) }
    }

    fn word_behind(&self, at: usize) -> usize {
        let word = self.text.len() - self.text[at..].trim_start().len();
        let end = self.text[word..].find(char::is_whitespace).map_or(self.text.len(), |gap| word + gap);
        if self.is_between(end) { end } else { self.behind(end) }
    }

    /// The text on lines of so many columns, and the cursor's line and column.
    pub(super) fn laid_out(&self, shown: Shown, columns: usize) -> (Vec<String>, (usize, usize)) {
        let columns = columns.max(2);
        let mut lines = vec![String::new()];
        let (mut column, mut place, mut cursor) = (0, 0, (0, 0));
        loop {
            let end = self.behind(place);
            let part = match shown {
                Shown::Hidden if end > place => "*".to_owned(),
                _ => visible(&self.text[place..end]),
            };
            if column + part.width().max(1) > columns {
                lines.push(String::new());
                column = 0;
            }
            if place == self.at {
                cursor = (lines.len() - 1, column);
            }
            if place == self.text.len() {
                return (lines, cursor);
            }
            column += part.width();
            if let Some(line) = lines.last_mut() {
                line.push_str(&part);
            }
            place = end;
        }
    }
}

/// A line end and a tab as a sign of one column; what turns the direction of a line, not at all.
fn visible(text: &str) -> String {
    let sign = |c: char| match c {
        '\n' => Some('⏎'),
        '\t' => Some(' '),
        c => Some(c).filter(|c| !c.is_control() && !turns(*c)),
    };
    text.chars().filter_map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edited(text: &str, edits: &[Edit]) -> (String, usize) {
        let mut editor = Editor::new(text);
        edits.iter().for_each(|edit| editor.edit(*edit));
        (editor.text.clone(), editor.at)
    }

    #[test]
    fn a_line_is_edited_as_in_a_shell() {
        assert_eq!(edited("one two", &[Edit::EraseWord]), ("one ".to_owned(), 4));
        assert_eq!(edited("one two  ", &[Edit::EraseWord]), ("one ".to_owned(), 4));
        assert_eq!(edited("one two", &[Edit::WordLeft, Edit::EraseLine]), ("two".to_owned(), 0));
        assert_eq!(edited("one two", &[Edit::WordLeft, Edit::DeleteLine]), ("one ".to_owned(), 4));
        assert_eq!(edited("one two", &[Edit::Start, Edit::WordRight]), ("one two".to_owned(), 3));
        assert_eq!(edited("one", &[Edit::Start, Edit::Delete, Edit::End]), ("ne".to_owned(), 2));
        assert_eq!(edited("one", &[Edit::Left, Edit::Erase]), ("oe".to_owned(), 1));
        assert_eq!(edited("", &[Edit::Erase, Edit::Delete, Edit::Left, Edit::Right]), (String::new(), 0));
    }

    #[test]
    fn what_is_seen_as_one_character_goes_as_one() {
        assert_eq!(edited("ae\u{301}", &[Edit::Erase]).0, "a");
        assert_eq!(edited("世界", &[Edit::Left, Edit::Erase]).0, "界");
    }

    #[test]
    fn a_paste_keeps_its_lines_and_not_its_last_line_end() {
        let mut editor = Editor::new("<>");
        editor.edit(Edit::Left);
        editor.paste("one\r\ntwo\rthree\x1b[2J\n\n");
        assert_eq!(editor.text(), "<one\ntwo\nthree[2J>");
        assert_eq!(editor.laid_out(Shown::Plainly, 80).0, ["<one⏎two⏎three[2J>"]);
    }

    #[test]
    fn a_long_line_goes_on_below_and_a_wide_character_is_never_split() {
        let mut editor = Editor::new("世界世界");
        assert_eq!(editor.laid_out(Shown::Plainly, 5), (vec!["世界".into(), "世界".into()], (1, 4)));
        assert_eq!(editor.laid_out(Shown::Hidden, 5), (vec!["****".into()], (0, 4)));
        editor.insert("a");
        assert_eq!(
            editor.laid_out(Shown::Plainly, 5),
            (vec!["世界".into(), "世界a".into(), String::new()], (2, 0))
        );
    }

    fn any_edit() -> impl Strategy<Value = Result<Edit, String>> {
        let edits = prop::sample::select(vec![
            Edit::Left,
            Edit::Right,
            Edit::WordLeft,
            Edit::WordRight,
            Edit::Start,
            Edit::End,
            Edit::Erase,
            Edit::EraseWord,
            Edit::EraseLine,
            Edit::Delete,
            Edit::DeleteLine,
        ]);
        let text = "[a-c \u{301}\u{200d}世👩\n]{0,4}";
        prop_oneof![edits.prop_map(Ok), text.prop_map(Err)]
    }

    proptest! {
        #[test]
        fn the_cursor_stands_between_characters_and_the_screen_shows_them_all(
            steps in prop::collection::vec(any_edit(), 0..30), columns in 2_usize..12,
        ) {
            let mut editor = Editor::default();
            for step in steps {
                let (before, at) = (editor.text.clone(), editor.at);
                match step {
                    Ok(edit) => {
                        editor.edit(edit);
                        // Nothing is ever added, and what stays is in its order.
                        prop_assert!(editor.text.len() <= before.len());
                    }
                    Err(text) => {
                        editor.insert(&text);
                        prop_assert_eq!(&editor.text, &format!("{}{text}{}", &before[..at], &before[at..]));
                    }
                }
                prop_assert!(editor.text.is_char_boundary(editor.at) && editor.is_between(editor.at));
                let (lines, (row, column)) = editor.laid_out(Shown::Plainly, columns);
                prop_assert!(lines.iter().all(|line| line.width() <= columns), "{:?}", lines);
                prop_assert!(row < lines.len());
                let widths = lines[row].chars().map(|c| c.width().unwrap_or_default());
                prop_assert!(column <= widths.sum());
                prop_assert_eq!(lines.concat(), visible(&editor.text));
            }
        }
    }
}
