//! A list to choose from with the arrow keys, one entry or several, and a text that leaves only what it is part of. Pure.

use super::editor::{Edit, Editor};
use super::keys::Press;

/// How far a page key goes.
const PAGE: usize = 5;

/// What is said when enter is pressed and nothing is pointed at.
const CHOOSE_FIRST: &str = "choose with ↑ or ↓ first";

/// The list.
pub(super) struct List {
    entries: Vec<String>,
    /// The entry that stays whatever is typed.
    always: Option<usize>,
    /// Those that are ticked, where several can be.
    ticked: Option<Vec<bool>>,
    /// Whether nothing is pointed at before an arrow key was pressed.
    careful: bool,
    filter: Editor,
    /// Which of the entries that are left is pointed at.
    at: Option<usize>,
    note: Option<&'static str>,
}

impl List {
    /// One of these is chosen. The first is pointed at, or with `careful` none.
    pub(super) fn one(entries: Vec<String>, careful: bool) -> Self {
        let at = (!careful).then_some(0);
        List { entries, always: None, ticked: None, careful, filter: Editor::default(), at, note: None }
    }

    /// Several of these are chosen.
    pub(super) fn several(entries: Vec<String>) -> Self {
        List { ticked: Some(vec![false; entries.len()]), ..List::one(entries, false) }
    }

    /// One more entry behind the others, before the one that stays.
    pub(super) fn add(&mut self, entry: String) {
        let index = self.always.unwrap_or(self.entries.len());
        let pointed = self.chosen();
        self.entries.insert(index, entry);
        if let Some(ticks) = &mut self.ticked {
            ticks.insert(index, false);
        }
        self.always = self.always.map(|always| always + 1);
        // What was pointed at still is.
        let pointed = pointed.map(|pointed| pointed + usize::from(pointed >= index));
        self.at = self.matching().iter().position(|index| Some(*index) == pointed).or(self.at);
    }

    /// Ticks an entry, or takes its tick away.
    pub(super) fn tick(&mut self, index: usize, ticked: bool) {
        if let Some(tick) = self.ticked.as_mut().and_then(|ticks| ticks.get_mut(index)) {
            *tick = ticked;
        }
    }

    /// Whether the entry that stays is meant: ticked, or pointed at.
    pub(super) fn is_always_meant(&self) -> bool {
        self.always.is_some_and(|always| self.chosen() == Some(always) || self.ticked().contains(&always))
    }

    /// What the entry that stays stands for was asked for: it is not ticked any more, and the one before it is pointed at,
    /// so that the next Enter does something else.
    pub(super) fn leave_always(&mut self) {
        let Some(always) = self.always else { return };
        self.tick(always, false);
        let left = self.matching();
        let at = left.iter().position(|index| *index == always);
        if self.at == at {
            self.at = at.map(|at| at.saturating_sub(1));
        }
    }

    /// Forgets what was typed to find something. The same entry is pointed at.
    pub(super) fn show_all(&mut self) {
        self.at = self.chosen();
        self.filter = Editor::default();
    }

    /// One more entry, which no filter hides.
    pub(super) fn with_always(mut self, entry: &str) -> Self {
        self.always = Some(self.entries.len());
        self.entries.push(entry.to_owned());
        if let Some(ticks) = &mut self.ticked {
            ticks.push(false);
        }
        self
    }

    /// The same, pointing at this entry.
    pub(super) fn at(mut self, index: usize) -> Self {
        self.at = Some(index);
        self
    }

    /// What was typed to find something.
    pub(super) fn typed(&self) -> &str {
        self.filter.text()
    }

    pub(super) fn filter(&self) -> &Editor {
        &self.filter
    }

