//! The objects of the cluster that plugins look up: the engine's listers.
//!
//! The scheduler's event handlers update them before cache and queue. No result depends on arrival
//! or hashing: maps are ordered, and where order matters, those of kinds with many objects are
//! [sorted](shards::Shards::sorted) by who iterates over them.

pub mod extended_resources;
pub mod shards;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::objects::extended_resources::ExtendedResources;
use crate::objects::shards::Shards;
use crate::pod::NamespacedName;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    CsiDriver, CsiNode, CsiStorageCapacity, Custom, CustomKind, CustomObject, DeviceClass,
    DeviceTaintRule, Kind, Labels, Name, Namespace, Object, PersistentVolume,
    PersistentVolumeClaim, Pod, PodDisruptionBudget, PodGroup, PriorityClass, ReplicaSet,
    ReplicationController, ResourceClaim, ResourceClaimTemplate, ResourceSlice, Service,
    StatefulSet, StorageClass, VolumeAttachment, Workload,
};

/// Calls `$do` with the table of kinds and their fields.
macro_rules! for_each_kind {
    ($do:ident) => {
        $do! {
            Pod => pods,
            Namespace => namespaces,
            Service => services,
            ReplicationController => replication_controllers,
            ReplicaSet => replica_sets,
            StatefulSet => stateful_sets,
            PodDisruptionBudget => pod_disruption_budgets,
            PriorityClass => priority_classes,
            PersistentVolume => persistent_volumes,
            PersistentVolumeClaim => persistent_volume_claims,
            StorageClass => storage_classes,
            CsiNode => csi_nodes,
            CsiDriver => csi_drivers,
            CsiStorageCapacity => csi_storage_capacities,
            VolumeAttachment => volume_attachments,
            ResourceClaim => resource_claims,
            ResourceClaimTemplate => resource_claim_templates,
            ResourceSlice => resource_slices,
            DeviceClass => device_classes,
            DeviceTaintRule => device_taint_rules,
            PodGroup => pod_groups,
            Workload => workloads,
        }
    };
}

/// Objects of one kind by namespace and name.
pub type ByKey<T> = Arc<BTreeMap<NamespacedName, Arc<T>>>;

/// Objects of a kind of which there are many, by namespace and name.
pub type Sharded<T> = Arc<Shards<NamespacedName, Arc<T>>>;

/// Objects of one custom kind.
pub type CustomObjects = ByKey<CustomObject>;

/// All objects that plugins look up, except nodes, which are in the cache: a field for each kind,
/// named like its resource, by namespace and name (without a namespace for kinds that have none).
///
/// A copy shares everything until one side changes.
#[derive(Clone, Default, Debug)]
#[allow(missing_docs)]
pub struct Objects {
    /// All pods, bound or not.
    pub pods: Sharded<Pod>,
    /// Namespaces, by an empty namespace and their name.
    pub namespaces: ByKey<Namespace>,
    /// Services, for the default topology spread selector.
    pub services: ByKey<Service>,
    pub replication_controllers: ByKey<ReplicationController>,
    pub replica_sets: ByKey<ReplicaSet>,
    pub stateful_sets: ByKey<StatefulSet>,
    pub pod_disruption_budgets: ByKey<PodDisruptionBudget>,
    pub priority_classes: ByKey<PriorityClass>,
    pub persistent_volumes: Sharded<PersistentVolume>,
    pub persistent_volume_claims: Sharded<PersistentVolumeClaim>,
    pub storage_classes: ByKey<StorageClass>,
    /// CSINodes: the CSI drivers of each node.
    pub csi_nodes: Sharded<CsiNode>,
    pub csi_drivers: ByKey<CsiDriver>,
    /// CSIStorageCapacities: free storage by class and topology.
    pub csi_storage_capacities: ByKey<CsiStorageCapacity>,
    pub volume_attachments: Sharded<VolumeAttachment>,
    pub resource_claims: Sharded<ResourceClaim>,
    pub resource_claim_templates: ByKey<ResourceClaimTemplate>,
    pub resource_slices: ByKey<ResourceSlice>,
    pub device_classes: ByKey<DeviceClass>,
    pub device_taint_rules: ByKey<DeviceTaintRule>,
    pub pod_groups: ByKey<PodGroup>,
    pub workloads: ByKey<Workload>,
    /// Objects of the custom kinds that plugins declared.
    pub custom: Arc<BTreeMap<CustomKind, CustomObjects>>,
    /// The device class of each extended resource; follows `device_classes`.
    pub extended_resources: Arc<ExtendedResources>,
    /// The labels of each namespace, by the symbol that objects within it have; follows `namespaces`.
    pub namespace_labels: Arc<BTreeMap<Symbol, Labels>>,
}

impl Objects {
    /// The pod of that name.
    pub fn pod(&self, key: NamespacedName) -> Option<&Arc<Pod>> {
        self.pods.get(&key)
    }

    /// The value of a custom object; the namespace is empty for cluster-scoped kinds.
    pub fn custom<T: Custom>(&self, key: NamespacedName) -> Option<&T> {
        self.custom.get(&T::KIND)?.get(&key)?.get()
    }

