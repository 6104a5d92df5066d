//! What each field of an object contains, by its name: a name, a label, a resource, a message, or a
//! value with a public meaning.

use serde_json::{Map, Value};

use super::treatment::{DROPPED, Treatment, treatment};
use super::{Redactor, is_well_known, word_of};
use kubestep_api::Kind;

/// Fields with quantities by resource.
const AMOUNTS: &[&str] = &[
    "requests",
    "limits",
    "allocatable",
    "capacity",
    "overhead",
    "allocatedResources",
    "resources",
];
/// Fields keyed by names of attributes, capacities and counters, which are kept.
const BY_ATTRIBUTE: &[&str] = &["attributes", "counters", "consumedCapacity", "validRange"];
/// The same in objects of custom kinds.
const CUSTOM_AMOUNTS: &[&str] = &["min", "max", "minResources"];
/// Attributes of a NodeResourceTopology that decisions depend on; others may contain anything.
const TOPOLOGY_ATTRIBUTES: &[&str] = &[
    "topologyManagerPolicy",
    "topologyManagerScope",
    "topologyManagerMaxNUMANodes",
    "nodeTopologyPodsFingerprint",
    "nodeTopologyPodsFingerprintMethod",
];
/// Fields that map label keys to values.
const LABELS: &[&str] = &["labels", "matchLabels", "nodeSelector", "selector"];
/// Labels whose values are public.
const KEPT_VALUES: &[&str] = &["kubernetes.io/arch", "kubernetes.io/os"];

/// The position of a value in an object.
#[derive(Clone, Copy)]
pub(super) struct FieldPosition<'a> {
    pub kind: Kind,
    /// The name of the field that contains the value, and that of its parent.
    pub field: &'a str,
    pub parent: &'a str,
}

impl Redactor {
    /// An object's fields, pseudonymized.
    pub(super) fn fields(&mut self, kind: Kind, value: Value) -> Value {
        self.value(FieldPosition { kind, field: "", parent: "" }, value)
    }

