//! A clean environment for the real programs: their own home, a key that opens nothing, a model on loopback, and
//! nothing of the person's who runs the tests.

use crate::model::FakeModel;
use crate::wire::Wire;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The variable that says where `cargo xtask test-engines` has put the programs.
pub const ENGINES_VARIABLE: &str = "AOP_TEST_ENGINES";

/// The pinned versions; `cargo xtask test-engines` installs these.
const PINS: &str = include_str!("../engines.json");

/// A real agent program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
}

impl Program {
    /// Its file's name.
    pub fn name(self) -> &'static str {
        match self {
            Program::Claude => "claude",
            Program::Codex => "codex",
            Program::Gemini => "gemini",
        }
    }

    /// The version that the tests are for.
    pub fn version(self) -> String {
        let pins: Value = serde_json::from_str(PINS).unwrap_or_default();
        let mut pins = pins.as_array().into_iter().flatten();
        let pin = pins.find(|pin| pin["program"] == self.name());
        pin.and_then(|pin| pin["version"].as_str()).unwrap_or_default().to_owned()
    }

    fn of(wire: Wire) -> Self {
        match wire {
            Wire::Anthropic => Program::Claude,
            Wire::OpenAi => Program::Codex,
            Wire::Gemini => Program::Gemini,
        }
    }
}

/// The folder with the real programs.
#[derive(Debug, Clone)]
pub struct Engines {
    folder: PathBuf,
}

impl Engines {
    /// The programs in a folder.
    pub fn at(folder: &Path) -> Self {
        Engines { folder: folder.to_owned() }
    }

    /// The programs that the environment names.
    ///
    /// # Panics
    /// When it names none: a test of a real program that could not run has not passed.
    pub fn required() -> Self {
        match std::env::var_os(ENGINES_VARIABLE).filter(|folder| !folder.is_empty()) {
            Some(folder) => Engines::at(Path::new(&folder)),
            None => panic!(
                "this test runs a real agent program and {ENGINES_VARIABLE} does not say where they are: run \
                 `cargo xtask test-engines`, which installs them (`cargo xtask test --quick` leaves these tests out)"
            ),
        }
    }

    /// One program.
    pub fn program(&self, program: Program) -> PathBuf {
        self.bin().join(program.name())
    }

    /// A search path with the programs, node and the system, and nothing else.
    pub fn search_path(&self) -> OsString {
        let mut path = self.bin().into_os_string();
        path.push(":/usr/local/bin:/usr/bin:/bin");
        path
    }

    fn bin(&self) -> PathBuf {
        self.folder.join("bin")
    }
}

/// A home of its own with the configuration that a user of one program would have.
#[derive(Debug, Clone)]
pub struct CleanHome {
    home: PathBuf,
    variables: Vec<(String, OsString)>,
}

impl CleanHome {
    /// Makes the home in this folder for the program that speaks the model's format.
    pub fn new(home: &Path, engines: &Engines, model: &FakeModel) -> io::Result<Self> {
        std::fs::create_dir_all(home)?;
        let mut variables: Vec<(String, OsString)> =
            vec![("PATH".to_owned(), engines.search_path()), ("HOME".to_owned(), home.into())];
        let mut set = |name: &str, value: &str| variables.push((name.to_owned(), value.into()));
        match Program::of(model.wire()) {
            Program::Claude => {
                set("ANTHROPIC_API_KEY", "dummy");
                set("ANTHROPIC_BASE_URL", &model.url());
                set("DISABLE_TELEMETRY", "1");
                set("DISABLE_AUTOUPDATER", "1");
                set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
            }
            Program::Codex => {
                set("FAKE_KEY", "dummy");
                write(&home.join(".codex/config.toml"), &codex_settings(&model.url()))?;
            }
            Program::Gemini => {
                set("GEMINI_API_KEY", "dummy");
                set("GOOGLE_GEMINI_BASE_URL", &model.url());
                let settings = json!({"security": {"auth": {"selectedType": "gemini-api-key"}},
                    "privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}});
                write(&home.join(".gemini/settings.json"), &settings.to_string())?;
            }
        }
        Ok(CleanHome { home: home.to_owned(), variables })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.home
    }

    /// The whole environment.
    pub fn variables(&self) -> &[(String, OsString)] {
        &self.variables
    }

    /// A program with this environment, in this folder, with nothing on standard input.
    pub fn command(&self, program: &Path, cwd: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.current_dir(cwd).stdin(Stdio::null());
        command
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)
}

fn codex_settings(url: &str) -> String {
    format!(
        "model = \"gpt-5.5\"\nmodel_provider = \"fake\"\ncheck_for_update_on_startup = false\n\
         [model_providers.fake]\nname = \"fake\"\nbase_url = \"{url}\"\nenv_key = \"FAKE_KEY\"\n\
         wire_api = \"responses\"\nsupports_websockets = false\nrequest_max_retries = 0\nstream_max_retries = 0\n\
         [analytics]\nenabled = false\n"
    )
}