    /// The objects of a custom kind. A copy shares them.
    pub fn custom_objects(&self, kind: CustomKind) -> CustomObjects {
        self.custom.get(&kind).cloned().unwrap_or_default()
    }

    /// The labels of a namespace; empty if the namespace does not exist, as upstream.
    pub fn namespace_labels(&self, namespace: Symbol) -> Labels {
        self.namespace_labels.get(&namespace).cloned().unwrap_or_default()
    }

    /// The objects of one kind in one namespace, by name.
    pub fn in_namespace<T>(map: &ByKey<T>, namespace: Symbol) -> impl Iterator<Item = &Arc<T>> {
        let first = NamespacedName::new(namespace, Name::EMPTY);
        map.range(first..)
            .take_while(move |(key, _)| key.namespace == namespace)
            .map(|(_, object)| object)
    }

    /// Adds or replaces an object and returns the one it replaced. Nodes are not stored.
    pub fn insert(&mut self, object: Object) -> Option<Object> {
        let key = NamespacedName::of(&object);
        match &object {
            Object::DeviceClass(class) => {
                let old = self.device_classes.get(&key).cloned();
                Arc::make_mut(&mut self.extended_resources).update(old.as_deref(), class);
            }
            Object::Namespace(namespace) => {
                let labels = namespace.metadata.labels.clone();
                Arc::make_mut(&mut self.namespace_labels).insert(key.name.interned(), labels);
            }
            _ => {}
        }
        macro_rules! put {
            ($($variant:ident => $field:ident),* $(,)?) => {
                match object {
                    Object::Node(_) => None,
                    Object::Custom(object) => {
                        let kinds = Arc::make_mut(&mut self.custom);
                        let objects = Arc::make_mut(kinds.entry(object.kind).or_default());
                        objects.insert(key, object).map(Object::Custom)
                    }
                    $(Object::$variant(object) => {
                        Arc::make_mut(&mut self.$field).insert(key, object).map(Object::$variant)
                    })*
                }
            };
        }
        for_each_kind!(put)
    }

    /// The object of that kind and name; `None` for nodes, which are not stored.
    pub fn get(&self, kind: Kind, key: NamespacedName) -> Option<Object> {
        macro_rules! find {
            ($($variant:ident => $field:ident),* $(,)?) => {
                match kind {
                    Kind::Node => None,
                    Kind::Custom(kind) => {
                        self.custom.get(&kind)?.get(&key).cloned().map(Object::Custom)
                    }
                    $(Kind::$variant => self.$field.get(&key).cloned().map(Object::$variant),)*
                }
            };
        }
        for_each_kind!(find)
    }

    /// The keys of all objects of a kind, in no particular order; none for nodes, which are not
    /// stored.
    pub fn keys(&self, kind: Kind) -> Vec<NamespacedName> {
        macro_rules! list {
            ($($variant:ident => $field:ident),* $(,)?) => {
                match kind {
                    Kind::Node => Vec::new(),
                    Kind::Custom(kind) => self.custom_objects(kind).keys().copied().collect(),
                    $(Kind::$variant => self.$field.keys().copied().collect(),)*
                }
            };
        }
        for_each_kind!(list)
    }

    /// Removes an object by kind and key, and returns it.
    pub fn remove(&mut self, object: &Object) -> Option<Object> {
        let key = NamespacedName::of(object);
        match object {
            Object::DeviceClass(class) => Arc::make_mut(&mut self.extended_resources).remove(class),
            Object::Namespace(_) => {
                Arc::make_mut(&mut self.namespace_labels).remove(&key.name.interned());
            }
            _ => {}
        }
        macro_rules! take {
            ($($variant:ident => $field:ident),* $(,)?) => {
                match object {
                    Object::Node(_) => None,
                    Object::Custom(object) => {
                        let kinds = Arc::make_mut(&mut self.custom);
                        let objects = kinds.get_mut(&object.kind)?;
                        Arc::make_mut(objects).remove(&key).map(Object::Custom)
                    }
                    $(Object::$variant(_) => {
                        Arc::make_mut(&mut self.$field).remove(&key).map(Object::$variant)
                    })*
                }
            };
        }
        for_each_kind!(take)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::object;

    #[test]
    fn the_labels_of_a_namespace_are_those_of_its_object() {
        let mut objects = Objects::default();
        let namespace = |labels: serde_json::Value| {
            object(json!({"kind": "Namespace", "metadata": {"name": "shop", "labels": labels}}))
        };
        assert_eq!(objects.namespace_labels("shop".into()), Labels::new());
        objects.insert(namespace(json!({"team": "a"})));
        objects.insert(namespace(json!({"team": "b"})));
        assert_eq!(objects.namespace_labels("shop".into()), Labels::from([("team", "b")]));
        objects.remove(&namespace(json!({})));
        assert!(objects.namespace_labels.is_empty() && objects.namespaces.is_empty());
    }
}
