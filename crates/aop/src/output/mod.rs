//! What leaves the program: one envelope for programs, text for people. Nothing else prints.

pub(crate) mod live;
pub(crate) mod question;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod when;
pub(crate) mod wrap;

use aop_kernel::{Envelope, Refusal};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use style::{bold, clean, dim, red, yellow};
use wrap::fitted;

/// What a command has to say: the envelope for programs, the same in words for people, and the exit code.
/// Without an envelope the command has printed its own format already.
pub(crate) struct Reply {
    envelope: Option<Envelope>,
    text: String,
    show: fn(&str),
    exit: u8,
}

impl Reply {
    /// A plain success.
    pub(crate) fn ok(envelope: Envelope, text: impl Into<String>) -> Self {
        Reply { envelope: Some(envelope), text: text.into(), show: say, exit: 0 }
    }

    /// The same with a document or a command for text, which is copied and therefore stays as it is.
    pub(crate) fn document(envelope: Envelope, text: impl Into<String>) -> Self {
        Reply { show: print, ..Reply::ok(envelope, text) }
    }

    /// The command has printed what there is to print.
    pub(crate) fn printed() -> Self {
        Reply { envelope: None, text: String::new(), show: print, exit: 0 }
    }

    /// The same with another exit code.
    pub(crate) fn exit(self, exit: u8) -> Self {
        Reply { exit, ..self }
    }
}

/// What an interrupted command exits with.
pub(crate) const INTERRUPTED: u8 = 130;

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
    let exit = match result {
        Ok(reply) => {
            match &reply.envelope {
                Some(_) if screen.text => (reply.show)(reply.text.trim_end()),
                Some(envelope) => print(envelope.as_str()),
                None => {}
            }
            reply.exit
        }
        Err(refusal) if screen.text => {
            talk(&format!("{} {}", red(&bold("error:")), clean(&refusal.message)));
            for reason in violations(&refusal) {
                talk(&format!("  {reason}"));
            }
            talk(&format!("{} {}", dim("hint:"), clean(&refusal.hint)));
            talk(&dim(&format!("code: {} (`aop explain {}`)", refusal.code, refusal.code)));
            refusal.code.exit_code() as u8
        }
        Err(refusal) => {
            print(&refusal.to_json().to_string());
            refusal.code.exit_code() as u8
        }
    };
    ExitCode::from(exit)
}

/// Every violation of a document, when the refusal is about one.
fn violations(refusal: &Refusal) -> Vec<String> {
    let list = refusal.facts.get("violations").and_then(serde_json::Value::as_array);
    list.into_iter()
        .flatten()
        .map(|found| {
            let field = |key: &str| clean(found[key].as_str().unwrap_or_default());
            let path = field("path");
            let place = if path.is_empty() { "(document)".to_owned() } else { path };
            format!("{}  {} {}", bold(&place), field("message"), dim(&format!("→ {}", field("hint"))))
        })
        .collect()
}

/// One line of data on stdout. A reader that went away (`| head`) is no failure of the command.
pub(crate) fn print(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{line}");
    let _ = stdout.flush();
}

/// Words for a person on stdout.
pub(crate) fn say(text: &str) {
    print(&fitted(text, &std::io::stdout()));
}

/// Bytes of a file on stdout, as they are. `Ok(false)` when the reader went away.
pub(crate) fn pour(mut from: impl std::io::Read) -> std::io::Result<bool> {
    let mut stdout = std::io::stdout().lock();
    match std::io::copy(&mut from, &mut stdout).and_then(|_| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Words for a person on stderr.
pub(crate) fn talk(text: &str) {
    let text = fitted(text, &std::io::stderr());
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Something the user should know although the command succeeded.
pub(crate) fn warn(line: &str) {
    talk(&format!("{} {}", yellow("warning:"), clean(line)));
}
