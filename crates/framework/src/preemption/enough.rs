//! How many candidates are enough: the two arguments of DefaultPreemption and of plugins like it.
//!
//! Upstream: `calculateNumCandidates` and `validateMinCandidateNodes…` of DefaultPreemption.

use kubestep_config::FieldPath;
use kubestep_config::validation::Findings;

/// The minimum of candidates, as the larger of a share of the nodes and a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EnoughCandidates {
    /// `minCandidateNodesPercentage`: the share of nodes to search, 0 to 100.
    pub percentage: i32,
    /// `minCandidateNodesAbsolute`: the number of nodes to search at least.
    pub absolute: i32,
}

impl EnoughCandidates {
    /// How many candidates among `nodes` nodes are enough.
    pub fn of(self, nodes: usize) -> usize {
        // Upstream computes in 32 bits and lets them wrap.
        let nodes = i32::try_from(nodes).unwrap_or(i32::MAX);
        let share = nodes.wrapping_mul(self.percentage) / 100;
        usize::try_from(share.max(self.absolute).min(nodes)).unwrap_or(0)
    }

    /// Reports wrong values to `found`. `path` leads to the arguments.
    pub fn validate(self, found: &mut Findings, path: &FieldPath) {
        let EnoughCandidates { percentage, absolute } = self;
        let relative_path = path.field("minCandidateNodesPercentage");
        let absolute_path = path.field("minCandidateNodesAbsolute");
        found.percent(&relative_path, percentage);
        if absolute < 0 {
            found.invalid(&absolute_path, absolute, "not in valid range [0, inf)");
        }
        if percentage == 0 && absolute == 0 {
            let same = |other: &str| format!("cannot be zero at the same time as {other}");
            found.invalid(&relative_path, 0, &same("minCandidateNodesAbsolute"));
            found.invalid(&absolute_path, 0, &same("minCandidateNodesPercentage"));
        }
    }
}
