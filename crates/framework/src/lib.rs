//! The scheduling framework of kubestep: what a scheduler plugin is, what it sees, and how the
//! plugins of a profile run. It contains no plugin: the in-tree ones are in `kubestep-plugins`, and
//! `kubestep-scheduler` has the queue, the cache and the cycle.
//!
//! Everything here is pure, synchronous and deterministic. There is no clock, no randomness and no
//! I/O: the time is an argument, and everything outside is behind a [`host::Host`]. All state can be
//! cloned, and a clone behaves as the original would; time travel is built on that.
//!
//! This page is a way through the package, in the order in which a plugin meets it.
//!
//! # 1. A plugin
//!
//! [`Plugin`](plugin::Plugin) has a method for each extension point, each with a default, so a
//! plugin implements only its own. [`prelude`] brings what most plugins need.
//!
//! ```
//! use std::sync::Arc;
//!
//! use kubestep_framework::prelude::*;
//!
//! /// Rejects nodes whose names do not start with the pod's namespace.
//! struct OwnNodes;
//!
//! impl Plugin for OwnNodes {
//!     fn name(&self) -> Symbol {
//!         "OwnNodes".into()
//!     }
//!
//!     fn filter(&self, cx: &CycleContext<'_>, _: &CycleState, node: &NodeInfo) -> Status {
//!         let namespace = cx.pod.pod.metadata.namespace;
//!         match node.name.text().starts_with(namespace.as_str()) {
//!             true => Status::SUCCESS,
//!             false => Status::unresolvable("node is another team's"),
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // `kubestep_plugins::registry()` returns one with the in-tree plugins.
//! let mut registry = Registry::default();
//! let descriptor = PluginDescriptor::new("OwnNodes", &[ExtensionPoint::Filter]);
//! registry.register(Entry::new(descriptor, |_, _| Ok(Arc::new(OwnNodes))))?;
//! // A profile that enables the plugin builds it in this way.
//! let plugin = registry.build("OwnNodes".into(), &ProfileArgs::default(), &FeatureGates::default())?;
//! assert_eq!(plugin.name(), "OwnNodes");
//! # Ok(())
//! # }
//! ```
//!
//! The [`registry`] names plugins and builds them; the descriptor says at which points a plugin
//! runs, and [`kubestep_config::args`] shows how its arguments are declared. A configuration enables
//! it by name, as upstream. `own_plugin`, an example of `kubestep-cluster`, is a whole plugin with
//! arguments, state, a queueing hint and scores; the package `kubestep-scheduler-plugins` has more.
//!
//! # 2. What it sees
//!
//! Each point has a context: [`CycleContext`](plugin::CycleContext) in a scheduling cycle,
//! [`BindContext`](plugin::BindContext) from Reserve on, [`QueueContext`](plugin::QueueContext) in
//! the queue, [`GroupContext`](plugin::GroupContext) for pod groups. In it is the [`snapshot`] of the
//! nodes as of the start of the cycle: each [`node`] with its pods and the sums of their
//! [`resource`]s, each [`pod`] with its parsed fields. All other objects (claims, volumes, budgets,
//! …) are in [`objects`], those of custom resources typed ([`api::custom`]). [`pod_groups`] and
//! [`dra`] hold what the scheduler tracks about pod groups and resource claims beyond the objects.
//!
//! # 3. What it keeps
//!
//! What PreFilter computes goes into the [`cycle_state`] until the cycle ends. What outlives a cycle
//! is in [`shared`], where a plugin can store a type of its own; with
//! [`Plugin::handle_event`](plugin::Plugin::handle_event) it keeps that up to date. PreFilter and
//! PostFilter request changes of state as [`effects`]. [`Plugin::filter_key`](plugin::Plugin::filter_key)
//! and [`Plugin::score_basis`](plugin::Plugin::score_basis) allow the scheduler to share answers
//! among pods and cycles.
//!
//! # 4. What it answers
//!
//! A [`status`]: a code, reasons, and the plugin. Functions of a plugin that can fail return a
//! [`PluginError`](error::PluginError), which becomes an error status. Requests to the outside go to
//! the [`host`]; in a simulation it answers at once, with a real cluster later.
//!
//! # 5. When a rejected pod is tried again
//!
//! With [`events`] a plugin registers which changes of the cluster could make a pod schedulable that
//! it rejected, each with a queueing hint that judges one such change.
//!
//! # 6. How a profile runs
//!
//! [`runtime`] has the [`Framework`](runtime::Framework): the plugins of one profile by extension
//! point, and the rules for running them. [`extender`] is the protocol of HTTP extenders.
//! [`preemption`] is the search for victims that the plugin DefaultPreemption starts, and the
//! eviction that follows. [`opaque`] has the plugins that only a configuration knows. Where
//! upstream's choice is random, [`tie_break`] defines the choice made here; where it depends on Go's
//! sort, [`go_sort`] sorts in the same way.
//!
//! # 7. What is left of it
//!
//! A [`record`] describes completely what one cycle did; views, breakpoints and explanations read
//! nothing else. A [`stopwatch`] measures the plugins.
//!
//! # 8. Tests
//!
//! With the feature `testing`, the module `testing` builds nodes, pods and small clusters.

/// The Kubernetes objects, for packages of plugins that depend on the framework alone.
pub use kubestep_api as api;
/// Descriptors and arguments of plugins, likewise.
pub use kubestep_config as config;

pub mod cycle_state;
pub mod dra;
pub mod effects;
pub mod error;
pub mod events;
mod explanation;
pub mod extender;
pub mod go_sort;
pub mod host;
pub mod node;
pub mod objects;
pub mod opaque;
pub mod plugin;
pub mod pod;
pub mod pod_groups;
pub mod preemption;
pub mod prelude;
pub mod record;
pub mod registry;
pub mod resource;
pub mod runtime;
pub mod shared;
pub mod snapshot;
pub mod status;
pub mod stopwatch;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tie_break;
