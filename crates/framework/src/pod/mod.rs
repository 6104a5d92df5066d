//! A pod as the scheduler sees it: the object and its parsed fields.
//!
//! Upstream: `PodInfo` and `QueuedPodInfo` in `pkg/scheduler/framework/types.go`.

pub mod class;
pub mod conditions;
pub mod nominated;
pub mod ports;
pub mod qos;
pub mod requests;

use std::sync::{Arc, OnceLock};

use crate::pod::class::{AffinityTerms, PodClass};
use crate::pod::ports::{HostPort, container_host_ports};
use crate::pod::requests::PodResource;
use kubestep_api::WeightedPodAffinityTerm;
use kubestep_api::intern::Symbol;
use kubestep_api::selector::{Selector, SelectorErrors};
use kubestep_api::{Labels, Name, Object, ObjectMeta, Pod, PodAffinityTerm, Time, Uid};
use kubestep_config::FeatureGates;
use kubestep_config::versions::Switch;

/// Namespace and name of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct NamespacedName {
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: Symbol,
    /// The name within the namespace.
    pub name: Name,
}

impl NamespacedName {
    /// The key of `namespace/name`.
    pub fn new(namespace: Symbol, name: Name) -> NamespacedName {
        NamespacedName { namespace, name }
    }

    /// The key of an object; without a namespace for cluster-scoped kinds.
    pub fn of(object: &Object) -> NamespacedName {
        let key = object.key();
        NamespacedName::new(key.namespace, key.name)
    }

    /// Whether `namespace/name` begins with `text`.
    pub fn begins_with(self, text: &str) -> bool {
        let namespace = self.namespace.as_str();
        match text.strip_prefix(namespace) {
            Some("") => true,
            Some(rest) => {
                let name = rest.strip_prefix('/');
                name.is_some_and(|beginning| self.name.text().starts_with(beginning))
            }
            None => namespace.starts_with(text),
        }
    }
}

/// Written as one text, `namespace/name`.
impl serde::Serialize for NamespacedName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl std::fmt::Display for NamespacedName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.namespace.is_empty(), f.width().or(f.precision())) {
            (true, _) => std::fmt::Display::fmt(&self.name, f),
            (false, None) => {
                std::fmt::Display::fmt(&self.namespace, f)?;
                f.write_str("/")?;
                std::fmt::Display::fmt(&self.name, f)
            }
            (false, Some(_)) => f.pad(&format!("{}/{}", self.namespace, self.name)),
        }
    }
}

/// A parsed pod affinity or anti-affinity term.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AffinityTerm {
    /// The namespaces named by the term; the pod's own if it has neither a list nor a selector.
    pub namespaces: Vec<Symbol>,
    /// Selects namespaces by their labels; `Nothing` if the term has no namespace selector.
    pub namespace_selector: Selector,
    /// Selects pods by their labels.
    pub selector: Selector,
    /// The node label whose values are the topology domains.
    pub topology_key: Symbol,
}

/// A preferred term with its weight.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WeightedTerm {
    /// The term, parsed for this pod.
    pub term: AffinityTerm,
    /// 1 to 100.
    pub weight: i64,
}

impl AffinityTerm {
    fn new(pod: &Pod, term: &PodAffinityTerm) -> Result<AffinityTerm, SelectorErrors> {
        let own = term.namespaces.is_empty() && term.namespace_selector.is_none();
        Ok(AffinityTerm {
            namespaces: if own { vec![pod.metadata.namespace] } else { term.namespaces.clone() },
            namespace_selector: Selector::new(term.namespace_selector.as_ref())?,
            selector: Selector::new(term.label_selector.as_ref())?,
            topology_key: term.topology_key,
        })
    }

    /// Whether the term selects `pod`, given the labels of its namespace.
    pub fn matches(&self, pod: &Pod, namespace_labels: &Labels) -> bool {
        let ObjectMeta { namespace, labels, .. } = &pod.metadata;
        self.selects(*namespace, labels, namespace_labels)
    }

    /// Whether the term selects pods with these labels in that namespace: the namespace is in the
    /// list or matches its selector, and the labels match.
    pub fn selects(&self, namespace: Symbol, labels: &Labels, namespace_labels: &Labels) -> bool {
        let namespace_fits = self.namespaces.contains(&namespace)
            || self.namespace_selector.matches(namespace_labels);
        namespace_fits && self.selector.matches(labels)
    }
}

