//! What a package of plugins uses most: `use kubestep_framework::prelude::*;`.

pub use crate::cycle_state::CycleState;
pub use crate::error::PluginError;
pub use crate::events::{
    Action, EventObjects, EventResource, HintResult, QueueingHint, Registration,
};
pub use crate::node::{NodeId, NodeInfo};
pub use crate::plugin::{
    BindContext, CycleContext, PermitAnswer, Plugin, PostFilterAnswer, PostFilterContext,
    PreFilterAnswer, QueueContext, ScoreBasis,
};
pub use crate::pod::{PodInfo, QueuedPodInfo};
pub use crate::record::nodes::NodeList;
pub use crate::registry::{Built, Entry, Registry};
pub use crate::shared::{PluginState, PluginStore};
pub use crate::status::{Code, DistinctStatuses, Status};
pub use kubestep_api::Name;
pub use kubestep_api::intern::Symbol;
pub use kubestep_api::{Duration, Node, Pod, Time};
pub use kubestep_config::validation::Findings;
pub use kubestep_config::{
    ArgsType, Arguments, ExtensionPoint, ExtensionPoint::*, FeatureGates, FieldPath,
    PluginDescriptor, ProfileArgs, arguments,
};
