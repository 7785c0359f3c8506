//! `codex exec --json`, for versions that cannot ask through the app-server. Asks are text at the end of a turn, and the
//! answer is the next message.

use super::home::{FirstStart, HOME_VARIABLE};
use super::opening::told_later;
use super::rollout::Rollout;
use super::start::Place;
use super::thread::SNAPSHOTS;
use super::turn::conversation;
use super::{NO_THREAD, gone, unusable};
use crate::port::{EngineError, Host, Input, Progress, SessionRef, TurnReport, TurnRequest};
use crate::process::{Guarded, Launch, Stdin};
use crate::words::join;
use aop_turn::command::{Conversation, Permissions, command_line, is_session_handle};
use aop_turn::{Engine, TurnReader};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// Runs a turn.
pub(super) async fn run(
    place: Place<'_>,
    request: &TurnRequest,
    host: Arc<dyn Host>,
) -> Result<TurnReport, EngineError> {
    if request.permissions == Permissions::Ask {
        let cause = format!("version {} cannot ask for permissions", place.program.version_text());
        return Err(unusable(
            &cause,
            "install a newer one (npm install -g @openai/codex), or set engines.permissions: auto",
        ));
    }
    let (prompt, delivers) = prompt(&place, request).await;
    let schema = schema_file(request)?;
    let conversation = match request.session.as_deref().filter(|id| is_session_handle(id)) {
        Some(id) => Conversation::Resume(id),
        None => Conversation::Start(None),
    };
    let mut launch = request.command(Engine::Codex, conversation, Some(place.program.version));
    let file = schema.as_ref().map(|path| path.to_string_lossy().into_owned());
    launch.output_schema = file.as_deref();
    let mut argv: Vec<_> = command_line(&launch).argv.into_iter().map(Into::into).collect();
    argv[0] = place.program.path.clone().into();
    // Behind `exec`, and before `resume`, which does not take all options itself.
    argv.splice(2..2, ["-c".into(), format!("{SNAPSHOTS}=false").into()]);
    let mut env = place.around.for_turn(request);
    env.insert(HOME_VARIABLE.into(), place.home.into());
    let mut first = FirstStart::wait(place.home, &place.program.version_text()).await?;
    let mut process = Guarded::spawn(Launch {
        aop: place.around.aop.clone(),
        argv,
        env,
        cwd: request.cwd.clone(),
        stdin: Stdin::Given(prompt.into_bytes()),
        run_dir: request.run_dir.clone(),
        limits: request.limits,
    })
    .await?;
    host.progress(Progress::started(process.started()));

    let mut reader = TurnReader::new(Engine::Codex);
    let mut session = None;
    let mut delivered = false;
    while let Some(line) = process.next_line().await {
        if let Some(first) = first.take() {
            first.done();
        }
        reader.feed(&line);
        let Ok(line) = serde_json::from_slice::<Value>(&line) else { continue };
        if matches!(line["type"].as_str(), Some("turn.completed" | "turn.failed")) {
            process.finished(true);
        }
        match line["type"].as_str() {
            Some("thread.started") => {
                if let Some(id) = line["thread_id"].as_str() {
                    let known = SessionRef {
                        engine: Engine::Codex,
                        session: id.to_owned(),
                        cwd: request.cwd.clone(),
                        version: Some(place.program.version_text()),
                    };
                    host.session(known.clone()).await?;
                    session = Some(known);
                }
            }
            // The model works on what it was sent, so that is in the conversation.
            Some("item.started" | "item.completed" | "turn.completed") => {
                delivered |= delivers;
                let item = &line["item"];
                match (item["type"].as_str(), item["text"].as_str(), item["command"].as_str()) {
                    (Some("agent_message"), Some(text), _) => host.progress(Progress::Said(text.to_owned())),
                    (_, _, Some(command)) if line["type"] == "item.started" => {
                        host.progress(Progress::Uses(command.to_owned()));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    let transcript = process.transcript();
    let end = process.wait().await;
    if let (Some(thread), None) = (&request.session, &session)
        && end.errors.contains(NO_THREAD)
    {
        return Err(gone(thread, place.home));
    }
    let mut turn = reader.finish();
    end.explain(&mut turn);
    Ok(TurnReport { turn, process: end.process(), session, asked: Vec::new(), transcript, delivered })
}

/// What the engine reads, and whether that delivers the reply.
async fn prompt(place: &Place<'_>, request: &TurnRequest) -> (String, bool) {
    let instructed =
        |text: &str| format!("{}\n\n{text}", request.instructions.trim_end()).trim_start().to_owned();
    let held = match &request.session {
        Some(id) => conversation(place.home, id).await.unwrap_or_default(),
        None => Rollout::default(),
    };
    match &request.input {
        Input::Message(text) => {
            let known = held.was_told(&request.instructions);
            (if known { text.clone() } else { instructed(text) }, false)
        }
        Input::Reply(reply) => (join(&told_later(reply, &held), &reply.notes), true),
        Input::Continue(words) => (words.clone(), false),
    }
}

fn schema_file(request: &TurnRequest) -> Result<Option<PathBuf>, EngineError> {
    let form = request.output_schema.as_ref().and_then(|schema| aop_turn::flat::flatten(schema).ok());
    let Some(form) = form else { return Ok(None) };
    let path = request.run_dir.join("output-schema.json");
    std::fs::write(&path, form.to_string()).map_err(|error| EngineError::System {
        what: format!("writing {}", path.display()),
        cause: error.to_string(),
    })?;
    Ok(Some(path))
}
