//! Commands that people are shown are commands that the program takes: the examples of every help text, and whatever
//! README.md and docs/ name, in a block or within a sentence.

use crate::cli::Cli;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The longest line of an example: it fits the smallest usual terminal.
const WIDTH: usize = 80;

/// The words of a command as a shell would give them to the program.
fn words(line: &str) -> Vec<String> {
    let script = format!("aop() {{ printf '%s\\0' \"$@\"; }}\n{line}\n");
    let output = Command::new("sh").args(["-f", "-c", &script]).env_clear().output().unwrap();
    assert!(output.status.success(), "no shell takes: {line}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

/// What is typed: without a remark behind it, and without what another program does with it.
fn typed(line: &str) -> &str {
    let ends = ["  ", " #", " | ", " > ", " < ", " && ", ") ||"];
    let end = ends.iter().filter_map(|end| line.find(end)).min().unwrap_or(line.len());
    line[..end].trim_end()
}

/// Why the program would not take it. What a command is named with need not be `complete`.
fn refused(line: &str, complete: bool) -> Option<String> {
    let words = std::iter::once("aop".to_owned()).chain(words(line));
    let error = Cli::try_parse_from(words).err()?;
    let is_taken = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => !complete,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => !complete && is_placeholder(&error),
        _ => false,
    };
    (!is_taken).then(|| format!("`{line}`: {error}"))
}

/// `FILE`, `SEQ`, `TARGET`: a word that stands for a value.
fn is_placeholder(error: &clap::Error) -> bool {
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else { return false };
    !value.is_empty() && value.chars().all(|c| c.is_ascii_uppercase())
}

fn commands(command: &clap::Command) -> Vec<clap::Command> {
    let below = command.get_subcommands().flat_map(commands);
    std::iter::once(command.clone()).chain(below).collect()
}

#[test]
fn every_example_of_a_help_text_fits_80_columns_and_is_taken() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for command in commands(&Cli::command()) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = help.lines().filter(|line| line.starts_with("  "));
        wrong.extend(
            lines.filter(|line| line.chars().count() > WIDTH).map(|line| format!("too long: {line}")),
        );
        for line in help.replace("\\\n", " ").lines().filter_map(|line| line.trim().strip_prefix("aop ")) {
            seen += 1;
            wrong.extend(refused(typed(&format!("aop {}", line.trim())), true));
        }
    }
    assert!(seen > 80, "only {seen} examples were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// README.md and every page below docs/, the generated ones aside.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let below = ["docs", "docs/howto", "docs/bench"].map(|folder| root.join(folder));
    let found = below.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let found = found.map(|entry| entry.unwrap().path());
    let found = found.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md"]
        .map(|page| root.join(page))
        .into_iter()
        .chain(found)
        .collect()
}

/// A command as prose writes it: what may be left out is written, of several the first, and `…` is nothing.
fn spelled_out(text: &str) -> String {
    let text = text.replace(['[', ']', '…'], "");
    let words = text.split_whitespace().map(|word| word.split('|').next().unwrap_or_default());
    words.collect::<Vec<_>>().join(" ")
}

/// Blocks that are run are proved by running them; these are the others, and what stands within sentences.
#[test]
fn every_command_that_a_page_names_is_taken() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let mut check = |line: &str, complete: bool| {
            seen += 1;
            wrong.extend(refused(line, complete).map(|why| format!("{}: {why}", page.display())));
        };
        for (number, part) in text.split("\n```").enumerate() {
            if number % 2 == 1 {
                let (kind, block) = part.split_once('\n').unwrap_or_default();
                let lines = block.lines().filter(|line| kind == "sh" && line.starts_with("aop "));
                lines
                    .filter(|line| !line.contains(['$', '\\', '\'']))
                    .for_each(|line| check(typed(line), true));
                continue;
            }
            let one_line = part.replace('\n', " ");
            let spans = one_line.split('`').skip(1).step_by(2);
            // `aop → store` is about crates.
            spans
                .filter(|span| span.starts_with("aop ") && !span.contains('→'))
                .for_each(|span| check(&spelled_out(span), false));
        }
    }
    assert!(seen > 150, "only {seen} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
