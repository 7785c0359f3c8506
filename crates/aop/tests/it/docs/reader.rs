//! Somebody who types what a page says.

use super::{Block, How};
use crate::real_run::SCRIPTED_ANSWER;
use crate::support::{Project, binary, finish, wait};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A folder in which the blocks of a page are run, one after the other.
pub(super) struct Reader {
    project: Project,
    /// Where the last block left off.
    folder: PathBuf,
    background: Vec<(Block, Child)>,
    /// What this reader has in the environment beside what every one has.
    variables: Vec<(String, OsString)>,
}

impl Reader {
    pub(super) fn new() -> Self {
        let project = Project::empty();
        let folder = project.root().to_owned();
        Reader { project, folder, background: Vec::new(), variables: Vec::new() }
    }

    /// The same with these variables in its environment.
    pub(super) fn with(variables: &[(String, OsString)]) -> Self {
        Reader { variables: variables.to_vec(), ..Reader::new() }
    }

    /// Goes on in a git repository with a specification of `search`, beside which one of `checkout` lies uncommitted: the
    /// README writes that itself.
    pub(super) fn repository(&mut self) {
        self.folder = self.project.path("mine");
        std::fs::create_dir(&self.folder).unwrap();
        for (name, title) in [("checkout", "Checkout"), ("search", "Search")] {
            std::fs::write(self.folder.join(format!("{name}.md")), format!("# {title}\n\nA page.\n"))
                .unwrap();
        }
        let script =
            "git init --quiet --initial-branch main && git add search.md && git commit --quiet -m First";
        let mut command = Command::new("sh");
        command.args(["-eu", "-c", script]);
        let run = finish(&mut self.surround(command));
        assert_eq!(run.code, Some(0), "{run:#?}");
    }

    /// The shell for a block: it stops at the first failure, finds `aop`, and leaves its folder in a file.
    fn shell(&self, block: &Block) -> Command {
        let mark = self.project.path(".where");
        let script = format!("{}\npwd > '{}'\n", block.script, mark.display());
        let mut command = Command::new("sh");
        command.args(["-eu", "-c", &script]);
        self.surround(command)
    }

    /// The same on a terminal.
    fn terminal(&self, block: &Block) -> Command {
        let script = self.project.path(".script");
        let mark = self.project.path(".where");
        std::fs::write(&script, format!("{}\npwd > '{}'\n", block.script, mark.display())).unwrap();
        let mut command = Command::new("script");
        let shell = format!("sh -eu '{}'", script.display());
        command.args(["--quiet", "--return", "--command", &shell, "/dev/null"]);
        self.surround(command)
    }

    /// Where a command is run, and with which environment: nothing of the caller's but the search path.
    fn surround(&self, mut command: Command) -> Command {
        command.current_dir(&self.folder).env_clear().stdin(Stdio::null());
        let tools = Path::new(binary()).parent().unwrap().display().to_string();
        let given = self.variables.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
        let path = given.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        command.env("HOME", self.project.root()).env("TMPDIR", self.project.root());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
            .env("PATH", format!("{tools}:{}", path.display()))
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh");
        for (name, value) in [("GIT_AUTHOR_NAME", "Reader"), ("GIT_COMMITTER_NAME", "Reader")] {
            command.env(name, value).env(name.replace("NAME", "EMAIL"), "reader@localhost");
        }
        command
    }

    fn aop(&self, args: &[&str]) -> Value {
        let mut command = Command::new(binary());
        command.args(args);
        finish(&mut self.surround(command)).envelope()
    }

    /// Whether nobody works on the feature that asked: a person takes longer than an engine needs to go.
    fn is_parked(&self, question: &Value) -> bool {
        let feature = question["feature_id"].as_str().unwrap();
        let log = self.aop(&["log", "--feature-id", feature, "--limit", "1000"]);
        let mut turns = log["data"]["items"].as_array().unwrap().iter().map(|event| &event["type"]);
        turns
            .rfind(|kind| *kind == "turn.began" || *kind == "turn.ended")
            .is_none_or(|kind| kind == "turn.ended")
    }

    fn open_questions(&self) -> Vec<Value> {
        self.aop(&["questions"])["data"]["items"].as_array().cloned().unwrap_or_default()
    }

    pub(super) fn read(&mut self, block: Block) {
        match block.how.clone() {
            How::NotRun => {}
            How::Plainly | How::WithPostgres => {
                let run = finish(&mut self.shell(&block));
                assert_eq!(run.code, Some(0), "{} failed: {run:#?}\n{}", block.place, block.script);
                self.go_on();
            }
            How::Answered(value) => self.answered(&block, self.shell(&block), &value),
            How::WithClaudeCode => self.answered(&block, self.terminal(&block), SCRIPTED_ANSWER),
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
    fn answered(&mut self, block: &Block, mut command: Command, value: &str) {
        let over = AtomicBool::new(false);
        let reader = Arc::new(&*self);
        let run = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    for question in reader.open_questions().iter().filter(|asked| reader.is_parked(asked)) {
                        let id = |key: &str| question[key].as_str().unwrap().to_owned();
                        let (feature, question) = (id("feature_id"), id("question_id"));
                        let which = ["--feature-id", &feature, "--question-id", &question];
                        reader.aop(&[&["answer"][..], &which, &["--answer", value]].concat());
                    }
                }
            });
            let run = finish(&mut command);
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
    pub(super) fn close(mut self) {
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
