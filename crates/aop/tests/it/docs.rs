//! The documentation is true: every command block of README.md and docs/ is run, with the real binary, in a folder
//! of the page's own; the reference is what the program says; every proof that the guarantees name exists.
//!
//! Blocks are fenced with `sh`. All blocks of a page share their folder and go on where the last one stood. A comment
//! on the line above a block says how it is run when plainly is not enough:
//!
//! - `<!-- run: waits -->` it waits for a human: it is started, the page goes on, and at the end it must have succeeded
//! - `<!-- run: stays -->` it stays (a server): it is started, and stopped at the end of the page
//! - `<!-- run: somebody answers VALUE -->` meanwhile a scripted human gives this answer to whatever is asked
//! - `<!-- not run: REASON -->` then only its `aop` commands and their options are checked to exist

use crate::support::{Project, binary, finish, wait};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// More blocks than this that are not run would be documentation that nobody checks.
const MOST_NOT_RUN: usize = 16;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// README.md and every page below docs/, the generated ones aside.
fn pages() -> Vec<PathBuf> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("reference") {
                below(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                found.push(path);
            }
        }
    }
    let mut found = vec![root().join("README.md")];
    below(&root().join("docs"), &mut found);
    found.sort();
    found
}

#[derive(Debug, Clone, PartialEq)]
enum How {
    Plainly,
    Waits,
    Stays,
    Answered(String),
    NotRun,
}

#[derive(Debug, Clone)]
struct Block {
    /// Page and line.
    place: String,
    how: How,
    script: String,
}

fn blocks(page: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(page).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, _) in lines.iter().enumerate().filter(|(_, line)| **line == "```sh") {
        let place = format!("{}:{}", page.strip_prefix(root()).unwrap().display(), index + 1);
        let script: Vec<&str> =
            lines[index + 1..].iter().copied().take_while(|line| *line != "```").collect();
        let above = index.checked_sub(1).map(|above| lines[above]).unwrap_or_default();
        let marker = above.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
        let how = match marker {
            None => How::Plainly,
            Some("run: waits") => How::Waits,
            Some("run: stays") => How::Stays,
            Some(marker) => match marker.split_once(": ") {
                Some(("run", rest)) => {
                    let value = rest.strip_prefix("somebody answers ");
                    How::Answered(
                        value.unwrap_or_else(|| panic!("{place}: unknown marker '{marker}'")).to_owned(),
                    )
                }
                Some(("not run", reason)) if reason.len() > 10 => How::NotRun,
                _ => panic!("{place}: unknown marker '{marker}'"),
            },
        };
        found.push(Block { place, how, script: script.join("\n") });
    }
    found
}

/// A folder in which the blocks of a page are run, one after the other.
struct Reader {
    project: Project,
    /// Where the last block left off.
    folder: PathBuf,
    background: Vec<(Block, Child)>,
}

impl Reader {
    fn new() -> Self {
        let project = Project::empty();
        let folder = project.root().to_owned();
        Reader { project, folder, background: Vec::new() }
    }

    /// The shell for a block: it stops at the first failure, finds `aop`, and leaves its folder in a file.
    fn shell(&self, block: &Block) -> Command {
        let mark = self.project.path(".where");
        let script = format!("{}\npwd > '{}'\n", block.script, mark.display());
        let mut command = Command::new("sh");
        command.args(["-eu", "-c", &script]).current_dir(&self.folder).env_clear().stdin(Stdio::null());
        let tools = Path::new(binary()).parent().unwrap().display().to_string();
        command.env("PATH", format!("{tools}:{}", std::env::var("PATH").unwrap_or_default()));
        command.env("HOME", self.project.root()).env("SOURCE", root());
        for (name, value) in [("GIT_AUTHOR_NAME", "Reader"), ("GIT_COMMITTER_NAME", "Reader")] {
            command.env(name, value).env(name.replace("NAME", "EMAIL"), "reader@localhost");
        }
        command
    }

    fn aop(&self, args: &[&str]) -> Value {
        let mut command = Command::new(binary());
        command.args(args).current_dir(&self.folder).env_clear().stdin(Stdio::null());
        finish(&mut command).envelope()
    }

    fn open_questions(&self) -> Vec<Value> {
        self.aop(&["questions"])["data"]["items"].as_array().cloned().unwrap_or_default()
    }

