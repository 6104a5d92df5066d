//! The scheduling framework of kubestep: what a scheduler plugin is, what it can see, and how the
//! plugins of a profile run. A plugin of your own needs this crate, [`kubestep_api`] for the
//! Kubernetes objects and [`kubestep_config`] for its descriptor and arguments. The framework
//! itself contains no plugin: the in-tree ones are in the package `kubestep-plugins`, and the
//! scheduling queue, the cache and the cycle are in `kubestep-scheduler`, which builds on this
//! crate as the plugins do.
//!
//! Everything in this crate is pure, synchronous and deterministic. There is no clock, no
//! randomness and no I/O: the time is an argument, and everything outside is behind a
//! [`host::Host`]. All state can be cloned, and a clone behaves exactly as the original would;
//! time-travel debugging is built on that.
//!
//! # A plugin
//!
//! Start at [`plugin`]: the trait [`Plugin`](plugin::Plugin) has a method for each extension point,
//! each with a default, and each point has a context with what can be seen there. A plugin returns
//! a [`status`]. What it computed in PreFilter it stores in the [`cycle_state`] until the cycle
//! ends; what outlives a cycle is in [`shared`], where it can store a type of its own. With
//! [`events`] it declares which changes of the cluster may make a rejected pod schedulable, and its
//! queueing hint judges one such change; by handling events ([`plugin::Plugin::handle_event`]) it keeps
//! its state up to date. PreFilter and PostFilter request changes of the state as [`effects`]. Objects
//! of custom resources come to it typed, if its package declares their kinds ([`api::custom`]); the
//! package `kubestep-scheduler-plugins` does all of this. A [`registry`] names plugins and builds them;
//! [`kubestep_config::args`] shows how arguments are declared. Both packages are here again as
//! [`api`] and [`config`], so that a package of plugins depends on this one alone.
//!
//! # A plugin of your own
//!
//! ```
//! use std::sync::Arc;
//!
//! use kubestep_api::intern::Symbol;
//! use kubestep_config::{ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs};
//! use kubestep_framework::cycle_state::CycleState;
//! use kubestep_framework::node::NodeInfo;
//! use kubestep_framework::plugin::{CycleContext, Plugin};
//! use kubestep_framework::registry::{Entry, Registry};
//! use kubestep_framework::status::Status;
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
//!         match node.name.starts_with(namespace.as_str()) {
//!             true => Status::SUCCESS,
//!             false => Status::unresolvable("node is another team's").by(self.name()),
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
//! let (args, gates) = (ProfileArgs::default(), FeatureGates::default());
//! let plugin = registry.build("OwnNodes".into(), &args, &gates)?;
//! assert_eq!(plugin.name(), "OwnNodes");
//! # Ok(())
//! # }
//! ```
//!
//! A configuration enables it by name, as upstream. `own_plugin`, an example of `kubestep-cluster`,
//! runs a plugin with arguments, state, a queueing hint and scores in a simulated cluster.
//!
//! # The cluster as a plugin sees it
//!
//! A [`snapshot`] holds the nodes as of the start of a cycle: each [`node`] with its pods and the
//! sums of their [`resource`]s, each [`pod`] with its parsed fields. All other objects (claims,
//! volumes, budgets, …) are in [`objects`], the listers. [`pod_groups`] and [`dra`] hold what the
//! scheduler tracks about pod groups and resource claims beyond the objects.
//!
//! # Running a profile
//!
//! [`runtime`] has the [`Framework`](runtime::Framework): the plugins of one profile by extension
//! point and the rules for running them. Its results go into a [`record`], which describes
//! completely what one cycle did; a [`stopwatch`] measures its plugins. [`extender`] is the
//! protocol of HTTP extenders. [`preemption`] is the search for victims that the plugin
//! DefaultPreemption starts and the eviction that follows.
//!
//! # Order
//!
//! Where upstream's choice is random, [`tie_break`] defines the choice made here. Where it depends
//! on Go's sort, [`go_sort`] sorts in the same way.
//!
//! # Tests of plugins
//!
//! With the feature `testing`, the module `testing` builds nodes, pods and small clusters.

/// The Kubernetes objects, for packages of plugins that depend on the framework alone.
pub use kubestep_api as api;
/// Descriptors and arguments of plugins, likewise.
pub use kubestep_config as config;

pub mod cycle_state;
pub mod dra;
pub mod effects;
pub mod events;
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
