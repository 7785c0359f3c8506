//! Specifications to features: the file's name is the id, its first heading the title. Enrolling the same file twice is
//! no second feature.

use crate::input::read_text;
use crate::project::{SURFACE, Session};
use aop_kernel::ids::FeatureId;
use aop_kernel::lifecycle::Request;
use aop_kernel::own::OwnOperation;
use aop_kernel::tools::{Tool, own_request};
use aop_kernel::{ErrorCode, Refusal};
use serde_json::json;
use std::path::{Path, PathBuf};

/// A specification.
pub(crate) struct Spec {
    id: FeatureId,
    title: String,
    text: String,
    path: PathBuf,
}

impl Spec {
    /// The feature that it is, or becomes.
    pub(super) fn id(&self) -> &FeatureId {
        &self.id
    }
}

/// Reads all of them before anything happens.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Spec>, Refusal> {
    let mut specs: Vec<Spec> = Vec::new();
    for path in paths {
        let text = text_of(path)?;
        let id = id_of(path)?;
        if let Some(other) = specs.iter().find(|other| other.id == id) {
            if is_same_file(&other.path, path) {
                continue;
            }
            return Err(Refusal::invalid_argument(format!(
                "{} and {} would both be feature '{id}'",
                other.path.display(),
                path.display()
            ))
            .hint("rename one of them; the file's name is the feature's id"));
        }
        specs.push(Spec {
            title: title_of(&text).unwrap_or_else(|| id.to_string()),
            id,
            text,
            path: path.clone(),
        });
    }
    Ok(specs)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Makes the features that are not there yet. All are looked at before the first is made: what a feature is made with
/// never changes, and whoever mends the one that was refused may change another, too.
pub(super) async fn enrol(session: &Session, specs: &[Spec]) -> Result<(), Refusal> {
    for request in look(session, specs).await? {
        session.service.submit(request).await?;
    }
    Ok(())
}

/// What is to be made of them; nothing is yet.
pub(super) async fn look(session: &Session, specs: &[Spec]) -> Result<Vec<Request>, Refusal> {
    let mut requests = Vec::new();
    for spec in specs {
        requests.extend(request_for(session, spec).await?);
    }
    Ok(requests)
}

/// The request that makes the feature; none where it is there.
async fn request_for(session: &Session, spec: &Spec) -> Result<Option<Request>, Refusal> {
    if session.store().feature(spec.id.clone()).await?.is_some() {
        let text = session.store().spec(spec.id.clone()).await?;
        if text.as_deref() != Some(spec.text.as_str()) {
            return Err(another(spec, text.is_some()));
        }
        return Ok(None);
    }
    let input = json!({"feature_id": spec.id, "title": spec.title, "spec": spec.text});
    let (tool, id) = (Tool::FeatureCreate, OwnOperation::Enrol.id(&spec.id)?);
    let request = own_request(tool, &session.caller, &input, id, SURFACE, &session.service.rules);
    request.map(Some).map_err(|mut refusal| {
        refusal.message = format!("{} makes no feature: {}", spec.path.display(), refusal.message);
        refusal
    })
}

/// The feature was made with another specification, or with none: what it was made with never changes.
fn another(spec: &Spec, has_one: bool) -> Refusal {
    let (id, path) = (&spec.id, spec.path.display());
    let (what, hint) = if has_one {
        let hint = "the specification of a feature never changes: give the file another name, or leave it out and go on with `aop run`";
        (format!("feature '{id}' exists with another specification than {path}"), hint.to_owned())
    } else {
        let file = aop_supervisor::shown::word(&spec.path);
        let hint = format!(
            "`aop run` without the file works from the title alone; to work from the file, end this feature with `aop cancel --feature-id {id}` and make another: `aop features create --feature-id OTHER --title TITLE --spec {file}`"
        );
        (
            format!(
                "feature '{id}' exists and was made without a specification; it does not take {path} as one"
            ),
            hint,
        )
    };
    Refusal::new(ErrorCode::FeatureAlreadyExists, what).hint(hint).fact("feature_id", id)
}

/// What a specification says. It is a file, because its name is the feature's id.
fn text_of(path: &Path) -> Result<String, Refusal> {
    const HINT: &str =
        "write what you want into a file, in your words, and give its path: `aop run checkout.md`";
    if path == Path::new("-") {
        return Err(Refusal::invalid_argument("a specification comes from a file, not from standard input")
            .hint(HINT));
    }
    let text = read_text(path).map_err(|refusal| refusal.hint(HINT))?;
    if text.trim().is_empty() {
        return Err(Refusal::invalid_argument(format!("'{}' is empty", path.display())).hint(HINT));
    }
    Ok(text)
}

