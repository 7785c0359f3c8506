//! A line to type into, a list to choose from and a key to wait for, as they are painted. Pure.

use super::editor::{Editor, Shown};
use super::keys::Press;
use super::list::List;
use super::stage::{Frame, Widget};
use crate::output::style::{bold, cyan, dim, yellow};
use crate::output::table::fit;
use crate::output::wrap::{broken_up, wrapped};

/// What stands before a line that is typed.
const TYPED: &str = "> ";

/// A line to type into.
pub(super) struct Line<'a> {
    pub(super) editor: Editor,
    pub(super) shown: Shown,
    pub(super) help: &'a str,
}

impl Widget for Line<'_> {
    fn press(&mut self, press: Press) -> bool {
        match press {
            Press::Enter => return true,
            Press::Char(c) => self.editor.insert(c.encode_utf8(&mut [0; 4])),
            Press::Paste(text) => self.editor.paste(&text),
            Press::Edit(edit) => self.editor.edit(edit),
            Press::Up | Press::Down | Press::PageUp | Press::PageDown => {}
            Press::Escape | Press::Interrupt => {}
        }
        false
    }

    fn frame(&self, columns: usize, rows: usize) -> Frame {
        let mut help = helping(self.help, columns);
        // It may name all that was chosen.
        help.truncate(rows.saturating_sub(1).max(1));
        let (mut lines, cursor) = typed(&self.editor, self.shown, columns, rows.saturating_sub(help.len()));
        lines.extend(help);
        Frame { lines, cursor: Some(cursor) }
    }
}

/// The lines of what is typed, no more than there is room for, and the cursor among them.
fn typed(editor: &Editor, shown: Shown, columns: usize, room: usize) -> (Vec<String>, (usize, usize)) {
    let (lines, (row, column)) = editor.laid_out(shown, columns.saturating_sub(TYPED.len()));
    let room = room.max(1);
    // The cursor's line is always among them.
    let first = (row + 1).saturating_sub(room);
    let mark = |index: usize| if index == 0 { cyan(TYPED.trim_end()) + " " } else { "  ".to_owned() };
    let lines = lines.iter().enumerate().skip(first).take(room);
    let lines = lines.map(|(index, line)| format!("{}{line}", mark(index))).collect();
    (lines, (row - first, column + TYPED.len()))
}

fn helping(help: &str, columns: usize) -> Vec<String> {
    wrapped(help, columns).lines().map(|line| fit(&dim(line), columns)).collect()
}

/// Nothing but a key that is waited for.
pub(super) struct Pause<'a> {
    pub(super) help: &'a str,
}

impl Widget for Pause<'_> {
    fn press(&mut self, press: Press) -> bool {
        press == Press::Enter
    }

    fn frame(&self, columns: usize, _: usize) -> Frame {
        Frame { lines: helping(self.help, columns), cursor: None }
    }
}

/// A list to choose from.
pub(super) struct Menu<'a> {
    pub(super) list: List,
    /// What there is to see of each entry.
    pub(super) previews: Vec<Option<String>>,
    /// How what is typed to find something is shown.
    pub(super) shown: Shown,
    pub(super) help: &'a str,
}

impl Widget for Menu<'_> {
    fn press(&mut self, press: Press) -> bool {
        self.list.press(press)
    }

    fn frame(&self, columns: usize, rows: usize) -> Frame {
        let mut help: Vec<String> =
            self.list.note().map(|note| fit(&yellow(note), columns)).into_iter().collect();
        help.extend(helping(self.help, columns));
        help.truncate(rows.saturating_sub(2).max(1));
        let (mut lines, mut cursor) = (Vec::new(), None);
        if !self.list.typed().is_empty() {
            let (typed, at) = typed(self.list.filter(), self.shown, columns, 1);
            (lines, cursor) = (typed, Some(at));
        }
        let left = self.list.left();
        if left.is_empty() {
            lines.push(fit(&dim("  nothing matches; backspace clears"), columns));
        }
        let room = rows.saturating_sub(lines.len() + help.len()).max(1);
        let pointed = self.list.chosen().and_then(|index| self.previews.get(index)?.as_ref());
        let preview = pointed.map(|text| broken_up(text, columns.saturating_sub(BESIDE.len())));
        let preview = preview.unwrap_or_default();
        // The list keeps a part of the terminal however long a preview is.
        let kept = room.saturating_sub(preview.len()).max(room.div_ceil(PART)).min(room);
        let shown = window(&left, columns, kept);
        let below = room - shown.len().min(room);
        lines.extend(shown);
        lines.extend(previewed(&preview, columns, below));
        lines.extend(help);
        Frame { lines, cursor }
    }
}

