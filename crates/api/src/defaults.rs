//! The defaults that the API server sets before it stores an object, as far as the scheduler reads
//! them (`pkg/apis/*/v1*/defaults.go` and the declared defaults of 1.36).
//!
//! Left out: `timeAdded` of device taints, which is the current time and affects no decision.

mod pod;

use std::sync::Arc;

use crate::intern::Symbol;
use crate::quantity::MILLI;
use crate::{
    CsiDriver, DeviceAllocationMode, DeviceClaim, DeviceToleration, DeviceTolerationOperator,
    DisruptionMode, Namespace, Node, Object, PersistentVolume, PersistentVolumeClaim,
    PersistentVolumeClaimPhase, PersistentVolumeClaimSpec, PersistentVolumeMode,
    PersistentVolumePhase, PreemptionPolicy, Quantity, ReplicationController, ResourceList,
    ResourceSlice, StorageClass, VolumeBindingMode,
};

/// Sets the defaults. Applying them again changes nothing.
pub fn apply(object: &mut Object) {
    match object {
        Object::Pod(pod) => pod::apply(Arc::make_mut(pod)),
        Object::Node(node) => node_defaults(Arc::make_mut(node)),
        Object::Namespace(namespace) => namespace_defaults(Arc::make_mut(namespace)),
        Object::PersistentVolume(volume) => volume_defaults(Arc::make_mut(volume)),
        Object::PersistentVolumeClaim(claim) => claim_defaults(Arc::make_mut(claim)),
        Object::ReplicationController(rc) => controller_defaults(Arc::make_mut(rc)),
        Object::ReplicaSet(set) => {
            Arc::make_mut(set).spec.replicas.get_or_insert(1);
        }
        Object::StatefulSet(set) => {
            Arc::make_mut(set).spec.replicas.get_or_insert(1);
        }
        Object::PriorityClass(class) => {
            let policy = &mut Arc::make_mut(class).preemption_policy;
            policy.get_or_insert(PreemptionPolicy::PreemptLowerPriority);
        }
        Object::PodGroup(group) => {
            Arc::make_mut(group).spec.disruption_mode.get_or_insert(DisruptionMode::Pod);
        }
        Object::StorageClass(class) => class_defaults(Arc::make_mut(class)),
        Object::CsiDriver(driver) => driver_defaults(Arc::make_mut(driver)),
        Object::ResourceClaim(claim) => {
            device_claim_defaults(&mut Arc::make_mut(claim).spec.devices);
        }
        Object::ResourceClaimTemplate(template) => {
            device_claim_defaults(&mut Arc::make_mut(template).spec.spec.devices);
        }
        Object::ResourceSlice(slice) => slice_defaults(Arc::make_mut(slice)),
        Object::Service(_)
        | Object::PodDisruptionBudget(_)
        | Object::Workload(_)
        | Object::CsiNode(_)
        | Object::CsiStorageCapacity(_)
        | Object::VolumeAttachment(_)
        | Object::DeviceClass(_)
        | Object::DeviceTaintRule(_)
        | Object::Custom(_) => {}
    }
}

/// The API server stores amounts with a precision of at most thousandths.
fn round_up(amounts: &mut ResourceList) {
    for (_, amount) in amounts.iter_mut() {
        amount.round_up(MILLI);
    }
}

fn node_defaults(node: &mut Node) {
    let status = &mut node.status;
    if status.allocatable.is_none() {
        status.allocatable = status.capacity.clone();
    }
    status.capacity.iter_mut().for_each(round_up);
    status.allocatable.iter_mut().for_each(round_up);
}

fn namespace_defaults(namespace: &mut Namespace) {
    let name = namespace.metadata.name;
    if !name.is_empty() {
        namespace.metadata.labels.insert("kubernetes.io/metadata.name".into(), name);
    }
    if namespace.status.phase.is_empty() {
        namespace.status.phase = "Active".into();
    }
}

