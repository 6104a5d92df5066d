//! VolumeBinding: the claim for which Filter rejects the node, its volume or class, and the
//! problem: node affinity, topology, capacity.

use serde::Serialize;

use super::node_terms::{ParsedTerms, UnmetExpression};
use super::{Cause, CauseText, Outlook, RejectedCase};
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Name, Node, NodeSelector, NodeSelectorOperator, NodeSelectorRequirement, NodeSelectorTerm,
    PersistentVolume, StorageClass, TopologySelectorTerm,
};
use kubestep_framework::pod::NamespacedName;
use kubestep_plugins::volume_binding::{
    ClaimReason, ClaimRejection, Unfit, capacity, largest_volume, rejections, requested,
};

/// The most volumes that are listed.
const LISTED: usize = 3;

/// A claim that cannot have its volume on this node.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeCause {
    /// Namespace and name of the claim.
    pub claim: NamespacedName,
    /// Why it has none.
    pub problem: VolumeProblem,
}

/// Why a claim cannot have its volume on a node.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum VolumeProblem {
    /// The claim does not exist.
    ClaimMissing,
    /// The claim is bound to a volume that does not exist.
    VolumeMissing {
        /// Name of the volume.
        volume: Name,
    },
    /// The claim's volume is not accessible from the node.
    OutOfReach {
        /// Name of the volume.
        volume: Name,
        /// The unmet expressions of its node affinity.
        unmet: Vec<UnmetExpression>,
    },
    /// The volume is being provisioned for another node.
    ProvisionedForOtherNode {
        /// The node in the annotation `volume.kubernetes.io/selected-node` of the claim.
        node: Name,
    },
    /// No volume of the class matches, and the class provisions none.
    NoVolume {
        /// The class; empty for no class.
        class: Name,
        /// The number of volumes.
        volumes: usize,
        /// The first few volumes, each with the reason.
        rejected: Vec<RejectedVolume>,
    },
    /// The allowed topologies of the class exclude the node.
    TopologyNotAllowed {
        /// Name of the class.
        class: Name,
        /// The unmet expressions of its allowed topologies.
        unmet: Vec<UnmetExpression>,
    },
    /// Too little storage capacity is accessible from the node.
    NoSpace {
        /// Name of the class.
        class: Name,
        /// The request of the claim, as a quantity.
        wanted: String,
        /// The largest volume that could be provisioned, as a quantity.
        largest: Option<String>,
    },
}

/// A volume that does not match.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RejectedVolume {
    /// Name of the volume.
    pub volume: Name,
    /// The property in which it does not match, in words.
    pub because: String,
}

impl VolumeCause {
    fn with(&self, unmet: impl Fn(&UnmetExpression) -> String) -> String {
        let list = |all: &[UnmetExpression]| all.iter().map(&unmet).collect::<Vec<_>>().join("; ");
        let claim = self.claim;
        match &self.problem {
            VolumeProblem::ClaimMissing => format!("claim {claim} does not exist"),
            VolumeProblem::VolumeMissing { volume } => {
                format!("claim {claim} is bound to volume {volume}, which does not exist")
            }
            VolumeProblem::OutOfReach { volume, unmet } if unmet.is_empty() => {
                format!("claim {claim} has volume {volume}, which cannot be reached from the node")
            }
            VolumeProblem::OutOfReach { volume, unmet } => {
                format!("claim {claim} has volume {volume}, which is only for {}", list(unmet))
            }
            VolumeProblem::ProvisionedForOtherNode { node } => {
                format!("the volume of claim {claim} is being provisioned for node {node}")
            }
            VolumeProblem::NoVolume { class, volumes: 0, .. } => {
                format!("claim {claim}: class {class:?} provisions no volumes and has none")
            }
            VolumeProblem::NoVolume { class, .. } => format!(
                "claim {claim}: class {class:?} provisions no volumes, and no existing volume \
                 matches"
            ),
            VolumeProblem::TopologyNotAllowed { class, unmet } => {
                format!("claim {claim}: class {class} provisions volumes only for {}", list(unmet))
            }
            VolumeProblem::NoSpace { class, wanted, .. } => {
                format!("claim {claim}: class {class} has less than {wanted} of free storage")
            }
        }
    }
}

impl CauseText for VolumeCause {
    fn gist(&self) -> String {
        self.with(UnmetExpression::gist)
    }

    fn unmet(&self) -> &[UnmetExpression] {
        use VolumeProblem::{OutOfReach, TopologyNotAllowed};
        match &self.problem {
            OutOfReach { unmet, .. } | TopologyNotAllowed { unmet, .. } => unmet,
            _ => &[],
        }
    }

