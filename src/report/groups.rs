//! The pod groups of a cluster: members and their states, the minimum and why it is not reached,
//! and the evaluated placements with their scores and verdicts.

use std::collections::BTreeMap;

use super::outline::{LinkTarget, Outline, OutlineItem, Tone, with_colon};
use kubestep_api::words::count;
use kubestep_api::{Pod, PodGroupSchedulingPolicy};
use kubestep_cluster::World;
use kubestep_debug::trace::History;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::pod_groups::group_of;
use kubestep_framework::pod_groups::policy::{min_count, policy_of};
use kubestep_framework::record::{CycleRecord, PlacementRecord};

/// All groups in a state of the cluster, with the results of the cycles before it.
pub fn outline(world: &World, history: &History) -> Outline {
    let mut members: BTreeMap<NamespacedName, Vec<(NamespacedName, &Pod)>> = BTreeMap::new();
    for (key, pod) in world.api().objects().pods.iter() {
        if let Some(group) = group_of(pod, world.scheduler().features()) {
            members.entry(group).or_default().push((*key, pod));
        }
    }
    for group in world.api().objects().pod_groups.keys() {
        members.entry(*group).or_default();
    }
    let mut outline = Outline { title: "Pod groups".into(), items: Vec::new() };
    for (group, mut pods) in members {
        pods.sort_by_key(|(key, _)| *key);
        outline.items.extend(of_group(world, history, group, &pods));
    }
    outline
}

fn of_group(
    world: &World,
    history: &History,
    group: NamespacedName,
    pods: &[(NamespacedName, &Pod)],
) -> Vec<OutlineItem> {
    let placed = |pod: &Pod, key: NamespacedName| {
        !pod.spec.node_name.is_empty() || waits_for(world, key).is_some()
    };
    let with_node = pods.iter().filter(|(key, pod)| placed(pod, *key)).count();
    let policy = policy(world, group, pods);
    let gang = policy.and_then(min_count);
    let needed = gang.unwrap_or(0);
    let (text, tone) = match (policy, gang) {
        (None, _) => ("there is no such pod group: its pods are not tried".to_owned(), Tone::Bad),
        (_, None) => {
            (format!("{with_node} of {} pods have a node; no quorum", pods.len()), Tone::Good)
        }
        _ if with_node >= needed => (
            format!("{with_node} of {} pods have a node, {needed} are needed", pods.len()),
            Tone::Good,
        ),
        _ if pods.len() < needed => {
            let short = needed - pods.len();
            (format!("needs {needed} pods, has {}: {short} missing", pods.len()), Tone::Bad)
        }
        _ => {
            let text = format!("needs {needed} pods with a node, has {with_node}");
            (text, Tone::Bad)
        }
    };
    let mut items =
        vec![OutlineItem::heading(&group.to_string(), format!("{group}: {text}")).tone(tone)];
    let last = last_cycle(world, history, pods);
    items.extend(last.iter().flat_map(|record| of_cycle(record)));
    items.extend(pods.iter().map(|(key, pod)| member(world, history, *key, pod)));
    items
}

/// How the group is scheduled; `None` if it does not exist.
fn policy<'a>(
    world: &'a World,
    group: NamespacedName,
    pods: &[(NamespacedName, &Pod)],
) -> Option<&'a PodGroupSchedulingPolicy> {
    let objects = world.api().objects();
    match pods.first() {
        Some((_, pod)) => policy_of(pod, objects, world.scheduler().features())?.ok(),
        None => objects.pod_groups.get(&group).map(|group| &group.spec.scheduling_policy),
    }
}

/// The newest cycle of the group that evaluated placements or preempted, otherwise the newest.
fn last_cycle<'a>(
    world: &World,
    history: &'a History,
    pods: &[(NamespacedName, &Pod)],
) -> Option<&'a CycleRecord> {
    let so_far = world.scheduler().cycles();
    let newest = |has: fn(&CycleRecord) -> bool| {
        let of_pod = |(key, _): &(NamespacedName, &Pod)| {
            let mut cycles = history.cycles_of(*key).rev();
            cycles.find(|record| record.cycle <= so_far && has(record)).map(AsRef::as_ref)
        };
        pods.iter().filter_map(of_pod).max_by_key(|record: &&CycleRecord| record.cycle)
    };
    newest(|record| !record.placements.is_empty() || record.preemption.is_some())
        .or_else(|| newest(|_| true))
}

/// The results of a cycle for the whole group.
fn of_cycle(record: &CycleRecord) -> Vec<OutlineItem> {
    let mut items = Vec::new();
    let cycle = LinkTarget::Cycle(record.cycle);
    if !record.placements.is_empty() {
        let number = count(record.placements.len(), "candidate placement");
        let text = format!("cycle {}: {number}", record.cycle);
        items.push(OutlineItem {
            id: format!("placements {}", record.pod),
            ..OutlineItem::new(1, text).to(cycle)
        });
    }
    for (at, placement) in record.placements.iter().enumerate() {
        items.push(self::placement(placement, record.placement == Some(at)).to(cycle));
    }
    if let Some(taken) = &record.preemption {
        let victims: Vec<String> = taken.victims.iter().map(ToString::to_string).collect();
        let text =
            format!("cycle {}: preempted on {}: {}", record.cycle, taken.node, victims.join(", "));
        items.push(OutlineItem::new(1, text).to(cycle));
    }
    items
}

fn placement(placement: &PlacementRecord, chosen: bool) -> OutlineItem {
    let name = if placement.name.is_empty() { "all nodes" } else { &placement.name.text() };
    let (placed, nodes) = (placement.placed, placement.nodes);
    let score = placement.total.map(|total| format!(", score {total}")).unwrap_or_default();
    let (verdict, tone) = match (chosen, placement.status.is_success()) {
        (true, _) => ("chosen".to_owned(), Tone::Good),
        (false, true) => ("feasible".to_owned(), Tone::Plain),
        _ => (placement.status.message(), Tone::Bad),
    };
    let (pods, nodes) = (count(placed, "pod"), count(nodes, "node"));
    let text = format!("{name}: {pods} placed on {nodes}{score}: {verdict}");
    OutlineItem::new(2, text).tone(tone)
}

fn waits_for(world: &World, key: NamespacedName) -> Option<String> {
    let mut waiting = world.scheduler().waiting().iter();
    let waiting = waiting.find(|waiting| waiting.pod().key() == key)?;
    let holds: Vec<&str> = waiting.holds().iter().map(|hold| hold.plugin.as_str()).collect();
    Some(format!("waits for {}, held by {}", waiting.node(), holds.join(" and ")))
}

fn member(world: &World, history: &History, key: NamespacedName, pod: &Pod) -> OutlineItem {
    let so_far = world.scheduler().cycles();
    let last = history.cycles_of(key).rev().find(|record| record.cycle <= so_far);
    let queued = world.scheduler().queue().get(key);
    let why = queued.and_then(|queued| queued.gating_message).map(|gate| gate.to_string());
    let why = why.or_else(|| last.map(|record| record.message.clone())).unwrap_or_default();
    let (place, tone) = match (pod.spec.node_name.text().as_str(), waits_for(world, key)) {
        ("", Some(waits)) => (waits, Tone::Waiting),
        ("", None) => {
            let queue = world.scheduler().queue().queue_of(key);
            (format!("{}{}", queue.as_str(), with_colon(&why)), Tone::Queued(queue))
        }
        (node, _) => (format!("on {node}"), Tone::Good),
    };
    OutlineItem::new(1, format!("{}: {place}", key.name)).tone(tone).to(LinkTarget::Pod(key))
}
