//! The way of one question through a dialogue: which native question comes next, and what a reply to it
//! changes. It knows limits only as [`Surface`] data and never a tool's wire format.

use super::ask::{Ask, Item, Mode, Nav, Role, Said};
use super::joined;
use super::route::{self, Node};
use super::surface::{Multi, Surface};
use super::wording::{self, Labels, Names};
use crate::answer::AnswerValue;
use crate::is_blank;
use crate::spec::{Kind, Question};
use std::collections::HashSet;

/// Where a question stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Walk {
    /// What became of it, once that is settled.
    pub(crate) end: Option<End>,
    /// Routes taken since the last pick.
    path: Vec<usize>,
    /// Picked and typed so far, in order; only several-choice questions collect.
    picked: Vec<String>,
    /// Whether the next step is "add another?".
    more: bool,
    /// Why the question is asked again.
    note: Option<String>,
}

/// How a question ended.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Answered(AnswerValue),
    /// It was shown, is optional, and nothing was said.
    Absent,
}

/// What the rest of the dialogue has to do after a reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Then {
    GoOn,
    /// The human wants the question before this one again.
    Previous,
}

impl Walk {
    /// The picks of a several-choice question that is still being asked.
    pub(crate) fn so_far(&self, question: &Question) -> Option<AnswerValue> {
        match &self.end {
            Some(End::Answered(value)) => Some(value.clone()),
            Some(End::Absent) => None,
            None => {
                (!self.picked.is_empty()).then(|| AnswerValue::Many(in_option_order(question, &self.picked)))
            }
        }
    }

    /// Notes why the question is asked again.
    pub(crate) fn remark(&mut self, note: String) {
        self.note = Some(note);
    }

