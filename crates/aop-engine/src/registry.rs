//! Which engines there are, and what each of them can do.

use crate::claude::{self, ClaudeCode};
use crate::codex::{self, Codex};
use crate::gemini::{self, Gemini};
use crate::iflow::{self, Iflow};
use crate::port::{Capabilities, Driver};
use crate::process::Surroundings;
use crate::scripted::{self, Scripted};
use aop_turn::Engine;

/// The driver of an engine.
pub fn driver(engine: Engine, around: &Surroundings) -> Box<dyn Driver> {
    let around = around.clone();
    match engine {
        Engine::ClaudeCode => Box::new(ClaudeCode { around }),
        Engine::Codex => Box::new(Codex { around }),
        Engine::Gemini => Box::new(Gemini { around }),
        Engine::Iflow => Box::new(Iflow { around }),
        Engine::Scripted => Box::new(Scripted { around }),
    }
}

/// What an engine can do.
pub fn capabilities(engine: Engine) -> Capabilities {
    match engine {
        Engine::ClaudeCode => claude::CAPABILITIES,
        Engine::Codex => codex::CAPABILITIES,
        Engine::Gemini => gemini::CAPABILITIES,
        Engine::Iflow => iflow::CAPABILITIES,
        Engine::Scripted => scripted::CAPABILITIES,
    }
}
