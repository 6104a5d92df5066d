//! Compares the answers of "why" with recorded cycles: a cause for every plugin that rejected a
//! node, and for no other. Used by the fuzz and conformance suites.

use std::collections::BTreeSet;

use kubestep_cluster::World;
use kubestep_debug::why::cause::{Cause, CauseDetail};
use kubestep_debug::why::{self, Why};
use kubestep_framework::record::CycleRecord;

/// Compares the answer for the cluster before a cycle with the result of the cycle.
pub fn compare(before: &World, record: &CycleRecord) -> Result<(), String> {
    let place = format!("cycle {} of {}", record.cycle, record.pod);
    let why = why::why(before, record.pod).ok_or_else(|| format!("{place}: no such pod"))?;
    let found = rejected_and_explained(&why);
    let recorded = rejected(record);
    if record.filter.plugins.is_empty() || found == recorded {
        return quoted(&why).map_or(Ok(()), |text| Err(format!("{place}: {text}")));
    }
    let (missing, more): (Vec<_>, Vec<_>) =
        (recorded.difference(&found).collect(), found.difference(&recorded).collect());
    Err(format!("{place}: not explained: {missing:?}, explained but not rejected: {more:?}"))
}

/// Node and plugin of every rejection that has a cause.
fn rejected_and_explained(why: &Why) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for node in &why.nodes {
        let alone = node.blockers.iter().filter(|blocker| !blocker.by_nominated);
        let rejected = alone.filter(|blocker| {
            // No filter rejects what PreFilter excluded.
            let left_out = |cause: &Cause| matches!(cause.detail, CauseDetail::LeftOut(_));
            !blocker.causes.is_empty() && !blocker.causes.iter().any(left_out)
        });
        for blocker in rejected {
            found.insert((node.node.to_string(), blocker.plugin.to_string()));
        }
    }
    found
}

/// Node and plugin of every recorded rejection.
fn rejected(record: &CycleRecord) -> BTreeSet<(String, String)> {
    let mut rejected = BTreeSet::new();
    for column in &record.filter.plugins {
        for node in &record.nodes.order {
            if column.verdicts.get(*node).is_some_and(|verdict| verdict.is_status()) {
                rejected.insert((record.nodes.name(*node).to_string(), column.plugin.to_string()));
            }
        }
    }
    rejected
}

/// A plugin that is quoted although it has an explainer. Errors may be quoted.
fn quoted(why: &Why) -> Option<String> {
    let blockers = why.nodes.iter().flat_map(|node| &node.blockers);
    let mut rejections = blockers.filter(|blocker| blocker.code.is_rejected());
    let only_quoted = rejections.find(|blocker| {
        why::cause::is_explained(blocker.plugin)
            && blocker.causes.iter().any(|cause| cause.is_quoted())
    })?;
    Some(format!("{} is only quoted: {:?}", only_quoted.plugin, only_quoted.reasons))
}
