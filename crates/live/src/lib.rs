//! A live cluster as a source for the simulated one: lists and watches of everything that a
//! scheduler reads, merged into one ordered stream of changes. Everything that waits for a network
//! is in this package; the engine stays synchronous.
//!
//! From the outside in: [`link`] is the connection to an API server, [`kinds`] the table of what is
//! read from it, [`list`] lists one kind page by page, [`watch`] follows one kind, [`snapshot`]
//! lists all kinds at once, [`feed`] follows all of them as one stream, [`access`] names what may
//! not be read, [`backoff`] decides how long each kind waits after a failure and [`outage`] what is
//! reported of it. [`capture`] writes a snapshot to a file; [`record`] writes the stream and the
//! scheduler's events ([`scheduler_events`]); [`redact`] pseudonymizes both. [`updates`] makes one
//! change of a session from what arrived: [`follow`] connects a session to a feed, [`replay`] to a
//! recording, [`shadow`] runs the embedded scheduler in parallel with the cluster's and
//! [`compare`]s the decisions, and [`debugger`] dumps the scheduler's cache and queues.
//!
//! None of these can write to a cluster: [`link::Link`] only sends GET. [`scheduling`] runs the
//! embedded scheduler as a real one: its changes come from the same [`feed`], and its writes go out
//! through [`mod@write`]; only that module and [`mod@bench`], which runs benchmarks, write. A binding is confirmed by an event of a
//! watch, not by the answer to the write. [`serve`] provides health and metrics over HTTP, and
//! authenticates its callers with reviews, which the API server does not store.

pub mod access;
pub mod auxiliary;
pub mod backoff;
pub mod bench;
pub mod capture;
pub mod clock;
pub mod compare;
pub mod credentials;
pub mod debugger;
pub mod extender_client;
pub mod failure;
pub mod feed;
pub mod follow;
pub mod kinds;
pub mod lease;
pub mod leases;
mod lines;
pub mod link;
pub mod list;
pub mod metrics;
pub mod minimal;
pub mod outage;
pub mod periodic;
mod proxy;
pub mod record;
pub mod redact;
pub mod replay;
pub mod runtime;
pub mod scheduler_events;
pub mod scheduling;
pub mod serve;
pub mod shadow;
pub mod snapshot;
mod traffic;
pub mod updates;
pub mod watch;
pub mod write;

/// The version of kube-scheduler that is embedded.
pub const SCHEDULER: &str = "1.36.2";
/// Its minor version, which is the version of its API.
pub(crate) const SCHEDULER_MINOR: &str = "1.36";

pub use access::MissingKindAccess;
pub use backoff::Pace;
pub use compare::{Agreement, ClusterDecision, ComparedDecision};
pub use feed::{Delta, Feed, FeedEvent, Notice};
pub use follow::Following;
pub use link::{KubeconfigTarget, Link, LinkError};
pub use outage::Outage;
pub use scheduling::InteractiveScheduler;
pub use shadow::Shadow;
pub use snapshot::{ClusterSnapshot, NamespaceScope, server_version};
