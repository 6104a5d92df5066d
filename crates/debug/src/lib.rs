//! The debugger: a session on a simulated cluster, with a position that moves step by step through
//! the recording and, past its end, by running more cycles.
//!
//! Cycles run at full speed and are recorded completely; stepping only moves the [`Position`], so
//! stepping backward is as simple as forward. States of the cluster are not recorded: a session
//! consists of its loaded cluster and the log of its inputs ([`timeline`]). To show an earlier
//! state or to continue from it, the log is replayed from the nearest copy (`checkpoint`).
//!
//! # Load a cluster and schedule
//!
//! ```
//! use kubestep_cluster::World;
//! use kubestep_config as config;
//! use kubestep_config::FeatureGates;
//! use kubestep_debug::Session;
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
//! # let cycle = session.history().last_cycle().ok_or("no cycle")?;
//! # assert_eq!(cycle.node, Some("node-a".into()));
//! # Ok(())
//! # }
//! ```
//!
//! # Read what happened
//!
//! Every cycle is recorded completely: the verdict of each plugin on each node, the scores,
//! preemption.
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

pub mod breakpoint;
pub mod capacity;
pub mod certainty;
mod checkpoint;
pub mod decision;
pub mod diff;
pub mod edit;
pub mod expect;
pub mod fix;
pub mod fork;
pub mod frames;
pub mod input;
pub mod learned;
pub mod ledger;
pub mod margin;
pub mod message;
pub mod new_node;
pub mod not_created;
pub mod preview;
pub mod session;
pub mod survive;
pub mod timeline;
pub mod timer;
pub mod times;
pub mod trace;
pub mod upgrade;
pub mod why;

pub use frames::{Depth, Position};
pub use input::{Change, Input};
pub use session::{ContinueOutcome, Livelock, Restoring, Session, StepOutcome, StopSearch};
pub use timeline::{Step, Stop, Timeline};
pub use timer::{Timer, TimerKind};
