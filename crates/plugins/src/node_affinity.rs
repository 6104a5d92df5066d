//! NodeAffinity: the pod's node selector and node affinity, and the affinity that the profile
//! adds to every pod.
//!
//! Upstream: `pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::normalize::relative_to_highest;
use super::signers;
use crate::keys;
use crate::older_events;
use kubestep_api as api;
use kubestep_api::intern::Symbol;
use kubestep_api::selector::{NodeMatcher, PreferredTerms, RequiredNodeAffinity, Selector};
use kubestep_api::{
    Name, Node, NodeSelector, NodeSelectorOperator, NodeSelectorTerm, Pod, PreferredSchedulingTerm,
};
use kubestep_config::validation::Findings;
use kubestep_config::versions::Switch;
use kubestep_config::{
    ArgsType, Arguments, DefaultProfile, ExtensionPoint, FeatureGates, FieldPath, PluginDescriptor,
    ProfileArgs, arguments,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::error::PluginError;
use kubestep_framework::events::{
    Action, EventObjects, EventResource, HintResult, OlderRegistration, QueueingHint, Registration,
};
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::{
    CycleContext, Fragments, Plugin, PreFilterAnswer, QueueContext, ScoreBasis,
};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::record::nodes::NodeList;
use kubestep_framework::registry::Built;
use kubestep_framework::status::{DistinctStatuses, Status};

const NOT_ENFORCED: &str = "node(s) didn't match scheduler-enforced node affinity";
const NOT_MATCHED: &str = "node(s) didn't match Pod's node affinity/selector";

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_weight: Some(2),
    args: Some(ArgsType::of::<NodeAffinityArgs>()),
    default_profile: DefaultProfile::Present,
    doc: "node selector and node affinity",
    long_doc: "spec.nodeSelector and the required node affinity must match the node, and so must the \
               addedAffinity of the plugin's arguments. Preferred terms add their weight to the score.",
    example: "With nodeSelector {disktype: ssd} every node without the label disktype=ssd is \
              rejected; a preferred term of weight 50 raises the score of nodes that match it.",
    ..PluginDescriptor::new(
        "NodeAffinity",
        &[
            ExtensionPoint::PreFilter,
            ExtensionPoint::Filter,
            ExtensionPoint::PreScore,
            ExtensionPoint::Score,
        ],
    )
};

arguments! {
    /// Affinity that is added to that of every pod.
    pub struct NodeAffinityArgs for "NodeAffinity" {
        added_affinity: Option<api::NodeAffinity> = None,
            put_some "addedAffinity", "a node affinity",
            "Applies to every pod of the profile, in addition to the pod's own affinity.";
    }
}

impl NodeAffinityArgs {
    /// The terms of which the node of every pod must match one.
    pub fn required(&self) -> Option<&NodeSelector> {
        let added = self.added_affinity.as_ref()?;
        added.required_during_scheduling_ignored_during_execution.as_ref()
    }
}

impl Arguments for NodeAffinityArgs {
    fn validate(&self, found: &mut Findings, path: &FieldPath, _: &FeatureGates) {
        if let Some(affinity) = &self.added_affinity {
            found.node_affinity(affinity, &path.field("addedAffinity"));
        }
    }
}

/// Builds the plugin.
///
/// # Errors
/// The added affinity cannot be parsed.
pub fn build(args: &ProfileArgs, _: &FeatureGates) -> Built {
    let name = Symbol::new("NodeAffinity");
    let args: NodeAffinityArgs = args.of();
    let added = args.added_affinity.as_ref();
    Ok(Arc::new(NodeAffinity {
        name,
        enforced: enforced(&args)?.map(Arc::new),
        added_preferences: added.map_or(Ok(None), added_preferences)?,
        not_enforced: Status::unresolvable(NOT_ENFORCED).by(name),
        not_matched: Status::unresolvable(NOT_MATCHED).by(name),
    }))
}

fn enforced(args: &NodeAffinityArgs) -> Result<Option<NodeMatcher>, PluginError> {
    let field = "requiredDuringSchedulingIgnoredDuringExecution";
    let Some(required) = args.required() else { return Ok(None) };
    let matcher = NodeMatcher::new(required, "");
    matcher.check().map_err(|errors| format!("parsing addedAffinity.{field}: {errors}"))?;
    Ok(Some(matcher))
}

fn added_preferences(added: &api::NodeAffinity) -> Result<Option<PreferredTerms>, PluginError> {
    let field = "preferredDuringSchedulingIgnoredDuringExecution";
    let terms = &added.preferred_during_scheduling_ignored_during_execution;
    if terms.is_empty() {
        return Ok(None);
    }
    let terms = PreferredTerms::new(terms);
    Ok(Some(terms.map_err(|errors| format!("parsing addedAffinity.{field}: {errors}"))?))
}

struct NodeAffinity {
    name: Symbol,
    /// The affinity that the profile requires of the node of every pod.
    enforced: Option<Arc<NodeMatcher>>,
    /// The preferences that the profile adds to those of every pod.
    added_preferences: Option<PreferredTerms>,
    not_enforced: Status,
    not_matched: Status,
}

