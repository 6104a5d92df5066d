//! Pods whose bindings update one object at the same time, with a remote API server that accepts an
//! update only of the newest version.

use serde_json::json;

use crate::World;
use crate::remote::{Outgoing, Request, RequestResult, WriteOutcome};
use kubestep_api::{Object, ObjectKey, Pod, ResourceClaim};
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_framework::record::{Outcome, QueueName};
use kubestep_framework::testing::{PodBuilder, key, node, object, pod};

const CONFLICT: &str = "Operation cannot be fulfilled on resourceclaims.resource.k8s.io \"shared\": \
                        the object has been modified; please apply your changes to the latest \
                        version and try again";

/// The scheduler, and the API server that it mirrors.
struct Cluster {
    world: World,
    version: u64,
    /// How many updates of the claim were accepted, and how many rejected.
    updates: [usize; 2],
    /// How many updates conflict with a change by another client.
    interfere: usize,
}

impl Cluster {
    /// A node with a device, and the unallocated claim `shared`.
    fn new(gates: &str) -> Cluster {
        let features = FeatureGates::parse(gates).unwrap();
        let registry = kubestep_plugins::registry();
        let config = config::resolve(None, &features, &registry.descriptors()).unwrap();
        let mut world = World::new(&config, features, &registry).unwrap();
        world.mirror_remote();
        let mut cluster = Cluster { world, version: 0, updates: [0, 0], interfere: 0 };
        cluster.put(node("n1").into());
        let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
        let slice =
            json!({"driver": "d", "nodeName": "n1", "devices": [{"name": "a"}], "pool": pool});
        let requests = json!([{"name": "r", "exactly": {"deviceClassName": "gpu"}}]);
        for (kind, name, spec) in [
            ("DeviceClass", "gpu", json!({})),
            ("ResourceSlice", "s", slice),
            ("ResourceClaim", "shared", json!({"devices": {"requests": requests}})),
        ] {
            let metadata = json!({"name": name, "namespace": "default", "uid": name});
            cluster.put(object(json!({"kind": kind, "metadata": metadata, "spec": spec})));
        }
        cluster
    }

    /// Stores an object in a new version, and the watch reports it.
    fn put(&mut self, mut object: Object) -> Object {
        self.version += 1;
        object.metadata_mut().resource_version = self.version.into();
        self.world.accept(object.clone());
        object
    }

    fn claim(&self) -> ResourceClaim {
        self.world.api().objects().resource_claims.get(&key("shared")).unwrap().as_ref().clone()
    }

    fn make(&mut self, request: Request) -> RequestResult {
        match request {
            Request::Update { after, .. } => self.update(after),
            Request::Bind { pod, node } => {
                let mut bound = self.world.api().objects().pod(pod.key).unwrap().as_ref().clone();
                bound.spec.node_name = node;
                self.put(bound.into());
                Ok(WriteOutcome::Done)
            }
            _ => Ok(WriteOutcome::Done),
        }
    }

    fn update(&mut self, after: Object) -> RequestResult {
        if self.interfere > 0 {
            self.interfere -= 1;
            self.put(self.claim().into());
        }
        let (claim, ObjectKey { kind, .. }) = (self.claim(), after.key());
        assert_eq!(kind, kubestep_api::Kind::ResourceClaim);
        if after.metadata().resource_version == claim.metadata.resource_version {
            self.updates[0] += 1;
            return Ok(WriteOutcome::Object(self.put(after)));
        }
        self.updates[1] += 1;
        Ok(WriteOutcome::Conflict { problem: CONFLICT.into(), newest: claim.into() })
    }

    /// Schedules and answers everything that was sent; otherwise advances the clock.
    fn round(&mut self) {
        self.world.run(10);
        let sent = self.world.api_mut().take_outbox();
        if sent.is_empty() {
            let due = self.world.next_timer().map_or(0, |due| due.0 - self.world.now().0);
            self.world.advance(due.max(1_000));
        }
        for Outgoing { ticket, request } in sent {
            let answer = self.make(request);
            self.world.answer(ticket, answer);
        }
    }

    fn bound(&self) -> usize {
        let pods = self.world.api().objects().pods.values();
        pods.filter(|pod| !pod.spec.node_name.is_empty()).count()
    }

