//! The fields that Kubernetes knows, kind by kind: read off the types of `k8s-openapi`, which are
//! generated from upstream's OpenAPI document.
//!
//! A type passes its fields to its deserializer. [`ShapeProbe`] is one that reads
//! nothing: it notes the fields, and gives each one value, so that their types do the same.

use std::sync::OnceLock;

use k8s_openapi::Resource;
use k8s_openapi::api::{apps, batch, core, policy, resource, scheduling, storage};
use serde::de::value::Error;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};

/// Types within types, at most; upstream has none that are as deep.
const DEEPEST: u8 = 40;
/// A text that every type takes, times too.
const SAMPLE: &str = "2000-01-01T00:00:00.000000Z";

/// Fields that the types no longer have, by the name of the type: what pods of 1.35 have instead of
/// `schedulingGroup`.
const EARLIER: &[(&str, &str, &[&str])] =
    &[("PodSpec", "workloadRef", &["name", "podGroup", "podGroupReplicaKey"])];

/// What may stand in a place of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Shape {
    /// A plain value, or one that Kubernetes does not look into.
    #[default]
    Any,
    /// A mapping with these fields.
    Fields(Vec<(&'static str, Shape)>),
    List(Box<Shape>),
    /// A mapping with keys of the user's.
    Map(Box<Shape>),
}

/// A kind in a version: `apps/v1`, `Deployment`.
type KindShape = ((&'static str, &'static str), Shape);

/// The shape of a kind in a version. `None` of those without one: custom resources, versions that
/// 1.36 does not serve, and kinds that no command reads.
pub(super) fn of(api_version: &str, kind: &str) -> Option<&'static Shape> {
    let row = table().iter().find(|(name, _)| *name == (api_version, kind))?;
    Some(&row.1)
}

/// The versions of a kind, the usual one first.
pub(super) fn versions(kind: &str) -> Vec<&'static str> {
    let rows = table().iter().filter(|((_, name), _)| *name == kind);
    rows.map(|((version, _), _)| *version).collect()
}

fn table() -> &'static [KindShape] {
    static TABLE: OnceLock<Vec<KindShape>> = OnceLock::new();
    TABLE.get_or_init(all)
}

macro_rules! shapes {
    ($($type:ty),* $(,)?) => {
        vec![$((
            (<$type as Resource>::API_VERSION, <$type as Resource>::KIND),
            read::<$type>().unwrap_or_default(),
        )),*]
    };
}

fn all() -> Vec<KindShape> {
    shapes![
        core::v1::Node,
        core::v1::Pod,
        core::v1::Namespace,
        core::v1::PersistentVolume,
        core::v1::PersistentVolumeClaim,
        core::v1::Service,
        core::v1::ReplicationController,
        apps::v1::Deployment,
        apps::v1::DaemonSet,
        apps::v1::ReplicaSet,
        apps::v1::StatefulSet,
        batch::v1::CronJob,
        batch::v1::Job,
        policy::v1::PodDisruptionBudget,
        scheduling::v1::PriorityClass,
        scheduling::v1alpha2::PodGroup,
        scheduling::v1alpha2::Workload,
        storage::v1::StorageClass,
        storage::v1::CSINode,
        storage::v1::CSIDriver,
        storage::v1::CSIStorageCapacity,
        storage::v1::VolumeAttachment,
        resource::v1::DeviceClass,
        resource::v1::ResourceClaim,
        resource::v1::ResourceClaimTemplate,
        resource::v1::ResourceSlice,
        resource::v1beta1::DeviceClass,
        resource::v1beta1::ResourceClaim,
        resource::v1beta1::ResourceClaimTemplate,
        resource::v1beta1::ResourceSlice,
        resource::v1beta2::DeviceClass,
        resource::v1beta2::ResourceClaim,
        resource::v1beta2::ResourceClaimTemplate,
        resource::v1beta2::ResourceSlice,
        resource::v1beta2::DeviceTaintRule,
    ]
}

/// The shape of a type.
fn read<T: Deserialize<'static>>() -> Result<Shape, Error> {
    let mut shape = Shape::Any;
    T::deserialize(ShapeProbe { shape: &mut shape, depth: 0 })?;
    Ok(shape)
}

/// Notes what a type asks for.
struct ShapeProbe<'a> {
    shape: &'a mut Shape,
    depth: u8,
}

macro_rules! plain {
    ($lifetime:lifetime $($method:ident $visit:ident $value:expr;)*) => {
        $(fn $method<V: Visitor<$lifetime>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit($value)
        })*
    };
}