    fn value(&mut self, at: FieldPosition<'_>, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(at, &text)),
            Value::Array(mut items) => {
                if is_custom(at) && at.field == "attributes" {
                    items.retain(is_topology_attribute);
                }
                Value::Array(items.into_iter().map(|item| self.value(at, item)).collect())
            }
            Value::Object(fields) => self.map(at, fields),
            other => other,
        }
    }

    fn map(&mut self, at: FieldPosition<'_>, fields: Map<String, Value>) -> Value {
        let is_plain = fields.values().all(Value::is_string);
        let renamed: Map<String, Value> = match at.field {
            "annotations" => self.annotations(fields),
            field if LABELS.contains(&field) && is_plain => self.labels(fields),
            field if AMOUNTS.contains(&field) && is_plain && !is_resource_of_zone(at) => {
                fields.into_iter().map(|(name, amount)| (self.resource(&name), amount)).collect()
            }
            field if CUSTOM_AMOUNTS.contains(&field) && is_custom(at) => {
                fields.into_iter().map(|(name, amount)| (self.resource(&name), amount)).collect()
            }
            "nodeAllocatableResourceMappings" => {
                let fields = fields.into_iter();
                fields.map(|(name, mapping)| (self.resource(&name), mapping)).collect()
            }
            field if BY_ATTRIBUTE.contains(&field) => self.by_attribute(at, fields),
            "capacity" => fields,
            "disruptedPods" => {
                fields.into_iter().map(|(pod, time)| (self.name(&pod, "pod"), time)).collect()
            }
            field if DROPPED.contains(&field) => Map::new(),
            _ => return self.named(at, fields),
        };
        Value::Object(renamed)
    }

    /// Pseudonymizes a structure field by field.
    fn named(&mut self, at: FieldPosition<'_>, mut fields: Map<String, Value>) -> Value {
        // The key of a requirement or taint determines the meaning of its values.
        let key = fields.get("key").and_then(Value::as_str).map(str::to_owned);
        if let Some(key) = &key {
            let is_field = at.field == "matchFields";
            if !is_field {
                fields.insert("key".into(), Value::String(self.label_key(key)));
            }
            for name in ["value", "values"] {
                if let Some(value) = fields.remove(name) {
                    let within =
                        FieldPosition { kind: at.kind, field: "nodeName", parent: at.field };
                    let value = match is_field {
                        true => self.value(within, value),
                        false => self.label_values(key, value),
                    };
                    fields.insert(name.into(), value);
                }
            }
        }
        let value = fields.into_iter().map(|(name, value)| {
            let done = key.is_some() && ["key", "value", "values"].contains(&name.as_str());
            let value = match done {
                true => value,
                false => {
                    let within = FieldPosition { kind: at.kind, field: &name, parent: at.field };
                    self.value(within, value)
                }
            };
            (name, value)
        });
        Value::Object(value.collect())
    }

    fn by_attribute(
        &mut self,
        at: FieldPosition<'_>,
        fields: Map<String, Value>,
    ) -> Map<String, Value> {
        let mut attribute = |name: &str, value: Value| match (name, value) {
            ("string", Value::String(text)) => Value::String(self.attribute(&text)),
            ("strings", Value::Array(texts)) => {
                let texts = texts.iter().filter_map(Value::as_str);
                texts.map(|text| Value::String(self.attribute(text))).collect()
            }
            (_, value) => value,
        };
        if at.field != "attributes" {
            return fields;
        }
        let mut all = Map::new();
        for (name, value) in fields {
            let value = match value {
                Value::Object(of) => {
                    let of = of.into_iter().map(|(name, value)| {
                        let value = attribute(&name, value);
                        (name, value)
                    });
                    Value::Object(of.collect())
                }
                other => other,
            };
            all.insert(name, value);
        }
        all
    }

    fn text(&mut self, at: FieldPosition<'_>, text: &str) -> String {
        match treatment(at) {
            Treatment::Keep => text.to_owned(),
            Treatment::Drop => String::new(),
            Treatment::Driver => self.driver(text),
            Treatment::LabelKey => self.label_key(text),
            Treatment::Message => self.message_found(text),
            Treatment::Expression => self.expression(text),
            Treatment::Scheduler => self.scheduler(text),
            Treatment::Resource => self.resource(text),
            Treatment::Image => self.image(text),
            Treatment::Disk => self.disk(text),
            Treatment::Host => self.host(text),
            Treatment::PriorityClass => self.priority_class(text),
            Treatment::Zone if is_numa_zone(text) => text.to_owned(),
            Treatment::Zone => self.name(text, "name"),
            Treatment::Stem => match text.strip_suffix('-') {
                Some(stem) => format!("{}-", self.name(stem, "name")),
                None => self.name(text, "name"),
            },
            Treatment::Requests => {
                let parts = text.split('/').map(|part| self.name(part, "request"));
                parts.collect::<Vec<_>>().join("/")
            }
            Treatment::OwnName => self.name(text, word_of(at.kind)),
            Treatment::Name(word) => self.name(text, word),
        }
    }

    fn driver(&mut self, text: &str) -> String {
        self.kept.insert(text.to_owned());
        text.to_owned()
    }

    /// While names are collected, those in messages are ignored.
    fn message_found(&mut self, text: &str) -> String {
        match self.found {
            Some(_) => text.to_owned(),
            None => self.message(text),
        }
    }

    fn labels(&mut self, labels: Map<String, Value>) -> Map<String, Value> {
        let labels = labels.into_iter().map(|(key, value)| {
            let value = self.label_values(&key, value);
            (self.label_key(&key), value)
        });
        labels.collect()
    }

    /// Kubernetes' annotations are kept; values that name a volume's node or class are renamed.
    fn annotations(&mut self, annotations: Map<String, Value>) -> Map<String, Value> {
        let renamed = annotations.into_iter().map(|(key, value)| {
            let text = value.as_str().unwrap_or_default();
            let is_own = key.split_once('/').is_some_and(|(domain, _)| is_well_known(domain));
            let value = match key.as_str() {
                "volume.kubernetes.io/selected-node" => self.name(text, "node"),
                "volume.beta.kubernetes.io/storage-class" => self.name(text, "class"),
                "storage.alpha.kubernetes.io/migrated-plugins" => text.to_owned(),
                key if is_own && key.starts_with("pv.kubernetes.io/") => text.to_owned(),
                _ => self.name(text, "text"),
            };
            (if is_own { key } else { self.name(&key, "key") }, Value::String(value))
        });
        renamed.collect()
    }

    fn label_key(&mut self, key: &str) -> String {
        match key.split_once('/') {
            Some((domain, _)) if is_well_known(domain) => key.to_owned(),
            _ => self.name(key, "key"),
        }
    }

    fn label_values(&mut self, key: &str, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.label_value(key, &text)),
            Value::Array(items) => {
                items.into_iter().map(|item| self.label_values(key, item)).collect()
            }
            other => other,
        }
    }

    /// Integers are kept, because Gt and Lt compare them.
    fn label_value(&mut self, key: &str, text: &str) -> String {
        let stays = KEPT_VALUES.contains(&key)
            || text.parse::<i64>().is_ok()
            || matches!(text, "true" | "false");
        if stays {
            return text.to_owned();
        }
        // Volumes may list several zones in one label value.
        let parts = text.split("__").map(|part| self.name(part, "value"));
        parts.collect::<Vec<_>>().join("__")
    }

    /// Kubernetes' own resources are kept; the domain and name of other resources are renamed
    /// separately.
    pub(super) fn resource(&mut self, name: &str) -> String {
        const CLASS: &str = "deviceclass.resource.kubernetes.io/";
        if let Some(class) = name.strip_prefix(CLASS) {
            return format!("{CLASS}{}", self.name(class, "class"));
        }
        match name.split_once('/') {
            Some((domain, _)) if is_well_known(domain) => name.to_owned(),
            Some((domain, resource)) => {
                format!("{}/{}", self.name(domain, "domain"), self.name(resource, "resource"))
            }
            None => name.to_owned(),
        }
    }

    /// Renames an image by its full name: without a tag it has the tag `latest`.
    fn image(&mut self, image: &str) -> String {
        if image.is_empty() {
            return String::new();
        }
        let has_tag = image.rsplit('/').next().is_some_and(|end| end.contains(':'));
        let full = if has_tag { image.to_owned() } else { format!("{image}:latest") };
        match self.found {
            Some(_) => self.name(&full, "image"),
            None => format!("{}:1", self.name(&full, "image")),
        }
    }

    /// Renames a volume handle, including the parts of handles with a provider's structure.
    fn disk(&mut self, handle: &str) -> String {
        if let Some((zone, id)) = handle.strip_prefix("aws://").and_then(|url| url.split_once('/'))
        {
            let zone = self.name(zone, "value");
            return format!("aws://{zone}/{}", self.disk(id));
        }
        match handle.strip_prefix("vol-") {
            Some(id) => format!("vol-{}", self.name(id, "disk")),
            None => self.name(handle, "disk"),
        }
    }

    /// Renames an address; those for all interfaces and for the local host are kept.
    fn host(&mut self, address: &str) -> String {
        match address {
            "0.0.0.0" | "::" | "127.0.0.1" | "::1" => address.to_owned(),
            address => self.name(address, "address"),
        }
    }

    fn priority_class(&mut self, name: &str) -> String {
        match name {
            "system-node-critical" | "system-cluster-critical" => name.to_owned(),
            name => self.name(name, "priority"),
        }
    }

    /// Pseudonymizes a scheduler's configuration: profiles, resources, labels and addresses are
    /// renamed; plugins, extension points and weights are kept.
    pub fn config(&mut self, value: Value) -> Value {
        self.config_value("", value)
    }

    fn config_value(&mut self, field: &str, value: Value) -> Value {
        let object = |redactor: &mut Redactor, value| {
            redactor.value(FieldPosition { kind: Kind::Pod, field: "", parent: "" }, value)
        };
        match (field, value) {
            ("addedAffinity" | "defaultConstraints" | "selector" | "labelSelector", value) => {
                object(self, value)
            }
            ("pluginConfig", Value::Array(items)) => {
                items.into_iter().map(|item| self.plugin_config(item)).collect()
            }
            ("tlsConfig" | "clientConnection", Value::Object(_)) => Value::Object(Map::new()),
            ("schedulerName", Value::String(text)) => self.scheduler(&text).into(),
            ("urlPrefix", Value::String(text)) => {
                format!("http://{}/", self.name(&text, "extender")).into()
            }
            ("ignoredResourceGroups", Value::Array(groups)) => {
                let groups = groups.iter().filter_map(Value::as_str);
                groups.map(|group| Value::from(self.name(group, "domain"))).collect()
            }
            ("ignoredResources", Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                names.map(|name| Value::from(self.resource(name))).collect()
            }
            ("resources" | "managedResources", Value::Array(items)) => {
                items.into_iter().map(|item| self.config_resource(item)).collect()
            }
            ("resourceName" | "resourceNamespace", Value::String(text)) => {
                self.name(&text, "name").into()
            }
            (field, Value::Array(items)) => {
                items.into_iter().map(|item| self.config_value(field, item)).collect()
            }
            (_, Value::Object(fields)) => {
                let fields = fields.into_iter().map(|(name, value)| {
                    let value = self.config_value(&name, value);
                    (name, value)
                });
                Value::Object(fields.collect())
            }
            (_, other) => other,
        }
    }

    /// The arguments of plugins that kubestep does not have may contain anything, also secrets, and
    /// no decision depends on them.
    fn plugin_config(&mut self, mut item: Value) -> Value {
        let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
        if !self.kept.contains(name)
            && let Some(fields) = item.as_object_mut()
        {
            fields.remove("args");
        }
        self.config_value("", item)
    }

    fn config_resource(&mut self, mut item: Value) -> Value {
        if let Some(name) = item.get("name").and_then(Value::as_str).map(str::to_owned) {
            item["name"] = self.resource(&name).into();
        }
        item
    }
}

pub(super) fn is_custom(at: FieldPosition<'_>) -> bool {
    matches!(at.kind, Kind::Custom(_))
}

fn is_topology_attribute(attribute: &Value) -> bool {
    let name = attribute.get("name").and_then(Value::as_str);
    name.is_some_and(|name| TOPOLOGY_ATTRIBUTES.contains(&name))
}

/// Whether a name in a NodeResourceTopology is that of a NUMA zone as all agents write it: `node-0`.
fn is_numa_zone(name: &str) -> bool {
    let number = name.strip_prefix("node-");
    number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Whether it is a resource of a zone in a NodeResourceTopology: a list of structures with names,
/// where other kinds have a map of amounts.
fn is_resource_of_zone(at: FieldPosition<'_>) -> bool {
    is_custom(at) && at.field == "resources"
}
