//! Creates nodes, with what the strategies of the operation give them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::WorkloadRun;
use crate::BenchError;
use crate::manifest::{NewObject, base_node};
use crate::suite::operation::{CreateNodes, NodeAllocatable};
use kubestep_api::admission::derived_uid;

const HOSTNAME: &str = "kubernetes.io/hostname";

impl WorkloadRun<'_> {
    pub(super) fn create_nodes(
        &mut self,
        at: usize,
        wanted: &CreateNodes,
    ) -> Result<(), BenchError> {
        let source = wanted.node_template_path.as_deref();
        let source = source.map(|path| self.templates.get(path)).transpose()?;
        let base = Arc::new(base_node(&format!("node-{at}-")));
        let mut nodes = Vec::new();
        for index in 0..wanted.count {
            let value = match &source {
                Some(source) => source.object(index, wanted.count)?,
                None => base.clone(),
            };
            let name = name(&value, at, index);
            nodes.push(node(&value, &name, wanted, index));
        }
        let csi_nodes = wanted.node_allocatable_strategy.iter().flat_map(|amounts| {
            let csi_node = |node: &NewObject| csi_node(node.name(), amounts);
            nodes.iter().map(csi_node)
        });
        let csi_nodes: Vec<NewObject> = csi_nodes.collect();
        self.target.create(nodes)?;
        self.target.create(csi_nodes)?;
        Ok(())
    }
}

/// The name of a node; upstream's are random, these are in the order of creation.
fn name(value: &Value, operation: usize, index: usize) -> String {
    let metadata = &value["metadata"];
    match metadata["name"].as_str() {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => {
            let prefix = metadata["generateName"].as_str().unwrap_or("node-");
            format!("{prefix}{operation}-{index:05}")
        }
    }
}

fn node(value: &Value, name: &str, wanted: &CreateNodes, index: usize) -> NewObject {
    let mut value = value.clone();
    let labels = &mut value["metadata"]["labels"];
    if !labels.is_object() {
        *labels = json!({});
    }
    labels[HOSTNAME] = name.into();
    // As upstream, the first strategy counts.
    if let Some(amounts) = &wanted.node_allocatable_strategy {
        set_amounts(&mut value, amounts);
    } else if let Some(strategy) = &wanted.label_node_prepare_strategy {
        let values = &strategy.label_values;
        if let Some(of_node) = values.get(index % values.len().max(1)) {
            value["metadata"]["labels"][&strategy.label_key] = of_node.as_str().into();
        }
    } else if let Some(strategy) = &wanted.unique_node_label_strategy {
        value["metadata"]["labels"][&strategy.label_key] = derived_uid(name).to_string().into();
    }
    NewObject { name: Some(name.to_owned()), ..NewObject::new(Arc::new(value), "") }
}

/// Adds amounts to `status.allocatable`, which is by default what `status.capacity` says.
fn set_amounts(node: &mut Value, amounts: &NodeAllocatable) {
    let status = &mut node["status"];
    if !status["allocatable"].is_object() {
        status["allocatable"] = match &status["capacity"] {
            Value::Object(capacity) => Value::Object(capacity.clone()),
            _ => json!({}),
        };
    }
    for (resource, amount) in &amounts.node_allocatable {
        status["allocatable"][resource] = amount.as_str().into();
    }
}

fn csi_node(node: &str, amounts: &NodeAllocatable) -> NewObject {
    let driver = |(name, allocatable): (&String, &Value)| json!({"name": name, "nodeID": node, "allocatable": allocatable});
    let drivers: Vec<Value> = amounts.csi_node_allocatable.iter().map(driver).collect();
    let migrated = amounts.migrated_plugins.join(",");
    let value = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {
            "name": node,
            "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": migrated},
        },
        "spec": {"drivers": drivers},
    });
    NewObject::new(Arc::new(value), "")
}
