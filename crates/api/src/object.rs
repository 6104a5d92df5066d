//! One object of any kind, shared by reference count.

use std::fmt;
use std::sync::Arc;

use crate as api;
use crate::intern::Symbol;
use crate::{Kind, Name, ObjectMeta};

macro_rules! object {
    ($($kind:ident),* $(,)?) => {
        /// An object of any kind that the scheduler reads. Cloning is cheap.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum Object {
            $($kind(Arc<api::$kind>),)*
            /// Of a custom kind.
            Custom(Arc<api::CustomObject>),
        }

        impl Object {
            /// The kind, by which listers and watches are separate.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Object::$kind(_) => Kind::$kind,)*
                    Object::Custom(object) => Kind::Custom(object.kind),
                }
            }

            /// The metadata that all kinds have.
            pub fn metadata(&self) -> &ObjectMeta {
                match self {
                    $(Object::$kind(object) => &object.metadata,)*
                    Object::Custom(object) => &object.metadata,
                }
            }

            /// The object's metadata, mutable; a shared object is copied first.
            pub fn metadata_mut(&mut self) -> &mut ObjectMeta {
                match self {
                    $(Object::$kind(object) => &mut Arc::make_mut(object).metadata,)*
                    Object::Custom(object) => &mut Arc::make_mut(object).metadata,
                }
            }

            /// Decodes an object of a known kind from any serde source.
            pub fn deserialize_as<'de, D: serde::Deserializer<'de>>(
                kind: Kind,
                deserializer: D,
            ) -> Result<Object, D::Error> {
                Ok(match kind {
                    $(Kind::$kind => Object::$kind(Arc::new(serde::Deserialize::deserialize(deserializer)?)),)*
                    Kind::Custom(kind) => {
                        Object::Custom(Arc::new(api::CustomObject::deserialize(kind, deserializer)?))
                    }
                })
            }

            /// Decodes the object of a known kind at the start of a JSON text, and returns the
            /// length of its text too.
            pub(crate) fn read_leading(kind: Kind, json: &str) -> serde_json::Result<(Object, usize)> {
                match kind {
                    $(Kind::$kind => {
                        let (object, length) = leading_value::<api::$kind>(json)?;
                        Ok((object.into(), length))
                    })*
                    Kind::Custom(kind) => {
                        let (value, length) = leading_value::<serde_json::Value>(json)?;
                        let object = api::CustomObject::deserialize(kind, value)?;
                        Ok((Object::Custom(Arc::new(object)), length))
                    }
                }
            }

            /// The object as JSON, without `apiVersion` and `kind`.
            pub fn to_json(&self) -> serde_json::Result<serde_json::Value> {
                match self {
                    $(Object::$kind(object) => serde_json::to_value(&**object),)*
                    Object::Custom(object) => serde_json::to_value(&**object),
                }
            }
        }

        $(impl From<api::$kind> for Object {
            fn from(object: api::$kind) -> Object {
                Object::$kind(Arc::new(object))
            }
        }

        impl From<Arc<api::$kind>> for Object {
            fn from(object: Arc<api::$kind>) -> Object {
                Object::$kind(object)
            }
        })*
    };
}

/// The value at the start of a JSON text, and the length of its text.
pub fn leading_value<'a, T: serde::Deserialize<'a>>(
    json: &'a str,
) -> serde_json::Result<(T, usize)> {
    let mut values = serde_json::Deserializer::from_str(json).into_iter();
    match values.next() {
        Some(value) => value.map(|value| (value, values.byte_offset())),
        // Only whitespace: decoding it again yields the error.
        None => serde_json::from_str(json).map(|value| (value, json.len())),
    }
}

object! {
    Node, Pod, Namespace, PersistentVolume, PersistentVolumeClaim, Service,
    ReplicationController, ReplicaSet, StatefulSet, PodDisruptionBudget, PriorityClass, PodGroup,
    Workload, StorageClass, CsiNode, CsiDriver, CsiStorageCapacity, VolumeAttachment,
    ResourceClaim, ResourceClaimTemplate, ResourceSlice, DeviceClass, DeviceTaintRule,
}

impl Object {
    /// Frees the memory that decoding used beyond the object's need.
    pub fn compact(&mut self) {
        match self {
            Object::Pod(pod) => Arc::make_mut(pod).compact(),
            Object::Node(node) => {
                let status = &mut Arc::make_mut(node).status;
                status.images.shrink_to_fit();
                status.conditions.shrink_to_fit();
            }
            // There are few objects of the other kinds.
            _ => {}
        }
    }
}

/// The key of an object: kind, namespace ("" for cluster-scoped kinds) and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The kind, without its version.
    pub kind: Kind,
    /// The namespace, "" for cluster-scoped kinds.
    pub namespace: Symbol,
    /// The name within the namespace.
    pub name: Name,
}

impl Object {
    /// Kind, namespace and name.
    pub fn key(&self) -> ObjectKey {
        let metadata = self.metadata();
        let namespaced = self.kind().is_namespaced();
        let namespace = if namespaced { metadata.namespace } else { Symbol::EMPTY };
        ObjectKey { kind: self.kind(), namespace, name: metadata.name }
    }
}

/// `Pod default/web-0`, `Node node-1`.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.kind, self.name),
            _ => write!(f, "{} {}/{}", self.kind, self.namespace, self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_print_as_users_write_them() {
        let mut pod = api::Pod::default();
        pod.metadata.name = "web-0".into();
        pod.metadata.namespace = "shop".into();
        assert_eq!(Object::from(pod).key().to_string(), "Pod shop/web-0");
        let mut node = api::Node::default();
        node.metadata.name = "node-1".into();
        // The API ignores a namespace on a cluster-scoped kind.
        node.metadata.namespace = "shop".into();
        assert_eq!(Object::from(node).key().to_string(), "Node node-1");
    }
}
