//! What Gemini CLI is told, so that it reaches the model as it was written. The program reads its prompt as a command
//! line: a leading slash runs a command, and `@name` pulls in a file or an agent of that name. A person's answer with
//! an address or a package name in it must do neither. iFlow, which was made from it, is told in the same way.

use crate::port::{Input, TurnRequest};
use crate::words::join;

/// No at sign stands here: the program would act on it.
const NOTE: &str = "(In this message a backslash stands before every at sign; it is not part of the text.)";

/// The whole prompt of a turn.
pub(crate) fn prompt(request: &TurnRequest) -> String {
    let instructions = request.instructions.trim();
    let text = match &request.input {
        // The engine has no place for standing instructions but the message. An answer comes first.
        Input::Reply(reply) => {
            let named = if reply.words.contains(&reply.question_id) {
                reply.words.clone()
            } else {
                format!("The end of your question {}: {}", reply.question_id, reply.words)
            };
            join(&join(&named, &reply.notes), instructions)
        }
        Input::Message(text) | Input::Continue(text) => join(instructions, text),
    };
    plain(&text)
}

/// The text with nothing in it that the program would act on.
fn plain(text: &str) -> String {
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
        assert_eq!(plain("ends with @"), "ends with @");
    }
}
