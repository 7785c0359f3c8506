//! What a person sees. `script` gives the program a real terminal.

use crate::support::{Project, binary, finish, question, wait};
use serde_json::json;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Runs a command on a terminal without colour, of which nobody says how wide it is, and gives the screen.
pub(crate) fn screen(project: &Project, args: &str) -> String {
    shown(project, &format!("{} {args}", binary()))
}

/// The same on a terminal of so many columns.
fn narrow(project: &Project, columns: usize, args: &str) -> String {
    shown(project, &format!("stty cols {columns} rows 40; {} {args}", binary()))
}

fn shown(project: &Project, line: &str) -> String {
    finish(&mut on_terminal(project, line)).stdout.replace('\r', "")
}

pub(crate) fn on_terminal(project: &Project, line: &str) -> Command {
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", line, "/dev/null"]);
    command
        .current_dir(project.root())
        .env_clear()
        .env("NO_COLOR", "1")
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh");
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// How many seconds a command whose keys are pressed here has.
const PATIENCE: u32 = 60;

/// A command on a terminal whose keys are pressed here.
pub(crate) struct Keyboard {
    child: Child,
    keys: ChildStdin,
    out: ChildStdout,
    seen: Vec<u8>,
    /// Up to where it was waited for.
    found: usize,
}

impl Keyboard {
    pub(crate) fn start(project: &Project, line: &str) -> Self {
        // What never comes is missed, and not waited for.
        let mut command = on_terminal(project, &format!("timeout --foreground {PATIENCE} sh -c \"$LINE\""));
        let mut child =
            command.env("LINE", line).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (keys, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Keyboard { child, keys, out, seen: Vec::new(), found: 0 }
    }

    /// Waits until this is shown, behind what was waited for before.
    pub(crate) fn until(&mut self, text: &str) {
        loop {
            let mut fresh = self.seen[self.found..].windows(text.len());
            if let Some(place) = fresh.position(|part| part == text.as_bytes()) {
                self.found += place + text.len();
                return;
            }
            let mut some = [0; 4096];
            let count = self.out.read(&mut some).unwrap();
            self.seen.extend_from_slice(&some[..count]);
            assert!(count > 0, "{text} never came:\n{}", String::from_utf8_lossy(&self.seen));
        }
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).unwrap();
    }

    /// The whole screen, once the command has ended.
    pub(crate) fn end(mut self) -> String {
        self.out.read_to_end(&mut self.seen).unwrap();
        self.child.wait().unwrap();
        String::from_utf8_lossy(&self.seen).replace('\r', "")
    }
}

/// The line below every prompt has this in it.
pub(crate) const PROMPT: &str = "enter to answer";

/// Asks on a terminal, presses a key when the prompt is there, does the rest once this is told, and gives the screen.
fn pressed(project: &Project, key: &[u8], told: &str, rest: impl FnOnce(&serde_json::Value)) -> String {
    let mut asking = Keyboard::start(project, &format!("{} ask 'Anybody?'", binary()));
    let question = project.opened_question();
    asking.until(PROMPT);
    asking.press(key);
    asking.until(told);
    rest(&question);
    asking.end()
}

/// What the only question was answered with.
fn the_answer(project: &Project) -> serde_json::Value {
    project.run(&["questions", "--status", "answered"]).data()["items"][0]["answer"].clone()
}

/// Compares with the stored screen, ids and times aside.
macro_rules! assert_screen {
    ($name:literal, $project:expr, $args:literal) => {{
        let root = $project.root().to_str().unwrap().to_owned();
        let text = screen(&$project, $args).replace(&root, "[project]");
        insta::with_settings!({filters => vec![
            (r"q_[0-9A-Z]{26}", "[question]"),
            (r"\d{4}-\d\d-\d\d \(\w+\)", "[day]"),
            (r"\b\d\d:\d\d:\d\d\b", "[time]"),
            (r"SINCE +", "SINCE  "),
            (r"\b(just now|\d+ (s|min|h) ago) +", "[ago]  "),
            (r"\b(just now|\d+ (s|min|h) ago)", "[ago]"),
            (r"\bin \d+ (s|min|h)", "[in]"),
            (r"(ok  |warn) engines .*", "[engines]"),
            (r"\n\nnote: before `aop run`: \w+ is not installed: .*", ""),
        ], omit_expression => true}, { insta::assert_snapshot!($name, text) });
    }};
}

#[test]
fn screens_read_well() {
    let project = Project::empty();
    assert_screen!("no_project", project, "status");
    assert_screen!("init", project, "init");
    assert_screen!("init_again", project, "init");
    assert_screen!("status_empty", project, "status");
    assert_screen!("questions_empty", project, "questions");
    assert_screen!("create", project, "features create --feature-id shop --title 'A shop'");
    project.tool("feature.question_create", "builder", &question("shop", "op-1")).data();
    assert_screen!("status_waiting", project, "status");
    assert_screen!("questions_open", project, "questions");
    assert_screen!("show", project, "features show shop");
    assert_screen!("conflict", project, "ask 'Another?' --feature-id shop");
    assert_screen!("log", project, "log");
    assert_screen!("doctor", project, "doctor");
    assert_screen!("explain", project, "explain question_conflict_open");
    assert_screen!("cancel", project, "cancel --feature-id shop");
    assert_screen!("questions_withdrawn", project, "questions --status withdrawn");
    assert_screen!("unknown_feature", project, "questions --feature-id nope");
    assert_screen!("bad_option", project, "questions --colour red");
    assert_screen!("help", project, "--help");
}

#[test]
fn an_escape_sequence_in_a_prompt_never_reaches_the_terminal() {
    let project = Project::with_feature();
    let mut input = question("shop", "op-1");
    input["prompt"] = serde_json::json!("hello \u{1b}]0;owned\u{7}\u{1b}[2Jworld");
    project.tool("feature.question_create", "builder", &input).data();
    let text = screen(&project, "questions");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
    assert!(text.contains("hello ]0;owned[2Jworld"), "{text}");
}

#[test]
fn text_on_a_narrow_terminal_breaks_between_words() {
    let project = Project::with_feature();
    let prompt = "Which of the databases that were looked at should the orders go into?";
    let mut input = question("shop", "op-1");
    input["prompt"] = serde_json::json!(prompt);
    project.tool("feature.question_create", "builder", &input).data();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    // A command is copied, so it stays whole however narrow it is.
    let example = r#"  aop ask "Which database?" --choice PostgreSQL --choice SQLite"#;
    let commands = [example, "  answer=$(aop ask", "  aop ask \"Settings", "    aop answer q_"];
    for columns in [40, 60, 80, 100] {
        let said = |args: &str| {
            let text = narrow(&project, columns, args);
            let is_command = |line: &str| commands.iter().any(|command| line.starts_with(command));
            let mut lines = text.lines().filter(|line| !is_command(line));
            assert!(lines.all(|line| line.chars().count() <= columns), "{columns}: {text}");
            text
        };
        for args in ["runners", "questions --status bad", "explain internal", "ask --help"] {
            assert_eq!(words(&said(args)), words(&screen(&project, args)), "{columns}");
        }
        assert!(words(&said("questions")).contains(prompt), "{columns}");
        assert!(said("ask --help").lines().any(|line| line == example), "{columns}");
    }
}

#[test]
fn why_a_feature_is_blocked_is_read_to_its_end_and_with_the_command_that_goes_on() {
    let project = Project::with_feature();
    let reason = "claude is not installed: nothing of that name is on the search path, neither here nor in the \
                  folders that npm uses; install it with npm, or choose another engine in aop.yaml";
    let input =
        serde_json::json!({"feature_id": "shop", "to": "blocked", "reason": reason, "operation_id": "stop"});
    project.tool("feature.transition", "human", &input).data();
    let way = "go on with: `aop retry --feature-id shop`, then `aop run`";
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for columns in [60, 80, 120] {
        for args in ["status", "features list", "features show shop"] {
            let text = narrow(&project, columns, args);
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}: {text}");
            assert!(words(&text).contains(reason), "{columns}: {text}");
            assert!(words(&text).contains(way), "{columns}: {text}");
        }
    }
}