/// The list has at least so much of a terminal: one of so many parts.
const PART: usize = 3;

/// What stands beside a preview.
const BESIDE: &str = "  │ ";

/// A preview, or as much of it as there is room for.
fn previewed(lines: &[String], columns: usize, room: usize) -> Vec<String> {
    let beside = |line: &String| fit(&format!("{}{line}", BESIDE.replace('│', &dim("│"))), columns);
    if lines.len() <= room {
        return lines.iter().map(beside).collect();
    }
    let shown = room.saturating_sub(1);
    let more = dim(&format!("{BESIDE}… {} more lines", lines.len() - shown));
    lines.iter().take(shown).map(beside).chain((room > 0).then(|| fit(&more, columns))).collect()
}

/// As many entries around the one that is pointed at as there is room for, and how many there are besides.
fn window(left: &[(&str, bool, Option<bool>)], columns: usize, room: usize) -> Vec<String> {
    let entries: Vec<Vec<String>> = left.iter().map(|entry| painted(entry, columns)).collect();
    let pointed = left.iter().position(|(_, pointed, _)| *pointed).unwrap_or(0);
    let height: usize = entries.iter().map(Vec::len).sum();
    if height <= room {
        return entries.concat();
    }
    let room = room.saturating_sub(1).max(1);
    let (mut first, mut end, mut used) = (pointed, pointed + 1, entries[pointed].len());
    // One that is higher than the terminal is cut, and says so.
    let is_cut = used > room;
    loop {
        let fits = |index: usize| entries.get(index).is_some_and(|entry| used + entry.len() <= room);
        // What comes next is more interesting than what was passed.
        if fits(end) {
            used += entries[end].len();
            end += 1;
        } else if first > 0 && fits(first - 1) {
            first -= 1;
            used += entries[first].len();
        } else {
            break;
        }
    }
    let mut lines = entries[first..end].concat();
    lines.truncate(room);
    let (above, below) = (first, entries.len() - end);
    let besides = [
        (above > 0).then(|| format!("{above} above")),
        (below > 0).then(|| format!("{below} below")),
        is_cut.then(|| "more of this one: make the window larger".to_owned()),
    ];
    let besides: Vec<String> = besides.into_iter().flatten().collect();
    lines.push(fit(&dim(&format!("  … {}", besides.join(", "))), columns));
    lines
}