    /// The native question at this point.
    pub(crate) fn ask<'a>(&self, index: usize, question: &'a Question, surface: &Surface) -> Ask<'a> {
        let labels = Labels::of(question);
        let mut names = Names::new(&labels);
        let mut lines = vec![question.question().to_owned()];
        lines.extend(self.note.clone());
        if !self.picked.is_empty() {
            lines.push(format!("Chosen so far: {}.", wording::chosen(question, &self.picked)));
        }
        let (mode, items) = if question.kind() == Kind::FreeText {
            free_text(question, surface, &mut names)
        } else if self.more {
            lines.push("Add another?".to_owned());
            (Mode::One, navigation(question, &mut names, &[Nav::AddAnother, Nav::Done]))
        } else if self.only_text_remains(question) {
            lines.push("Every option is chosen; type what you want to add.".to_owned());
            (Mode::One, navigation(question, &mut names, &[Nav::Done, Nav::Back]))
        } else {
            let remaining = self.remaining(question);
            if several_at_once(question, surface) {
                let nodes: Vec<Node> = remaining.iter().copied().map(Node::Leaf).collect();
                (Mode::Many, items(question, &nodes, &mut names, true))
            } else {
                let (items, within) = self.routed(question, surface, &remaining, &mut names);
                lines.extend(within);
                (Mode::One, items)
            }
        };
        Ask { index, question, text: lines.join("\n\n"), mode, items }
    }

    /// The items of the current routing step, and where it stands in the tree.
    fn routed(
        &self,
        question: &Question,
        surface: &Surface,
        remaining: &[usize],
        names: &mut Names<'_>,
    ) -> (Vec<Item>, Option<String>) {
        let mut nodes = route::tree(question.options(), remaining, surface.max_items);
        // By all of its options: what is left of a routed question keeps its order too.
        let flat = question.options().len() <= surface.max_items;
        let mut within = None;
        for step in &self.path {
            let Some(Node::Group { .. }) = nodes.get(*step) else { break };
            let node = nodes.swap_remove(*step);
            within = Some(format!("Choose within: {}", wording::route_label(question, &node)));
            let Node::Group { children, .. } = node else { break };
            nodes = children;
        }
        let mut items = items(question, &nodes, names, flat);
        let mut nav = Vec::new();
        if !self.path.is_empty() && items.len() < surface.max_items {
            nav.push(Nav::Back);
        }
        if items.len() < surface.min_items || (surface.skip && !question.required()) {
            nav.push(if self.picked.is_empty() { Nav::Skip } else { Nav::Done });
        }
        items.extend(navigation(question, names, &nav));
        (items, within)
    }

    /// The options not picked yet.
    fn remaining(&self, question: &Question) -> Vec<usize> {
        let picked: HashSet<&str> = self.picked.iter().map(String::as_str).collect();
        (0..question.options().len()).filter(|i| !picked.contains(question.options()[*i].label())).collect()
    }

    /// Whether something may still be added, but every option is picked already.
    fn only_text_remains(&self, question: &Question) -> bool {
        !self.more && !self.picked.is_empty() && self.remaining(question).is_empty()
    }

    /// Takes what was said to the ask that [`Walk::ask`] gives at this point.
    pub(crate) fn take(&mut self, ask: &Ask<'_>, said: Said) -> Then {
        let question = ask.question;
        self.note = None;
        match said {
            Said::Nothing => self.nothing(question),
            Said::Unclear(reason) => self.again(reason),
            Said::Answer(value) => self.end = Some(End::Answered(ordered(question, value))),
            Said::Word(text) => match ask.item(&text).map(|item| item.role) {
                Some(role) => return self.follow(question, role),
                None => self.typed(question, text),
            },
            Said::Typed(text) => self.typed(question, text),
            Said::Several { words, typed } => self.several(question, words, typed),
        }
        Then::GoOn
    }

    fn again(&mut self, reason: String) {
        self.path.clear();
        self.note = Some(format!("Asked again: {reason}."));
    }

    fn nothing(&mut self, question: &Question) {
        if !self.picked.is_empty() {
            // What was picked is not dropped, and not everybody who went on to add something finds it: back to where an
            // end can be said. A route is no pick.
            self.path.clear();
            self.more = true;
            self.note = Some("Asked again: the answer was not finished.".to_owned());
        } else if question.required() {
            self.note = Some("Asked again: this question needs an answer.".to_owned());
        } else {
            self.end = Some(End::Absent);
        }
    }

    fn follow(&mut self, question: &Question, role: Role) -> Then {
        match role {
            Role::Pick(index) => self.pick(question, question.options()[index].label().to_owned()),
            Role::Route(child) => self.path.push(child),
            Role::Nav(Nav::AddAnother) => self.more = false,
            Role::Nav(Nav::Done) => self.finish(question),
            Role::Nav(Nav::Skip) => self.nothing(question),
            Role::Nav(Nav::Back) if self.only_text_remains(question) => self.more = true,
            Role::Nav(Nav::Back) => {
                if self.path.pop().is_none() {
                    return Then::Previous;
                }
            }
        }
        Then::GoOn
    }

    fn typed(&mut self, question: &Question, text: String) {
        if is_blank(&text) {
            self.nothing(question);
        } else if question.kind() == Kind::FreeText
            || question.allow_other()
            || question.position(&text).is_some()
        {
            self.pick(question, text);
        } else {
            self.again(no_option(question, &text));
        }
    }

    /// Takes one label or other text.
    fn pick(&mut self, question: &Question, text: String) {
        if question.kind() != Kind::MultiChoice {
            self.end = Some(End::Answered(AnswerValue::One(text)));
            return;
        }
        self.path.clear();
        if self.picked.contains(&text) {
            self.again(format!("{} is chosen already", question.named(&text)));
            return;
        }
        self.picked.push(text);
        self.more = true;
        if !question.allow_other() && self.remaining(question).is_empty() {
            self.finish(question);
        }
    }

    /// Takes several words at once, all of them or none. One typed beside them may be followed by another,
    /// so the human is asked for more; without it the reply is complete.
    fn several(&mut self, question: &Question, words: Vec<String>, typed: Option<String>) {
        let typed = typed.filter(|text| !is_blank(text));
        let complete = typed.is_none();
        let labels: HashSet<&str> = question.options().iter().map(|option| option.label()).collect();
        let mut seen: HashSet<String> = self.picked.iter().cloned().collect();
        let mut taken = Vec::with_capacity(words.len());
        for word in words {
            if !labels.contains(word.as_str()) && (!question.allow_other() || is_blank(&word)) {
                return self.again(no_option(question, &word));
            }
            if !seen.insert(word.clone()) {
                return self.again(format!("{} is chosen twice", question.named(&word)));
            }
            taken.push(word);
        }
        if let Some(text) = typed {
            if !labels.contains(text.as_str()) && !question.allow_other() {
                return self.again(no_option(question, &text));
            }
            // Ticked and typed is said twice and meant once.
            if seen.insert(text.clone()) {
                taken.push(text);
            }
        }
        if taken.is_empty() {
            return self.nothing(question);
        }
        self.picked.extend(taken);
        self.more = true;
        if complete || (!question.allow_other() && self.remaining(question).is_empty()) {
            self.finish(question);
        }
    }

    fn finish(&mut self, question: &Question) {
        let picked = in_option_order(question, &self.picked);
        self.end = Some(End::Answered(AnswerValue::Many(picked)));
    }
}

