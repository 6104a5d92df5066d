//! A live cluster as a source for the simulated one: lists and watches of all that a scheduler
//! reads, turned into one ordered stream of changes. Everything that waits for a network is in
//! here and behind it; the engine stays synchronous.
//!
//! From the outside in: [`link`] is the way to an API server, [`kinds`] the table of what is
//! read there, [`list`] one kind page by page, [`watch`] one kind for good, [`snapshot`] all
//! kinds at once, [`feed`] all of them as one stream, [`access`] what may not be read, [`backoff`]
//! how long each kind waits after a failure and [`outage`] what is reported of it,
//! [`capture`] the file that is made of it all, [`record`] the one that goes on, with what the
//! cluster's scheduler has [`told`]; [`redact`] gives all of it other names. [`follow`] puts a session after a feed,
//! [`replay`] after a recording,
//! [`shadow`] lets the embedded scheduler decide beside the cluster's and [`compare`]s, and
//! [`debugger`] dumps what the scheduler believes.
//!
//! None of these can write to a cluster: [`link::Link`] only sends GET. [`scheduling`] is the
//! embedded scheduler as a real one: it takes its changes from the same [`feed`], and what it
//! wants written goes out through [`mod@write`], the only module that writes. An event of a watch,
//! not the answer to a write, is what confirms a binding. [`serve`] tells others how it is, and asks
//! the cluster who they are, of which nothing stays there.

pub mod access;
pub mod attended;
pub mod backoff;
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
mod lines;
pub mod link;
pub mod list;
pub mod metrics;
pub mod minimal;
pub mod news;
pub mod outage;
pub mod record;
pub mod redact;
pub mod replay;
pub mod runtime;
pub mod scheduling;
pub mod serve;
pub mod shadow;
pub mod snapshot;
pub mod told;
pub mod traffic;
pub mod watch;
pub mod write;

/// The version of kube-scheduler that is embedded.
pub const SCHEDULER: &str = "1.36.2";
/// Its minor version, which is the version of its API.
pub const SCHEDULER_MINOR: &str = "1.36";

pub use access::Missing;
pub use attended::Attended;
pub use backoff::Pace;
pub use compare::{Decision, Theirs, Verdict};
pub use feed::{Delta, Event, Feed, Notice};
pub use follow::Following;
pub use link::{Link, LinkError, Target};
pub use outage::Outage;
pub use shadow::Shadow;
pub use snapshot::{Scope, Snapshot};
