//! The score normalization that PodState and NodeResourcesAllocatable share.

use kubestep_framework::record::scores::MAX_NODE_SCORE;

/// Scales scores so that the lowest becomes 0 and the highest 100. If all are equal, all become 0.
pub(crate) fn between_lowest_and_highest(scores: &mut [i64]) {
    let (Some(lowest), Some(highest)) =
        (scores.iter().copied().min(), scores.iter().copied().max())
    else {
        return;
    };
    let range = highest.wrapping_sub(lowest);
    for score in scores {
        let above = score.wrapping_sub(lowest).wrapping_mul(MAX_NODE_SCORE);
        *score = above.checked_div(range).unwrap_or(0);
    }
}