fn id_of(path: &Path) -> Result<FeatureId, Refusal> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
    let mut id = String::new();
    for sign in stem.chars() {
        let plain = sign.is_ascii_alphanumeric() || sign == '_';
        match (plain, id.ends_with('-')) {
            (true, _) => id.push(sign),
            (false, false) if !id.is_empty() => id.push('-'),
            (false, _) => {}
        }
    }
    FeatureId::parse(id.trim_matches('-')).map_err(|_| {
        Refusal::invalid_argument(format!("{} gives no feature id", path.display()))
            .hint("name the file with letters and digits, at most 64 of them, for instance checkout.md")
    })
}

/// The first heading that says anything: what looks like one in front matter and in blocks of code is none.
fn title_of(text: &str) -> Option<String> {
    let mut fence = None;
    for line in behind_front_matter(text) {
        match (fence, fence_of(line)) {
            (None, None) => {
                if let Some(title) = heading_of(line) {
                    return Some(title.to_owned());
                }
            }
            (None, opened) => fence = opened,
            (Some(open), Some(run)) if run.starts_with(open) && line.trim() == run => fence = None,
            (Some(_), _) => {}
        }
    }
    None
}

/// The lines without the settings that some editors keep above a text, and without the mark that some begin a file with.
fn behind_front_matter(text: &str) -> impl Iterator<Item = &str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let begins = text.lines().next().is_some_and(|line| line.trim_end() == "---");
    let end = text.lines().skip(1).position(|line| matches!(line.trim_end(), "---" | "..."));
    let above = end.filter(|_| begins).map_or(0, |end| end + 2);
    text.lines().skip(above)
}

/// The signs that a block of code begins or ends with, at least three of them.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let info = line.trim_start_matches(sign);
    let run = line.strip_suffix(info)?;
    // Code within a line has its end there.
    (run.len() >= 3 && !(sign == '`' && info.contains('`'))).then_some(run)
}

fn heading_of(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let is_heading = (1..=6).contains(&(line.len() - text.len())) && text.starts_with(char::is_whitespace);
    Some(text.trim()).filter(|title| is_heading && !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_name_is_the_id() {
        for (path, id) in [("specs/Check Out.md", "check-out"), ("a_b.v2.md", "a_b-v2"), ("-x-.md", "x")] {
            assert_eq!(id_of(Path::new(path)).unwrap().as_str(), id);
        }
        assert!(id_of(Path::new("---.md")).is_err());
    }

    #[test]
    fn the_first_heading_is_the_title() {
        assert_eq!(title_of("text\n## The shop \nmore").as_deref(), Some("The shop"));
        assert_eq!(title_of("no heading"), None);
    }

    #[test]
    fn a_file_that_is_named_twice_counts_once_and_two_of_one_name_are_refused() {
        let dir = tempfile::TempDir::new().unwrap();
        let other = dir.path().join("other");
        std::fs::create_dir(&other).unwrap();
        let [one, two] = [dir.path(), &other].map(|folder| folder.join("shop.md"));
        for path in [&one, &two] {
            std::fs::write(path, "# The shop\n").unwrap();
        }
        let specs = read(&[one.clone(), one.clone(), other.join("../shop.md")]).unwrap();
        assert_eq!(specs.len(), 1);
        let refusal = read(&[one, two]).err().unwrap();
        assert!(refusal.message.contains("would both be feature 'shop'"), "{}", refusal.message);
    }

    #[test]
    fn what_only_looks_like_a_heading_is_no_title() {
        for text in [
            "intro\n```sh\n#!/bin/sh\n# comment\n```\n# Real",
            "- a list\n  ~~~\n  ```\n# comment\n  ~~~\n# Real",
            "````md\n```\n# comment\n````\n# Real",
            "```inline``` code\n# Real\n```\n# comment\n```",
            "---\n# comment in yaml\ntags: [a]\n---\n# Real",
            "#tag line first\n####### seven\n#\n# Real",
            "\u{feff}# Real\r\n# Second",
            "\u{feff}---\r\n# comment\r\n...\r\n#\tReal",
            "text\n---\n# Real\n---\n# Second",
            "---\n# Real",
        ] {
            assert_eq!(title_of(text).as_deref(), Some("Real"), "{text:?}");
        }
        assert_eq!(title_of("```\n# comment"), None);
    }
}
