//! One native request of the terminal dialogue, shown; its reply, as the dialogue takes it.

use super::editor::{Editor, Shown};
use super::list::List;
use super::stage::{End, Wanted, Widget, show};
use super::widgets::{Line, Menu, Pause};
use crate::output::style::{bold, clean, cyan, dim, yellow};
use crate::output::talk;
use aop_ask::{RECOMMENDED, is_blank};
use aop_kernel::signs::visible;
use serde_json::{Value, json};

/// Why there is no reply.
pub(super) enum Stop {
    /// Esc.
    Escaped,
    /// Ctrl-C.
    Interrupted,
    /// The question was closed elsewhere.
    Withdrawn,
    /// The terminal failed.
    Failed(String),
}

/// How a request is put.
pub(super) struct Look<'a> {
    /// What stands before the question: which of how many, and whether it may be left out.
    pub(super) place: &'a str,
    /// What stands above it.
    pub(super) above: &'a str,
    /// What Esc does.
    pub(super) escape: &'a str,
    /// The answer that it begins with: labels, or text.
    pub(super) begun: &'a [String],
    /// Whether nothing may be chosen by enter alone.
    pub(super) careful: bool,
    /// Whether nobody may see what is answered.
    pub(super) secret: bool,
    pub(super) wanted: &'a Wanted,
}

impl Look<'_> {
    /// What the asker wrote, as a terminal may show it.
    fn words(&self, text: &str) -> String {
        if self.careful { visible(text) } else { clean(text) }
    }

    /// What is said before all other help.
    fn unseen(&self) -> &'static str {
        if self.secret { "not shown; " } else { "" }
    }

    /// How what the human types is shown.
    fn shown(&self) -> Shown {
        if self.secret { Shown::Hidden } else { Shown::Plainly }
    }
}

/// What stands before a question.
const MARK: &str = "? ";

/// The last entry of a list that also takes free text.
const OTHER: &str = "something else …";

/// The entry for own words that nobody may see.
const UNSEEN: &str = "your own words (not shown)";

/// Draws the request and waits for the human.
pub(super) fn draw(input: &Value, look: &Look<'_>) -> Result<Value, Stop> {
    let options: Vec<&Value> = input["options"].as_array().into_iter().flatten().collect();
    // Whoever gives a permission has all of it before their eyes, however long it is.
    let above = if look.careful { all_previews(&options, look) } else { String::new() };
    // The question stays above what is painted again and again, so it may be of any length.
    let question = look.words(input["question"].as_str().unwrap_or_default());
    let (first, rest) = question.split_once('\n').unwrap_or((&question, ""));
    let rest: String = rest.lines().map(|line| format!("\n  {line}")).collect();
    let question = format!("{above}{}{}{}{rest}", cyan(MARK), dim(look.place), bold(first));
    talk(&question);
    let look = &Look { above: &format!("{}\n{question}", look.above), ..*look };
    let other = input["allow_other"] == true;
    match input["kind"].as_str() {
        Some("select") => select(&options, other, look),
        Some("multi_select") => multi_select(&options, other, input["required"] == true, look),
        _ => {
            let help = if input["required"] == true { "" } else { SKIPS };
            let help = format!("{}{help}enter to answer, {}", look.unseen(), look.escape);
            let mut typed = look.begun.first().cloned().unwrap_or_default();
            let ended = line(&mut typed, &help, look);
            unless_sent(ended, &[&typed], look)?;
            answered(&typed, look);
            Ok(json!({"text": typed}))
        }
    }
}

/// How an optional question is left out.
const SKIPS: &str = "empty Enter skips it, ";

/// The previews of the options, one below the other.
fn all_previews(options: &[&Value], look: &Look<'_>) -> String {
    let shown = |option: &&Value| {
        let label = look.words(option["label"].as_str().unwrap_or_default());
        let preview = look.words(option["preview"].as_str()?);
        Some(format!("{}\n{preview}\n", dim(&format!("── {label}"))))
    };
    options.iter().filter_map(shown).collect()
}

/// The preview of each option, of which the list shows that of the entry that is pointed at: together they may be longer
/// than any terminal.
fn previews(options: &[&Value], look: &Look<'_>) -> Vec<Option<String>> {
    let shown = |option: &&Value| {
        let label = look.words(option["label"].as_str().unwrap_or_default());
        Some(format!("── {label}\n{}", look.words(option["preview"].as_str()?)))
    };
    if look.careful { Vec::new() } else { options.iter().map(shown).collect() }
}

