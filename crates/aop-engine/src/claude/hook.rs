//! The hook of Claude Code: what it is told, by the driver in a file and by the engine on standard input, and what it
//! can answer. The store is asked by whoever runs the hook; here is only the engine's side.

use crate::port::Input;
use crate::words::{READ_FIRST, join};
use aop_turn::Mode;
use aop_turn::ask::{Ask, from_native};
use aop_turn::command::Permissions;
use aop_turn::native::{NativeAsk, Stage, read_ask, read_permission};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::io;
use std::path::{Path, PathBuf};

/// The tool by which the agent asks.
pub(super) const ASK_TOOL: &str = "AskUserQuestion";
/// The tool by which the agent has its plan approved.
const PLAN_TOOL: &str = "ExitPlanMode";

/// What the driver tells the hook of its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookTurn {
    /// The project's root.
    pub project: PathBuf,
    /// The folder of the turn.
    pub run_dir: PathBuf,
    /// The folder of the engine.
    pub cwd: PathBuf,
    /// The feature.
    pub feature_id: String,
    mode: String,
    asks_permission: bool,
    /// Which attempt it is.
    pub attempt: u32,
    /// False at the attempt limit.
    pub may_ask: bool,
    /// The engine's version.
    pub version: String,
    /// How long an answer is waited for while the engine stays.
    pub warm_ms: u64,
    /// What else the agent is to read, where the turn begins with the end of a question.
    #[serde(default)]
    beside: Option<Beside>,
    /// Another message follows in this turn, which the agent reads before it asks anything.
    #[serde(default)]
    pub more_follows: bool,
}

/// Words for an agent that is told the end of its question. The result of its call has room for nothing else, and the
/// system prompt stays as it was when the conversation began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Beside {
    call_id: String,
    text: String,
}

/// Of what is longer than 10 000 characters (UTF-16, as the engine counts) the model sees only the beginning.
const LONGEST_BESIDE: usize = 9_000;

impl Beside {
    fn of(request: &crate::TurnRequest) -> Option<Self> {
        match &request.input {
            Input::Reply(reply) => Some(Beside {
                call_id: reply.call_id.clone()?,
                text: match follows(request) {
                    Some(_) => READ_FIRST.to_owned(),
                    None => join(request.instructions.trim(), &reply.notes),
                },
            }),
            Input::Message(_) | Input::Continue(_) => None,
        }
    }
}

/// What cannot stand beside the end of a question and comes as a message after it.
pub(super) fn follows(request: &crate::TurnRequest) -> Option<String> {
    match &request.input {
        Input::Reply(reply) if reply.call_id.is_some() => {
            let text = join(&reply.notes, request.instructions.trim());
            let is_long = text.encode_utf16().count() > LONGEST_BESIDE;
            (is_long || reply.notes_are_secret).then_some(text)
        }
        Input::Reply(_) | Input::Message(_) | Input::Continue(_) => None,
    }
}

impl HookTurn {
    pub(super) fn of(request: &crate::TurnRequest, version: &str, more_follows: bool) -> Self {
        HookTurn {
            project: request.project.clone(),
            run_dir: request.run_dir.clone(),
            cwd: request.cwd.clone(),
            feature_id: request.feature_id.clone(),
            mode: request.mode.as_str().to_owned(),
            asks_permission: request.permissions == Permissions::Ask,
            attempt: request.attempt,
            may_ask: request.may_ask,
            version: version.to_owned(),
            warm_ms: u64::try_from(request.warm.as_millis()).unwrap_or(u64::MAX),
            beside: Beside::of(request),
            more_follows,
        }
    }

    /// What the agent reads beside the end of the question that this call asked; mostly nothing.
    pub fn beside(&self, call_id: &str) -> &str {
        self.beside.as_ref().filter(|beside| beside.call_id == call_id).map_or("", |beside| &beside.text)
    }

    /// Reads the driver's file.
    pub fn load(path: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&crate::plain::read_file(path)?)?)
    }

    /// Whether a person may be asked at all.
    pub fn mode(&self) -> Mode {
        Mode::parse(&self.mode).unwrap_or(Mode::Auto)
    }

    /// Who decides about permissions.
    pub fn permissions(&self) -> Permissions {
        if self.asks_permission { Permissions::Ask } else { Permissions::Auto }
    }
}

/// What the engine tells the hook: an agent is about to use a tool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct HookCall {
    /// The conversation.
    pub session_id: String,
    /// The call.
    pub tool_use_id: String,
    /// The tool.
    pub tool_name: String,
    /// What it is called with.
    #[serde(default)]
    pub tool_input: Value,
    /// Set when a sub-agent calls. Such a call cannot be put aside: the sub-agent would end and the call be lost.
    pub agent_id: Option<String>,
}

