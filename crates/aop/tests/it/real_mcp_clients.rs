//! Claude Code, Codex and Gemini CLI as their users start them, with `aop mcp` as one of their MCP servers: what the
//! model asks becomes a record, and the human's answer comes back as the result of the model's own call.

use crate::support::{Project, Run, binary, wait};
use aop_testkit::{Call, CleanHome, Engines, FakeModel, Program, Received, Reply, Script, Wire};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const CALL: &str = "call_which_1";
const MODEL_ENDS: &str = "Then it is settled.";

/// A client of one program, ready to start in a project.
struct Client {
    program: Program,
    project: Project,
    model: FakeModel,
    command: Command,
    home: TempDir,
}

fn wire(program: Program) -> Wire {
    match program {
        Program::Claude => Wire::Anthropic,
        Program::Codex => Wire::OpenAi,
        Program::Gemini => Wire::Gemini,
    }
}

/// How a model of this program calls one of our tools.
fn call(program: Program, tool: &str, id: &str, input: Value) -> Reply {
    Reply::calls([match program {
        Program::Claude => Call::new(&format!("mcp__aop__{tool}"), id, input),
        Program::Codex => Call::new(tool, id, input).of("mcp__aop"),
        // Without a terminal Gemini hides every tool that is called `ask_user`.
        Program::Gemini => {
            Call::new(&format!("mcp_aop_{}", tool.replace("ask_user", "ask_human")), id, input)
        }
    }])
}

impl Client {
    /// As `aop mcp install` sets it up for its user.
    fn installed(project: Project, program: Program, script: Script) -> Self {
        let mut client = Client::bare(project, program, script, |home, project| {
            let name = match program {
                Program::Claude => "claude-code",
                Program::Codex => "codex",
                Program::Gemini => "gemini",
            };
            let mut install = home.command(binary().as_ref(), project.root());
            let said = install.args(["mcp", "install", name]).output().unwrap();
            assert!(said.status.success(), "{said:?}");
        });
        client.command.args(match program {
            Program::Claude => &["-p", "--output-format", "stream-json", "--verbose", "--", "Go."][..],
            Program::Codex => &["exec", "--json", "--skip-git-repo-check", "Go."],
            Program::Gemini => &["--skip-trust", "-m", "gemini-2.5-flash", "-o", "stream-json", "-p", "Go."],
        });
        client
    }

    /// Without any server of ours.
    fn bare(
        project: Project,
        program: Program,
        script: Script,
        prepare: impl FnOnce(&CleanHome, &Project),
    ) -> Self {
        let engines = Engines::required();
        let folder = TempDir::with_prefix("aop-home-").unwrap();
        let model = FakeModel::start(wire(program), script).unwrap();
        let home = CleanHome::new(folder.path(), &engines, &model).unwrap();
        prepare(&home, &project);
        let command = home.command(&engines.program(program), project.root());
        Client { program, project, model, command, home: folder }
    }

    /// With a server that is bound to a feature, and these arguments more.
    fn new(program: Program, script: Script, server: &[&str]) -> Self {
        let mut client = Client::bare(Project::with_feature(), program, script, |_, _| {});
        let (command, folder) = (&mut client.command, &client.home);
        let args = [&["mcp", "--feature-id", "shop"], server].concat();
        match program {
            Program::Claude => {
                let servers = json!({"mcpServers": {"aop":
                    {"type": "stdio", "command": binary(), "args": args, "timeout": 86_400_000}}});
                command.args(["-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config"]);
                command.args(["--mcp-config", &servers.to_string(), "--allowedTools"]);
                command.args(["mcp__aop__ask_user,mcp__aop__await_answer", "--", "Go."]);
            }
            Program::Codex => {
                let mut set = |key: &str, value: Value| {
                    command.arg("-c").arg(format!("mcp_servers.aop.{key}={value}"));
                };
                set("command", json!(binary()));
                set("args", json!(args));
                set("omit_tools_from", json!(["deferred", "code_mode"]));
                set("tool_timeout_sec", json!(86_400));
                command.args(["exec", "--json", "--skip-git-repo-check", "Go."]);
            }
            Program::Gemini => {
                let settings = folder.path().join(".gemini/settings.json");
                let mut known: Value = serde_json::from_slice(&std::fs::read(&settings).unwrap()).unwrap();
                known["mcpServers"] = json!({"aop": {"command": binary(), "args": args, "trust": true,
                    "timeout": 86_400_000}});
                std::fs::write(&settings, known.to_string()).unwrap();
                command.args(["--skip-trust", "-m", "gemini-2.5-flash", "-o", "stream-json", "-p", "Go."]);
            }
        }
        client
    }