/// A pod with its parsed fields.
///
/// Shared as `Arc<PodInfo>` between cache, snapshot, queue and trace; immutable.
#[derive(Clone, PartialEq, Debug)]
pub struct PodInfo {
    /// The pod as the API has it.
    pub pod: Arc<Pod>,
    /// What the terms and constraints of other pods depend on, and its own terms.
    pub class: Arc<PodClass>,
    /// The resources that it counts for on a node.
    pub resource: PodResource,
    /// The host ports that it uses on a node.
    pub host_ports: Vec<HostPort>,
    /// Its images by their normalized names: init containers, containers, image volumes.
    /// ImageLocality scores by them.
    pub images: Box<[Symbol]>,
    /// The pod's terms as of its current object, if they differ from those of its class: some
    /// cannot be parsed, or they were changed by an update.
    pub(crate) parsed: Option<Arc<ParsedAffinity>>,
    requests_key: RequestsKey,
}

/// A text computed from the pod when it is first asked for.
#[derive(Clone, Default, Debug)]
struct RequestsKey(OnceLock<Option<String>>);

/// Whether it was asked for makes no difference between pods.
impl PartialEq for RequestsKey {
    fn eq(&self, _: &RequestsKey) -> bool {
        true
    }
}

/// A pod's affinity terms, and their parse errors.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct ParsedAffinity {
    /// A list with a term that cannot be parsed is empty.
    terms: AffinityTerms,
    errors: Vec<(AffinityTermList, SelectorErrors)>,
}

/// A list of affinity terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AffinityTermList {
    /// `podAffinity`, required: each term has to match a pod in the node's domain.
    RequiredAffinity,
    /// `podAntiAffinity`, required: no term may match a pod in the node's domain.
    RequiredAntiAffinity,
    /// `podAffinity`, preferred: each matching pod adds the weight.
    PreferredAffinity,
    /// `podAntiAffinity`, preferred: each matching pod subtracts the weight.
    PreferredAntiAffinity,
}

impl PodInfo {
    /// Parses `pod`. As upstream, a list with a term that cannot be parsed counts as empty, and
    /// [`PodInfo::parse_error`] says why. Its resources are counted under the default feature
    /// gates.
    pub fn new(pod: Arc<Pod>) -> PodInfo {
        PodInfo::with_features(pod, &FeatureGates::default())
    }

    /// The same pod with another version of its object that differs in no parsed field: neither
    /// requests nor labels nor affinity.
    pub fn with_object(&self, pod: Arc<Pod>) -> PodInfo {
        PodInfo { pod, requests_key: RequestsKey::default(), ..self.clone() }
    }

    /// As [`PodInfo::new`], with the resources counted under these feature gates.
    pub fn with_features(pod: Arc<Pod>, features: &FeatureGates) -> PodInfo {
        let parsed = ParsedAffinity::of(&pod);
        PodInfo {
            class: PodClass::of(&pod, parsed.terms.clone()),
            resource: requests::accounted(&pod, features),
            host_ports: container_host_ports(&pod, features),
            images: images(&pod, features),
            parsed: (!parsed.errors.is_empty()).then(|| Arc::new(parsed)),
            requests_key: RequestsKey::default(),
            pod,
        }
    }

    /// The same pod after an update of its object. As upstream, with the same UID other pods still
    /// see the terms that were parsed from the old object; for its own placement its terms are
    /// parsed again (see [`PodInfo::own_terms`]). Its requests are read from the new object, as
    /// upstream does when the pod is added to a node.
    pub fn updated(&self, pod: Arc<Pod>, features: &FeatureGates) -> PodInfo {
        if self.pod.metadata.uid != pod.metadata.uid {
            return PodInfo::with_features(pod, features);
        }
        let class = PodClass::of(&pod, self.class.terms.clone());
        let resource = requests::accounted(&pod, features);
        let host_ports = container_host_ports(&pod, features);
        let parsed = match self.pod.spec.affinity == pod.spec.affinity {
            true => self.parsed.clone(),
            false => Some(Arc::new(ParsedAffinity::of(&pod))),
        };
        let (images, requests_key) = (images(&pod, features), RequestsKey::default());
        PodInfo { class, resource, host_ports, images, parsed, requests_key, pod }
    }

