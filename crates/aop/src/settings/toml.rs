//! TOML with comments, through `toml_edit`, which keeps what it does not change.

use toml_edit::{Array, DocumentMut, Item, Table, Value};

/// The text with these keys set in a table; other keys of the table stay.
pub(crate) fn set(text: &str, table: [&str; 2], keys: &[(&str, Value)]) -> Result<String, String> {
    let mut document = read(text)?;
    let outer = document.entry(table[0]).or_insert_with(|| {
        let mut outer = Table::new();
        outer.set_implicit(true);
        Item::Table(outer)
    });
    let outer = outer.as_table_like_mut().ok_or_else(|| format!("{} is not a table", table[0]))?;
    let inner = outer.entry(table[1]).or_insert_with(|| Item::Table(Table::new()));
    let inner =
        inner.as_table_like_mut().ok_or_else(|| format!("{}.{} is not a table", table[0], table[1]))?;
    for (key, value) in keys {
        let same = inner.get(key).and_then(Item::as_value).map(|known| known.to_string().trim().to_owned());
        if same.as_deref() != Some(value.to_string().trim()) {
            inner.insert(key, Item::Value(value.clone()));
        }
    }
    Ok(like(text, &document))
}

/// The list at a key of a table; empty where there is none.
pub(crate) fn list(text: &str, table: [&str; 2], key: &str) -> Result<Array, String> {
    let document = read(text)?;
    let inner = document.get(table[0]).and_then(|outer| outer.get(table[1]));
    Ok(inner.and_then(|inner| inner.get(key)).and_then(Item::as_array).cloned().unwrap_or_default())
}

/// The text without the table.
pub(crate) fn remove(text: &str, table: [&str; 2]) -> Result<String, String> {
    let mut document = read(text)?;
    if let Some(outer) = document.get_mut(table[0]).and_then(Item::as_table_like_mut) {
        outer.remove(table[1]);
    }
    Ok(like(text, &document))
}

/// The document with the mark at its beginning and the ends of lines that the text has, which the parser does not keep.
fn like(text: &str, document: &DocumentMut) -> String {
    let written = document.to_string();
    let mark = text.strip_prefix(MARK).map_or("", |_| MARK);
    let is_windows = text.contains("\r\n") && text.matches('\n').count() == text.matches("\r\n").count();
    let lines = if is_windows { written.replace("\r\n", "\n").replace('\n', "\r\n") } else { written };
    format!("{mark}{}", lines.trim_start_matches(MARK))
}

/// What some editors begin a file with.
const MARK: &str = "\u{feff}";

fn read(text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>()
        .map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_goes_in_and_out_and_the_rest_stays_letter_for_letter() {
        let text = "# mine\nmodel = \"gpt\"\n\n[mcp_servers.other] # stays\ncommand = \"x\"\n";
        let keys = [("command", Value::from("aop")), ("timeout", Value::from(5))];
        let with = set(text, ["mcp_servers", "aop"], &keys).unwrap();
        assert!(
            with.starts_with(text) && with.contains("[mcp_servers.aop]\ncommand = \"aop\"\ntimeout = 5"),
            "{with}"
        );
        assert_eq!(set(&with, ["mcp_servers", "aop"], &keys).unwrap(), with);
        assert_eq!(remove(&with, ["mcp_servers", "aop"]).unwrap(), text);
    }

    #[test]
    fn the_ends_of_lines_and_the_mark_of_a_file_stay() {
        let text = "\u{feff}# mine\r\nmodel = \"gpt\"\r\n\r\n[mcp_servers.other]\r\ncommand = \"x\"\r\n";
        let with = set(text, ["mcp_servers", "aop"], &[("command", Value::from("aop"))]).unwrap();
        assert!(
            with.starts_with(text) && with.ends_with("[mcp_servers.aop]\r\ncommand = \"aop\"\r\n"),
            "{with:?}"
        );
        assert_eq!(remove(&with, ["mcp_servers", "aop"]).unwrap(), text);
    }

    #[test]
    fn other_keys_of_the_table_stay() {
        let text = "[mcp_servers.aop]\ncommand = \"old\"\nenv = { A = \"1\" } # mine\n";
        let with = set(text, ["mcp_servers", "aop"], &[("command", Value::from("aop"))]).unwrap();
        assert_eq!(with, text.replace("old", "aop"));
        assert!(set("mcp_servers = 1", ["mcp_servers", "aop"], &[]).is_err());
        assert!(set("= broken", ["mcp_servers", "aop"], &[]).is_err());
    }
}
