//! VolumeBinding: the chain from the pod over its claim to the volume or the class, and what
//! breaks there: node affinity, topology, capacity.

use serde::Serialize;

use super::node_terms::{NodeTerms, Unmet};
use super::{Case, Cause, Outlook, Words};
use crate::api::{
    NodeSelector, NodeSelectorOperator, NodeSelectorRequirement, NodeSelectorTerm,
    PersistentVolume, TopologySelectorTerm,
};
use crate::engine::plugins::volume_binding::{Obstacle, Unfit, obstacles};
use crate::engine::pod::NamespacedName;
use crate::intern::Symbol;

/// Volumes that are told of at most.
const TOLD: usize = 3;

/// A claim that cannot have its volume on the node.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeCause {
    /// The claim.
    pub claim: NamespacedName,
    /// What is wrong.
    pub problem: VolumeProblem,
}

/// What is wrong with a claim's volume on a node.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum VolumeProblem {
    /// The claim does not exist.
    ClaimGone,
    /// The claim is bound to a volume that does not exist.
    VolumeGone {
        /// The volume.
        volume: Symbol,
    },
    /// The claim's volume cannot be reached from the node.
    OutOfReach {
        /// The volume.
        volume: Symbol,
        /// What of its node affinity the node does not meet.
        unmet: Vec<Unmet>,
    },
    /// The volume is being made for another node.
    MadeElsewhere {
        /// That node.
        node: Symbol,
    },
    /// No volume of the class suits, and the class makes none.
    NoVolume {
        /// The class; empty for none.
        class: Symbol,
        /// How many volumes there are.
        volumes: usize,
        /// The first few with what is wrong with each.
        rejected: Vec<RejectedVolume>,
    },
    /// The class makes its volumes elsewhere.
    TopologyNotAllowed {
        /// The class.
        class: Symbol,
        /// What of its allowed topologies the node does not meet.
        unmet: Vec<Unmet>,
    },
    /// Too little storage is free within the node's reach.
    NoSpace {
        /// The class.
        class: Symbol,
        /// What the claim asks for, as a quantity.
        wanted: String,
        /// The largest volume that could be made, as a quantity.
        largest: Option<String>,
    },
}

/// A volume that does not suit.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RejectedVolume {
    /// The volume.
    pub volume: Symbol,
    /// Why.
    pub because: String,
}

impl VolumeCause {
    fn with(&self, unmet: impl Fn(&Unmet) -> String) -> String {
        let list = |all: &[Unmet]| all.iter().map(&unmet).collect::<Vec<_>>().join("; ");
        let claim = self.claim;
        match &self.problem {
            VolumeProblem::ClaimGone => format!("claim {claim} does not exist"),
            VolumeProblem::VolumeGone { volume } => {
                format!("claim {claim} is bound to volume {volume}, which does not exist")
            }
            VolumeProblem::OutOfReach { volume, unmet } if unmet.is_empty() => {
                format!("claim {claim} has volume {volume}, which cannot be reached from there")
            }
            VolumeProblem::OutOfReach { volume, unmet } => {
                format!("claim {claim} has volume {volume}, which is only for {}", list(unmet))
            }
            VolumeProblem::MadeElsewhere { node } => {
                format!("the volume of claim {claim} is being made for node {node}")
            }
            VolumeProblem::NoVolume { class, volumes: 0, .. } => {
                format!("claim {claim}: there is no volume of class {class:?}, and it makes none")
            }
            VolumeProblem::NoVolume { class, volumes, .. } => {
                format!("claim {claim}: none of the {volumes} volumes of class {class:?} suits")
            }
            VolumeProblem::TopologyNotAllowed { class, unmet } => {
                format!("claim {claim}: class {class} makes volumes only for {}", list(unmet))
            }
            VolumeProblem::NoSpace { class, wanted, .. } => {
                format!("claim {claim}: class {class} has no {wanted} left in reach")
            }
        }
    }
}

impl Words for VolumeCause {
    fn gist(&self) -> String {
        self.with(Unmet::gist)
    }

