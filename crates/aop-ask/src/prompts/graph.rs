//! Where answers lead. A document that uses `next` anywhere is executable and judged as such; one that never
//! does is read as linear, where doubts are warnings only.

use super::{END, MAX_OPTIONS};
use crate::dialogue::ask::Nav;
use crate::violation::{Report, join, quote};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// A step as far as the graph is concerned.
struct Node<'a> {
    /// Something is picked in it: not only confirmed or judged.
    picks: bool,
    /// And then perhaps something else.
    picks_many: bool,
    labels: Vec<&'a str>,
    next: Vec<Way<'a>>,
}

/// Where one answer leads.
struct Way<'a> {
    /// Its place in the document, where malformed ones may stand before it.
    at: usize,
    answer: &'a str,
    target: &'a str,
}

/// Judges steps and prompts whose own form was judged before; what is malformed is passed over here.
pub(super) fn judge(errors: &mut Report, warnings: &mut Report, steps: &[&Value], prompts: &[&Value]) {
    let nodes: Vec<Node<'_>> = steps.iter().map(|step| node(step)).collect();
    let places: HashMap<&str, usize> =
        steps.iter().enumerate().rev().filter_map(|(i, step)| Some((step.get("id")?.as_str()?, i))).collect();
    let linear = steps.iter().all(|step| step.get("next").is_none());
    unmapped(warnings, steps, prompts);
    if linear {
        let uncovered = clusters(warnings, prompts, &nodes, &places);
        dangling(warnings, &nodes);
        for (index, prompt) in prompts.iter().enumerate() {
            // What an uncovered cluster would hold is missing, not merged.
            let report = if uncovered.contains(&index) { &mut *warnings } else { &mut *errors };
            compressed(report, index, prompt, &nodes, &places, linear);
        }
    } else {
        answers(errors, &nodes, &places);
        reach(errors, steps, &nodes, &places);
        for (index, prompt) in prompts.iter().enumerate() {
            compressed(errors, index, prompt, &nodes, &places, linear);
        }
    }
    prompts.iter().for_each(|prompt| repeated(errors, prompt, &nodes, &places, linear));
}

fn node(step: &Value) -> Node<'_> {
    let list = |key: &str| step.get(key).and_then(Value::as_array).into_iter().flatten();
    let labels = list("options").filter_map(|option| option.get("label")?.as_str()).collect();
    let next = list("next")
        .enumerate()
        .filter_map(|(at, item)| {
            Some(Way { at, answer: item.get("answer")?.as_str()?, target: item.get("next_step")?.as_str()? })
        })
        .collect();
    let is_meant = |wanted: &str| step.get("intent").is_some_and(|intent| intent == wanted);
    let picks_many = is_meant("select_many");
    Node { picks: picks_many || is_meant("select_one"), picks_many, labels, next }
}

