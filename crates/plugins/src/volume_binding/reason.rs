//! Why a node cannot have a pod's volumes. The walk of [`super::find`] reports typed reasons:
//! Filter keeps which of its four sentences they come to, and an explanation hears each of them
//! with its claim.

use std::ops::ControlFlow;

use kubestep_api::PersistentVolumeClaim;
use kubestep_api::intern::Symbol;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::status::{Code, Status};

use super::matching::Unfit;

/// Why a claim cannot have its volume on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The claim is bound to a volume that does not exist.
    VolumeMissing(Symbol),
    /// The claim's volume cannot be reached from the node.
    OutOfReach(Symbol),
    /// The claim's volume is being provisioned for another node.
    OtherNode(Symbol),
    /// No volume of the class suits, and the class provisions none.
    NoProvisioner(Symbol),
    /// The allowed topologies of the class exclude the node.
    TopologyNotAllowed(Symbol),
    /// The class has too little free storage within the node's reach.
    NoSpace(Symbol),
}

/// The sentences of a refusal, in the order in which they are given (VB-016).
const SENTENCES: [&str; 4] = [
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
];

impl Reason {
    /// The index of its sentence.
    fn sentence(self) -> usize {
        match self {
            Reason::OutOfReach(_) => 0,
            Reason::OtherNode(_) | Reason::NoProvisioner(_) | Reason::TopologyNotAllowed(_) => 1,
            Reason::NoSpace(_) => 2,
            Reason::VolumeMissing(_) => 3,
        }
    }
}

/// A claim that keeps the pod from a node.
#[derive(Clone, PartialEq, Debug)]
pub struct Rejection {
    /// The claim.
    pub claim: NamespacedName,
    /// Why.
    pub reason: Reason,
    /// The existing volumes of the class that were passed over for it.
    pub passed_over: Vec<(Symbol, Unfit)>,
    /// Whether Filter's answer rests on it: Filter ends at the first claim that fails, an
    /// explanation also names those behind it.
    pub decisive: bool,
}

/// Which sentences a refusal is made of, one bit each.
#[derive(Clone, Copy, Default)]
struct Sentences(usize);

impl Sentences {
    fn add(&mut self, reason: Reason) {
        self.0 |= 1 << reason.sentence();
    }
}

/// The refusals for every combination of sentences, built once (VB-016).
pub struct Refusals([Status; 1 << SENTENCES.len()]);

impl Default for Refusals {
    fn default() -> Refusals {
        Refusals(std::array::from_fn(|set| {
            let given = SENTENCES.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
            let reasons = given.map(|(_, reason)| Symbol::new(reason)).collect();
            match set {
                0 => Status::SUCCESS,
                _ => Status::with_reasons(Code::UnschedulableAndUnresolvable, reasons),
            }
        }))
    }
}

impl Refusals {
    /// What Filter says after a walk.
    pub fn after(&self, walk: &Walk<'_>) -> Status {
        self.0[walk.sentences.0].clone()
    }
}

/// What Filter says about a node with these rejections.
pub fn refusal(rejections: &[Rejection]) -> Status {
    let mut sentences = Sentences::default();
    let decisive = rejections.iter().filter(|rejection| rejection.decisive);
    decisive.for_each(|rejection| sentences.add(rejection.reason));
    Refusals::default().0[sentences.0].clone()
}

/// One walk over a pod's claims on a node.
#[derive(Default)]
pub struct Walk<'a> {
    sentences: Sentences,
    /// Whether Filter is past the claim that ends it.
    settled: bool,
    listener: Option<&'a mut Vec<Rejection>>,
}

impl<'a> Walk<'a> {
    /// A walk that also looks behind the first claim that fails.
    pub fn heard_by(listener: &'a mut Vec<Rejection>) -> Walk<'a> {
        Walk { listener: Some(listener), ..Walk::default() }
    }

    /// Whether anybody hears what volumes were passed over.
    pub fn is_heard(&self) -> bool {
        self.listener.is_some()
    }

    /// Reports a claim that fails: Filter ends there.
    pub fn reject(
        &mut self,
        claim: NamespacedName,
        reason: Reason,
        passed_over: Vec<(Symbol, Unfit)>,
    ) -> ControlFlow<()> {
        let decisive = !std::mem::replace(&mut self.settled, true);
        if decisive {
            self.sentences.add(reason);
        }
        match &mut self.listener {
            None => ControlFlow::Break(()),
            Some(listener) => {
                listener.push(Rejection { claim, reason, passed_over, decisive });
                ControlFlow::Continue(())
            }
        }
    }

    /// Goes on to the claims without volumes, which Filter looks at in any case.
    pub fn go_on(&mut self) {
        self.settled = false;
    }
}

/// The claim's name, with its namespace.
pub fn key(claim: &PersistentVolumeClaim) -> NamespacedName {
    NamespacedName::new(claim.metadata.namespace, claim.metadata.name)
}
