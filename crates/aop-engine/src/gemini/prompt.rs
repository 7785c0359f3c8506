//! What Gemini CLI is told, so that it reaches the model as it was written. iFlow, which was made from it, is told in the
//! same way.

use crate::mention::plain;
use crate::port::{Input, TurnRequest};
use crate::words::join;

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
