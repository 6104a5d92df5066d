//! Spread constraints: allow more skew, exclude tainted nodes from the count, or drop the
//! constraint.

use serde_json::{Value, json};

use super::{Obstacle, Remedies, node};
use crate::edit::{Edit, PodEdit};
use crate::why::cause::SpreadCause;
use kubestep_api::{LabelSelector, TopologySpreadConstraint, UnsatisfiableConstraintAction};

pub(super) fn uneven(need: &Obstacle<'_>, cause: &SpreadCause) -> Remedies {
    let hard = need.pod.spec.topology_spread_constraints.iter().position(|constraint| {
        constraint.topology_key == cause.topology_key
            && constraint.when_unsatisfiable == UnsatisfiableConstraintAction::DoNotSchedule
    });
    let Some(hard) = hard else { return own_constraint(need, cause).into_iter().collect() };
    let mut remedies: Remedies = Vec::new();
    let mut change = |field: &str, value: Option<Value>| {
        let path = format!("spec.topologySpreadConstraints[{hard}].{field}");
        remedies.push(vec![need.set(path, value)]);
    };
    match &cause.skew {
        Some(skew) => {
            change("maxSkew", Some(json!(skew.skew)));
            change("nodeTaintsPolicy", Some(json!("Honor")));
            if skew.too_few_domains {
                change("minDomains", None);
            }
        }
        None => remedies.extend(label(need, cause)),
    }
    remedies.push(vec![need.pod(PodEdit::Unspread(cause.topology_key))]);
    remedies
}

/// The profile's default constraints apply only to pods without constraints of their own.
fn own_constraint(need: &Obstacle<'_>, cause: &SpreadCause) -> Option<Vec<Edit>> {
    let constraint = TopologySpreadConstraint {
        max_skew: 1,
        topology_key: cause.topology_key,
        when_unsatisfiable: UnsatisfiableConstraintAction::ScheduleAnyway,
        label_selector: Some(LabelSelector::of_labels(need.pod.metadata.labels.clone())),
        ..TopologySpreadConstraint::default()
    };
    cause.of_profile.then(|| vec![need.pod(PodEdit::Spread(Box::new(constraint)))])
}

/// Gives a node without the topology key the domain of another node.
fn label(need: &Obstacle<'_>, cause: &SpreadCause) -> Option<Vec<Edit>> {
    let key = cause.topology_key;
    let value = need.world.scheduler().cache().nodes().find_map(|node| node.label(key))?;
    node::set_label(need, key, value).map(|edit| vec![edit])
}
