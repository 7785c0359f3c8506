//! Lines for the terminal at hand: broken between words and never inside one, nor inside a command that somebody copies.

use super::live::known_size;
use super::table::{plain, seen};
use std::io::IsTerminal;
use std::ops::Range;

/// Text as it is shown there: a pipe gets it as it is.
pub(crate) fn fitted(text: &str, to: &impl IsTerminal) -> String {
    match known_size().filter(|_| to.is_terminal()) {
        Some((columns, _)) => wrapped(text, columns),
        None => text.to_owned(),
    }
}

/// Text in so many columns. What is longer than a line by itself stands on one of its own.
pub(crate) fn wrapped(text: &str, room: usize) -> String {
    text.split('\n').map(|line| broken(line, room)).collect::<Vec<_>>().join("\n")
}

/// The lines of a text without colour, none of them wider than this: broken between words, and a word that is wider by
/// itself wherever it has to be.
pub(crate) fn broken_up(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in wrapped(text, room).lines() {
        let (mut piece, mut width) = (String::new(), 0);
        for c in line.chars() {
            let next = seen(c.encode_utf8(&mut [0; 4]));
            if width > 0 && width + next > room {
                lines.push(std::mem::take(&mut piece));
                width = 0;
            }
            piece.push(c);
            width += next;
        }
        lines.push(piece);
    }
    lines
}

fn broken(line: &str, room: usize) -> String {
    let plain = plain(line);
    let words = words(&plain);
    if seen(&plain) <= room || words.len() < 2 {
        return line.to_owned();
    }
    let hang = hang(&plain, &words, room);
    let mut column = seen(&plain[..words[0].end]);
    let mut breaks = Vec::new();
    for pair in words.windows(2) {
        let gap = pair[0].end..pair[1].start;
        let word = seen(&plain[pair[1].clone()]);
        if column + gap.len() + word > room {
            column = seen(&hang) + word;
            breaks.push(gap);
        } else {
            column += gap.len() + word;
        }
    }
    with_breaks(line, &breaks, &format!("\n{hang}"))
}

/// The line with its gaps at these places of the plain text replaced. Colour goes on behind them.
fn with_breaks(line: &str, breaks: &[Range<usize>], with: &str) -> String {
    let mut text = String::new();
    let (mut at, mut in_code, mut breaks) = (0, false, breaks.iter().peekable());
    for c in line.chars() {
        if in_code || c == '\x1b' {
            in_code = c != 'm';
            text.push(c);
            continue;
        }
        breaks.next_if(|gap| gap.end <= at);
        match breaks.peek() {
            Some(gap) if gap.start == at => text.push_str(with),
            Some(gap) if gap.contains(&at) => {}
            _ => text.push(c),
        }
        at += c.len_utf8();
    }
    text
}

/// What stays in one piece: a word, what stands in backticks, and the command that an indented line begins with.
fn words(line: &str) -> Vec<Range<usize>> {
    let indent = indent(line).len();
    let mut start = indent;
    let mut words = Vec::new();
    if indent >= 2 && is_command(&line[indent..]) {
        let end = line[indent..].find("  ").map_or(line.len(), |gap| indent + gap);
        words.push(indent..end);
        start = end;
    }
    let (mut word, mut quoted) = (None, false);
    for (at, c) in line.char_indices().filter(|(at, _)| *at >= start) {
        if c == '`' {
            // One that nothing closes is only a character.
            quoted = !quoted && line[at + 1..].contains('`');
        }
        match (c == ' ' && !quoted, word) {
            (true, Some(begin)) => {
                words.push(begin..at);
                word = None;
            }
            (false, None) => word = Some(at),
            _ => {}
        }
    }
    words.extend(word.map(|begin| begin..line.len()));
    words
}

/// A line that goes into a shell, or the rest of one. A sentence about the program ends like one.
fn is_command(line: &str) -> bool {
    let first = line.split(' ').next().unwrap_or_default();
    let begins = matches!(first, "aop" | "cd" | "curl" | "tail") || first.starts_with("--");
    let assigns = first.contains('=') && line.contains("aop ");
    (begins || assigns) && !line.ends_with('.')
}

/// What a line that goes on begins with: its text stands below its text, behind a mark, a label or other columns.
fn hang(line: &str, words: &[Range<usize>], room: usize) -> String {
    let indent = Some(indent(line)).filter(|indent| seen(indent) <= room / 2).unwrap_or_default();
    let gaps: Vec<usize> = words
        .windows(2)
        .filter(|pair| pair[0].end + 1 < pair[1].start && !line[..pair[0].end].ends_with(['.', '?', '!']))
        .map(|pair| seen(&line[..pair[1].start]))
        .collect();
    let first = &line[words[0].clone()];
    let behind = |column: usize| format!("{indent}{}", " ".repeat(column.saturating_sub(seen(indent))));
    let longest = words[1..].iter().map(|word| seen(&line[word.clone()])).max().unwrap_or_default();
    match gaps.iter().rfind(|column| **column <= room / 2 && **column + longest <= room) {
        Some(column) => behind(*column),
        None if !gaps.is_empty() || first.ends_with(':') => format!("{indent}  "),
        None if !first.contains(char::is_alphabetic) => behind(seen(&line[..words[1].start])),
        None => indent.to_owned(),
    }
}