    /// The affinity terms that apply to the placement of the pod itself.
    pub fn own_terms(&self) -> &AffinityTerms {
        self.parsed.as_ref().map_or(&self.class.terms, |parsed| &parsed.terms)
    }

    /// The parse error of one list of its own terms.
    pub fn error_in(&self, list: AffinityTermList) -> Option<&SelectorErrors> {
        let mut errors = self.parsed.iter().flat_map(|parsed| &parsed.errors);
        errors.find(|(other, _)| *other == list).map(|(_, error)| error)
    }

    /// The parse errors of its own terms, in the text of upstream's `NewPodInfo`.
    pub fn parse_error(&self) -> Option<SelectorErrors> {
        let errors = self.parsed.iter().flat_map(|parsed| &parsed.errors);
        let errors: Vec<String> =
            errors.map(|(list, error)| format!("{}: {error}", list.label())).collect();
        (!errors.is_empty()).then_some(SelectorErrors(errors))
    }

    /// The text by which plugins recognise pods with the same requests: several of them ask for it in
    /// a cycle, so it is kept. `compute` must depend on the pod alone.
    pub fn requests_key(&self, compute: impl FnOnce(&Pod) -> Option<String>) -> Option<String> {
        self.requests_key.0.get_or_init(|| compute(&self.pod)).clone()
    }

    /// Namespace and name, by which listers find it.
    pub fn key(&self) -> NamespacedName {
        NamespacedName::new(self.pod.metadata.namespace, self.pod.metadata.name)
    }

    /// The UID, which a pod of the same name that replaces it does not have.
    pub fn uid(&self) -> Uid {
        self.pod.metadata.uid
    }

    /// The priority; 0 when none is set.
    pub fn priority(&self) -> i32 {
        self.pod.spec.priority.unwrap_or(0)
    }

    /// Whether the pod has any pod affinity or anti-affinity object, even an empty one. Upstream
    /// lists such pods as pods with affinity.
    pub fn has_affinity(&self) -> bool {
        let affinity = self.pod.spec.affinity.as_ref();
        affinity.is_some_and(|a| a.pod_affinity.is_some() || a.pod_anti_affinity.is_some())
    }
}

fn images(pod: &Pod, features: &FeatureGates) -> Box<[Symbol]> {
    let spec = &pod.spec;
    let containers = spec.init_containers.iter().chain(&spec.containers).map(|c| c.image);
    let volumes_count = features.has(Switch::ImageVolumesCount);
    let volumes = spec.volumes.iter().filter(|_| volumes_count);
    let volumes = volumes.filter_map(|volume| volume.image.as_ref());
    containers.chain(volumes.map(|image| image.reference)).map(normalized_image_name).collect()
}

/// The image's name as nodes report it: with the tag `latest` if it has none.
pub fn normalized_image_name(name: Symbol) -> Symbol {
    match name.rfind(':') {
        Some(colon) if name.rfind('/').is_none_or(|slash| slash < colon) => name,
        _ => Symbol::new(&format!("{name}:latest")),
    }
}

impl AffinityTermList {
    fn label(self) -> &'static str {
        match self {
            AffinityTermList::RequiredAffinity => "requiredAffinityTerms",
            AffinityTermList::RequiredAntiAffinity => "requiredAntiAffinityTerms",
            AffinityTermList::PreferredAffinity => "preferredAffinityTerms",
            AffinityTermList::PreferredAntiAffinity => "preferredAntiAffinityTerms",
        }
    }
}

