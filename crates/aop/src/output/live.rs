//! A few lines at the bottom of the terminal that are painted again and again, with lasting lines scrolling by above
//! them. Nothing is kept of them when they are erased, and whoever leaves them keeps the last ones.

use super::has_room;
use super::style::is_dumb;
use super::table::fit;
use super::wrap::wrapped;
use crossterm::cursor::{Hide, MoveDown, MoveToColumn, MoveUp, Show};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{Clear, ClearType, disable_raw_mode, enable_raw_mode, size};
use crossterm::{QueueableCommand, queue};
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};
use std::io::{IsTerminal, Write};

/// With so many lines there is room for empty ones.
pub(crate) const AIRY: usize = 14;

/// Paints.
pub(crate) struct Painter {
    painted: u16,
    raw: bool,
    /// Whether the terminal can take lines back. Else they are printed below each other.
    moves: bool,
}

impl Painter {
    /// Takes the terminal. With `keys` single keys can be read; Ctrl-C is one of them then, and a paste is one event.
    pub(crate) fn start(keys: bool) -> Self {
        let mut painter = Painter { painted: 0, raw: keys, moves: !is_dumb() };
        painter.resume();
        painter
    }

    /// Whether lines can be painted again and again.
    pub(crate) fn moves(&self) -> bool {
        self.moves
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        known_size().unwrap_or((80, 24))
    }

    /// Lets lines scroll by and paints the block below them.
    pub(crate) fn paint(&mut self, above: &[String], block: &[String]) {
        if self.raw && retake() {
            // What was painted stands where the shell has left it.
            self.painted = 0;
            self.resume();
        }
        let (columns, _) = self.size();
        let mut out = std::io::stdout().lock();
        let above = above.iter().flat_map(|line| {
            let text = wrapped(line, columns);
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        });
        let block_lines = block.iter().map(|line| fit(line, columns.saturating_sub(1)));
        // A terminal that is gone is no reason to stop working.
        let _ = self.repaint(&mut out, above.chain(block_lines));
        let _ = out.flush();
        self.painted = u16::try_from(block.len()).unwrap_or_default();
    }

    /// Takes the block away and gives the terminal back, for a prompt or for good.
    pub(crate) fn pause(&mut self) {
        let mut out = std::io::stdout().lock();
        let _ = self.repaint(&mut out, std::iter::empty());
        if self.raw {
            let _ = queue!(out, DisableBracketedPaste);
        }
        if self.moves {
            let _ = queue!(out, Show);
        }
        let _ = out.flush();
        self.painted = 0;
        if self.raw {
            let _ = disable_raw_mode();
        }
    }

    /// Leaves the last block where it is and gives the terminal back, the cursor below it.
    pub(crate) fn leave(mut self) {
        self.painted = 0;
    }

    /// Takes the terminal again after a pause.
    pub(crate) fn resume(&mut self) {
        self.raw = self.raw && enable_raw_mode().is_ok();
        if self.raw {
            let _ = queue!(std::io::stdout(), EnableBracketedPaste);
        }
        if self.moves {
            let _ = queue!(std::io::stdout(), Hide);
        }
        // Nothing is left to be written behind what gives the terminal back.
        let _ = std::io::stdout().flush();
    }

    /// Rings.
    pub(crate) fn bell(&self) {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(b"\x07");
        let _ = out.flush();
    }

    /// Puts lines in the place of those that were painted. Line by line: a terminal that is cleared from its first line
    /// on may keep what it showed, a copy for every time.
    fn repaint(&self, out: &mut impl Write, lines: impl Iterator<Item = String>) -> std::io::Result<()> {
        let mut taken = 0;
        if self.moves {
            out.queue(MoveToColumn(0))?;
            up(out, self.painted)?;
        }
        for line in lines {
            write!(out, "{line}")?;
            if self.moves {
                out.queue(Clear(ClearType::UntilNewLine))?;
            }
            write!(out, "\r\n")?;
            taken += 1;
        }
        if self.moves {
            let left = self.painted.saturating_sub(taken);
            for _ in 0..left {
                out.queue(Clear(ClearType::CurrentLine))?;
                out.queue(MoveDown(1))?;
            }
            up(out, left)?;
        }
        Ok(())
    }
}

fn up(out: &mut impl Write, lines: u16) -> std::io::Result<()> {
    // None at all would be taken for one.
    if lines > 0 {
        out.queue(MoveUp(lines))?;
    }
    Ok(())
}

impl Drop for Painter {
    fn drop(&mut self) {
        self.pause();
    }
}

/// Gives the terminal back without the painter, which may be in the middle of something. It may even hold stdout, and wait
/// for a terminal that nobody reads: nothing waits for that here.
pub(crate) fn give_back() {
    let stdout = std::io::stdout();
    if stdout.is_terminal() && disable_raw_mode().is_ok() && !is_dumb() && has_room() {
        let mut last = Vec::new();
        let _ = queue!(last, DisableBracketedPaste, Show);
        let _ = rustix::io::write(&stdout, &last);
    }
}

/// Takes the terminal again, whose single keys were read, if a shell has taken it meanwhile: it does when the program was
/// stopped, and does not give it back when it goes on. Whether it had to be; in the background it is the shell's.
pub(crate) fn retake() -> bool {
    let modes = tcgetattr(std::io::stdin());
    let reads_lines = modes.is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON));
    reads_lines && is_in_front() && disable_raw_mode().is_ok() && enable_raw_mode().is_ok()
}

/// Whether the terminal's keys come to this program. Behind a shell that goes on (`aop run &`) they are the shell's, and
/// the system stops whoever takes them.
pub(crate) fn is_in_front() -> bool {
    // A terminal that belongs to no shell stops nobody.
    tcgetpgrp(std::io::stdin()).map_or(true, |front| front == getpgrp())
}

/// Columns and rows of the terminal. One that says 0 does not know.
pub(crate) fn known_size() -> Option<(usize, usize)> {
    let (columns, rows) = size().ok().filter(|(columns, rows)| *columns > 0 && *rows > 0)?;
    Some((columns.into(), rows.into()))
}
