//! CapacityScheduling: namespaces have elastic quotas. What one does not use of its min, others may
//! borrow up to their max, and give back by preemption.
//!
//! [`quota`] has the arithmetic, `preemption` the choice of victims. Upstream:
//! `pkg/capacityscheduling` of kubernetes-sigs/scheduler-plugins.

mod preemption;
pub mod quota;
#[cfg(test)]
mod tests;

use kubestep_framework::api::Name;
use std::sync::Arc;

use crate::capacity_scheduling::quota::{
    ELASTIC_QUOTAS, ElasticQuota, Excess, Quota, Quotas, requested,
};
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::api::{Object, Pod, PodPhase};
use kubestep_framework::config::{ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{Action, EventObjects, EventResource, Registration};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::{
    BindContext, CycleContext, Explanation, HandlerContext, Plugin, PostFilterAnswer,
    PostFilterContext, PreFilterAnswer,
};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::preemption::{PreemptionRules, evaluator};
use kubestep_framework::registry::Built;
use kubestep_framework::resource::Resource;
use kubestep_framework::status::Status;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    signs: false,
    doc: "limits namespaces to elastic quotas, and preempts what they borrowed",
    long_doc: "The ElasticQuota of a namespace has a min, which the namespace is guaranteed, and a \
               max. A pod is rejected if its namespace would use more than its max, or all \
               namespaces with quotas together more than the sum of their mins. A pod whose \
               namespace stays below its min preempts pods of namespaces that use more than theirs; \
               otherwise it preempts pods of lower priority in its own.",
    example: "Namespaces a and b have min cpu 10. a uses 14, b 6: a pod of b that requests 4 \
              preempts pods of a.",
    ..PluginDescriptor::new(
        "CapacityScheduling",
        &[ExtensionPoint::PreFilter, ExtensionPoint::PostFilter, ExtensionPoint::Reserve],
    )
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Built {
    Ok(Arc::new(CapacityScheduling))
}

/// Pods that an explanation names; more are counted.
const NAMED: usize = 5;

pub(crate) struct CapacityScheduling;

/// What the cycle's pod requests, alone and with nominated pods. Written by PreFilter.
#[derive(Clone, Default)]
struct QuotaRequests {
    pod: Resource,
    /// With the nominated pods of the namespace that are at least as important.
    in_quota: Resource,
    /// Also with those of other namespaces that use no more than their min.
    in_all: Resource,
}

impl QuotaRequests {
    fn of(cx: &CycleContext<'_>, quotas: &Quotas) -> QuotaRequests {
        let (own, pod) = (cx.pod, requested(&cx.pod.pod));
        let mut requests = QuotaRequests { pod: pod.clone(), in_quota: pod.clone(), in_all: pod };
        let nodes = cx.snapshot.iter().flat_map(|node| cx.nominated.for_node(node.name));
        for other in nodes.filter(|other| other.uid() != own.uid()) {
            let namespace = other.key().namespace;
            let Some(quota) = quotas.of(namespace) else { continue };
            let is_same = namespace == own.key().namespace;
            if is_same && other.priority() >= own.priority() {
                requests.in_quota.accumulate(&requested(&other.pod), 1);
            }
            if (is_same && other.priority() >= own.priority()) || (!is_same && !quota.is_over_min())
            {
                requests.in_all.accumulate(&requested(&other.pod), 1);
            }
        }
        requests
    }
}

/// Which quota rejects the pod.
enum QuotaRejection {
    Max(Vec<Excess>),
    TotalMin(Vec<Excess>),
}

fn rejection(
    namespace: Symbol,
    quotas: &Quotas,
    requests: &QuotaRequests,
) -> Option<QuotaRejection> {
    let over_max = quotas.of(namespace)?.over_max(&requests.in_quota);
    if !over_max.is_empty() {
        return Some(QuotaRejection::Max(over_max));
    }
    let over_min = quotas.over_total_min(&requests.in_all);
    (!over_min.is_empty()).then_some(QuotaRejection::TotalMin(over_min))
}

impl Plugin for CapacityScheduling {
    fn name(&self) -> Symbol {
        PLUGIN.name.into()
    }

    fn events(&self) -> Option<Vec<Registration>> {
        Some(vec![
            Registration::always(EventResource::Pod, Action::DELETE),
            Registration::always(EventResource::Custom(ELASTIC_QUOTAS), Action::ALL),
        ])
    }

    fn handles_events(&self) -> bool {
        true
    }

    fn handle_event(&self, cx: &mut HandlerContext<'_>, objects: &EventObjects) {
        let (all, plugins) = (cx.objects, &mut cx.shared.plugins);
        match (&objects.old, &objects.new) {
            (old, Some(Object::Pod(pod))) if !pod.spec.node_name.is_empty() => {
                let was_assigned =
                    matches!(old, Some(Object::Pod(old)) if !old.spec.node_name.is_empty());
                plugins.update(|quotas: &mut Quotas| pod_changed(quotas, all, pod, was_assigned));
            }
            (Some(Object::Pod(pod)), None) if !pod.spec.node_name.is_empty() => {
                plugins.update(|quotas: &mut Quotas| quotas.remove(pod));
            }
            (old, new) => {
                let quota = |object: &Option<Object>| {
                    let Some(Object::Custom(object)) = object else { return None };
                    Some((object.metadata.namespace, object.get::<ElasticQuota>()?.spec.clone()))
                };
                plugins_changed(plugins, quota(old).map(|(namespace, _)| namespace), quota(new));
            }
        }
    }

    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        let quotas = cx.shared.plugins.get::<Quotas>().cloned().unwrap_or_default();
        let requests = QuotaRequests::of(cx, &quotas);
        let key = cx.pod.key();
        let rejection = rejection(key.namespace, &quotas, &requests);
        state.write(quotas);
        state.write(requests);
        let reason = match rejection {
            None => return PreFilterAnswer::default(),
            Some(QuotaRejection::Max(_)) => {
                format!("ElasticQuota {} is more than Max", key.namespace)
            }
            Some(QuotaRejection::TotalMin(_)) => {
                "total ElasticQuota used is more than min".to_owned()
            }
        };
        let text = format!("Pod {key} is rejected in PreFilter because {reason}");
        Status::unschedulable(&text).into()
    }

    fn explain_pre_filter(&self, cx: &CycleContext<'_>, state: &CycleState) -> Vec<Explanation> {
        let (Some(quotas), Some(requests)) =
            (state.read::<Quotas>(), state.read::<QuotaRequests>())
        else {
            return Vec::new();
        };
        let namespace = cx.pod.key().namespace;
        let of_max = |excess: Excess, counted: &str| {
            let (over, enough) = (excess.over(), excess.enough());
            let words = format!(
                "max of the elastic quota of namespace {namespace}: {}; needs a max of at least \
                 {enough}, or {over} less used by its pods{counted}",
                excess.describe()
            );
            Explanation::new("the elastic quota's max is used up", words)
        };
        let of_total = |excess: Excess| {
            let (over, enough) = (excess.over(), excess.enough());
            let words = format!(
                "sum of the mins of all elastic quotas: {}; needs a sum of at least {enough}, or \
                 {over} less used by pods of namespaces with quotas",
                excess.describe()
            );
            Explanation::new("the mins of all elastic quotas are used up", words)
        };
        match rejection(namespace, quotas, requests) {
            None => Vec::new(),
            Some(QuotaRejection::Max(excess)) => {
                let counted = counted_pods(cx, quotas, namespace);
                excess.into_iter().map(|excess| of_max(excess, &counted)).collect()
            }
            Some(QuotaRejection::TotalMin(excess)) => excess.into_iter().map(of_total).collect(),
        }
    }

    fn add_pod(
        &self,
        _: &CycleContext<'_>,
        state: &mut CycleState,
        added: &PodInfo,
        _: &NodeInfo,
    ) -> Status {
        if let Some(quotas) = state.read_mut::<Quotas>() {
            quotas.add(&added.pod);
        }
        Status::SUCCESS
    }

    fn remove_pod(
        &self,
        _: &CycleContext<'_>,
        state: &mut CycleState,
        removed: &PodInfo,
        _: &NodeInfo,
    ) -> Status {
        if let Some(quotas) = state.read_mut::<Quotas>() {
            quotas.remove(&removed.pod);
        }
        Status::SUCCESS
    }

    fn preemption(&self) -> Option<&dyn PreemptionRules> {
        Some(self)
    }

    fn post_filter(&self, cx: &mut PostFilterContext<'_>, state: &CycleState) -> PostFilterAnswer {
        evaluator::preempt(self, cx, state)
    }

    fn reserve(&self, cx: &mut BindContext<'_>, _: &mut CycleState) -> Status {
        let pod = &cx.pod.pod;
        cx.shared.plugins.update(|quotas: &mut Quotas| quotas.add(pod));
        Status::SUCCESS
    }

    fn unreserve(&self, cx: &mut BindContext<'_>, _: &mut CycleState) {
        let pod = &cx.pod.pod;
        cx.shared.plugins.update(|quotas: &mut Quotas| quotas.remove(pod));
    }
}

