//! How a workload replaces its pods: its strategy as written, and the limits that follow.
//!
//! Upstream: `ResolveFenceposts` in `pkg/controller/deployment/util`, `getStatefulSetMaxUnavailable`
//! in `pkg/controller/statefulset`, `UnavailableCount` and `SurgeCount` in
//! `pkg/controller/daemon/util`.

use std::fmt;

use crate::disruption::scaled;
use kubestep_api::{IntOrString, RollingUpdate, StatefulSetSpec, UpdateStrategy};

/// The share of a Deployment's pods by which it may exceed or fall short of its size by default.
const QUARTER: &str = "25%";

/// How a workload replaces its pods.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// A Deployment deletes all old pods before it creates new ones.
    Recreate,
    /// A Deployment creates new pods and deletes old ones within these limits.
    Rolling {
        /// How many pods there may be in addition to the wanted ones.
        surge: usize,
        /// How many of the wanted pods may be unavailable.
        unavailable: usize,
    },
    /// A StatefulSet replaces its pods from the highest ordinal down.
    Ordinal {
        /// Pods of lower positions keep the old template.
        partition: usize,
        /// How many pods may be unavailable; `None` without the feature MaxUnavailableStatefulSet:
        /// one after another.
        unavailable: Option<usize>,
        /// Whether a pod is created only when all before it are available (OrderedReady).
        ordered: bool,
    },
    /// A DaemonSet replaces its pods node by node.
    Nodes {
        /// How many nodes may have a new pod beside the old one.
        surge: usize,
        /// How many nodes may have no available pod.
        unavailable: usize,
    },
    /// A pod gets the new template when it is deleted.
    OnDelete {
        /// As for [`Strategy::Ordinal`].
        ordered: bool,
    },
}

impl Strategy {
    pub(super) fn of_deployment(strategy: &UpdateStrategy, replicas: usize) -> Strategy {
        if strategy.type_ == "Recreate" {
            return Strategy::Recreate;
        }
        let RollingUpdate { max_surge, max_unavailable, .. } =
            strategy.rolling_update.clone().unwrap_or_default();
        let quarter = IntOrString::Text(QUARTER.into());
        let surge = share(max_surge.unwrap_or(quarter), replicas);
        let unavailable = share_down(max_unavailable.unwrap_or(quarter), replicas);
        let both_zero = surge == 0 && unavailable == 0;
        Strategy::Rolling {
            surge,
            unavailable: if both_zero { 1 } else { unavailable }.min(replicas),
        }
    }

    /// `limited`: whether the feature MaxUnavailableStatefulSet is on.
    pub(super) fn of_stateful_set(
        spec: &StatefulSetSpec,
        replicas: usize,
        limited: bool,
    ) -> Strategy {
        let ordered = spec.pod_management_policy != "Parallel";
        if spec.update_strategy.type_ == "OnDelete" {
            return Strategy::OnDelete { ordered };
        }
        let update = spec.update_strategy.rolling_update.clone().unwrap_or_default();
        let most = update.max_unavailable.map_or(1, |most| share_down(most, replicas).max(1));
        Strategy::Ordinal {
            partition: usize::try_from(update.partition.unwrap_or(0)).unwrap_or(0),
            unavailable: limited.then_some(most),
            ordered,
        }
    }

    pub(super) fn of_daemon_set(strategy: &UpdateStrategy, nodes: usize) -> Strategy {
        if strategy.type_ == "OnDelete" {
            return Strategy::OnDelete { ordered: false };
        }
        let update = strategy.rolling_update.clone().unwrap_or_default();
        let surge = update.max_surge.map_or(0, |surge| share(surge, nodes));
        let unavailable = share(update.max_unavailable.unwrap_or(IntOrString::Int(1)), nodes);
        let both_zero = surge == 0 && unavailable == 0;
        Strategy::Nodes { surge, unavailable: if both_zero { 1 } else { unavailable } }
    }
}

