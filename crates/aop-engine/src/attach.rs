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
pub fn attach(
    around: &Surroundings,
    project: &Path,
    feature: &str,
    role: Role,
    session: &SessionRef,
) -> Option<Attach> {
    let (program, resume) = match session.engine {
        Engine::ClaudeCode => ("claude", "--resume"),
        Engine::Codex => ("codex", "resume"),
        Engine::Gemini => ("gemini", "--resume"),
        Engine::Iflow => ("iflow", "--resume"),
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
    Some(Attach { argv: [program, resume, &session.session].map(str::to_owned).into(), env, own })
}
