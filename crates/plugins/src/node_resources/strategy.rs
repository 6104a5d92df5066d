//! The three scoring strategies of NodeResourcesFit, as integer formulas.
//!
//! Upstream: `least_allocated.go`, `most_allocated.go`, `requested_to_capacity_ratio.go` and
//! `plugins/helper/shape_score.go`.

use super::amounts::Amounts;
use super::fit::ScoringStrategy;
use crate::shape::UtilizationShapePoint;
use kubestep_framework::error::PluginError;
use kubestep_framework::record::scores::MAX_NODE_SCORE;

/// The highest score in the configuration of a shape.
const MAX_CUSTOM_SCORE: i64 = 10;

/// How amounts become a score.
#[derive(Clone, PartialEq, Debug)]
pub enum UtilizationStrategy {
    /// Prefers nodes with less allocated.
    Least,
    /// Prefers nodes with more allocated.
    Most,
    /// A function of the utilization.
    Ratio(Vec<Point>),
}

/// A point of the function; the score is 0 to 100.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    utilization: i64,
    score: i64,
}

impl From<&UtilizationShapePoint> for Point {
    fn from(point: &UtilizationShapePoint) -> Point {
        Point {
            utilization: i64::from(point.utilization),
            score: i64::from(point.score) * (MAX_NODE_SCORE / MAX_CUSTOM_SCORE),
        }
    }
}

impl UtilizationStrategy {
    /// The configured strategy.
    ///
    /// # Errors
    /// The strategy is unknown.
    pub fn new(configured: &ScoringStrategy) -> Result<UtilizationStrategy, PluginError> {
        match configured.strategy.as_str() {
            "LeastAllocated" => Ok(UtilizationStrategy::Least),
            "MostAllocated" => Ok(UtilizationStrategy::Most),
            "RequestedToCapacityRatio" => {
                let ratio = configured.requested_to_capacity_ratio.iter();
                let shape = ratio.flat_map(|ratio| &ratio.shape);
                Ok(UtilizationStrategy::Ratio(shape.map(Point::from).collect()))
            }
            other => Err(format!("scoring strategy {other} is not supported").into()),
        }
    }

    /// The score of a node, 0 to 100.
    pub fn score(&self, amounts: &[Amounts]) -> i64 {
        match self {
            UtilizationStrategy::Least => weighted(amounts, least),
            UtilizationStrategy::Most => weighted(amounts, most),
            UtilizationStrategy::Ratio(shape) => ratio(amounts, shape),
        }
    }
}

/// The weighted mean, rounded down; 0 without any resource.
fn weighted(amounts: &[Amounts], score: fn(&Amounts) -> i64) -> i64 {
    let (mut sum, mut weights) = (0_i64, 0_i64);
    for amount in amounts {
        sum = sum.wrapping_add(score(amount).wrapping_mul(amount.weight));
        weights = weights.wrapping_add(amount.weight);
    }
    sum.checked_div(weights).unwrap_or(0)
}

fn least(amount: &Amounts) -> i64 {
    if amount.requested > amount.allocatable {
        return 0;
    }
    percent(amount.allocatable.wrapping_sub(amount.requested), amount.allocatable)
}

fn most(amount: &Amounts) -> i64 {
    percent(amount.requested.min(amount.allocatable), amount.allocatable)
}

fn percent(part: i64, whole: i64) -> i64 {
    // Overflow wraps as in Go, though no real amount comes near.
    part.wrapping_mul(MAX_NODE_SCORE).wrapping_div(whole)
}

/// The weighted mean of the resources that score above 0, rounded half away from zero.
fn ratio(amounts: &[Amounts], shape: &[Point]) -> i64 {
    let (mut sum, mut weights) = (0_i64, 0_i64);
    for amount in amounts {
        let utilization = match amount.requested > amount.allocatable {
            true => 100,
            false => percent(amount.requested, amount.allocatable),
        };
        let score = interpolate(shape, utilization);
        if score > 0 {
            sum = sum.wrapping_add(score.wrapping_mul(amount.weight));
            weights = weights.wrapping_add(amount.weight);
        }
    }
    if weights == 0 { 0 } else { (sum as f64 / weights as f64).round() as i64 }
}

