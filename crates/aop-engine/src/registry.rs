//! Which engines there are, and what each of them can do.

use crate::claude::{self, ClaudeCode};
use crate::codex::{self, Codex};
use crate::gemini::{self, Gemini};
use crate::iflow::{self, Iflow};
use crate::port::{Capabilities, Driver, EngineError};
use crate::process::Surroundings;
use crate::scripted::{self, Scripted};
use aop_turn::Engine;
use aop_turn::command::Permissions;

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

/// Refuses an engine that would run its tools without a word where people are to be asked before that.
pub fn check_permissions(engine: Engine, permissions: Permissions) -> Result<(), EngineError> {
    if permissions == Permissions::Auto || capabilities(engine).permission_questions {
        return Ok(());
    }
    let able = Engine::ALL.iter().filter(|engine| capabilities(**engine).permission_questions);
    let able: Vec<&str> = able.map(|engine| engine.as_str()).collect();
    Err(EngineError::Unusable {
        engine,
        cause: "engines.permissions is ask, and it cannot ask for permissions".to_owned(),
        hint: format!(
            "set engines.permissions: auto in aop.yaml, so that it runs its tools unasked, or choose an engine that \
             asks: {}",
            able.join(" or ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::check_permissions;
    use aop_turn::Engine;
    use aop_turn::command::Permissions;

    #[test]
    fn what_cannot_ask_for_permissions_is_refused_where_they_are_to_be_asked_for() {
        for engine in Engine::ALL {
            assert_eq!(check_permissions(*engine, Permissions::Auto), Ok(()));
            let asks = matches!(engine, Engine::ClaudeCode | Engine::Codex);
            assert_eq!(check_permissions(*engine, Permissions::Ask).is_ok(), asks, "{engine}");
        }
    }
}
