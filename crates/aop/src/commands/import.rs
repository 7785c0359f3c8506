//! `aop import`: takes an export into an empty project. The file is read twice: once to be sure of every line,
//! then into one commit.

use super::export::{FORMAT, Header, STANDARD, cannot};
use crate::cli::Global;
use crate::output::style::bold;
use crate::output::{CommandResult, Reply, warn};
use crate::partial::nameless;
use crate::project::{Project, Session};
use aop_kernel::hex::hexadecimal;
use aop_kernel::replay::Replay;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use aop_store::{Entry, StoreError};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

/// Take an export into this empty project
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mkdir copy && cd copy && aop init
  aop import ../project.jsonl
  gunzip -c project.jsonl.gz | aop import -

All of it or nothing: a file that is broken or cut off is refused with the line, and a project that already \
holds something is left as it is. Secret answers, tokens and aop.yaml are not part of an export.")]
pub(crate) struct ImportArgs {
    /// A file that `aop export` wrote, or - for stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Longer lines are not ours: a request is at most a megabyte, and an event little more.
const LONGEST_LINE: u64 = 16 * 1024 * 1024;

/// Checks the file, restores it, and proves that the store now holds what the file promised.
pub(crate) fn run(global: &Global, args: &ImportArgs) -> CommandResult {
    let session = Project::find(global)?.open()?;
    let file = open(&session, &args.file)?;
    let name = if args.file.as_os_str() == STANDARD { Path::new("stdin") } else { &args.file };
    let header = check(name, &file)?;
    let entries = Lines::open(name, &file)?.1.map(|entry| entry.map_err(damaged));
    session.wait(session.store().restore(Box::new(entries)))?;
    session.project_files();
    let findings = session.wait(session.store().verify())?;
    if let Some(finding) = findings.first() {
        let message = format!("the import is stored, but the store differs from its log: {finding}");
        return Err(Refusal::new(ErrorCode::Internal, message));
    }
    let text = format!(
        "Imported {} events and {} operations; a replay gives {}.",
        bold(&header.last_seq.to_string()),
        bold(&header.operations.to_string()),
        header.state_digest
    );
    Ok(Reply::ok(Envelope::success(&json!(header)), text))
}

/// The file, or a copy of what can be read only once.
fn open(session: &Session, path: &Path) -> Result<File, Refusal> {
    let failed = |error: std::io::Error| {
        cannot(path, &error).hint("name a file that `aop export --output FILE` wrote, or - for stdin")
    };
    let once: Box<dyn Read> = if path.as_os_str() == STANDARD {
        Box::new(std::io::stdin())
    } else {
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_file() {
            return Ok(file);
        }
        Box::new(file)
    };
    let (mut copy, _) = nameless(&session.project.dir()).map_err(failed)?;
    let mut once = BufReader::new(once);
    std::io::copy(&mut once, &mut copy).map_err(failed)?;
    Ok(copy)
}

/// Reads the whole file and changes nothing: every line, the promised count and sums, and the state it gives. An older
/// version may have told another state from the same lines, which are all that is taken.
fn check(path: &Path, file: &File) -> Result<Header, Refusal> {
    let (mut header, mut lines) = Lines::open(path, file)?;
    let mut replay = Replay::default();
    let mut once = HashSet::new();
    while let Some(entry) = lines.next().transpose()? {
        let wrong =
            |what: String| broken(format!("{}: line {}: {what}", path.display(), lines.number), lines.number);
        let name = match entry {
            Entry::Event(recorded) => {
                let next = replay.seq + 1;
                if recorded.seq != next {
                    let found = recorded.seq;
                    return Err(wrong(format!(
                        "event {found} stands where event {next} has to: a history has no gaps"
                    )));
                }
                replay.apply(&recorded);
                continue;
            }
            Entry::Operation { operation_id, .. } => format!("operation {operation_id}"),
            Entry::Claim { subject, .. } => format!("claim {subject}"),
            Entry::Lease { .. } | Entry::Document { .. } => continue,
        };
        if let Some(twice) = once.replace(name) {
            return Err(wrong(format!("{twice} stands there a second time")));
        }
    }
    let digest = super::replay::digest(&replay);
    if digest != header.state_digest {
        warn(&format!(
            "{}: every line is as it was written, but this aop tells another state from them ({digest}) than the one that exported them ({}): an older version, most likely; compare `aop status` of both",
            path.display(),
            header.state_digest
        ));
        header.state_digest = digest;
    }
    Ok(header)
}

/// The lines of an export, as entries. The end is checked like a line: an export that was cut off ends in an error.
struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    header: Header,
    /// The line read last.
    number: u64,
    sha: Sha256,
    over: bool,
}

