//! Routing trees: how more options than a tool can show become several small steps.
//!
//! The split is deterministic and keeps order: by the author's clusters where there are some, else into
//! balanced contiguous parts. Every option is a leaf exactly once; no option is merged or left out. A part
//! with a single member is that member, so no step offers a choice of one.

use crate::spec::Choice;

/// A step's child: an option, or a further step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// The option with this index.
    Leaf(usize),
    /// A further step.
    Group {
        /// The author's cluster, if the group is one.
        name: Option<String>,
        /// At least two, at most as many as the step's limit.
        children: Vec<Node>,
    },
}

impl Node {
    /// The options below this node, in display order.
    pub fn leaves(&self) -> Vec<usize> {
        let mut leaves = Vec::new();
        self.collect(&mut leaves);
        leaves
    }

    fn collect(&self, leaves: &mut Vec<usize>) {
        match self {
            Node::Leaf(index) => leaves.push(*index),
            Node::Group { children, .. } => children.iter().for_each(|child| child.collect(leaves)),
        }
    }
}

/// The first step for `members` of `options` when a step may have at most `fan_out` children.
pub fn tree(options: &[Choice], members: &[usize], fan_out: usize) -> Vec<Node> {
    // Routing into one child would never end.
    let fan_out = fan_out.max(2);
    let leaves = || members.iter().copied().map(Node::Leaf).collect::<Vec<_>>();
    if members.len() <= fan_out {
        return leaves();
    }
    let clusters = clusters(options, members);
    if clusters.len() < 2 {
        return split(leaves(), fan_out);
    }
    let nodes = clusters.into_iter().map(|(name, members)| {
        let mut children = split(members.into_iter().map(Node::Leaf).collect(), fan_out);
        match children.len() {
            1 => children.remove(0),
            _ => Node::Group { name: name.map(str::to_owned), children },
        }
    });
    split(nodes.collect(), fan_out)
}

/// Members by cluster, clusters in order of first appearance. Options without one stay together.
fn clusters<'a>(options: &'a [Choice], members: &[usize]) -> Vec<(Option<&'a str>, Vec<usize>)> {
    let mut places = std::collections::HashMap::new();
    let mut clusters: Vec<(Option<&str>, Vec<usize>)> = Vec::new();
    for &index in members {
        let name = options.get(index).and_then(Choice::cluster);
        let place = *places.entry(name).or_insert_with(|| {
            clusters.push((name, Vec::new()));
            clusters.len() - 1
        });
        clusters[place].1.push(index);
    }
    clusters
}

/// Splits nodes into at most `fan_out` contiguous parts whose sizes differ by at most one.
fn split(nodes: Vec<Node>, fan_out: usize) -> Vec<Node> {
    if nodes.len() <= fan_out {
        return nodes;
    }
    let (size, longer) = (nodes.len() / fan_out, nodes.len() % fan_out);
    let mut rest = nodes.into_iter();
    (0..fan_out)
        .map(|part| {
            let mut members: Vec<Node> = rest.by_ref().take(size + usize::from(part < longer)).collect();
            match members.len() {
                1 => members.remove(0),
                _ => Node::Group { name: None, children: split(members, fan_out) },
            }
        })
        .collect()
}
