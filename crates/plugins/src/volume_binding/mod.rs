//! VolumeBinding: finds volumes for a pod's claims on each node, assumes them at Reserve and
//! binds them before the pod is bound.
//!
//! `claims` classifies the claims, `find` checks a node and reports a `reason` for every claim that
//! fails, `matching` compares a claim with existing volumes, `capacity` checks storage capacity,
//! `bind` assumes and writes.
//!
//! Upstream stores the volumes found for a node from Filter on. Here they are found again when
//! needed, as they depend only on the node and the objects. Upstream:
//! `pkg/scheduler/framework/plugins/volumebinding/`.

use std::sync::Arc;
use std::task::Poll;

use crate::older_events;
use crate::volumes;
use kubestep_api::intern::Symbol;
use kubestep_api::{Duration, Node};
use kubestep_config::{
    ArgsType, DefaultProfile, ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{Action, EventResource, OlderRegistration, Registration};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::{
    BindContext, CycleContext, Fragments, Plugin, PreFilterAnswer, QueueContext,
};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::record::nodes::NodeList;
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

mod args;
mod bind;
mod candidate;
mod capacity;
mod claims;
mod find;
mod hints;
mod matching;
mod reason;
mod score;

pub use args::VolumeBindingArgs;
pub(crate) use candidate::is_migrated;
pub use capacity::largest as largest_volume;
pub use claims::is_bound;
pub use find::{SELECTED_NODE, provisions};
pub use matching::{Unfit, capacity, requested};
pub use reason::{ClaimReason, ClaimRejection, rejection};

use claims::Claims;
use find::PodVolumes;
use reason::{ClaimWalk, VolumeRejections};
use score::CapacityScorer;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    args: Some(ArgsType::of::<VolumeBindingArgs>()),
    default_profile: DefaultProfile::Present,
    doc: "persistent volume claims: bound, to bind, to provision",
    long_doc: "The volumes of bound claims must be reachable from the node; for unbound claims \
               that wait for a consumer there must be a volume or a way to provision one. Reserve \
               assumes the volumes, PreBind writes them and waits until they are bound.",
    example: "A claim of a class with WaitForFirstConsumer is unbound: the node is selected first, \
              then a volume is bound or provisioned that the node can reach.",
    ..PluginDescriptor::new(
        "VolumeBinding",
        &[
            ExtensionPoint::PreFilter,
            ExtensionPoint::Filter,
            ExtensionPoint::PreScore,
            ExtensionPoint::Score,
            ExtensionPoint::Reserve,
            ExtensionPoint::PreBind,
        ],
    )
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(args: &ProfileArgs, features: &FeatureGates) -> Built {
    let scores = args::scores_capacity(features);
    let name = PLUGIN.name.into();
    let own: VolumeBindingArgs = args.of();
    Ok(Arc::new(VolumeBinding {
        name,
        filters: !args.without_filter.contains(&name),
        scorer: scores.then(|| CapacityScorer::new(&own)),
        rejections: VolumeRejections::new(features),
        bind_timeout: Duration::from_secs(own.bind_timeout_seconds),
    }))
}

struct VolumeBinding {
    name: Symbol,
    /// Whether it runs at Filter: upstream's Reserve and Score use only what Filter found.
    filters: bool,
    /// `None` without the gate StorageCapacityScoring.
    scorer: Option<CapacityScorer>,
    rejections: VolumeRejections,
    /// The time for controllers to bind volumes.
    bind_timeout: Duration,
}

/// The pod's claims, and from Reserve on the assumed volumes.
#[derive(Clone, Default, Debug)]
struct BindingState {
    /// `None` for a pod without claims.
    claims: Option<Arc<Claims>>,
    taken: Option<PodVolumes>,
    progress: bind::BindProgress,
    all_bound: bool,
}

/// The claims that exclude the node for the pod, and why, from the walk that Filter uses.
pub fn rejections(cx: &CycleContext<'_>, state: &CycleState, node: &Node) -> Vec<ClaimRejection> {
    let mut rejections = Vec::new();
    let state = state.read::<BindingState>();
    if let Some(claims) = state.and_then(|state| state.claims.as_ref()) {
        // An error before the claim at which Filter stops is Filter's status; after it, it is none.
        let _found =
            find::find(claims, node, cx.objects, &mut ClaimWalk::collecting(&mut rejections));
    }
    rejections
}

/// The status if PreFilter never wrote the state.
fn not_found() -> Status {
    Status::error("not found")
}

impl VolumeBinding {
    fn find(
        &self,
        claims: &Claims,
        node: &NodeInfo,
        objects: &Objects,
    ) -> Result<PodVolumes, Status> {
        let Some(node) = &node.node else { return Ok(PodVolumes::default()) };
        let mut walk = ClaimWalk::default();
        let volumes = find::find(claims, node, objects, &mut walk);
        let volumes = volumes.map_err(Status::error)?;
        match self.rejections.after(&walk) {
            Status::SUCCESS => Ok(volumes),
            rejection => Err(rejection),
        }
    }
}

impl Plugin for VolumeBinding {
    fn name(&self) -> Symbol {
        self.name
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let change = Action::ADD | Action::UPDATE;
        let node = Action::ADD | Action::UPDATE_NODE_LABEL;
        Some(vec![
            Registration::hinted(EventResource::StorageClass, change, hints::after_class_change),
            Registration::hinted(
                EventResource::PersistentVolumeClaim,
                change,
                hints::after_claim_change,
            ),
            Registration::always(EventResource::PersistentVolume, change),
            Registration::always(EventResource::Node, node),
            Registration::hinted(EventResource::CsiNode, change, hints::after_csi_node_change),
            Registration::hinted(
                EventResource::CsiDriver,
                Action::UPDATE,
                hints::after_driver_change,
            ),
            Registration::hinted(
                EventResource::CsiStorageCapacity,
                change,
                hints::after_capacity_change,
            ),
        ])
    }

    /// The hint for CSI drivers is new in 1.32.
    fn older_registration(&self) -> OlderRegistration {
        |rules, newest| {
            let newest = older_events::without_hint_for(EventResource::CsiDriver, newest);
            older_events::labels_and_taints(rules, newest)
        }
    }

    /// Skips pods without claims; rejects pods with a claim that should already be bound.
    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        match claims::check(&cx.pod.pod, cx.objects) {
            Err(text) => return volumes::unresolvable(text).into(),
            Ok(false) => {
                state.write(BindingState::default());
                return Status::skip().into();
            }
            Ok(true) => {}
        }
        match claims::classify(&cx.pod.pod, cx.objects, &cx.shared.volumes) {
            Err(status) => status.into(),
            Ok(claims) => {
                let claims = Some(Arc::new(claims));
                state.write(BindingState { claims, ..BindingState::default() });
                PreFilterAnswer::default()
            }
        }
    }

    fn filter(&self, cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        let Some(state) = state.read::<BindingState>() else { return not_found() };
        let Some(claims) = &state.claims else { return Status::SUCCESS };
        self.find(claims, node, cx.objects).err().unwrap_or_default()
    }

    /// Only claims that are not bound yet can score, by what is provisioned for them.
    fn is_idle(&self, state: &CycleState) -> bool {
        let claims = state.read::<BindingState>().and_then(|state| state.claims.as_ref());
        claims.is_some_and(|claims| claims.suit_every_node())
    }

    /// Without StorageCapacityScoring there is nothing to score.
    fn pre_score(
        &self,
        _cx: &CycleContext<'_>,
        state: &mut CycleState,
        _nodes: &NodeList,
    ) -> Status {
        match (&self.scorer, state.read::<BindingState>()) {
            (None, _) => Status::skip(),
            (Some(_), None) => not_found(),
            (Some(_), Some(_)) => Status::SUCCESS,
        }
    }

    fn score(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Result<i64, Status> {
        let Some(scorer) = &self.scorer else { return Ok(0) };
        let state = state.read::<BindingState>().ok_or_else(not_found)?;
        let Some(claims) = state.claims.as_ref().filter(|_| self.filters) else { return Ok(0) };
        Ok(self.find(claims, node, cx.objects).map_or(0, |volumes| scorer.score(&volumes)))
    }

    fn reserve(&self, cx: &mut BindContext<'_>, state: &mut CycleState) -> Status {
        let Some(state) = state.read_mut::<BindingState>() else { return not_found() };
        let assumed = &mut cx.shared.volumes;
        let found = match (&state.claims, cx.snapshot.by_name(cx.node)) {
            (Some(claims), Some(node)) => self.find(claims, node, cx.objects),
            _ => Ok(PodVolumes::default()),
        };
        state.all_bound = state.claims.is_none()
            || !self.filters
            || bind::all_bound(&cx.pod.pod, cx.objects, assumed);
        if state.all_bound {
            return Status::SUCCESS;
        }
        let found = match found {
            Ok(found) => found,
            Err(status) => return Status::error(status.message()),
        };
        match bind::assume(&found, cx.node, cx.objects, assumed) {
            Ok(taken) => {
                state.taken = Some(taken);
                Status::SUCCESS
            }
            Err(text) => Status::error(&text),
        }
    }

    fn unreserve(&self, cx: &mut BindContext<'_>, state: &mut CycleState) {
        let state = state.read::<BindingState>();
        if let Some(taken) = state.and_then(|state| state.taken.as_ref()) {
            bind::revert(taken, &mut cx.shared.volumes);
        }
    }

    fn pre_bind_pre_flight(&self, cx: &BindContext<'_>, state: &CycleState) -> Status {
        match state.read::<BindingState>() {
            None => not_found(),
            Some(state) if state.all_bound => Status::skip(),
            Some(state) if state.taken.is_some() => Status::SUCCESS,
            Some(_) => Status::error(format!("no pod volume found for node \"{}\"", cx.node)),
        }
    }

    fn pre_binds_in_parallel(&self) -> bool {
        true
    }

    fn pre_bind(&self, cx: &mut BindContext<'_>, state: &mut CycleState) -> Status {
        let Some(binding) = state.read_mut::<BindingState>() else { return not_found() };
        let Some(taken) = &binding.taken else { return Status::SUCCESS };
        match bind::bind(cx, taken, &mut binding.progress, self.bind_timeout) {
            Poll::Pending => {
                state.poll_again_within(Duration::SECOND);
                Status::wait()
            }
            Poll::Ready(Ok(())) => Status::SUCCESS,
            Poll::Ready(Err(text)) => Status::error(&text),
        }
    }

    fn sign(&self, _cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        Ok(volumes::sign(&pod.pod))
    }
}

#[cfg(test)]
mod tests;