#[test]
fn the_status_counts_the_questions_of_aop_ask_though_it_lists_no_feature_for_them() {
    let project = Project::new();
    let mut asking = project.spawn(&["ask", "Anybody?"]);
    project.opened_question();
    let text = screen(&project, "status");
    assert!(text.contains("No features yet"), "{text}");
    assert!(text.contains("1 question waits for an answer: `aop answer`"), "{text}");
    assert!(!screen(&project, "status --all").contains("1 question waits"), "its feature is listed");
    asking.kill().unwrap();
    asking.wait().unwrap();
}

#[test]
fn what_waits_is_watched_first_and_what_does_not_fit_is_counted() {
    let project = Project::new();
    for number in 1..=30 {
        let (id, title) = (format!("f{number:02}"), format!("The feature of the number {number}"));
        project.run(&["features", "create", "--feature-id", &id, "--title", &title]).data();
    }
    project.tool("feature.question_create", "builder", &question("f29", "op-1")).data();
    let watch = format!("stty cols 80 rows 24; timeout --foreground 2 {} status --watch", binary());
    let seen = shown(&project, &watch).replace("\u{1b}[K", "");
    let lines: Vec<&str> = seen.lines().collect();
    assert!(lines[1].starts_with("f29 ") && lines[1].ends_with("May I?"), "{seen}");
    assert!(lines[2].starts_with("f01 "), "{seen}");
    assert!(seen.contains("\n  … and 15 more (`aop status` lists all)\n"), "{seen}");
    assert!(seen.contains("\n1 feature waits for an answer: `aop answer`\n"), "{seen}");
}

#[test]
fn a_prompt_that_is_left_says_what_becomes_of_its_question() {
    let project = Project::new();
    let told = "Left open; still waiting for an answer from elsewhere";
    pressed(&project, b"\x1b", told, |question| drop(project.answer_to(question, "yes").data()));
    let stopped = pressed(&project, b"\x03", "The question stays open", |_| {});
    let open = project.run(&["questions"]).data()["items"][0].clone();
    let id = open["question_id"].as_str().unwrap();
    assert!(stopped.contains(&format!("The question stays open as {id}")), "{stopped}");
    assert!(stopped.contains(&format!("\n  aop answer {id}\n")), "{stopped}");
    let late = screen(&project, "ask 'Anybody else?' --timeout 1s");
    assert!(
        late.contains("the question expired") && late.contains("\n  aop reopen --feature-id ask-"),
        "{late}"
    );
    assert!(!late.contains("ed elsewhere") && !late.contains("press Enter"), "{late}");
}

