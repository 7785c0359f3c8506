//! A project that can be run: a git repository, scenarios for the scripted engine, and `aop run` as a process whose
//! lines a test can wait for.

use crate::support::{Project, Run, finish};
use serde_json::{Value, json};
use std::io::BufRead;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long a test waits for something that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A git repository with one commit that is a project with the scripted engine.
pub(crate) fn workshop(settings: &str) -> Project {
    workshop_in(Project::empty(), settings)
}

/// The same in an empty folder.
pub(crate) fn workshop_in(project: Project, settings: &str) -> Project {
    project.run(&["init"]).data();
    std::fs::write(project.path("aop.yaml"), format!("engines: {{ default: scripted }}\n{settings}"))
        .unwrap();
    std::fs::write(project.path("readme.txt"), "a shop\n").unwrap();
    git(&project, &["init", "--quiet", "--initial-branch", "main"]);
    git(&project, &["config", "user.name", "Tester"]);
    git(&project, &["config", "user.email", "tester@localhost"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "--quiet", "-m", "First commit"]);
    std::fs::create_dir_all(project.path(".aop/scripted")).unwrap();
    project
}

/// Runs git in the project; what it said.
pub(crate) fn git(project: &Project, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(args).current_dir(project.root()).env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", project.root());
    let ran = finish(&mut command);
    assert_eq!(ran.code, Some(0), "git {args:?}: {ran:?}");
    ran.stdout.trim().to_owned()
}

/// The scenario of a feature (`default`: of every one without its own), role by role; a role that is left out
/// finishes at once.
pub(crate) fn script(project: &Project, feature: &str, roles: &Value) {
    let mut all = json!({
        "planner": [{"finish": {"summary": "a plan", "steps": ["build it"]}}],
        "builder": [{"write": {"path": "work.txt", "text": "work\n"}}, {"finish": {"summary": "built", "files_changed": ["work.txt"]}}],
        "qa": [{"finish": {"verdict": "pass", "summary": "good"}}],
    });
    for (role, steps) in roles.as_object().unwrap() {
        all[role] = steps.clone();
    }
    let path = project.path(&format!(".aop/scripted/{feature}.json"));
    std::fs::write(path, json!({"roles": all}).to_string()).unwrap();
}

/// An ask with two choices.
pub(crate) fn ask(prompt: &str) -> Value {
    json!({"ask": {"prompt": prompt, "choices": ["yes", "no"]}})
}

pub(crate) fn plan() -> Value {
    json!({"finish": {"summary": "a plan", "steps": ["build it"]}})
}

pub(crate) fn built() -> Value {
    json!({"finish": {"summary": "built", "files_changed": []}})
}

pub(crate) fn pass() -> Value {
    json!({"finish": {"verdict": "pass", "summary": "good"}})
}

/// `aop run` as a process.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<Value>,
    /// Every line so far.
    pub(crate) seen: Vec<Value>,
}

impl Running {
    pub(crate) fn start(project: &Project, args: &[&str]) -> Self {
        Running::start_with(project, args, &[])
    }

    pub(crate) fn start_with(project: &Project, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = project.command(&[&["run"], args].concat());
        command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let output = std::io::BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        Running { child, lines, seen: Vec::new() }
    }

    /// Waits for a line.
    pub(crate) fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("{what} did not come; what came: {:#?}", self.seen);
            };
            self.seen.push(line.clone());
            if wanted(&line) {
                return line;
            }
        }
    }

    /// Waits until a feature asks; the question's record.
    pub(crate) fn question(&mut self, feature: &str) -> Value {
        let line = self.until(&format!("a question of {feature}"), |line| {
            line["type"] == "question.opened" && line["feature_id"] == feature
        });
        line["question"].clone()
    }

    /// Waits until a feature has this status.
    pub(crate) fn status(&mut self, feature: &str, status: &str) -> Value {
        self.until(&format!("{feature} {status}"), |line| {
            line["type"] == "feature.status_changed" && line["feature_id"] == feature && line["to"] == status
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends Ctrl-C.
    pub(crate) fn interrupt(&self) {
        let ran = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(ran.success());
    }

    /// Whether it has ended. It is not waited for, so that its number stays its own.
    pub(crate) fn has_ended(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit(") ").next().is_none_or(|rest| rest.starts_with('Z'))
    }

    /// Waits for its end; the exit code, with every line seen.
    pub(crate) fn end(mut self) -> (Option<i32>, Vec<Value>) {
        let deadline = Instant::now() + PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.seen.push(line);
        }
        assert!(Instant::now() < deadline, "the run did not end: {:#?}", self.seen);
        (self.child.wait().unwrap().code(), std::mem::take(&mut self.seen))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of the list of deliveries.
pub(crate) fn deliveries(project: &Project) -> Vec<Value> {
    let text = std::fs::read_to_string(project.path(".aop/scripted/deliveries.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The messages that the sessions of the scripted engine were told.
pub(crate) fn heard(project: &Project) -> Vec<String> {
    let sessions = std::fs::read_dir(project.path(".aop/scripted/sessions")).into_iter().flatten().flatten();
    let session = |path| serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap();
    let texts = sessions.flat_map(|entry| session(entry.path())["heard"].as_array().unwrap().clone());
    texts.map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// What the session of a role was told in words, oldest first.
pub(crate) fn heard_by(project: &Project, role: &str) -> Vec<String> {
    let folder = project.path(".aop/scripted/sessions");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    let sessions = files.map(|file| serde_json::from_slice::<Value>(&file).unwrap());
    let told = sessions.map(|session| session["heard"].as_array().unwrap().clone());
    let words = told.map(|told| told.iter().map(|text| text.as_str().unwrap().to_owned()).collect());
    let duties = [format!("You are the {role}."), format!("You are {role}.")];
    let is_theirs = |words: &Vec<String>| duties.iter().any(|duty| words[0].contains(duty));
    words.into_iter().find(is_theirs).unwrap()
}

/// The committed events of a kind, of one feature.
pub(crate) fn events(project: &Project, feature: &str, kind: &str) -> Vec<Value> {
    let log: Run = project.run(&["log", "--feature-id", feature]);
    let items = log.data()["items"].as_array().unwrap().clone();
    items.into_iter().filter(|event| event["type"] == kind).collect()
}

/// Processes of this project's scripted engine and its guards that are left.
pub(crate) fn left_over(project: &Project) -> Vec<String> {
    let root = project.root().canonicalize().unwrap().display().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if cwd.starts_with(&root)
            && [" guard ", " scripted ", "sh -c", "gemini", " mcp"].iter().any(|part| line.contains(part))
        {
            found.push(format!("{pid} {line}"));
        }
    }
    found
}

/// Waits until no process is left: guards need a moment after their `aop` was killed.
pub(crate) fn assert_nothing_left(project: &Project) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !left_over(project).is_empty() {
        assert!(Instant::now() < deadline, "left over: {:#?}", left_over(project));
        std::thread::sleep(Duration::from_millis(20));
    }
}