impl NodeAffinity {
    /// The names of the only nodes that can match, if the pod's terms name them. `None` also if the
    /// profile adds affinity, which may reject the others for another reason.
    fn only_named(&self, pod: &Pod) -> Option<BTreeSet<Name>> {
        let required = required_terms(pod).filter(|_| self.enforced.is_none())?;
        named_nodes(&required.node_selector_terms)
    }
}

/// What a pod and its profile require of a node, compiled once per cycle.
pub struct Requirements {
    enforced: Option<Arc<NodeMatcher>>,
    own: RequiredNodeAffinity,
}

/// A requirement that a node does not meet.
pub enum Mismatch<'a> {
    /// The affinity that the profile adds to every pod.
    Added(&'a NodeMatcher),
    /// The pod's node selector.
    Selector(&'a Selector),
    /// The pod's required node affinity.
    Affinity(&'a NodeMatcher),
}

impl Mismatch<'_> {
    /// The status with which Filter rejects the node.
    pub fn rejection(&self) -> Status {
        Status::unresolvable(match self {
            Mismatch::Added(_) => NOT_ENFORCED,
            Mismatch::Selector(_) | Mismatch::Affinity(_) => NOT_MATCHED,
        })
    }
}

impl Requirements {
    /// Those that PreFilter compiled for the cycle; compiled now if the profile runs the plugin at
    /// Filter only.
    pub fn of_cycle(state: &CycleState, pod: &Pod, args: &NodeAffinityArgs) -> Arc<Requirements> {
        let compile = || {
            let enforced = enforced(args).ok().flatten().map(Arc::new);
            Arc::new(Requirements::new(pod, enforced))
        };
        state.read().map_or_else(compile, |Required(requirements)| requirements.clone())
    }

    fn new(pod: &Pod, enforced: Option<Arc<NodeMatcher>>) -> Requirements {
        Requirements { enforced, own: RequiredNodeAffinity::of(pod) }
    }

    /// What the node does not meet: Filter stops at the first, an explanation names all. Terms that
    /// cannot be parsed reject every node, as upstream.
    pub fn mismatches<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = Mismatch<'a>> {
        let differs = move |matcher: &&NodeMatcher| !matcher.matches_node(node);
        let enforced = self.enforced.as_deref().into_iter().filter(differs).map(Mismatch::Added);
        let selector = std::iter::once(self.own.labels())
            .filter(move |selector| !selector.matches(&node.metadata.labels))
            .map(Mismatch::Selector);
        let own = self.own.affinity().into_iter().filter(differs).map(Mismatch::Affinity);
        enforced.chain(selector).chain(own)
    }
}

/// The requirements in the cycle state.
#[derive(Clone)]
struct Required(Arc<Requirements>);

/// The pod's preferences, compiled once per cycle; `None` if it has none.
#[derive(Clone)]
struct Preferred(Option<Arc<PreferredTerms>>);

fn node_affinity(pod: &Pod) -> Option<&api::NodeAffinity> {
    pod.spec.affinity.as_ref()?.node_affinity.as_ref()
}

/// The required node affinity in the pod's spec.
pub fn required_terms(pod: &Pod) -> Option<&NodeSelector> {
    node_affinity(pod)?.required_during_scheduling_ignored_during_execution.as_ref()
}

/// The preferred terms in the pod's spec.
pub fn preferred_terms(pod: &Pod) -> &[PreferredSchedulingTerm] {
    node_affinity(pod)
        .map_or(&[], |affinity| &affinity.preferred_during_scheduling_ignored_during_execution)
}

impl Preferred {
    fn of(pod: &Pod) -> Result<Preferred, Status> {
        let terms = preferred_terms(pod);
        if terms.is_empty() {
            return Ok(Preferred(None));
        }
        match PreferredTerms::new(terms) {
            Ok(terms) => Ok(Preferred(Some(Arc::new(terms)))),
            Err(errors) => Err(Status::error(errors.to_string())),
        }
    }
}

/// The node names that the terms select by `metadata.name`: the intersection within a term, the
/// union over terms. `None` if some term selects no names, as any node may then match.
fn named_nodes(terms: &[NodeSelectorTerm]) -> Option<BTreeSet<Name>> {
    let mut union = BTreeSet::new();
    for term in terms {
        let names = term.match_fields.iter().filter(|field| {
            field.key == "metadata.name" && field.operator == NodeSelectorOperator::In
        });
        let sets = names.map(|field| field.values.iter().copied().collect::<BTreeSet<_>>());
        union.extend(sets.reduce(|all, set| all.intersection(&set).copied().collect())?);
    }
    Some(union)
}

/// A node helps if it matches and did not before.
fn after_node_change(
    features: &FeatureGates,
    enforced: Option<&NodeMatcher>,
    pod: &PodInfo,
    objects: &EventObjects,
) -> HintResult {
    let (old, Some(new)) = objects.nodes()? else { return Ok(QueueingHint::Skip) };
    if enforced.is_some_and(|enforced| !enforced.matches_node(new)) {
        return Ok(QueueingHint::Skip);
    }
    let required = RequiredNodeAffinity::of(&pod.pod);
    let matches = |node: &Node| required.matches(&node.metadata.labels, node.metadata.name);
    let old = old.filter(|_| features.has(Switch::NodeAffinityHintComparesNode));
    Ok(QueueingHint::queue_if(matches(new)? && !old.map_or(Ok(false), matches)?))
}

