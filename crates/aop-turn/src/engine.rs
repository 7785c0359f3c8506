//! The words that name who runs and how: engine, execution mode, role. Every surface spells them the same.

macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $type { $($(#[$variant_doc])* $variant,)* }

        impl $type {
            /// All of them, in the order of the documentation.
            pub const ALL: &[$type] = &[$($type::$variant,)*];

            /// The name in commands, files and JSON.
            pub fn as_str(self) -> &'static str { match self { $($type::$variant => $name,)* } }

            /// Finds one by its name.
            pub fn parse(name: &str) -> Option<$type> {
                $type::ALL.iter().copied().find(|word| word.as_str() == name)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.pad(self.as_str()) }
        }
    };
}
pub(crate) use words;

words! {
    /// An agent program whose turns this crate understands.
    Engine {
        /// Claude Code, `--output-format stream-json`.
        ClaudeCode "claude-code",
        /// Codex: the lines of `codex exec --json`, or the messages of `codex app-server`.
        Codex "codex",
        /// Gemini CLI, `--output-format stream-json`.
        Gemini "gemini",
        /// iFlow: plain text that ends with an execution-info block.
        Iflow "iflow",
        /// No agent: a scenario that is played, for demonstrations and tests.
        Scripted "scripted",
    }
}

words! {
    /// Whether a human may be asked.
    Mode {
        /// A turn may end in a question.
        Interactive "interactive",
        /// Nobody is there; a turn ends in a result or an error.
        Auto "auto",
    }
}

words! {
    /// What a worker is there for.
    Role {
        /// Turns a feature into a plan.
        Planner "planner",
        /// Turns the plan into changes.
        Builder "builder",
        /// Tries the changes.
        Qa "qa",
    }
}