    /// After how many rounds this many pods are bound.
    fn rounds_until_bound(&mut self, pods: usize) -> usize {
        let mut rounds = 0;
        while self.bound() < pods {
            assert!(rounds < 200, "{} are bound, updates: {:?}", self.bound(), self.updates);
            self.round();
            rounds += 1;
        }
        rounds
    }
}

fn user(name: &str) -> Pod {
    pod(name).spec(json!({"resourceClaims": [{"name": "c", "resourceClaimName": "shared"}]}))
}

#[test]
fn pods_that_share_a_claim_reserve_it_one_after_the_other() {
    let mut cluster = Cluster::new("");
    for name in ["a", "b", "c", "d"] {
        cluster.put(user(name).into());
    }
    cluster.rounds_until_bound(4);
    assert_eq!(cluster.claim().status.reserved_for.len(), 4);
    // One update for the finalizer, and a reservation for each pod.
    assert_eq!(cluster.updates, [5, 0]);
}

#[test]
fn a_gang_that_shares_a_claim_is_bound() {
    let mut cluster = Cluster::new("GenericWorkload=true,GangScheduling=true");
    cluster.put(object(json!({
        "kind": "PodGroup", "metadata": {"name": "g", "namespace": "default", "uid": "g"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 6}}},
    })));
    for name in ["a", "b", "c", "d", "e", "f"] {
        let group = json!({
            "schedulingGroup": {"podGroupName": "g"},
            "resourceClaims": [{"name": "c", "resourceClaimName": "shared"}],
        });
        cluster.put(pod(name).spec(group).into());
    }
    cluster.rounds_until_bound(6);
    assert_eq!(cluster.claim().status.reserved_for.len(), 6);
    assert_eq!(cluster.updates, [7, 0]);
}

#[test]
fn a_conflict_is_tried_again_after_a_moment_on_the_newest_version() {
    let mut cluster = Cluster::new("");
    cluster.interfere = 4;
    cluster.put(user("a").into());
    let began = cluster.world.now();
    cluster.rounds_until_bound(1);
    assert_eq!(cluster.updates, [2, 4]);
    assert_eq!(cluster.world.now().0 - began.0, 4 * 10_000, "client-go's pause, four times");
}

#[test]
fn after_five_conflicts_the_pod_goes_to_backoff() {
    let mut cluster = Cluster::new("");
    cluster.interfere = 5;
    cluster.put(user("a").into());
    let queued = |cluster: &Cluster| cluster.world.scheduler().queue().queue_of(key("a"));
    while queued(&cluster) != QueueName::Backoff {
        cluster.round();
    }
    assert_eq!(cluster.updates, [0, 5]);
    let ended = cluster.world.scheduler_mut().take_finished().pop().unwrap();
    let text = format!(
        "running PreBind plugin \"DynamicResources\": add finalizer to claim default/shared: \
         {CONFLICT}"
    );
    assert_eq!((ended.outcome, ended.message), (Outcome::SchedulerError, text));
    cluster.rounds_until_bound(1);
}

/// A pod of the group `g`, with the claim.
fn member(at: usize) -> Pod {
    pod(&format!("m-{at:02}")).spec(json!({
        "schedulingGroup": {"podGroupName": "g"},
        "resourceClaims": [{"name": "c", "resourceClaimName": "shared"}],
    }))
}

/// As upstream, a group's pods go to backoff whenever they are rejected, and from there into the
/// next cycle at once if no other pod waits: pods that arrive while the claim is being allocated
/// are tried until it is.
#[test]
fn pods_of_a_group_that_come_one_by_one_share_a_claim() {
    let mut cluster = Cluster::new("GenericWorkload=true,GangScheduling=true");
    cluster.put(object(json!({
        "kind": "PodGroup", "metadata": {"name": "g", "namespace": "default", "uid": "g"},
        "spec": {"schedulingPolicy": {"basic": {}}},
    })));
    for at in 0..20 {
        cluster.put(member(at).into());
        cluster.round();
    }
    cluster.rounds_until_bound(20);
    assert_eq!(cluster.claim().status.reserved_for.len(), 20);
    assert_eq!(cluster.updates, [21, 0]);
}
