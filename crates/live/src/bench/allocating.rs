//! Allocates devices of the cluster to claims without pods.

use std::sync::Arc;

use serde_json::json;

use super::ClusterTarget;
use crate::failure::RequestFailure;
use kubestep_api::decode::{Decoded, Text, decode};
use kubestep_api::{Kind, Node, Object};
use kubestep_bench::BenchError;
use kubestep_bench::embedded::allocated;
use kubestep_framework::objects::Objects;

const PREFIX: &str = "/apis/resource.k8s.io/v1";

impl ClusterTarget {
    /// Allocates devices to the claims of a namespace, "" for all, that have none.
    pub(super) fn allocate(&mut self, namespace: &str) -> Result<(), BenchError> {
        let (objects, nodes) = self.runtime.block_on(self.devices()).map_err(|failure| {
            format!("what claims are allocated from cannot be listed: {failure}")
        })?;
        for claim in allocated((&objects, &self.gates), namespace, &nodes)? {
            let (namespace, name) = (claim.metadata.namespace, claim.metadata.name);
            let path = format!("{PREFIX}/namespaces/{namespace}/resourceclaims/{name}/status");
            let status = json!({"status": {"allocation": claim.status.allocation}});
            let done = self.runtime.block_on(self.requests.patch(&path, &status));
            done.map_err(|failure| format!("{path}: {failure}"))?;
        }
        Ok(())
    }

    /// The cluster's claims, slices, classes and rules, and its nodes.
    async fn devices(&self) -> Result<(Objects, Vec<Arc<Node>>), RequestFailure> {
        let mut objects = Objects::default();
        for plural in ["resourceclaims", "resourceslices", "deviceclasses"] {
            for object in self.list(&format!("{PREFIX}/{plural}")).await? {
                objects.insert(object);
            }
        }
        let nodes = self.list("/api/v1/nodes").await?.into_iter().filter_map(|it| match it {
            Object::Node(node) => Some(node),
            _ => None,
        });
        let mut nodes: Vec<Arc<Node>> = nodes.collect();
        nodes.sort_by_key(|node| node.metadata.name);
        Ok((objects, nodes))
    }

    async fn list(&self, path: &str) -> Result<Vec<Object>, RequestFailure> {
        let kind = path.rsplit('/').next().and_then(Kind::by_name);
        let list = self.requests.read(path).await?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let decoded =
            items.iter().filter_map(|item| match decode(Text::Json(&item.to_string()), kind) {
                Ok(Decoded::Object(object)) => Some(Ok(object)),
                Ok(Decoded::Unread(_)) => None,
                Err(error) => Some(Err(RequestFailure::Malformed(error.to_string()))),
            });
        decoded.collect()
    }
}
