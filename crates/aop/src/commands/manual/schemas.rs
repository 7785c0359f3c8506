//! The reference of the documents, rendered from their JSON Schemas; and schemas in a few words, for other pages too.

use super::GENERATED;
use aop_supervisor::schema_of;
use aop_turn::Role;
use serde_json::Value;
use std::fmt::Write;

/// The whole page.
pub(super) fn page() -> String {
    let mut page = format!(
        "{GENERATED}\n\n# Schemas\n\nThe documents that `aop` reads and writes, as JSON Schema in `schemas/`. A schema says \
         less than the program: `aop spec check` and `aop prompts check` report everything that is wrong with a \
         document.\n"
    );
    let documents = aop_ask::schema::all();
    let documents = documents.iter().map(|(name, schema)| (*name, schema));
    let results = [
        ("plan.schema.json", schema_of(Role::Planner)),
        ("changes.schema.json", schema_of(Role::Builder)),
        ("verdict.schema.json", schema_of(Role::Qa)),
    ];
    for (name, schema) in documents.chain(results) {
        let about = schema["description"].as_str().unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = write!(page, "\n## [`{name}`](../../schemas/{name})\n\n{about}\n\n{}", fields(schema));
        for (below, schema) in members(&schema["$defs"]) {
            if schema["properties"].is_object() {
                let _ = write!(page, "\n### {below}\n\n{}", fields(schema));
            }
        }
    }
    page
}

/// The members of an object.
pub(super) fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

/// The fields of an object as a table.
pub(super) fn fields(schema: &Value) -> String {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut table = String::from("| field | value | required |\n|---|---|---|\n");
    for (name, field) in members(&schema["properties"]) {
        let must = if required.iter().any(|known| known == name) { "yes" } else { "no" };
        let _ = writeln!(table, "| `{name}` | {} | {must} |", shape(field));
    }
    table
}

/// A schema in a few words.
pub(super) fn shape(schema: &Value) -> String {
    let code =
        |value: &Value| format!("`{}`", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return name.to_owned();
    }
    if let Some(names) = schema["enum"].as_array() {
        return names.iter().map(code).collect::<Vec<_>>().join(", ");
    }
    if let Some(value) = schema.get("const") {
        return code(value);
    }
    if let Some(ways) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        return ways.iter().map(shape).collect::<Vec<_>>().join(" or ");
    }
    if schema["type"] == "array" {
        return format!("list of {}", shape(&schema["items"]));
    }
    let kinds = match &schema["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => schema["description"].as_str().unwrap_or("anything").trim_end_matches('.').to_owned(),
    };
    let below = schema["properties"].as_object().filter(|_| schema["type"] == "object");
    let below = below.map(|fields| fields.iter().map(|(name, field)| format!("`{name}`: {}", shape(field))));
    if let Some(fields) = below {
        return format!("{kinds} with {}", fields.collect::<Vec<_>>().join("; "));
    }
    let limit = |key: &str, words: &str| schema.get(key).map(|value| format!(", {words} {value}"));
    let pattern =
        schema["pattern"].as_str().map(|pattern| format!(" like `{}`", pattern.replace('|', "\\|")));
    let limits =
        [pattern, limit("minimum", "at least"), limit("maximum", "at most"), limit("maxLength", "at most")];
    kinds + &limits.into_iter().flatten().collect::<String>()
}
