//! `aop mcp install|uninstall CLIENT`: the entry that makes an agent program ask through `aop`, with the settings each
//! one needs so that the asking tools are seen, are not asked permission for, and are waited for.

use crate::cli::{Global, NO_FOLDER, is_project_typed};
use crate::output::style::{bold, dim};
use crate::output::{CommandResult, Reply};
use crate::project::Project;
use crate::settings::file::Change;
use crate::settings::{jsonc, toml};
use aop_engine::process::AGENT_VARIABLE;
use aop_kernel::ids::{FeatureId, quoted};
use aop_kernel::{Envelope, ErrorCode, Refusal};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// The server's name in every client.
const NAME: &str = "aop";
/// A day: ask_user returns long before, and no client gives up first.
const PATIENCE_MS: i64 = 86_400_000;
/// What the server goes by and clients keep from it unless they are told its name: whose agent it serves, when an engine
/// of a run is the client, and where the store is.
const VARIABLES: [&str; 5] = [AGENT_VARIABLE, "AOP_PROJECT", STORE[0], STORE[1], STORE[2]];
const STORE: [&str; 3] = ["AOP_STORE", "PGUSER", "PGPASSWORD"];
/// Where Codex has its entry, and what it lets through to it.
const CODEX: [&str; 2] = ["mcp_servers", NAME];
const ENV_VARS: &str = "env_vars";
/// How a file of JSON that is not there begins.
const EMPTY: &str = "{}\n";
/// What Claude Code is allowed to call without asking, and where it has that.
const ALLOW: [&str; 2] = ["permissions", "allow"];
const ALLOWED: [&str; 2] = ["mcp__aop__ask_user", "mcp__aop__await_answer"];

/// Which client, and where.
#[derive(Debug, clap::Args)]
pub(super) struct ClientArgs {
    /// claude-code, codex or gemini
    client: String,
    /// Show what would change and change nothing
    #[arg(long)]
    dry_run: bool,
    /// In whose name the client asks: planner, builder or qa
    #[arg(long, default_value = "builder")]
    role: String,
    /// The only feature the client may touch
    #[arg(long)]
    feature_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    ClaudeCode,
    Codex,
    Gemini,
}

/// Puts the entry in.
pub(super) fn install(global: &Global, args: &ClientArgs) -> CommandResult {
    let client = client(&args.client)?;
    let entry = entry(args)?;
    let changes =
        match client {
            Client::ClaudeCode => {
                let [servers, permissions] = claude_files(global)?;
                vec![
                    Change::of(&servers, EMPTY)?.with(|text| put(text, &claude(&entry)))?,
                    Change::of(&permissions, EMPTY)?.with(|text| jsonc::append(text, &ALLOW, &ALLOWED))?,
                ]
            }
            Client::Codex => {
                vec![Change::of(&codex_file(global)?, "")?.with(|text| {
                    toml::set(text, CODEX, &codex(&entry, toml::list(text, CODEX, ENV_VARS)?))
                })?]
            }
            Client::Gemini => {
                vec![Change::of(&gemini_file(global)?, EMPTY)?.with(|text| put(text, &gemini(&entry)))?]
            }
        };
    finish(args, &changes, "installed")
}

/// Takes it out again. Files that are not there are not made, and one that `install` made goes when nothing else stands
/// in it.
pub(super) fn uninstall(global: &Global, args: &ClientArgs) -> CommandResult {
    let client = client(&args.client)?;
    let without = |text: &str| jsonc::remove(text, &["mcpServers", NAME]);
    let ask_again = |text: &str| jsonc::take(text, &ALLOW, &ALLOWED);
    // What is left of a file that holds nothing but ours.
    let shell = put(EMPTY, &json!({})).and_then(|text| without(&text)).unwrap_or_default();
    let asking = jsonc::append(EMPTY, &ALLOW, &ALLOWED).and_then(|text| ask_again(&text)).unwrap_or_default();
    let changes = match client {
        Client::ClaudeCode => {
            let [servers, permissions] = claude_files(global)?;
            vec![
                Change::of(&servers, EMPTY)?.with(without)?.or_gone(&shell),
                Change::of(&permissions, EMPTY)?.with(ask_again)?.or_gone(&asking),
            ]
        }
        Client::Codex => {
            vec![Change::of(&codex_file(global)?, "")?.with(|text| toml::remove(text, CODEX))?.or_gone("")]
        }
        Client::Gemini => vec![Change::of(&gemini_file(global)?, EMPTY)?.with(without)?.or_gone(&shell)],
    };
    let there: Vec<Change> = changes.into_iter().filter(Change::exists).collect();
    finish(args, &there, "uninstalled")
}

fn finish(args: &ClientArgs, changes: &[Change], done: &str) -> CommandResult {
    let needed: Vec<&Change> = changes.iter().filter(|change| change.is_needed()).collect();
    let diff: String = needed.iter().map(|change| change.diff()).collect();
    if !args.dry_run {
        needed.iter().try_for_each(|change| change.write())?;
    }
    let files: Vec<Value> = changes
        .iter()
        .map(|change| {
            let changed = change.is_needed();
            json!({"path": change.path.display().to_string(), "changed": changed,
                "diff": changed.then(|| change.diff())})
        })
        .collect();
    let text = match (needed.is_empty(), args.dry_run) {
        (true, _) => format!("Nothing to change: aop is {done} in {} already.", args.client),
        (false, true) => format!("{diff}\n{}", dim("Nothing was changed; leave --dry-run out to do it.")),
        (false, false) => format!(
            "{diff}\n{} Restart {} to apply it.",
            bold(&format!("aop is {done} in {}.", args.client)),
            args.client
        ),
    };
    let data = json!({"client": args.client, "dry_run": args.dry_run, "files": files});
    Ok(Reply::ok(Envelope::success(&data), text))
}

