//! Detaches a copy of a cluster from its remote API server: from then on the copy is its own API
//! server, and none of its scheduler's writes leave it. For what-ifs.

use std::task::Poll;

use crate::remote::{PodRef, Request, RequestResult, WriteOutcome};
use crate::{ApiServer, World};
use kubestep_api::{Name, Uid};
use kubestep_framework::extender::binding_in;
use kubestep_framework::host::{Host, HostError};

impl World {
    /// Applies the scheduler's writes to this copy from now on. Earlier writes without an answer
    /// are treated as successful, in their order. No effect if the API server is local already.
    pub fn detach(&mut self) {
        let Some(remote) = &mut self.api.remote else { return };
        for object in remote.take_newer() {
            self.accept(object);
        }
        while let Some(open) = self.api.remote.as_mut().and_then(|remote| remote.next_open()) {
            let answer = self.api.apply_locally(open.request);
            self.answer(open.ticket, answer);
        }
        self.api.be_local();
        self.settle();
    }
}

impl ApiServer {
    /// Applies a remote request locally.
    fn apply_locally(&mut self, request: Request) -> RequestResult {
        let remote = self.remote.take();
        let answer = self.make(request);
        self.remote = remote;
        answer
    }

    /// The watch may have reported the binding already.
    fn bind_if_open(&mut self, pod: PodRef, node: Name) -> Result<(), String> {
        match self.objects.pod(pod.key) {
            Some(known) if known.spec.node_name == node => Ok(()),
            _ => self.bind_locally(pod, node),
        }
    }

    fn make(&mut self, request: Request) -> RequestResult {
        let done = |()| WriteOutcome::Done;
        match request {
            Request::Bind { pod, node } => self.bind_if_open(pod, node).map(done),
            // No extender is called any more.
            Request::ExtenderBind { pod, call } => match binding_in(&call) {
                Some((_, _, node)) => self.bind_if_open(pod, node).map(done),
                None => Err("the call to the extender names no node".into()),
            },
            Request::PodStatus { pod, patch } => answered(self.patch_pod_status(pod.key, patch)),
            Request::Evict { pod, condition } => {
                let there = at_once(self.evict(pod.key, pod.uid, condition))?;
                Ok(if there { WriteOutcome::Done } else { WriteOutcome::Gone })
            }
            Request::ExtendedResourceClaim { pod, status } => {
                at_once(self.set_extended_resource_claim(pod.key, status)).map(done)
            }
            Request::NodeResourceClaims { pod, statuses } => {
                answered(self.set_node_resource_claims(pod.key, statuses))
            }
            Request::Update { after, .. } => self.update_locally(after).map(WriteOutcome::Object),
            Request::Create(object) => {
                at_once(Host::create(self, Uid::EMPTY, object)).map(WriteOutcome::Object)
            }
            Request::ReleaseClaim { key, user, .. } => self.release_locally(key, user).map(done),
            Request::DeleteClaim { claim, finalizer } => {
                answered(self.delete_claim(&claim, finalizer))
            }
            Request::GroupCondition { key, condition, .. } => {
                answered(self.set_group_condition(key, condition))
            }
            Request::Event { .. } => Ok(WriteOutcome::Done),
        }
    }
}

/// The answer to a write that gives no object.
fn answered(written: Result<(), HostError>) -> RequestResult {
    written.map(|()| WriteOutcome::Done).map_err(|error| error.to_string())
}

/// The answer of the local API server, which is never pending.
fn at_once<T>(answer: Poll<Result<T, HostError>>) -> Result<T, String> {
    match answer {
        Poll::Ready(answer) => answer.map_err(|error| error.to_string()),
        Poll::Pending => Err("it was not answered".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_config as config;
    use kubestep_config::FeatureGates;
    use kubestep_framework::record::Outcome;
    use kubestep_framework::testing::{key, node, pod};

    /// A cluster with a remote API server, a node, and a pod whose binding is in flight.
    fn decided() -> World {
        let (registry, features) = (kubestep_plugins::registry(), FeatureGates::default());
        let config = config::resolve(None, &features, &registry.descriptors()).unwrap();
        let mut world = World::new(&config, features, &registry).unwrap();
        world.mirror_remote();
        world.accept(node("n1").into());
        world.accept(pod("a").into());
        assert_eq!(world.step().unwrap().outcome, Outcome::Waiting);
        world
    }

    fn node_of(world: &World) -> String {
        world.api().objects().pod(key("a")).unwrap().spec.node_name.to_string()
    }

    #[test]
    fn what_was_on_its_way_is_done_here_and_nothing_leaves_any_more() {
        let mut original = decided();
        let mut copy = original.clone();
        copy.detach();
        assert_eq!(node_of(&copy), "n1");
        assert!(copy.scheduler().waiting().is_empty());
        copy.create(pod("b").into());
        assert_eq!(copy.step().unwrap().outcome, Outcome::Scheduled);
        assert!(copy.api_mut().take_outbox().is_empty());
        // The original is not affected.
        assert_eq!(node_of(&original), "");
        assert_eq!(original.api_mut().take_outbox().len(), 1);
    }

    #[test]
    fn a_binding_that_left_and_was_reported_before_its_answer_is_no_failure() {
        let mut world = decided();
        world.api_mut().take_outbox();
        let mut bound = pod("a");
        bound.spec.node_name = "n1".into();
        bound.metadata.uid = world.api().objects().pod(key("a")).unwrap().metadata.uid;
        world.accept(bound.into());
        world.detach();
        assert_eq!(
            world.scheduler_mut().take_finished().pop().unwrap().outcome,
            Outcome::Scheduled
        );
        assert_eq!(node_of(&world), "n1");
    }
}