    fn read(&mut self, block: Block) {
        match block.how.clone() {
            How::NotRun => check_commands(&block),
            How::Plainly => {
                let run = finish(&mut self.shell(&block));
                assert_eq!(run.code, Some(0), "{} failed: {run:#?}\n{}", block.place, block.script);
                self.go_on();
            }
            How::Answered(value) => self.answered(&block, &value),
            How::Waits | How::Stays => {
                let already = self.open_questions().len();
                let log = std::fs::File::create(self.project.path(".background")).unwrap();
                let mut shell = self.shell(&block);
                let child = shell.stdout(log).stderr(Stdio::piped()).spawn().unwrap();
                let waits = block.how == How::Waits;
                self.background.push((block, child));
                let until = Instant::now() + Duration::from_secs(30);
                let is_there = |reader: &Self| {
                    if waits {
                        return reader.open_questions().len() > already;
                    }
                    std::fs::read_to_string(reader.project.path(".background")).unwrap().contains('\n')
                };
                while !is_there(self) {
                    let (block, child) = self.background.last_mut().unwrap();
                    let ended = child.try_wait().unwrap();
                    let said = || std::fs::read_to_string(self.project.path(".background")).unwrap();
                    assert!(ended.is_none(), "{} ended at once: {ended:?} {}", block.place, said());
                    assert!(Instant::now() < until, "{}: nothing happens", block.place);
                }
            }
        }
    }

    /// Runs a block while somebody answers what it asks.
    fn answered(&mut self, block: &Block, value: &str) {
        let over = AtomicBool::new(false);
        let reader = Arc::new(&*self);
        let run = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    for question in reader.open_questions() {
                        let id = |key: &str| question[key].as_str().unwrap().to_owned();
                        let (feature, question) = (id("feature_id"), id("question_id"));
                        let which = ["--feature-id", &feature, "--question-id", &question];
                        reader.aop(&[&["answer"][..], &which, &["--answer", value]].concat());
                    }
                }
            });
            let run = finish(&mut reader.shell(block));
            over.store(true, Ordering::SeqCst);
            run
        });
        assert_eq!(run.code, Some(0), "{} failed: {run:#?}\n{}", block.place, block.script);
        self.go_on();
    }

    fn go_on(&mut self) {
        let folder = std::fs::read_to_string(self.project.path(".where")).unwrap();
        self.folder = PathBuf::from(folder.trim_end());
    }

    /// The end of the page: who waited has the answer, who stayed is sent away.
    fn close(mut self) {
        for (block, mut child) in std::mem::take(&mut self.background) {
            if block.how == How::Stays {
                // The shell and what it started; a server ends with its parent's signal only when it gets it too.
                let children = format!("pkill -TERM -P {0}; kill -TERM {0}", child.id());
                finish(Command::new("sh").args(["-c", &children]));
                child.wait().unwrap();
                continue;
            }
            let run = wait(child);
            assert_eq!(run.code, Some(0), "{} did not end well: {run:#?}", block.place);
        }
    }
}

/// The commands of a block that is not run: they exist, and so does every option they are given.
fn check_commands(block: &Block) {
    let aop = |args: &[&str]| finish(Command::new(binary()).args(args).env_clear());
    for line in block.script.lines() {
        let line = line.split(" #").next().unwrap_or_default();
        let Some(words) = line.trim_start().strip_prefix("aop ") else { continue };
        let words: Vec<&str> =
            words.split_whitespace().take_while(|word| !["|", "&&", ">", "--"].contains(word)).collect();
        let named = words.iter().take(2).take_while(|word| {
            word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-')
        });
        let mut path: Vec<&str> = named.copied().collect();
        let mut help = aop(&[path.as_slice(), &["--help"]].concat());
        while help.code != Some(0) && path.len() > 1 {
            path.pop();
            help = aop(&[path.as_slice(), &["--help"]].concat());
        }
        assert_eq!(help.code, Some(0), "{}: there is no `aop {}`", block.place, path.join(" "));
        for option in
            words.iter().filter_map(|word| word.split('=').next()).filter(|word| word.starts_with("--"))
        {
            let option = option.trim_end_matches(']');
            assert!(
                help.stdout.contains(option),
                "{}: `aop {}` has no {option}",
                block.place,
                path.join(" ")
            );
        }
    }
}

