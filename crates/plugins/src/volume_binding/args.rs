//! The arguments: a time limit, and a curve for scoring by storage capacity.

use kubestep_config::validation::Findings;
use kubestep_config::versions::Switch;
use kubestep_config::{Arguments, Feature, FeatureGates, FieldPath, arguments};
use serde_json::{Value, json};

use crate::shape::{self, UtilizationShapePoint};

arguments! {
    /// Time limit and scoring of VolumeBinding.
    #[derive(Eq)]
    pub struct VolumeBindingArgs for "VolumeBinding" {
        bind_timeout_seconds: i64 = 600,
            put "bindTimeoutSeconds", "a number",
            "How long PreBind waits until the volumes are bound.";
        shape: Option<Vec<UtilizationShapePoint>> = None,
            put_some "shape", "a list of utilization and score",
            "With the gate StorageCapacityScoring: the curve from used storage capacity (0 to 100) to \
             score (0 to 10).";
    }
}

/// Whether nodes are scored by capacity, by the gate of today or by the one before 1.33.
pub(crate) fn scores_capacity(gates: &FeatureGates) -> bool {
    let gate = |feature| gates.enabled(feature);
    gate(Feature::StorageCapacityScoring) || gate(Feature::VolumeCapacityPriority)
}

impl Arguments for VolumeBindingArgs {
    /// The more of a node's storage is used, the lower its score; only with the gate.
    fn complete(&mut self, gates: &FeatureGates) {
        let empty = self.shape.as_ref().is_none_or(|shape| shape.is_empty());
        if empty && scores_capacity(gates) {
            let point = |utilization, score| UtilizationShapePoint { utilization, score };
            self.shape = Some(match gates.has(Switch::CapacityShapeDescending) {
                true => vec![point(0, 10), point(100, 0)],
                false => vec![point(0, 0), point(100, 10)],
            });
        }
    }

    fn validate(&self, found: &mut Findings, path: &FieldPath, gates: &FeatureGates) {
        if self.bind_timeout_seconds < 0 {
            let detail = "invalid BindTimeoutSeconds, should not be a negative value";
            found.invalid(&path.field("bindTimeoutSeconds"), self.bind_timeout_seconds, detail);
        }
        let path = path.field("shape");
        match &self.shape {
            shape if scores_capacity(gates) => {
                shape::validate(found, shape.as_deref().unwrap_or_default(), &path);
            }
            Some(shape) => {
                let point = |p: &UtilizationShapePoint| json!({ "utilization": p.utilization, "score": p.score });
                let value: Value = shape.iter().map(point).collect();
                let gate = match gates.spec(Feature::StorageCapacityScoring) {
                    Some(_) => Feature::StorageCapacityScoring,
                    None => Feature::VolumeCapacityPriority,
                };
                let detail = format!(
                    "unexpected field `shape`, remove it or turn on the feature gate {gate}"
                );
                found.invalid(&path, value, &detail);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_brings_a_curve() {
        let completed = |gates: &FeatureGates| {
            let mut args = VolumeBindingArgs::default();
            args.complete(gates);
            args.shape.map(|shape| shape.iter().map(|p| (p.utilization, p.score)).collect())
        };
        let on = FeatureGates::default().with(Feature::StorageCapacityScoring, true);
        assert_eq!(completed(&on), Some(vec![(0, 10), (100, 0)]));
        assert_eq!(completed(&FeatureGates::default()), None);
    }
}