impl<'de> Deserializer<'de> for ShapeProbe<'_> {
    type Error = Error;

    plain! { 'de
        deserialize_any visit_borrowed_str SAMPLE;
        deserialize_bool visit_bool false;
        deserialize_i32 visit_i32 0;
        deserialize_i64 visit_i64 0;
        deserialize_f64 visit_f64 0.0;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.depth > DEEPEST {
            return Err(Error::custom("a type that holds itself"));
        }
        let mut shapes: Vec<_> = fields.iter().map(|field| (*field, Shape::Any)).collect();
        let depth = self.depth + 1;
        let value = visitor.visit_map(Each { rest: shapes.iter_mut(), current: None, depth })?;
        shapes.extend(EARLIER.iter().filter(|(of, ..)| *of == name).map(|(_, field, parts)| {
            let parts = parts.iter().map(|part| (*part, Shape::Any));
            (*field, Shape::Fields(parts.collect()))
        }));
        *self.shape = Shape::Fields(shapes);
        Ok(value)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut item = Box::<Shape>::default();
        let value = visitor.visit_seq(One::of(&mut item, self.depth))?;
        *self.shape = Shape::List(item);
        Ok(value)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut shape = Box::<Shape>::default();
        let value = visitor.visit_map(One::of(&mut shape, self.depth))?;
        *self.shape = Shape::Map(shape);
        Ok(value)
    }

    forward_to_deserialize_any! {
        i8 i16 u8 u16 u32 u64 f32 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct enum identifier ignored_any
    }
}

/// A value for each field of a type.
struct Each<'a> {
    rest: std::slice::IterMut<'a, (&'static str, Shape)>,
    current: Option<&'a mut Shape>,
    depth: u8,
}

impl<'de> MapAccess<'de> for Each<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        // What an object is must be as its type says, so no sample is given.
        let mut rest =
            self.rest.by_ref().filter(|(name, _)| !matches!(*name, "apiVersion" | "kind"));
        let Some((name, shape)) = rest.next() else { return Ok(None) };
        self.current = Some(shape);
        seed.deserialize((*name).into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let shape = self.current.take().ok_or_else(|| Error::custom("no field"))?;
        seed.deserialize(ShapeProbe { shape, depth: self.depth })
    }
}

/// One item of a list, or one entry of a map.
struct One<'a>(Option<ShapeProbe<'a>>);

impl<'a> One<'a> {
    fn of(shape: &'a mut Shape, depth: u8) -> One<'a> {
        One(Some(ShapeProbe { shape, depth: depth + 1 }))
    }
}

impl<'de> SeqAccess<'de> for One<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        self.0.take().map(|probe| seed.deserialize(probe)).transpose()
    }
}

impl<'de> MapAccess<'de> for One<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.0.as_ref().map(|_| seed.deserialize("key".into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let probe = self.0.take().ok_or_else(|| Error::custom("no entry"))?;
        seed.deserialize(probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_api::Kind;

    fn names(shape: &Shape) -> Vec<&'static str> {
        match shape {
            Shape::Fields(fields) => fields.iter().map(|(name, _)| *name).collect(),
            _ => Vec::new(),
        }
    }

    fn at(shape: &Shape, path: &[&str]) -> Shape {
        path.iter().fold(shape.clone(), |shape, step| match (shape, *step) {
            (Shape::List(item), "[]") => *item,
            (Shape::Map(value), "{}") => *value,
            (Shape::Fields(fields), name) => {
                fields.into_iter().find(|(known, _)| *known == name).unwrap().1
            }
            (shape, step) => panic!("{step} in {shape:?}"),
        })
    }

    #[test]
    fn pods_of_older_versions_have_their_fields() {
        let pod = of("v1", "Pod").unwrap();
        let parts = names(&at(pod, &["spec", "workloadRef"]));
        assert_eq!(parts, ["name", "podGroup", "podGroupReplicaKey"]);
        let deployment = of("apps/v1", "Deployment").unwrap();
        at(deployment, &["spec", "template", "spec", "workloadRef", "podGroup"]);
    }

    #[test]
    fn every_kind_that_is_read_has_its_fields() {
        for ((version, kind), shape) in table() {
            assert!(names(shape).contains(&"metadata"), "{version} {kind}: {shape:?}");
        }
        let known: Vec<&str> = table().iter().map(|((_, kind), _)| *kind).collect();
        assert!(Kind::all().all(|kind| known.contains(&kind.as_str())));
    }

    #[test]
    fn fields_are_known_at_every_depth() {
        let pod = of("v1", "Pod").unwrap();
        let containers = at(pod, &["spec", "containers", "[]"]);
        assert!(names(&containers).contains(&"livenessProbe"));
        let http = at(&containers, &["livenessProbe", "httpGet"]);
        assert_eq!(names(&http), ["host", "httpHeaders", "path", "port", "scheme"]);
        assert_eq!(at(&http, &["port"]), Shape::Any, "a number or a text");
        assert_eq!(at(&containers, &["resources", "limits", "{}"]), Shape::Any);
        assert_eq!(at(pod, &["metadata", "labels", "{}"]), Shape::Any);
        let fields = at(pod, &["metadata", "managedFields", "[]"]);
        assert_eq!(at(&fields, &["fieldsV1"]), Shape::Any);
        let job = of("batch/v1", "CronJob").unwrap();
        let path = ["spec", "jobTemplate", "spec", "template", "spec"];
        assert!(names(&at(job, &path)).contains(&"nodeSelector"));
        assert_eq!(of("example.com/v1", "Pod"), None);
    }
}
