//! A pod as the scheduler sees it: the object and all that is parsed from it once.
//!
//! Upstream: `PodInfo` and `QueuedPodInfo` in `pkg/scheduler/framework/types.go`.

use std::sync::Arc;

use crate::api::WeightedPodAffinityTerm;
use crate::api::selector::Selector;
use crate::api::{Labels, Object, ObjectMeta, Pod, PodAffinityTerm, Time};
use crate::engine::pod_class::{AffinityTerms, PodClass};
use crate::engine::ports::{HostPort, container_host_ports};
use crate::engine::requests::{self, PodResource};
use crate::intern::Symbol;

/// Namespace and name of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct NamespacedName {
    /// The namespace; empty for objects of the whole cluster.
    pub namespace: Symbol,
    /// The name.
    pub name: Symbol,
}

impl NamespacedName {
    /// The key of `namespace/name`.
    pub fn new(namespace: Symbol, name: Symbol) -> NamespacedName {
        NamespacedName { namespace, name }
    }

    /// The key of an object; without a namespace for kinds of the whole cluster.
    pub fn of(object: &Object) -> NamespacedName {
        let key = object.key();
        NamespacedName::new(key.namespace, key.name)
    }
}

/// As text: `namespace/name`.
impl serde::Serialize for NamespacedName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl std::fmt::Display for NamespacedName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.is_empty() {
            true => f.pad(&self.name),
            false => f.pad(&format!("{}/{}", self.namespace, self.name)),
        }
    }
}

/// A pod (anti-)affinity term, compiled (FW-041).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AffinityTerm {
    /// Namespaces named by the term; the pod's own when it names none and has no selector.
    pub namespaces: Vec<Symbol>,
    /// Which namespaces by their labels; `Nothing` when the term has no such selector.
    pub namespace_selector: Selector,
    /// Which pods by their labels.
    pub selector: Selector,
    /// The node label whose value makes the domain.
    pub topology_key: Symbol,
}

/// A preferred term with its weight.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WeightedTerm {
    /// The term.
    pub term: AffinityTerm,
    /// 1 to 100.
    pub weight: i64,
}

impl AffinityTerm {
    fn new(pod: &Pod, term: &PodAffinityTerm) -> Result<AffinityTerm, String> {
        let own = term.namespaces.is_empty() && term.namespace_selector.is_none();
        Ok(AffinityTerm {
            namespaces: if own { vec![pod.metadata.namespace] } else { term.namespaces.clone() },
            namespace_selector: Selector::new(term.namespace_selector.as_ref())?,
            selector: Selector::new(term.label_selector.as_ref())?,
            topology_key: term.topology_key,
        })
    }

    /// Whether `pod` is meant, given the labels of its namespace (FW-041).
    pub fn matches(&self, pod: &Pod, namespace_labels: &Labels) -> bool {
        let ObjectMeta { namespace, labels, .. } = &pod.metadata;
        self.selects(*namespace, labels, namespace_labels)
    }

    /// Whether pods with these labels in that namespace are meant.
    pub fn selects(&self, namespace: Symbol, labels: &Labels, namespace_labels: &Labels) -> bool {
        let namespace_fits = self.namespaces.contains(&namespace)
            || self.namespace_selector.matches(namespace_labels);
        namespace_fits && self.selector.matches(labels)
    }
}

/// A pod with everything that is parsed from it once.
///
/// Shared as `Arc<PodInfo>` between cache, snapshot, queue and trace; never changed in place.
#[derive(Clone, PartialEq, Debug)]
pub struct PodInfo {
    /// The object.
    pub pod: Arc<Pod>,
    /// What other pods' terms and constraints can tell of it, and its own terms.
    pub class: Arc<PodClass>,
    /// What it counts for on a node.
    pub resource: PodResource,
    /// Host ports it holds on a node.
    pub host_ports: Vec<HostPort>,
    /// Its images by their full names: init containers, containers, image volumes (IL-001).
    pub images: Box<[Symbol]>,
    /// What could not be parsed of its affinity terms.
    pub parse_error: Option<String>,
}

impl PodInfo {
    /// Parses `pod`. A list of terms with a term that cannot be parsed counts as empty, and
    /// [`PodInfo::parse_error`] says why (FW-037).
    pub fn new(pod: Arc<Pod>) -> PodInfo {
        let (terms, parse_error) = parse_terms(&pod);
        PodInfo {
            class: PodClass::of(&pod, terms),
            resource: requests::accounted(&pod),
            host_ports: container_host_ports(&pod),
            images: images(&pod),
            parse_error,
            pod,
        }
    }

