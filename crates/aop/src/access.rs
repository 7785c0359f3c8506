//! Which commands a program that an engine started may use: one row for each. A command that has no row is for people.

use crate::agent;
use aop_engine::process::AGENT_VARIABLE;
use aop_kernel::{ErrorCode, Refusal};
use clap::ArgMatches;

/// For whom a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    /// For agents too. What it shows and does is confined to their feature where it opens the store.
    All,
    /// For people alone: it decides, runs agents, makes credentials, or holds more than one feature.
    People,
}

const COMMANDS: &[(&str, For)] = &[
    ("init", For::People),
    ("demo", For::People),
    ("run", For::People),
    ("resume", For::People),
    ("merge", For::People),
    ("send", For::People),
    ("attach", For::People),
    ("status", For::All),
    ("runners", For::All),
    ("runners forget", For::People),
    ("features list", For::All),
    ("features show", For::All),
    ("features create", For::People),
    ("features mode", For::People),
    ("questions", For::All),
    ("answer", For::People),
    ("ask", For::All),
    ("reopen", For::People),
    ("withdraw", For::All),
    ("retry", For::People),
    ("cancel", For::People),
    ("log", For::All),
    ("replay", For::All),
    ("export", For::People),
    ("import", For::People),
    ("turn judge", For::All),
    ("engine list", For::All),
    ("engine doctor", For::All),
    ("engine command", For::All),
    ("engine patch", For::All),
    ("spec check", For::All),
    ("spec check-answer", For::All),
    ("spec compile", For::All),
    ("spec decode", For::All),
    ("spec import", For::All),
    ("spec preview", For::All),
    ("packet check", For::All),
    ("packet ask", For::All),
    ("prompts check", For::All),
    ("prompts compile", For::All),
    ("prompts tasks", For::All),
    ("tool call", For::All),
    ("mcp", For::All),
    ("mcp install", For::People),
    ("mcp uninstall", For::People),
    ("serve", For::People),
    ("token create", For::People),
    ("token list", For::People),
    ("token revoke", For::People),
    ("store status", For::All),
    ("store migrate", For::People),
    ("store copy", For::People),
    ("doctor", For::All),
    ("explain", For::All),
    ("completions", For::All),
    ("manual", For::All),
    ("guard", For::All),
    ("hook claude", For::All),
    ("hook gemini", For::All),
    ("scripted", For::All),
];

/// The commands that ask. Those by which anything can be called say so call by call.
const ASK: [&str; 2] = ["ask", "packet ask"];

/// Refuses an agent that has yet to be told more: its turn would end with the question, and the rest be lost.
pub(crate) fn may_ask() -> Result<(), Refusal> {
    if !agent::present() {
        return Ok(());
    }
    match agent::engine()?.and_then(|engine| engine.not_yet) {
        Some(why) => Err(Refusal::new(ErrorCode::UnsupportedOperation, why)
            .hint("ask once you have read your next message")),
        None => Ok(()),
    }
}

/// Refuses a program that an engine started what is for people. Before anything else is looked at.
pub(crate) fn check(typed: &ArgMatches) -> Result<(), Refusal> {
    let name = name(typed);
    if ASK.contains(&name.as_str()) {
        may_ask()?;
    }
    if !agent::present() || audience(&name) == For::All {
        return Ok(());
    }
    let message = format!("{AGENT_VARIABLE} is set: an agent may not use `aop {name}`");
    Err(Refusal::new(ErrorCode::ForbiddenForRole, message))
}

fn audience(name: &str) -> For {
    COMMANDS.iter().find(|(command, _)| *command == name).map_or(For::People, |(_, audience)| *audience)
}

/// The words of the command that was typed, without its options.
fn name(typed: &ArgMatches) -> String {
    let steps = std::iter::successors(typed.subcommand(), |(_, below)| below.subcommand());
    steps.map(|(word, _)| word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    /// Every command that can be typed, as its words.
    fn typable(command: &clap::Command, before: &str) -> Vec<String> {
        let below = command.get_subcommands().filter(|below| below.get_name() != "help");
        below
            .flat_map(|below| {
                let name = format!("{before} {}", below.get_name()).trim().to_owned();
                let alone = !below.has_subcommands() || !below.is_subcommand_required_set();
                alone.then(|| name.clone()).into_iter().chain(typable(below, &name)).collect::<Vec<_>>()
            })
            .collect()
    }

    #[test]
    fn every_command_says_whether_an_agent_may_use_it() {
        let mut typable = typable(&Cli::command(), "");
        let mut listed: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
        typable.sort_unstable();
        listed.sort_unstable();
        assert_eq!(typable, listed);
    }

    #[test]
    fn a_command_without_a_row_is_for_people() {
        assert_eq!(audience("backup"), For::People);
    }
}
