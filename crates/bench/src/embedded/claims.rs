//! The controller of resource claims, and the allocation of claims without pods.

use std::sync::Arc;

use super::{Embedded, pod_of};
use crate::BenchError;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Kind, Name, Node, Object, OwnerReference, Pod, PodResourceClaimStatus, ResourceClaim, Uid,
};
use kubestep_config::FeatureGates;
use kubestep_framework::dra::{AllocatedDevices, counts_shares};
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;
use kubestep_plugins::dynamic_resources::structured::pools::Slices;
use kubestep_plugins::dynamic_resources::structured::{Allocator, Features};

/// The annotation of a claim that was made for a pod, with the name that the pod gives it.
const POD_CLAIM_NAME: &str = "resource.kubernetes.io/pod-claim-name";
/// The finalizer of allocated claims.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
/// Where the random numbers begin; the same for all runs.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

impl Embedded {
    /// The claims that the templates of a new pod give, and then the pod with their names.
    pub(super) fn claims_of(&mut self, object: &Object) -> Vec<Object> {
        let Some(pod) = pod_of(object) else { return Vec::new() };
        let (mut made, mut statuses) = (Vec::new(), Vec::new());
        for claim in pod.spec.resource_claims.iter() {
            let Some(template) = claim.resource_claim_template_name else { continue };
            if let Some(new) = self.claim(pod, claim.name, template) {
                let resource_claim_name = Some(new.metadata.name);
                statuses.push(PodResourceClaimStatus { name: claim.name, resource_claim_name });
                made.push(new.into());
            }
        }
        if !made.is_empty() {
            let mut pod = Pod::clone(pod);
            pod.status.resource_claim_statuses = statuses;
            made.push(pod.into());
        }
        made
    }

    fn claim(&mut self, pod: &Pod, name: Symbol, template: Name) -> Option<ResourceClaim> {
        let number = self.maker.next();
        let key = NamespacedName::new(pod.metadata.namespace, template);
        let template = self.world.api().objects().resource_claim_templates.get(&key)?;
        let mut claim =
            ResourceClaim { spec: template.spec.spec.clone(), ..ResourceClaim::default() };
        let metadata = &mut claim.metadata;
        *metadata = template.spec.metadata.clone();
        metadata.name = format!("{}-{name}-{number:05}", pod.metadata.name).into();
        metadata.namespace = pod.metadata.namespace;
        metadata.uid = format!("uid-{number}").into();
        metadata.annotations.insert(POD_CLAIM_NAME.into(), name.into());
        metadata.owner_references = vec![OwnerReference {
            api_version: "v1".into(),
            kind: "Pod".into(),
            name: pod.metadata.name,
            uid: pod.metadata.uid,
            controller: Some(true),
            block_owner_deletion: Some(true),
        }]
        .into();
        Some(claim)
    }

    /// Deletes the claims of deleted pods, and frees those that no pod uses any more.
    pub(super) fn release_claims(&mut self) {
        let objects = self.world.api().objects();
        let exists = |namespace: Symbol, name: Name, uid: Uid| {
            let pod = objects.pod(NamespacedName::new(namespace, name));
            pod.is_some_and(|pod| pod.metadata.uid == uid)
        };
        let (mut deleted, mut freed) = (Vec::new(), Vec::new());
        for (_, claim) in objects.resource_claims.sorted() {
            let namespace = claim.metadata.namespace;
            let mut owners = claim.metadata.owner_references.iter();
            if owners.any(|it| it.kind == "Pod" && !exists(namespace, it.name, it.uid)) {
                deleted.push(NamespacedName::new(namespace, claim.metadata.name));
                continue;
            }
            let users = &claim.status.reserved_for;
            let is_gone = |resource: Symbol, name: Name, uid: Uid| {
                resource == "pods" && !exists(namespace, name, uid)
            };
            if users.iter().any(|user| is_gone(user.resource, user.name, user.uid)) {
                let mut claim = ResourceClaim::clone(claim);
                claim.status.reserved_for.retain(|it| !is_gone(it.resource, it.name, it.uid));
                freed.push(claim);
            }
        }
        for mut claim in freed {
            if claim.status.reserved_for.is_empty() {
                claim.status.allocation = None;
                claim.metadata.finalizers.retain(|finalizer| *finalizer != FINALIZER);
            }
            self.work(|world| world.update(claim.into()));
        }
        for key in deleted {
            self.work(|world| world.delete(Kind::ResourceClaim, key));
        }
    }

