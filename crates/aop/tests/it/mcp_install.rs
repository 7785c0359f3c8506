//! `aop mcp install|uninstall`: the right entry in each client's settings, and nothing else touched.

use crate::support::{Project, binary};
use serde_json::{Value, json};
use std::path::Path;

fn json_of(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn each_client_gets_what_it_needs_and_twice_is_once() {
    // The tests' HOME is the project's folder.
    let project = Project::new();
    for client in ["claude-code", "codex", "gemini"] {
        let first = project.run(&["mcp", "install", client]).data();
        assert_eq!(first["files"][0]["changed"], true, "{first}");
        let again = project.run(&["mcp", "install", client]).data();
        let files = again["files"].as_array().unwrap();
        assert!(files.iter().all(|file| file["changed"] == false), "{again}");
    }
    let claude = json_of(&project.path(".claude.json"));
    assert_eq!(
        claude["mcpServers"]["aop"],
        json!({"type": "stdio", "command": binary(), "args": ["mcp"], "timeout": 86_400_000})
    );
    let settings = json_of(&project.path(".claude/settings.json"));
    assert_eq!(settings["permissions"]["allow"], json!(["mcp__aop__ask_user", "mcp__aop__await_answer"]));
    let gemini = json_of(&project.path(".gemini/settings.json"));
    assert_eq!(gemini["mcpServers"]["aop"]["trust"], true);
    let store =
        json!({"AOP_STORE": "${AOP_STORE:-}", "PGUSER": "${PGUSER:-}", "PGPASSWORD": "${PGPASSWORD:-}"});
    assert_eq!(gemini["mcpServers"]["aop"]["env"], store);
    let codex = std::fs::read_to_string(project.path(".codex/config.toml")).unwrap();
    for line in [
        "[mcp_servers.aop]",
        "args = [\"mcp\"]",
        "env_vars = [\"AOP_AGENT\", \"AOP_PROJECT\", \"AOP_STORE\", \"PGUSER\", \"PGPASSWORD\"]",
        "tool_timeout_sec = 86400",
        "default_tools_approval_mode = \"approve\"",
        "omit_tools_from = [\"deferred\", \"code_mode\"]",
    ] {
        assert!(codex.contains(line), "{codex}");
    }
}

#[test]
fn a_file_that_install_made_goes_with_its_entry_and_any_other_stays() {
    let files = [".claude.json", ".claude/settings.json", ".codex/config.toml", ".gemini/settings.json"];
    let each = |project: &Project, command: &str, more: &[&str]| {
        for client in ["claude-code", "codex", "gemini"] {
            project.run(&[&["mcp", command, client], more].concat()).data();
        }
    };
    let project = Project::new();
    each(&project, "install", &["--role", "qa"]);
    each(&project, "uninstall", &["--dry-run"]);
    assert!(files.iter().all(|file| project.path(file).exists()), "a dry run changes nothing");
    each(&project, "uninstall", &[]);
    assert!(files.iter().all(|file| !project.path(file).exists()));
    // Whoever made the file, with whatever is in it, has it afterwards.
    let own = |file: &str| if file.ends_with("toml") { "# mine\n" } else { "{\"mine\": 1}\n" };
    files.iter().for_each(|file| std::fs::write(project.path(file), own(file)).unwrap());
    each(&project, "install", &[]);
    each(&project, "uninstall", &[]);
    for file in files {
        let text = std::fs::read_to_string(project.path(file)).unwrap();
        assert!(text.contains("mine") && !text.contains("\"aop\""), "{file}: {text}");
    }
    // Nothing of ours was in these, and where a link leads, somebody put it.
    files.iter().for_each(|file| std::fs::write(project.path(file), "\n").unwrap());
    each(&project, "uninstall", &[]);
    assert!(files.iter().all(|file| project.path(file).exists()));
    let linked = project.path(files[3]);
    std::fs::rename(&linked, project.path("dotfile")).unwrap();
    std::fs::write(project.path("dotfile"), "").unwrap();
    std::os::unix::fs::symlink(project.path("dotfile"), &linked).unwrap();
    each(&project, "install", &[]);
    each(&project, "uninstall", &[]);
    assert!(linked.exists() && linked.is_symlink());
}

#[test]
fn a_dry_run_shows_the_difference_and_changes_nothing() {
    let project = Project::new();
    let before = crate::support::tree(project.root());
    for client in ["claude-code", "codex", "gemini"] {
        let shown = project.run(&["mcp", "install", client, "--dry-run"]).data();
        assert!(shown["files"][0]["diff"].as_str().unwrap().contains("+"), "{shown}");
        project.run(&["mcp", "uninstall", client, "--dry-run"]).data();
    }
    assert_eq!(crate::support::tree(project.root()), before);
}

#[test]
fn the_projects_own_settings_are_changed_when_asked_for() {
    let project = Project::new();
    for client in ["claude-code", "codex", "gemini"] {
        project.run(&["mcp", "install", client, "--project", "--role", "qa"]).data();
    }
    let shared = json_of(&project.path(".mcp.json"));
    assert_eq!(shared["mcpServers"]["aop"]["command"], "aop", "a shared file names no place on this machine");
    assert_eq!(shared["mcpServers"]["aop"]["args"], json!(["mcp", "--role", "qa"]));
    assert!(!project.path(".claude.json").exists());
    let codex = std::fs::read_to_string(project.path(".codex/config.toml")).unwrap();
    assert!(codex.contains("command = \"aop\""), "{codex}");
    let elsewhere = Project::empty();
    elsewhere.run(&["mcp", "install", "codex", "--project"]).refused("no_project", 1);
    let root = project.root().display().to_string();
    elsewhere.run(&["mcp", "install", "gemini", "--project", &root]).data();
    project.run(&["status", "--project"]).refused("invalid_argument", 2);
}

#[test]
fn other_settings_and_comments_stay_letter_for_letter() {
    let project = Project::new();
    let gemini = "{\n  // how I like it\n  \"ui\": {\"theme\": \"dark\"},\n  \"mcpServers\": {\n    \"mine\": {\"command\": \"x\"} // stays\n  }\n}\n";
    std::fs::create_dir_all(project.path(".gemini")).unwrap();
    std::fs::write(project.path(".gemini/settings.json"), gemini).unwrap();
    let codex = "model = \"gpt\" # mine\n\n[mcp_servers.mine]\ncommand = \"x\"\n";
    std::fs::create_dir_all(project.path(".codex")).unwrap();
    std::fs::write(project.path(".codex/config.toml"), codex).unwrap();
    for client in ["gemini", "codex"] {
        project.run(&["mcp", "install", client]).data();
    }
    let with = std::fs::read_to_string(project.path(".gemini/settings.json")).unwrap();
    assert!(
        with.contains("// how I like it") && with.contains("// stays") && with.contains("\"aop\""),
        "{with}"
    );
    assert!(std::fs::read_to_string(project.path(".codex/config.toml")).unwrap().starts_with(codex));
    for client in ["gemini", "codex"] {
        project.run(&["mcp", "uninstall", client]).data();
    }
    assert_eq!(std::fs::read_to_string(project.path(".codex/config.toml")).unwrap(), codex);
    let without = std::fs::read_to_string(project.path(".gemini/settings.json")).unwrap();
    assert!(without.contains("// how I like it") && without.contains("// stays"), "{without}");
}

#[test]
fn variables_that_a_user_gave_the_server_stay() {
    let project = Project::new();
    std::fs::create_dir_all(project.path(".gemini")).unwrap();
    let own = json!({"mcpServers": {"aop": {"env": {"AOP_STORE": "sqlite", "AOP_TOKEN": "mine"}}}});
    std::fs::write(project.path(".gemini/settings.json"), own.to_string()).unwrap();
    project.run(&["mcp", "install", "gemini"]).data();
    let kept = json!({"AOP_STORE": "sqlite", "AOP_TOKEN": "mine", "PGUSER": "${PGUSER:-}",
        "PGPASSWORD": "${PGPASSWORD:-}"});
    assert_eq!(json_of(&project.path(".gemini/settings.json"))["mcpServers"]["aop"]["env"], kept);
    std::fs::create_dir_all(project.path(".codex")).unwrap();
    let own = "[mcp_servers.aop]\nenv_vars = [\"SSL_CERT_FILE\", \"AOP_STORE\"]\n";
    std::fs::write(project.path(".codex/config.toml"), own).unwrap();
    for _ in 0..2 {
        project.run(&["mcp", "install", "codex"]).data();
        let text = std::fs::read_to_string(project.path(".codex/config.toml")).unwrap();
        let kept = "env_vars = [\"SSL_CERT_FILE\", \"AOP_STORE\", \"AOP_AGENT\", \"AOP_PROJECT\", \"PGUSER\", \"PGPASSWORD\"]";
        assert!(text.contains(kept), "{text}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_left_alone() {
    let project = Project::new();
    std::fs::create_dir_all(project.path(".codex")).unwrap();
    std::fs::create_dir_all(project.path(".gemini")).unwrap();
    for (client, file, broken) in [
        ("claude-code", ".claude.json", "{ broken"),
        ("codex", ".codex/config.toml", "= broken"),
        ("gemini", ".gemini/settings.json", "[]"),
    ] {
        std::fs::write(project.path(file), broken).unwrap();
        let error = project.run(&["mcp", "install", client]).refused("invalid_document", 2);
        assert!(error["message"].as_str().unwrap().contains(file), "{error}");
        assert_eq!(std::fs::read_to_string(project.path(file)).unwrap(), broken);
    }
    project.run(&["mcp", "install", "emacs"]).refused("invalid_argument", 2);
    project.run(&["mcp", "install", "codex", "--role", "human"]).refused("forbidden_for_role", 1);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_rights_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new();
    let real = project.path("dotfiles.json");
    std::fs::write(&real, "{\"a\": 1}\n").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&real, project.path(".claude.json")).unwrap();
    project.run(&["mcp", "install", "claude-code"]).data();
    assert!(std::fs::symlink_metadata(project.path(".claude.json")).unwrap().is_symlink());
    assert_eq!(json_of(&real)["a"], 1);
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
}
