//! The terminal while a prompt is on it: lines at the bottom that are painted anew after every key, on stderr. It is
//! given back as it was, whatever ends the prompt.

use super::keys::{Press, press};
use crate::output::live::{known_size, retake};
use crate::output::wrap::fitted;
use crossterm::cursor::{Hide, MoveTo, MoveToColumn, MoveUp, Show};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, Event, poll, read};
use crossterm::terminal::{Clear, ClearType, disable_raw_mode, enable_raw_mode};
use crossterm::{QueueableCommand, execute, queue};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How soon whoever reads keys notices that nobody wants them any more: a prompt, that its question was closed elsewhere.
pub(crate) const PULSE: Duration = Duration::from_millis(50);

/// Whether a prompt is still wanted. Whoever shows it beside something else takes it away, and sees whether somebody is
/// typing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    withdrawn: AtomicBool,
    typed: AtomicUsize,
}

impl Wanted {
    /// From now on it is not.
    pub(super) fn withdraw(&self) {
        self.0.withdrawn.store(true, Ordering::Release);
    }

    fn is_withdrawn(&self) -> bool {
        self.0.withdrawn.load(Ordering::Acquire)
    }

    /// How many keys were pressed so far that type or send something.
    pub(super) fn typed(&self) -> usize {
        self.0.typed.load(Ordering::Acquire)
    }

    fn hear(&self, press: Option<&Press>) {
        if matches!(press, Some(Press::Char(_) | Press::Paste(_) | Press::Enter)) {
            self.0.typed.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// What is painted: lines that fit the terminal, and where the cursor stands among them.
pub(super) struct Frame {
    pub(super) lines: Vec<String>,
    pub(super) cursor: Option<(usize, usize)>,
}

/// Something that takes keys and can be painted.
pub(super) trait Widget {
    /// Takes a key. Whether it is done with it.
    fn press(&mut self, press: Press) -> bool;
    /// What it looks like in so many columns and rows.
    fn frame(&self, columns: usize, rows: usize) -> Frame;
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Done,
    Escaped,
    Interrupted,
    /// It is not wanted any more.
    Withdrawn,
}

/// Shows a widget until it is done or somebody wants to leave it. Keys from before it could be seen are discarded: they
/// were meant for something else. So are those that are on their way when it is taken away: nobody else shall have them.
///
/// `above` is what stands above it. A terminal of another size has broken all lines anew, each in its own way, so nobody
/// knows where this began: it is cleared, and both are painted again.
pub(super) fn show(widget: &mut impl Widget, above: Option<&str>, wanted: &Wanted) -> std::io::Result<End> {
    let mut stage = Stage::open()?;
    discard()?;
    loop {
        let (columns, rows) = known_size().unwrap_or((80, 24));
        stage.paint(&widget.frame(columns.saturating_sub(1).max(10), rows.saturating_sub(1).max(3)))?;
        let Some(event) = next(wanted)? else {
            stage.take_again(above)?;
            continue;
        };
        if wanted.is_withdrawn() {
            discard()?;
            return Ok(End::Withdrawn);
        }
        if let (Event::Resize(..), Some(above)) = (&event, above) {
            stage.clear(above)?;
        }
        let press = press(event);
        wanted.hear(press.as_ref());
        let end = match press {
            None => None,
            Some(Press::Escape) => Some(End::Escaped),
            Some(Press::Interrupt) => Some(End::Interrupted),
            Some(key) => widget.press(key).then_some(End::Done),
        };
        if let Some(end) = end {
            return Ok(end);
        }
    }
}

fn discard() -> std::io::Result<()> {
    while poll(Duration::ZERO)? {
        read()?;
    }
    Ok(())
}

/// The next thing that the terminal reports; anything at all when nobody wants to know any more. Nothing when the terminal
/// had to be taken again, which shows what is typed until then.
fn next(wanted: &Wanted) -> std::io::Result<Option<Event>> {
    while !wanted.is_withdrawn() {
        if retake() {
            return Ok(None);
        }
        if poll(PULSE)? {
            return read().map(Some);
        }
    }
    Ok(Some(Event::FocusLost))
}

/// The terminal, taken.
struct Stage {
    /// In which of its lines the cursor was left.
    row: usize,
}

impl Stage {
    fn open() -> std::io::Result<Self> {
        enable_raw_mode()?;
        let stage = Stage { row: 0 };
        execute!(std::io::stderr(), EnableBracketedPaste)?;
        Ok(stage)
    }

    /// Begins again below what the shell has said meanwhile.
    fn take_again(&mut self, above: Option<&str>) -> std::io::Result<()> {
        execute!(std::io::stderr(), EnableBracketedPaste)?;
        self.say(above.unwrap_or_default())
    }

    fn paint(&mut self, frame: &Frame) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        self.erase(&mut bytes)?;
        bytes.extend(frame.lines.join("\r\n").into_bytes());
        let last = frame.lines.len().saturating_sub(1);
        let (row, column) = frame.cursor.unwrap_or((last, 0));
        up(&mut bytes, last.saturating_sub(row))?;
        bytes.queue(MoveToColumn(u16::try_from(column).unwrap_or_default()))?;
        if frame.cursor.is_some() {
            bytes.queue(Show)?;
        }
        self.row = row;
        let mut stderr = std::io::stderr().lock();
        stderr.write_all(&bytes)?;
        stderr.flush()
    }

    fn clear(&mut self, above: &str) -> std::io::Result<()> {
        execute!(std::io::stderr(), Clear(ClearType::All), MoveTo(0, 0))?;
        self.say(above)
    }

    /// Writes what stands above, and begins below that.
    fn say(&mut self, above: &str) -> std::io::Result<()> {
        self.row = 0;
        let mut stderr = std::io::stderr().lock();
        let above = fitted(above, &stderr);
        write!(stderr, "{}\r\n", above.replace('\n', "\r\n"))
    }

    fn erase(&self, bytes: &mut Vec<u8>) -> std::io::Result<()> {
        queue!(bytes, Hide, MoveToColumn(0))?;
        up(bytes, self.row)?;
        queue!(bytes, Clear(ClearType::FromCursorDown))
    }
}

fn up(bytes: &mut Vec<u8>, rows: usize) -> std::io::Result<()> {
    match u16::try_from(rows) {
        Ok(0) | Err(_) => Ok(()),
        Ok(rows) => queue!(bytes, MoveUp(rows)),
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let mut bytes = Vec::new();
        // A terminal that is gone needs nothing back.
        let _ = self.erase(&mut bytes);
        let _ = queue!(bytes, DisableBracketedPaste, Show);
        let _ = std::io::stderr().lock().write_all(&bytes);
        let _ = disable_raw_mode();
    }
}
