//! Plugins whose answers a test sets, for what no in-tree plugin does when needed: fail at an
//! extension point, narrow the nodes, activate other pods.

use std::sync::{Arc, Mutex};

use crate::cycle_state::CycleState;
use crate::node::{NodeId, NodeInfo};
use crate::plugin::{
    BindContext, CycleContext, PermitAnswer, Plugin, PostFilterAnswer, PostFilterContext,
    PreFilterAnswer,
};
use crate::pod::{NamespacedName, PodInfo};
use crate::record::nodes::NodeList;
use crate::registry::{Entry, Registry};
use crate::status::Status;
use kubestep_api::intern::Symbol;
use kubestep_api::{Duration, Name};
use kubestep_config::{ExtensionPoint, PluginDescriptor};

/// A plugin that succeeds at all its extension points except where an answer is set.
#[derive(Clone, Default)]
pub struct Scripted {
    /// The name, as configurations spell it.
    pub name: &'static str,
    /// The points at which it runs.
    pub points: Vec<ExtensionPoint>,
    /// The answers where it does not succeed.
    pub answers: Vec<(ExtensionPoint, Status)>,
    /// The nodes that PreFilter narrows to.
    pub narrows_to: Option<Vec<Name>>,
    /// Whether the answers of Filter about a node may be cached for all pods.
    pub has_key: bool,
    /// The status of Normalize.
    pub normalize: Status,
    /// The status of PreBindPreFlight; Skip if `None`.
    pub pre_flight: Option<Status>,
    /// Whether PreBind may run in parallel.
    pub parallel: bool,
    /// The status of AddPod.
    pub add_pod: Status,
    /// The pod that it activates, at every point from Reserve on.
    pub activates: Option<NamespacedName>,
    /// Its calls, as `Point pod`.
    pub log: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    /// A plugin at these points.
    pub fn new(name: &'static str, points: &[ExtensionPoint]) -> Scripted {
        Scripted { name, points: points.to_vec(), ..Scripted::default() }
    }

    /// Sets the answer at an extension point.
    pub fn says(mut self, point: ExtensionPoint, status: Status) -> Scripted {
        self.answers.push((point, status));
        self
    }

    /// The calls since the last call of this function.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }

    fn answer(&self, point: ExtensionPoint, pod: &PodInfo) -> Status {
        self.log.lock().unwrap().push(format!("{point} {}", pod.key().name));
        let said = self.answers.iter().find(|(at, _)| *at == point);
        said.map(|(_, status)| status.clone()).unwrap_or_default()
    }

    fn answer_and_activate(
        &self,
        point: ExtensionPoint,
        cx: &BindContext<'_>,
        state: &mut CycleState,
    ) -> Status {
        let wanted = self.activates.map(|key| (key.namespace, key.name));
        state.pods_to_activate.extend(wanted);
        self.answer(point, cx.pod)
    }
}

impl Plugin for Scripted {
    fn name(&self) -> Symbol {
        self.name.into()
    }

    fn pre_filter(&self, cx: &CycleContext<'_>, _state: &mut CycleState) -> PreFilterAnswer {
        let status = self.answer(ExtensionPoint::PreFilter, cx.pod);
        PreFilterAnswer { status, nodes: self.narrows_to.clone() }
    }

    fn add_pod(
        &self,
        _cx: &CycleContext<'_>,
        _state: &mut CycleState,
        _added: &PodInfo,
        _node: &NodeInfo,
    ) -> Status {
        self.add_pod.clone()
    }

    fn filter_key(&self, _pod: &PodInfo) -> Option<String> {
        self.has_key.then(String::new)
    }

    fn filter(&self, cx: &CycleContext<'_>, _state: &CycleState, _node: &NodeInfo) -> Status {
        self.answer(ExtensionPoint::Filter, cx.pod)
    }

    fn post_filter(&self, cx: &mut PostFilterContext<'_>, _state: &CycleState) -> PostFilterAnswer {
        let status = self.answer(ExtensionPoint::PostFilter, cx.cycle.pod);
        PostFilterAnswer { status, ..PostFilterAnswer::default() }
    }

    fn pre_score(
        &self,
        cx: &CycleContext<'_>,
        _state: &mut CycleState,
        _nodes: &NodeList,
    ) -> Status {
        self.answer(ExtensionPoint::PreScore, cx.pod)
    }

    fn score(
        &self,
        cx: &CycleContext<'_>,
        _state: &CycleState,
        _node: &NodeInfo,
    ) -> Result<i64, Status> {
        let status = self.answer(ExtensionPoint::Score, cx.pod);
        if status.is_success() { Ok(1) } else { Err(status) }
    }

    fn normalize(
        &self,
        _cx: &CycleContext<'_>,
        _state: &CycleState,
        _nodes: &[NodeId],
        _scores: &mut [i64],
    ) -> Status {
        self.normalize.clone()
    }

    fn reserve(&self, cx: &mut BindContext<'_>, state: &mut CycleState) -> Status {
        self.answer_and_activate(ExtensionPoint::Reserve, cx, state)
    }

    fn permit(&self, cx: &mut BindContext<'_>, state: &mut CycleState) -> PermitAnswer {
        let status = self.answer_and_activate(ExtensionPoint::Permit, cx, state);
        PermitAnswer { status, timeout: Duration::from_secs(10) }
    }

    fn pre_bind_pre_flight(&self, _cx: &BindContext<'_>, _state: &CycleState) -> Status {
        self.pre_flight.clone().unwrap_or_else(Status::skip)
    }

    fn pre_binds_in_parallel(&self) -> bool {
        self.parallel
    }

    fn pre_bind(&self, cx: &mut BindContext<'_>, state: &mut CycleState) -> Status {
        self.answer_and_activate(ExtensionPoint::PreBind, cx, state)
    }

    fn bind(&self, cx: &mut BindContext<'_>, state: &mut CycleState) -> Status {
        self.answer_and_activate(ExtensionPoint::Bind, cx, state)
    }

    fn post_bind(&self, cx: &mut BindContext<'_>, state: &mut CycleState) {
        self.answer_and_activate(ExtensionPoint::PostBind, cx, state);
    }
}

/// Adds these plugins to a registry, with their points.
pub fn register(registry: &mut Registry, plugins: &[&Scripted]) {
    for plugin in plugins {
        let scripted = Arc::new((*plugin).clone());
        let descriptor = PluginDescriptor::new(plugin.name, &plugin.points);
        let descriptor = PluginDescriptor { signs: false, ..descriptor };
        let entry = Entry::new(descriptor, move |_, _| Ok(scripted.clone()));
        registry.register(entry).unwrap();
    }
}
