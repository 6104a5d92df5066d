//! How ties and random choices are decided: which of several nodes with the best total wins, where
//! preemption starts its search, and in which order one event moves several pods.
//!
//! Upstream's choices depend on the structure of a heap, on a random generator and on where the
//! walk over a Go map starts. The engine has no randomness: it uses a number computed from a seed
//! and the number of the cycle, so that every run can be repeated.

use std::fmt;
use std::str::FromStr;

/// How a tie is broken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum TieBreak {
    /// What upstream's heap yields for the order of the feasible nodes. Preemption starts at the
    /// first node.
    #[default]
    Upstream,
    /// The first of the best in the order of the feasible nodes. Preemption starts at the first
    /// node.
    First,
    /// A pseudo-random pick that is the same for the same seed and cycle. Preemption starts at a
    /// node picked in the same way, and so does the walk of the queue over the pods that an event
    /// may move.
    Seed(u64),
}

impl TieBreak {
    /// The pseudo-random number of cycle `cycle`; 0 without a seed.
    pub fn random(self, cycle: u64) -> u64 {
        match self {
            TieBreak::Upstream | TieBreak::First => 0,
            TieBreak::Seed(seed) => scatter(seed, cycle),
        }
    }

    /// Whether the node at position `a` wins against the one at `b` whenever both have the best
    /// total; `None` if it depends on how many have it.
    pub fn prefers(self, a: usize, b: usize) -> Option<bool> {
        match self {
            TieBreak::Upstream => Some(first_in_tree(a, b) == a),
            TieBreak::First => Some(a < b),
            TieBreak::Seed(_) => None,
        }
    }

    /// Whether the result may differ from upstream's most likely order.
    pub fn is_chosen(self) -> bool {
        matches!(self, TieBreak::Seed(_))
    }

    /// The positions of `totals`, best first, the winner in front; `None` if upstream's heap
    /// decides. `cycle` is the number of the cycle.
    pub fn ranking(self, totals: &[i64], cycle: u64) -> Option<Vec<usize>> {
        if self == TieBreak::Upstream {
            return None;
        }
        let mut ranking: Vec<usize> = (0..totals.len()).collect();
        // A stable sort: equal totals stay in order.
        ranking.sort_by_key(|at| std::cmp::Reverse(totals[*at]));
        let best = ranking.first().map(|at| totals[*at]);
        let tied = ranking.iter().take_while(|at| Some(totals[**at]) == best).count();
        let winner = pick_index(self.random(cycle), tied);
        if winner < tied {
            ranking[..=winner].rotate_right(1); // the others stay in order
        }
        Some(ranking)
    }
}

/// Of two positions in a binary heap, the first in the order parent, left, right.
///
/// While a heap is built, a child moves up only past a parent that is worse, and a right child only
/// past a left one that is worse. So among equals the one higher up wins, or the one on the left.
pub fn first_in_tree(a: usize, b: usize) -> usize {
    // Counted from 1, the bits after the first are the path down from the root.
    let (one, other) = (a + 1, b + 1);
    let (depth, other_depth) = (one.ilog2(), other.ilog2());
    let level = depth.min(other_depth);
    let (above, other_above) = (one >> (depth - level), other >> (other_depth - level));
    let is_first = (above, depth) < (other_above, other_depth);
    if is_first { a } else { b }
}

/// The index below `count` for a number from [`TieBreak::random`].
pub fn pick_index(random: u64, count: usize) -> usize {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    // The remainder is smaller than the count, which came from a usize.
    random.checked_rem(count).and_then(|place| usize::try_from(place).ok()).unwrap_or(0)
}

/// The `cycle`th number of the SplitMix64 sequence of `seed`.
fn scatter(seed: u64, cycle: u64) -> u64 {
    let mut bits = seed.wrapping_add(cycle.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Why a text is no [`TieBreak`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseTieBreakError {
    /// It has none of the forms.
    #[error("expected upstream, first or seed:N")]
    Form,
    /// What follows `seed:` is no seed.
    #[error("{0:?} is not a whole number from 0 to {max}", max = u64::MAX)]
    Seed(String),
}

impl FromStr for TieBreak {
    type Err = ParseTieBreakError;

    fn from_str(text: &str) -> Result<TieBreak, ParseTieBreakError> {
        match (text, text.strip_prefix("seed:")) {
            ("upstream", _) => Ok(TieBreak::Upstream),
            ("first", _) => Ok(TieBreak::First),
            (_, Some(seed)) => match seed.parse() {
                Ok(seed) => Ok(TieBreak::Seed(seed)),
                Err(_) => Err(ParseTieBreakError::Seed(seed.to_owned())),
            },
            _ => Err(ParseTieBreakError::Form),
        }
    }
}

impl fmt::Display for TieBreak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TieBreak::Upstream => f.write_str("upstream"),
            TieBreak::First => f.write_str("first"),
            TieBreak::Seed(seed) => write!(f, "seed:{seed}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        // The first numbers from seed 0 and from seed 1234567, as published with the generator.
        assert_eq!(scatter(0, 1), 0xe220_a839_7b1d_cdaf);
        let numbers: Vec<u64> = (1..4).map(|cycle| scatter(1_234_567, cycle)).collect();
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn the_first_of_the_best_wins() {
        let ranking = |totals: &[i64]| TieBreak::First.ranking(totals, 1).unwrap();
        // Upstream's heap yields position 4 here.
        assert_eq!(ranking(&[1, 2, 9, 3, 9]), [2, 4, 3, 1, 0]);
        assert_eq!(ranking(&[5, 5, 5]), [0, 1, 2]);
        assert_eq!(ranking(&[]), [0; 0]);
        assert_eq!(TieBreak::Upstream.ranking(&[5, 5], 1), None);
    }

    #[test]
    fn a_seed_picks_among_the_best_only() {
        let ranking = |seed, cycle| TieBreak::Seed(seed).ranking(&[7, 1, 7, 7, 2], cycle).unwrap();
        // From 1234567: 6457827717110365317 mod 3 is 0, 3203168211198807973 mod 3 is 1.
        assert_eq!(6_457_827_717_110_365_317_u64 % 3, 0);
        assert_eq!(ranking(1_234_567, 1), [0, 2, 3, 4, 1]);
        assert_eq!(3_203_168_211_198_807_973_u64 % 3, 1);
        assert_eq!(ranking(1_234_567, 2), [2, 0, 3, 4, 1]);
        let winners: Vec<usize> = (1..9).map(|cycle| ranking(3, cycle)[0]).collect();
        let again: Vec<usize> = (1..9).map(|cycle| ranking(3, cycle)[0]).collect();
        assert_eq!(winners, again);
        assert!([0, 2, 3].iter().all(|at| winners.contains(at)), "{winners:?}");
        assert!(!winners.contains(&1) && !winners.contains(&4), "{winners:?}");
    }

    #[test]
    fn places_stay_within_the_count() {
        assert_eq!(
            (pick_index(7, 5), pick_index(4, 5), pick_index(9, 1), pick_index(9, 0)),
            (2, 4, 0, 0)
        );
    }

    #[test]
    fn the_text_is_read_as_it_is_written() {
        for text in ["upstream", "first", "seed:0", "seed:18446744073709551615"] {
            assert_eq!(text.parse::<TieBreak>().unwrap().to_string(), text);
        }
        let error = |text: &str| text.parse::<TieBreak>().unwrap_err().to_string();
        assert_eq!(error("seed"), "expected upstream, first or seed:N");
        assert_eq!(error("seed:-1"), "\"-1\" is not a whole number from 0 to 18446744073709551615");
    }
}
