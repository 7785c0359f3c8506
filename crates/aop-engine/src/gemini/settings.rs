//! The settings that Gemini CLI runs with: the user's own, with our MCP server and our hook added. Only a settings
//! file can bring either in; what differs from turn to turn comes through the environment.

use super::hook::WAITING_TOOLS;
use crate::process::AGENT_VARIABLE;
use aop_turn::command::shell_quoted;
use serde_json::{Map, Value, json};
use std::path::Path;

/// The name of our server and, in front of a dash, of our hook.
const AOP: &str = "aop";
/// The variables that our server needs: whose it is, and where the store is. The program would keep most variables from it.
const VARIABLES: [&str; 6] =
    [AGENT_VARIABLE, "AOP_PROJECT", "AOP_ENGINE", "AOP_STORE", "PGUSER", "PGPASSWORD"];

/// The user's settings with ours added.
pub(crate) fn with_ours(user: Value, aop: &Path) -> Value {
    let mut settings = match user {
        Value::Object(settings) => settings,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    let program = aop.display().to_string();
    let variables: Map<String, Value> =
        VARIABLES.iter().map(|name| ((*name).to_owned(), json!(format!("${{{name}:-}}")))).collect();
    let server = json!({"command": program, "args": ["mcp"], "env": variables, "trust": true});
    change(&mut settings, "mcpServers", |servers| drop(servers.insert(AOP.to_owned(), server)));

    let command = format!("{} hook gemini", shell_quoted(&program));
    let hook = json!({"matcher": format!("^({})$", WAITING_TOOLS.join("|")), "hooks": [{"type": "command",
        "name": "aop-park", "command": command, "timeout": 60_000}]});
    change(&mut settings, "hooks", |hooks| append(hooks, "AfterTool", hook));
    change(&mut settings, "hooksConfig", |hooks| drop(hooks.insert("enabled".to_owned(), json!(true))));

    // Lists of what is allowed would otherwise leave out what the user cannot know of.
    change(&mut settings, "mcp", |mcp| {
        if mcp.get("allowed").is_some_and(Value::is_array) {
            append(mcp, "allowed", json!(AOP));
        }
    });
    change(&mut settings, "tools", |tools| {
        if tools.get("core").is_some_and(Value::is_array) {
            WAITING_TOOLS.iter().for_each(|tool| append(tools, "core", json!(tool)));
        }
    });
    // A question may wait for months; and nothing is updated behind a run's back.
    change(&mut settings, "general", |general| {
        general.insert("sessionRetention".to_owned(), json!({"enabled": false}));
        general.insert("enableAutoUpdate".to_owned(), json!(false));
    });
    Value::Object(settings)
}

/// Changes a part of the settings, which is made when it is missing.
fn change(settings: &mut Map<String, Value>, name: &str, change: impl FnOnce(&mut Map<String, Value>)) {
    let mut section = match settings.remove(name) {
        Some(Value::Object(section)) => section,
        Some(_) | None => Map::new(),
    };
    change(&mut section);
    settings.insert(name.to_owned(), Value::Object(section));
}

fn append(section: &mut Map<String, Value>, name: &str, item: Value) {
    match section.get_mut(name).and_then(Value::as_array_mut) {
        Some(list) => list.push(item),
        None => drop(section.insert(name.to_owned(), json!([item]))),
    }
}

/// Reads JSON in which people have left comments, as the program allows.
pub(crate) fn read(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&without_comments(text))
}

fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_string = false;
    while let Some(sign) = rest.chars().next() {
        let length = match (in_string, sign) {
            (true, '\\') => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            (_, '"') => {
                in_string = !in_string;
                1
            }
            (false, '/') if rest.starts_with("//") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            (false, '/') if rest.starts_with("/*") => {
                rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
                continue;
            }
            _ => sign.len_utf8(),
        };
        kept.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_settings_stay_and_ours_are_added() {
        let user = json!({"model": {"name": "m"}, "mcpServers": {"own": {"command": "x"}, "aop": {"command": "old"}},
            "hooks": {"AfterTool": [{"matcher": "own"}]}, "mcp": {"allowed": ["own"]}, "tools": {"core": ["ls"]}});
        let settings = with_ours(user, Path::new("/opt/it's/aop"));
        assert_eq!(settings["model"]["name"], "m");
        assert_eq!(settings["mcpServers"]["own"]["command"], "x");
        assert_eq!(
            settings["mcpServers"]["aop"]["command"], "/opt/it's/aop",
            "a server of that name is ours"
        );
        assert_eq!(settings["mcpServers"]["aop"]["trust"], true);
        let variables: Vec<&String> =
            settings["mcpServers"]["aop"]["env"].as_object().unwrap().keys().collect();
        assert_eq!(variables, VARIABLES);
        assert_eq!(settings["hooks"]["AfterTool"][0]["matcher"], "own");
        assert_eq!(
            settings["hooks"]["AfterTool"][1]["hooks"][0]["command"],
            "'/opt/it'\\''s/aop' hook gemini"
        );
        assert_eq!(settings["mcp"]["allowed"], json!(["own", "aop"]));
        assert_eq!(settings["tools"]["core"].as_array().unwrap().len(), 3);
        assert_eq!(with_ours(Value::Null, Path::new("aop"))["tools"].get("core"), None, "no list, no limit");
    }

    #[test]
    fn comments_are_read_over_and_texts_are_not() {
        let text = "{ // one\n \"a\": \"http://x/*y*/\", /* two\n */ \"b\": \"\\\"//\" }";
        assert_eq!(read(text).unwrap(), json!({"a": "http://x/*y*/", "b": "\"//"}));
        assert!(read("{").is_err());
    }
}