    pub(super) fn note(&self) -> Option<&'static str> {
        self.note
    }

    /// The entries that are left: each as a line, whether it is pointed at, and whether it is ticked.
    pub(super) fn left(&self) -> Vec<(&str, bool, Option<bool>)> {
        let shown = |(place, index): (usize, usize)| {
            let ticked = self.ticked.as_ref().map(|ticks| ticks[index]);
            (self.entries[index].as_str(), self.at == Some(place), ticked)
        };
        self.matching().into_iter().enumerate().map(shown).collect()
    }

    /// The entry that is pointed at.
    pub(super) fn chosen(&self) -> Option<usize> {
        self.matching().get(self.at?).copied()
    }

    /// The entries that are ticked.
    pub(super) fn ticked(&self) -> Vec<usize> {
        let ticks = self.ticked.iter().flatten().enumerate();
        ticks.filter(|(_, ticked)| **ticked).map(|(index, _)| index).collect()
    }

    fn matching(&self) -> Vec<usize> {
        let wanted = self.filter.text().to_lowercase();
        let is_left = |index: &usize| {
            self.always == Some(*index) || self.entries[*index].to_lowercase().contains(&wanted)
        };
        (0..self.entries.len()).filter(is_left).collect()
    }

    /// Takes a key. Whether the choice is made.
    pub(super) fn press(&mut self, press: Press) -> bool {
        self.note = None;
        let count = self.matching().len();
        let last = count.checked_sub(1);
        match press {
            Press::Enter if self.ticked.is_some() => return true,
            Press::Enter => {
                if self.chosen().is_none() {
                    // That nothing matches is said in the place of the entries.
                    self.note = (count > 0).then_some(CHOOSE_FIRST);
                }
                return self.chosen().is_some();
            }
            Press::Up => self.at = self.at.and_then(|at| at.checked_sub(1)).or(last),
            Press::Down => self.at = self.at.map(|at| at + 1).filter(|at| *at < count).or(last.map(|_| 0)),
            Press::PageUp => self.at = last.map(|_| self.at.unwrap_or(0).saturating_sub(PAGE)),
            Press::PageDown => self.at = last.map(|last| last.min(self.at.map_or(0, |at| at + PAGE))),
            Press::Edit(Edit::Start) => self.at = last.map(|_| 0),
            Press::Edit(Edit::End) => self.at = last,
            Press::Char(' ') if self.ticked.is_some() => {
                let pointed = self.chosen();
                if let (Some(ticks), Some(index)) = (&mut self.ticked, pointed) {
                    ticks[index] = !ticks[index];
                }
            }
            Press::Char(c) => self.narrow(|filter| filter.insert(c.encode_utf8(&mut [0; 4]))),
            Press::Paste(text) => self.narrow(|filter| filter.paste(&text.replace(['\r', '\n'], " "))),
            Press::Edit(edit) => self.narrow(|filter| filter.edit(edit)),
            Press::Escape | Press::Interrupt => {}
        }
        false
    }

    /// Changes what is typed; when that leaves other entries, the first of them is pointed at.
    fn narrow(&mut self, change: impl FnOnce(&mut Editor)) {
        let before = self.matching();
        change(&mut self.filter);
        let left = self.matching();
        if left != before {
            self.at = (!self.careful && !left.is_empty()).then_some(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> List {
        List::one(["allow", "deny", "always allow"].map(str::to_owned).to_vec(), false)
    }

    fn typed(list: &mut List, text: &str) {
        for c in text.chars() {
            list.press(Press::Char(c));
        }
    }

    #[test]
    fn arrows_go_round_and_enter_takes_what_is_pointed_at() {
        let mut list = list();
        assert_eq!(list.chosen(), Some(0));
        list.press(Press::Up);
        assert_eq!(list.chosen(), Some(2));
        list.press(Press::Down);
        assert_eq!(list.chosen(), Some(0));
        assert!(list.press(Press::Enter));
    }

    #[test]
    fn where_care_is_due_enter_alone_chooses_nothing() {
        let mut list = List { careful: true, at: None, ..list() };
        for _ in 0..3 {
            assert!(!list.press(Press::Enter));
            assert_eq!(list.note(), Some(CHOOSE_FIRST));
        }
        // Nor does a word that happens to be part of an entry.
        typed(&mut list, "all");
        assert!(!list.press(Press::Enter));
        list.press(Press::Down);
        assert_eq!((list.note(), list.chosen()), (None, Some(0)));
        assert!(list.press(Press::Enter));
    }

    #[test]
    fn a_filter_that_nothing_fits_is_cleared_by_backspace_and_control_letters_do_not_get_into_it() {
        let mut list = list();
        typed(&mut list, "DENY!");
        assert!(list.left().is_empty() && !list.press(Press::Enter));
        list.press(Press::Edit(Edit::Erase));
        assert_eq!(list.chosen(), Some(1));
        list.press(Press::Edit(Edit::EraseLine));
        assert_eq!((list.left().len(), list.typed()), (3, ""));
    }

    #[test]
    fn the_entry_for_own_words_stays_whatever_is_typed() {
        let mut list = list().with_always("something else …");
        typed(&mut list, "only once");
        assert_eq!((list.chosen(), list.typed()), (Some(3), "only once"));
    }

    #[test]
    fn an_entry_that_is_added_stands_before_the_one_that_stays_which_is_still_pointed_at() {
        let mut list = List::several(["a", "b"].map(str::to_owned).to_vec()).with_always("else");
        assert!(!list.is_always_meant());
        list.press(Press::Up);
        assert!(list.is_always_meant());
        list.add("c".to_owned());
        list.tick(2, true);
        assert_eq!((list.chosen(), list.ticked()), (Some(3), vec![2]));
        list.press(Press::Char(' '));
        list.press(Press::Down);
        assert!(list.is_always_meant() && list.chosen() == Some(0));
        list.leave_always();
        assert!(!list.is_always_meant() && list.chosen() == Some(0));
        list.press(Press::Up);
        list.leave_always();
        assert!(!list.is_always_meant() && list.chosen() == Some(2));
    }

    #[test]
    fn several_are_ticked_with_space_and_ticks_outlive_the_filter() {
        let entries = ["a", "b"].map(str::to_owned).to_vec();
        let mut list = List::several(entries);
        list.add("c".to_owned());
        list.tick(2, true);
        list.press(Press::Char('b'));
        list.press(Press::Char(' '));
        list.press(Press::Edit(Edit::Erase));
        assert_eq!(list.ticked(), [1, 2]);
        assert!(list.press(Press::Enter));
    }
}
