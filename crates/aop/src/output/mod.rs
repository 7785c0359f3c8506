//! What leaves the program: one envelope for programs, text for people. Nothing else prints.

pub(crate) mod live;
pub(crate) mod question;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod voice;
pub(crate) mod when;
pub(crate) mod wrap;

use aop_kernel::{Envelope, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Stat, fstat, stat};
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;
use style::{bold, clean, dim, escaped, red, yellow};
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

    /// A success of which a person was told already.
    pub(crate) fn for_programs(envelope: Envelope) -> Self {
        Reply { show: |_| (), ..Reply::ok(envelope, "") }
    }

    /// The command has printed what there is to print.
    pub(crate) fn printed() -> Self {
        Reply { envelope: None, text: String::new(), show: print, exit: 0 }
    }

    /// The same with another exit code.
    pub(crate) fn exit(self, exit: u8) -> Self {
        Reply { exit, ..self }
    }

    /// Prints it now, for a command that has something to do once it was said; what is left is the exit code.
    pub(crate) fn shown(self, screen: &Screen) -> Self {
        match &self.envelope {
            Some(_) if screen.text => (self.show)(self.text.trim_end()),
            Some(envelope) => print_json(envelope.as_str()),
            None => {}
        }
        Reply::printed().exit(self.exit)
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
        Ok(reply) => reply.shown(screen).exit,
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
            print_json(&refusal.to_json().to_string());
            refusal.code.exit_code() as u8
        }
    };
    ended(exit)
}

/// The exit code, unless what there was to say could not be written: then nothing has succeeded.
pub(crate) fn ended(exit: u8) -> ExitCode {
    let Some(error) = UNWRITTEN.get().filter(|error| error.kind() != ErrorKind::BrokenPipe) else {
        return ExitCode::from(exit);
    };
    talk(&format!("{} standard output cannot be written: {error}", red(&bold("error:"))));
    ExitCode::from(exit.max(1))
}

/// Every violation of a document, when the refusal is about one.
fn violations(refusal: &Refusal) -> Vec<String> {
    let list = refusal.facts.get("violations").and_then(serde_json::Value::as_array);
    list.into_iter()
        .flatten()
        .map(|found| {
            // Each of them is one line, whatever the document's keys look like.
            let field = |key: &str| clean(found[key].as_str().unwrap_or_default()).replace('\n', "↵");
            let path = field("path");
            let place = if path.is_empty() { "(document)".to_owned() } else { path };
            format!("{}  {} {}", bold(&place), field("message"), dim(&format!("→ {}", field("hint"))))
        })
        .collect()
}

/// Why stdout could not be written when that failed first. A reader that went away (`| head`) is no failure of the
/// command; whatever else it was is told at the end.
static UNWRITTEN: OnceLock<std::io::Error> = OnceLock::new();

/// Whether everything that was said so far went out. Who says something again and again ends when it did not.
pub(crate) fn is_heard() -> bool {
    UNWRITTEN.get().is_none()
}

/// Whether what is written to stdout reaches nobody: it goes to the null device. Of a stdout that is closed that is all that
/// can be seen, because the null device is opened in its place before this program begins; and it may be open in any way
/// where somebody chose it.
pub(crate) fn leads_nowhere() -> bool {
    let (Ok(here), Ok(null)) = (fstat(std::io::stdout()), stat("/dev/null")) else { return false };
    let device = FileType::CharacterDevice;
    let is_device = |there: &Stat| FileType::from_raw_mode(there.st_mode) == device;
    is_device(&here) && is_device(&null) && here.st_rdev == null.st_rdev
}

/// Waits until whoever reads stdout has gone away, which a pipe tells without being written to.
pub(crate) async fn reader_gone() {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if polled(PollFlags::empty()).intersects(PollFlags::ERR | PollFlags::HUP) {
            return;
        }
    }
}

/// Whether something can be written to stdout without waiting for whoever reads it.
pub(crate) fn has_room() -> bool {
    polled(PollFlags::OUT).contains(PollFlags::OUT)
}

/// What the system says of stdout.
fn polled(wanted: PollFlags) -> PollFlags {
    let stdout = std::io::stdout();
    let mut asked = [PollFd::new(&stdout, wanted)];
    match poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(_) => asked[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}

/// One line of data on stdout.
pub(crate) fn print(line: &str) {
    write(format!("{line}\n").as_bytes());
}

/// A JSON document on stdout.
pub(crate) fn print_json(json: &str) {
    if std::io::stdout().is_terminal() { print(&escaped(json)) } else { print(json) }
}

/// Bytes on stdout, as they are.
pub(crate) fn write(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        // Only the first failure is kept: the others follow from it.
        let _ = UNWRITTEN.set(error);
    }
}

/// Words for a person on stdout.
pub(crate) fn say(text: &str) {
    print(&fitted(text, &std::io::stdout()));
}

/// A file on stdout, as it is; an error is one of reading it.
pub(crate) fn pour(mut from: impl std::io::Read) -> std::io::Result<()> {
    let mut part = vec![0; 64 * 1024];
    while is_heard() {
        match from.read(&mut part)? {
            0 => break,
            size => write(&part[..size]),
        }
    }
    Ok(())
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
