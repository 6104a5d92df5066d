//! What a run came to: placements, evictions, what stayed pending, how full the nodes are, and
//! how many more pods would fit. One shape, and one file for each format it is printed in.

pub mod csv;
pub mod json;
pub mod junit;
pub mod text;

use crate::report::outcome::{self, Evicted, Pending, Placed};
use crate::report::usage::Usage;
use kubestep_debug::Session;
use kubestep_debug::capacity::Capacity;

/// What a run came to.
#[derive(Clone, PartialEq, Debug)]
pub struct RunReport {
    /// The pods that were placed, in that order.
    pub placed: Vec<Placed>,
    /// The pods that had to go, in that order.
    pub evicted: Vec<Evicted>,
    /// The pods without a node, by name.
    pub pending: Vec<Pending>,
    /// Scheduling cycles.
    pub cycles: u64,
    /// What was requested of the nodes before the first cycle.
    pub before: Usage,
    /// And after the last.
    pub after: Usage,
    /// How many more would fit, where that was asked.
    pub capacity: Vec<Capacity>,
    /// What a reader should know about the input, one sentence each.
    pub notices: Vec<String>,
}

impl RunReport {
    /// Of a session that was run, on a cluster that was used like `before` at the start.
    pub fn new(session: &Session, before: Usage) -> RunReport {
        RunReport {
            placed: outcome::placed(session),
            evicted: outcome::evicted(session),
            pending: outcome::pending(session),
            cycles: session.world().scheduler().cycles(),
            before,
            after: Usage::of(session.world()),
            capacity: Vec::new(),
            notices: Vec::new(),
        }
    }
}