    fn spawn(&mut self) -> Child {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The program ended well, and the model heard the end of its call once and had the last word.
    fn ended(&self, child: Child, call_id: &str) -> String {
        let Run { code, stdout, stderr } = wait(child);
        assert_eq!(code, Some(0), "{stdout}\n{stderr}");
        assert!(stdout.contains(MODEL_ENDS), "{stdout}\n{stderr}");
        let mut told = self.model.results_of(call_id);
        assert_eq!(told.len(), 1, "{:#?}", self.model.conversation().map(|request| request.body));
        assert_eq!(self.model.unscripted(), 0);
        self.project.assert_healthy();
        told.remove(0)
    }
}

/// The question is on the record as it was asked, the answer comes from another process, the model gets it.
fn a_human_answers_the_models_call(program: Program) {
    let labels = ["PostgreSQL (with \"quotes\")", "SQLite", "DuckDB", "MariaDB", "keine – wirklich nicht"];
    let input = json!({"prompt": "Which database?", "choices": labels});
    let script = Script::new().then(call(program, "ask_user", CALL, input)).then(Reply::text(MODEL_ENDS));
    let mut client = Client::new(program, script, &[]);
    let child = client.spawn();
    let question = client.project.opened_question();
    assert_eq!(question["prompt"], "Which database?");
    assert_eq!(question["expected_answer"]["choices"], json!(labels), "all labels are intact");
    assert_eq!(client.project.feature("shop")["status"], "awaiting_input");
    client.project.answer_to(&question, labels[4]).data();
    let told = client.ended(child, CALL);
    assert!(told.contains("ANSWERED: a human"), "{told}");
    assert!(told.contains(labels[4]), "{told}");
    let offered = client.model.main()[0].tools();
    assert!(
        offered.iter().any(|tool| tool.ends_with("ask_user") || tool.ends_with("ask_human")),
        "offered from the start: {offered:?}"
    );
}

#[test]
fn what_a_model_in_claude_asks_a_human_answers() {
    a_human_answers_the_models_call(Program::Claude);
}

#[test]
fn what_a_model_in_codex_asks_a_human_answers() {
    a_human_answers_the_models_call(Program::Codex);
}

#[test]
fn what_a_model_in_gemini_asks_a_human_answers() {
    a_human_answers_the_models_call(Program::Gemini);
}

/// The settings that `aop mcp install` wrote are all that the program needs.
fn the_installed_settings_are_enough(program: Program) {
    let input = json!({"prompt": "Left or right?", "choices": ["left", "right"]});
    let script = Script::new().then(call(program, "ask_user", CALL, input)).then(Reply::text(MODEL_ENDS));
    let mut client = Client::installed(Project::with_feature(), program, script);
    let child = client.spawn();
    let question = client.project.opened_question();
    client.project.answer_to(&question, "right").data();
    let told = client.ended(child, CALL);
    assert!(told.contains("ANSWERED: a human") && told.contains("right"), "{told}");
}

#[test]
fn claude_asks_with_the_settings_that_install_wrote() {
    the_installed_settings_are_enough(Program::Claude);
}

#[test]
fn codex_asks_with_the_settings_that_install_wrote() {
    the_installed_settings_are_enough(Program::Codex);
}

#[test]
fn gemini_asks_with_the_settings_that_install_wrote() {
    the_installed_settings_are_enough(Program::Gemini);
}

/// The user's environment names the store, and the settings of the folder one that is not there.
fn the_store_of_the_environment_is_asked(program: Program) {
    let input = json!({"prompt": "Left or right?", "choices": ["left", "right"]});
    let script = Script::new().then(call(program, "ask_user", CALL, input)).then(Reply::text(MODEL_ENDS));
    let project = Project::at("sqlite");
    project.run(&["init"]).data();
    let nowhere = "store: postgres://nobody@127.0.0.1:1/none?project=shop\n";
    std::fs::write(project.path("aop.yaml"), nowhere).unwrap();
    let mut client = Client::installed(project, program, script);
    client.command.env("AOP_STORE", "sqlite");
    let child = client.spawn();
    let question = client.project.opened_question();
    client.project.answer_to(&question, "right").data();
    assert!(client.ended(child, CALL).contains("ANSWERED: a human"));
}

#[test]
fn what_claude_asks_is_in_the_store_that_the_environment_names() {
    the_store_of_the_environment_is_asked(Program::Claude);
}

#[test]
fn what_codex_asks_is_in_the_store_that_the_environment_names() {
    the_store_of_the_environment_is_asked(Program::Codex);
}

#[test]
fn what_gemini_asks_is_in_the_store_that_the_environment_names() {
    the_store_of_the_environment_is_asked(Program::Gemini);
}

/// When nobody answers at once the model is told the question's id, and gets the answer by waiting for it.
fn a_pending_question_is_waited_for(program: Program) {
    let input = json!({"prompt": "Which one?", "choices": ["left", "right"]});
    let script = Script::new()
        .then(call(program, "ask_user", CALL, input))
        .then_with(move |request| {
            let id = question_id(request, CALL);
            call(program, "await_answer", "call_wait_1", json!({"question_id": id}))
        })
        .then(Reply::text(MODEL_ENDS));
    let mut client = Client::new(program, script, &["--wait-ms", "1500"]);
    let child = client.spawn();
    let question = client.project.opened_question();
    client.model.wait_for_main(2, std::time::Duration::from_secs(60)).unwrap();
    let answered = client.project.answer_to(&question, "right");
    answered.data();
    let told = client.ended(child, "call_wait_1");
    assert!(told.contains("ANSWERED: a human") && told.contains("right"), "{told}");
    assert_eq!(client.program, program);
    let first = client.model.results_of(CALL);
    assert!(first[0].contains("PENDING"), "{first:?}");
}

/// The id that a pending call named.
fn question_id(request: &Received, call_id: &str) -> String {
    let told = request.results_of(call_id).join("\n");
    let from = told.find("question_id ").unwrap_or_else(|| panic!("no id in {told}")) + "question_id ".len();
    told[from..].split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_model_in_claude_waits_for_a_pending_question() {
    a_pending_question_is_waited_for(Program::Claude);
}

#[test]
fn a_model_in_codex_waits_for_a_pending_question() {
    a_pending_question_is_waited_for(Program::Codex);
}

#[test]
fn a_model_in_gemini_waits_for_a_pending_question() {
    a_pending_question_is_waited_for(Program::Gemini);
}
