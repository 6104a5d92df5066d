//! The scheduling framework of kubestep: what a scheduler plugin is, what it can see, and how the
//! plugins of a profile are run. A plugin of your own needs this crate,
//! [`kubestep_api`] for the Kubernetes objects and [`kubestep_config`] for its
//! descriptor and arguments. The framework itself knows no plugin: the in-tree ones are the
//! package `kubestep-plugins`, and the scheduling queue, the cache and the cycle are
//! `kubestep-scheduler`, which builds on this crate as the plugins do.
//!
//! Everything here is pure, synchronous and deterministic. There is no clock, no randomness and
//! no I/O: the time is passed in, and the world outside is a [`host::Host`]. All state can be
//! cloned, and a clone goes on exactly as the original would; debugging back in time is built on
//! that.
//!
//! # A plugin
//!
//! Start at [`plugin`]: the trait [`Plugin`](plugin::Plugin) has a method for each extension point,
//! each with a default, and each point has a context with what can be seen there. A plugin answers
//! with a [`status`]. What it computed in PreFilter it keeps in the [`cycle_state`] until
//! the cycle ends; what outlives a cycle is in [`shared`], where it can keep a type
//! of its own. With [`events`] it declares which
//! changes of the cluster may make a rejected pod schedulable, and its queueing hint looks at one
//! such change. A [`registry`] names plugins and builds them; the
//! arguments of a plugin are declared as [`kubestep_config::args`] shows. `own_plugin`, an example of
//! `kubestep-cluster`, has all of it.
//!
//! # The cluster as a plugin sees it
//!
//! A [`snapshot`] holds the nodes as of the start of a cycle: each [`node`] with its pods and
//! with sums of their [`resource`]s, each [`pod`] with what was parsed from it once. All other
//! objects (claims, volumes, budgets, …) are in [`objects`], the listers. [`pod_groups`] and
//! [`dra`] keep what the scheduler knows of pod groups and of resource claims beyond
//! the objects.
//!
//! # Running a profile
//!
//! [`runtime`] holds the [`Framework`](runtime::Framework): the plugins of one profile by
//! extension point and the rules for running them. Its results end up in a [`record`], which tells
//! completely what one cycle did. [`extender`] is the protocol of HTTP extenders. [`preemption`]
//! is the search for victims that the plugin DefaultPreemption starts and the eviction that
//! follows.
//!
//! # Order
//!
//! Where upstream leaves a choice to chance, [`tie_break`] says what is taken here. Where it
//! depends on Go's sort, [`go_sort`] sorts in the same way.
//!
//! # Tests of plugins
//!
//! With the feature `testing`, the module `testing` builds nodes, pods and small clusters.

pub mod cycle_state;
pub mod dra;
pub mod events;
pub mod extender;
pub mod go_sort;
pub mod host;
pub mod node;
pub mod objects;
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
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tie_break;