#[test]
fn control_and_alt_keys_edit_an_answer_and_type_nothing_into_it() {
    let project = Project::new();
    // Ctrl-U, Ctrl-Z, Alt-B, Ctrl-W, Ctrl-A, Ctrl-K and arrows, then what is meant.
    let keys = b"wrong\x15\x1a\x12\x0cno never\x1bb\x17\x01\x0byez\x1b[D\x1b[3~s\r";
    pressed(&project, keys, "yes", |_| {});
    assert_eq!(the_answer(&project), "yes");
}

#[test]
fn a_paste_of_several_lines_is_one_answer_and_sends_nothing() {
    let project = Project::new();
    pressed(&project, b"\x1b[200~one\rtwo\r\x1b[201~!\r", "two!", |_| {});
    assert_eq!(the_answer(&project), "one\ntwo!");
}

#[test]
fn what_was_typed_before_a_prompt_could_be_seen_answers_nothing() {
    let project = Project::new();
    let mut asking = Keyboard::start(&project, &format!("head -n 1; {} ask 'Anybody?'", binary()));
    // In one piece: the second line waits in the terminal when the first one lets the question come.
    asking.press(b"go\nyes\n");
    asking.until(PROMPT);
    asking.press(b"no\r");
    asking.end();
    assert_eq!(the_answer(&project), "no");
}

#[test]
fn a_permission_is_never_given_by_enter_alone() {
    let project = Project::new();
    let ask = "ask 'May I?' --choice allow --choice deny --question-type permission_override";
    let mut asking = Keyboard::start(&project, &format!("{} {ask}", binary()));
    asking.until(PROMPT);
    asking.press(b"\r");
    asking.until("choose with ↑ or ↓ first");
    asking.press(b"\r\x1b[B\x1b[B\r");
    asking.end();
    assert_eq!(the_answer(&project), "deny");
}

/// Has a question with this form asked.
fn form(project: &Project, operation: &str, questions: serde_json::Value) {
    let mut input = question("shop", operation);
    input.as_object_mut().unwrap().remove("expected_answer");
    input["spec"] = serde_json::json!({"version": 1, "topic": "t", "questions": questions});
    project.tool("feature.question_create", "builder", &input).data();
}

/// Two options.
fn two() -> serde_json::Value {
    serde_json::json!([{"label": "one", "description": "the first"}, {"label": "two", "description": "the second"}])
}

#[test]
fn a_default_is_offered_first_and_marked_and_enter_ticks_and_fills_in_nothing() {
    let project = Project::with_feature();
    let several = serde_json::json!({"id": "p", "header": "P", "question": "Which?", "kind": "multi_choice",
        "required": false, "default": ["two"], "options": two()});
    form(&project, "op-1", serde_json::json!([several]));
    let mut answering = Keyboard::start(&project, &format!("{} answer", binary()));
    answering.until("❯ [ ] two — Recommended. the second");
    answering.until(PROMPT);
    answering.press(b"\r");
    answering.until("(nothing)");
    answering.end();
    assert_eq!(the_answer(&project), serde_json::json!({}));
}

#[test]
fn a_default_of_a_question_without_a_form_is_offered_first_and_sent_by_nobody() {
    let expected =
        |kind: &str, default: serde_json::Value| serde_json::json!({"kind": kind, "default": default});
    let mut choices = expected("multi_choice", serde_json::json!(["b"]));
    choices["choices"] = serde_json::json!(["a", "b"]);
    for (expected, shown, keys, answer) in [
        (choices, "❯ [ ] b — Recommended.", &b" \r"[..], serde_json::json!(["b"])),
        (expected("free_text", "mine".into()), "default: mine", b"yours\r", "yours".into()),
    ] {
        let project = Project::with_feature();
        let mut input = question("shop", "op-1");
        input["expected_answer"] = expected;
        project.tool("feature.question_create", "builder", &input).data();
        let mut answering = Keyboard::start(&project, &format!("{} answer", binary()));
        answering.until(shown);
        answering.until(PROMPT);
        answering.press(b"\r");
        answering.until("this question needs an answer");
        answering.until(PROMPT);
        answering.press(keys);
        answering.end();
        assert_eq!(the_answer(&project), answer);
    }
}

#[test]
fn what_is_typed_for_a_secret_choice_is_not_shown_on_a_terminal() {
    let project = Project::with_feature();
    let secret = |id: &str, kind: &str| {
        serde_json::json!({"id": id, "header": id, "question": format!("Which {id}?"), "kind": kind, "required": true,
            "allow_other": true, "secret": true, "options": two()})
    };
    form(
        &project,
        "op-1",
        serde_json::json!([secret("key", "single_choice"), secret("keys", "multi_choice")]),
    );
    let mut answering = Keyboard::start(&project, &format!("{} answer", binary()));
    answering.until(PROMPT);
    // Typed to find something, and taken over into the own words.
    answering.press(b"hunter\r");
    answering.until("your own words");
    answering.press(b"2\r");
    answering.until("(not shown)");
    answering.until("space to choose");
    answering.press(b" \x1b[A\r");
    answering.until("your own answer: enter to add it");
    answering.press(b"hunter3\r");
    answering.until("Added: 1.");
    answering.press(b"\x1b");
    answering.until("[x] your own words (not shown)");
    answering.press(b"\x1b[B\r");
    answering.until("your own answer: enter to add it");
    answering.press(b"hunter4\r");
    answering.until("Added: 1.");
    answering.press(b"\r");
    answering.until("(not shown)");
    let seen = answering.end();
    assert!(!seen.contains("hunter") && seen.contains("*******"), "{seen}");
    assert_eq!(project.run(&["questions", "--status", "answered"]).data()["items"][0]["status"], "answered");
}

