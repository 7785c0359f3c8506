//! The engine's own interface on a conversation, for a person who wants to look into it or to talk there. What the
//! model does there is an agent's doing as in any turn, so the interface carries the agent's credential: no `aop` that
//! is called from it answers anything.

use crate::port::SessionRef;
use crate::process::{Surroundings, agent_variables};
use crate::{claude, codex, gemini};
use aop_turn::{Engine, Role};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What stands for a turn's claim in the credential.
const CLAIM: &str = "attach";

/// How the interface is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attach {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<OsString, OsString>,
    /// The variables in it that are its own: the credential, where the engine keeps the conversation, and a search path on
    /// which this `aop` stands first.
    pub own: BTreeMap<OsString, OsString>,
}

/// The interface on a conversation of this role of a feature; none for an engine that has no interface. The project is
/// named by its whole path: some engines keep its conversations in a home there.
pub async fn attach(
    around: &Surroundings,
    project: &Path,
    feature: &str,
    role: Role,
    session: &SessionRef,
) -> Option<Attach> {
    let plainly = |program: &'static str| (program, vec!["--resume".to_owned()]);
    let (program, resume) = match session.engine {
        Engine::ClaudeCode => plainly("claude"),
        Engine::Codex => ("codex", codex::interface(around, project).await),
        Engine::Gemini => plainly("gemini"),
        Engine::Iflow => plainly("iflow"),
        Engine::Scripted => return None,
    };
    let home = match session.engine {
        Engine::Codex => Some((codex::home::HOME_VARIABLE, codex::home::path(project))),
        Engine::Gemini => {
            Some((gemini::home::HOME_VARIABLE, gemini::home::Home::of(project).path().to_owned()))
        }
        Engine::ClaudeCode | Engine::Iflow | Engine::Scripted => None,
    };
    let mut own = BTreeMap::from(agent_variables(project, feature, role, CLAIM));
    own.extend(home.map(|(name, folder)| (name.into(), folder.into())));
    let mut env = around.for_agent(own.clone());
    env.retain(|name, _| !claude::NESTED.iter().any(|nested| name == nested));
    own.extend(env.get_key_value(OsStr::new("PATH")).map(|(name, path)| (name.clone(), path.clone())));
    let argv = [vec![program.to_owned()], resume, vec![session.session.clone()]].concat();
    Some(Attach { argv, env, own })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// What the interface of a Codex is started with that prints this as its version.
    async fn arguments(printed: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("codex");
        std::fs::write(&path, format!("#!/bin/sh\necho {printed}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let around = Surroundings {
            aop: dir.path().join("aop"),
            env: [("PATH".into(), dir.path().as_os_str().to_owned())].into(),
        };
        let (engine, cwd) = (Engine::Codex, dir.path().to_owned());
        let session = SessionRef { engine, session: "S".to_owned(), cwd, version: None };
        attach(&around, dir.path(), "shop", Role::Planner, &session).await.unwrap().argv.join(" ")
    }

    #[tokio::test]
    async fn codex_is_opened_without_a_server_that_would_stay() {
        let off = "features.shell_snapshot=false";
        let opened = arguments("codex-cli 0.166.0").await;
        assert_eq!(opened, format!("codex resume -c {off} --no-daemon S"));
        let opened = arguments("codex-cli 0.155.1").await;
        assert_eq!(opened, format!("codex resume -c {off} S"), "it has no server, and no such option");
        assert_eq!(arguments("I am not codex").await, "codex resume S");
    }
}