/// Every option leads somewhere, exactly once, and that place exists.
fn answers(report: &mut Report, nodes: &[Node<'_>], places: &HashMap<&str, usize>) {
    for (index, node) in nodes.iter().enumerate() {
        let path = join(&join("/steps", index), "next");
        let labels: HashSet<&str> = node.labels.iter().copied().collect();
        let mut covered = HashSet::new();
        for Way { at, answer, target } in &node.next {
            let path = join(&path, at);
            if !labels.contains(answer) {
                let message = format!("the answer {} is not an option of this step", quote(answer));
                report.add("unknown_answer", &join(&path, "answer"), message, "write the label exactly");
            }
            if !covered.insert(*answer) {
                let message = format!("the answer {} leads to two places", quote(answer));
                report.add("duplicate_answer", &join(&path, "answer"), message, "keep one of the two");
            }
            if *target != END && !places.contains_key(target) {
                let message = format!("no step has the id {}", quote(target));
                let hint = "name an existing step, or \"end\"";
                report.add("unknown_step", &join(&path, "next_step"), message, hint);
            }
        }
        for label in node.labels.iter().filter(|label| !covered.contains(*label)) {
            let message = format!("the option {} leads nowhere", quote(label));
            report.add("uncovered_option", &path, message, "add {\"answer\": …, \"next_step\": …} for it");
        }
    }
}

/// Every step can be reached from the first, and an end from every step.
fn reach(report: &mut Report, steps: &[&Value], nodes: &[Node<'_>], places: &HashMap<&str, usize>) {
    let targets = |index: usize| nodes[index].next.iter().filter_map(|way| places.get(way.target).copied());
    let mut reached = HashSet::new();
    let mut open = if nodes.is_empty() { vec![] } else { vec![0] };
    while let Some(index) = open.pop() {
        if reached.insert(index) {
            open.extend(targets(index));
        }
    }
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for index in 0..nodes.len() {
        targets(index).for_each(|target| before[target].push(index));
    }
    let mut ends = HashSet::new();
    let mut open: Vec<usize> =
        (0..nodes.len()).filter(|index| nodes[*index].next.iter().any(|way| way.target == END)).collect();
    while let Some(index) = open.pop() {
        if ends.insert(index) {
            open.extend(&before[index]);
        }
    }
    for (index, step) in steps.iter().enumerate() {
        let name = quote(step.get("id").and_then(Value::as_str).unwrap_or_default());
        let path = join("/steps", index);
        if !reached.contains(&index) {
            let hint = "let an answer of an earlier step lead to it, or remove it";
            report.add("unreachable_step", &path, format!("no way leads to the step {name}"), hint);
        }
        if !ends.contains(&index) {
            let message = format!("from the step {name} no end can be reached");
            report.add(
                "no_way_to_end",
                &path,
                message,
                "let an answer lead to \"end\" or to a step that does",
            );
        }
    }
}

/// A routed prompt needs a step for each cluster that its first step offers. The prompts that lack one.
fn clusters(
    report: &mut Report,
    prompts: &[&Value],
    nodes: &[Node<'_>],
    places: &HashMap<&str, usize>,
) -> HashSet<usize> {
    let mut uncovered = HashSet::new();
    for (index, prompt) in prompts.iter().enumerate() {
        let mapped = mapped(prompt, places);
        let Some((first, rest)) = mapped.split_first() else { continue };
        let offered = nodes[*first].labels.len();
        if is_routed(prompt) && rest.len() < offered {
            let message =
                format!("{offered} clusters are offered, but only {} have a step of their own", rest.len());
            let path = join(&join("/source_prompts", index), "mapped_step_ids");
            report.add(
                "uncovered_cluster",
                &path,
                message,
                "add the missing steps, or use next to say where each leads",
            );
            uncovered.insert(index);
        }
    }
    uncovered
}

/// "Back" in a document that cannot say where back is.
fn dangling(report: &mut Report, nodes: &[Node<'_>]) {
    for (index, node) in nodes.iter().enumerate() {
        for (at, label) in node.labels.iter().enumerate() {
            if leads_back(label) {
                let path = join(&join(&join("/steps", index), "options"), at);
                let message = format!("the option {} leads nowhere without next", quote(label));
                report.add("dangling_back", &path, message, "use next to say where it leads");
            }
        }
    }
}

/// Whether a label says that it leads back. Many options begin with such a word: "Back up the database" is one.
fn leads_back(label: &str) -> bool {
    let lower = label.to_lowercase();
    ["back", "go back", "return"]
        .iter()
        .any(|word| lower == *word || lower.starts_with(&format!("{word} to ")))
}

/// The options of the source among those of a prompt's steps: where each stands, by step and place, and its label. What
/// leads on to another pick is a cluster, or a way back.
fn leaves<'a>(
    mapped: &[usize],
    nodes: &[Node<'a>],
    places: &HashMap<&str, usize>,
) -> Vec<(usize, usize, &'a str)> {
    let own: HashSet<usize> = mapped.iter().copied().filter(|step| nodes[*step].picks).collect();
    let first = mapped.first();
    let mut leaves = Vec::new();
    for step in mapped.iter().copied().filter(|step| own.contains(step)) {
        let node = &nodes[step];
        // Where one after the other is picked, a pick may lead to the next without a step between.
        let is_next = |way: &Way<'_>, target: &usize| {
            node.picks_many && !leads_back(way.answer) && (*target == step || Some(target) == first)
        };
        let leads_on = |way: &&Way<'_>| {
            let pick = places.get(way.target).filter(|target| own.contains(target));
            pick.is_some_and(|target| !is_next(way, target))
        };
        let on: HashSet<&str> = node.next.iter().filter(leads_on).map(|way| way.answer).collect();
        let labels = node.labels.iter().copied().enumerate().filter(|(_, label)| !on.contains(label));
        leaves.extend(labels.map(|(at, label)| (step, at, label)));
    }
    leaves
}

fn is_routed(prompt: &Value) -> bool {
    prompt.get("overflow_strategy").is_some_and(|strategy| strategy == super::TWO_STAGE_ROUTING)
}

/// A routed prompt has each option of the source once: in one of its clusters.
fn repeated(
    report: &mut Report,
    prompt: &Value,
    nodes: &[Node<'_>],
    places: &HashMap<&str, usize>,
    linear: bool,
) {
    if !is_routed(prompt) {
        return;
    }
    let mapped = mapped(prompt, places);
    // Without next the first step has the clusters, and only its label says that an option leads back.
    let steps = &mapped[usize::from(linear).min(mapped.len())..];
    let is_navigation = |label: &str| linear && (leads_back(label) || Nav::is_label(label));
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (step, at, label) in leaves(steps, nodes, places) {
        if !is_navigation(label) && *seen.entry(label).or_insert(step) != step {
            let path = join(&join(&join("/steps", step), "options"), at);
            let message = format!("the option {} stands in two clusters of one prompt", quote(label));
            let hint = "keep it in one of them: each option of the source has one place";
            report.add("repeated_option", &path, message, hint);
        }
    }
}

/// Options may be routed, never merged. Where next says what leads on, the options of the source can be counted. Elsewhere
/// each step but the first costs its parent one option, so there is an upper limit on how many the steps can hold.
fn compressed(
    report: &mut Report,
    index: usize,
    prompt: &Value,
    nodes: &[Node<'_>],
    places: &HashMap<&str, usize>,
    linear: bool,
) {
    let mapped = mapped(prompt, places);
    let Some(count) = prompt.get("source_options_count").and_then(Value::as_u64) else { return };
    if mapped.is_empty() {
        return;
    }
    let (held, most) = if !linear && is_routed(prompt) {
        let labels: HashSet<&str> =
            leaves(&mapped, nodes, places).iter().map(|(_, _, label)| *label).collect();
        (labels.len(), "only")
    } else {
        let shown: usize = mapped.iter().map(|step| nodes[*step].labels.len().min(MAX_OPTIONS)).sum();
        (shown - (mapped.len() - 1).min(shown), "at most")
    };
    if (held as u64) < count {
        let message = format!("the source has {count} options, but its steps hold {most} {held}");
        let path = join(&join("/source_prompts", index), "source_options_count");
        let hint = "give every option of the source a place; merging is forbidden";
        report.add("compressed", &path, message, hint);
    }
}

fn unmapped(report: &mut Report, steps: &[&Value], prompts: &[&Value]) {
    let mapped: HashSet<&str> = prompts
        .iter()
        .filter_map(|prompt| prompt.get("mapped_step_ids")?.as_array())
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (index, step) in steps.iter().enumerate() {
        if let Some(id) = step.get("id").and_then(Value::as_str)
            && !mapped.contains(id)
        {
            let message = format!("the step {} stands for no source prompt", quote(id));
            report.add("unmapped_step", &join("/steps", index), message, "name it in mapped_step_ids");
        }
    }
}

fn mapped(prompt: &Value, places: &HashMap<&str, usize>) -> Vec<usize> {
    let ids = prompt.get("mapped_step_ids").and_then(Value::as_array).into_iter().flatten();
    ids.filter_map(|id| places.get(id.as_str()?).copied()).collect()
}