/// "label — description", or the label alone when the description says no more; a mark before it stays.
fn entries(options: &[&Value], look: &Look<'_>) -> Vec<String> {
    let entry = |option: &&Value| {
        let text = |key: &str, line_end: &str| {
            look.words(option[key].as_str().unwrap_or_default()).replace('\n', line_end)
        };
        // Two labels never look the same.
        let (label, description) = (text("label", "↵"), text("description", " "));
        let says_more = match description.strip_suffix(&label) {
            Some(mark @ ("" | RECOMMENDED)) => mark.trim_end(),
            _ => description.as_str(),
        };
        if says_more.is_empty() { label } else { format!("{label} — {says_more}") }
    };
    options.iter().map(entry).collect()
}

fn label<'a>(options: &[&'a Value], index: usize) -> &'a str {
    options.get(index).and_then(|option| option["label"].as_str()).unwrap_or_default()
}

fn position(options: &[&Value], word: &str) -> Option<usize> {
    options.iter().position(|option| option["label"] == word)
}

/// Shows a widget to its end.
fn shown(widget: &mut impl Widget, look: &Look<'_>) -> Result<(), Stop> {
    ended(show(widget, Some(look.above), look.wanted))
}

fn ended(end: std::io::Result<End>) -> Result<(), Stop> {
    match end {
        Ok(End::Done) => Ok(()),
        Ok(End::Escaped) => Err(Stop::Escaped),
        Ok(End::Interrupted) => Err(Stop::Interrupted),
        Ok(End::Withdrawn) => Err(Stop::Withdrawn),
        Err(error) => Err(Stop::Failed(error.to_string())),
    }
}

/// What was answered stays below its question.
fn answered(text: &str, look: &Look<'_>) {
    let text = match text {
        text if is_blank(text) => dim("(nothing)"),
        _ if look.secret => dim("(not shown)"),
        text => cyan(&clean(text).replace('\n', "\n  ")),
    };
    talk(&format!("  {text}"));
}

/// What was typed stays too when the question is gone before that could be sent.
fn unless_sent<T>(ended: Result<T, Stop>, typed: &[&str], look: &Look<'_>) -> Result<T, Stop> {
    let typed: Vec<&str> = typed.iter().copied().filter(|text| !is_blank(text)).collect();
    if matches!(ended, Err(Stop::Withdrawn)) && !typed.is_empty() {
        let text = if look.secret { "(not shown)".to_owned() } else { clean(&typed.join(", ")) };
        talk(&format!("  {} {}", yellow("not sent:"), text.replace('\n', "\n  ")));
    }
    ended
}

/// Waits for enter, so that what is typed meanwhile gets to nobody. `by_itself` says when it goes on without that.
pub(super) fn pause(by_itself: &str, wanted: &Wanted) -> Result<(), Stop> {
    let mut pause = Pause { help: &format!("press Enter to go on{by_itself}") };
    ended(show(&mut pause, None, wanted))
}

/// Has a text typed, or changed. It is kept also when that is left.
fn line(text: &mut String, help: &str, look: &Look<'_>) -> Result<(), Stop> {
    let mut line = Line { editor: Editor::new(text), shown: look.shown(), help };
    let ended = shown(&mut line, look);
    line.editor.text().clone_into(text);
    ended
}

fn select(options: &[&Value], other: bool, look: &Look<'_>) -> Result<Value, Stop> {
    let help = format!(
        "{}↑↓ choose, type to filter (backspace clears), enter to answer, {}",
        look.unseen(),
        look.escape
    );
    let own = format!("{}your own words: enter to answer, esc for the list", look.unseen());
    let mut list = List::one(entries(options, look), look.careful);
    if other {
        list = list.with_always(OTHER);
    }
    let begun = look.begun.first().map(String::as_str).unwrap_or_default();
    let known = position(options, begun);
    if let Some(index) = known.or((other && !begun.is_empty()).then_some(options.len())) {
        list = list.at(index);
    }
    let mut words = if known.is_some() { String::new() } else { begun.to_owned() };
    let mut menu = Menu { list, previews: previews(options, look), shown: look.shown(), help: &help };
    loop {
        let ended = shown(&mut menu, look);
        let typed = if words.is_empty() { menu.list.typed() } else { &words };
        unless_sent(ended, &[typed], look)?;
        let index = menu.list.chosen().unwrap_or_default();
        if index < options.len() {
            answered(label(options, index), look);
            return Ok(json!({"selected": [label(options, index)]}));
        }
        // What was typed to find something is taken over.
        if !menu.list.typed().is_empty() {
            menu.list.typed().clone_into(&mut words);
        }
        let ended = line(&mut words, &own, look);
        match unless_sent(ended, &[&words], look) {
            Ok(()) if is_blank(&words) => {}
            Ok(()) => {
                answered(&words, look);
                return Ok(json!({"text": words}));
            }
            Err(Stop::Escaped) => {}
            Err(stop) => return Err(stop),
        }
    }
}

