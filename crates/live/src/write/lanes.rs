//! Writes to one object are sent in the order in which they were requested.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use kubestep_api::Kind;
use kubestep_cluster::remote::Request;
use kubestep_framework::pod::NamespacedName;

/// A sequence of writes that are sent one after another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lane {
    /// Writes to one object.
    Of(Kind, NamespacedName),
    /// The evictions of a pod. They belong to a preemptor, and do not wait for the writes of the
    /// pod's own scheduling: its binding may hang.
    Eviction(NamespacedName),
}

impl Lane {
    /// The lane of a request.
    pub fn of(request: &Request) -> Lane {
        match request {
            Request::Evict { pod, .. } => Lane::Eviction(pod.key),
            Request::Bind { pod, .. }
            | Request::ExtenderBind { pod, .. }
            | Request::PodStatus { pod, .. }
            | Request::ExtendedResourceClaim { pod, .. }
            | Request::NodeResourceClaims { pod, .. } => Lane::Of(Kind::Pod, pod.key),
            Request::Update { after: object, .. } | Request::Create(object) => {
                Lane::Of(object.kind(), NamespacedName::of(object))
            }
            Request::ReleaseClaim { key, .. } => Lane::Of(Kind::ResourceClaim, *key),
            Request::DeleteClaim { claim, .. } => {
                let metadata = &claim.metadata;
                let key = NamespacedName::new(metadata.namespace, metadata.name);
                Lane::Of(Kind::ResourceClaim, key)
            }
            Request::GroupCondition { key, .. } => Lane::Of(Kind::PodGroup, *key),
            Request::Event { event, .. } => Lane::Of(Kind::Pod, event.regarding),
        }
    }
}

type LaneEnds = HashMap<Lane, (u64, oneshot::Receiver<()>)>;

/// The last write of each object that has writes in flight.
#[derive(Default)]
pub struct Lanes {
    ends: Arc<Mutex<LaneEnds>>,
    entered: u64,
}

/// A position in a lane.
pub struct LaneTicket {
    before: Option<oneshot::Receiver<()>>,
    guard: LaneGuard,
}

/// Held while the write is sent; dropping it starts the next one.
pub struct LaneGuard {
    lane: Lane,
    number: u64,
    ends: Arc<Mutex<LaneEnds>>,
    _end: oneshot::Sender<()>,
}

impl Lanes {
    /// Takes the next position.
    pub fn enter(&mut self, lane: Lane) -> LaneTicket {
        self.entered += 1;
        let (end, ended) = oneshot::channel();
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let before = ends.insert(lane, (self.entered, ended)).map(|(_, ended)| ended);
        let guard = LaneGuard { lane, number: self.entered, ends: self.ends.clone(), _end: end };
        LaneTicket { before, guard }
    }
}

impl LaneTicket {
    /// Waits for the earlier writes of the lane.
    pub async fn turn(self) -> LaneGuard {
        if let Some(before) = self.before {
            // An earlier guard ends by being dropped, which the channel reports as an error.
            let _ended = before.await;
        }
        self.guard
    }
}

impl Drop for LaneGuard {
    fn drop(&mut self) {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if ends.get(&self.lane).is_some_and(|(newest, _)| *newest == self.number) {
            ends.remove(&self.lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str) -> Lane {
        Lane::Of(Kind::Pod, NamespacedName::new("d".into(), name.into()))
    }

    #[test]
    fn an_eviction_does_not_wait_for_the_pods_binding() {
        use kubestep_cluster::remote::PodRef;
        use kubestep_framework::host::{ExtenderCall, PodStatusPatch};
        let pod = PodRef { key: NamespacedName::new("d".into(), "a".into()), uid: "u".into() };
        let call = ExtenderCall { extender: 0, verb: "bind".into(), body: serde_json::Value::Null };
        let own = [
            Request::Bind { pod, node: "n".into() },
            Request::ExtenderBind { pod, call },
            Request::PodStatus { pod, patch: PodStatusPatch::default() },
        ];
        let evict = Lane::of(&Request::Evict { pod, condition: None });
        assert!(own.iter().all(|request| Lane::of(request) != evict));
        assert_eq!(Lane::of(&own[0]), Lane::of(&own[1]), "a pod's own writes keep their order");
        assert_eq!(Lane::of(&own[0]), Lane::of(&own[2]), "a pod's own writes keep their order");
    }

    #[tokio::test]
    async fn one_after_the_other_and_nothing_is_left() {
        let mut lanes = Lanes::default();
        let (first, second, other) =
            (lanes.enter(pod("a")), lanes.enter(pod("a")), lanes.enter(pod("b")));
        drop(other.turn().await);
        let first = first.turn().await;
        let waiting = tokio::spawn(second.turn());
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        drop(waiting.await.unwrap());
        assert!(lanes.ends.lock().unwrap().is_empty());
    }
}
