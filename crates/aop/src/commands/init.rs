//! `aop init`: makes a folder a project. Changes nothing that is there.

use crate::cli::{Global, NO_FOLDER};
use crate::config::{Config, TEMPLATE};
use crate::output::style::{bold, dim, yellow};
use crate::output::{CommandResult, Reply};
use crate::place::Place;
use crate::project::{Project, no_folder};
use aop_engine::AOP_DIR;
use aop_kernel::{Envelope, ErrorCode, Refusal};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Make this folder (or --project DIR) a project
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  aop init\n  aop init --project ../shop\n\nWrites .aop/ and a commented aop.yaml; whatever is there stays as it is."
)]
pub(crate) struct InitArgs {}

/// Creates what is missing.
pub(crate) fn run(global: &Global, _args: &InitArgs) -> CommandResult {
    let root = match &global.project {
        Some(root) if root.as_os_str() == NO_FOLDER => return Err(no_folder()),
        Some(root) => root.clone(),
        None => std::env::current_dir().map_err(|error| cannot("the working directory", &error))?,
    };
    if !root.is_dir() {
        return Err(Refusal::invalid_argument(format!("{} is not a folder", root.display()))
            .hint("create the folder first"));
    }
    let config = root.join("aop.yaml");
    // Settings that cannot be read are told now, before anything is made.
    let settings = Config::load(&config)?;
    let dir = root.join(AOP_DIR);
    let mut created = Vec::new();
    if !dir.is_dir() {
        // It holds answers and what agents said: the database is nobody else's to read, and neither is the rest.
        let made = fs::DirBuilder::new().mode(0o700).create(&dir);
        made.map_err(|error| cannot(&dir.display().to_string(), &error))?;
        created.push(format!("{AOP_DIR}/"));
    }
    let place = match furnish(&dir, &settings, &mut created) {
        Ok(place) => place,
        Err(refusal) => {
            take_back(&dir, &created);
            return Err(refusal);
        }
    };
    if write_new(&config, TEMPLATE)? {
        created.push("aop.yaml".to_owned());
    }
    let text = if created.is_empty() {
        format!("{} is a project already; nothing was changed.", root.display())
    } else {
        let mut text = format!(
            "{} is a project now {}\n\nNext:\n  {}  {}\n  {}",
            root.display(),
            dim(&format!("(created {})", created.join(", "))),
            bold("aop run SPEC.md"),
            dim("what you want, in your words; agents build it and ask you"),
            bold("aop ask \"Which database?\" --choice PostgreSQL --choice SQLite")
        );
        let session = Project::find(&Global { project: Some(root.clone()), ..global.clone() })?.open()?;
        for missing in super::doctor::missing(&session)? {
            text.push_str(&format!("\n\n{} before `aop run`: {missing}", yellow("note:")));
        }
        if let Some(outer) = outer(&root) {
            let outer = outer.display();
            text.push_str(&format!(
                "\n\n{} {outer} is a project too; commands here use this one",
                yellow("note:")
            ));
        }
        text
    };
    let root = root.display().to_string();
    Ok(Reply::ok(Envelope::success(&json!({"root": root, "created": created, "store": place.shown()})), text))
}

/// Makes what belongs into `.aop/`; where the project is kept.
fn furnish(dir: &Path, settings: &Config, created: &mut Vec<String>) -> Result<Place, Refusal> {
    // Nothing below .aop/ belongs into version control: it is this machine's state and may hold answers.
    if write_new(&dir.join(".gitignore"), "*\n")? {
        created.push(format!("{AOP_DIR}/.gitignore"));
    }
    let place = Place::of(dir, &settings.store)?.create()?;
    place.adopt(dir)?;
    Ok(place)
}

/// Removes what was made in vain: with `.aop/` there, commands would take the folder for a project.
fn take_back(dir: &Path, created: &[String]) {
    // What others have put there meanwhile keeps the folder.
    if created.iter().any(|made| made.ends_with(".gitignore")) {
        let _ = fs::remove_file(dir.join(".gitignore"));
    }
    if created.iter().any(|made| made.ends_with('/')) {
        let _ = fs::remove_dir(dir);
    }
}

/// The project that the folder lies in.
fn outer(root: &Path) -> Option<PathBuf> {
    let root = root.canonicalize().ok()?;
    root.ancestors().skip(1).find(|folder| folder.join(AOP_DIR).is_dir()).map(Path::to_path_buf)
}

/// Writes a file unless it is there. Says whether it did.
fn write_new(path: &Path, content: &str) -> Result<bool, Refusal> {
    match fs::File::options().write(true).create_new(true).open(path) {
        Ok(mut file) => {
            file.write_all(content.as_bytes())
                .map_err(|error| cannot(&path.display().to_string(), &error))?;
            Ok(true)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(cannot(&path.display().to_string(), &error)),
    }
}

fn cannot(what: &str, error: &std::io::Error) -> Refusal {
    Refusal::new(ErrorCode::StoreUnavailable, format!("{what}: {error}"))
        .hint("check that the folder is writable and the disk has space, then run `aop init` again")
}
