//! Specifications to features: the file's name is the id, its first heading the title. Enrolling the same file twice is
//! no second feature.

use crate::input::read_text;
use crate::project::{SURFACE, Session};
use aop_kernel::ids::FeatureId;
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

/// Makes the features that are not there yet.
pub(super) async fn enrol(session: &Session, specs: &[Spec]) -> Result<(), Refusal> {
    for spec in specs {
        let known = session.store().feature(spec.id.clone()).await?.is_some();
        if known {
            let text = session.store().spec(spec.id.clone()).await?;
            if text.as_deref() != Some(spec.text.as_str()) {
                return Err(another(spec, text.is_some()));
            }
            continue;
        }
        let input = json!({"feature_id": spec.id, "title": spec.title, "spec": spec.text});
        let (tool, id) = (Tool::FeatureCreate, OwnOperation::Enrol.id(&spec.id)?);
        let request = own_request(tool, &session.caller, &input, id, SURFACE, &session.service.rules)?;
        session.service.submit(request).await?;
    }
    Ok(())
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

fn title_of(text: &str) -> Option<String> {
    let heading = text.lines().find_map(|line| line.strip_prefix('#'))?;
    Some(heading.trim_start_matches('#').trim().to_owned()).filter(|title| !title.is_empty())
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
}