    /// The same pod after a change of its object. With the same UID, upstream keeps what it
    /// parsed from the old object (FW-037), and so do we.
    pub fn updated(&self, pod: Arc<Pod>) -> PodInfo {
        if self.pod.metadata.uid != pod.metadata.uid {
            return PodInfo::new(pod);
        }
        let class = PodClass::of(&pod, self.class.terms.clone());
        let host_ports = container_host_ports(&pod);
        PodInfo { host_ports, images: images(&pod), class, pod, ..self.clone() }
    }

    /// Namespace and name.
    pub fn key(&self) -> NamespacedName {
        NamespacedName::new(self.pod.metadata.namespace, self.pod.metadata.name)
    }

    /// The UID.
    pub fn uid(&self) -> Symbol {
        self.pod.metadata.uid
    }

    /// The priority; 0 when none is set.
    pub fn priority(&self) -> i32 {
        self.pod.spec.priority.unwrap_or(0)
    }

    /// Whether the pod has any pod affinity or anti-affinity object, even an empty one (FW-031).
    pub fn has_affinity(&self) -> bool {
        let affinity = self.pod.spec.affinity.as_ref();
        affinity.is_some_and(|a| a.pod_affinity.is_some() || a.pod_anti_affinity.is_some())
    }
}

fn images(pod: &Pod) -> Box<[Symbol]> {
    let spec = &pod.spec;
    let containers = spec.init_containers.iter().chain(&spec.containers).map(|c| c.image);
    let volumes = spec.volumes.iter().filter_map(|volume| volume.image.as_ref());
    containers.chain(volumes.map(|image| image.reference)).map(normalized_image_name).collect()
}

/// The image's name as nodes report it: with the tag `latest` if it has none (IL-004).
pub fn normalized_image_name(name: Symbol) -> Symbol {
    match name.rfind(':') {
        Some(colon) if name.rfind('/').is_none_or(|slash| slash < colon) => name,
        _ => Symbol::new(&format!("{name}:latest")),
    }
}

/// The affinity terms of a pod, and what could not be parsed of them.
fn parse_terms(pod: &Pod) -> (AffinityTerms, Option<String>) {
    let Some(affinity) = &pod.spec.affinity else { return Default::default() };
    let (attract, repel) = (affinity.pod_affinity.as_ref(), affinity.pod_anti_affinity.as_ref());
    let mut errors = Vec::new();
    let parse = |term: &PodAffinityTerm| AffinityTerm::new(pod, term);
    let parse_weighted = |term: &WeightedPodAffinityTerm| weighted(pod, term);
    let written = attract.map(|a| &a.required_during_scheduling_ignored_during_execution[..]);
    let required_affinity = terms("requiredAffinityTerms", written, &mut errors, parse);
    let written = repel.map(|a| &a.required_during_scheduling_ignored_during_execution[..]);
    let required_anti_affinity = terms("requiredAntiAffinityTerms", written, &mut errors, parse);
    let written = attract.map(|a| &a.preferred_during_scheduling_ignored_during_execution[..]);
    let preferred_affinity = terms("preferredAffinityTerms", written, &mut errors, parse_weighted);
    let written = repel.map(|a| &a.preferred_during_scheduling_ignored_during_execution[..]);
    let preferred_anti_affinity =
        terms("preferredAntiAffinityTerms", written, &mut errors, parse_weighted);
    let terms = AffinityTerms {
        required_affinity,
        required_anti_affinity,
        preferred_affinity,
        preferred_anti_affinity,
    };
    (terms, (!errors.is_empty()).then(|| errors.join(", ")))
}

fn weighted(pod: &Pod, term: &WeightedPodAffinityTerm) -> Result<WeightedTerm, String> {
    let weight = i64::from(term.weight);
    Ok(WeightedTerm { term: AffinityTerm::new(pod, &term.pod_affinity_term)?, weight })
}

/// Parses a list of terms; one bad term empties the list.
fn terms<T, U>(
    label: &str,
    written: Option<&[T]>,
    errors: &mut Vec<String>,
    parse: impl Fn(&T) -> Result<U, String>,
) -> Vec<U> {
    written.unwrap_or_default().iter().map(parse).collect::<Result<_, _>>().unwrap_or_else(|err| {
        errors.push(format!("{label}: {err}"));
        Vec::new()
    })
}

