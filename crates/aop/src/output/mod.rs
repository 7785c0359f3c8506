//! What leaves the program: one envelope for programs, text for people. Nothing else prints.

use aop_kernel::{Envelope, Refusal};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// What a command has to say: the envelope for programs, the same in words for people, and the exit code.
pub(crate) struct Reply {
    pub(crate) envelope: Envelope,
    pub(crate) text: String,
    pub(crate) exit: u8,
}

impl Reply {
    /// A plain success.
    pub(crate) fn ok(envelope: Envelope, text: impl Into<String>) -> Self {
        Reply { envelope, text: text.into(), exit: 0 }
    }
}

/// What every command returns.
pub(crate) type CommandResult = Result<Reply, Refusal>;

/// Who is looking at stdout.
pub(crate) struct Screen {
    text: bool,
}

impl Screen {
    /// Text for a terminal, an envelope for a pipe or when asked.
    pub(crate) fn detect(json: bool) -> Self {
        Screen { text: !json && std::io::stdout().is_terminal() }
    }

    /// Whether a person reads stdout.
    pub(crate) fn is_text(&self) -> bool {
        self.text
    }
}

/// Prints a command's result and gives the exit code.
pub(crate) fn report(screen: &Screen, result: CommandResult) -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    let mut stderr = std::io::stderr().lock();
    // A reader that went away (`| head`) is no failure of the command.
    let (_written, exit) = match result {
        Ok(reply) if screen.text => (writeln!(stdout, "{}", reply.text.trim_end()), reply.exit),
        Ok(reply) => (writeln!(stdout, "{}", reply.envelope.as_str()), reply.exit),
        Err(refusal) => {
            let exit = refusal.code.exit_code() as u8;
            let written = if screen.text {
                writeln!(stderr, "error: {}\nhint: {}", refusal.message, refusal.hint)
            } else {
                writeln!(stdout, "{}", refusal.to_json())
            };
            (written, exit)
        }
    };
    ExitCode::from(exit)
}