    fn text(&self) -> String {
        let text = self.with(UnmetExpression::text);
        match &self.problem {
            VolumeProblem::NoVolume { rejected, volumes, .. } if !rejected.is_empty() => {
                let why = rejected.iter().map(|r| format!("{} {}", r.volume, r.because));
                let more = match volumes - rejected.len() {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                format!("{text}: {}{more}", why.collect::<Vec<_>>().join(", "))
            }
            VolumeProblem::NoSpace { largest, .. } => match largest {
                Some(largest) => format!("{text} reachable from the node; at most {largest}"),
                None => format!("{text} reachable from the node; none is reported"),
            },
            _ => text,
        }
    }
}

pub(super) fn explain(case: &RejectedCase<'_>) -> Vec<Cause> {
    let Some(node) = &case.node.node else { return Vec::new() };
    let found = rejections(&case.probe.cx(), case.state, node).into_iter();
    found.filter_map(|rejection| cause(case, node, &rejection)).collect()
}

fn cause(case: &RejectedCase<'_>, node: &Node, rejection: &ClaimRejection) -> Option<Cause> {
    let (cx, claim) = (case.probe.cx(), rejection.claim);
    let class = |name| cx.objects.storage_classes.get(&NamespacedName::new(Symbol::EMPTY, name));
    let (problem, outlook) = match rejection.reason {
        ClaimReason::VolumeMissing(volume) => {
            (VolumeProblem::VolumeMissing { volume }, Outlook::Manual)
        }
        ClaimReason::OutOfReach(volume) => {
            let object = cx.shared.volumes.volume(cx.objects, volume);
            let unmet = object.map(|object| affinity(case, object)).unwrap_or_default();
            (VolumeProblem::OutOfReach { volume, unmet }, Outlook::Mismatch)
        }
        ClaimReason::OtherNode(node) => {
            (VolumeProblem::ProvisionedForOtherNode { node }, Outlook::Mismatch)
        }
        ClaimReason::NoProvisioner(class) => (no_volume(case, rejection, class), Outlook::Manual),
        ClaimReason::TopologyNotAllowed(name) => {
            let unmet = topology(case, class(name)?);
            (VolumeProblem::TopologyNotAllowed { class: name, unmet }, Outlook::Mismatch)
        }
        ClaimReason::NoSpace(name) => {
            let wanted = cx.shared.volumes.claims.get(cx.objects, claim).and_then(|c| requested(c));
            let wanted = wanted.map(ToString::to_string).unwrap_or_default();
            let largest = largest_volume(class(name)?, node, cx.objects);
            let largest = largest.map(|size| size.to_string());
            (VolumeProblem::NoSpace { class: name, wanted, largest }, Outlook::Cluster)
        }
    };
    Some(Cause::new(VolumeCause { claim, problem }, 1.0, outlook))
}

fn no_volume(case: &RejectedCase<'_>, rejection: &ClaimRejection, class: Name) -> VolumeProblem {
    let cx = case.probe.cx();
    let reject = |(name, unfit): &(Name, Unfit)| {
        let volume = cx.shared.volumes.volume(cx.objects, *name);
        RejectedVolume { volume: *name, because: because(*unfit, volume.map(AsRef::as_ref)) }
    };
    let rejected = rejection.passed_over.iter().take(LISTED).map(reject).collect();
    VolumeProblem::NoVolume { class, volumes: rejection.passed_over.len(), rejected }
}

fn because(unfit: Unfit, volume: Option<&PersistentVolume>) -> String {
    match unfit {
        Unfit::Taken(claim) => format!("is bound to claim {claim}"),
        Unfit::Chosen(claim) => format!("is used for claim {claim} of the same pod"),
        Unfit::TooSmall => {
            format!("has only {}", volume.map(capacity).unwrap_or_default())
        }
        Unfit::NotAlike => "has another mode or attributes class, or is being deleted".into(),
        Unfit::NotAvailable => "is not available".into(),
        Unfit::NotSelected => "is not selected by the claim".into(),
        Unfit::OutOfReach => "cannot be reached from the node".into(),
        Unfit::AccessModes => "lacks an access mode".into(),
    }
}

/// Terms that were parsed once, by the name of a volume or class.
struct VolumeTerms(ParsedTerms);

/// The expressions of a volume's node affinity that the node does not meet.
fn affinity(case: &RejectedCase<'_>, volume: &PersistentVolume) -> Vec<UnmetExpression> {
    let required = volume.spec.node_affinity.as_ref().and_then(|on| on.required.as_ref());
    let (Some(required), Some(node)) = (required, &case.node.node) else { return Vec::new() };
    let (snapshot, memo) = (case.probe.snapshot(), case.memo);
    let name = Symbol::new(&format!("volume {}", volume.metadata.name));
    let parsed = memo.get(name, || VolumeTerms(ParsedTerms::new(required, false, snapshot, memo)));
    parsed.0.unmet(node, Name::EMPTY)
}

/// The expressions of a class's allowed topologies that the node does not meet.
fn topology(case: &RejectedCase<'_>, class: &StorageClass) -> Vec<UnmetExpression> {
    let Some(node) = &case.node.node else { return Vec::new() };
    let (snapshot, memo) = (case.probe.snapshot(), case.memo);
    let term = |term: &TopologySelectorTerm| NodeSelectorTerm {
        match_expressions: term
            .match_label_expressions
            .iter()
            .map(|expression| NodeSelectorRequirement {
                key: expression.key,
                operator: NodeSelectorOperator::In,
                values: expression.values.clone(),
            })
            .collect(),
        ..NodeSelectorTerm::default()
    };
    let allowed = class.allowed_topologies.iter();
    let selector = || NodeSelector { node_selector_terms: allowed.map(term).collect() };
    let name = Symbol::new(&format!("class {}", class.metadata.name));
    let parsed =
        memo.get(name, || VolumeTerms(ParsedTerms::new(&selector(), false, snapshot, memo)));
    parsed.0.unmet(node, Name::EMPTY)
}