#[test]
fn own_words_among_several_stay_in_the_list_until_their_tick_is_taken_away() {
    let project = Project::with_feature();
    let mut input = question("shop", "op-1");
    input["expected_answer"] =
        serde_json::json!({"kind": "multi_choice", "choices": ["Linux", "macOS"], "allow_other": true});
    project.tool("feature.question_create", "builder", &input).data();
    let mut answering = Keyboard::start(&project, &format!("{} answer", binary()));
    answering.until(PROMPT);
    answering.press(b" \x1b[A \r");
    answering.until("your own answer: enter to add it");
    answering.press(b"BSD\r");
    answering.until("Added: BSD. Add another, or press Enter on an empty line to send");
    answering.press(b"Plan9\r");
    answering.until("Added: BSD, Plan9.");
    // Not done yet, and not said for good.
    answering.press(b"Hu");
    answering.until("> Hu");
    answering.press(b"\x1b");
    answering.until("[x] BSD");
    answering.until("[x] Plan9");
    answering.until("[ ] something else");
    answering.until(PROMPT);
    answering.press(b" \x1b[B\r");
    answering.until("> Hu");
    answering.press(b"rd\r");
    answering.until("Added: Hurd.");
    answering.press(b"\r");
    answering.end();
    assert_eq!(the_answer(&project), serde_json::json!(["Linux", "BSD", "Hurd"]));
}

#[test]
fn several_of_the_choices_are_sent_by_one_enter_and_own_words_are_asked_for_only_where_they_are_meant() {
    let several = |project: &Project| {
        let mut input = question("shop", "op-1");
        input["expected_answer"] =
            serde_json::json!({"kind": "multi_choice", "choices": ["Linux", "macOS"], "allow_other": true});
        project.tool("feature.question_create", "builder", &input).data();
        let mut answering = Keyboard::start(project, &format!("{} answer", binary()));
        answering.until("[ ] something else");
        answering.until(PROMPT);
        answering
    };
    let project = Project::with_feature();
    let mut answering = several(&project);
    answering.press(b" \r");
    assert!(!answering.end().contains("enter to add it"));
    assert_eq!(the_answer(&project), serde_json::json!(["Linux"]));
    // What is typed and fits nothing is taken over, and an empty line leads back to the list.
    let project = Project::with_feature();
    let mut answering = several(&project);
    answering.press(b" BSD");
    answering.until("> BSD");
    answering.press(b"\r");
    answering.until("your own answer");
    answering.press(b"\x15\r");
    answering.until("[ ] something else");
    answering.until(PROMPT);
    answering.press(b"\x1b[B\r");
    answering.until("your own answer");
    answering.press(b"BSD\r");
    answering.until("Added: BSD.");
    answering.press(b"\r");
    answering.end();
    assert_eq!(the_answer(&project), serde_json::json!(["Linux", "BSD"]));
}

#[test]
fn what_is_allowed_is_what_is_seen_on_a_terminal_too() {
    let project = Project::with_feature();
    let mut asked = question("shop", "op-1");
    asked["question_type"] = "permission_override".into();
    asked["prompt"] = "rm a\u{1b}[2K\u{8}\rls\u{202e}b\u{200b}c\u{e0041}".into();
    asked["details"] = serde_json::json!({"command": "x\u{2066}y"});
    asked["expected_answer"]["choices"] = serde_json::json!(["allow", "allow\u{200b}"]);
    project.tool("feature.question_create", "builder", &asked).data();
    let prompt = "rm a⟨U+001B⟩[2K⟨U+0008⟩⟨U+000D⟩ls⟨U+202E⟩b⟨U+200B⟩c⟨U+E0041⟩";
    let listed = screen(&project, "questions");
    let mut answering = Keyboard::start(&project, &format!("{} answer", binary()));
    answering.until(PROMPT);
    answering.press(b"\x1b");
    for shown in [listed, answering.end()] {
        for exact in [prompt, "x⟨U+2066⟩y", "allow⟨U+200B⟩"] {
            assert!(shown.contains(exact), "{exact} in {shown}");
        }
    }
}

#[test]
fn json_on_a_terminal_is_escaped_where_that_would_obey_it() {
    let project = Project::with_feature();
    let mut asked = question("shop", "op-1");
    asked["prompt"] = "a\u{9b}31mb\u{202e}c".into();
    project.tool("feature.question_create", "builder", &asked).data();
    let list = "tool call feature.question_list --role human --input '{\"feature_id\": \"shop\"}'";
    for args in ["questions --json", "log --json", list, &format!("{list} --json")] {
        let shown = screen(&project, args);
        assert!(shown.contains(r"a\u009b31mb\u202ec"), "{args}: {shown}");
        assert!(!shown.contains(['\u{9b}', '\u{202e}']), "{args}: {shown}");
    }
    let piped = project.run(&["questions"]).stdout;
    assert!(piped.contains("a\u{9b}31mb\u{202e}c"), "{piped}");
}