fn multi_select(options: &[&Value], other: bool, required: bool, look: &Look<'_>) -> Result<Value, Stop> {
    let help = format!(
        "{}↑↓ move, space to choose, type to filter (backspace clears), {}enter to answer, {}",
        look.unseen(),
        if required { "" } else { SKIPS },
        look.escape
    );
    let mut several = Several::new(options, other, look, &help);
    for word in look.begun.iter().filter(|word| other || position(options, word).is_some()) {
        several.choose(word);
    }
    let mut typed = String::new();
    loop {
        let ended = shown(&mut several.menu, look);
        several.unless_sent(ended, &typed)?;
        if several.menu.list.is_always_meant() {
            // What was typed to find something is taken over.
            if !several.menu.list.typed().is_empty() {
                several.menu.list.typed().clone_into(&mut typed);
                several.menu.list.show_all();
            }
            let ended = own_words(&mut several, &mut typed);
            several.menu.list.leave_always();
            match several.unless_sent(ended, &typed) {
                Ok(Added::Any) => {}
                Ok(Added::None) | Err(Stop::Escaped) => continue,
                Err(stop) => return Err(stop),
            }
        }
        let selected = several.chosen();
        answered(&selected.join(", "), look);
        return Ok(json!({"selected": selected}));
    }
}

/// What is chosen of the options and beyond them. Words of the human's own stand in the list behind the options, ticked
/// until somebody takes that away, so that nothing is lost on the way back there.
struct Several<'a> {
    menu: Menu<'a>,
    /// What each entry of the list says in an answer; the one for further words says nothing.
    words: Vec<String>,
    look: &'a Look<'a>,
}

impl<'a> Several<'a> {
    fn new(options: &[&Value], other: bool, look: &'a Look<'a>, help: &'a str) -> Self {
        let mut list = List::several(entries(options, look));
        if other {
            list = list.with_always(OTHER);
        }
        let menu = Menu { list, previews: previews(options, look), shown: look.shown(), help };
        let words = (0..options.len()).map(|index| label(options, index).to_owned()).collect();
        Several { menu, words, look }
    }

    /// Ticks a word. Ticked and typed is said twice and meant once.
    fn choose(&mut self, word: &str) {
        let known = self.words.iter().position(|known| known == word);
        let index = known.unwrap_or_else(|| {
            let entry = if self.look.secret { UNSEEN.to_owned() } else { clean(word).replace('\n', " ") };
            self.menu.list.add(entry);
            self.words.push(word.to_owned());
            self.words.len() - 1
        });
        self.menu.list.tick(index, true);
    }

    fn chosen(&self) -> Vec<String> {
        let ticked = self.menu.list.ticked().into_iter();
        ticked.filter_map(|index| self.words.get(index).cloned()).collect()
    }

    /// What was chosen and typed stays when the question is gone before that could be sent.
    fn unless_sent<T>(&self, ended: Result<T, Stop>, typed: &str) -> Result<T, Stop> {
        let chosen = self.chosen();
        let words = chosen.iter().map(String::as_str).chain([self.menu.list.typed(), typed]);
        unless_sent(ended, &words.collect::<Vec<_>>(), self.look)
    }
}

/// Whether any words of the human's own came.
enum Added {
    Any,
    None,
}

/// Takes texts of the human's own, until an empty one. What is typed stays also when it is left.
fn own_words(several: &mut Several<'_>, typed: &mut String) -> Result<Added, Stop> {
    let look = several.look;
    let mut added: Vec<String> = Vec::new();
    loop {
        let help = match added.as_slice() {
            [] => "your own answer: enter to add it, esc for the list".to_owned(),
            words => {
                let words = if look.secret { words.len().to_string() } else { words.join(", ") };
                format!(
                    "Added: {}. Add another, or press Enter on an empty line to send; esc for the list",
                    clean(&words).replace('\n', " ")
                )
            }
        };
        line(typed, &format!("{}{help}", look.unseen()), look)?;
        match (is_blank(typed), added.is_empty()) {
            (true, true) => return Ok(Added::None),
            (true, false) => return Ok(Added::Any),
            (false, _) => {
                several.choose(typed);
                added.push(std::mem::take(typed));
            }
        }
    }
}
