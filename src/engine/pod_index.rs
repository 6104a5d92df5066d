//! The pods of a snapshot by what selectors can tell apart, and their affinity terms by what
//! they say: where pods are alike, one look is enough for all of them.
//!
//! InterPodAffinity and PodTopologySpread ask which pods a selector means and where those are.
//! With this index the answer costs as much as there are kinds of pods, and nodes that have
//! them, not as much as there are pods. It follows the snapshot node by node.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

use hashbrown::HashSet;
use indexmap::IndexMap;

use crate::api::Labels;
use crate::engine::node::{NodeId, NodeInfo};
use crate::engine::pod::{AffinityTerm, PodInfo};
use crate::intern::Symbol;

/// What selectors can tell of a pod.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PodKind {
    /// The namespace.
    pub namespace: Symbol,
    /// The labels.
    pub labels: Labels,
    /// Whether deletion has been asked for.
    pub terminating: bool,
}

/// How a term of a placed pod counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TermKind {
    /// Required affinity.
    Affinity,
    /// Required anti-affinity.
    AntiAffinity,
    /// Preferred affinity, with its weight.
    Prefers(i64),
    /// Preferred anti-affinity, with its weight.
    Avoids(i64),
}

/// How many on which node.
pub type Places = BTreeMap<NodeId, u32>;

/// Counts by kind; equal kinds are one entry.
type ByKind<K> = Arc<IndexMap<K, Arc<Places>>>;

/// The index.
#[derive(Clone, Default, Debug)]
pub struct PodIndex {
    pods: ByKind<PodKind>,
    terms: ByKind<(TermKind, AffinityTerm)>,
}

impl PodIndex {
    /// The index of these nodes.
    pub fn of<'a>(nodes: impl Iterator<Item = &'a NodeInfo>) -> PodIndex {
        let mut index = PodIndex::default();
        nodes.for_each(|node| index.refresh(None, Some(node)));
        index
    }

    /// The kinds of pods, with where they are.
    pub fn pods(&self) -> impl Iterator<Item = (&PodKind, &Places)> {
        self.pods.iter().map(|(kind, places)| (kind, places.as_ref()))
    }

    /// The affinity terms of pods, with where those pods are.
    pub fn terms(&self) -> impl Iterator<Item = (TermKind, &AffinityTerm, &Places)> {
        self.terms.iter().map(|((kind, term), places)| (*kind, term, places.as_ref()))
    }

    /// Takes over what changed on a node: pods that are there before and after cost nothing.
    pub fn refresh(&mut self, before: Option<&NodeInfo>, after: Option<&NodeInfo>) {
        let Some(node) = after.or(before).map(|info| info.id) else { return };
        let pods = |info: Option<&NodeInfo>| info.map(|info| info.pods.clone()).unwrap_or_default();
        let (mut gone, mut come) = (pods(before), pods(after));
        // Usually a pod was added at the end, and all others are the same.
        let same = gone.iter().zip(&come).take_while(|(a, b)| Arc::ptr_eq(a, b)).count();
        gone.drain(..same);
        come.drain(..same);
        let kept: HashSet<*const PodInfo> = come.iter().map(Arc::as_ptr).collect();
        let common: HashSet<*const PodInfo> =
            gone.iter().map(Arc::as_ptr).filter(|pod| kept.contains(pod)).collect();
        for pod in gone.iter().filter(|pod| !common.contains(&Arc::as_ptr(pod))) {
            self.count(node, pod, false);
        }
        for pod in come.iter().filter(|pod| !common.contains(&Arc::as_ptr(pod))) {
            self.count(node, pod, true);
        }
    }

    fn count(&mut self, node: NodeId, pod: &PodInfo, added: bool) {
        let metadata = &pod.pod.metadata;
        let kind = PodKind {
            namespace: metadata.namespace,
            labels: metadata.labels.clone(),
            terminating: metadata.deletion_timestamp.is_some(),
        };
        count(&mut self.pods, kind, node, added);
        let required = |terms: &[AffinityTerm], kind: TermKind| {
            terms.iter().map(|term| (kind, term.clone())).collect::<Vec<_>>()
        };
        let mut terms = required(&pod.required_affinity, TermKind::Affinity);
        terms.extend(required(&pod.required_anti_affinity, TermKind::AntiAffinity));
        let preferred = pod.preferred_affinity.iter();
        terms.extend(preferred.map(|own| (TermKind::Prefers(own.weight), own.term.clone())));
        let avoided = pod.preferred_anti_affinity.iter();
        terms.extend(avoided.map(|own| (TermKind::Avoids(own.weight), own.term.clone())));
        for term in terms {
            count(&mut self.terms, term, node, added);
        }
    }
}

