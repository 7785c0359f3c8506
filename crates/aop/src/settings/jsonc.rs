//! JSON with comments and trailing commas, changed by cutting and pasting text. Every change is checked: read again,
//! the new text must say exactly what was wanted, and all the rest must say what it said before.

use serde_json::{Map, Value};

/// A value and where it stands.
#[derive(Debug)]
struct Node {
    start: usize,
    end: usize,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Object(Vec<(String, usize, Node)>),
    Array(Vec<Node>),
    Scalar(Value),
}

impl Node {
    fn value(&self) -> Value {
        match &self.kind {
            Kind::Object(members) => {
                let pairs = members.iter().map(|(key, _, node)| (key.clone(), node.value()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
            Kind::Array(items) => Value::Array(items.iter().map(Node::value).collect()),
            Kind::Scalar(value) => value.clone(),
        }
    }

    fn member(&self, key: &str) -> Option<(usize, &Node)> {
        let Kind::Object(members) = &self.kind else { return None };
        // Of a key that is there twice the last one counts, as everywhere.
        members.iter().rev().find(|(name, ..)| name == key).map(|(_, start, node)| (*start, node))
    }
}

/// What the text says.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    Ok(parse(text)?.value())
}

/// The text with this value at the path; objects on the way are made.
pub(crate) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, String> {
    let mut wanted = read(text)?;
    put(&mut wanted, path, value)?;
    let root = parse(text)?;
    let mut node = &root;
    let mut depth = 0;
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        let Some((_, member)) = node.member(first) else { break };
        (node, rest, depth) = (member, after, depth + 1);
    }
    let changed = match rest.split_first() {
        None => splice(text, node.start, node.end, &written(value, depth)),
        Some((first, after)) => {
            let nested = after.iter().rev().fold(value.clone(), |inner, key| {
                Value::Object(Map::from_iter([((*key).to_owned(), inner)]))
            });
            let member = format!("{}: {}", Value::from(*first), written(&nested, depth + 1));
            insert(text, node, depth, &member)?
        }
    };
    checked(changed, &wanted)
}

/// The text with these items at the end of the list at the path, those that are not there yet.
pub(crate) fn append(text: &str, path: &[&str], items: &[&str]) -> Result<String, String> {
    let known = match at(&read(text)?, path) {
        None => return set(text, path, &Value::from(items)),
        Some(Value::Array(known)) => known.clone(),
        Some(_) => return Err(format!("{} is not a list", path.join("."))),
    };
    let mut text = text.to_owned();
    for item in items.iter().filter(|item| !known.contains(&Value::from(**item))) {
        let mut wanted = read(&text)?;
        if let Some(Value::Array(list)) = at_mut(&mut wanted, path) {
            list.push(Value::from(*item));
        }
        let root = parse(&text)?;
        let list = path.iter().try_fold(&root, |node, key| node.member(key).map(|(_, node)| node));
        let list = list.ok_or("the list has moved")?;
        let changed = insert(&text, list, path.len(), &Value::from(*item).to_string())?;
        text = checked(changed, &wanted)?;
    }
    Ok(text)
}

/// The text without the member at the path.
pub(crate) fn remove(text: &str, path: &[&str]) -> Result<String, String> {
    let mut wanted = read(text)?;
    let Some((last, parents)) = path.split_last() else { return Ok(text.to_owned()) };
    let Some(Value::Object(map)) = at_mut(&mut wanted, parents) else { return Ok(text.to_owned()) };
    if map.shift_remove(*last).is_none() {
        return Ok(text.to_owned());
    }
    let root = parse(text)?;
    let parent = parents.iter().try_fold(&root, |node, key| node.member(key).map(|(_, node)| node));
    let (start, node) = parent.and_then(|parent| parent.member(last)).ok_or("the entry has moved")?;
    checked(cut(text, start, node.end), &wanted)
}

/// The text without these items of the list at the path.
pub(crate) fn take(text: &str, path: &[&str], items: &[&str]) -> Result<String, String> {
    let mut text = text.to_owned();
    loop {
        let root = parse(&text)?;
        let list = path.iter().try_fold(&root, |node, key| node.member(key).map(|(_, node)| node));
        let Some(Kind::Array(nodes)) = list.map(|list| &list.kind) else { return Ok(text) };
        let ours = |node: &Node| node.value().as_str().is_some_and(|item| items.contains(&item));
        let Some(place) = nodes.iter().position(ours) else { return Ok(text) };
        let mut wanted = root.value();
        if let Some(Value::Array(list)) = at_mut(&mut wanted, path) {
            list.remove(place);
        }
        text = checked(cut(&text, nodes[place].start, nodes[place].end), &wanted)?;
    }
}

fn checked(text: String, wanted: &Value) -> Result<String, String> {
    if read(&text)? == *wanted {
        return Ok(text);
    }
    Err("it cannot be changed without touching other settings".into())
}

/// The value at a path.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

fn at_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, key| value.get_mut(key))
}