/// Spaces, and the line at the side of a frame.
fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t', '│']).len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a text in so many columns.
    fn lines(text: &str, room: usize) -> Vec<String> {
        wrapped(text, room).lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_line_breaks_between_words_and_nothing_is_lost() {
        let text = "No runner has worked on this project. Every folder with one is one.";
        for room in 10..80 {
            let lines = lines(text, room);
            assert!(lines.iter().all(|line| line.len() <= room), "{room}: {lines:#?}");
            assert_eq!(lines.join(" "), text, "{room}");
        }
    }

    #[test]
    fn a_text_that_fits_stays_as_it_is() {
        for text in ["", "  ", "one  two\n\n   three ", "a\n"] {
            assert_eq!(wrapped(text, 11), text);
        }
        assert_eq!(wrapped("exactly ten", 11), "exactly ten");
    }

    #[test]
    fn a_line_goes_on_below_its_text() {
        assert_eq!(lines("  one two three", 9), ["  one two", "  three"]);
        assert_eq!(lines("    • one two three", 13), ["    • one two", "      three"]);
        assert_eq!(lines("hint: one two three", 13), ["hint: one two", "  three"]);
        assert_eq!(lines("ok   log  one two three", 20), ["ok   log  one two", "          three"]);
        assert_eq!(lines("  aop run A.md  one two three", 36), ["  aop run A.md  one two three"]);
        assert_eq!(lines("  aop run A.md  one two three", 28), ["  aop run A.md  one two", "    three"]);
        assert_eq!(lines("ok   log  one /two/three/four", 19), ["ok   log  one", "  /two/three/four"]);
        assert_eq!(lines("│   one two three", 11), ["│   one two", "│   three"]);
        assert_eq!(lines("One two.  Three four five", 20), ["One two.  Three four", "five"]);
        assert_eq!(lines("              one two", 20), ["              one", "two"]);
    }

    #[test]
    fn a_command_to_copy_is_never_broken() {
        let command = "aop ask \"Which one?\" --choice A";
        assert_eq!(lines(&format!("  {command}"), 20), [format!("  {command}")]);
        assert_eq!(
            lines(&format!("  {command}  and wait"), 20),
            [format!("  {command}"), "    and wait".into()]
        );
        assert_eq!(lines(&format!("  x=$({command})"), 20), [format!("  x=$({command})")]);
        assert_eq!(
            lines(&format!("Then type `{command}`, and wait."), 20),
            ["Then type".to_owned(), format!("`{command}`,"), "and wait.".to_owned()]
        );
        assert_eq!(lines("      --spec a.md --plain", 12), ["      --spec a.md --plain"]);
        // A sentence about the program is none, and a backtick alone holds nothing together.
        assert_eq!(lines("aop is installed here", 12), ["aop is", "installed", "here"]);
        assert_eq!(lines("  aop broke a rule.", 12), ["  aop broke", "  a rule."]);
        assert_eq!(lines("one ` two three", 9), ["one ` two", "three"]);
    }

    #[test]
    fn a_word_that_is_longer_than_a_line_stands_on_one_of_its_own() {
        let link = "http://127.0.0.1:8080/login?token=abcdef";
        assert_eq!(lines(&format!("open {link} now"), 20), ["open", link, "now"]);
    }

    #[test]
    fn width_is_what_a_terminal_shows() {
        assert_eq!(lines("世界 世界 世界", 9), ["世界 世界", "世界"]);
        assert_eq!(lines("e\u{301}te\u{301} e\u{301}te\u{301}", 7), ["e\u{301}te\u{301} e\u{301}te\u{301}"]);
    }

    #[test]
    fn colour_takes_no_room_and_goes_on_behind_a_break() {
        let text = "\x1b[1mone\x1b[0m \x1b[2mtwo three\x1b[0m four";
        assert_eq!(wrapped(text, 18), text);
        assert_eq!(wrapped(text, 7), "\x1b[1mone\x1b[0m \x1b[2mtwo\nthree\x1b[0m\nfour");
        assert_eq!(lines("\x1b[32mok  \x1b[0m log  one two three", 20).len(), 2);
        let command = "  \x1b[32maop log --feature-id shop\x1b[0m";
        assert_eq!(wrapped(command, 12), command);
    }
}
