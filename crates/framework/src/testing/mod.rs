//! Small clusters for unit tests: objects written as JSON or built in one line, a snapshot and a
//! context made of them, profiles of chosen plugins, a host that only records requests.
//!
//! The usual test of the scheduler: a [`Cluster`] of [`node`]s and [`pod`]s, a framework of the
//! plugins concerned, and [`Cluster::cx`] for the pod in question. The usual test of a plugin: a
//! [`Cluster`] ([`Cluster::of`] takes JSON), the [`plugin`] alone, and [`Cluster::filter`],
//! [`Cluster::scores`] or [`Cluster::hint`].

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // for tests only

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::pod::{NamespacedName, PodInfo};
use kubestep_api::{Kind, Object, Pod};

mod builders;
mod cluster;
mod cpu_fit;
mod host;
mod profiles;
pub mod scripted;

pub use builders::{NodeBuilder, PodBuilder, list, node, pod, sized_node, sized_pod};
pub use cluster::{Cluster, snapshot};
pub use cpu_fit::cpu_fit;
pub use host::{Asked, FakeHost};
pub use profiles::{framework_of, framework_with, names_at, plugin};

/// `namespace/name` as a key; without a slash the namespace is `default`.
pub fn key(text: &str) -> NamespacedName {
    let (namespace, name) = text.split_once('/').unwrap_or(("default", text));
    NamespacedName::new(namespace.into(), name.into())
}

/// An object of any kind, written as in the API (`kind` included).
pub fn object(json: Value) -> Object {
    let kind = Kind::by_name(json["kind"].as_str().unwrap()).unwrap();
    Object::deserialize_as(kind, json).unwrap()
}

/// An object of a known type, or a part of one.
pub fn decoded<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("a well-formed object")
}

/// A pod with its parsed fields.
pub fn info(pod: Pod) -> Arc<PodInfo> {
    Arc::new(PodInfo::new(Arc::new(pod)))
}

/// A pod written as in the API, with its parsed fields.
pub fn info_of(json: Value) -> Arc<PodInfo> {
    info(decoded(json))
}
