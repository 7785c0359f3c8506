//! What is typed at the live view. It takes single keys, and whoever types a whole command into it means another terminal:
//! a key counts when it stands alone.

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use std::time::{Duration, Instant};

/// Keys that follow each other this closely are typed, not pressed.
const TYPING: Duration = Duration::from_millis(400);

/// What somebody wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Stop,
    Answer,
}

/// What was typed since it was last quiet.
#[derive(Default)]
pub(super) struct Keys {
    last: Option<Instant>,
    /// Whether that was nothing but the key that answers.
    only_answer: bool,
}

impl Keys {
    /// Takes what the terminal reports. Ctrl-C is heard at once.
    pub(super) fn hear(&mut self, event: &Event, now: Instant) -> Option<Wish> {
        let is_answer = match event {
            Event::Key(key) if key.kind == KeyEventKind::Release => return None,
            Event::Key(key) if key.code == KeyCode::Char('c') && key.modifiers == KeyModifiers::CONTROL => {
                return Some(Wish::Stop);
            }
            Event::Key(key) => key.code == KeyCode::Char('a') && key.modifiers.is_empty(),
            Event::Paste(_) => false,
            _ => return None,
        };
        let is_first = self.last.is_none_or(|last| now.saturating_duration_since(last) >= TYPING);
        self.only_answer = is_answer && (is_first || self.only_answer);
        self.last = Some(now);
        None
    }

    /// What is wished for, once it is quiet again.
    pub(super) fn settled(&mut self, now: Instant) -> Option<Wish> {
        self.last.take_if(|last| now.saturating_duration_since(*last) >= TYPING)?;
        std::mem::take(&mut self.only_answer).then_some(Wish::Answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::KeyEvent;

    /// Types each text at its moment (in milliseconds), a character every 100, and gives what was wished for.
    fn wishes(typed: &[(u64, &str)]) -> Vec<Wish> {
        let begin = Instant::now();
        let mut keys = Keys::default();
        let mut events = Vec::new();
        for (at, text) in typed {
            for (place, c) in text.chars().enumerate() {
                let code = if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) };
                events.push((at + 100 * place as u64, Event::Key(KeyEvent::new(code, KeyModifiers::NONE))));
            }
        }
        let mut wishes = Vec::new();
        for step in 0..100 {
            let now = begin + Duration::from_millis(50 * step);
            for (_, event) in events.iter().filter(|(at, _)| *at == 50 * step) {
                wishes.extend(keys.hear(event, now));
            }
            wishes.extend(keys.settled(now));
        }
        wishes
    }

    #[test]
    fn a_command_that_is_typed_into_the_view_opens_no_form() {
        assert_eq!(wishes(&[(0, "aop answer\n")]), []);
        assert_eq!(wishes(&[(0, "\n"), (1_000, "\n\n"), (2_000, "ls -a\n")]), []);
    }

    #[test]
    fn the_key_that_answers_is_heard_when_it_stands_alone_and_pressed_twice_is_once() {
        assert_eq!(wishes(&[(0, "a")]), [Wish::Answer]);
        assert_eq!(wishes(&[(0, "aa")]), [Wish::Answer]);
        assert_eq!(wishes(&[(0, "x"), (1_000, "a"), (2_000, "b")]), [Wish::Answer]);
    }

    #[test]
    fn a_paste_means_nothing_and_control_c_stops_at_once() {
        let now = Instant::now();
        let mut keys = Keys::default();
        assert_eq!(keys.hear(&Event::Paste("a".to_owned()), now), None);
        assert_eq!(keys.settled(now + TYPING), None);
        let stop = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(keys.hear(&Event::Key(stop), now), Some(Wish::Stop));
    }
}
