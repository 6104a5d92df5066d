//! Other pods that block: affinity between pods, and host ports.

use serde_json::json;

use super::{Obstacle, Remedies, delete};
use crate::edit::{HostPort, PodEdit, TermList, TermRef};
use crate::why::cause::{BlockingAntiAffinity, NoPodNear, PortTaken, TermOwner};
use kubestep_api::Protocol;
use kubestep_api::intern::Symbol;

pub(super) fn no_pod_near(need: &Obstacle<'_>, near: &NoPodNear) -> Remedies {
    let correct = near.typo.as_ref().map(|typo| {
        let value = Some(json!(typo.near.as_str()));
        vec![need.set(typo.field.clone(), value)]
    });
    let affinity = need.pod.spec.affinity.as_ref().and_then(|all| all.pod_affinity.as_ref());
    let terms = affinity.map(|own| &own.required_during_scheduling_ignored_during_execution);
    let keys = terms.into_iter().flatten().map(|term| term.topology_key);
    let relax = relax(need, TermList::PodRequired, keys, near.term.topology_key);
    correct.into_iter().chain(relax).collect()
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
