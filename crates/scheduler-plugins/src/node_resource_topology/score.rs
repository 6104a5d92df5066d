//! The scoring strategies.
//!
//! Upstream: `score.go`, `least_allocated.go`, `most_allocated.go`, `balanced_allocation.go` and
//! `least_numa.go` in `pkg/noderesourcetopology`.

use super::align::{add, effective_request, suits};
use super::topology::{ManagerScope, NumaZone, TopologyManager};
use crate::resources::ResourceSpec;
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::api::{Pod, Quantity, ResourceList};
use kubestep_framework::pod::qos::QosClass;
use kubestep_framework::record::scores::MAX_NODE_SCORE;

/// How nodes are scored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ZoneScoring {
    /// By what remains in a zone.
    LeastAllocated(Vec<ResourceSpec>),
    /// By what is used of a zone.
    MostAllocated(Vec<ResourceSpec>),
    /// By how evenly a zone would be used.
    BalancedAllocation,
    /// By the number of zones that are needed.
    LeastNumaNodes,
}

impl Default for ZoneScoring {
    fn default() -> ZoneScoring {
        ZoneScoring::LeastAllocated(Vec::new())
    }
}

impl ZoneScoring {
    /// The strategy of that name, with weights of resources.
    pub fn by_name(name: &str, resources: &[ResourceSpec]) -> Option<ZoneScoring> {
        Some(match name {
            "LeastAllocated" => ZoneScoring::LeastAllocated(resources.to_vec()),
            "MostAllocated" => ZoneScoring::MostAllocated(resources.to_vec()),
            "BalancedAllocation" => ZoneScoring::BalancedAllocation,
            "LeastNUMANodes" => ZoneScoring::LeastNumaNodes,
            _ => return None,
        })
    }

    /// The score of a node with these zones for a Guaranteed pod, 0 to 100.
    pub fn score(&self, pod: &Pod, manager: TopologyManager, mut zones: Vec<NumaZone>) -> i64 {
        let containers = || {
            let all = pod.spec.init_containers.iter().chain(&pod.spec.containers);
            all.map(|container| container.resources.requests.clone().unwrap_or_default())
        };
        match (self, manager.scope) {
            (ZoneScoring::LeastNumaNodes, ManagerScope::Pod) => {
                least_zones([effective_request(pod)].into_iter(), &mut zones, manager)
            }
            (ZoneScoring::LeastNumaNodes, ManagerScope::Container) => {
                least_zones(containers(), &mut zones, manager)
            }
            _ if !manager.is_single_numa_node => 0,
            (_, ManagerScope::Pod) => self.lowest(&effective_request(pod), &zones),
            (_, ManagerScope::Container) => {
                let scores: Vec<i64> = containers().map(|it| self.lowest(&it, &zones)).collect();
                // Upstream rounds the mean down.
                scores.iter().sum::<i64>().checked_div(scores.len() as i64).unwrap_or(0)
            }
        }
    }

    /// The lowest score of a zone; zones with 0, which do not fit, only count if all have it.
    fn lowest(&self, wanted: &ResourceList, zones: &[NumaZone]) -> i64 {
        let scores = zones.iter().map(|zone| self.of_zone(wanted, &zone.free));
        scores.filter(|score| *score != 0).min().unwrap_or(0)
    }

    fn of_zone(&self, wanted: &ResourceList, free: &ResourceList) -> i64 {
        let pair = |(name, wanted): (Symbol, &Quantity)| {
            (name, wanted.clone(), free.get(name).cloned().unwrap_or_default())
        };
        let pairs: Vec<(Symbol, Quantity, Quantity)> = wanted.iter().map(pair).collect();
        let weighted = |weights: &[ResourceSpec], share: fn(i64, i64) -> i64| {
            let (mut sum, mut total) = (0_i64, 0_i64);
            for (name, wanted, free) in &pairs {
                let weight = weight(weights, *name);
                let fits = !free.is_zero() && wanted <= free;
                let score = if fits { share(wanted.value(), free.value()) } else { 0 };
                sum = sum.wrapping_add(score.wrapping_mul(weight));
                total = total.wrapping_add(weight);
            }
            sum.checked_div(total).unwrap_or(0)
        };
        match self {
            ZoneScoring::LeastAllocated(weights) => {
                weighted(weights, |wanted, free| (free - wanted) * MAX_NODE_SCORE / free)
            }
            ZoneScoring::MostAllocated(weights) => {
                weighted(weights, |wanted, free| wanted * MAX_NODE_SCORE / free)
            }
            _ => balance(pairs.iter().map(|(_, wanted, free)| match free.value() {
                0 => 1.0,
                free => wanted.value() as f64 / free as f64,
            })),
        }
    }
}

fn weight(weights: &[ResourceSpec], name: Symbol) -> i64 {
    // Of several for one resource, upstream's map keeps the last.
    let found = weights.iter().rev().find(|resource| resource.name == name);
    found.map_or(1, |resource| resource.weight.max(1))
}

