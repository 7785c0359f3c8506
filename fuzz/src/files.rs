//! Files that people and other programs write: `aop.yaml`, and settings that `aop mcp install` changes. They are read
//! by the binary, which is no library; its modules are taken in here as they are.

use serde_json::json;
use std::path::Path;

#[path = "../../crates/aop/src/config.rs"]
#[expect(dead_code, reason = "only reading is tried")]
mod config;
#[path = "../../crates/aop/src/settings/jsonc.rs"]
mod jsonc;
#[path = "../../crates/aop/src/settings/toml.rs"]
mod toml;

/// Settings, or a refusal that shows no password.
pub(crate) fn aop_yaml(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(config) = config::Config::parse(Path::new("aop.yaml"), &text) {
        let _ = config.rules();
    }
}

/// JSON with comments: what is set is there, what is removed is gone, and both leave the rest as it was.
pub(crate) fn settings_json(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(before) = jsonc::read(&text) else { return };
    let (list, items) = (["permissions", "allow"], ["mcp__aop"]);
    if let Ok(with) = jsonc::append(&text, &list, &items) {
        let read = jsonc::read(&with).expect("it can be read again");
        let found = jsonc::at(&read, &list).and_then(|list| list.as_array());
        assert!(found.is_some_and(|found| found.contains(&json!(items[0]))), "{with}");
        let _ = jsonc::take(&with, &list, &items);
    }
    let path = ["mcpServers", "aop"];
    let value = json!({"command": "aop", "args": ["mcp"]});
    let Ok(with) = jsonc::set(&text, &path, &value) else { return };
    assert_eq!(jsonc::read(&with).expect("it can be read again")["mcpServers"]["aop"], value);
    // A key that is there twice is not touched.
    let Ok(without) = jsonc::remove(&with, &path) else { return };
    let mut after = jsonc::read(&without).expect("it can be read again");
    if before.get("mcpServers").is_none() {
        after.as_object_mut().map(|after| after.remove("mcpServers"));
    }
    if before["mcpServers"].get("aop").is_none() {
        assert_eq!(after, before, "there and back changed something");
    }
}

/// TOML: setting twice is setting once.
pub(crate) fn settings_toml(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let table = ["mcp_servers", "aop"];
    // What is listed there is kept, whatever it is.
    let list = toml::list(&text, table, "env_vars").unwrap_or_default();
    let keys = [("command", toml_edit::Value::from("aop")), ("env_vars", list.into())];
    let Ok(once) = toml::set(&text, table, &keys) else { return };
    assert_eq!(toml::set(&once, table, &keys).as_ref(), Ok(&once));
    assert!(toml::remove(&once, table).is_ok());
}
