//! Agent programs read their prompt as a command line: `@name` pulls in a file or an agent of that name, and a leading slash
//! runs a command. What others wrote (a person's answer, the output of a check, the result of another agent) must do
//! neither: a file would be read that nobody permitted.

/// No at sign stands here: the program would act on it.
const NOTE: &str = "(In this message a backslash stands before every at sign; it is not part of the text.)";

/// The text with nothing in it that the program would act on.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() + 8);
    if text.starts_with('/') {
        plain.push(' ');
    }
    let mut escaped = false;
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        let names_something = signs.peek().is_some_and(|next| !ENDS_A_NAME.contains(*next));
        if sign == '@' && names_something {
            plain.push('\\');
            escaped = true;
        }
        plain.push(sign);
    }
    if escaped {
        plain.push_str("\n\n");
        plain.push_str(NOTE);
    }
    plain
}

/// With these no name can begin.
const ENDS_A_NAME: &str = " \t\n\r,;!?()[]{}";

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn nothing_in_a_text_is_taken_for_a_command() {
        assert_eq!(plain("/quit"), " /quit");
        assert_eq!(plain("either/or, @ 5 pm"), "either/or, @ 5 pm");
        let mail = plain("ask bob@example.com about @types/node");
        assert!(mail.starts_with("ask bob\\@example.com about \\@types/node\n\n(In this"), "{mail}");
        assert_eq!(plain("read @\"my file\""), format!("read \\@\"my file\"\n\n{}", super::NOTE));
        assert_eq!(plain("ends with @"), "ends with @");
    }
}