#[test]
fn no_title_turns_the_lines_of_a_replay_or_of_the_decisions() {
    let project = Project::new();
    let title = "a\u{202e}b\u{2066}c";
    project.run(&["features", "create", "--feature-id", "shop", "--title", title]).data();
    let replay = screen(&project, "replay");
    assert!(replay.contains("abc"), "{replay}");
    let decisions = std::fs::read_to_string(project.path(".aop/features/shop/decisions.md")).unwrap();
    assert!(decisions.contains("a⟨U+202E⟩b⟨U+2066⟩c"), "{decisions}");
    assert!(![replay, decisions].concat().contains(aop_kernel::signs::turns));
}

#[test]
fn a_prompt_of_aop_answer_closes_when_somebody_else_has_answered() {
    let project = Project::with_feature();
    let id = project.ask("op-1");
    let mut answering = Keyboard::start(&project, &format!("{} answer", binary()));
    answering.until(PROMPT);
    project.answer(&id, "yes").data();
    let screen = answering.end();
    let told = format!("too late for {id}: answered by human just now: yes");
    assert!(screen.contains(&told) && !screen.contains("press Enter"), "{screen}");
    assert!(screen.contains("1 answered elsewhere; nothing else waits."), "{screen}");
}

#[test]
fn a_terminal_that_changes_its_size_is_cleared_and_shows_the_question_again() {
    let project = Project::with_feature();
    let id = project.ask("op-1");
    // One change at a time: a key that comes in the same moment as a second one would wait for the next key.
    let smaller = "(until [ -e go ]; do sleep 0.1; done; stty cols 40 < /dev/tty) &";
    let answer = format!("timeout --foreground 60 {} answer", binary());
    let mut answering = Keyboard::start(&project, &format!("stty cols 80 rows 24; {smaller} {answer}"));
    answering.until(PROMPT);
    std::fs::write(project.path("go"), "").unwrap();
    answering.until("\u{1b}[2J");
    for shown in [&id, "? May I?", "❯ yes", PROMPT] {
        answering.until(shown);
    }
    answering.press(b"\x1b[B\r");
    answering.end();
    assert_eq!(the_answer(&project), "no");
}

#[test]
fn the_options_of_an_engines_own_question_are_chosen_from_and_it_is_told_their_values() {
    let project = Project::with_feature();
    let mut input = question("shop", "op-1");
    input.as_object_mut().unwrap().remove("expected_answer");
    input["interaction"] = serde_json::json!({"interaction_id": 1, "kind": "choose_one", "prompt": "Which way?",
        "options": [{"label": "Left", "value": "l"}, {"label": "Right", "value": "r"}]});
    project.tool("feature.question_create", "builder", &input).data();
    let mut answering = Keyboard::start(&project, &format!("{} answer", binary()));
    for shown in ["Left", "Right"] {
        answering.until(shown);
    }
    answering.press(b"\x1b[B\r");
    answering.end();
    assert_eq!(the_answer(&project), "r");
}

#[test]
fn a_terminal_that_a_shell_has_taken_meanwhile_shows_no_secret_and_sends_by_enter() {
    let project = Project::with_feature();
    let key = serde_json::json!({"id": "key", "header": "Key", "question": "Which key?", "kind": "free_text",
        "required": true, "secret": true});
    form(&project, "op-1", serde_json::json!([key]));
    // What a shell does when the program is stopped, and does not undo when it goes on.
    let shell = "(until [ -e go ]; do sleep 0.1; done; stty icanon echo isig < /dev/tty) &";
    let mut answering = Keyboard::start(&project, &format!("{shell} {} answer", binary()));
    let taken = "\u{1b}[?2004h";
    for shown in ["Which key?", taken, PROMPT] {
        answering.until(shown);
    }
    std::fs::write(project.path("go"), "").unwrap();
    for shown in [taken, "Which key?", PROMPT] {
        answering.until(shown);
    }
    answering.press(b"hunter2\r");
    let seen = answering.end();
    assert!(!seen.contains("hunter") && seen.contains("*******"), "{seen}");
    assert_eq!(project.run(&["questions", "--status", "answered"]).data()["items"][0]["status"], "answered");
}

#[test]
fn a_signal_that_ends_the_program_gives_the_terminal_back() {
    let project = Project::with_feature();
    project.ask("op-1");
    let line = format!("timeout --foreground --signal TERM 1 {} answer; stty -a", binary());
    let screen = Keyboard::start(&project, &line).end();
    assert!(screen.contains(PROMPT), "{screen}");
    assert!(screen.contains(" icanon") && screen.contains(" echo "), "{screen}");
}

