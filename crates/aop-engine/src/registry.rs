//! Which engines there are, and what each of them can do.

use crate::codex::{self, Codex};
use crate::gemini::{self, Gemini};
use crate::iflow::{self, Iflow};
use crate::port::{Capabilities, Driver};
use crate::process::Surroundings;
use crate::scripted::{self, Scripted};
use aop_turn::Engine;

/// The driver of an engine; none where it is not built yet.
pub fn driver(engine: Engine, around: &Surroundings) -> Option<Box<dyn Driver>> {
    let around = around.clone();
    match engine {
        Engine::Gemini => Some(Box::new(Gemini { around })),
        Engine::Scripted => Some(Box::new(Scripted { around })),
        Engine::Codex => Some(Box::new(Codex { around })),
        Engine::Iflow => Some(Box::new(Iflow { around })),
        Engine::ClaudeCode => None,
    }
}

/// What an engine can do; none where its driver is not built yet.
pub fn capabilities(engine: Engine) -> Option<Capabilities> {
    match engine {
        Engine::Gemini => Some(gemini::CAPABILITIES),
        Engine::Scripted => Some(scripted::CAPABILITIES),
        Engine::Codex => Some(codex::CAPABILITIES),
        Engine::Iflow => Some(iflow::CAPABILITIES),
        Engine::ClaudeCode => None,
    }
}
