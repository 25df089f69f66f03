//! Instruction counts of the hot path's pieces, held against committed ones.
//!
//! Time cannot be compared between machines or on a busy one; instructions can. Every case runs under callgrind in a
//! process of its own, with an empty environment and the C library held to its baseline functions, so that a count
//! depends on the code and the compiler alone.

mod baselines;
mod count;
mod verdict;

pub use baselines::Baselines;
pub use count::{count_all, run_counted};
pub use verdict::{Verdict, judge, table};