/// High where the shares are about the same; 0 if one is larger than 1.
fn balance(shares: impl Iterator<Item = f64>) -> i64 {
    let shares: Vec<f64> = shares.collect();
    if shares.iter().any(|share| *share > 1.0) {
        return 0;
    }
    let count = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / count;
    let (mut squares, mut drift) = (0.0, 0.0);
    for share in &shares {
        squares += (share - mean) * (share - mean);
        drift += share - mean;
    }
    let variance = (squares - drift * drift / count) / (count - 1.0);
    ((1.0 - variance) * MAX_NODE_SCORE as f64) as i64
}

/// The largest distance, and that of zones whose distance is unknown.
const FAR: i64 = 255;

/// The score by the number of zones that the resources need, one list after the other.
fn least_zones(
    lists: impl Iterator<Item = ResourceList>,
    zones: &mut [NumaZone],
    manager: TopologyManager,
) -> i64 {
    let (mut most, mut all_near) = (0, true);
    for wanted in lists {
        let has = |name: Symbol| zones.iter().any(|zone| zone.free.get(name).is_some());
        if !wanted.keys().any(has) {
            continue;
        }
        let Some((chosen, is_near)) = needed_zones(zones, &wanted) else { return 0 };
        (most, all_near) = (most.max(chosen.len()), all_near && is_near);
        take_from(&wanted, zones, &chosen);
    }
    if most == 0 {
        return MAX_NODE_SCORE;
    }
    let step = MAX_NODE_SCORE / manager.max_numa_nodes;
    MAX_NODE_SCORE - most as i64 * step + if all_near { step / 2 } else { 0 }
}

/// The positions of the fewest zones that have all resources together, and whether no as many zones
/// are nearer to each other. Of several, the nearest.
fn needed_zones(zones: &[NumaZone], wanted: &ResourceList) -> Option<(Vec<usize>, bool)> {
    (1..=zones.len()).find_map(|count| {
        let combinations = combinations(zones.len(), count);
        let nearest =
            combinations.iter().map(|some| distance(zones, some)).fold(FAR as f32, f32::min);
        let mut best: Option<(f32, &Vec<usize>)> = None;
        for some in combinations.iter().filter(|some| have(zones, some, wanted)) {
            let distance = distance(zones, some);
            if distance == nearest {
                return Some((some.clone(), true));
            }
            if best.is_none_or(|(shortest, _)| distance < shortest) {
                best = Some((distance, some));
            }
        }
        best.map(|(_, some)| (some.clone(), false))
    })
}

/// All choices of `count` of `all` positions, in lexical order.
fn combinations(all: usize, count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut chosen = Vec::new();
    for some in combinations(all, count - 1) {
        let first = some.last().map_or(0, |last| last + 1);
        chosen.extend((first..all).map(|next| [some.as_slice(), &[next]].concat()));
    }
    chosen
}

/// The mean distance between zones, each to itself included.
fn distance(zones: &[NumaZone], some: &[usize]) -> f32 {
    let pairs = some.iter().flat_map(|from| some.iter().map(move |to| (*from, *to)));
    let cost = |(from, to): (usize, usize)| zones[from].costs.get(&zones[to].id).copied();
    let sum: i64 = pairs.map(|pair| cost(pair).unwrap_or(FAR)).sum();
    sum as f32 / (some.len() * some.len()) as f32
}

/// Whether each zone has every resource, and all together have enough.
fn have(zones: &[NumaZone], some: &[usize], wanted: &ResourceList) -> bool {
    let each = some.iter().all(|at| wanted.keys().all(|name| zones[*at].free.get(name).is_some()));
    let mut sum = ResourceList::default();
    some.iter().for_each(|at| add(&mut sum, &zones[*at].free));
    let enough = |(name, wanted): (Symbol, &Quantity)| {
        let free = sum.get(name).cloned().unwrap_or_default();
        wanted.is_zero() || suits(QosClass::Guaranteed, &name, wanted, &free)
    };
    each && wanted.iter().all(enough)
}

/// Takes the resources from the zones, as much as possible from the first. Upstream takes the numbers
/// of the zones for positions.
fn take_from(wanted: &ResourceList, zones: &mut [NumaZone], chosen: &[usize]) {
    let mut ids: Vec<usize> = chosen.iter().map(|at| zones[*at].id).collect();
    ids.sort_unstable();
    for (name, wanted) in wanted.iter() {
        let mut left = wanted.clone();
        for at in &ids {
            let Some(free) = zones.get_mut(*at).and_then(|zone| zone.free.get_mut(name)) else {
                continue;
            };
            let taken = if left < *free { left.clone() } else { free.clone() };
            left.sub(&taken);
            free.sub(&taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_come_in_lexical_order() {
        let expected: [&[usize]; 6] = [&[0, 1], &[0, 2], &[0, 3], &[1, 2], &[1, 3], &[2, 3]];
        assert_eq!(combinations(4, 2), expected);
        assert_eq!(combinations(2, 2), [[0, 1]]);
    }
}
