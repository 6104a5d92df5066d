//! kubestep: the debugger for Kubernetes scheduling.
//!
//! The program uses a library: the whole of kube-scheduler 1.36 as an engine without clock,
//! network or randomness, and a simulated cluster around it. The library can be used separately.
//!
//! # Load a cluster and schedule
//!
//! ```
//! use kubestep_config as config;
//! use kubestep_config::FeatureGates;
//! use kubestep_debug::Session;
//! use kubestep_cluster::World;
//! use kubestep_source::Filter;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = r#"
//! kind: Node
//! apiVersion: v1
//! metadata: {name: node-a}
//! status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
//! ---
//! kind: Pod
//! apiVersion: v1
//! metadata: {name: web}
//! spec: {containers: [{name: main, resources: {requests: {cpu: 500m}}}]}
//! "#;
//! // `kubestep_source::read` reads files and folders in the same way.
//! let input = kubestep_source::read_text("cluster.yaml", cluster.into(), &Filter::default())?;
//!
//! let (registry, gates) = (kubestep_plugins::registry(), FeatureGates::default());
//! let config = config::resolve(None, &gates, &registry.descriptors())?;
//! let mut world = World::new(&config, gates, &registry)?;
//! kubestep_cluster::load(&mut world, input.objects.into_iter().map(|loaded| loaded.object));
//!
//! let mut session = Session::new(world);
//! session.run_until_idle(usize::MAX, |_| false);
//! # let placed = kubestep::report::outcome::placed(&session);
//! # assert_eq!(placed[0].node, "node-a");
//! # Ok(())
//! # }
//! ```
//!
//! # Read what happened
//!
//! Every cycle is recorded completely: the verdict of each plugin on each node, the scores,
//! preemption. A session can also be stepped forward and back, and branched at any moment.
//!
//! ```
//! # use kubestep_config as config;
//! # use kubestep_config::FeatureGates;
//! # use kubestep_debug::Session;
//! # use kubestep_cluster::World;
//! # use kubestep_source::Filter;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let story = kubestep_source::fixtures::find("tainted").ok_or("no such story")?;
//! # let input = kubestep_source::read_text("story", story.cluster.into(), &Filter::default())?;
//! # let (registry, gates) = (kubestep_plugins::registry(), FeatureGates::default());
//! # let config = config::resolve(None, &gates, &registry.descriptors())?;
//! # let mut world = World::new(&config, gates, &registry)?;
//! # kubestep_cluster::load(&mut world, input.objects.into_iter().map(|loaded| loaded.object));
//! # let mut session = Session::new(world);
//! # session.run_until_idle(usize::MAX, |_| false);
//! for cycle in session.history().cycles() {
//!     println!("{}: {} {}", cycle.pod, cycle.outcome.as_str(), cycle.message);
//!     for node in &cycle.nodes.order {
//!         let verdict = cycle.filter.verdicts.get(*node);
//!         if let Some(status) = verdict.and_then(|verdict| cycle.verdicts.get(verdict)) {
//!             println!("  {}: {} by {}", cycle.nodes.name(*node), status.message(), status.plugin());
//!         }
//!     }
//! }
//! // The same as JSON, in the format of `kubestep run --trace`.
//! let last = session.history().last_cycle().ok_or("no cycle")?;
//! let json = kubestep_debug::trace::json::cycle(last);
//! # assert_eq!(json["result"], "Unschedulable");
//! # Ok(())
//! # }
//! ```
//!
//! # Register a plugin
//!
//! A plugin implements the methods of the extension points that its descriptor names; a
//! configuration enables it by name, as upstream. The example `own_plugin` of `kubestep-cluster` has
//! arguments, state of its own, a queueing hint and scores as well.
//!
//! ```
//! use std::sync::Arc;
//!
//! use kubestep_config::{ExtensionPoint, PluginDescriptor};
//! use kubestep_framework::cycle_state::CycleState;
//! use kubestep_framework::plugin::{CycleContext, Plugin};
//! use kubestep_framework::registry::{Entry, Registry};
//! use kubestep_framework::node::NodeInfo;
//! use kubestep_framework::status::Status;
//! use kubestep_api::intern::Symbol;
//! # use kubestep_config as config;
//! # use kubestep_config::FeatureGates;
//! # use kubestep_cluster::World;
//!
//! /// Keeps pods off nodes whose names do not start with their namespace.
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
//! let mut registry = kubestep_plugins::registry();
//! let plugin = PluginDescriptor::new("OwnNodes", &[ExtensionPoint::Filter]);
//! registry.register(Entry::new(plugin, |_, _| Ok(Arc::new(OwnNodes))))?;
//! let text = "
//! apiVersion: kubescheduler.config.k8s.io/v1
//! kind: KubeSchedulerConfiguration
//! profiles: [{plugins: {filter: {enabled: [{name: OwnNodes}]}}}]
//! ";
//! # let gates = FeatureGates::default();
//! let config = config::resolve(Some(text), &gates, &registry.descriptors())?;
//! let world = World::new(&config, gates, &registry)?;
//! # let mut world = world;
//! # let input = kubestep_source::read_text("c", b"{\"kind\": \"Node\", \"metadata\": \
//! #   {\"name\": \"bank-1\"}, \"status\": {\"allocatable\": {\"pods\": \"5\"}}}\n\
//! #   {\"kind\": \"Pod\", \"metadata\": {\"name\": \"web\", \"namespace\": \"shop\"}}".to_vec(),
//! #   &kubestep_source::Filter::default())?;
//! # kubestep_cluster::load(&mut world, input.objects.into_iter().map(|loaded| loaded.object));
//! # let cycle = world.step().ok_or("nothing to try")?;
//! # assert!(cycle.message.contains("1 node is another team's"), "{}", cycle.message);
//! # Ok(())
//! # }
//! ```

pub mod cli;
pub mod report;
pub mod tui;
