//! A plain table: columns as wide as their widest cell, the last one takes what is left of the line.

use super::live::known_size;
use super::wrap::wrapped;
use std::io::IsTerminal;
use unicode_width::UnicodeWidthStr;

/// Less than this of a text says nothing any more.
const LEAST: usize = 12;

/// The same for the terminal at hand. Where it is too narrow the elastic column gives way; when that is not enough,
/// the last cell of each row stands on a line of its own.
pub(crate) fn fitting(header: &[&str], rows: &[Vec<String>], elastic: Option<usize>) -> String {
    let size = if std::io::stdout().is_terminal() { known_size() } else { None };
    within(size.map_or(usize::MAX, |(columns, _)| columns), header, rows, elastic).join("\n")
}

/// The same in so many columns: the header, and each row with what stands below it.
pub(crate) fn within(
    room: usize,
    header: &[&str],
    rows: &[Vec<String>],
    elastic: Option<usize>,
) -> Vec<String> {
    let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let widths = widths(header, rows);
    let needed = |widths: &[usize]| widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
    // What is left for the elastic column beside the others.
    let left = |widths: &[usize]| {
        elastic.map_or(0, |elastic| (room + widths[elastic]).saturating_sub(needed(widths)))
    };
    if needed(&widths) <= room {
        return lines(table(header, rows));
    }
    if let Some(elastic) = elastic.filter(|_| left(&widths) >= LEAST) {
        return lines(table(header, &narrowed(rows, elastic, left(&widths))));
    }
    let (inner, last) = header.split_at(header.len() - 1);
    let name = super::style::dim(&format!("{}:", last.concat().to_lowercase()));
    let mut first: Vec<Vec<String>> = rows.iter().map(|row| row[..inner.len()].to_vec()).collect();
    let mut inner = inner.to_vec();
    if let Some(elastic) = elastic.filter(|_| needed(&widths[..inner.len()]) > room) {
        let left = left(&widths[..inner.len()]);
        if left >= LEAST {
            first = narrowed(&first, elastic, left);
        } else {
            inner.remove(elastic);
            first.iter_mut().for_each(|row| drop(row.remove(elastic)));
        }
    }
    let mut lines = lines(table(&inner, &first));
    for (line, row) in lines.iter_mut().skip(1).zip(rows) {
        if let Some(cell) = row.last().filter(|cell| seen(cell) > 0) {
            line.push('\n');
            line.push_str(&wrapped(&format!("  {name} {cell}"), room));
        }
    }
    lines
}

/// How many rows, each of so many lines, fit into the room: all of them, or those that leave a line for `and_more`.
pub(crate) fn fit_into(room: usize, heights: impl Iterator<Item = usize>) -> usize {
    let (mut used, mut shown, mut count) = (0, 0, 0);
    for height in heights {
        used += height;
        count += 1;
        if used < room {
            shown = count;
        }
    }
    if used <= room { count } else { shown }
}

/// Where rows that do not fit can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    ByStatus,
    /// Not by a command that could be typed here.
    Nowhere,
}

/// What stands in the place of the rows that do not fit.
pub(crate) fn and_more(hidden: usize, all: Listed) -> String {
    let all = if all == Listed::ByStatus { " (`aop status` lists all)" } else { "" };
    super::style::dim(&format!("  … and {hidden} more{all}"))
}

fn narrowed(rows: &[Vec<String>], column: usize, width: usize) -> Vec<Vec<String>> {
    let mut rows = rows.to_vec();
    rows.iter_mut().for_each(|row| row[column] = fit(&row[column], width));
    rows
}

/// How wide each column is.
pub(crate) fn widths(header: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths: Vec<usize> = header.iter().map(|cell| seen(cell)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(seen(cell));
        }
    }
    widths
}

/// Lays rows out under a header. Cells may carry colour; widths count what is seen.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let columns = header.len();
    let widths = widths(header, rows);
    let line = |cells: &[String]| {
        let mut text = String::new();
        for (index, cell) in cells.iter().enumerate() {
            text.push_str(cell);
            if index + 1 < columns {
                text.push_str(&" ".repeat(widths[index].saturating_sub(seen(cell)) + 2));
            }
        }
        text.trim_end().to_owned()
    };
    let header: Vec<String> = header.iter().map(|cell| super::style::dim(cell)).collect();
    let mut lines = vec![line(&header)];
    lines.extend(rows.iter().map(|row| line(row)));
    lines.join("\n")
}