/// Every page is a test of its own, so that they run side by side and a failure names its page.
macro_rules! pages_are_true {
    ($($test:ident $page:literal),* $(,)?) => {
        $(#[test] fn $test() { read_page($page); })*

        #[test]
        fn no_page_is_left_out() {
            let known: BTreeSet<PathBuf> = [$(root().join($page)),*].into();
            let found: BTreeSet<PathBuf> = pages().into_iter().filter(|page| !blocks(page).is_empty()).collect();
            assert_eq!(found, known, "add the page to `pages_are_true!`");
        }
    };
}

fn read_page(page: &str) {
    let mut reader = Reader::new();
    for block in blocks(&root().join(page)) {
        reader.read(block);
    }
    reader.close();
}

pages_are_true! {
    the_readme_is_true "README.md",
    the_page_about_engines_is_true "docs/engines.md",
    the_page_about_running_is_true "docs/running.md",
    the_page_about_the_web_is_true "docs/web.md",
    the_page_about_teams_is_true "docs/team.md",
    the_page_about_http_is_true "docs/http.md",
    the_page_about_mcp_is_true "docs/mcp.md",
    the_page_about_turns_is_true "docs/turns.md",
    the_tutorial_is_true "docs/tutorial.md",
    the_concepts_are_true "docs/concepts.md",
    how_to_answer_from_the_phone_is_true "docs/howto/answer-from-the-phone.md",
    how_to_set_up_a_team_is_true "docs/howto/team.md",
    how_to_write_a_question_spec_is_true "docs/howto/question-spec.md",
    how_to_use_it_in_ci_is_true "docs/howto/ci.md",
    how_to_use_it_from_a_script_is_true "docs/howto/script.md",
    how_to_move_a_project_is_true "docs/howto/move.md",
    how_to_add_an_engine_is_true "docs/howto/add-an-engine.md",
    how_to_put_load_on_it_is_true "docs/howto/load.md",
}

#[test]
fn few_blocks_are_not_run() {
    let all: Vec<Block> = pages().iter().flat_map(|page| blocks(page)).collect();
    let not_run: Vec<&str> =
        all.iter().filter(|block| block.how == How::NotRun).map(|block| block.place.as_str()).collect();
    assert!(not_run.len() <= MOST_NOT_RUN, "{} blocks are not run: {not_run:#?}", not_run.len());
    assert!(all.len() > 2 * not_run.len(), "{} of {} blocks are not run", not_run.len(), all.len());
}

#[test]
fn the_reference_is_what_the_program_says() {
    for page in ["cli", "errors", "http", "schemas", "settings", "tools"] {
        let said = finish(Command::new(binary()).args(["manual", page]).env_clear());
        let path = root().join(format!("docs/reference/{page}.md"));
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == said.stdout,
            "{} is not what the program says; `cargo xtask docs` renews it",
            path.display()
        );
    }
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let mut all = pages();
    all.extend(["ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root().join(page)));
    for page in all {
        let text = std::fs::read_to_string(&page).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://") && !link.starts_with('#')) {
            let target = page.parent().unwrap().join(link.split('#').next().unwrap());
            if !target.exists() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// All code that may hold a proof.
fn sources() -> String {
    let files = ["crates", "fuzz"].iter().flat_map(|folder| rust_below(&root().join(folder)));
    files.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// The last column of the tables in docs/guarantees.md names tests and checks.
#[test]
fn every_proof_that_the_guarantees_name_exists() {
    let sources = sources();
    let page = std::fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| {
            line.starts_with("| ") && !line.starts_with("| promise") && !line.starts_with("| fault")
        })
        .collect();
    assert!(rows.len() > 10, "the tables were found");
    for row in rows {
        let proof = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let names: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "a promise without a proof: {row}");
        for name in names {
            let is_test = sources.contains(&format!("fn {name}("));
            assert!(is_test, "no test or check is called {name}: {row}");
        }
    }
}

/// Pages that say how the program behaves; the others are about how to do something, and their commands are run.
const PROMISING: &[&str] = &[
    "README.md",
    "docs/codex.md",
    "docs/concepts.md",
    "docs/engines.md",
    "docs/gemini.md",
    "docs/http.md",
    "docs/iflow.md",
    "docs/mcp.md",
    "docs/questions.md",
    "docs/running.md",
    "docs/scripted.md",
    "docs/team.md",
    "docs/turns.md",
    "docs/web.md",
];

#[test]
fn every_page_that_promises_something_names_tests_that_exist() {
    let sources = sources();
    for page in PROMISING {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let proofs: Vec<&str> =
            text.split("Proof: ").skip(1).filter_map(|rest| rest.split(".\n").next()).collect();
        assert!(!proofs.is_empty(), "{page} names no proof");
        for name in proofs.iter().flat_map(|proof| proof.split('`').skip(1).step_by(2)) {
            assert!(sources.contains(&format!("fn {name}(")), "{page}: no test is called {name}");
        }
    }
}

fn rust_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| if path.is_dir() { rust_below(&path) } else { vec![path] });
    found.filter(|path| path.extension().is_some_and(|ending| ending == "rs")).collect()
}