#[test]
fn an_answer_that_is_refused_is_not_typed_again() {
    let project = Project::with_feature();
    let mut input = question("shop", "op-1");
    input["expected_answer"] =
        serde_json::json!({"kind": "json", "schema": {"type": "object", "required": ["a"]}});
    project.tool("feature.question_create", "builder", &input).data();
    let mut answering = Keyboard::start(&project, &format!("{} answer", binary()));
    answering.until(PROMPT);
    answering.press(b"{\"b\":1\r");
    answering.until("that is not JSON");
    answering.until(PROMPT);
    answering.press(b"}\r");
    answering.until("not taken:");
    answering.until(PROMPT);
    answering.press(b"\x1b[D,\"a\":2\r");
    answering.end();
    assert_eq!(the_answer(&project), serde_json::json!({"b": 1, "a": 2}));
}

#[test]
fn a_terminal_that_can_only_print_lines_gets_no_prompt_but_the_flag_to_use() {
    let project = Project::with_feature();
    project.ask("op-1");
    let told = shown(&project, &format!("TERM=dumb {} answer", binary()));
    assert!(told.contains("an answer (or --answer-file) are needed without a terminal"), "{told}");
    crate::run_support::git(&project, &["init", "--quiet"]);
    let who = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
    let commit = [&who[..], &["commit", "--quiet", "--allow-empty", "-m", "First commit"]].concat();
    crate::run_support::git(&project, &commit);
    let run = shown(&project, &format!("TERM=dumb timeout --foreground --signal INT 2 {} run", binary()));
    assert!(run.contains("awaiting_input") && !run.contains('\u{1b}'), "{run:?}");
}

#[test]
fn what_is_piped_or_asked_for_as_json_is_not_broken_for_a_narrow_terminal() {
    let project = Project::new();
    let hint = "hint: status is one of open, answered, expired, withdrawn, all";
    let told = |args: &str| narrow(&project, 40, args);
    assert!(told("questions --status bad").contains("\n  expired"));
    assert!(told("questions --status bad 2>&1 >/dev/tty | cat").lines().any(|line| line == hint));
    let json = told("questions --status bad --json");
    assert_eq!(json.lines().count(), 1, "{json}");
    serde_json::from_str::<serde_json::Value>(&json).unwrap();
}

#[test]
fn the_doctor_warns_of_what_a_run_needs_and_of_nothing_that_is_not_there() {
    let project = Project::new();
    let told = |project: &Project| {
        let checks = project.run(&["doctor"]).data()["checks"].as_array().unwrap().clone();
        let named = |name: &str| checks.iter().find(|check| check["name"] == name).unwrap().clone();
        ["settings", "git", "engines"].map(named)
    };
    std::fs::write(project.path("aop.yaml"), "engines: { default: iflow }\n").unwrap();
    let [settings, git, engines] = told(&project);
    assert_eq!(settings["message"], "aop.yaml is valid");
    assert_eq!((&git["ok"], &git["warning"]), (&true.into(), &true.into()), "{git}");
    assert!(git["message"].as_str().unwrap().contains("is not a git repository; run `git init`"), "{git}");
    assert_eq!(engines["warning"], true, "{engines}");
    assert!(engines["message"].as_str().unwrap().starts_with("iflow is not installed: `npm"), "{engines}");
    std::fs::write(project.path("aop.yaml"), "engines: { default: scripted }\n").unwrap();
    crate::run_support::git(&project, &["init", "--quiet"]);
    let [_, git, engines] = told(&project);
    assert!(git["message"].as_str().unwrap().contains("has no commit yet"), "{git}");
    assert_eq!(engines["warning"], serde_json::Value::Null, "{engines}");
    std::fs::remove_file(project.path("aop.yaml")).unwrap();
    assert_eq!(told(&project)[0]["message"], "there is no aop.yaml, so the defaults apply");
}

#[test]
fn what_waits_on_a_terminal_says_for_what_and_how_to_leave_it() {
    let project = Project::with_feature();
    let soon = |args: &str| shown(&project, &format!("timeout --foreground 2 {} {args}", binary()));
    assert!(soon("status --watch").contains("q or Ctrl-C quits"));
    assert!(soon("mcp").contains("Waiting for an MCP client"));
}

#[test]
fn the_demo_asks_nobody_for_what_it_answers_itself_and_offers_only_what_can_be_merged() {
    let project = Project::empty();
    let merge = "  aop merge --feature-id checkout";
    let demo = |how: &str| shown(&project, &format!("TMPDIR={} {how}", project.root().display()));
    let whole = demo(&format!("{} demo --answers auto", binary()));
    assert!(whole.contains("Which payment flow") && whole.contains(merge), "{whole}");
    assert!(!whole.contains("press a") && !whole.contains("aop answer"), "{whole}");
    let stopped = demo(&format!("timeout --foreground --signal INT 6 {} demo", binary()));
    assert!(stopped.contains("press a") && stopped.contains("Try next"), "{stopped}");
    assert!(!stopped.contains(merge), "{stopped}");
}

#[test]
fn a_new_project_is_healthy() {
    Project::new().assert_healthy();
}

#[test]
fn walking_the_inbox_of_an_unknown_feature_is_refused_by_name() {
    let project = Project::with_feature();
    assert!(screen(&project, "answer --feature-id shop").contains("Nothing of shop waits for an answer."));
    assert!(screen(&project, "answer --feature-id nope").contains("no feature 'nope'"));
}