/// How many columns a text takes: colour codes take none, a wide character two, a tab as many as it may.
pub(crate) fn seen(text: &str) -> usize {
    let plain = plain(text);
    plain.width() + 7 * plain.matches('\t').count()
}

/// A text without its colour codes.
pub(crate) fn plain(text: &str) -> String {
    let mut in_code = false;
    let is_seen = |c: &char| {
        let code = in_code || *c == '\x1b';
        in_code = code && *c != 'm';
        !code
    };
    text.chars().filter(is_seen).collect()
}

/// Cuts a line that may carry colour to so many columns.
pub(crate) fn fit(line: &str, width: usize) -> String {
    if seen(line) <= width { line.to_owned() } else { format!("{}…\x1b[0m", begin(line, width)) }
}

/// What of a line fits beside the mark that it is cut.
fn begin(line: &str, width: usize) -> String {
    let mut kept = String::new();
    let (mut count, mut in_code) = (0, false);
    for c in line.chars() {
        let code = in_code || c == '\x1b';
        let columns = if code { 0 } else { seen(c.encode_utf8(&mut [0; 4])) };
        if count + columns >= width {
            break;
        }
        count += columns;
        in_code = code && c != 'm';
        kept.push(c);
    }
    kept
}

/// Cuts a text to one line of so many columns.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let line = aop_kernel::log::one_line(text);
    if seen(&line) <= width { line } else { format!("{}…", begin(&line, width)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_does_not_shift_columns() {
        let text = table(
            &["A", "B"],
            &[vec!["\x1b[1mlong\x1b[0m".into(), "x".into()], vec!["y".into(), "z".into()]],
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "\x1b[1mlong\x1b[0m  x");
        assert_eq!(lines[2], "y     z");
    }

    const ID: &str = "q_01JA0000000000000000000000";

    /// The lines that somebody sees of a feature that waits.
    fn waiting(room: usize) -> Vec<String> {
        let cells = ["checkout", "awaiting_input", "just now", "A page that shows all of a cart", ID];
        let row = cells.map(|cell| format!("\x1b[2m{cell}\x1b[0m")).to_vec();
        let text =
            within(room, &["FEATURE", "STATUS", "SINCE", "TITLE", "WAITS FOR"], &[row], Some(3)).join("\n");
        let codes = ["\x1b[2m", "\x1b[1m", "\x1b[0m"];
        let text = codes.iter().fold(text, |text, code| text.replace(code, ""));
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_table_gives_way_to_a_narrow_terminal_and_no_id_is_cut() {
        let begin = "checkout  awaiting_input  just now";
        assert_eq!(waiting(100)[1], format!("{begin}  A page that shows all of a cart  {ID}"));
        assert_eq!(waiting(80)[1], format!("{begin}  A page that s…  {ID}"));
        let below = format!("  waits for: {ID}");
        assert_eq!(waiting(60)[1..], [format!("{begin}  A page that shows all o…"), below.clone()]);
        assert_eq!(waiting(41)[1..], [begin.to_owned(), below]);
        for room in 41..140 {
            let lines = waiting(room);
            assert!(lines.iter().all(|line| line.chars().count() <= room), "{room}: {lines:#?}");
        }
    }

    #[test]
    fn rows_that_do_not_all_fit_leave_a_line_that_counts_the_others() {
        let fitting = |room, heights: &[usize]| fit_into(room, heights.iter().copied());
        assert_eq!((fitting(3, &[1, 1, 1]), fitting(3, &[1, 1, 1, 1]), fitting(3, &[2, 1])), (3, 2, 2));
        assert_eq!(
            (fitting(3, &[2, 2]), fitting(2, &[2, 2]), fitting(0, &[1]), fitting(0, &[])),
            (1, 0, 0, 0)
        );
    }

    #[test]
    fn a_long_cell_is_cut_with_a_mark() {
        assert_eq!(cut("one two three", 7), "one tw…");
        assert_eq!(cut("one\ntwo", 7), "one two");
        assert_eq!(cut("世界世界", 7), "世界世…");
        assert_eq!(fit("世界世界", 6), "世界…\x1b[0m");
    }
}
