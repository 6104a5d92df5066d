//! A workload's manifest: its fields as written, and the pod of its template.

use serde_json::{Value, json};

use kubestep_api::admission::derived_uid;
use kubestep_api::decode::from_value;
use kubestep_api::intern::Symbol;
use kubestep_api::{DecodeError, Kind, Name, Object, OwnerReference, Pod, Uid};

/// Limit of pods of one workload, against typos.
pub(crate) const MOST_REPLICAS: usize = 1_000_000;

/// A manifest and its identity.
pub(super) struct WorkloadManifest<'a> {
    pub value: &'a Value,
    pub api_version: &'a str,
    pub kind: &'a str,
    pub name: &'a str,
    pub namespace: &'a str,
    /// The path of the pod template: `spec.template`, nested deeper in some kinds.
    pub template: &'static str,
}

impl<'a> WorkloadManifest<'a> {
    pub fn new(value: &'a Value) -> WorkloadManifest<'a> {
        let text = |value: &'a Value| value.as_str().unwrap_or_default();
        let metadata = &value["metadata"];
        let namespace = text(&metadata["namespace"]);
        WorkloadManifest {
            value,
            api_version: text(&value["apiVersion"]),
            kind: text(&value["kind"]),
            name: text(&metadata["name"]),
            namespace: if namespace.is_empty() { "default" } else { namespace },
            template: "spec.template",
        }
    }

    /// Kind, namespace and name, for notices: `Deployment shop/web`.
    pub fn title(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }

    /// An error about a field.
    pub fn error(&self, path: &str, message: impl Into<String>) -> DecodeError {
        let (object, path) = (self.title(), path.to_owned());
        DecodeError { object, path, message: message.into(), ..DecodeError::default() }
    }

    /// The field at a path such as `spec.replicas`; null if it is missing.
    pub fn field(&self, path: &str) -> &'a Value {
        path.split('.').fold(self.value, |value, name| &value[name])
    }

    /// The field as an integer that is not negative.
    pub fn count(&self, path: &str) -> Result<Option<usize>, DecodeError> {
        match self.field(path) {
            Value::Null => Ok(None),
            value => match value.as_u64().and_then(|count| usize::try_from(count).ok()) {
                Some(count) if count <= MOST_REPLICAS => Ok(Some(count)),
                Some(_) => Err(self.error(path, format!("{value} is more than {MOST_REPLICAS}"))),
                None => Err(self.error(path, format!("{value} is not a number of 0 or more"))),
            },
        }
    }

    /// The pod of the template, in the workload's namespace, without a name.
    pub(crate) fn template_pod(&self) -> Result<Pod, DecodeError> {
        if self.name.is_empty() {
            return Err(self.error("metadata.name", "is missing"));
        }
        let template = self.field(self.template);
        if template["spec"].is_null() {
            return Err(self.error(&format!("{}.spec", self.template), "is missing"));
        }
        let mut value = json!({"metadata": template["metadata"], "spec": template["spec"]});
        // Empty template metadata is null in the value.
        value["metadata"] = match value["metadata"].take() {
            Value::Object(fields) => Value::Object(fields),
            _ => json!({}),
        };
        let mut pod = self.pod(&value, &format!("{}.", self.template))?;
        pod.metadata.name = Name::EMPTY;
        Ok(pod)
    }

    /// A pod from a value, not bound. `above` is the path of the value in the manifest.
    pub fn pod(&self, value: &Value, above: &str) -> Result<Pod, DecodeError> {
        let decoded = from_value(Kind::Pod, value.clone())
            .map_err(|error| self.error(&format!("{above}{}", error.path), error.message))?;
        let Object::Pod(pod) = decoded else {
            return Err(self.error(above, "is not a pod"));
        };
        let mut pod = Pod::clone(&pod);
        pod.metadata.namespace = Symbol::new(self.namespace);
        pod.metadata.uid = Uid::EMPTY;
        pod.metadata.creation_timestamp = None;
        pod.metadata.deletion_timestamp = None;
        pod.spec.node_name = Name::EMPTY;
        pod.status = Default::default();
        Ok(pod)
    }

    /// The workload's UID: as written, otherwise derived from its name.
    pub fn uid(&self) -> Uid {
        match self.field("metadata.uid").as_str() {
            Some(uid) if !uid.is_empty() => Uid::from(uid),
            _ => derived_uid(&self.title()),
        }
    }

    /// The owner reference by which its pods name it as their controller.
    pub fn owner(&self) -> OwnerReference {
        owner(self.api_version, self.kind, self.name, self.uid())
    }

    /// A substitute for the template hash that controllers put into names and labels.
    pub fn hash(&self) -> String {
        let uid = derived_uid(&self.field(self.template).to_string()).to_string();
        uid.chars().filter(char::is_ascii_hexdigit).take(10).collect()
    }

    /// An object of this kind, as the scheduler reads it.
    pub fn object(&self, kind: Kind) -> Result<Object, DecodeError> {
        let mut object = from_value(kind, self.value.clone())
            .map_err(|error| self.error(&error.path, error.message))?;
        object.metadata_mut().namespace = Symbol::new(self.namespace);
        object.metadata_mut().uid = self.uid();
        Ok(object)
    }
}

/// A reference to the controller of a pod.
pub(super) fn owner(api_version: &str, kind: &str, name: &str, uid: Uid) -> OwnerReference {
    OwnerReference {
        api_version: Symbol::new(api_version),
        kind: Symbol::new(kind),
        name: Name::new(name),
        uid,
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
