//! The score normalization that several plugins share: proportional to the highest score.
//!
//! Upstream: `pkg/scheduler/framework/plugins/helper/normalize_score.go`.

use kubestep_framework::record::scores::{MAX_NODE_SCORE, range};

/// Scales non-negative scores to 0 to 100, the highest becoming 100. With `reverse`, the highest
/// becomes 0 instead; if all are 0, all become 100.
pub(crate) fn relative_to_highest(scores: &mut [i64], reverse: bool) {
    let highest = range(scores).map_or(0, |(_, highest)| highest.max(0));
    match (reverse, highest) {
        (false, 0) => {}
        (true, 0) => scores.fill(MAX_NODE_SCORE),
        (false, _) => each(scores, |score| MAX_NODE_SCORE * score / highest),
        (true, _) => each(scores, |score| MAX_NODE_SCORE - MAX_NODE_SCORE * score / highest),
    }
}

/// Applies `change` to every score, mostly once for each distinct score: scores are often those of
/// a few domains, in turn.
pub fn each(scores: &mut [i64], change: impl Fn(i64) -> i64) {
    let Some(first) = scores.first() else { return };
    let mut known = [(*first, change(*first)); 8];
    for score in scores {
        let entry = &mut known[(*score ^ (*score >> 3)) as usize % 8];
        if entry.0 != *score {
            *entry = (*score, change(*score));
        }
        *score = entry.1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_score_is_changed_as_if_alone() {
        let scores: Vec<i64> = (-70..70).chain([i64::MIN, -3, 5, 5, i64::MAX, 5, 69]).collect();
        let change = |score: i64| score.wrapping_mul(3) ^ 0x55;
        let mut changed = scores.clone();
        each(&mut changed, change);
        assert_eq!(changed, scores.into_iter().map(change).collect::<Vec<_>>());
        each(&mut [], change);
    }

    #[test]
    fn the_highest_is_the_measure() {
        for (scores, reverse, expected) in [
            (vec![1, 2, 3, 4], false, vec![25, 50, 75, 100]),
            (vec![1, 2, 3, 4], true, vec![75, 50, 25, 0]),
            (vec![1000, 10, 20, 30], false, vec![100, 1, 2, 3]),
            (vec![1000, 10, 20, 30], true, vec![0, 99, 98, 97]),
            (vec![1, 1, 1, 1], false, vec![100, 100, 100, 100]),
            (vec![1, 1, 1, 1], true, vec![0, 0, 0, 0]),
            (vec![0, 0], false, vec![0, 0]),
            (vec![0, 0], true, vec![100, 100]),
            (vec![], true, vec![]),
            (vec![2, 3, 7], false, vec![28, 42, 100]),
            (vec![2, 3, 7], true, vec![72, 58, 0]),
        ] {
            let mut normalized = scores.clone();
            relative_to_highest(&mut normalized, reverse);
            assert_eq!(normalized, expected, "{scores:?} {reverse}");
        }
    }
}
