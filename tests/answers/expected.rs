//! Answers that are known to be wrong, by category and measure. The list can only shrink: what
//! is right now must be removed from it.

use crate::measure::Measure::{self, Cause, Found, Smallest, Works};
use crate::report::Table;

/// Categories whose answers are wrong, with the measures.
const WRONG: &[(&str, &[Measure])] = &[
    ("affinity_gt_version", &[Cause]),
    ("affinity_name_typo", &[Smallest]),
    ("affinity_two_expressions", &[Works]),
    ("affinity_value_typo", &[Cause, Smallest]),
    ("capacity_none", &[Found]),
    ("capacity_too_small", &[Found]),
    ("claim_access_mode", &[Found]),
    ("claim_class_missing", &[Works]),
    ("claim_class_typo", &[Cause, Works]),
    ("claim_for_one_pod", &[Smallest]),
    ("claim_immediate_unbound", &[Cause, Found]),
    ("claim_missing_typo", &[Cause, Found]),
    ("claim_no_volume", &[Found]),
    ("claim_volume_of_other_class", &[Found]),
    ("claim_volume_too_small", &[Found]),
    ("cordoned_by_kubectl", &[Cause, Found]),
    ("daemon_holds", &[Works]),
    ("devices_all_taken", &[Cause, Found]),
    ("devices_claim_typo", &[Cause, Found]),
    ("devices_class_typo", &[Cause, Found]),
    ("devices_extended_taken", &[Cause]),
    ("devices_numa_differs", &[Cause, Found]),
    ("devices_selector", &[Works]),
    ("devices_tainted", &[Works]),
    ("devices_taken", &[Works]),
    ("devices_too_few", &[Works]),
    ("devices_too_small", &[Works]),
    ("disk_of_gce", &[Smallest]),
    ("disk_of_iscsi", &[Smallest]),
    ("disk_of_rbd", &[Smallest]),
    ("far_node_of_group", &[Smallest]),
    ("gang_quorum", &[Works]),
    ("gang_too_large", &[Works]),
    ("holders_of_job", &[Works]),
    ("holders_of_replica_set", &[Works]),
    ("init_rules", &[Cause, Smallest]),
    ("mixed_nearest_is_cordoned", &[Cause, Found]),
    ("node_disk_pressure", &[Works]),
    ("node_not_ready", &[Cause, Works]),
    ("node_unreachable", &[Cause, Works]),
    ("one_holds_both", &[Smallest]),
    ("owned_by_replica_set", &[Works]),
    ("owned_by_stateful_set", &[Works]),
    ("pod_level", &[Smallest]),
    ("priority_system", &[Works]),
    ("queue_ahead", &[Cause]),
    ("reserved_for_nominated", &[Smallest]),
    ("sidecar", &[Smallest]),
    ("spread_of_profile", &[Cause]),
    ("topologies_not_allowed", &[Found]),
];

/// What differs from the list. Whether an answer that was wrong is right now is only told where
/// the clusters are those that the list was made for.
pub fn surprises(table: &Table, is_default: bool) -> Vec<String> {
    let mut surprises = Vec::new();
    for (category, row) in table {
        for (measure, (right, all)) in row {
            let known =
                WRONG.iter().any(|(name, wrong)| name == category && wrong.contains(measure));
            match (known, right == all) {
                (false, false) => {
                    surprises.push(format!("{category}: {measure:?}: {right} of {all} are right"));
                }
                (true, true) if is_default => {
                    surprises.push(format!("{category}: {measure:?} is right now: remove it here"));
                }
                _ => {}
            }
        }
    }
    surprises
}