/// What a call is to the hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// The agent asks a person.
    Question,
    /// The agent wants something that a person may have to permit.
    Permission,
    /// The agent has made a plan and nobody is to be asked about it.
    Plan,
    /// None of ours.
    None,
}

impl HookCall {
    /// Reads the engine's words.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("the hook's input cannot be read: {error}"))
    }

    /// What this call is about.
    pub fn concern(&self, permissions: Permissions) -> Concern {
        match (self.tool_name.as_str(), permissions) {
            (ASK_TOOL, _) => Concern::Question,
            (PLAN_TOOL, Permissions::Auto) => Concern::Plan,
            (_, Permissions::Auto) => Concern::None,
            ("Bash", Permissions::Ask) if only_looks(&self.tool_input) => Concern::None,
            (_, Permissions::Ask) => Concern::Permission,
        }
    }

    /// The question to record for this call and those that ask with it in the same message.
    pub fn ask(&self, siblings: &[(String, Value)], attempt: u32) -> Result<Ask, String> {
        let native = |call_id: &str, body| NativeAsk {
            call_id: call_id.to_owned(),
            message: None,
            stage: Stage::Waiting,
            body,
        };
        let asks: Vec<NativeAsk> = if self.tool_name == ASK_TOOL {
            let own = (self.tool_use_id.as_str(), &self.tool_input);
            let all = std::iter::once(own).chain(siblings.iter().map(|(id, input)| (id.as_str(), input)));
            all.map(|(id, input)| native(id, read_ask(input))).collect()
        } else {
            vec![native(&self.tool_use_id, read_permission(&self.tool_name, &self.tool_input, None))]
        };
        from_native(&asks.iter().collect::<Vec<_>>(), attempt)
    }

    /// Whether it is this very call that the details of a permission show.
    pub fn is_shown_in(&self, details: &Option<Map<String, Value>>) -> bool {
        details.as_ref().is_some_and(|details| {
            details.get("tool").is_some_and(|tool| *tool == self.tool_name)
                && details.get("input") == Some(&self.tool_input)
        })
    }
}

/// What a program may be told so that it still only looks.
enum Told {
    /// Anything.
    Anything,
    /// These options, and names.
    Options(&'static [&'static str]),
    /// These options and nothing else.
    Only(&'static [&'static str]),
}

const DIFF_OPTIONS: &[&str] = &[
    "--",
    "--all",
    "--cached",
    "--graph",
    "--name-only",
    "--name-status",
    "--oneline",
    "--staged",
    "--stat",
    "-n",
    "-p",
    "-s",
    "-w",
];

/// Commands that the engine itself would run without a prompt.
const LOOKS: &[(&str, Told)] = &[
    ("ls", Told::Anything),
    ("pwd", Told::Anything),
    ("cat", Told::Anything),
    ("head", Told::Anything),
    ("tail", Told::Anything),
    ("wc", Told::Anything),
    ("grep", Told::Anything),
    ("which", Told::Anything),
    ("whoami", Told::Anything),
    ("date", Told::Only(&["-u"])),
    (
        "rg",
        Told::Options(&["-A", "-B", "-C", "-F", "-c", "-e", "-g", "-i", "-l", "-n", "-t", "-w", "--files"]),
    ),
    ("git status", Told::Anything),
    ("git rev-parse", Told::Anything),
    ("git diff", Told::Options(DIFF_OPTIONS)),
    ("git log", Told::Options(DIFF_OPTIONS)),
    ("git show", Told::Options(DIFF_OPTIONS)),
    ("git branch", Told::Only(&["--all", "--list", "--show-current", "-a", "-r", "-v", "-vv"])),
];

impl Told {
    fn suits(&self, words: &[&str]) -> bool {
        let is_count = |word: &str| {
            word.strip_prefix('-')
                .is_some_and(|count| !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit()))
        };
        match self {
            Told::Anything => true,
            // A pattern may become the name of a file that reads like an option.
            Told::Options(known) => words.iter().all(|word| {
                !word.starts_with(['-', '*', '?'])
                    || is_count(word)
                    || word.split('=').next().is_some_and(|option| known.contains(&option))
            }),
            Told::Only(known) => words.iter().all(|word| known.contains(word)),
        }
    }
}