/// A pod in the scheduling queue.
#[derive(Clone, PartialEq, Debug)]
pub struct QueuedPod {
    /// The pod.
    pub info: Arc<PodInfo>,
    /// When it was last added to a queue.
    pub timestamp: Time,
    /// How often it was popped.
    pub attempts: u32,
    /// When it first entered the active queue.
    pub initial_attempt: Option<Time>,
    /// When its backoff ends, once computed.
    pub backoff_expiration: Option<Time>,
    /// Attempts that ended unschedulable, for the backoff.
    pub unschedulable_count: u32,
    /// Errors in a row, for the backoff.
    pub consecutive_errors: u32,
    /// Plugins that rejected it in the last attempt.
    pub unschedulable_plugins: Vec<Symbol>,
    /// Plugins that said Pending in the last attempt.
    pub pending_plugins: Vec<Symbol>,
    /// The PreEnqueue plugin that holds it, if one does.
    pub gating_plugin: Option<Symbol>,
    /// What that plugin said.
    pub gating_message: Option<Symbol>,
    /// Whether the five-minute flush moved it.
    pub flushed: bool,
    /// What its placement depends on, as of when it entered the queue or changed there
    /// (FW-225); `None` where that cannot be said, or nobody asks for it.
    pub signature: Option<Arc<String>>,
}

impl QueuedPod {
    /// A pod that enters the queue at `now`.
    pub fn new(info: Arc<PodInfo>, now: Time) -> QueuedPod {
        QueuedPod {
            info,
            timestamp: now,
            attempts: 0,
            initial_attempt: None,
            backoff_expiration: None,
            unschedulable_count: 0,
            consecutive_errors: 0,
            unschedulable_plugins: Vec::new(),
            pending_plugins: Vec::new(),
            gating_plugin: None,
            gating_message: None,
            flushed: false,
            signature: None,
        }
    }

    /// Namespace and name.
    pub fn key(&self) -> NamespacedName {
        self.info.key()
    }

    /// The UID.
    pub fn uid(&self) -> Symbol {
        self.info.uid()
    }

    /// Whether a PreEnqueue plugin holds it.
    pub fn is_gated(&self) -> bool {
        self.gating_plugin.is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::testing::{PodBuilder, pod};

    #[test]
    fn a_changed_pod_keeps_what_was_parsed_of_the_first() {
        let terms = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}]}});
        let first = PodInfo::new(Arc::new(pod("p").requests("cpu", "1")));
        let changed = pod("p").requests("cpu", "2").label("app", "web");
        let changed = changed.spec(json!({"affinity": terms}));
        let same = first.updated(Arc::new(changed.clone()));
        assert_eq!(same.resource.resource.milli_cpu, 1000);
        assert!(same.class.terms.required_affinity.is_empty());
        assert!(same.pod.metadata.labels.get("app".into()).is_some());
        let mut anew = changed;
        anew.metadata.uid = "anew".into();
        let other = first.updated(Arc::new(anew));
        assert_eq!(other.resource.resource.milli_cpu, 2000);
        assert_eq!(other.class.terms.required_affinity.len(), 1);
    }

    #[test]
    fn a_changed_pod_has_the_host_ports_of_the_second() {
        let ports = json!([{"containerPort": 80, "hostPort": 80}]);
        let with = pod("p").spec(json!({"containers": [{"name": "c", "ports": ports}]}));
        let without = pod("p").spec(json!({"containers": [{"name": "c"}]}));
        let first = PodInfo::new(Arc::new(without.clone()));
        let second = first.updated(Arc::new(with));
        assert_eq!((first.host_ports.len(), second.host_ports.len()), (0, 1));
        assert!(second.updated(Arc::new(without)).host_ports.is_empty());
    }

    #[test]
    fn an_image_without_a_tag_is_the_latest() {
        for (name, full) in [
            ("root", "root:latest"),
            ("root:tag", "root:tag"),
            ("gcr.io:5000/root", "gcr.io:5000/root:latest"),
            ("root@sha256:4f", "root@sha256:4f"),
            ("", ":latest"),
        ] {
            assert_eq!(normalized_image_name(name.into()), full);
        }
    }
}
