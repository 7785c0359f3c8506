//! Command lines per engine, as a pure function of what is known about the installed version.
//!
//! The prompt is not part of them: it goes to standard input, because variadic options swallow a trailing
//! argument and prompts outgrow the argument limit; iFlow alone takes it as its last argument. Hooks and MCP
//! settings are appended by whoever runs the engine.

use crate::engine::{Engine, Mode};
use serde_json::{Value, json};

/// A version, as far as it decides anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// Reads `1.2.3`, also with words before it or a suffix behind it, as `--version` prints it.
    pub fn parse(text: &str) -> Option<Version> {
        let number = |part: &str| {
            let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            part[..digits].parse::<u32>().ok()
        };
        text.split(|c: char| c.is_whitespace() || c == '/').find_map(|word| {
            let mut parts = word.trim_start_matches('v').split('.');
            let (major, minor) = (number(parts.next()?)?, number(parts.next()?)?);
            Some(Version(major, minor, parts.next().and_then(number).unwrap_or(0)))
        })
    }
}

/// Who decides about the engine's own permission prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permissions {
    /// The engine goes ahead.
    Auto,
    /// They become questions.
    Ask,
}

/// Which conversation the turn belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversation<'a> {
    /// A new one; with a name for it where the engine lets us choose one.
    Start(Option<&'a str>),
    /// An earlier one, by the engine's handle.
    Resume(&'a str),
}

/// Whether a text can be an engine's handle on a command line: an id that began with a dash would be read as an
/// option, and handles come from streams that a model has a hand in.
pub fn is_session_handle(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    !id.is_empty() && id.len() <= 128 && !id.starts_with('-') && id.chars().all(is_plain)
}

/// How the prompt reaches the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptBy {
    /// On standard input.
    Stdin,
    /// As one more argument at the end.
    LastArgument,
}

impl PromptBy {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            PromptBy::Stdin => "stdin",
            PromptBy::LastArgument => "last_argument",
        }
    }
}

/// What to start.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The engine.
    pub engine: Engine,
    /// Whether a human may be asked.
    pub mode: Mode,
    /// Which conversation.
    pub conversation: Conversation<'a>,
    /// Who decides about permissions.
    pub permissions: Permissions,
    /// The installed version, where it is known.
    pub version: Option<Version>,
    /// A file with the flat form of the output schema, for Codex.
    pub output_schema: Option<&'a str>,
}

/// A command line and where its prompt goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Where the prompt goes.
    pub prompt: PromptBy,
}

/// The command line of the CLI form.
pub fn command_line(launch: &Launch<'_>) -> CommandLine {
    let (argv, prompt) = match launch.engine {
        Engine::ClaudeCode => (claude(launch), PromptBy::Stdin),
        Engine::Codex => (codex(launch), PromptBy::Stdin),
        Engine::Gemini => (gemini(launch), PromptBy::Stdin),
        Engine::Iflow => (iflow(launch), PromptBy::LastArgument),
        Engine::Scripted => (scripted(launch), PromptBy::Stdin),
    };
    CommandLine { argv: argv.into_iter().map(str::to_owned).collect(), prompt }
}

fn claude<'a>(launch: &Launch<'a>) -> Vec<&'a str> {
    let mut argv = vec!["claude", "-p", "--output-format", "stream-json", "--verbose"];
    argv.extend(match launch.permissions {
        Permissions::Auto => ["--permission-mode", "bypassPermissions"],
        Permissions::Ask => ["--permission-mode", "default"],
    });
    // Without a permission prompt tool the engine does not offer AskUserQuestion at all.
    if launch.mode == Mode::Interactive || launch.permissions == Permissions::Ask {
        argv.extend(["--permission-prompt-tool", "stdio"]);
    }
    argv.extend(match launch.conversation {
        Conversation::Start(Some(id)) => vec!["--session-id", id],
        Conversation::Start(None) => Vec::new(),
        Conversation::Resume(id) => vec!["--resume", id],
    });
    argv
}

/// Up to here `--full-auto` does something; afterwards it is a trap without effect, and from 0.147 on an error.
const FULL_AUTO_ENDS: Version = Version(0, 126, 0);

fn codex<'a>(launch: &Launch<'a>) -> Vec<&'a str> {
    let auto = match launch.version {
        Some(version) if version < FULL_AUTO_ENDS => "--full-auto",
        Some(_) | None => "--yolo",
    };
    let mut argv = vec!["codex", "exec", "--json", "--skip-git-repo-check", auto];
    if let Some(file) = launch.output_schema {
        argv.extend(["--output-schema", file]);
    }
    // Options stand before `resume`, which does not take all of them itself.
    if let Conversation::Resume(id) = launch.conversation {
        argv.extend(["resume", id]);
    }
    argv.push("-");
    argv
}

fn gemini<'a>(launch: &Launch<'a>) -> Vec<&'a str> {
    let mut argv = vec!["gemini", "--skip-trust", "--yolo", "--output-format", "stream-json"];
    argv.extend(match launch.conversation {
        Conversation::Start(Some(id)) => vec!["--session-id", id],
        Conversation::Start(None) => Vec::new(),
        Conversation::Resume(id) => vec!["--resume", id],
    });
    argv
}

fn iflow<'a>(launch: &Launch<'a>) -> Vec<&'a str> {
    let mut argv = vec!["iflow", "--yolo", "--thinking"];
    // iFlow chooses its session id itself.
    if let Conversation::Resume(id) = launch.conversation {
        argv.extend(["--resume", id]);
    }
    argv.push("-p");
    argv
}

