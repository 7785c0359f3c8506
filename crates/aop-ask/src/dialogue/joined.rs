//! Several labels in one text, joined by a comma and a space, as some tools return them. Whether that can be
//! read back depends on the labels, so it is decided before the human is asked.

use std::collections::HashMap;

const SEPARATOR: &str = ", ";

/// Labels longer than this in sum are not worth the search for an ambiguity.
const SEARCHED: usize = 4096;

/// Whether every selection of `labels`, in whatever order it is joined, can be told from every other.
pub(crate) fn is_unambiguous(labels: &[&str]) -> bool {
    if labels.iter().all(|label| !label.contains(SEPARATOR)) {
        return true;
    }
    if labels.len() > 4 || labels.iter().map(|label| label.len()).sum::<usize>() > SEARCHED {
        return false;
    }
    let mut meanings = HashMap::new();
    arrangements(labels, &mut Vec::new(), &mut |order| {
        let text = order.iter().map(|i| labels[*i]).collect::<Vec<_>>().join(SEPARATOR);
        let set = order.iter().fold(0u32, |set, i| set | 1 << i);
        *meanings.entry(text).or_insert(set) == set
    })
}

/// Calls `visit` with every non-empty ordered selection until it says no.
fn arrangements(labels: &[&str], order: &mut Vec<usize>, visit: &mut impl FnMut(&[usize]) -> bool) -> bool {
    for next in 0..labels.len() {
        if order.contains(&next) {
            continue;
        }
        order.push(next);
        let go_on = visit(order) && arrangements(labels, order, visit);
        order.pop();
        if !go_on {
            return false;
        }
    }
    true
}

/// The labels that `text` joins, if it joins labels and nothing else.
pub(crate) fn split<'a>(text: &str, labels: &[&'a str]) -> Option<Vec<&'a str>> {
    fn search<'a>(rest: &str, labels: &[&'a str], found: &mut Vec<&'a str>) -> bool {
        for label in labels {
            if found.contains(label) {
                continue;
            }
            let Some(after) = rest.strip_prefix(label) else { continue };
            found.push(label);
            if after.is_empty()
                || after.strip_prefix(SEPARATOR).is_some_and(|rest| search(rest, labels, found))
            {
                return true;
            }
            found.pop();
        }
        false
    }
    let mut found = Vec::new();
    search(text, labels, &mut found).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_that_joins_two_others_is_ambiguous() {
        assert!(!is_unambiguous(&["A", "B", "A, B"]));
        assert!(!is_unambiguous(&["A, B", "B, C", "A", "C"]));
        assert!(is_unambiguous(&["A", "B", "C"]));
        assert!(is_unambiguous(&["Yes, please", "No, thanks"]));
        assert!(is_unambiguous(&["A,", "B", "A,,"]));
    }

    #[test]
    fn joined_labels_are_read_back_in_any_order() {
        let labels = ["Yes, please", "No", "Yes"];
        assert_eq!(split("No, Yes, please", &labels), Some(vec!["No", "Yes, please"]));
        assert_eq!(split("Yes, No", &labels), Some(vec!["Yes", "No"]));
        assert_eq!(split("Yes, maybe", &labels), None);
        assert_eq!(split("Yes, Yes", &labels), None);
        assert_eq!(split("", &labels), None);
    }
}
