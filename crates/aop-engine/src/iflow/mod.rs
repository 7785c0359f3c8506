//! iFlow. The product was discontinued in April 2026 and cannot be installed any more; this drives a program that
//! takes the command line that was documented for it. It asks in words at the end of a turn, the process has exited by
//! then, and the answer is the next message.

use crate::gemini::prompt;
use crate::port::{
    Capabilities, Driver, EngineError, Host, Input, Pending, Progress, SessionRef, TurnReport, TurnRequest,
};
use crate::process::{Cause, Guarded, Launch, Stdin, Surroundings};
use crate::program::missing;
use aop_turn::command::{Conversation, command_line, is_session_handle};
use aop_turn::{Engine, TurnReader};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

/// What it can do.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    native_ask: false,
    parks_to_nothing: true,
    inject_answer: false,
    resume_by_message: true,
    permission_questions: false,
    session_travels: false,
    session_named_by_us: false,
    self_test: false,
};

const PROGRAM: &str = "iflow";
/// The kernel takes no longer argument than 128 KiB; what is longer goes into a file.
const LONGEST_ARGUMENT: usize = 100_000;

/// The driver.
#[derive(Debug)]
pub(crate) struct Iflow {
    pub(crate) around: Surroundings,
}

impl Driver for Iflow {
    fn engine(&self) -> Engine {
        Engine::Iflow
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn run(&self, request: TurnRequest, host: Arc<dyn Host>) -> Pending<'_, Result<TurnReport, EngineError>> {
        Box::pin(run(&self.around, request, host))
    }

    /// How it keeps its conversations is not documented.
    fn holds_reply(
        &self,
        _project: PathBuf,
        _session: SessionRef,
        _question_id: String,
        _call_id: Option<String>,
    ) -> Pending<'_, Option<bool>> {
        Box::pin(async { None })
    }
}

async fn run(
    around: &Surroundings,
    request: TurnRequest,
    host: Arc<dyn Host>,
) -> Result<TurnReport, EngineError> {
    let program = around.find(PROGRAM).ok_or_else(|| {
        let hint = "iFlow CLI was discontinued in April 2026; name another engine in `engines` of aop.yaml";
        missing(Engine::Iflow, PROGRAM, hint.to_owned(), around)
    })?;
    let known = request.session.clone().filter(|name| is_session_handle(name));
    let conversation = known.as_deref().map_or(Conversation::Start(None), Conversation::Resume);
    let line = command_line(&request.command(Engine::Iflow, conversation, None));
    let mut argv: Vec<_> = line.argv.iter().map(Into::into).collect();
    argv[0] = program.into();
    // Goes when the turn does, however it ends.
    let (argument, _file) = argument(&request)?;
    argv.push(argument.into());
    let mut process = Guarded::spawn(Launch {
        aop: around.aop.clone(),
        argv,
        env: around.for_turn(&request),
        cwd: request.cwd.clone(),
        stdin: Stdin::Null,
        run_dir: request.run_dir.clone(),
        limits: request.limits,
    })
    .await?;
    host.progress(Progress::started(process.started()));
    let mut reader = TurnReader::new(Engine::Iflow);
    while let Some(line) = process.next_line().await {
        reader.feed(&line);
        let said = String::from_utf8_lossy(&line).trim_end().to_owned();
        if !said.is_empty() {
            host.progress(Progress::Said(said));
        }
    }
    let transcript = process.transcript();
    let end = process.wait().await;
    let mut turn = reader.finish();
    end.explain(&mut turn);
    // The handle stands at the end of the output; until then there is nothing to keep.
    let name = turn.session.clone().filter(|name| is_session_handle(name)).or(known);
    let session = name.map(|session| SessionRef {
        engine: Engine::Iflow,
        session,
        cwd: request.cwd.clone(),
        version: None,
    });
    if let Some(session) = &session {
        host.session(session.clone()).await?;
    }
    let ended_well = end.cause == Cause::Exited && end.code == Some(0);
    Ok(TurnReport {
        turn,
        process: end.process(),
        session,
        asked: Vec::new(),
        transcript,
        delivered: ended_well && matches!(request.input, Input::Reply(_)),
    })
}

/// The prompt, or where it stands.
fn argument(request: &TurnRequest) -> Result<(String, Option<Prompt>), EngineError> {
    let text = prompt::prompt(request);
    if text.len() <= LONGEST_ARGUMENT {
        return Ok((text, None));
    }
    let file = Prompt(request.run_dir.join("prompt.md"));
    let path = file.0.display();
    file.write(&text)
        .map_err(|error| EngineError::System { what: format!("writing {path}"), cause: error.to_string() })?;
    let told = format!("Read the file {path} and do what it says. It is your message from the user.");
    Ok((told, Some(file)))
}

/// A prompt in a file. A secret may be in it, so it is the owner's alone, and there only while the engine may read it.
struct Prompt(PathBuf);

impl Prompt {
    fn write(&self, text: &str) -> std::io::Result<()> {
        // What a killed turn left may be readable for others.
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&self.0)?;
        file.write_all(text.as_bytes())
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