impl ParsedAffinity {
    fn of(pod: &Pod) -> ParsedAffinity {
        let Some(affinity) = &pod.spec.affinity else { return ParsedAffinity::default() };
        let (attract, repel) = (&affinity.pod_affinity, &affinity.pod_anti_affinity);
        let mut errors = Vec::new();
        let parse = |term: &PodAffinityTerm| AffinityTerm::new(pod, term);
        let weigh = |term: &WeightedPodAffinityTerm| weighted(pod, term);
        let mut terms = AffinityTerms::default();
        if let Some(written) = attract {
            let required = &written.required_during_scheduling_ignored_during_execution;
            let preferred = &written.preferred_during_scheduling_ignored_during_execution;
            terms.required_affinity =
                parse_list(AffinityTermList::RequiredAffinity, required, &mut errors, parse);
            terms.preferred_affinity =
                parse_list(AffinityTermList::PreferredAffinity, preferred, &mut errors, weigh);
        }
        if let Some(written) = repel {
            let required = &written.required_during_scheduling_ignored_during_execution;
            let preferred = &written.preferred_during_scheduling_ignored_during_execution;
            terms.required_anti_affinity =
                parse_list(AffinityTermList::RequiredAntiAffinity, required, &mut errors, parse);
            terms.preferred_anti_affinity =
                parse_list(AffinityTermList::PreferredAntiAffinity, preferred, &mut errors, weigh);
        }
        errors.sort_by_key(|(list, _)| *list as u8);
        ParsedAffinity { terms, errors }
    }
}

fn weighted(pod: &Pod, term: &WeightedPodAffinityTerm) -> Result<WeightedTerm, SelectorErrors> {
    let weight = i64::from(term.weight);
    Ok(WeightedTerm { term: AffinityTerm::new(pod, &term.pod_affinity_term)?, weight })
}

/// Parses a list of terms; one invalid term empties the list.
fn parse_list<T, U>(
    list: AffinityTermList,
    written: &[T],
    errors: &mut Vec<(AffinityTermList, SelectorErrors)>,
    parse: impl Fn(&T) -> Result<U, SelectorErrors>,
) -> Vec<U> {
    written.iter().map(parse).collect::<Result<_, _>>().unwrap_or_else(|error| {
        errors.push((list, error));
        Vec::new()
    })
}

/// A pod in the scheduling queue.
#[derive(Clone, PartialEq, Debug)]
pub struct QueuedPodInfo {
    /// The pod, with its parsed fields.
    pub info: Arc<PodInfo>,
    /// When it was last added to a queue.
    pub timestamp: Time,
    /// Number of times it was popped.
    pub attempts: u32,
    /// When it first entered the active queue.
    pub initial_attempt: Option<Time>,
    /// When its backoff ends, once computed.
    pub backoff_expiration: Option<Time>,
    /// Number of attempts that ended unschedulable, for the backoff.
    pub unschedulable_count: u32,
    /// Number of consecutive errors, for the backoff; takes precedence over `unschedulable_count`.
    pub consecutive_errors: u32,
    /// Plugins that rejected it in the last attempt.
    pub unschedulable_plugins: Vec<Symbol>,
    /// Plugins that returned Pending in the last attempt.
    pub pending_plugins: Vec<Symbol>,
    /// The PreEnqueue plugin that gates it, if one does.
    pub gating_plugin: Option<Symbol>,
    /// The message of that plugin.
    pub gating_message: Option<Symbol>,
    /// Whether the flush of leftover pods moved it.
    pub flushed: bool,
    /// What its placement depends on, computed when it entered the queue or was updated there;
    /// `None` if it cannot be signed, or batching is off.
    pub signature: Option<Arc<String>>,
}

