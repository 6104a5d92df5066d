//! Queueing hints: which events can make a pod schedulable that InterPodAffinity rejected.

use std::sync::Arc;

use kubestep_api::{Labels, Node, Object, Pod};
use kubestep_config::FeatureGates;
use kubestep_config::versions::Switch;
use kubestep_framework::error::PluginError;
use kubestep_framework::events::{EventObjects, HintResult, QueueingHint};
use kubestep_framework::plugin::QueueContext;
use kubestep_framework::pod::{AffinityTerm, AffinityTermList, PodInfo};

use super::terms::all_match;
use crate::is_placed;

/// Another pod helps if it changes which of the pod's terms are met.
pub(crate) fn after_pod_change(
    cx: &QueueContext<'_>,
    pod: &PodInfo,
    event: &EventObjects,
) -> HintResult {
    let helps = match (&event.old, &event.new) {
        (Some(Object::Pod(old)), Some(Object::Pod(new))) => pod_changed(cx.features, pod, old, new),
        (None, Some(Object::Pod(new))) => pod_added(cx.features, pod, new),
        (Some(Object::Pod(old)), None) => pod_deleted(cx.features, pod, old),
        _ => Err("unexpected objects".into()),
    };
    helps.map(QueueingHint::queue_if)
}

/// A node helps if it belongs to another domain of a term than before.
pub(crate) fn after_node_change(
    cx: &QueueContext<'_>,
    pod: &PodInfo,
    event: &EventObjects,
) -> HintResult {
    let (old, Some(new)) = event.nodes()? else { return Err("unexpected objects".into()) };
    parsed(pod)?;
    let compares = |_: &&Node| cx.features.has(Switch::AffinityHintComparesTopology);
    Ok(QueueingHint::queue_if(match old.filter(compares) {
        Some(old) => node_changed(pod, &old.metadata.labels, &new.metadata.labels),
        None => node_added(pod, new),
    }))
}

/// Fails if a required term cannot be parsed; preferred terms are not checked.
fn parsed(pod: &PodInfo) -> Result<(), PluginError> {
    list_parsed(pod, AffinityTermList::RequiredAffinity)?;
    list_parsed(pod, AffinityTermList::RequiredAntiAffinity)
}

fn list_parsed(pod: &PodInfo, list: AffinityTermList) -> Result<(), PluginError> {
    pod.error_in(list).map_or(Ok(()), |error| Err(error.clone().into()))
}

fn has_place(features: &FeatureGates, pod: &Pod) -> bool {
    is_placed(pod, features, Switch::AffinityHintCountsNominated)
}

fn pod_changed(
    features: &FeatureGates,
    pod: &PodInfo,
    old: &Pod,
    new: &Pod,
) -> Result<bool, PluginError> {
    // Only label updates are registered, and the pod's own labels matter to other pods' terms.
    if new.metadata.uid == pod.uid() && features.has(Switch::OwnLabelsRequeue) {
        return Ok(true);
    }
    if !has_place(features, old) || !has_place(features, new) {
        return Ok(false);
    }
    parsed(pod)?;
    let (affinity, anti_affinity) =
        (&pod.own_terms().required_affinity, &pod.own_terms().required_anti_affinity);
    let began = |terms: &[AffinityTerm]| !all_match(terms, old) && all_match(terms, new);
    let ceased = |terms: &[AffinityTerm]| all_match(terms, old) && !all_match(terms, new);
    Ok(began(affinity) || ceased(anti_affinity))
}

fn pod_added(features: &FeatureGates, pod: &PodInfo, new: &Pod) -> Result<bool, PluginError> {
    if !has_place(features, new) {
        return Ok(false);
    }
    parsed(pod)?;
    Ok(all_match(&pod.own_terms().required_affinity, new))
}

/// Either pod's anti-affinity may have excluded the other.
fn pod_deleted(
    features: &FeatureGates,
    pod: &PodInfo,
    old: &Arc<Pod>,
) -> Result<bool, PluginError> {
    if !has_place(features, old) {
        return Ok(false);
    }
    parsed(pod)?;
    if all_match(&pod.own_terms().required_anti_affinity, old) {
        return Ok(true);
    }
    if !features.has(Switch::DeletedAntiAffinityRequeues) {
        return Ok(false);
    }
    let old = PodInfo::new(old.clone());
    list_parsed(&old, AffinityTermList::RequiredAntiAffinity)?;
    Ok(all_match(&old.own_terms().required_anti_affinity, &pod.pod))
}

fn node_added(pod: &PodInfo, new: &Node) -> bool {
    let labels = &new.metadata.labels;
    let has_key = |term: &AffinityTerm| labels.contains_key(term.topology_key);
    pod.own_terms().required_affinity.iter().any(has_key)
        || !pod.own_terms().required_anti_affinity.is_empty()
}

fn node_changed(pod: &PodInfo, old: &Labels, new: &Labels) -> bool {
    let values = |term: &AffinityTerm| (old.get(term.topology_key), new.get(term.topology_key));
    let moved_or_appeared = |term: &AffinityTerm| match values(term) {
        (Some(old), Some(new)) => old != new,
        (None, Some(_)) => true,
        _ => false,
    };
    let moved_or_vanished = |term: &AffinityTerm| match values(term) {
        (Some(old), Some(new)) => old != new,
        (Some(_), None) => true,
        _ => false,
    };
    pod.own_terms().required_affinity.iter().any(moved_or_appeared)
        || pod.own_terms().required_anti_affinity.iter().any(moved_or_vanished)
}
