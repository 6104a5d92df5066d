//! Compares the reasons that plugins report with the statuses of their filters: the status rendered
//! from the reasons is the recorded one. Both come from the same walk.

use kubestep_cluster::World;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::record::CycleRecord;
use kubestep_framework::status::Status;
use kubestep_plugins::node_resources::fit;
use kubestep_plugins::{
    dynamic_resources, inter_pod_affinity, node_affinity, node_ports, node_volume_limits,
    pod_topology_spread, taint_toleration, volume_binding, volume_restrictions, volume_zone,
};
use kubestep_scheduler::what_if::Probe;

/// Compares the rendered reasons for the cluster before a cycle with the statuses that the cycle
/// recorded.
pub fn compare(before: &World, record: &CycleRecord) -> Result<(), String> {
    let scheduler = before.scheduler();
    let Some(pod) = before.api().objects().pod(record.pod) else { return Ok(()) };
    let info = PodInfo::with_features(pod.clone(), scheduler.features()).into();
    let Some(probe) = &Probe::new(scheduler, &info, before.now()) else { return Ok(()) };
    for column in &record.filter.plugins {
        for id in &record.nodes.order {
            let Some(verdict) = column.verdicts.get(*id).filter(|verdict| verdict.is_status())
            else {
                continue;
            };
            let name = record.nodes.name(*id);
            let (recorded, node) = (record.verdicts.get(verdict), probe.snapshot().by_name(name));
            let (Some(recorded), Some(node)) = (recorded, node) else { continue };
            let rendered = rendered(&column.plugin, probe, probe.state(), node);
            let Some(rendered) = rendered.filter(|_| !recorded.is_error()) else { continue };
            if (rendered.code(), rendered.reasons()) != (recorded.code(), recorded.reasons()) {
                return Err(format!(
                    "cycle {} of {}: {} on {name}: rendered {rendered:?}, recorded {recorded:?}",
                    record.cycle, record.pod, column.plugin
                ));
            }
        }
    }
    Ok(())
}

/// The status rendered from the plugin's reasons; `None` for plugins that report none, and if
/// nothing was found without the pods nominated to the node.
fn rendered(plugin: &str, probe: &Probe, state: &CycleState, node: &NodeInfo) -> Option<Status> {
    let (cx, object) = (probe.cx(), node.node.as_ref()?);
    match plugin {
        "TaintToleration" => {
            let mut found = taint_toleration::blocking_taints(object, cx.pod, cx.features);
            found.next().map(|taint| taint_toleration::rejection(taint, cx.features))
        }
        "NodeAffinity" => {
            let args = probe.args().read::<node_affinity::NodeAffinityArgs>();
            let required = node_affinity::Requirements::of_cycle(state, &cx.pod.pod, &args);
            required.mismatches(object).next().map(|mismatch| mismatch.rejection())
        }
        "NodeResourcesFit" => {
            let found = fit::shortfalls(state, node);
            (!found.is_empty()).then(|| fit::rejection(&found, cx.features))
        }
        "InterPodAffinity" => {
            let found = state.read::<inter_pod_affinity::AffinityFilterState>()?;
            found.reasons(node.id).next().map(inter_pod_affinity::rejection)
        }
        "PodTopologySpread" => {
            let found = state.read::<pod_topology_spread::SpreadFilterState>()?;
            let rejections = pod_topology_spread::SpreadRejections::new(plugin.into());
            found.reasons(node.id).next().map(|(_, reason)| rejections.of(reason).clone())
        }
        "NodePorts" => {
            let text = "node(s) didn't have free ports for the requested pod ports";
            node_ports::taken(cx.pod, node).next().map(|_| Status::unschedulable(text))
        }
        "VolumeBinding" => {
            let found = volume_binding::rejections(&cx, state, object);
            Some(volume_binding::rejection(&found, cx.features))
        }
        "VolumeRestrictions" => {
            let found = volume_restrictions::reasons(&cx, state, node);
            found.first().map(|reason| volume_restrictions::rejection(*reason, cx.features))
        }
        "NodeVolumeLimits" => match node_volume_limits::reason(&cx, state, node) {
            Ok(found) => found.as_ref().map(node_volume_limits::rejection),
            Err(status) => Some(status),
        },
        "VolumeZone" => {
            let found = volume_zone::conflicts(&cx, state, &object.metadata.labels);
            (!found.is_empty()).then(volume_zone::rejection)
        }
        "DynamicResources" => {
            let args = probe.args().read::<dynamic_resources::DynamicResourcesArgs>();
            let found = dynamic_resources::reasons(&cx, state, node, &args);
            found.first().map(|reason| reason.rejection(node.name, cx.features))
        }
        _ => None,
    }
}
