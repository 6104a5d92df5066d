//! What plugins keep between cycles, all in one place, so that the whole state of the
//! scheduler can be copied and restored.

pub mod assumed_volumes;
mod state;

pub use state::{PluginState, PluginStates};

use std::collections::{BTreeMap, BTreeSet};

use crate::dra::tracker::ClaimTracker;
use crate::pod::NamespacedName;
use crate::pod_groups::PodGroups;
use crate::runtime::stopwatch::Timer;
use crate::shared::assumed_volumes::AssumedVolumes;
use kubestep_api::intern::Symbol;

/// What plugins keep between cycles.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Shared {
    /// Pods whose preemption is under way, by UID (PR-050).
    pub preempting: BTreeMap<Symbol, Preempting>,
    /// Volumes and claims that were decided and not yet written (VB-035).
    pub volumes: AssumedVolumes,
    /// Resource claims that were just written or decided on (DRA-001).
    pub claims: ClaimTracker,
    /// What the cycle of a pod group under way shares between its pods.
    pub group_cycle: Option<GroupCycle>,
    /// Measures what plugins take, if somebody asked for it.
    pub timer: Timer,
    /// The pods of each pod group; empty while groups are no feature.
    pub pod_groups: PodGroups,
    /// What plugins keep in types of their own.
    pub plugins: PluginStates,
}

/// What the pods of a group share while they are tried together.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct GroupCycle {
    /// UIDs of the claims whose allocation was decided in this cycle (DRA-013).
    pub pending_claims: BTreeSet<Symbol>,
    /// Pods of the group that were assumed or bound before.
    pub scheduled_before: usize,
}

/// A preemption under way.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Preempting {
    /// The last victim, once all others are gone (PR-051).
    pub last_victim: Option<NamespacedName>,
}