impl QueuedPodInfo {
    /// A pod that enters the queue at `now`.
    pub fn new(info: Arc<PodInfo>, now: Time) -> QueuedPodInfo {
        QueuedPodInfo {
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

    /// Namespace and name, by which listers find it.
    pub fn key(&self) -> NamespacedName {
        self.info.key()
    }

    /// The UID, which a pod of the same name that replaces it does not have.
    pub fn uid(&self) -> Uid {
        self.info.uid()
    }

    /// Whether a PreEnqueue plugin gates it.
    pub fn is_gated(&self) -> bool {
        self.gating_plugin.is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{PodBuilder, pod};
    use kubestep_config::KubeVersion;

    #[test]
    fn a_name_begins_with_its_namespace() {
        let web = NamespacedName::new("shop".into(), "web-0".into());
        assert!(["", "sh", "shop", "shop/", "shop/web"].iter().all(|text| web.begins_with(text)));
        assert!(!["web", "shops", "shop/x", "shop-2/web"].iter().any(|text| web.begins_with(text)));
    }

    #[test]
    fn a_changed_pod_keeps_the_terms_of_the_first() {
        let terms = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}]}});
        let gates = FeatureGates::default();
        let first = PodInfo::new(Arc::new(pod("p").requests("cpu", "1")));
        let changed = pod("p").requests("cpu", "2").label("app", "web");
        let changed = changed.spec(json!({"affinity": terms}));
        let same = first.updated(Arc::new(changed.clone()), &gates);
        assert_eq!(same.resource.resource.milli_cpu, 2000);
        assert!(same.class.terms.required_affinity.is_empty());
        assert!(same.pod.metadata.labels.get("app".into()).is_some());
        let mut recreated = changed;
        recreated.metadata.uid = "recreated".into();
        let other = first.updated(Arc::new(recreated), &gates);
        assert_eq!(other.resource.resource.milli_cpu, 2000);
        assert_eq!(other.class.terms.required_affinity.len(), 1);
    }

    #[test]
    fn images_of_volumes_count_since_1_36() {
        let volume = json!({"name": "v", "image": {"reference": "data"}});
        let containers = json!([{"name": "main", "image": "web:1"}]);
        let spec = json!({"containers": containers, "volumes": [volume]});
        let images = [35, 36].map(|minor| {
            let gates = FeatureGates::of(KubeVersion::of_minor(minor).unwrap());
            PodInfo::with_features(Arc::new(pod("p").spec(spec.clone())), &gates).images.to_vec()
        });
        let [web, data] = ["web:1", "data:latest"].map(Symbol::new);
        assert_eq!(images, [vec![web], vec![web, data]]);
    }

    /// InterPodAffinity builds a new PodInfo of the pod that it places.
    #[test]
    fn a_changed_pod_is_placed_by_the_terms_of_the_second() {
        let near = |app: &str| {
            let term = json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "k"});
            let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
            Arc::new(pod("p").spec(json!({"affinity": {"podAffinity": terms}})))
        };
        let gates = FeatureGates::default();
        let (first, second) = (PodInfo::new(near("a")), PodInfo::new(near("b")));
        let changed = first.updated(near("b"), &gates);
        assert_eq!(changed.own_terms(), second.own_terms());
        assert_eq!(changed.class.terms, first.class.terms);
        assert_eq!(changed.updated(near("b"), &gates).own_terms(), second.own_terms());
        assert_eq!(first.updated(near("a"), &gates), first);
    }

    #[test]
    fn what_cannot_be_parsed_is_said_list_by_list() {
        let bad = json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]},
            "topologyKey": "k"});
        let lists = json!({
            "requiredDuringSchedulingIgnoredDuringExecution": [bad],
            "preferredDuringSchedulingIgnoredDuringExecution":
                [{"weight": 1, "podAffinityTerm": bad}]});
        let both = json!({"affinity": {"podAffinity": lists, "podAntiAffinity": lists}});
        let info = PodInfo::new(Arc::new(pod("p").spec(both)));
        let reason = "\"Is\" is not a valid label selector operator";
        assert_eq!(
            info.parse_error().unwrap().to_string(),
            format!(
                "[requiredAffinityTerms: {reason}, requiredAntiAffinityTerms: {reason}, \
                 preferredAffinityTerms: {reason}, preferredAntiAffinityTerms: {reason}]"
            )
        );
        let own = SelectorErrors(vec![reason.to_owned()]);
        assert_eq!(info.error_in(AffinityTermList::RequiredAntiAffinity), Some(&own));
        assert_eq!(PodInfo::new(Arc::new(pod("p"))).parse_error(), None);
    }

    #[test]
    fn a_changed_pod_has_the_host_ports_of_the_second() {
        let ports = json!([{"containerPort": 80, "hostPort": 80}]);
        let with = pod("p").spec(json!({"containers": [{"name": "c", "ports": ports}]}));
        let without = pod("p").spec(json!({"containers": [{"name": "c"}]}));
        let gates = FeatureGates::default();
        let first = PodInfo::new(Arc::new(without.clone()));
        let second = first.updated(Arc::new(with), &gates);
        assert_eq!((first.host_ports.len(), second.host_ports.len()), (0, 1));
        assert!(second.updated(Arc::new(without), &gates).host_ports.is_empty());
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
