//! Objects of custom resources that plugins read.
//!
//! This package knows no such kind. A package of plugins describes each in a [`CustomKindInfo`],
//! with the type to decode it into, and [`declare`]s it before anything is read. From then on the
//! kind is read from files and clusters like any other, and the plugin gets the decoded value by
//! [`CustomObject::get`].

use std::any::Any;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock};

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::meta::ObjectMeta;
use crate::{Name, Uid};

/// The names of a kind in the API.
#[derive(Clone, Copy, Debug)]
pub struct KindNames {
    /// The kind as in manifests, `PodGroup`.
    pub name: &'static str,
    /// As in URLs, `podgroups`.
    pub plural: &'static str,
    /// The API group, without the version.
    pub group: &'static str,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

/// A decoded object, of the type that the plugin declared.
type AnyValue = Arc<dyn Any + Send + Sync>;

/// What has to be known of a custom kind.
pub struct CustomKindInfo {
    names: KindNames,
    versions: &'static [&'static str],
    event: &'static str,
    plugin: &'static str,
    without: &'static str,
    decode: fn(&Map<String, Value>) -> serde_json::Result<AnyValue>,
    of_empty_node: Option<fn(&mut Map<String, Value>)>,
}

impl CustomKindInfo {
    /// A kind whose objects are decoded into `T`. `versions` are those that can be read, the
    /// preferred one first, `event` is the name of the kind in the events that plugins register
    /// for (`podgroups.v1alpha1.scheduling.x-k8s.io`), `plugin` reads it, and `without` says what
    /// is uncertain without it, as the end of a sentence.
    pub const fn of<T: Custom>(
        names: KindNames,
        versions: &'static [&'static str],
        event: &'static str,
        plugin: &'static str,
        without: &'static str,
    ) -> CustomKindInfo {
        let decode = decode::<T>;
        CustomKindInfo { names, versions, event, plugin, without, decode, of_empty_node: None }
    }

    /// The kind reports about the node of the same name. `empty` makes of a report what it would be
    /// without pods on that node.
    pub const fn about_nodes(self, empty: fn(&mut Map<String, Value>)) -> CustomKindInfo {
        CustomKindInfo { of_empty_node: Some(empty), ..self }
    }
}

fn decode<T: Custom>(fields: &Map<String, Value>) -> serde_json::Result<AnyValue> {
    let value: T = T::deserialize(&Value::Object(fields.clone()))?;
    Ok(Arc::new(value))
}

/// A type into which the objects of a custom kind are decoded: their fields without `apiVersion`,
/// `kind` and `metadata`.
pub trait Custom: DeserializeOwned + Any + Send + Sync {
    /// The kind that objects of this type are of.
    const KIND: CustomKind;
}

/// A custom kind. Two are the same if group and name are.
#[derive(Clone, Copy)]
pub struct CustomKind(&'static CustomKindInfo);

impl CustomKind {
    /// The kind that is described.
    pub const fn new(info: &'static CustomKindInfo) -> CustomKind {
        CustomKind(info)
    }

    /// Its names in the API.
    pub const fn names(self) -> &'static KindNames {
        &self.0.names
    }

    /// The versions that can be read, the preferred one first.
    pub const fn versions(self) -> &'static [&'static str] {
        self.0.versions
    }

    /// Its name in events.
    pub const fn event(self) -> &'static str {
        self.0.event
    }

    /// The plugin that reads it.
    pub const fn plugin(self) -> &'static str {
        self.0.plugin
    }

    /// What is uncertain without it, as the end of a sentence.
    pub const fn without(self) -> &'static str {
        self.0.without
    }

    fn key(self) -> (&'static str, &'static str) {
        (self.0.names.group, self.0.names.name)
    }

    /// The plural with the group, as the CustomResourceDefinition is named.
    pub fn full_name(self) -> String {
        format!("{}.{}", self.0.names.plural, self.0.names.group)
    }
}

impl PartialEq for CustomKind {
    fn eq(&self, other: &CustomKind) -> bool {
        std::ptr::eq(self.0, other.0) || self.key() == other.key()
    }
}

impl Eq for CustomKind {}

impl PartialOrd for CustomKind {
    fn partial_cmp(&self, other: &CustomKind) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CustomKind {
    fn cmp(&self, other: &CustomKind) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for CustomKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for CustomKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.names.name)
    }
}

/// The kinds that plugins declared, in that order. Like the interned strings, they are for the
/// whole process and only grow.
static DECLARED: RwLock<Vec<CustomKind>> = RwLock::new(Vec::new());

/// Lets the objects of a kind be read from now on.
pub fn declare(kind: CustomKind) {
    let mut declared = DECLARED.write().unwrap_or_else(PoisonError::into_inner);
    if !declared.contains(&kind) {
        declared.push(kind);
    }
}