#[test]
fn a_question_that_is_named_on_a_terminal_is_refused_as_it_is_elsewhere() {
    let project = Project::with_feature();
    project.run(&["features", "create", "--feature-id", "other", "--title", "Another"]).data();
    project.tool("feature.question_create", "builder", &question("shop", "op-1")).data();
    let asked = project.opened_question();
    let id = asked["question_id"].as_str().unwrap();
    let text = screen(&project, &format!("answer --feature-id other --question-id {id}"));
    assert!(text.contains(&format!("feature 'other' has no question {id}")), "{text}");
    assert!(text.contains("question_not_found"), "{text}");
    project.answer_to(&asked, "yes").data();
    let text = screen(&project, &format!("answer --feature-id shop --question-id {id}"));
    assert!(text.contains("was answered by human") && text.contains("question_already_answered"), "{text}");
}

#[test]
fn a_walk_through_one_feature_counts_what_waits_elsewhere() {
    let project = Project::with_feature();
    project.run(&["features", "create", "--feature-id", "other", "--title", "Another"]).data();
    project.tool("feature.question_create", "builder", &question("other", "op-1")).data();
    let text = screen(&project, "answer --feature-id shop");
    let told = "Nothing of shop waits for an answer; 1 other question waits: `aop answer`.";
    assert!(text.contains(told), "{text}");
}

#[test]
fn whoever_sends_a_feature_back_to_work_is_told_when_nobody_is_there_to_go_on() {
    let project = Project::with_feature();
    assert!(screen(&project, "status").contains("No run is active; start one with `aop run`."));
    project.tool("feature.question_create", "builder", &question("shop", "op-1")).data();
    let asked = project.opened_question();
    assert!(
        screen(&project, "status").contains("No run is active"),
        "nobody goes on with it after an answer"
    );
    let id = asked["question_id"].as_str().unwrap();
    let text = screen(&project, &format!("answer --feature-id shop --question-id {id} --answer yes"));
    let told = "shop is back in planning; start `aop run` to continue.";
    assert!(text.contains(told), "{text}");
    let stop = serde_json::json!({"feature_id": "shop", "to": "blocked", "operation_id": "stop"});
    project.tool("feature.transition", "human", &stop).data();
    let text = screen(&project, "retry --feature-id shop");
    assert!(text.contains(told), "{text}");
}

#[test]
fn whoever_stops_walking_is_told_how_far_it_went() {
    let project = Project::with_feature();
    project.ask("op-1");
    for number in 2..=3 {
        let id = format!("f{number}");
        project.run(&["features", "create", "--feature-id", &id, "--title", "T"]).data();
        project.tool("feature.question_create", "builder", &question(&id, &id)).data();
    }
    let mut answering = Keyboard::start(&project, &format!("{} answer", binary()));
    answering.until("1 of 3 · ");
    answering.until(PROMPT);
    answering.press(b"\r");
    answering.until("2 of 3 · ");
    answering.until(PROMPT);
    answering.press(b"\x03");
    let seen = answering.end();
    assert!(seen.contains("Stopped: 1 answered, 2 still open."), "{seen}");
}

#[test]
fn a_table_that_is_watched_stays_when_somebody_quits() {
    let project = Project::with_feature();
    for key in [&b"q"[..], b"\x03"] {
        let mut watching = Keyboard::start(&project, &format!("{} status --watch; echo left", binary()));
        watching.until("q or Ctrl-C quits");
        watching.press(key);
        watching.until("left");
        let seen = watching.end();
        // Nothing is erased behind the last line, and no key leaves its mark.
        let last = seen.rsplit("quits").next().unwrap();
        assert!(
            !last.contains("\u{1b}[2K") && !last.contains("\u{1b}[1A") && !last.contains("^C"),
            "{seen:?}"
        );
    }
}

#[test]
fn a_feature_shows_where_its_work_is_and_how_it_is_looked_at_and_merged() {
    let project = crate::run_support::workshop("");
    crate::run_support::script(&project, "shop", &json!({}));
    std::fs::write(project.path("shop.md"), "# The shop\n").unwrap();
    assert!(!project.run(&["run", "shop.md"]).stdout.is_empty());
    let text = screen(&project, "features show shop");
    for line in [
        "engine scripted (qa)",
        "branch aop/shop",
        "worktree .aop/worktrees/shop",
        "transcripts .aop/runs/*/shop/",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
    }
    let command = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
    crate::run_support::git(&project, &["tag", "aop/shop", "main"]);
    let diff = finish(&mut on_terminal(&project, &format!("{} | cat", command("review: ")))).stdout;
    assert!(diff.contains("+work"), "{diff}");
    let elsewhere = format!("cd /; {} --project {} features show shop", binary(), project.root().display());
    let elsewhere = shown(&project, &elsewhere);
    assert!(elsewhere.contains(&format!("review: git -C {} diff", project.root().display())), "{elsewhere}");
    let merge = command("then: ").replacen("aop", binary(), 1);
    let merged = shown(&project, &merge);
    assert!(merged.contains("shop is merged into main"), "{merged}");
}

