//! What an engine finds around it: the environment that `aop` was started in, without `aop`'s own variables, and with
//! what hooks and MCP servers need to find their way back.

use crate::port::TurnRequest;
use aop_turn::Role;
use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Variables of ours begin so. An engine inherits none of them: a credential of an outer turn would act for the
/// wrong feature.
const OURS: &str = "AOP_";

/// Where engines are started: this program, and the environment they inherit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// The `aop` binary: guards, hooks and MCP servers are this program again.
    pub aop: PathBuf,
    /// The environment, variables of ours included or not: they are left out when an engine is started.
    pub env: BTreeMap<OsString, OsString>,
}

/// The variable that marks a program which an agent's work has started.
pub const AGENT_VARIABLE: &str = "AOP_AGENT";

/// What makes `aop` act as an agent, for whatever program it is that an agent's work may start.
pub fn agent_variables(project: &Path, feature: &str, role: Role, claim: &str) -> [(OsString, OsString); 2] {
    let agent = json!({"feature_id": feature, "role": role, "claim": claim});
    [(AGENT_VARIABLE.into(), agent.to_string().into()), ("AOP_PROJECT".into(), project.into())]
}

/// The value that marks the processes of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TurnMark(pub(super) String);

impl TurnMark {
    /// One that was never used.
    pub(super) fn fresh() -> Self {
        TurnMark(format!("t_{}", ulid::Ulid::generate()))
    }
}

impl Surroundings {
    /// Those of this process.
    pub fn of_this_process() -> io::Result<Self> {
        Ok(Surroundings { aop: std::env::current_exe()?, env: std::env::vars_os().collect() })
    }

    /// The environment of the engine for this turn. The folder of `aop` stands first on the search path, so that an
    /// agent that calls `aop` calls this one.
    pub fn for_turn(&self, request: &TurnRequest) -> BTreeMap<OsString, OsString> {
        self.for_agent(agent_variables(&request.project, &request.feature_id, request.role, &request.claim))
    }

    /// The environment of whatever an agent drives, with the credential of that agent.
    pub fn for_agent(
        &self,
        credential: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> BTreeMap<OsString, OsString> {
        let mut env = self.inherited();
        env.extend(credential);
        // Hooks, MCP servers and checks ask the same store.
        if let Some(store) = self.env.get(OsStr::new("AOP_STORE")) {
            env.insert("AOP_STORE".into(), store.clone());
        }
        env
    }

    /// The environment of a program that is only looked at (`--version`).
    pub fn inherited(&self) -> BTreeMap<OsString, OsString> {
        // Tests kill hooks at named points too; release builds have none of these points.
        let for_tests = |name: &OsStr| cfg!(debug_assertions) && name == "AOP_CRASH_AT";
        let is_ours = |name: &OsStr| name.as_encoded_bytes().starts_with(OURS.as_bytes()) && !for_tests(name);
        let mut env = self.env.clone();
        env.retain(|name, _| !is_ours(name));
        let own = self.aop.parent().filter(|_| !self.finds_itself()).map(Path::to_path_buf);
        let path = own.into_iter().chain(self.search_path());
        if let Ok(path) = std::env::join_paths(path) {
            env.insert("PATH".into(), path);
        }
        env
    }

    /// Whether `aop` is this very program without any help: then nobody else's programs are put before those of the user.
    fn finds_itself(&self) -> bool {
        let found = self.find("aop").and_then(|found| found.canonicalize().ok());
        found.is_some() && found == self.aop.canonicalize().ok()
    }

    /// The program of this name that an engine's environment would find.
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        let folders = self.search_path();
        folders.into_iter().map(|folder| folder.join(program)).find(|path| is_executable(path))
    }

    fn search_path(&self) -> Vec<PathBuf> {
        let path = self.env.get(OsStr::new("PATH"));
        path.map(|path| std::env::split_paths(path).collect()).unwrap_or_default()
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_inherits_everything_but_what_is_ours() {
        let env = [
            ("HOME", "/h"),
            ("AOP_AGENT", "outer"),
            ("AOP_STORE", "postgres://db/team"),
            ("AOP_X", "1"),
            ("AOPX", "kept"),
            ("PATH", "/a:/b"),
        ];
        let env = env.map(|(name, value)| (name.into(), value.into())).into();
        let env = Surroundings { aop: "/opt/aop/aop".into(), env }.inherited();
        let text = |name: &str| env.get(OsStr::new(name)).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(text("HOME").as_deref(), Some("/h"));
        assert_eq!(text("AOPX").as_deref(), Some("kept"));
        assert_eq!(text("PATH").as_deref(), Some("/opt/aop:/a:/b"));
        assert_eq!((text("AOP_AGENT"), text("AOP_X"), text("AOP_STORE")), (None, None, None));
    }

    #[test]
    fn the_search_path_is_the_users_own_where_it_finds_this_aop() {
        let dir = tempfile::TempDir::new().unwrap();
        let [own, link, other] = ["own", "link", "other"].map(|name| dir.path().join(name));
        for folder in [&own, &link, &other] {
            std::fs::create_dir(folder).unwrap();
        }
        for folder in [&own, &other] {
            std::fs::write(folder.join("aop"), "").unwrap();
            let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(folder.join("aop"), executable).unwrap();
        }
        std::os::unix::fs::symlink(own.join("aop"), link.join("aop")).unwrap();
        let seen = |path: &[&Path]| {
            let env = [("PATH".into(), std::env::join_paths(path).unwrap())].into();
            let env = Surroundings { aop: own.join("aop"), env }.inherited();
            std::env::split_paths(&env[OsStr::new("PATH")]).collect::<Vec<_>>()
        };
        let tools = Path::new("/tools");
        assert_eq!(seen(&[tools, &own]), [tools, &own]);
        assert_eq!(seen(&[tools, &link]), [tools, &link]);
        assert_eq!(seen(&[tools, &other]), [&own, tools, &other]);
        assert_eq!(seen(&[tools]), [&own, tools]);
    }
}
