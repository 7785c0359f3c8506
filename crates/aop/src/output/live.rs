//! A few lines at the bottom of the terminal that are painted again and again, with lasting lines scrolling by above
//! them. Nothing is kept of them when they are erased.

use super::table::fit;
use super::wrap::wrapped;
use crossterm::cursor::{Hide, MoveToColumn, MoveUp, Show};
use crossterm::terminal::{Clear, ClearType, disable_raw_mode, enable_raw_mode, size};
use crossterm::{QueueableCommand, queue};
use std::io::Write;

/// Paints.
pub(crate) struct Painter {
    painted: u16,
    raw: bool,
}

impl Painter {
    /// Takes the terminal. With `keys` single keys can be read; Ctrl-C is one of them then.
    pub(crate) fn start(keys: bool) -> Self {
        let raw = keys && enable_raw_mode().is_ok();
        let _ = queue!(std::io::stdout(), Hide);
        Painter { painted: 0, raw }
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        known_size().unwrap_or((80, 24))
    }

    /// Lets lines scroll by and paints the block below them.
    pub(crate) fn paint(&mut self, above: &[String], block: &[String]) {
        let (columns, _) = self.size();
        let mut out = std::io::stdout().lock();
        // A terminal that is gone is no reason to stop working.
        let _ = self.clear(&mut out);
        for line in above {
            let _ = write!(out, "{}\r\n", wrapped(line, columns).replace('\n', "\r\n"));
        }
        for line in block {
            let _ = write!(out, "{}\r\n", fit(line, columns.saturating_sub(1)));
        }
        let _ = out.flush();
        self.painted = u16::try_from(block.len()).unwrap_or_default();
    }

    /// Takes the block away and gives the terminal back, for a prompt or for good.
    pub(crate) fn pause(&mut self) {
        let mut out = std::io::stdout().lock();
        let _ = self.clear(&mut out);
        let _ = queue!(out, Show);
        let _ = out.flush();
        self.painted = 0;
        if self.raw {
            let _ = disable_raw_mode();
        }
    }

    /// Takes the terminal again after a pause.
    pub(crate) fn resume(&mut self) {
        if self.raw {
            let _ = enable_raw_mode();
        }
        let _ = queue!(std::io::stdout(), Hide);
    }

    /// Rings.
    pub(crate) fn bell(&self) {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(b"\x07");
        let _ = out.flush();
    }

    fn clear(&self, out: &mut impl Write) -> std::io::Result<()> {
        out.queue(MoveToColumn(0))?;
        if self.painted > 0 {
            out.queue(MoveUp(self.painted))?;
        }
        out.queue(Clear(ClearType::FromCursorDown))?;
        Ok(())
    }
}

impl Drop for Painter {
    fn drop(&mut self) {
        self.pause();
    }
}

/// Columns and rows of the terminal. One that says 0 does not know.
pub(crate) fn known_size() -> Option<(usize, usize)> {
    let (columns, rows) = size().ok().filter(|(columns, rows)| *columns > 0 && *rows > 0)?;
    Some((columns.into(), rows.into()))
}
