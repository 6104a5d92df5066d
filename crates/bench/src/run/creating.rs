//! Operations that create and update objects of any kind.

use std::sync::Arc;

use serde_json::{Value, json};

use super::WorkloadRun;
use crate::BenchError;
use crate::SECOND;
use crate::manifest::{NewObject, of_kind};
use crate::suite::operation::{
    CreateAny, CreateNamespaces, CreateResourceClaims, CreateResourceDriver, UpdateAny,
};
use kubestep_api::Kind;
use kubestep_api::glob::glob;

impl WorkloadRun<'_> {
    /// The objects of a template, in a namespace.
    pub(super) fn objects(
        &self,
        path: &str,
        count: usize,
        namespace: &str,
    ) -> Result<Vec<NewObject>, BenchError> {
        let source = self.templates.get(path)?;
        let object = |index| Ok(NewObject::new(source.object(index, count)?, namespace));
        (0..count).map(object).collect()
    }

    pub(super) fn create_any(&mut self, any: &CreateAny) -> Result<(), BenchError> {
        self.require_namespace(&any.namespace)?;
        let count = any.count.unwrap_or(1);
        let objects = self.objects(&any.template_path, count, &any.namespace)?;
        objects.first().map_or(Ok(()), |first| check_scope(first, &any.template_path))?;
        self.target.create(objects)?;
        Ok(())
    }

    pub(super) fn update_any(&mut self, any: &UpdateAny) -> Result<(), BenchError> {
        self.require_namespace(&any.namespace)?;
        let count = any.count.unwrap_or(1);
        let subresource = any.subresources.first().map(String::as_str);
        let interval = match any.update_per_second {
            0 => 0,
            rate => SECOND / u64::from(rate),
        };
        let begin = self.target.now();
        let objects = self.objects(&any.template_path, count, &any.namespace)?;
        objects.first().map_or(Ok(()), |first| check_scope(first, &any.template_path))?;
        for (object, number) in objects.iter().zip(1..) {
            self.pass(begin + interval * number)?;
            self.target.update(object, subresource)?;
        }
        Ok(())
    }

    pub(super) fn create_namespaces(
        &mut self,
        wanted: &CreateNamespaces,
    ) -> Result<(), BenchError> {
        let value = match &wanted.namespace_template_path {
            Some(path) => self.templates.get(path)?.object(0, 1)?,
            None => Arc::default(),
        };
        let value = match value.is_object() {
            true => Value::clone(&value),
            false => json!({"metadata": {}}),
        };
        let value = Arc::new(of_kind(&value, "v1", "Namespace"));
        let names: Vec<String> =
            (0..wanted.count).map(|number| format!("{}-{number}", wanted.prefix)).collect();
        let object = |name: &String| NewObject {
            name: Some(name.clone()),
            ..NewObject::new(value.clone(), "")
        };
        let is_new = |name: &&String| !self.namespaces.contains_key(*name);
        let objects = names.iter().filter(is_new).map(object).collect();
        self.target.create(objects)?;
        for name in names {
            self.namespaces.entry(name).or_default();
        }
        Ok(())
    }

    pub(super) fn create_claims(
        &mut self,
        claims: &CreateResourceClaims,
    ) -> Result<(), BenchError> {
        self.require_namespace(&claims.namespace)?;
        let objects = self.objects(&claims.template_path, claims.count, &claims.namespace)?;
        self.target.create(objects)?;
        Ok(())
    }

    pub(super) fn create_driver(
        &mut self,
        driver: &CreateResourceDriver,
    ) -> Result<(), BenchError> {
        let nodes = self.target.nodes()?;
        let nodes = nodes.iter().filter(|node| glob(&driver.nodes, node));
        let slices = nodes.map(|node| NewObject::new(Arc::new(slice(driver, node)), ""));
        self.target.create(slices.collect())?;
        Ok(())
    }
}

/// A namespace is needed exactly for kinds that have one.
fn check_scope(object: &NewObject, path: &str) -> Result<(), BenchError> {
    let Some(kind) = Kind::of(object.api_version(), object.kind()) else { return Ok(()) };
    match (kind.is_namespaced(), object.namespace.is_empty()) {
        (true, true) => Err(format!("{path}: a {kind} needs a namespace").into()),
        (false, false) => Err(format!("{path}: a {kind} has no namespace").into()),
        _ => Ok(()),
    }
}

/// The devices of upstream's test driver on a node.
fn slice(driver: &CreateResourceDriver, node: &str) -> Value {
    let device = |number: usize| {
        json!({
            "name": format!("instance-{number}"),
            "attributes": {
                "model": {"string": "A100"},
                "family": {"string": "GPU"},
                "driverVersion": {"version": "1.2.3"},
                "dra.example.com/numa": {"int": number},
            },
            "capacity": {"memory": {"value": "1Gi"}},
        })
    };
    json!({
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": node},
        "spec": {
            "driver": driver.driver_name,
            "nodeName": node,
            "pool": {"name": node, "generation": 0, "resourceSliceCount": 1},
            "devices": (0..driver.max_claims_per_node).map(device).collect::<Vec<_>>(),
        },
    })
}
