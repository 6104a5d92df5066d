//! How a pod is shown by where it is: one sign and one colour in every view.

use super::glyph::{DOT, GATED, VerdictSign};
use super::model::PodPlace;
use super::theme::Scope;
use kubestep_debug::why::PodLocation;
use kubestep_framework::record::QueueName;

/// A sign, and the style of a pod's place and of sentences about it.
pub type PodSign = (&'static str, Scope);

/// The sign of a pod held at Permit.
pub const WAITING: PodSign = (VerdictSign::Wait.glyph(), VerdictSign::Wait.scope());

const fn of(verdict: VerdictSign) -> PodSign {
    (verdict.glyph(), verdict.scope())
}

/// The sign of a pod by where it is.
pub fn of_place(place: PodPlace) -> PodSign {
    match place {
        PodPlace::Node(_) => of(VerdictSign::Success),
        PodPlace::Waiting(_) => WAITING,
        PodPlace::Queue(QueueName::Active) => (DOT, Scope::Text),
        PodPlace::Queue(QueueName::Backoff) => of(VerdictSign::Wait),
        PodPlace::Queue(QueueName::Unschedulable) => of(VerdictSign::Unschedulable),
        PodPlace::Queue(QueueName::Gated) => (GATED, Scope::VerdictPending),
        PodPlace::Queue(QueueName::InFlight) => of(VerdictSign::Pending),
        PodPlace::Ended => of(VerdictSign::Skip),
        PodPlace::Queue(QueueName::None) | PodPlace::Unserved => of(VerdictSign::Error),
    }
}

/// The sign of pods in a queue.
pub fn of_queue(queue: QueueName) -> PodSign {
    of_place(PodPlace::Queue(queue))
}

/// Whether pods are in a queue because something keeps them from a node.
pub fn is_failure(queue: QueueName) -> bool {
    use QueueName::{Backoff, Gated, None, Unschedulable};
    matches!(queue, Unschedulable | Gated | Backoff | None)
}

/// The style of the first sentence about a pod. That of one on its node, or in the active queue, is not
/// about a problem: it is a heading.
pub fn headline(location: &PodLocation) -> Scope {
    let place = match location {
        PodLocation::Bound { .. } | PodLocation::Ended { .. } => return Scope::TextStrong,
        PodLocation::Queue { queue } if queue.0 == QueueName::Active => return Scope::TextStrong,
        PodLocation::Waiting { node, .. } => PodPlace::Waiting(*node),
        PodLocation::Queue { queue } => PodPlace::Queue(queue.0),
        PodLocation::Unserved { .. } | PodLocation::Nowhere => PodPlace::Unserved,
    };
    of_place(place).1
}