fn put(root: &mut Value, path: &[&str], value: &Value) -> Result<(), String> {
    let mut place = root;
    for key in path {
        let Value::Object(map) = place else { return Err(format!("what holds {key} is not an object")) };
        place = map.entry((*key).to_owned()).or_insert_with(|| Value::Object(Map::new()));
    }
    *place = value.clone();
    Ok(())
}

fn splice(text: &str, start: usize, end: usize, with: &str) -> String {
    format!("{}{with}{}", &text[..start], &text[end..])
}

/// A value as it stands at this depth, two spaces a level.
fn written(value: &Value, depth: usize) -> String {
    let text = format!("{value:#}");
    text.replace('\n', &format!("\n{}", "  ".repeat(depth)))
}

/// Puts a member or an item behind the last one.
fn insert(text: &str, into: &Node, depth: usize, what: &str) -> Result<String, String> {
    let last = match &into.kind {
        Kind::Object(members) => members.last().map(|(_, start, node)| (*start, node.end)),
        Kind::Array(items) => items.last().map(|node| (node.start, node.end)),
        Kind::Scalar(_) => return Err("what should hold the entry holds a plain value".into()),
    };
    let Some((start, end)) = last else {
        let (inner, outer) = ("  ".repeat(depth + 1), "  ".repeat(depth));
        let kept = text[into.start + 1..into.end - 1].trim_end();
        let (open, close) = (&text[into.start..=into.start], &text[into.end - 1..into.end]);
        let filled = format!("{open}{kept}\n{inner}{what}\n{outer}{close}");
        return Ok(splice(text, into.start, into.end, &filled));
    };
    // As the last one is indented, or beside it when all stand on one line.
    let line = text[..start].rfind('\n').map_or(0, |place| place + 1);
    let before = &text[line..start];
    let gap =
        if line > into.start && before.trim().is_empty() { format!("\n{before}") } else { " ".to_owned() };
    // A trailing comma that is there already stays the only one.
    let tail = skip(text, end);
    let (place, comma) = if text[tail..].starts_with(',') { (tail + 1, "") } else { (end, ",") };
    Ok(splice(text, place, place, &format!("{comma}{gap}{what}")))
}

/// Cuts a member or an item out, with one comma and the line it stood on.
fn cut(text: &str, start: usize, end: usize) -> String {
    let after = skip(text, end);
    let (mut from, mut to) = (start, end);
    if text[after..].starts_with(',') {
        to = after + 1;
    } else if let Some(comma) = text[..start].trim_end().strip_suffix(',') {
        from = comma.len();
    }
    let line = text[..from].rfind('\n');
    let alone = line.is_some_and(|line| text[line..from].trim().is_empty());
    let ends = text[to..].find('\n').filter(|length| text[to..to + length].trim().is_empty());
    if let (Some(line), true, Some(_)) = (line, alone, ends) {
        from = line;
    }
    splice(text, from, to, "")
}

/// Behind white space and comments.
fn skip(text: &str, mut place: usize) -> usize {
    loop {
        let rest = &text[place..];
        let blank = rest.len()
            - rest.trim_start_matches(|sign: char| sign.is_whitespace() || sign == '\u{feff}').len();
        place += blank;
        let rest = &text[place..];
        if rest.starts_with("//") {
            place += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            place += rest.find("*/").map_or(rest.len(), |length| length + 2);
        } else if blank == 0 {
            return place;
        }
    }
}

fn parse(text: &str) -> Result<Node, String> {
    let start = skip(text, 0);
    if start == text.len() {
        return Err("it is empty".into());
    }
    let node = parse_value(text, start, 0)?;
    match skip(text, node.end) {
        end if end == text.len() => Ok(node),
        end => Err(unexpected(text, end)),
    }
}

fn unexpected(text: &str, place: usize) -> String {
    let line = text[..place.min(text.len())].matches('\n').count() + 1;
    match text[place.min(text.len())..].chars().next() {
        Some(sign) => format!("line {line}: {sign:?} is not expected there"),
        None => format!("line {line}: it ends too early"),
    }
}

fn parse_value(text: &str, start: usize, depth: usize) -> Result<Node, String> {
    if depth > 100 {
        return Err("it nests too deep".into());
    }
    match text.as_bytes().get(start) {
        Some(b'{') => parse_object(text, start, depth),
        Some(b'[') => parse_array(text, start, depth),
        Some(_) => {
            let end = scalar_end(text, start);
            let value = serde_json::from_str(&text[start..end]).map_err(|_| unexpected(text, start))?;
            Ok(Node { start, end, kind: Kind::Scalar(value) })
        }
        None => Err(unexpected(text, start)),
    }
}