/// How the client starts the server.
struct Entry {
    command: String,
    args: Vec<String>,
}

fn entry(args: &ClientArgs) -> Result<Entry, Refusal> {
    // A file that others share names the program, not where it happens to be here.
    let command = if is_project_typed() { None } else { std::env::current_exe().ok() };
    let command = command.map_or_else(|| NAME.to_owned(), |path| path.display().to_string());
    let role = super::worker(aop_kernel::role::Caller::new(super::parse_role(&args.role)?))?.role;
    let mut words = vec!["mcp".to_owned()];
    if role != aop_kernel::role::Role::Builder {
        words.extend(["--role".to_owned(), role.to_string()]);
    }
    if let Some(feature) = &args.feature_id {
        words.extend(["--feature-id".to_owned(), FeatureId::parse(feature)?.to_string()]);
    }
    Ok(Entry { command, args: words })
}

fn claude(entry: &Entry) -> Value {
    json!({"type": "stdio", "command": entry.command, "args": entry.args, "timeout": PATIENCE_MS})
}

/// Without `trust` Gemini CLI does not show the tools to its model. A variable that is not set arrives empty, which would
/// be no credential; in a run Gemini has settings of its own.
fn gemini(entry: &Entry) -> Value {
    let env: Map<String, Value> =
        STORE.iter().map(|name| ((*name).to_owned(), json!(format!("${{{name}:-}}")))).collect();
    json!({"command": entry.command, "args": entry.args, "env": env, "timeout": PATIENCE_MS, "trust": true})
}

/// Codex shows tools of servers only when they are searched for, unless it is told not to; it gives up after five
/// minutes, asks before each call and keeps most variables to itself, unless it is told otherwise.
/// What a user lets through by name stays.
fn codex(entry: &Entry, mut named: toml_edit::Array) -> Vec<(&'static str, toml_edit::Value)> {
    let missing = |name: &&str| !named.iter().any(|known| known.as_str() == Some(name));
    let missing: Vec<&str> = VARIABLES.iter().copied().filter(missing).collect();
    named.extend(missing);
    let list = |items: &[&str]| toml_edit::Value::from(toml_edit::Array::from_iter(items.iter().copied()));
    let args: Vec<&str> = entry.args.iter().map(String::as_str).collect();
    vec![
        ("command", entry.command.as_str().into()),
        ("args", list(&args)),
        (ENV_VARS, named.into()),
        ("tool_timeout_sec", (PATIENCE_MS / 1_000).into()),
        ("default_tools_approval_mode", "approve".into()),
        ("omit_tools_from", list(&["deferred", "code_mode"])),
    ]
}

/// Sets our keys of the entry; what else a user put there stays.
fn put(text: &str, ours: &Value) -> Result<String, String> {
    let path = ["mcpServers", NAME];
    let known = jsonc::read(text)?;
    let mut entry = match jsonc::at(&known, &path) {
        Some(Value::Object(map)) => map.clone(),
        Some(_) | None => Map::new(),
    };
    let mut ours = ours.as_object().cloned().unwrap_or_default();
    if let (Some(Value::Object(env)), Some(Value::Object(known))) = (ours.get_mut("env"), entry.get("env")) {
        env.extend(known.clone());
    }
    entry.extend(ours);
    if jsonc::at(&known, &path).and_then(Value::as_object) == Some(&entry) {
        return Ok(text.to_owned());
    }
    jsonc::set(text, &path, &Value::Object(entry))
}

fn client(name: &str) -> Result<Client, Refusal> {
    match name {
        "claude-code" => Ok(Client::ClaudeCode),
        "codex" => Ok(Client::Codex),
        "gemini" => Ok(Client::Gemini),
        other => Err(Refusal::invalid_argument(format!("client {} is not known", quoted(other)))
            .hint("client is one of claude-code, codex, gemini")
            .fact("argument", "client")),
    }
}

fn claude_files(global: &Global) -> Result<[PathBuf; 2], Refusal> {
    if is_project_typed() {
        let root = project_root(global)?;
        return Ok([root.join(".mcp.json"), root.join(".claude/settings.json")]);
    }
    match set("CLAUDE_CONFIG_DIR") {
        Some(folder) => Ok([folder.join(".claude.json"), folder.join("settings.json")]),
        None => Ok([home()?.join(".claude.json"), home()?.join(".claude/settings.json")]),
    }
}

fn codex_file(global: &Global) -> Result<PathBuf, Refusal> {
    if is_project_typed() {
        return Ok(project_root(global)?.join(".codex/config.toml"));
    }
    Ok(set("CODEX_HOME").map_or_else(|| home().map(|home| home.join(".codex")), Ok)?.join("config.toml"))
}

fn gemini_file(global: &Global) -> Result<PathBuf, Refusal> {
    let root = if is_project_typed() {
        project_root(global)?
    } else {
        set("GEMINI_CLI_HOME").map_or_else(home, Ok)?
    };
    Ok(root.join(".gemini/settings.json"))
}

fn project_root(global: &Global) -> Result<PathBuf, Refusal> {
    let named = global.project.clone().filter(|folder| folder.as_os_str() != NO_FOLDER);
    Ok(Project::find(&Global { project: named, ..global.clone() })?.root)
}

fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn home() -> Result<PathBuf, Refusal> {
    set("HOME").ok_or_else(|| {
        Refusal::new(
            ErrorCode::InvalidArgument,
            "HOME is not set, so there are no settings of yours to change",
        )
        .hint("set HOME, or use --project")
    })
}