/// `maxSurge 1, maxUnavailable 0`.
impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strategy::Recreate => f.write_str("Recreate"),
            Strategy::Rolling { surge, unavailable } | Strategy::Nodes { surge, unavailable } => {
                write!(f, "maxSurge {surge}, maxUnavailable {unavailable}")
            }
            Strategy::Ordinal { partition, unavailable, ordered } => {
                f.write_str(if *ordered { "OrderedReady" } else { "Parallel" })?;
                if let Some(unavailable) = unavailable {
                    write!(f, ", maxUnavailable {unavailable}")?;
                }
                if *partition > 0 {
                    write!(f, ", partition {partition}")?;
                }
                Ok(())
            }
            Strategy::OnDelete { .. } => f.write_str("OnDelete"),
        }
    }
}

/// The number, or that share of `of`, rounded up.
fn share(number: IntOrString, of: usize) -> usize {
    let of = i32::try_from(of).unwrap_or(i32::MAX);
    usize::try_from(scaled(number, of)).unwrap_or(0)
}

/// The number, or that share of `of`, rounded down.
fn share_down(number: IntOrString, of: usize) -> usize {
    match number {
        IntOrString::Int(number) => usize::try_from(number).unwrap_or(0),
        IntOrString::Text(text) => {
            let percent: usize = text.trim_end_matches('%').parse().unwrap_or(0);
            percent.saturating_mul(of) / 100
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn strategy(value: Value) -> UpdateStrategy {
        serde_json::from_value(value).unwrap()
    }

    /// Surge is rounded up and unavailability down, and one of them is never 0.
    #[test]
    fn percentages_of_a_deployment() {
        let of = |surge: Value, unavailable: Value, replicas| {
            let update = json!({"maxSurge": surge, "maxUnavailable": unavailable});
            let strategy = strategy(json!({"rollingUpdate": update}));
            Strategy::of_deployment(&strategy, replicas).to_string()
        };
        assert_eq!(of(Value::Null, Value::Null, 10), "maxSurge 3, maxUnavailable 2");
        assert_eq!(of(Value::Null, Value::Null, 3), "maxSurge 1, maxUnavailable 0");
        assert_eq!(of(json!(0), json!("25%"), 3), "maxSurge 0, maxUnavailable 1");
        assert_eq!(of(json!("50%"), json!(9), 3), "maxSurge 2, maxUnavailable 3");
        assert_eq!(
            Strategy::of_deployment(&strategy(json!({"type": "Recreate"})), 3),
            Strategy::Recreate
        );
    }

    #[test]
    fn unavailability_of_a_stateful_set_is_at_least_one() {
        let of = |update: Value, replicas, limited| {
            let spec = json!({"updateStrategy": {"rollingUpdate": update}});
            let spec = serde_json::from_value(spec).unwrap();
            Strategy::of_stateful_set(&spec, replicas, limited).to_string()
        };
        assert_eq!(of(json!({"partition": 2}), 3, false), "OrderedReady, partition 2");
        let half = json!({"maxUnavailable": "50%"});
        assert_eq!(of(half.clone(), 5, true), "OrderedReady, maxUnavailable 2");
        assert_eq!(of(half.clone(), 1, true), "OrderedReady, maxUnavailable 1");
        assert_eq!(of(json!({}), 5, true), "OrderedReady, maxUnavailable 1");
        assert_eq!(of(half, 5, false), "OrderedReady");
    }

    #[test]
    fn limits_of_a_daemon_set_are_rounded_up() {
        let of = |update: Value, nodes| {
            let strategy = strategy(json!({"rollingUpdate": update}));
            Strategy::of_daemon_set(&strategy, nodes).to_string()
        };
        assert_eq!(of(Value::Null, 10), "maxSurge 0, maxUnavailable 1");
        assert_eq!(of(json!({"maxUnavailable": "15%"}), 10), "maxSurge 0, maxUnavailable 2");
        assert_eq!(
            of(json!({"maxUnavailable": 0, "maxSurge": "1%"}), 10),
            "maxSurge 1, maxUnavailable 0"
        );
    }
}
