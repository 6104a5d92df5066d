//! A curve from utilization to score, as the arguments of several plugins hold it.

use kubestep_config::validation::Findings;
use kubestep_config::{FieldPath, argument_object};

argument_object! {
    /// A point of a scoring curve.
    #[derive(Copy, Eq)]
    pub struct UtilizationShapePoint {
        /// Utilization in percent, 0 to 100.
        utilization: i32, put "utilization";
        /// Score, 0 to 10.
        score: i32, put "score";
    }
}

/// A curve has points, in the order of their utilization, and stays within the limits.
pub fn validate(found: &mut Findings, shape: &[UtilizationShapePoint], path: &FieldPath) {
    if shape.is_empty() {
        found.required(path, "at least one point must be specified");
    }
    let unsorted = |i: &usize| shape[i - 1].utilization >= shape[*i].utilization;
    if let Some(i) = (1..shape.len()).find(unsorted) {
        let path = path.index(i).field("utilization");
        let detail = "values must be sorted in increasing order";
        found.invalid(&path, shape[i].utilization, detail);
    }
    for (i, point) in shape.iter().enumerate() {
        found.percent(&path.index(i).field("utilization"), point.utilization);
        if !(0..=10).contains(&point.score) {
            let path = path.index(i).field("score");
            found.invalid(&path, point.score, "not in valid range [0, 10]");
        }
    }
}
