//! `aop export`: everything that was asked, answered and done, as JSON lines that `aop import` takes back.
//!
//! The first line says what follows: how much of it, its SHA-256, and the digest that `aop replay` prints. It
//! is padded to a fixed width, so that it can be written last.

use crate::cli::Global;
use crate::output::{CommandResult, Reply, pour, style::bold};
use crate::partial::{Partial, nameless, sweep};
use crate::project::{Project, Session};
use aop_engine::AOP_DIR;
use aop_kernel::hex::hexadecimal;
use aop_kernel::replay::Replay;
use aop_kernel::{Envelope, Refusal};
use aop_store::{Entry, Origin, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Write the whole history as JSON lines
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aop export --output project.jsonl
  aop export | gzip > project.jsonl.gz
  tail -n +2 project.jsonl | sha256sum     what the first line calls body_sha256

Secret answers, tokens and aop.yaml are not part of it. `aop import` takes it into an empty project.")]
pub(crate) struct ExportArgs {
    /// The file to write (default, and with -: stdout). It appears when it is complete, and replaces what is there, but
    /// nothing that a project lives on
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What stands for stdout or stdin in the place of a file.
pub(super) const STANDARD: &str = "-";

/// The settings of a project, in its root.
const SETTINGS: &str = "aop.yaml";

/// The version of the format.
pub(super) const FORMAT: u32 = 1;

/// The first line, with its line break.
const HEADER_WIDTH: usize = 512;

/// The first line of an export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    /// The version of the format.
    pub(super) aop_export: u32,
    /// The store's own name for the project.
    pub(super) project: String,
    /// The last event.
    pub(super) last_seq: u64,
    /// How many lines follow.
    pub(super) entries: u64,
    /// How many of them are rows of the ledger.
    pub(super) operations: u64,
    /// What `aop replay` prints as the digest of this history.
    pub(super) state_digest: String,
    /// The SHA-256 of all that follows the first line.
    pub(super) body_sha256: String,
}

/// Writes the export, to a file in one step or to stdout.
pub(crate) fn run(global: &Global, args: &ExportArgs) -> CommandResult {
    let session = Project::find(global)?.open()?;
    let output = args.output.as_ref().filter(|output| output.as_os_str() != STANDARD);
    output.map_or(Ok(()), |output| replaceable(output))?;
    // What a link leads to is replaced, not the link.
    let through = |output: &PathBuf| output.canonicalize().ok().filter(|_| output.is_symlink());
    let output = output.map(|output| through(output).unwrap_or_else(|| output.clone()));
    sweep(&session.project.dir());
    let Some(output) = &output else { return to_stdout(&session) };
    let folder = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    foreign(&session.project, output, folder)?;
    sweep(folder);
    let failed = |error: std::io::Error| cannot(output, &error);
    let partial = Partial::begin(folder).map_err(failed)?;
    let header = write(&session, &partial.file, &partial.path)?;
    partial.finish(output).map_err(failed)?;
    let text = format!(
        "Wrote {}: {} events, {} operations. Secret answers, tokens and aop.yaml are not in it.",
        bold(&output.display().to_string()),
        header.last_seq,
        header.operations
    );
    let mut data = json!(header);
    data["file"] = json!(output);
    Ok(Reply::ok(Envelope::success(&data), text))
}

/// Nothing is printed before the first line is known, which is last; meanwhile no file is to be seen anywhere.
fn to_stdout(session: &Session) -> CommandResult {
    let dir = session.project.dir();
    let (mut file, place) = nameless(&dir).map_err(|error| cannot(&std::env::temp_dir(), &error))?;
    write(session, &file, &place)?;
    file.rewind().and_then(|()| pour(file)).map_err(|error| cannot(&place, &error))?;
    Ok(Reply::printed())
}

/// What is counted while entries go by.
struct Body {
    out: BufWriter<File>,
    sha: Sha256,
    replay: Replay,
    entries: u64,
    operations: u64,
    place: PathBuf,
}

impl Body {
    fn take(&mut self, entry: &Entry) -> Result<(), StoreError> {
        match entry {
            Entry::Event(recorded) => self.replay.apply(recorded),
            Entry::Operation { .. } => self.operations += 1,
            Entry::Lease { .. } | Entry::Claim { .. } | Entry::Document { .. } => {}
        }
        self.entries += 1;
        let line = serde_json::to_string(entry).map_err(|error| self.unwritten(&error))?;
        for part in [line.as_bytes(), b"\n"] {
            self.sha.update(part);
            self.out.write_all(part).map_err(|error| self.unwritten(&error))?;
        }
        Ok(())
    }

    fn unwritten(&self, error: &dyn std::fmt::Display) -> StoreError {
        StoreError::Unavailable {
            place: self.place.display().to_string(),
            cause: error.to_string(),
            hint: "check the space and the permissions where the export is written; TMPDIR names another place for one to stdout".into(),
        }
    }
}

fn write(session: &Session, file: &File, place: &Path) -> Result<Header, Refusal> {
    let failed = |error: std::io::Error| cannot(place, &error);
    let mut out = BufWriter::new(file.try_clone().map_err(failed)?);
    out.write_all(&header_line(&" ".repeat(HEADER_WIDTH - 1))).map_err(failed)?;
    let (sha, replay) = (Sha256::new(), Replay::default());
    let body = Body { out, sha, replay, entries: 0, operations: 0, place: place.to_owned() };
    let body = Arc::new(Mutex::new(body));
    let shared = Arc::clone(&body);
    let visit = move |entry| shared.lock().unwrap_or_else(PoisonError::into_inner).take(&entry);
    let origin: Origin = session.wait(session.store().history(Box::new(visit)))?;
    let mut body = body.lock().unwrap_or_else(PoisonError::into_inner);
    let header = Header {
        aop_export: FORMAT,
        project: origin.project_id,
        last_seq: origin.seq,
        entries: body.entries,
        operations: body.operations,
        state_digest: super::replay::digest(&body.replay),
        body_sha256: hexadecimal(body.sha.clone().finalize()),
    };
    body.out.seek(SeekFrom::Start(0)).map_err(failed)?;
    body.out.write_all(&header_line(&json!(header).to_string())).map_err(failed)?;
    body.out.flush().map_err(failed)?;
    Ok(header)
}

/// Spaces after the document keep the line at its width; JSON does not mind them.
fn header_line(text: &str) -> Vec<u8> {
    format!("{text:<width$}\n", width = HEADER_WIDTH - 1).into_bytes()
}

/// The export takes the place of what is there, which only a file can give up: a device or a pipe would be gone.
fn replaceable(output: &Path) -> Result<(), Refusal> {
    match std::fs::metadata(output) {
        Ok(there) if !there.is_file() => {
            let message = format!("{} exists and is not a regular file", output.display());
            Err(Refusal::invalid_argument(message)
                .hint("name a file; for a pipe or a device leave --output out and redirect: `aop export > …`")
                .fact("argument", "output"))
        }
        // What is not there, or cannot be looked at, is judged when it is written.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// An export never takes the place of what a project lives on: its store, or its settings.
fn foreign(project: &Project, output: &Path, folder: &Path) -> Result<(), Refusal> {
    // A folder that is not there is told when something is written into it.
    let Ok(real) = folder.canonicalize() else { return Ok(()) };
    let is = |name: &OsStr, own: &str| name.eq_ignore_ascii_case(own);
    // A .aop may be a link, and what it leads to may be called anything.
    let within = |place: &Path| place.canonicalize().is_ok_and(|place| real.starts_with(place));
    let is_named = |place: &Path| place.file_name().is_some_and(|name| is(name, AOP_DIR));
    let is_kept = within(&project.dir())
        || real.ancestors().any(is_named)
        || folder.ancestors().any(|place| is_named(place) && within(place));
    let settings = project.root.join(SETTINGS).canonicalize();
    let are_settings = settings
        .is_ok_and(|settings| output.canonicalize().is_ok_and(|file| file == settings))
        || output.file_name().is_some_and(|name| is(name, SETTINGS)) && real.join(AOP_DIR).is_dir();
    let what = if are_settings {
        "holds the settings of a project"
    } else if is_kept {
        "is in a .aop folder, which holds what a project lives on"
    } else {
        return Ok(());
    };
    Err(Refusal::invalid_argument(format!("{} {what}", output.display()))
        .hint("name another file, for instance `aop export --output project.jsonl`")
        .fact("argument", "output"))
}

pub(super) fn cannot(place: &Path, error: &dyn std::fmt::Display) -> Refusal {
    Refusal::invalid_argument(format!("{}: {error}", place.display()))
        .hint("name a file in a folder that is there and writable")
}