/// The score at `utilization`, interpolated linearly between the points in integers.
pub(crate) fn interpolate(shape: &[Point], utilization: i64) -> i64 {
    let Some(next) = shape.iter().position(|point| utilization <= point.utilization) else {
        return shape.last().map_or(0, |point| point.score);
    };
    let right = shape[next];
    let Some(left) = next.checked_sub(1).map(|before| shape[before]) else { return right.score };
    let rise = (right.score - left.score) * (utilization - left.utilization);
    left.score + rise / (right.utilization - left.utilization)
}

#[cfg(test)]
mod tests {
    use super::super::fit::RequestedToCapacityRatio;
    use super::*;
    use kubestep_api::intern::Symbol;

    fn amount(requested: i64, allocatable: i64, weight: i64) -> Amounts {
        Amounts { resource: "cpu".into(), requested, allocated: 0, allocatable, weight }
    }

    fn strategy(name: &str, shape: &[(i32, i32)]) -> UtilizationStrategy {
        let shape = shape
            .iter()
            .map(|(utilization, score)| UtilizationShapePoint {
                utilization: *utilization,
                score: *score,
            })
            .collect();
        let configured = ScoringStrategy {
            strategy: Symbol::new(name),
            requested_to_capacity_ratio: Some(RequestedToCapacityRatio { shape }),
            ..ScoringStrategy::default()
        };
        UtilizationStrategy::new(&configured).unwrap()
    }

    #[test]
    fn least_and_most_round_down_and_cap() {
        let (least, most) = (strategy("LeastAllocated", &[]), strategy("MostAllocated", &[]));
        // requested, allocatable, least, most
        for (requested, allocatable, expect_least, expect_most) in [
            (0, 10, 100, 0),
            (1, 3, 66, 33),
            (2, 3, 33, 66),
            (10, 10, 0, 100),
            (11, 10, 0, 100),
            (3000, 4000, 25, 75),
        ] {
            let amounts = [amount(requested, allocatable, 1)];
            assert_eq!(least.score(&amounts), expect_least, "least {requested}/{allocatable}");
            assert_eq!(most.score(&amounts), expect_most, "most {requested}/{allocatable}");
        }
    }

    #[test]
    fn weights_weigh_and_no_resource_scores_nothing() {
        let least = strategy("LeastAllocated", &[]);
        assert_eq!(least.score(&[amount(3000, 4000, 1), amount(5000, 10000, 2)]), 41);
        assert_eq!(least.score(&[]), 0);
        assert_eq!(strategy("MostAllocated", &[]).score(&[]), 0);
        assert_eq!(strategy("RequestedToCapacityRatio", &[(0, 10)]).score(&[]), 0);
    }

    #[test]
    fn a_curve_is_a_broken_line_in_whole_numbers() {
        let UtilizationStrategy::Ratio(shape) =
            strategy("RequestedToCapacityRatio", &[(10, 1), (40, 0), (90, 9)])
        else {
            panic!("not a curve");
        };
        let at = |utilization| interpolate(&shape, utilization);
        assert_eq!([0, 9, 10, 11, 25, 39, 40].map(at), [10, 10, 10, 10, 5, 1, 0]);
        assert_eq!([41, 65, 89, 90, 91, 100].map(at), [1, 45, 88, 90, 90, 90]);
        assert_eq!(interpolate(&[], 50), 0);
    }

    #[test]
    fn a_curve_leaves_out_what_scores_nothing_and_rounds_half_up() {
        let rising = strategy("RequestedToCapacityRatio", &[(0, 0), (100, 10)]);
        assert_eq!(rising.score(&[amount(0, 100, 1), amount(50, 100, 1)]), 50);
        assert_eq!(rising.score(&[amount(1, 100, 1), amount(2, 100, 1)]), 2);
        assert_eq!(rising.score(&[amount(200, 100, 1)]), 100);
        assert_eq!(rising.score(&[amount(25, 100, 3), amount(50, 100, 5)]), 41);
    }

    #[test]
    fn there_are_only_three() {
        let other = ScoringStrategy { strategy: Symbol::new("Best"), ..ScoringStrategy::default() };
        assert_eq!(
            UtilizationStrategy::new(&other).unwrap_err().to_string(),
            "scoring strategy Best is not supported"
        );
    }
}