fn scalar_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    if bytes[start] != b'"' {
        let stops = |sign: char| sign.is_whitespace() || ",:[]{}/\"".contains(sign);
        return text[start..].find(stops).map_or(text.len(), |length| start + length);
    }
    let mut place = start + 1;
    while place < bytes.len() && bytes[place] != b'"' {
        place += if bytes[place] == b'\\' { 2 } else { 1 };
    }
    (place + 1).min(text.len())
}

fn parse_object(text: &str, start: usize, depth: usize) -> Result<Node, String> {
    let mut members = Vec::new();
    let mut place = skip(text, start + 1);
    loop {
        if text[place..].starts_with('}') {
            return Ok(Node { start, end: place + 1, kind: Kind::Object(members) });
        }
        let key_start = place;
        let key = parse_value(text, place, depth + 1)?;
        let Kind::Scalar(Value::String(name)) = key.kind else { return Err(unexpected(text, place)) };
        place = skip(text, key.end);
        if !text[place..].starts_with(':') {
            return Err(unexpected(text, place));
        }
        let value = parse_value(text, skip(text, place + 1), depth + 1)?;
        place = skip(text, value.end);
        members.push((name, key_start, value));
        place = separated(text, place, '}')?;
    }
}

fn parse_array(text: &str, start: usize, depth: usize) -> Result<Node, String> {
    let mut items = Vec::new();
    let mut place = skip(text, start + 1);
    loop {
        if text[place..].starts_with(']') {
            return Ok(Node { start, end: place + 1, kind: Kind::Array(items) });
        }
        let item = parse_value(text, place, depth + 1)?;
        place = skip(text, item.end);
        items.push(item);
        place = separated(text, place, ']')?;
    }
}

/// Behind a comma, or before the end.
fn separated(text: &str, place: usize, end: char) -> Result<usize, String> {
    match text[place..].chars().next() {
        Some(',') => Ok(skip(text, place + 1)),
        Some(sign) if sign == end => Ok(place),
        _ => Err(unexpected(text, place)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SETTINGS: &str = "{\n  // my theme\n  \"theme\": \"dark\", /* stays */\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}, // mine\n  },\n}\n";

    #[test]
    fn an_entry_goes_in_and_out_and_the_rest_stays_letter_for_letter() {
        let path = ["mcpServers", "aop"];
        let with = set(SETTINGS, &path, &json!({"command": "aop", "args": ["mcp"]})).unwrap();
        assert_eq!(read(&with).unwrap()["mcpServers"]["aop"]["command"], "aop");
        for kept in ["// my theme", "/* stays */", "// mine", "\"other\": {\"command\": \"x\"}"] {
            assert!(with.contains(kept), "{with}");
        }
        assert_eq!(set(&with, &path, &json!({"command": "aop", "args": ["mcp"]})).unwrap(), with);
        assert_eq!(read(&remove(&with, &path).unwrap()).unwrap(), read(SETTINGS).unwrap());
    }

    #[test]
    fn what_is_missing_on_the_way_is_made() {
        for text in ["{}", "{\n}\n", "{\"a\": 1}", "{ // nothing yet\n}"] {
            let with = set(text, &["x", "y"], &json!({"z": [1, 2]})).unwrap();
            assert_eq!(read(&with).unwrap()["x"]["y"]["z"], json!([1, 2]), "{with}");
            let without = remove(&remove(&with, &["x", "y"]).unwrap(), &["x"]).unwrap();
            assert_eq!(read(&without).unwrap(), read(text).unwrap(), "{without}");
        }
    }

    #[test]
    fn lists_grow_and_shrink_by_single_items() {
        let text = "{\"permissions\": {\"allow\": [\n  \"Bash(ls)\" // harmless\n]}}";
        let path = ["permissions", "allow"];
        let with = append(text, &path, &["a", "b"]).unwrap();
        assert_eq!(read(&with).unwrap()["permissions"]["allow"], json!(["Bash(ls)", "a", "b"]));
        assert!(with.contains("// harmless"), "{with}");
        assert_eq!(append(&with, &path, &["a", "b"]).unwrap(), with);
        assert_eq!(read(&take(&with, &path, &["a", "b"]).unwrap()).unwrap(), read(text).unwrap());
        let fresh = append("{}", &path, &["a"]).unwrap();
        assert_eq!(read(&fresh).unwrap()["permissions"]["allow"], json!(["a"]));
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_line() {
        for (bad, told) in [
            ("", "empty"),
            ("{", "line 1"),
            ("{\n\"a\": }", "line 2"),
            ("{} x", "line 1"),
            ("{'a': 1}", "line 1"),
        ] {
            assert!(read(bad).unwrap_err().contains(told), "{bad}");
        }
        assert!(set("[]", &["a"], &json!(1)).is_err());
        assert!(set("{\"a\": 1}", &["a", "b"], &json!(1)).is_err());
    }
}