impl Plugin for NodeAffinity {
    fn name(&self) -> Symbol {
        self.name
    }

    /// `None` for a pod that names its nodes: few pods name the same ones, and
    /// [`Plugin::filters`] is cheap for it.
    fn filter_key(&self, pod: &PodInfo) -> Option<String> {
        if self.only_named(&pod.pod).is_some() { None } else { keys::node_affinity(pod) }
    }

    fn score_basis(&self) -> ScoreBasis {
        ScoreBasis::HighestScore
    }

    fn score_key(&self, pod: &PodInfo) -> Option<String> {
        keys::node_affinity(pod)
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let nodes = Action::ADD | Action::UPDATE_NODE_LABEL;
        let enforced = self.enforced.clone();
        Some(vec![Registration::hinted(EventResource::Node, nodes, move |cx, pod, objects| {
            after_node_change(cx.features, enforced.as_deref(), pod, objects)
        })])
    }

    fn older_registration(&self) -> OlderRegistration {
        older_events::all_node_updates
    }

    fn admits(&self, _cx: &QueueContext<'_>, pod: &PodInfo, node: &NodeInfo) -> bool {
        let Some(node) = &node.node else { return true };
        let required = RequiredNodeAffinity::of(&pod.pod);
        required.matches(&node.metadata.labels, node.metadata.name).unwrap_or(false)
    }

    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        let pod = &cx.pod.pod;
        let required = required_terms(pod);
        if required.is_none() && self.enforced.is_none() && pod.spec.node_selector.is_none() {
            return Status::skip().into();
        }
        state.write(Required(Arc::new(Requirements::new(pod, self.enforced.clone()))));
        let terms = required.map_or(&[][..], |required| &required.node_selector_terms);
        if terms.is_empty() {
            return PreFilterAnswer::default();
        }
        match named_nodes(terms) {
            Some(names) if names.is_empty() => {
                Status::unresolvable("pod affinity terms conflict").into()
            }
            names => PreFilterAnswer {
                status: Status::SUCCESS,
                nodes: names.map(|names| names.into_iter().collect()),
            },
        }
    }

    fn filter(&self, cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        let Some(node) = &node.node else { return Status::SUCCESS };
        let compiled;
        let requirements = match state.read() {
            Some(Required(requirements)) => requirements.as_ref(),
            None => {
                compiled = Requirements::new(&cx.pod.pod, self.enforced.clone());
                &compiled
            }
        };
        match requirements.mismatches(node).next() {
            None => Status::SUCCESS,
            Some(Mismatch::Added(_)) => self.not_enforced.clone(),
            Some(Mismatch::Selector(_) | Mismatch::Affinity(_)) => self.not_matched.clone(),
        }
    }

    /// For a pod that names its nodes: all others get the same rejection.
    fn filters(&self, cx: &CycleContext<'_>, state: &CycleState) -> Option<DistinctStatuses> {
        let names = self.only_named(&cx.pod.pod)?;
        let mut by_slot = vec![0; cx.snapshot.slots()];
        for node in names.iter().filter_map(|name| cx.snapshot.by_name(*name)) {
            by_slot[node.id.index()] = u16::from(self.filter(cx, state, node).is_success());
        }
        Some(DistinctStatuses {
            statuses: vec![self.not_matched.clone(), Status::SUCCESS],
            by_slot,
        })
    }

    /// Skips if neither the pod nor the profile has preferred terms; a parse error of a term is
    /// an error.
    fn pre_score(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        _nodes: &NodeList,
    ) -> Status {
        let preferred = match Preferred::of(&cx.pod.pod) {
            Ok(preferred) => preferred,
            Err(error) => return error,
        };
        if preferred.0.is_none() && self.added_preferences.is_none() {
            return Status::skip();
        }
        state.write(preferred);
        Status::SUCCESS
    }

    /// The sum of the weights of the matching preferred terms, of the pod and of the profile.
    fn score(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Result<i64, Status> {
        let Some(node) = &node.node else { return Ok(0) };
        let (labels, name) = (&node.metadata.labels, node.metadata.name);
        let added = self.added_preferences.as_ref().map_or(0, |terms| terms.score(labels, name));
        let own = |preferred: &Preferred| {
            preferred.0.as_ref().map_or(0, |terms| terms.score(labels, name))
        };
        Ok(added
            + match state.read() {
                Some(preferred) => own(preferred),
                None => own(&Preferred::of(&cx.pod.pod)?),
            })
    }

    fn normalize(
        &self,
        _cx: &CycleContext<'_>,
        _state: &CycleState,
        _nodes: &[NodeId],
        scores: &mut [i64],
    ) -> Status {
        relative_to_highest(scores, false);
        Status::SUCCESS
    }

    fn sign(&self, _cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        signers::node_affinity(&pod.pod)
    }
}

#[cfg(test)]
mod tests;
