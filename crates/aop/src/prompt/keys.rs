//! What a key means at a prompt. A letter with Ctrl or Alt is never typed into an answer: it edits, or it does nothing.

use super::editor::Edit;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A key, or a paste as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Press {
    /// A character that is typed.
    Char(char),
    /// What was pasted, line ends and all.
    Paste(String),
    Edit(Edit),
    Up,
    Down,
    PageUp,
    PageDown,
    Enter,
    Escape,
    /// Ctrl-C.
    Interrupt,
}

/// What the terminal reports, as far as it means something.
pub(super) fn press(event: Event) -> Option<Press> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => meaning(key),
        Event::Paste(text) => Some(Press::Paste(text)),
        _ => None,
    }
}

fn meaning(key: KeyEvent) -> Option<Press> {
    let by_word = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    Some(match key.code {
        KeyCode::Char(c) if key.modifiers.difference(KeyModifiers::SHIFT).is_empty() => Press::Char(c),
        KeyCode::Char(c) if key.modifiers == KeyModifiers::CONTROL => return control(c),
        KeyCode::Enter if key.modifiers.is_empty() => Press::Enter,
        KeyCode::Esc => Press::Escape,
        KeyCode::Up => Press::Up,
        KeyCode::Down => Press::Down,
        KeyCode::PageUp => Press::PageUp,
        KeyCode::PageDown => Press::PageDown,
        KeyCode::Left => Press::Edit(if by_word { Edit::WordLeft } else { Edit::Left }),
        KeyCode::Right => Press::Edit(if by_word { Edit::WordRight } else { Edit::Right }),
        KeyCode::Home => Press::Edit(Edit::Start),
        KeyCode::End => Press::Edit(Edit::End),
        KeyCode::Delete => Press::Edit(Edit::Delete),
        KeyCode::Backspace => Press::Edit(if by_word { Edit::EraseWord } else { Edit::Erase }),
        _ => return None,
    })
}

fn control(c: char) -> Option<Press> {
    Some(match c {
        'a' => Press::Edit(Edit::Start),
        'e' => Press::Edit(Edit::End),
        'u' => Press::Edit(Edit::EraseLine),
        'k' => Press::Edit(Edit::DeleteLine),
        'w' => Press::Edit(Edit::EraseWord),
        // What the backspace key sends on some terminals.
        'h' => Press::Edit(Edit::Erase),
        'p' => Press::Up,
        'n' => Press::Down,
        'c' => Press::Interrupt,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_with_control_or_alt_is_never_typed() {
        let modifiers = [KeyModifiers::CONTROL, KeyModifiers::ALT, KeyModifiers::CONTROL | KeyModifiers::ALT];
        for modifiers in modifiers {
            for c in (' '..='~').chain(['ä', '世']) {
                let found = press(Event::Key(KeyEvent::new(KeyCode::Char(c), modifiers)));
                assert!(!matches!(found, Some(Press::Char(_))), "{modifiers:?} {c}: {found:?}");
                let edits = modifiers == KeyModifiers::CONTROL && "aeukwhpnc".contains(c);
                assert_eq!(found.is_some(), edits, "{modifiers:?} {c}");
            }
        }
        for (c, modifiers) in [('a', KeyModifiers::NONE), ('A', KeyModifiers::SHIFT)] {
            assert_eq!(press(Event::Key(KeyEvent::new(KeyCode::Char(c), modifiers))), Some(Press::Char(c)));
        }
    }
}
