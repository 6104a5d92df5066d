//! Other pods that block or are missing: affinity between pods, and host ports.

use serde_json::json;

use super::{Obstacle, Remedies, delete};
use crate::edit::{self, Edit, HostPort, PodEdit, TermList, TermRef};
use crate::why::cause::{BlockingAntiAffinity, NoPodNear, PortTaken, TermOwner};
use kubestep_api::intern::Symbol;
use kubestep_api::{LabelSelectorOperator, Labels, Name, Object, Pod, PodAffinityTerm, Protocol};
use kubestep_framework::pod::NamespacedName;

pub(super) fn no_pod_near(need: &Obstacle<'_>, near: &NoPodNear) -> Remedies {
    let correct = near.typo.as_ref().map(|typo| {
        let value = Some(json!(typo.near));
        vec![need.set(typo.field.clone(), value)]
    });
    let affinity = need.pod.spec.affinity.as_ref().and_then(|all| all.pod_affinity.as_ref());
    let terms = affinity.map(|own| &own.required_during_scheduling_ignored_during_execution);
    let keys = terms.into_iter().flatten().map(|term| term.topology_key);
    let relax = relax(need, TermList::PodRequired, keys, near.term.topology_key);
    // A name that was mistyped is corrected, and no pod is created for it.
    let create = create(need).filter(|_| near.typo.is_none() && near.domain.is_some());
    correct.into_iter().chain(relax).chain(create).collect()
}

/// Creates a pod that all terms of the pod's affinity match, on the node.
fn create(need: &Obstacle<'_>) -> Option<Vec<Edit>> {
    let affinity = need.pod.spec.affinity.as_ref()?.pod_affinity.as_ref()?;
    let terms = &affinity.required_during_scheduling_ignored_during_execution;
    let own = need.pod.metadata.namespace;
    let namespace = terms.iter().find_map(|term| term.namespaces.first().copied()).unwrap_or(own);
    let labels: Option<Vec<Vec<(Symbol, Name)>>> =
        terms.iter().map(|term| matched_labels(need.pod, term)).collect();
    let labels: Labels = labels?.concat().into_iter().collect();
    let (_, name) = labels.iter().next()?;
    let name = NamespacedName::new(namespace, *name);
    let is_free = need.world.api().objects().pod(name).is_none() && is_name(&name.name.text());
    let pod = edit::new_pod(name, labels, need.node.name);
    is_free.then(|| vec![Edit::Put(Object::from(pod))])
}

/// Labels that a term selects; `None` if they cannot be derived from it.
fn matched_labels(pod: &Pod, term: &PodAffinityTerm) -> Option<Vec<(Symbol, Name)>> {
    if term.namespace_selector.is_some() || !term.mismatch_label_keys.is_empty() {
        return None;
    }
    let selector = term.label_selector.as_ref()?;
    let labels = selector.match_labels.iter().map(|(key, value)| (key, *value));
    let of_expressions = selector.match_expressions.iter().filter_map(|one| match one.operator {
        LabelSelectorOperator::In => Some((one.key, *one.values.first()?)),
        LabelSelectorOperator::Exists => Some((one.key, Name::new("true"))),
        _ => None,
    });
    let of_keys = term.match_label_keys.iter();
    let of_keys = of_keys.filter_map(|key| Some((*key, *pod.metadata.labels.get(*key)?)));
    Some(labels.chain(of_expressions).chain(of_keys).collect())
}

/// Whether a label's value can be a pod's name.
fn is_name(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let is_end = |c: Option<char>| c.is_some_and(|c| is_inner(c) && c.is_ascii_alphanumeric());
    text.chars().all(is_inner) && is_end(text.chars().next()) && is_end(text.chars().last())
}

pub(super) fn blocked_by_pod(need: &Obstacle<'_>, way: &BlockingAntiAffinity) -> Remedies {
    let mut remedies = match way.whose {
        TermOwner::Own => {
            let affinity = need.pod.spec.affinity.as_ref();
            let anti = affinity.and_then(|all| all.pod_anti_affinity.as_ref());
            let terms = anti.map(|own| &own.required_during_scheduling_ignored_during_execution);
            let keys = terms.into_iter().flatten().map(|term| term.topology_key);
            relax(need, TermList::AntiRequired, keys, way.term.topology_key)
        }
        TermOwner::Theirs => unlabel(need, &way.term.selector),
    };
    if way.pods.count > 0 && way.pods.count == way.pods.first.len() {
        remedies.push(way.pods.first.iter().map(|culprit| delete(culprit.pod)).collect());
    }
    remedies
}

/// Drops a term with that topology key.
fn relax(
    need: &Obstacle<'_>,
    list: TermList,
    keys: impl Iterator<Item = Symbol>,
    key: Symbol,
) -> Remedies {
    let same = keys.enumerate().filter(|(_, other)| *other == key);
    let term = |(index, _)| TermRef { list, index, expression: None };
    same.map(term).map(|term| vec![need.pod(PodEdit::Relax(term))]).collect()
}

/// Removes the label that the other pod's selector matches.
fn unlabel(need: &Obstacle<'_>, selector: &str) -> Remedies {
    let named = need.pod.metadata.labels.iter().filter(|(key, _)| selector.contains(key.as_str()));
    named.map(|(key, _)| vec![need.pod(PodEdit::Unlabel(key))]).collect()
}

/// Drops the host port, or deletes the pod that holds it.
pub(super) fn port_taken(need: &Obstacle<'_>, taken: &PortTaken) -> Remedies {
    let protocols = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp];
    let named = |protocol: &Protocol| protocol.as_str() == taken.protocol.as_str();
    let protocol = protocols.into_iter().find(named).unwrap_or(Protocol::Tcp);
    let port = HostPort { port: taken.port, protocol, ip: Symbol::EMPTY };
    let mut remedies = vec![vec![need.pod(PodEdit::Unport(port))]];
    remedies.extend(taken.holder.map(|holder| vec![delete(holder)]));
    remedies
}