#[test]
fn an_answer_to_aop_ask_speaks_of_no_feature() {
    let project = Project::new();
    let mut asking = project.spawn(&["ask", "Anybody?"]);
    let asked = project.opened_question();
    let (feature, id) = (asked["feature_id"].as_str().unwrap(), asked["question_id"].as_str().unwrap());
    let text = screen(&project, &format!("answer --feature-id {feature} --question-id {id} --answer yes"));
    assert_eq!(text.trim(), format!("Answered {id}: yes"));
    asking.wait().unwrap();
}

#[test]
fn whoever_leaves_a_note_where_no_turn_is_due_is_told_so_and_how_one_comes() {
    let project = Project::with_feature();
    let told = || screen(&project, "send --feature-id shop 'Use the date picker'");
    assert_eq!(told().trim(), "Saved for shop's next turn (any role).");
    for to in ["building", "qa", "ready_to_merge"] {
        let input = json!({"feature_id": "shop", "to": to, "operation_id": to});
        project.tool("feature.transition", "human", &input).data();
    }
    let text = told();
    assert!(
        text.contains(
            "Note saved, but shop is ready to merge and has no turn coming. To send it back to building:\n"
        ),
        "{text}"
    );
    let line = text.lines().find(|line| line.contains("feature.transition")).unwrap().trim();
    let line = line.replacen("aop", binary(), 1);
    shown(&project, &line);
    assert_eq!(project.feature("shop")["status"], "building", "{line}");
}

#[test]
fn a_log_that_is_followed_from_beyond_its_end_is_refused() {
    let project = Project::with_feature();
    let error = project.run(&["log", "--follow", "--after", "99"]).refused("invalid_argument", 2);
    assert_eq!(error["message"], "--after 99 is past the last event (1)");
    assert_eq!(error["details"]["last_seq"], 1);
    assert!(screen(&project, "log --after 99").contains("Nothing happened after event 99."));
}

#[test]
fn the_log_can_begin_with_its_last_events() {
    let project = Project::with_feature();
    project.tool("feature.question_create", "builder", &question("shop", "op-1")).data();
    let asked = project.opened_question();
    project.run(&["features", "create", "--feature-id", "other", "--title", "Another"]).data();
    project.answer_to(&asked, "yes").data();
    let seqs = |args: &[&str]| -> Vec<u64> {
        let data = project.run(args).data();
        data["items"].as_array().unwrap().iter().map(|item| item["seq"].as_u64().unwrap()).collect()
    };
    let all = seqs(&["log"]);
    assert_eq!(seqs(&["log", "--last", "2"]), all[all.len() - 2..]);
    assert_eq!(seqs(&["log", "--last", "999"]), all);
    assert_eq!(seqs(&["log", "--last", "1", "--feature-id", "other"]).len(), 1);
    let of_shop = seqs(&["log", "--feature-id", "shop"]);
    assert_eq!(seqs(&["log", "--last", "3", "--feature-id", "shop"]), of_shop[of_shop.len() - 3..]);
}

#[test]
fn a_question_with_an_answer_is_not_waited_for_again() {
    let project = Project::new();
    let asking = project.spawn(&["ask", "Which one?", "--operation-id", "one"]);
    project.answer_to(&project.opened_question(), "left").data();
    wait(asking).data();
    assert_eq!(screen(&project, "ask 'Which one?' --operation-id one"), "left\n");
}

#[test]
fn the_codes_of_turns_are_explained_and_a_slip_finds_its_code() {
    let project = Project::empty();
    let code = |name: &str| project.run(&["explain", name]).data()["code"].clone();
    assert_eq!(code("AUTO_MODE_ASKED_USER"), "AUTO_MODE_ASKED_USER");
    assert_eq!(code("QUESTION_CONFLICT_OPEN"), "question_conflict_open");
    assert_eq!(
        (code("engine_failed"), code("ENGINE_FAILED")),
        ("engine_failed".into(), "ENGINE_FAILED".into())
    );
    let text = screen(&project, "explain question_conflct_open");
    assert!(text.contains("did you mean `aop explain question_conflict_open`?"), "{text}");
}

#[test]
fn a_run_that_is_given_a_feature_that_failed_says_so_and_how_to_go_on() {
    let project = crate::run_support::workshop("");
    crate::run_support::script(&project, "shop", &serde_json::json!({}));
    std::fs::write(project.path("shop.md"), "# The shop\n").unwrap();
    project.run(&["features", "create", "--feature-id", "shop", "--title", "T", "--spec", "shop.md"]).data();
    project.run(&["cancel", "--feature-id", "shop"]).data();
    let seen = screen(&project, "run shop.md");
    assert!(
        seen.contains("failed") && seen.contains("run the specification under another file name."),
        "{seen}"
    );
    assert!(!seen.contains("Nothing is left to do"), "{seen}");
}

#[test]
fn a_run_behind_a_shell_that_goes_on_leaves_the_keys_to_it_and_works() {
    let project = crate::run_support::workshop("");
    crate::run_support::script(&project, "shop", &json!({}));
    std::fs::write(project.path("shop.md"), "# The shop\n").unwrap();
    let run = format!("{} run shop.md & wait $!; echo ended with $?", binary());
    let line = format!("timeout --foreground 60 sh -mc '{run}'");
    let seen = finish(&mut on_terminal(&project, &line)).stdout;
    assert!(seen.contains("ended with 0"), "{seen}");
    assert_eq!(project.feature("shop")["status"], "ready_to_merge");
}
