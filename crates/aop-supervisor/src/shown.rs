//! Names in what a person is told. Folders have spaces in their names, and an agent calls its files as it likes; what a
//! hint says is copied into a shell. So a name is one word there whatever is in it, and in a message it is one line.

use aop_kernel::signs::label;
use aop_turn::command::shell_quoted;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// A name as a word of a command that a person copies.
pub fn word(name: impl AsRef<OsStr>) -> String {
    let bytes = name.as_ref().as_bytes();
    match std::str::from_utf8(bytes) {
        // Commands end at a backtick in a hint, and what cannot be seen is not copied as it is.
        Ok(text) if !text.contains('`') && label(text) == text => shell_quoted(text),
        _ => printed(bytes),
    }
}

/// The same for names that are no text, or none that can be seen: what `printf` makes of letters alone, in every shell.
fn printed(bytes: &[u8]) -> String {
    let mut word = String::from("\"$(printf '");
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            // Some read what an escape stands for as a format.
            b'%' => word.push_str("%%"),
            b'/' | b'.' | b'_' | b' ' => word.push(char::from(*byte)),
            b'-' if at > 0 => word.push('-'),
            byte if byte.is_ascii_alphanumeric() => word.push(char::from(*byte)),
            // Writing to a String cannot fail.
            byte => drop(write!(word, "\\{byte:03o}")),
        }
    }
    // A shell takes line breaks away from the end; this is the same folder.
    word.push_str(if bytes.ends_with(b"\n") { "/.')\"" } else { "')\"" });
    word
}

/// A name in a message.
pub(crate) fn name(name: impl AsRef<OsStr>) -> String {
    label(&name.as_ref().to_string_lossy()).into_owned()
}

/// Names in a message.
pub(crate) fn names(names: &[String]) -> String {
    names.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{names, word};
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::process::Command;

    #[test]
    fn whatever_is_in_a_name_a_shell_takes_it_for_one_word_and_a_person_for_one_line() {
        for name in [
            &b"/tmp/my proj/lib"[..],
            b"lib; touch owned; echo ",
            b"it's $(touch owned)",
            b"lib`touch owned`",
            b"lib\ntouch owned\n/.git",
            b"-n\r\x1b[2Jlib%s\\n",
            b"caf\xe9 \xff",
            "caf\u{e9} \u{202e}lib".as_bytes(),
        ] {
            let word = word(OsStr::from_bytes(name));
            assert!(!word.contains(['`', '\n', '\r', '\u{1b}', '\u{202e}']), "{word}");
            for shell in ["sh", "bash"] {
                let script = format!("printf '%s|' {word}");
                let said = Command::new(shell).args(["-c", &script]).output().unwrap().stdout;
                assert_eq!(said, [name, b"|"].concat(), "{shell}: {word}");
            }
        }
        assert_eq!(word("/srv/shop/.aop"), "/srv/shop/.aop", "what needs no quotes has none");
        assert_eq!(names(&["a\nhint: b".to_owned(), "c d".to_owned()]).lines().count(), 1);
    }
}