    fn words(&self) -> String {
        let text = self.with(Unmet::words);
        match &self.problem {
            VolumeProblem::NoVolume { rejected, .. } if !rejected.is_empty() => {
                let told = rejected.iter().map(|r| format!("{} {}", r.volume, r.because));
                format!("{text}: {}", told.collect::<Vec<_>>().join(", "))
            }
            VolumeProblem::NoSpace { largest, .. } => match largest {
                Some(largest) => format!("{text}; the largest volume could be {largest}"),
                None => format!("{text}; no storage of the class is in reach at all"),
            },
            _ => text,
        }
    }
}

pub(super) fn explain(case: &Case<'_>) -> Vec<Cause> {
    let Some(node) = &case.node.node else { return Vec::new() };
    let cx = case.probe.cx();
    let found = obstacles(&cx, case.state, node).into_iter();
    found.map(|(claim, obstacle)| cause(case, claim, obstacle)).collect()
}

fn cause(case: &Case<'_>, claim: NamespacedName, obstacle: Obstacle) -> Cause {
    let (problem, outlook) = match obstacle {
        Obstacle::VolumeGone(volume) => (VolumeProblem::VolumeGone { volume }, Outlook::ByHand),
        Obstacle::OutOfReach(volume) => {
            let unmet = affinity(case, &volume);
            let volume = volume.metadata.name;
            (VolumeProblem::OutOfReach { volume, unmet }, Outlook::Mismatch)
        }
        Obstacle::MadeElsewhere(node) => (VolumeProblem::MadeElsewhere { node }, Outlook::Mismatch),
        Obstacle::NoVolume { class, volumes } => {
            let told = volumes
                .iter()
                .take(TOLD)
                .map(|(volume, unfit)| RejectedVolume { volume: *volume, because: because(unfit) });
            let rejected = told.collect();
            let volumes = volumes.len();
            (VolumeProblem::NoVolume { class, volumes, rejected }, Outlook::ByHand)
        }
        Obstacle::TopologyNotAllowed { class, allowed } => {
            let unmet = topology(case, class, &allowed);
            (VolumeProblem::TopologyNotAllowed { class, unmet }, Outlook::Mismatch)
        }
        Obstacle::NoSpace { class, wanted, largest } => {
            let (wanted, largest) = (wanted.to_string(), largest.map(|size| size.to_string()));
            (VolumeProblem::NoSpace { class, wanted, largest }, Outlook::Cluster)
        }
    };
    Cause::new(VolumeCause { claim, problem }, 1.0, outlook)
}

fn because(unfit: &Unfit) -> String {
    match unfit {
        Unfit::Taken(claim) => format!("is bound to claim {claim}"),
        Unfit::TooSmall(size) => format!("has only {size}"),
        Unfit::NotAlike => "is of another mode or attributes class, or is being deleted".into(),
        Unfit::NotAvailable => "is not available".into(),
        Unfit::NotSelected => "is not selected by the claim".into(),
        Unfit::OutOfReach => "cannot be reached from there".into(),
        Unfit::AccessModes => "lacks an access mode".into(),
    }
}

/// Terms that were parsed once, by the name of a volume or class.
struct Parsed(NodeTerms);

/// What of a volume's node affinity the node does not meet.
fn affinity(case: &Case<'_>, volume: &PersistentVolume) -> Vec<Unmet> {
    let required = volume.spec.node_affinity.as_ref().and_then(|on| on.required.as_ref());
    let (Some(required), Some(node)) = (required, &case.node.node) else { return Vec::new() };
    let (snapshot, memo) = (case.probe.snapshot(), case.memo);
    let name = Symbol::new(&format!("volume {}", volume.metadata.name));
    let parsed = memo.get(name, || Parsed(NodeTerms::of_selector(required, false, snapshot, memo)));
    parsed.0.unmet(node).1
}

/// What of a class's allowed topologies the node does not meet.
fn topology(case: &Case<'_>, class: Symbol, allowed: &[TopologySelectorTerm]) -> Vec<Unmet> {
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
    let selector = || NodeSelector { node_selector_terms: allowed.iter().map(term).collect() };
    let name = Symbol::new(&format!("class {class}"));
    let parsed =
        memo.get(name, || Parsed(NodeTerms::of_selector(&selector(), false, snapshot, memo)));
    parsed.0.unmet(node).1
}
