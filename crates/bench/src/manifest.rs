//! Objects to be created, from the templates of a suite.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hashbrown::HashMap;
use serde_json::{Value, json};

use crate::BenchError;
use crate::template::Template;
use kubestep_api::decode::yaml_error;
use kubestep_api::yaml;

/// Reads a whole file; the error names the file.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> Result<String, BenchError>;

/// An object to be created or updated. Objects of one template share its value.
#[derive(Clone, Debug, PartialEq)]
pub struct NewObject {
    /// The manifest as written, shared by all objects of a template.
    pub value: Arc<Value>,
    /// Its name, if it is not that of the value.
    pub name: Option<String>,
    /// Its namespace, if it is not that of the value; "" for kinds without.
    pub namespace: String,
}

impl NewObject {
    /// An object with the name of its value.
    pub fn new(value: Arc<Value>, namespace: &str) -> NewObject {
        NewObject { value, name: None, namespace: namespace.to_owned() }
    }

    /// `v1` and so on.
    pub fn api_version(&self) -> &str {
        self.value["apiVersion"].as_str().unwrap_or_default()
    }

    /// `Pod` and so on.
    pub fn kind(&self) -> &str {
        self.value["kind"].as_str().unwrap_or_default()
    }

    /// Its name; "" if the API server makes one.
    pub fn name(&self) -> &str {
        let written = || self.value["metadata"]["name"].as_str();
        self.name.as_deref().or_else(written).unwrap_or_default()
    }

    /// The start of the name that the API server makes.
    pub fn generate_name(&self) -> &str {
        self.value["metadata"]["generateName"].as_str().unwrap_or_default()
    }
}

/// The templates of a suite: each file is read and parsed once.
pub struct Templates<'a> {
    folder: PathBuf,
    read: ReadFile<'a>,
    kept: RefCell<HashMap<String, Arc<ObjectTemplate>>>,
}

/// A template that objects are made from.
pub struct ObjectTemplate {
    file: PathBuf,
    template: Template,
    /// The object, if it is always the same.
    constant: Option<Arc<Value>>,
}

impl<'a> Templates<'a> {
    /// Templates whose paths are relative to `folder`.
    pub fn new(folder: &Path, read: ReadFile<'a>) -> Templates<'a> {
        Templates { folder: folder.to_owned(), read, kept: RefCell::default() }
    }

    /// The template in a file.
    ///
    /// # Errors
    /// The file cannot be read or is wrong.
    pub fn get(&self, path: &str) -> Result<Arc<ObjectTemplate>, BenchError> {
        if let Some(kept) = self.kept.borrow().get(path) {
            return Ok(kept.clone());
        }
        let file = self.folder.join(path);
        let source = Arc::new(ObjectTemplate::parse(&file, &(self.read)(&file)?)?);
        self.kept.borrow_mut().insert(path.to_owned(), source.clone());
        Ok(source)
    }
}

impl ObjectTemplate {
    fn parse(file: &Path, text: &str) -> Result<ObjectTemplate, BenchError> {
        let template = Template::parse(file, text)?;
        let mut source = ObjectTemplate { file: file.to_owned(), template, constant: None };
        if source.template.is_constant() {
            source.constant = Some(source.object(0, 1)?);
        }
        Ok(source)
    }

    /// Object number `index`, from 0, of `count`.
    ///
    /// # Errors
    /// The template does not give an object.
    pub fn object(&self, index: usize, count: usize) -> Result<Arc<Value>, BenchError> {
        if let Some(constant) = &self.constant {
            return Ok(constant.clone());
        }
        let text = self.template.render(index, count)?;
        let value: Value = yaml::from_str(&text).map_err(|error| {
            let error = yaml_error(&error);
            let line = error.position.map_or(0, |(line, _)| line);
            BenchError::at(&self.file, line, error.message)
        })?;
        match value.is_object() {
            true => Ok(Arc::new(value)),
            false => Err(BenchError::at(&self.file, 0, "is not an object")),
        }
    }
}

/// A value with the kind that its file may leave out, as those of volumes do not.
#[must_use]
pub fn of_kind(value: &Value, api_version: &str, kind: &str) -> Value {
    let mut value = value.clone();
    for (field, expected) in [("apiVersion", api_version), ("kind", kind)] {
        if value[field].is_null() {
            value[field] = expected.into();
        }
    }
    value
}

/// Upstream's node without a template: 4 CPUs, 32Gi and room for 110 pods.
pub(crate) fn base_node(prefix: &str) -> Value {
    let amounts = json!({"pods": "110", "cpu": "4", "memory": "32Gi"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"generateName": prefix},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

/// Upstream's pod without a template: a tenth of a CPU and 500Mi.
pub(crate) fn base_pod() -> Value {
    let amounts = json!({"cpu": "100m", "memory": "500Mi"});
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "pod-"},
        "spec": {"containers": [{
            "name": "pause",
            "image": "registry.k8s.io/pause:3.10.1",
            "ports": [{"containerPort": 80}],
            "resources": {"limits": amounts, "requests": amounts},
        }]},
    })
}

/// A manifest of a namespace without labels.
pub fn namespace(name: &str) -> NewObject {
    let value = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    NewObject::new(Arc::new(value), "")
}
