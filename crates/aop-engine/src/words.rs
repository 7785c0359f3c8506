//! What an agent is told that asks when nobody may be asked, and how texts for it are put together.

/// Nobody is there at all.
pub const NOBODY: &str =
    "Nobody is available. Decide yourself, go on, and say in your result what you decided.";

/// Nobody is there who could permit anything.
pub const NOT_PERMITTED: &str = "Nobody is available who could permit this, so it is not permitted. Go on without it, or stop and \
    say what is missing.";

/// The attempts are used up.
pub const NO_MORE: &str = "You have asked as often as this phase allows. Nobody will be asked any more: finish with \
    what you know, and say in your result what is undecided.";

/// There is more than stands here.
pub const READ_FIRST: &str = "There is more for you to read first, and it comes as your next message. Do nothing until \
    then and ask nothing: end your turn now, with one line.";

/// Two texts, with an empty line between them where there are two.
pub(crate) fn join(first: &str, second: &str) -> String {
    match (first.is_empty(), second.is_empty()) {
        (false, false) => format!("{first}\n\n{second}"),
        (_, true) => first.to_owned(),
        (true, false) => second.to_owned(),
    }
}