impl Lines {
    /// From the beginning of the file; only one may be open at a time.
    fn open(path: &Path, mut file: &File) -> Result<(Header, Self), Refusal> {
        let again = file.rewind().and_then(|()| file.try_clone());
        let mut reader = BufReader::new(again.map_err(|error| cannot(path, &error))?);
        let first = read_line(&mut reader, path, 1)?.unwrap_or_default();
        let header: Header = serde_json::from_slice(&first).map_err(|error| {
            broken(format!("{}: line 1 is not the first line of an export: {error}", path.display()), 1)
        })?;
        if header.aop_export != FORMAT {
            let message = format!(
                "{}: written in format {}, this aop reads {FORMAT}",
                path.display(),
                header.aop_export
            );
            return Err(broken(message, 1).hint("use an aop of the version that wrote it, or a newer one"));
        }
        let lines = Lines {
            path: path.to_owned(),
            reader,
            header: header.clone(),
            number: 1,
            sha: Sha256::new(),
            over: false,
        };
        Ok((header, lines))
    }

    fn step(&mut self) -> Result<Option<Entry>, Refusal> {
        let at = self.number + 1;
        let Some(line) = read_line(&mut self.reader, &self.path, at)? else { return self.end() };
        self.number = at;
        self.sha.update(&line);
        let entry = serde_json::from_slice(&line).map_err(|error| {
            broken(format!("{}: line {at} is not an entry of a history: {error}", self.path.display()), at)
        })?;
        Ok(Some(entry))
    }

    fn end(&self) -> Result<Option<Entry>, Refusal> {
        let (found, promised) = (self.number - 1, self.header.entries);
        if found != promised {
            let message = format!(
                "{}: ends after line {} with {found} entries, and its first line promises {promised}",
                self.path.display(),
                self.number
            );
            return Err(broken(message, self.number));
        }
        if hexadecimal(self.sha.clone().finalize()) != self.header.body_sha256 {
            let message = format!(
                "{}: lines 2 to {} are not what the first line promises (their SHA-256 differs)",
                self.path.display(),
                self.number
            );
            return Err(broken(message, self.number));
        }
        Ok(None)
    }
}

impl Iterator for Lines {
    type Item = Result<Entry, Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let step = self.step();
        self.over = !matches!(step, Ok(Some(_)));
        step.transpose()
    }
}

/// One line with its line break; `None` at the end of the file.
fn read_line(reader: &mut BufReader<File>, path: &Path, number: u64) -> Result<Option<Vec<u8>>, Refusal> {
    let mut line = Vec::new();
    reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(|error| cannot(path, &error))?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) => {
            Err(broken(format!("{}: line {number} has no end: the file is cut off", path.display()), number))
        }
    }
}

fn broken(message: String, line: u64) -> Refusal {
    Refusal::new(ErrorCode::InvalidDocument, message)
        .hint("nothing was imported: export the project again, or copy the file again")
        .fact("line", line)
}

/// The file changed after it was checked; the store undoes what it has taken.
fn damaged(refusal: Refusal) -> StoreError {
    StoreError::Damaged { place: "import".into(), cause: refusal.message }
}
