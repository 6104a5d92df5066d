//! TaintToleration: the untolerated PreferNoSchedule taints.

use super::{Case, Input};
use kubestep_plugins::taint_toleration::avoided_taints;

pub(super) fn inputs(case: &Case<'_>) -> Vec<Input> {
    let Some(node) = &case.node.node else { return Vec::new() };
    let taints = avoided_taints(node, case.probe.pod(), case.probe.cx().features);
    taints.map(|taint| Input::new("taint", format!("{}={}", taint.key, taint.value))).collect()
}
