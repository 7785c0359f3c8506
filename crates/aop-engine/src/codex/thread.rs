//! What a thread is started and resumed with. Both get the same: what differs, Codex would tell the model.

use crate::port::TurnRequest;
use aop_turn::Mode;
use aop_turn::command::codex_thread_parameters;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Newer models are told by Codex itself to ask about optional things only, to go on without an answer, and to wait a
/// minute for one. Here a person is there and the work can wait.
const ASKING: &str = "\
## How asking works here

`request_user_input` reaches a person, and the work is put aside until there is an answer, however long that takes. Use
it for everything you need to know from a person, also for decisions that the work depends on and for permissions; the
general advice to use it for optional questions only does not hold here. An answer may be an option or the person's own
words. If nobody answers, you are told so in words.

`request_user_input_async` puts the work aside too, at once: first do what does not depend on the answer. The reply is the
next message you get.
";

/// Whether Codex writes down what a shell of the person's would export. That is their whole environment, keys and all, and
/// only an end in good order would take the file away again: ours is none.
pub(super) const SNAPSHOTS: &str = "features.shell_snapshot";

/// The standing instructions of a thread.
pub(super) fn instructions(request: &TurnRequest) -> String {
    match request.mode {
        Mode::Interactive => {
            format!("{}\n\n{ASKING}", request.instructions.trim_end()).trim_start().to_owned()
        }
        Mode::Auto => request.instructions.clone(),
    }
}

/// The parameters of `thread/start` and, with the thread's id, of `thread/resume`.
pub(super) fn parameters(request: &TurnRequest, writable: Option<&[Value]>) -> Value {
    let mut parameters = codex_thread_parameters(request.permissions);
    parameters["cwd"] = json!(request.cwd);
    parameters["developerInstructions"] = instructions(request).into();
    parameters["config"][SNAPSHOTS] = false.into();
    parameters["config"]["suppress_unstable_features_warning"] = true.into();
    if let Some(writable) = writable {
        parameters["config"]["sandbox_workspace_write.writable_roots"] = writable.into();
    }
    parameters
}

/// The folder for deliverables, when the sandbox would not let the agent write there. It is this turn's, and holds
/// nothing else: around it are files that `aop` goes by, such as which processes to end.
pub(super) fn outside_folder(cwd: &Path, run_dir: &Path) -> Option<PathBuf> {
    (!run_dir.starts_with(cwd)).then(|| run_dir.join("artifacts"))
}

/// Whether any settings may name writable folders of their own. Only then is Codex asked for them, which takes longer
/// than everything else before a turn.
pub(super) fn may_have_roots(home: &Path, cwd: &Path) -> bool {
    let projects = cwd.ancestors().map(|folder| folder.join(".codex/config.toml"));
    let files =
        [home.join("config.toml"), PathBuf::from("/etc/codex/config.toml")].into_iter().chain(projects);
    let names_them = |file: PathBuf| match crate::plain::read_file(&file) {
        Ok(content) => String::from_utf8_lossy(&content).contains("writable_roots"),
        Err(error) => {
            error.kind() != std::io::ErrorKind::NotFound && error.kind() != std::io::ErrorKind::NotADirectory
        }
    };
    files.into_iter().any(names_them)
}

/// The writable folders of the user's settings, and this one.
pub(super) fn writable_roots(config: &Value, folder: &Path) -> Vec<Value> {
    let configured =
        config.pointer("/config/sandbox_workspace_write/writable_roots").and_then(Value::as_array);
    let mut roots = configured.cloned().unwrap_or_default();
    let folder = json!(folder);
    if !roots.contains(&folder) {
        roots.push(folder);
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_turns_folder_the_sandbox_opens_what_deliverables_go_to_and_nothing_else() {
        let [cwd, run_dir] = ["/p/.aop/worktrees/shop", "/p/.aop/runs/r_1/shop/c_1"].map(Path::new);
        assert_eq!(outside_folder(cwd, run_dir), Some(run_dir.join("artifacts")));
        assert_eq!(outside_folder(cwd, &cwd.join("out")), None, "it is open already");
    }

    #[test]
    fn folders_of_the_users_settings_stay_writable() {
        let config = json!({"config": {"sandbox_workspace_write": {"writable_roots": ["/opt"]}}});
        assert_eq!(writable_roots(&config, Path::new("/p/out")), ["/opt", "/p/out"]);
        assert_eq!(writable_roots(&Value::Null, Path::new("/x")), ["/x"]);
    }

    #[test]
    fn codex_is_asked_for_its_settings_only_where_one_of_them_names_folders() {
        let dir = tempfile::tempdir().unwrap();
        let (home, cwd) = (dir.path().join("home"), dir.path().join("project/work"));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(dir.path().join("project/.codex")).unwrap();
        std::fs::write(home.join("config.toml"), "model = \"a\"").unwrap();
        assert!(!may_have_roots(&home, &cwd));
        std::fs::write(dir.path().join("project/.codex/config.toml"), "writable_roots = []").unwrap();
        assert!(may_have_roots(&home, &cwd));
    }
}
