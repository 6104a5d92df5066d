//! The reasons why the volumes of a pod are unavailable on a node. The walk in [`super::find`]
//! reports typed reasons: Filter turns them into up to four messages, and explanations show each
//! reason with its claim.

use std::ops::ControlFlow;

use kubestep_api::intern::Symbol;
use kubestep_api::{Name, PersistentVolumeClaim};
use kubestep_config::FeatureGates;
use kubestep_config::versions::Switch;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::status::{Code, Status};

use super::matching::Unfit;

/// Why a claim has no volume on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClaimReason {
    /// The claim is bound to a volume that does not exist.
    VolumeMissing(Name),
    /// The node affinity of the claim's volume does not match the node.
    OutOfReach(Name),
    /// The claim's volume is being provisioned for another node.
    OtherNode(Name),
    /// No existing volume matches, and the class has no provisioner.
    NoProvisioner(Name),
    /// The allowed topologies of the class exclude the node.
    TopologyNotAllowed(Name),
    /// No capacity object of the class with enough capacity covers the node.
    NoSpace(Name),
}

/// The messages of a rejection, in upstream's order.
const SENTENCES: [&str; 4] = [
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
];

/// A message in the words of a version.
fn sentence(at: usize, features: &FeatureGates) -> &'static str {
    match at {
        0 if !features.has(Switch::VolumeAffinityMessage) => {
            "node(s) had volume node affinity conflict"
        }
        _ => SENTENCES[at],
    }
}

impl ClaimReason {
    /// The index of its message.
    fn sentence(self) -> usize {
        match self {
            ClaimReason::OutOfReach(_) => 0,
            ClaimReason::OtherNode(_)
            | ClaimReason::NoProvisioner(_)
            | ClaimReason::TopologyNotAllowed(_) => 1,
            ClaimReason::NoSpace(_) => 2,
            ClaimReason::VolumeMissing(_) => 3,
        }
    }
}

/// A claim that excludes a node for the pod.
#[derive(Clone, PartialEq, Debug)]
pub struct ClaimRejection {
    /// The claim, by namespace and name.
    pub claim: NamespacedName,
    /// Why the claim rejects the node.
    pub reason: ClaimReason,
    /// The existing volumes of the class that did not match it.
    pub passed_over: Vec<(Name, Unfit)>,
    /// Whether Filter's status depends on it: Filter stops at the first claim that fails, an
    /// explanation also lists the later ones.
    pub decisive: bool,
}

/// The messages of a rejection, one bit each.
#[derive(Clone, Copy, Default)]
struct Sentences(usize);

impl Sentences {
    fn add(&mut self, reason: ClaimReason) {
        self.0 |= 1 << reason.sentence();
    }
}

/// The statuses for every combination of messages, built once.
pub struct VolumeRejections([Status; 1 << SENTENCES.len()]);

impl VolumeRejections {
    /// The statuses in the words of a version.
    pub fn new(features: &FeatureGates) -> VolumeRejections {
        VolumeRejections(std::array::from_fn(|set| {
            let given = (0..SENTENCES.len()).filter(|at| set & (1 << at) != 0);
            let reasons = given.map(|at| Symbol::new(sentence(at, features))).collect();
            match set {
                0 => Status::SUCCESS,
                _ => Status::with_reasons(Code::UnschedulableAndUnresolvable, reasons),
            }
        }))
    }

    /// Filter's status after a walk.
    pub fn after(&self, walk: &ClaimWalk<'_>) -> Status {
        self.0[walk.sentences.0].clone()
    }
}

/// Filter's status for a node with these rejections.
pub fn rejection(rejections: &[ClaimRejection], features: &FeatureGates) -> Status {
    let mut sentences = Sentences::default();
    let decisive = rejections.iter().filter(|rejection| rejection.decisive);
    decisive.for_each(|rejection| sentences.add(rejection.reason));
    VolumeRejections::new(features).0[sentences.0].clone()
}

/// One walk over a pod's claims on a node.
#[derive(Default)]
pub struct ClaimWalk<'a> {
    sentences: Sentences,
    /// Whether the walk is past the claim at which Filter stops.
    settled: bool,
    rejections: Option<&'a mut Vec<ClaimRejection>>,
}

impl<'a> ClaimWalk<'a> {
    /// A walk that continues after the first claim that fails, and reports every failure.
    pub(crate) fn collecting(rejections: &'a mut Vec<ClaimRejection>) -> ClaimWalk<'a> {
        ClaimWalk { rejections: Some(rejections), ..ClaimWalk::default() }
    }

    /// Whether the walk reports the volumes that did not match.
    pub(crate) fn collects(&self) -> bool {
        self.rejections.is_some()
    }

    /// Reports a claim that fails: Filter stops there.
    pub fn reject(
        &mut self,
        claim: NamespacedName,
        reason: ClaimReason,
        passed_over: Vec<(Name, Unfit)>,
    ) -> ControlFlow<()> {
        let decisive = !std::mem::replace(&mut self.settled, true);
        if decisive {
            self.sentences.add(reason);
        }
        match &mut self.rejections {
            None => ControlFlow::Break(()),
            Some(rejections) => {
                rejections.push(ClaimRejection { claim, reason, passed_over, decisive });
                ControlFlow::Continue(())
            }
        }
    }

    /// Starts the unbound claims, which Filter checks even if a bound claim failed.
    pub fn start_unbound_claims(&mut self) {
        self.settled = false;
    }
}

/// The claim's namespace and name.
pub fn key(claim: &PersistentVolumeClaim) -> NamespacedName {
    NamespacedName::new(claim.metadata.namespace, claim.metadata.name)
}