/// The pods that count in the quota of a namespace, in brackets after a space; the first few.
fn counted_pods(cx: &CycleContext<'_>, quotas: &Quotas, namespace: Symbol) -> String {
    let Some(quota) = quotas.of(namespace) else { return String::new() };
    let nodes = cx.snapshot.iter().flat_map(|node| node.pods.iter());
    let of_quota = nodes.filter(|pod| pod.key().namespace == namespace && quota.counts(pod.uid()));
    let mut names: Vec<Name> = of_quota.map(|pod| pod.key().name).collect();
    names.sort_unstable();
    match list(&names) {
        names if names.is_empty() => names,
        names => format!(" ({names})"),
    }
}

/// The first few names, and how many more there are.
fn list(names: &[impl ToString]) -> String {
    let mut shown: Vec<String> = names.iter().take(NAMED).map(ToString::to_string).collect();
    let more = names.len() - shown.len();
    shown.extend((more > 0).then(|| format!("{more} more")));
    shown.join(", ")
}

/// A pod got its node, or changed on it.
fn pod_changed(quotas: &mut Quotas, objects: &Objects, pod: &Pod, was_assigned: bool) {
    if was_assigned {
        if !matches!(pod.status.phase, PodPhase::Running | PodPhase::Pending) {
            quotas.remove(pod);
        }
        return;
    }
    let namespace = pod.metadata.namespace;
    if quotas.of(namespace).is_none() {
        let all = objects.custom_objects(ELASTIC_QUOTAS);
        let first = Objects::in_namespace(&all, namespace).next();
        let Some(quota) = first.and_then(|object| object.get::<ElasticQuota>()) else { return };
        quotas.0.insert(namespace, Quota::new(&quota.spec));
    }
    quotas.add(pod);
}

/// A quota was created, changed or deleted. Pods that were bound before their quota was created do
/// not count in it, as upstream.
fn plugins_changed(
    plugins: &mut kubestep_framework::shared::PluginStates,
    old: Option<Symbol>,
    new: Option<(Symbol, quota::ElasticQuotaSpec)>,
) {
    plugins.update(|quotas: &mut Quotas| match (old, new) {
        (_, Some((namespace, spec))) => match quotas.0.get_mut(&namespace) {
            Some(quota) if old.is_some() => quota.change(&spec),
            Some(_) => {}
            None => drop(quotas.0.insert(namespace, Quota::new(&spec))),
        },
        (Some(namespace), None) => drop(quotas.0.remove(&namespace)),
        (None, None) => {}
    });
}