fn painted((entry, pointed, ticked): &(&str, bool, Option<bool>), columns: usize) -> Vec<String> {
    let arrow = if *pointed { "❯" } else { " " };
    let tick = match ticked {
        Some(true) => "[x] ",
        Some(false) => "[ ] ",
        None => "",
    };
    let behind = " ".repeat(2 + tick.len());
    let lines = broken_up(entry, columns.saturating_sub(behind.len()));
    let begins = std::iter::once(format!("{arrow} {tick}")).chain(std::iter::repeat(behind));
    let lines = begins.zip(lines).map(|(begin, line)| fit(&format!("{begin}{line}"), columns));
    if *pointed { lines.map(|line| cyan(&bold(&line))).collect() } else { lines.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::seen;

    fn menu(count: usize) -> Menu<'static> {
        let entry = |number: usize| format!("entry {number} with a few words that may need a second line");
        let list = List::one((0..count).map(entry).collect(), false);
        Menu { list, previews: Vec::new(), shown: Shown::Plainly, help: "↑↓ choose, enter to answer" }
    }

    #[test]
    fn of_the_previews_that_of_the_entry_is_shown_that_is_pointed_at_and_the_list_stays() {
        let text = |number: usize| (0..12).map(|line| format!("p{number} line {line}\n")).collect::<String>();
        for (columns, rows) in [(40, 12), (80, 23), (80, 60)] {
            let mut menu = menu(25);
            menu.previews = (0..25).map(|number| Some(text(number))).collect();
            for number in 0..25 {
                let lines = menu.frame(columns, rows).lines;
                let has = |text: &str| lines.iter().any(|line| line.contains(text));
                assert!(lines.len() <= rows, "{rows}: {lines:#?}");
                assert!(has("❯") && has(&format!("│ p{number} line 0")), "{lines:#?}");
                assert!(has(&format!("│ p{number} line 11")) || has(" more lines"), "{lines:#?}");
                assert_eq!(lines.iter().filter(|line| line.contains("line 0")).count(), 1, "{lines:#?}");
                menu.press(Press::Down);
            }
        }
    }

    #[test]
    fn a_list_never_grows_beyond_the_terminal_and_shows_what_is_pointed_at() {
        for (columns, rows) in [(12, 3), (20, 6), (40, 10), (100, 30)] {
            for count in [1, 2, 9, 60] {
                let mut menu = menu(count);
                for _ in 0..count {
                    let lines = menu.frame(columns, rows).lines;
                    assert!(lines.iter().all(|line| seen(line) <= columns), "{columns}: {lines:#?}");
                    assert!(lines.len() <= rows, "{rows}: {lines:#?}");
                    assert!(lines.iter().any(|line| line.contains('❯')), "{lines:#?}");
                    menu.press(Press::Down);
                }
            }
        }
    }

    #[test]
    fn an_entry_that_is_higher_than_the_terminal_is_shown_and_says_that_it_is_cut() {
        let entries =
            ["Keep".to_owned(), format!("Delete {}", "very carefully ".repeat(60)), "Rename".to_owned()];
        for ticked in [false, true] {
            let entries = entries.to_vec();
            let list = if ticked { List::several(entries) } else { List::one(entries, false) };
            let mut menu = Menu { list, previews: Vec::new(), shown: Shown::Plainly, help: "help" };
            menu.press(Press::Down);
            let lines = menu.frame(60, 9).lines;
            assert!(lines.iter().any(|line| line.contains("❯") && line.contains("Delete")), "{lines:#?}");
            assert!(
                lines.iter().any(|line| line.contains("1 above, 1 below, more of this one")),
                "{lines:#?}"
            );
            assert!(lines.len() <= 9, "{lines:#?}");
        }
    }

    #[test]
    fn a_label_without_a_gap_is_shown_to_its_end() {
        let path = format!("/srv/{}", "a".repeat(90));
        let list = List::one(vec![format!("{path}/keep"), format!("{path}/delete")], false);
        let lines =
            Menu { list, previews: Vec::new(), shown: Shown::Plainly, help: "help" }.frame(40, 20).lines;
        assert!(lines.iter().all(|line| seen(line) <= 40), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("/keep")), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("/delete")), "{lines:#?}");
    }

    #[test]
    fn a_filter_that_nothing_fits_says_so() {
        let mut menu = menu(3);
        menu.press(Press::Char('!'));
        let lines = menu.frame(60, 20).lines;
        assert_eq!(lines[..2], ["> !", "  nothing matches; backspace clears"], "{lines:#?}");
    }

    #[test]
    fn a_long_help_leaves_room_for_what_is_typed() {
        let help = "many words ".repeat(40);
        let line = Line { editor: Editor::new("mine"), shown: Shown::Plainly, help: &help };
        let frame = line.frame(22, 5);
        assert_eq!((frame.lines.len(), frame.lines[0].as_str()), (5, "> mine"));
    }

    #[test]
    fn a_text_that_is_longer_than_the_terminal_shows_its_part_around_the_cursor() {
        let line = Line { editor: Editor::new(&"x".repeat(500)), shown: Shown::Plainly, help: "help" };
        let frame = line.frame(22, 5);
        assert_eq!((frame.lines.len(), frame.cursor), (5, Some((3, 2))));
    }
}