/// The kinds that were declared.
pub fn declared() -> Vec<CustomKind> {
    DECLARED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// An object of a custom kind.
#[derive(Clone)]
pub struct CustomObject {
    /// The custom kind, by group and name.
    pub kind: CustomKind,
    /// The metadata that all kinds have.
    pub metadata: ObjectMeta,
    /// All other fields, without `apiVersion` and `kind`.
    fields: Arc<Map<String, Value>>,
    value: AnyValue,
}

impl CustomObject {
    /// The decoded value, if `T` is the type of the kind.
    pub fn get<T: Custom>(&self) -> Option<&T> {
        self.value.downcast_ref()
    }

    /// All fields but `apiVersion`, `kind` and `metadata`.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// The report about an empty copy of the node that this one is about. `None` if the kind is not
    /// about nodes.
    pub fn of_empty_node(&self, name: Name) -> Option<CustomObject> {
        let empty = self.kind.0.of_empty_node?;
        let mut fields = (*self.fields).clone();
        empty(&mut fields);
        let value = (self.kind.0.decode)(&fields).ok()?;
        let metadata = ObjectMeta { name, uid: Uid::EMPTY, ..self.metadata.clone() };
        Some(CustomObject { kind: self.kind, metadata, fields: Arc::new(fields), value })
    }

    /// Decodes an object of `kind`.
    ///
    /// # Errors
    /// It is no object, or a field does not have its type.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        kind: CustomKind,
        deserializer: D,
    ) -> Result<CustomObject, D::Error> {
        let mut fields: Map<String, Value> = Map::deserialize(deserializer)?;
        fields.retain(|name, _| !["apiVersion", "kind"].contains(&name.as_str()));
        let metadata = fields.remove("metadata").unwrap_or_else(|| Map::new().into());
        let metadata = ObjectMeta::deserialize(&metadata).map_err(D::Error::custom)?;
        let value = (kind.0.decode)(&fields).map_err(D::Error::custom)?;
        Ok(CustomObject { kind, metadata, fields: Arc::new(fields), value })
    }
}

impl Serialize for CustomObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written<'a> {
            metadata: &'a ObjectMeta,
            #[serde(flatten)]
            fields: &'a Map<String, Value>,
        }
        Written { metadata: &self.metadata, fields: &self.fields }.serialize(serializer)
    }
}

impl PartialEq for CustomObject {
    fn eq(&self, other: &CustomObject) -> bool {
        self.kind == other.kind && self.metadata == other.metadata && self.fields == other.fields
    }
}

impl fmt::Debug for CustomObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.metadata.name;
        f.debug_struct(self.kind.names().name).field("name", &name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Object};
    use serde_json::json;

    #[derive(Deserialize)]
    struct Widget {
        spec: Spec,
    }

    #[derive(Deserialize)]
    struct Spec {
        size: u32,
    }

    impl Custom for Widget {
        const KIND: CustomKind = WIDGETS;
    }

    const WIDGETS: CustomKind = CustomKind::new(&INFO);

    static INFO: CustomKindInfo = CustomKindInfo::of::<Widget>(
        KindNames { name: "Widget", plural: "widgets", group: "example.com", namespaced: true },
        &["v2", "v1"],
        "widgets.v2.example.com",
        "Widgets",
        "widgets have no size",
    );

    #[test]
    fn a_declared_kind_is_found_and_decoded() {
        declare(WIDGETS);
        declare(WIDGETS);
        assert_eq!(declared().iter().filter(|kind| **kind == WIDGETS).count(), 1);
        let kind = Kind::of("example.com/v1", "Widget").unwrap();
        assert_eq!(kind, Kind::Custom(WIDGETS));
        assert_eq!(Kind::of("example.org/v1", "Widget"), None);
        assert_eq!(Kind::by_name("widgets.example.com"), Some(kind));
        let text = json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w", "namespace": "ns"}, "spec": {"size": 3},
        });
        let object = Object::deserialize_as(kind, &text).unwrap();
        assert_eq!(object.key().to_string(), "Widget ns/w");
        let Object::Custom(widget) = &object else { panic!("a custom object") };
        assert_eq!(widget.get::<Widget>().map(|widget| widget.spec.size), Some(3));
        let written = object.to_json().unwrap();
        assert_eq!(written["spec"]["size"], 3);
        assert_eq!(Object::deserialize_as(kind, &written).unwrap(), object);
        let wrong = json!({"metadata": {"name": "w"}, "spec": {"size": "large"}});
        assert!(Object::deserialize_as(kind, &wrong).is_err());
    }
}
