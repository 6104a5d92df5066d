//! The fields that Kubernetes knows, kind by kind: read off the types of `k8s-openapi`, which are
//! generated from upstream's OpenAPI document.
//!
//! A type tells its fields to the deserializer that it is given. [`Probe`] is one that reads
//! nothing: it notes the fields, and gives each one value, so that their types do the same.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use k8s_openapi::api::{apps, batch, core, policy, resource, scheduling, storage};
use k8s_openapi::{List, ListableResource, Resource};
use serde::de::value::Error;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};

/// Types within types, at most; upstream has none that are as deep.
const DEEPEST: u8 = 40;
/// A text that every type takes, times too.
const SAMPLE: &str = "2000-01-01T00:00:00.000000Z";

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

/// The shape of a kind in a version, `apps/v1` and `Deployment`. `None` of those without one: custom
/// resources, versions that 1.36 does not serve, and kinds that no command reads.
pub(super) fn of(api_version: &str, kind: &str) -> Option<&'static Shape> {
    static SHAPES: OnceLock<HashMap<(&str, &str), Shape>> = OnceLock::new();
    SHAPES.get_or_init(all).get(&(api_version, kind))
}

macro_rules! shapes {
    ($($type:ty),* $(,)?) => {
        HashMap::from([$((
            (<$type as Resource>::API_VERSION, <$type as Resource>::KIND),
            read::<$type>().unwrap_or_default(),
        )),*])
    };
}

fn all() -> HashMap<(&'static str, &'static str), Shape> {
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
    T::deserialize(Probe { shape: &mut shape, depth: 0 })?;
    Ok(shape)
}

/// Notes what a type asks for.
struct Probe<'a> {
    shape: &'a mut Shape,
    depth: u8,
}

impl<'a> Probe<'a> {
    fn within(&self, shape: &'a mut Shape) -> Probe<'a> {
        Probe { shape, depth: self.depth + 1 }
    }
}

macro_rules! plain {
    ($($method:ident $visit:ident $value:expr;)*) => {
        $(fn $method<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit($value)
        })*
    };
}

impl Deserializer<'static> for Probe<'_> {
    type Error = Error;

    plain! {
        deserialize_any visit_borrowed_str SAMPLE;
        deserialize_bool visit_bool false;
        deserialize_i32 visit_i32 0;
        deserialize_i64 visit_i64 0;
        deserialize_f64 visit_f64 0.0;
    }

    fn deserialize_option<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'static>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'static>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.depth > DEEPEST {
            return Err(Error::custom("a type that holds itself"));
        }
        *self.shape = Shape::Fields(fields.iter().map(|field| (*field, Shape::Any)).collect());
        let Shape::Fields(shapes) = self.shape else { return Err(Error::custom("unreachable")) };
        visitor.visit_map(Each { rest: shapes.iter_mut(), current: None, depth: self.depth + 1 })
    }

    fn deserialize_seq<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut item = Box::<Shape>::default();
        let value = visitor.visit_seq(One(Some(self.within_box(&mut item))))?;
        *self.shape = Shape::List(item);
        Ok(value)
    }

    fn deserialize_map<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut value_shape = Box::<Shape>::default();
        let value = visitor.visit_map(One(Some(self.within_box(&mut value_shape))))?;
        *self.shape = Shape::Map(value_shape);
        Ok(value)
    }

    forward_to_deserialize_any! {
        i8 i16 u8 u16 u32 u64 f32 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct enum identifier ignored_any
    }
}