    /// Allocates devices to all claims of a namespace, "" for all, that have none: each on a
    /// random node.
    pub(super) fn allocate(&mut self, namespace: &str) -> Result<(), BenchError> {
        let mut nodes: Vec<Arc<Node>> = self.world.api().nodes().cloned().collect();
        nodes.sort_by_key(|node| node.metadata.name);
        let known = (self.world.api().objects(), self.world.scheduler().features());
        for claim in allocated(known, namespace, &nodes)? {
            self.work(|world| world.update(claim.into()));
        }
        self.take_records();
        Ok(())
    }
}

/// The claims of a namespace, "" for all, that have no devices, each with those of the first node
/// that has them; where the search begins is random, but the same in every run.
///
/// # Errors
/// No node has them, or a claim is invalid.
pub fn allocated(
    (objects, gates): (&Objects, &FeatureGates),
    namespace: &str,
    nodes: &[Arc<Node>],
) -> Result<Vec<ResourceClaim>, BenchError> {
    let (features, shares) = (Features::of(gates), counts_shares(gates));
    let slices = Arc::new(Slices::new(objects, features.taint_rules, None));
    let all = objects.resource_claims.sorted();
    let mut taken = AllocatedDevices::default();
    all.iter().for_each(|(_, claim)| taken.add(claim, shares));
    let is_meant = |claim: &&Arc<ResourceClaim>| {
        (namespace.is_empty() || claim.metadata.namespace == namespace)
            && claim.status.allocation.is_none()
    };
    let mut done = Vec::new();
    for (claim, number) in all.into_iter().map(|(_, claim)| claim).filter(is_meant).zip(0..) {
        let (classes, taken_now) = (objects.device_classes.clone(), Arc::new(taken.clone()));
        let allocator = Allocator::new(features, taken_now, classes, slices.clone(), 0);
        let claim = on_some_node(&allocator, claim, nodes, number)?;
        taken.add(&claim, shares);
        done.push(claim);
    }
    Ok(done)
}

/// Claim number `number` with devices of the first node that has them.
fn on_some_node(
    allocator: &Allocator,
    claim: &Arc<ResourceClaim>,
    nodes: &[Arc<Node>],
    number: u64,
) -> Result<ResourceClaim, BenchError> {
    let mut nodes: Vec<&Arc<Node>> = nodes.iter().collect();
    shuffle(&mut nodes, &mut SEED.wrapping_mul(2 * number + 1));
    for node in &nodes {
        let found = allocator.allocate(node, std::slice::from_ref(claim));
        let found = found.map_err(|error| error.to_string())?;
        if let Some(allocation) = found.and_then(|mut results| results.pop()) {
            let mut claim = ResourceClaim::clone(claim);
            claim.status.allocation = Some(allocation);
            return Ok(claim);
        }
    }
    let metadata = &claim.metadata;
    let name = NamespacedName::new(metadata.namespace, metadata.name);
    Err(format!("claim {name} cannot be allocated on any of {} nodes", nodes.len()).into())
}

/// Shuffles with a sequence of numbers that is the same in every run.
fn shuffle<T>(items: &mut [T], random: &mut u64) {
    for last in (1..items.len()).rev() {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        items.swap(last, (*random % (last as u64 + 1)) as usize);
    }
}