fn volume_defaults(volume: &mut PersistentVolume) {
    if volume.status.phase.is_unset() {
        volume.status.phase = PersistentVolumePhase::Pending;
    }
    let spec = &mut volume.spec;
    set_if_empty(&mut spec.persistent_volume_reclaim_policy, "Retain");
    spec.volume_mode.get_or_insert(PersistentVolumeMode::Filesystem);
    round_up(&mut spec.capacity);
    if let Some(disk) = &mut spec.azure_disk {
        disk.kind.get_or_insert_with(|| "Shared".into());
    }
    if let Some(rbd) = &mut spec.rbd {
        set_if_empty(&mut rbd.pool, "rbd");
    }
}

fn claim_defaults(claim: &mut PersistentVolumeClaim) {
    if claim.status.phase.is_unset() {
        claim.status.phase = PersistentVolumeClaimPhase::Pending;
    }
    claim_spec_defaults(&mut claim.spec);
    round_up(&mut claim.status.capacity);
}

fn claim_spec_defaults(spec: &mut PersistentVolumeClaimSpec) {
    spec.volume_mode.get_or_insert(PersistentVolumeMode::Filesystem);
    round_up(&mut spec.resources.requests);
    round_up(&mut spec.resources.limits);
}

fn controller_defaults(controller: &mut ReplicationController) {
    let (metadata, spec) = (&mut controller.metadata, &mut controller.spec);
    spec.replicas.get_or_insert(1);
    let Some(template) = &spec.template else { return };
    let labels = &template.metadata.labels;
    if spec.selector.as_ref().is_none_or(|selector| selector.is_empty()) && !labels.is_empty() {
        spec.selector = Some(labels.clone());
    }
    if metadata.labels.is_empty() {
        metadata.labels = labels.clone();
    }
}

fn class_defaults(class: &mut StorageClass) {
    class.reclaim_policy.get_or_insert_with(|| "Delete".into());
    class.volume_binding_mode.get_or_insert(VolumeBindingMode::Immediate);
}

fn driver_defaults(driver: &mut CsiDriver) {
    driver.spec.attach_required.get_or_insert(true);
    driver.spec.storage_capacity.get_or_insert(false);
    if driver.spec.volume_lifecycle_modes.is_empty() {
        driver.spec.volume_lifecycle_modes.push("Persistent".into());
    }
}

fn device_claim_defaults(claim: &mut DeviceClaim) {
    for request in &mut claim.requests {
        if let Some(exactly) = &mut request.exactly {
            request_defaults(&mut exactly.allocation_mode, &mut exactly.count);
            exactly.tolerations.iter_mut().for_each(device_toleration_defaults);
        }
        for alternative in &mut request.first_available {
            request_defaults(&mut alternative.allocation_mode, &mut alternative.count);
            alternative.tolerations.iter_mut().for_each(device_toleration_defaults);
        }
    }
}

fn request_defaults(mode: &mut DeviceAllocationMode, count: &mut i64) {
    if mode.is_unset() {
        *mode = DeviceAllocationMode::ExactCount;
    }
    if *mode == DeviceAllocationMode::ExactCount && *count == 0 {
        *count = 1;
    }
}

fn device_toleration_defaults(toleration: &mut DeviceToleration) {
    if toleration.operator.is_unset() {
        toleration.operator = DeviceTolerationOperator::Equal;
    }
}

fn slice_defaults(slice: &mut ResourceSlice) {
    let devices = slice.spec.devices.iter_mut();
    for mapping in devices.flat_map(|d| d.node_allocatable_resource_mappings.values_mut()) {
        let one = Quantity::new(1, crate::QuantityFormat::DecimalSi);
        mapping.allocation_multiplier.get_or_insert(one);
    }
}

fn set_if_empty(field: &mut Symbol, value: &str) {
    if field.is_empty() {
        *field = value.into();
    }
}

#[cfg(test)]
mod tests;
