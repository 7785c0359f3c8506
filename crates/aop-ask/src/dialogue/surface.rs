//! What a target's native form can show. Data, not behaviour: the walk reads it and takes the richest form
//! that still carries the human's meaning unambiguously.

use super::{Protocol, Target};

/// The limits of one target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surface {
    /// Questions in one native request.
    pub(crate) batch: usize,
    /// Items in one question; more are routed.
    pub(crate) max_items: usize,
    /// Items that a question needs; navigation fills up.
    pub(crate) min_items: usize,
    pub(crate) multi: Multi,
    /// Whether there is a field for text alone.
    pub(crate) text: bool,
    /// Whether leaving an optional question out takes an item of its own.
    pub(crate) skip: bool,
}

/// How a target takes several options for one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Multi {
    /// As one text, joined by a comma and a space.
    Joined,
    /// As a list.
    List,
    /// Not at all: they are asked for one by one.
    OneByOne,
}

impl Surface {
    pub(crate) fn of(target: Target, protocol: Protocol) -> Self {
        let unlimited = Surface {
            batch: usize::MAX,
            max_items: usize::MAX,
            min_items: 0,
            multi: Multi::List,
            text: true,
            skip: false,
        };
        match target {
            Target::ClaudeCode => Surface {
                batch: 4,
                max_items: 4,
                min_items: 2,
                multi: Multi::Joined,
                text: false,
                skip: false,
            },
            Target::Codex => Surface {
                batch: 3,
                max_items: 3,
                min_items: 2,
                multi: Multi::OneByOne,
                text: false,
                skip: false,
            },
            Target::StrictText => unlimited,
            Target::Elicitation => match protocol {
                Protocol::V2025_06_18 => Surface { min_items: 2, multi: Multi::OneByOne, ..unlimited },
                Protocol::V2025_11_25 => Surface { min_items: 2, ..unlimited },
            },
            Target::Terminal => Surface { batch: 1, min_items: 2, skip: true, ..unlimited },
        }
    }
}
