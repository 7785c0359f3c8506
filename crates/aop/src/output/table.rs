//! A plain table: columns as wide as their widest cell, the last one takes what is left of the line.

/// Lays rows out under a header. Cells may carry colour; widths count what is seen.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let columns = header.len();
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(seen(cell));
        }
    }
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

/// How many characters of a cell are visible: colour codes are not.
fn seen(cell: &str) -> usize {
    let mut count = 0;
    let mut in_code = false;
    for c in cell.chars() {
        match (in_code, c) {
            (false, '\x1b') => in_code = true,
            (false, _) => count += 1,
            (true, 'm') => in_code = false,
            (true, _) => {}
        }
    }
    count
}

/// Cuts a line that may carry colour to so many visible characters.
pub(crate) fn fit(line: &str, width: usize) -> String {
    if seen(line) <= width {
        return line.to_owned();
    }
    let mut kept = String::new();
    let (mut count, mut in_code) = (0, false);
    for c in line.chars() {
        let is_seen = !in_code && c != '\x1b';
        if is_seen && count + 1 >= width {
            break;
        }
        count += usize::from(is_seen);
        in_code = if in_code { c != 'm' } else { c == '\x1b' };
        kept.push(c);
    }
    format!("{kept}…\x1b[0m")
}

/// Cuts a text to one line of so many characters.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let line = aop_kernel::log::one_line(text);
    if line.chars().count() <= width {
        return line;
    }
    let kept: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
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

    #[test]
    fn a_long_cell_is_cut_with_a_mark() {
        assert_eq!(cut("one two three", 7), "one tw…");
        assert_eq!(cut("one\ntwo", 7), "one two");
    }
}
