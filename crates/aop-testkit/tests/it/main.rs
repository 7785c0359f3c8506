//! The fake models, tried by the real programs they are made for and by hand.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]

mod real_programs;
mod scripts;
