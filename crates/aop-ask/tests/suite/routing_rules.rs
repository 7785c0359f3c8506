//! Routing trees: nothing lost, nothing twice, small steps, few of them.

use aop_ask::QuestionSpec;
use aop_ask::dialogue::route::{Node, tree};
use proptest::prelude::*;
use serde_json::{Value, json};

fn options(clusters: &[Option<u8>]) -> QuestionSpec {
    let options: Vec<Value> = clusters
        .iter()
        .enumerate()
        .map(|(index, cluster)| match cluster {
            Some(cluster) => {
                json!({"label": format!("L{index}"), "description": "d", "cluster": format!("c{cluster}")})
            }
            None => json!({"label": format!("L{index}"), "description": "d"}),
        })
        .collect();
    let question = json!({"id": "a", "header": "h", "question": "q", "kind": "single_choice", "required": true,
                          "options": options});
    QuestionSpec::from_json(&json!({"version": 1, "topic": "t", "questions": [question]})).unwrap()
}

fn build(clusters: &[Option<u8>], fan_out: usize) -> Vec<Node> {
    let spec = options(clusters);
    let members: Vec<usize> = (0..clusters.len()).collect();
    tree(spec.questions()[0].options(), &members, fan_out)
}

fn depth(nodes: &[Node]) -> usize {
    let below = |node: &Node| match node {
        Node::Leaf(_) => 0,
        Node::Group { children, .. } => depth(children),
    };
    1 + nodes.iter().map(below).max().unwrap_or(0)
}

fn step_sizes(nodes: &[Node], sizes: &mut Vec<usize>) {
    sizes.push(nodes.len());
    for node in nodes {
        if let Node::Group { children, .. } = node {
            step_sizes(children, sizes);
        }
    }
}

proptest! {
    #[test]
    fn every_option_is_a_leaf_exactly_once_and_no_step_is_too_large(
        clusters in prop::collection::vec(prop::option::of(0u8..8), 1..200),
        fan_out in 3usize..=4,
    ) {
        let nodes = build(&clusters, fan_out);
        let mut leaves: Vec<usize> = nodes.iter().flat_map(Node::leaves).collect();
        leaves.sort_unstable();
        prop_assert_eq!(leaves, (0..clusters.len()).collect::<Vec<_>>());
        let mut sizes = Vec::new();
        step_sizes(&nodes, &mut sizes);
        prop_assert!(sizes.iter().all(|size| *size <= fan_out));
        prop_assert!(clusters.len() == 1 || sizes.iter().all(|size| *size >= 2));
    }
}

#[test]
fn depth_is_logarithmic() {
    for (count, steps) in [(3, 1), (4, 2), (9, 2), (10, 3), (27, 3), (28, 4), (10_000, 9)] {
        assert_eq!(depth(&build(&vec![None; count], 3)), steps, "{count}");
    }
}

#[test]
fn the_authors_clusters_are_the_first_stage() {
    let nodes = build(&[Some(1), Some(2), Some(1), Some(2), None], 3);
    let names: Vec<_> = nodes
        .iter()
        .map(|node| match node {
            Node::Leaf(index) => format!("leaf {index}"),
            Node::Group { name, .. } => format!("{name:?} {:?}", node.leaves()),
        })
        .collect();
    assert_eq!(names, ["Some(\"c1\") [0, 2]", "Some(\"c2\") [1, 3]", "leaf 4"]);
}

#[test]
fn without_clusters_order_is_kept() {
    let leaves: Vec<usize> = build(&[None; 14], 3).iter().flat_map(Node::leaves).collect();
    assert_eq!(leaves, (0..14).collect::<Vec<_>>());
}
