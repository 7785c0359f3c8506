//! Ids that are wished for, told apart by numbers: an agent may wish for one of them many thousand times.

use std::collections::{HashMap, HashSet};

/// The ids that were given.
#[derive(Debug, Default)]
pub struct Ids {
    taken: HashSet<String>,
    /// The last number given to a wish that was taken. All before it are taken too.
    counts: HashMap<String, usize>,
}

impl Ids {
    /// The wish, or where it is taken the same with the first number from 2 that is free.
    pub fn give(&mut self, wish: &str) -> String {
        let mut id = wish.to_owned();
        let mut count = self.counts.get(wish).copied().unwrap_or(1);
        while !self.taken.insert(id.clone()) {
            count += 1;
            id = format!("{wish}_{count}");
        }
        if count > 1 {
            self.counts.insert(wish.to_owned(), count);
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::Ids;

    #[test]
    fn no_id_is_given_twice_and_a_wish_keeps_the_first_number_that_is_free() {
        let mut ids = Ids::default();
        let given: Vec<String> =
            ["a", "a_3", "a", "a", "a_3", "b", "a"].iter().map(|wish| ids.give(wish)).collect();
        assert_eq!(given, ["a", "a_3", "a_2", "a_4", "a_3_2", "b", "a_5"]);
    }

    #[test]
    fn a_wish_that_comes_two_hundred_thousand_times_costs_each_time_the_same() {
        let mut ids = Ids::default();
        // Looked for from 2 each time, these would be twenty thousand million looks.
        assert_eq!((0..200_000).map(|_| ids.give("a")).last().unwrap(), "a_200000");
    }
}