/// A free text question: a field of its own, or on choice-only tools the free-form entry beside two
/// navigation items.
fn free_text(question: &Question, surface: &Surface, names: &mut Names<'_>) -> (Mode, Vec<Item>) {
    if surface.text {
        return (Mode::Text, Vec::new());
    }
    (Mode::One, navigation(question, names, &[Nav::Skip, Nav::Back]))
}

/// Whether the tool can take all picks of this question in one reply without ambiguity.
fn several_at_once(question: &Question, surface: &Surface) -> bool {
    if question.kind() != Kind::MultiChoice {
        return false;
    }
    match surface.multi {
        Multi::OneByOne => false,
        // One option alone is offered beside `Skip`, and a list has no place for that.
        Multi::List => question.allow_other() || question.options().len() >= surface.min_items,
        // Free text may contain the separator, so it cannot be told from the labels beside it.
        Multi::Joined => {
            let labels: Vec<&str> = question.options().iter().map(|option| option.label()).collect();
            !question.allow_other()
                && (surface.min_items..=surface.max_items).contains(&labels.len())
                && joined::is_unambiguous(&labels)
        }
    }
}

/// Options and routes as items. What is recommended comes first where all options stand together.
pub(crate) fn items(question: &Question, nodes: &[Node], names: &mut Names<'_>, flat: bool) -> Vec<Item> {
    let recommended = &names.labels.recommended;
    let mut items: Vec<Item> = nodes
        .iter()
        .enumerate()
        .map(|(child, node)| match node {
            Node::Leaf(index) => {
                let option = &question.options()[*index];
                let mark = if recommended.contains(option.label()) { wording::RECOMMENDED } else { "" };
                Item {
                    label: option.label().to_owned(),
                    description: format!("{mark}{}", option.description()),
                    preview: option.preview().map(str::to_owned),
                    role: Role::Pick(*index),
                }
            }
            Node::Group { .. } => Item {
                label: names.give(&wording::route_label(question, node)),
                description: wording::route_description(question, node, recommended),
                preview: None,
                role: Role::Route(child),
            },
        })
        .collect();
    if flat {
        items.sort_by_key(|item| !recommended.contains(item.label.as_str()));
    }
    items
}

fn navigation(question: &Question, names: &mut Names<'_>, navs: &[Nav]) -> Vec<Item> {
    let typing = question.kind() == Kind::FreeText;
    navs.iter()
        .map(|nav| Item {
            label: names.give(nav.label()),
            description: wording::nav_description(*nav, question, typing).to_owned(),
            preview: None,
            role: Role::Nav(*nav),
        })
        .collect()
}

fn no_option(question: &Question, text: &str) -> String {
    format!("{} is not one of the options", question.named(text))
}

fn ordered(question: &Question, value: AnswerValue) -> AnswerValue {
    match value {
        AnswerValue::One(_) => value,
        AnswerValue::Many(items) => AnswerValue::Many(in_option_order(question, &items)),
    }
}

/// Labels in the order of the options, other texts after them in the order they were given.
fn in_option_order(question: &Question, picked: &[String]) -> Vec<String> {
    let chosen: HashSet<&str> = picked.iter().map(String::as_str).collect();
    let labels: HashSet<&str> = question.options().iter().map(|option| option.label()).collect();
    let in_order =
        question.options().iter().map(|option| option.label()).filter(|label| chosen.contains(label));
    let others = picked.iter().map(String::as_str).filter(|text| !labels.contains(text));
    in_order.chain(others).map(str::to_owned).collect()
}