/// Whether a command is on the list above. Everything else is a question; where the engine thinks otherwise of what is on
/// it, it refuses: it has nobody to ask but this hook.
fn only_looks(input: &Value) -> bool {
    let command = input.get("command").and_then(Value::as_str).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -_./,:=@+\"'*?".contains(c);
    // An option in quotes is one too.
    let bare = command.replace(['"', '\''], "");
    let words: Vec<&str> = bare.split_ascii_whitespace().collect();
    command.chars().all(is_plain)
        && LOOKS.iter().any(|(name, told)| {
            let name: Vec<&str> = name.split(' ').collect();
            words.strip_prefix(name.as_slice()).is_some_and(|rest| told.suits(rest))
        })
}

/// What the hook answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The engine puts the call aside and ends; the hook is asked again when the conversation goes on.
    Defer,
    /// The tool runs with this input, and the agent reads these words beside its result.
    Allow(Value, String),
    /// The tool does not run, and the model is told this.
    Deny(String),
    /// The engine goes by its own rules.
    Pass,
}

impl Decision {
    /// The same, with words that the agent reads beside it.
    #[must_use]
    pub fn with(self, words: &str) -> Self {
        match self {
            Decision::Allow(input, known) => Decision::Allow(input, join(&known, words)),
            Decision::Deny(reason) => Decision::Deny(join(&reason, words)),
            Decision::Defer | Decision::Pass => self,
        }
    }

    /// The engine's form; nothing where nothing is to be said.
    pub fn to_json(&self) -> Option<Value> {
        let decision = match self {
            Decision::Defer => {
                json!({"permissionDecision": "defer", "permissionDecisionReason": "a person is asked"})
            }
            Decision::Allow(input, words) if words.is_empty() => {
                json!({"permissionDecision": "allow", "updatedInput": input})
            }
            Decision::Allow(input, words) => {
                json!({"permissionDecision": "allow", "updatedInput": input, "additionalContext": words})
            }
            Decision::Deny(words) => json!({"permissionDecision": "deny", "permissionDecisionReason": words}),
            Decision::Pass => return None,
        };
        let mut output = json!({"hookEventName": "PreToolUse"});
        if let (Value::Object(output), Value::Object(decision)) = (&mut output, decision) {
            output.extend(decision);
        }
        Some(json!({"hookSpecificOutput": output}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &str, input: Value) -> HookCall {
        HookCall {
            session_id: "s".into(),
            tool_use_id: "t".into(),
            tool_name: tool.into(),
            tool_input: input,
            agent_id: None,
        }
    }

    #[test]
    fn with_permissions_to_ask_only_plain_looking_passes() {
        for (command, concern) in [
            ("ls -la src", Concern::None),
            ("git diff HEAD", Concern::None),
            ("git log --oneline -5 main -- src", Concern::None),
            ("git branch -a", Concern::None),
            ("rg -n \"fn main\" src/*.rs", Concern::None),
            ("git branch -D main", Concern::Permission),
            ("git branch new", Concern::Permission),
            ("git diff --output=f", Concern::Permission),
            ("git log '--output=f'", Concern::Permission),
            ("git show --out\"put=f\"", Concern::Permission),
            ("git diff *", Concern::Permission),
            ("rg --pre=sh x", Concern::Permission),
            ("rg --pre sh x", Concern::Permission),
            ("date 01010000", Concern::Permission),
            ("git push", Concern::Permission),
            ("git", Concern::Permission),
            ("cat a; rm b", Concern::Permission),
            ("cat $(rm b)", Concern::Permission),
            ("cat a > b", Concern::Permission),
            ("ls\nrm b", Concern::Permission),
            ("rm b", Concern::Permission),
            ("", Concern::Permission),
        ] {
            let call = call("Bash", json!({"command": command}));
            assert_eq!(call.concern(Permissions::Ask), concern, "{command}");
            assert_eq!(call.concern(Permissions::Auto), Concern::None, "{command}");
        }
        assert_eq!(call("ExitPlanMode", Value::Null).concern(Permissions::Auto), Concern::Plan);
        assert_eq!(call("ExitPlanMode", Value::Null).concern(Permissions::Ask), Concern::Permission);
    }

    #[test]
    fn decisions_have_the_engines_form() {
        assert_eq!(Decision::Pass.to_json(), None);
        let allow = || Decision::Allow(json!({"a": 1}), String::new());
        let mut form = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"a": 1}}});
        assert_eq!(allow().to_json().unwrap(), form);
        form["hookSpecificOutput"]["additionalContext"] = json!("a note");
        assert_eq!(allow().with("a note").to_json().unwrap(), form);
        assert_eq!(Decision::Deny("no".into()).with("a note"), Decision::Deny("no\n\na note".into()));
    }
}
