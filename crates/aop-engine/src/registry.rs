//! Which engines there are, and what each of them can do.

use crate::claude::{self, ClaudeCode};
use crate::codex::{self, Codex};
use crate::port::{Capabilities, Driver};
use crate::process::Surroundings;
use crate::scripted::{self, Scripted};
use aop_turn::Engine;

/// The driver of an engine; none where it is not built yet.
pub fn driver(engine: Engine, around: &Surroundings) -> Option<Box<dyn Driver>> {
    let around = around.clone();
    match engine {
        Engine::ClaudeCode => Some(Box::new(ClaudeCode { around })),
        Engine::Scripted => Some(Box::new(Scripted { around })),
        Engine::Codex => Some(Box::new(Codex { around })),
        Engine::Gemini | Engine::Iflow => None,
    }
}

/// What an engine can do; none where its driver is not built yet.
pub fn capabilities(engine: Engine) -> Option<Capabilities> {
    match engine {
        Engine::ClaudeCode => Some(claude::CAPABILITIES),
        Engine::Scripted => Some(scripted::CAPABILITIES),
        Engine::Codex => Some(codex::CAPABILITIES),
        Engine::Gemini | Engine::Iflow => None,
    }
}
