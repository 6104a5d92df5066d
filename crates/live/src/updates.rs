//! Updates from a live cluster as a change of the session. It holds everything it needs, so
//! applying it again later leads to the same state.

use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Object, ResourceVersion, Time, defaults};
use kubestep_cluster::remote::RequestResult;
use kubestep_cluster::{World, WorldError};
use kubestep_debug::edit::EditError;
use kubestep_debug::{Change, Session};
use kubestep_framework::pod::NamespacedName;

/// Approximate size of an operation, mostly an old version of a pod or a node, in bytes.
const UPDATE_BYTES: usize = 2_000;

/// One operation on the simulated cluster.
#[derive(Clone, Debug)]
pub enum ClusterUpdate {
    /// Sets an object to the server's version.
    Accept(Object),
    /// The server has deleted the object.
    Forget(Kind, NamespacedName),
    /// Pods with this scheduler name are scheduled, with the first profile's plugins.
    Serve(Symbol),
    /// The pod moves to the active queue.
    Activate(NamespacedName),
    /// A write was answered.
    Answer {
        /// The ticket of the request.
        ticket: u64,
        /// The result of the write.
        answer: RequestResult,
        /// The write, in a few words.
        what: String,
    },
    /// The pod is parked until it changes; the name of the one who parked it.
    Park(NamespacedName, Symbol),
}

/// The updates up to one moment.
#[derive(Clone, Debug)]
pub struct ClusterUpdates {
    /// The moment, by the server's clock.
    pub now: Time,
    /// The updates, in order.
    pub updates: Vec<ClusterUpdate>,
}

/// Whether the server's new version of an object, compared with the previous version `there`,
/// changes nothing that any scheduler reads, so that it can be skipped: the heartbeat of a node,
/// most of what a kubelet reports of a running pod. For kinds that the scheduler writes, the
/// resource version itself counts, and a pending pod is evaluated on any change. A version is never
/// skipped while an operation on the same object is pending.
pub(crate) fn is_irrelevant(
    session: &Session,
    updates: &[ClusterUpdate],
    there: Option<&Object>,
    new: &Object,
) -> bool {
    let settled = match new {
        Object::Node(_) => true,
        Object::Pod(pod) => !pod.spec.node_name.is_empty(),
        _ => false,
    };
    let Some(there) = there.filter(|_| settled) else { return false };
    let is_same = unversioned(there) == unversioned(new);
    is_same
        && !session.world().api().awaits(new.key())
        && !updates.iter().any(|update| update.is_about(new))
}

/// The object with defaults and without its resource version.
fn unversioned(object: &Object) -> Object {
    let mut object = object.clone();
    defaults::apply(&mut object);
    object.metadata_mut().resource_version = ResourceVersion::default();
    object
}

impl ClusterUpdate {
    /// Applies the update.
    ///
    /// # Errors
    /// The profile of [`ClusterUpdate::Serve`] cannot be built.
    pub fn apply(self, world: &mut World) -> Result<(), WorldError> {
        match self {
            ClusterUpdate::Accept(object) => {
                // Pods that arrive together get increasing times: with equal times the queue's
                // heap would not keep their order.
                if matches!(&object, Object::Pod(pod) if pod.spec.node_name.is_empty()) {
                    world.step_clock();
                }
                world.accept(object);
            }
            ClusterUpdate::Forget(kind, key) => world.forget(kind, key),
            // The profile was built before with the same arguments.
            ClusterUpdate::Serve(name) => world.serve(name)?,
            ClusterUpdate::Activate(pod) => {
                // A gated pod stays gated.
                let _active = world.activate(pod);
            }
            ClusterUpdate::Answer { ticket, answer, .. } => world.answer(ticket, answer),
            ClusterUpdate::Park(pod, by) => world.park(pod, by),
        }
        Ok(())
    }

    fn is_about(&self, object: &Object) -> bool {
        match self {
            ClusterUpdate::Accept(other) => other.key() == object.key(),
            ClusterUpdate::Forget(kind, key) => {
                *kind == object.kind() && *key == NamespacedName::of(object)
            }
            _ => false,
        }
    }
}

impl Change for ClusterUpdates {
    fn describe(&self) -> String {
        let accepted = |update: &&ClusterUpdate| {
            matches!(
                update,
                ClusterUpdate::Accept(_) | ClusterUpdate::Forget(..) | ClusterUpdate::Answer { .. }
            )
        };
        match (self.updates.iter().filter(accepted).count(), self.updates.first()) {
            (1, Some(ClusterUpdate::Accept(object))) => {
                format!("from the cluster: {}", object.key())
            }
            (1, Some(ClusterUpdate::Forget(kind, key))) => {
                format!("from the cluster: {kind} {key} was deleted")
            }
            (1, Some(ClusterUpdate::Answer { answer: Ok(_), what, .. })) => {
                format!("written: {what}")
            }
            (1, Some(ClusterUpdate::Answer { answer: Err(error), what, .. })) => {
                format!("not written: {what}: {error}")
            }
            (0, _) => "time passed".into(),
            (count, _) => format!("from the cluster: {count} changes"),
        }
    }

    fn cannot_fail(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        self.updates.len() * UPDATE_BYTES
    }

    fn apply(&self, world: &mut World) -> Result<(), EditError> {
        world.advance_to(self.now);
        let applied = self.updates.iter().try_for_each(|update| update.clone().apply(world));
        applied.map_err(|error| EditError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_config as config;
    use kubestep_config::FeatureGates;
    use kubestep_framework::testing::{node, pod};

    #[test]
    fn pods_of_one_batch_are_tried_in_order() {
        let (registry, features) = (kubestep_plugins::registry(), FeatureGates::default());
        let config = config::resolve(None, &features, &registry.descriptors()).unwrap();
        let mut world = World::new(&config, features, &registry).unwrap();
        let names = ["d", "a", "c", "b", "e"];
        let pods = names.map(|name| ClusterUpdate::Accept(pod(name).into()));
        let updates = [ClusterUpdate::Accept(node("n1").into())].into_iter().chain(pods).collect();
        ClusterUpdates { now: Time(world.now().0 + 1_000_000), updates }.apply(&mut world).unwrap();
        let tried = names.map(|_| world.step().unwrap().pod.name.to_string());
        assert_eq!(tried, names);
    }
}
