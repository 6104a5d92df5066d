//! Spread constraints: allow more skew, leave tainted nodes out of the count, do without.

use serde_json::{Value, json};

use super::{Need, Remedies};
use crate::api::UnsatisfiableConstraintAction;
use crate::debug::edit::{Edit, NodeEdit, PodEdit};
use crate::debug::why::cause::SpreadCause;

pub(super) fn uneven(need: &Need<'_>, cause: &SpreadCause) -> Remedies {
    let hard = need.pod.spec.topology_spread_constraints.iter().position(|constraint| {
        constraint.topology_key == cause.topology_key
            && constraint.when_unsatisfiable == UnsatisfiableConstraintAction::DoNotSchedule
    });
    // A default constraint of the profile is not the pod's to change.
    let Some(hard) = hard else { return Vec::new() };
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

/// A node without the topology key gets the domain of some other node. A host name is its own.
fn label(need: &Need<'_>, cause: &SpreadCause) -> Option<Vec<Edit>> {
    let key = cause.topology_key;
    let value = match key == "kubernetes.io/hostname" {
        true => need.node.name,
        false => need.world.scheduler().cache().nodes().find_map(|node| node.label(key))?,
    };
    Some(vec![Edit::Node(need.node.name, NodeEdit::Label(key, value))])
}