/// Counts one in or out; kinds without places are dropped.
fn count<K: Clone + Eq + Hash>(map: &mut ByKind<K>, kind: K, node: NodeId, added: bool) {
    let map = Arc::make_mut(map);
    if added {
        let places = Arc::make_mut(map.entry(kind).or_default());
        *places.entry(node).or_default() += 1;
        return;
    }
    let Some(places) = map.get_mut(&kind).map(Arc::make_mut) else { return };
    if let Some(count) = places.get_mut(&node) {
        *count -= 1;
        if *count == 0 {
            places.remove(&node);
        }
    }
    if places.is_empty() {
        map.swap_remove(&kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{PodBuilder, info, pod};
    use serde_json::json;

    fn node(pods: &[&Arc<PodInfo>]) -> NodeInfo {
        let mut node = NodeInfo::new(NodeId(1), "n1".into());
        pods.iter().for_each(|pod| node.add_pod((*pod).clone()));
        node
    }

    fn counts(index: &PodIndex) -> Vec<(String, Vec<(u32, u32)>)> {
        let kinds = index.pods().map(|(kind, places)| {
            let app = kind.labels.get_str("app").map(|app| app.to_string()).unwrap_or_default();
            (app, places.iter().map(|(node, count)| (node.0, *count)).collect())
        });
        let mut kinds: Vec<_> = kinds.collect();
        kinds.sort();
        kinds
    }

    fn app(name: &str, app: &str) -> Arc<PodInfo> {
        let mut pod = pod(name);
        pod.metadata.labels.insert("app".into(), app.into());
        info(pod)
    }

    #[test]
    fn pods_that_are_alike_are_one_kind() {
        let (a, b, c) = (app("a", "web"), app("b", "web"), app("c", "db"));
        let mut index = PodIndex::default();
        let first = node(&[&a, &b, &c]);
        index.refresh(None, Some(&first));
        let expected = [("db".to_owned(), vec![(1, 1)]), ("web".to_owned(), vec![(1, 2)])];
        assert_eq!(counts(&index), expected);
        // A pod leaves from the middle: the last one takes its place in the list.
        let second = node(&[&c, &b]);
        index.refresh(Some(&first), Some(&second));
        let expected = [("db".to_owned(), vec![(1, 1)]), ("web".to_owned(), vec![(1, 1)])];
        assert_eq!(counts(&index), expected);
        index.refresh(Some(&second), None);
        assert_eq!(counts(&index), []);
    }

    #[test]
    fn equal_terms_are_one() {
        let term = json!({"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"});
        let anti = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        let spec = json!({"affinity": {"podAntiAffinity": anti}});
        let (a, b) = (info(pod("a").spec(spec.clone())), info(pod("b").spec(spec)));
        let mut index = PodIndex::default();
        index.refresh(None, Some(&node(&[&a, &b])));
        let terms: Vec<_> = index.terms().map(|(kind, _, places)| (kind, places.clone())).collect();
        assert_eq!(terms, [(TermKind::AntiAffinity, Places::from([(NodeId(1), 2)]))]);
    }
}
