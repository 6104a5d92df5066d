//! What plugins store between cycles, all in one struct, so that the whole state of the scheduler
//! can be copied and restored.

pub mod assumed_volumes;
mod state;

pub use state::{PluginState, PluginStates};

use std::collections::{BTreeMap, BTreeSet};

use crate::dra::tracker::ClaimTracker;
use crate::pod::NamespacedName;
use crate::pod_groups::PodGroups;
use crate::shared::assumed_volumes::AssumedVolumes;
use crate::stopwatch::Timer;
use kubestep_api::Uid;

/// What plugins store between cycles.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct PluginStore {
    /// Pods and pod groups whose preemption is in progress, by UID.
    pub preempting: BTreeMap<Uid, Preempting>,
    /// Volumes and claims that are decided but not written yet.
    pub volumes: AssumedVolumes,
    /// Resource claims that were just written, or whose allocation is decided.
    pub claims: ClaimTracker,
    /// What the pods of a group share during the group's cycle.
    pub group_cycle: Option<GroupCycle>,
    /// Measures what plugins take, if a stopwatch is set.
    pub timer: Timer,
    /// The pods of each pod group; empty if GenericWorkload is off.
    pub pod_groups: PodGroups,
    /// What plugins keep in types of their own.
    pub plugins: PluginStates,
}

/// What the pods of a group share while they are tried together.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct GroupCycle {
    /// UIDs of the claims whose allocation was decided in this cycle; other pods of the group may
    /// share them.
    pub pending_claims: BTreeSet<Uid>,
    /// Number of pods of the group that were assumed or bound before.
    pub scheduled_before: usize,
}

/// A preemption in progress.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Preempting {
    /// The last victim, once all others were evicted.
    pub last_victim: Option<NamespacedName>,
}