/// The scripted engine is this program again. It finds its scenario by feature and role, in its environment.
fn scripted<'a>(launch: &Launch<'a>) -> Vec<&'a str> {
    let mut argv = vec!["aop", "scripted"];
    argv.extend(match launch.conversation {
        Conversation::Start(Some(id)) => vec!["--session-id", id],
        Conversation::Start(None) => Vec::new(),
        Conversation::Resume(id) => vec!["--resume", id],
    });
    argv
}

/// The parameters with which `codex app-server` starts a thread: the same rules in its own words. The asking tool is
/// there in both modes: in auto mode the agent is told in reply that nobody is, where Codex itself would only say
/// that the tool is unavailable.
pub fn codex_thread_parameters(permissions: Permissions) -> Value {
    let policy = match permissions {
        Permissions::Auto => "never",
        Permissions::Ask => "on-request",
    };
    json!({
        "approvalPolicy": policy,
        "sandbox": "workspace-write",
        "config": {"features.default_mode_request_user_input": true},
    })
}

/// A word as a shell reads it: in quotes where it has to be.
pub fn shell_quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(engine: Engine, mode: Mode, conversation: Conversation<'_>) -> Launch<'_> {
        Launch {
            engine,
            mode,
            conversation,
            permissions: Permissions::Auto,
            version: None,
            output_schema: None,
        }
    }

    fn argv(launch: &Launch<'_>) -> String {
        command_line(launch).argv.join(" ")
    }

    #[test]
    fn the_whole_table() {
        use Engine::{ClaudeCode, Codex, Gemini, Iflow, Scripted};
        let claude = "claude -p --output-format stream-json --verbose --permission-mode bypassPermissions";
        let codex = "codex exec --json --skip-git-repo-check --yolo";
        let gemini = "gemini --skip-trust --yolo --output-format stream-json";
        let iflow = "iflow --yolo --thinking";
        let scripted = "aop scripted";
        for (engine, mode, start, resume) in [
            (ClaudeCode, Mode::Auto, format!("{claude} --session-id S"), format!("{claude} --resume R")),
            (
                ClaudeCode,
                Mode::Interactive,
                format!("{claude} --permission-prompt-tool stdio --session-id S"),
                format!("{claude} --permission-prompt-tool stdio --resume R"),
            ),
            (Codex, Mode::Auto, format!("{codex} -"), format!("{codex} resume R -")),
            (Codex, Mode::Interactive, format!("{codex} -"), format!("{codex} resume R -")),
            (Gemini, Mode::Auto, format!("{gemini} --session-id S"), format!("{gemini} --resume R")),
            (Gemini, Mode::Interactive, format!("{gemini} --session-id S"), format!("{gemini} --resume R")),
            (Iflow, Mode::Auto, format!("{iflow} -p"), format!("{iflow} --resume R -p")),
            (Iflow, Mode::Interactive, format!("{iflow} -p"), format!("{iflow} --resume R -p")),
            (Scripted, Mode::Auto, format!("{scripted} --session-id S"), format!("{scripted} --resume R")),
            (
                Scripted,
                Mode::Interactive,
                format!("{scripted} --session-id S"),
                format!("{scripted} --resume R"),
            ),
        ] {
            assert_eq!(argv(&launch(engine, mode, Conversation::Start(Some("S")))), start);
            assert_eq!(argv(&launch(engine, mode, Conversation::Resume("R"))), resume);
        }
    }

    #[test]
    fn codex_gets_full_auto_only_where_it_works() {
        for (version, flag) in [
            ("0.98.0", "--full-auto"),
            ("0.125.9", "--full-auto"),
            ("0.126.0", "--yolo"),
            ("0.166.0", "--yolo"),
            ("1.0.0", "--yolo"),
        ] {
            let mut launch = launch(Engine::Codex, Mode::Auto, Conversation::Start(None));
            launch.version = Version::parse(version);
            assert!(argv(&launch).contains(flag), "{version}");
        }
    }

    #[test]
    fn versions_are_found_in_what_programs_print() {
        assert_eq!(Version::parse("codex-cli 0.166.0"), Some(Version(0, 166, 0)));
        assert_eq!(Version::parse("2.1.325 (Claude Code)"), Some(Version(2, 1, 325)));
        assert_eq!(Version::parse("v0.61.0-nightly.3"), Some(Version(0, 61, 0)));
        assert_eq!(Version::parse("1.2"), Some(Version(1, 2, 0)));
        assert_eq!(Version::parse("none"), None);
        assert_eq!(Version::parse(""), None);
    }

    #[test]
    fn a_handle_cannot_be_an_option_or_a_path() {
        for id in ["x", "session-0a1b", "01a1dd01-2cb8-7571", "a.b:c_d"] {
            assert!(is_session_handle(id), "{id}");
        }
        for id in ["", "-x", "--yolo", "a b", "../x", "a/b", "é", "a\nb", &"x".repeat(129)] {
            assert!(!is_session_handle(id), "{id}");
        }
    }

    #[test]
    fn permissions_that_ask_reach_the_host() {
        let mut launch = launch(Engine::ClaudeCode, Mode::Auto, Conversation::Start(None));
        launch.permissions = Permissions::Ask;
        assert!(argv(&launch).ends_with("--permission-mode default --permission-prompt-tool stdio"));
        assert_eq!(codex_thread_parameters(Permissions::Ask)["approvalPolicy"], "on-request");
        let auto = codex_thread_parameters(Permissions::Auto);
        assert_eq!(auto["approvalPolicy"], "never");
        assert_eq!(auto["config"]["features.default_mode_request_user_input"], true);
    }

    #[test]
    fn codex_takes_the_flat_schema_as_a_file() {
        let mut launch = launch(Engine::Codex, Mode::Auto, Conversation::Resume("R"));
        launch.output_schema = Some("s.json");
        assert!(argv(&launch).ends_with("--output-schema s.json resume R -"));
    }
}
