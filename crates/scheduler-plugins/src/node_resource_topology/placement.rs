//! In which NUMA zones the containers of a node have their resources, if its agent reports that, and
//! what becomes free there when preemption evicts some.
//!
//! Agent and scheduler hash the containers that have resources for themselves, and sort the hashes.
//! Each zone lists the positions of its containers as distances, in characters; the zone with the
//! most containers has no list.
//!
//! Upstream: `pkg/noderesourcetopology/preemption` and
//! `github.com/k8stopologyawareschedwg/numaplacement`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::align::add;
use super::exclusive::exclusive_requests;
use super::fingerprint::xxh64;
use super::topology::{NodeResourceTopology, NumaZone, attribute};
use kubestep_framework::api::{Pod, ResourceList};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::pod::qos::qos_class;

/// The pods that preemption takes off a node while it tries the node.
#[derive(Clone, Default)]
pub struct Victims(pub BTreeMap<NamespacedName, Arc<Pod>>);

/// The zones of containers, by the hashes of the containers.
#[derive(Clone, PartialEq, Debug)]
pub struct NumaPlacement(BTreeMap<u64, usize>);

/// The hash of a container.
pub fn container_hash(pod: &Pod, container: &str) -> u64 {
    let (namespace, name) = (pod.metadata.namespace, pod.metadata.name);
    xxh64(format!("{namespace}\0{name}\0{container}").as_bytes(), 0)
}

/// What applies to the lists of all zones.
struct Metadata {
    containers: usize,
    zones: usize,
    /// The zone without a list.
    busiest: usize,
}

impl Metadata {
    /// Reads `npv0v001::ve=leb89::cc=3::nn=2::bn=1`.
    fn parse(text: &str) -> Option<Metadata> {
        let (mut encoding, [mut containers, mut zones, mut busiest]) = ("", [None; 3]);
        for field in text.strip_prefix("npv0v001::")?.split("::") {
            let number = |text: &str| text.parse::<i64>().ok();
            match field.split_once('=')? {
                ("ve", text) => encoding = text,
                ("cc", text) => containers = Some(number(text)?),
                ("nn", text) => zones = Some(number(text)?),
                ("bn", text) => busiest = Some(number(text)?),
                _ => return None,
            }
        }
        let count = |number: Option<i64>| usize::try_from(number?).ok();
        let [containers, zones, busiest] = [count(containers)?, count(zones)?, count(busiest)?];
        let is_valid = encoding == "leb89" && busiest < zones;
        is_valid.then_some(Metadata { containers, zones, busiest })
    }
}

/// The value of a character. The printable ones count, except those that JSON escapes.
fn digit(byte: u8) -> Option<i32> {
    let escaped = b"\"&<>\\";
    let is_digit = byte.is_ascii_graphic() && !escaped.contains(&byte);
    let skipped = escaped.iter().filter(|other| **other < byte).count() as i32;
    is_digit.then(|| i32::from(byte - b'!') - skipped)
}

/// The positions in a list. Characters from 64 on are followed by more of the same distance.
fn positions(list: &str) -> Option<Vec<usize>> {
    let (mut found, mut last, mut high) = (Vec::new(), 0_i32, None::<i32>);
    for byte in list.bytes() {
        let digit = digit(byte)?;
        if digit >= 64 {
            high = Some(high.unwrap_or(0).wrapping_mul(25).wrapping_add(digit - 64));
            continue;
        }
        let above = high.take().map_or(0, |high| high.wrapping_mul(64).wrapping_add(64));
        last = last.wrapping_add(above).wrapping_add(digit);
        found.push(usize::try_from(last).ok()?);
    }
    high.is_none().then_some(found)
}

/// The lists by zone; `None` if a zone with a list has no number.
fn lists(report: &NodeResourceTopology) -> Option<BTreeMap<usize, &str>> {
    let mut lists = BTreeMap::new();
    for zone in &report.zones {
        let list = attribute(&zone.attributes, "topology.node.k8s.io/numaplacement-vector");
        if let Some(list) = list {
            let number = zone.name.strip_prefix("node-").unwrap_or(&zone.name);
            lists.insert(number.parse().ok()?, list);
        }
    }
    Some(lists)
}

impl NumaPlacement {
    /// Where the containers are; `None` if the report does not say that, or is about others.
    pub fn of(report: &NodeResourceTopology, containers: &[u64]) -> Option<NumaPlacement> {
        let is_aligned = report.attribute("topologyManagerPolicy") == Some("single-numa-node");
        let metadata = report.attribute("topology.node.k8s.io/numaplacement-metadata");
        let metadata = Metadata::parse(metadata.filter(|_| is_aligned)?)?;
        let sorted: BTreeSet<u64> = containers.iter().copied().collect();
        let sorted = Vec::from_iter(sorted);
        if [sorted.len(), containers.len()] != [metadata.containers; 2] || sorted.is_empty() {
            return None;
        }
        let mut placed = BTreeMap::new();
        for (zone, list) in lists(report)? {
            if zone >= metadata.zones || zone == metadata.busiest {
                return None;
            }
            for position in positions(list)? {
                let Entry::Vacant(entry) = placed.entry(*sorted.get(position)?) else {
                    return None;
                };
                entry.insert(zone);
            }
        }
        for hash in sorted {
            placed.entry(hash).or_insert(metadata.busiest);
        }
        Some(NumaPlacement(placed))
    }

    /// The zone of a container.
    pub fn zone(&self, container: u64) -> Option<usize> {
        self.0.get(&container).copied()
    }

    /// Adds to the zones what the victims have there for themselves. The error says why the eviction
    /// cannot be tried, in upstream's words.
    pub fn release(
        &self,
        report: &NodeResourceTopology,
        victims: &Victims,
        zones: &mut [NumaZone],
    ) -> Result<(), &'static str> {
        let freed = self.freed(report, victims);
        if freed.is_empty() {
            return Err("no resources to add, cannot process eviction simulation");
        }
        for zone in zones {
            for (name, amount) in freed.get(&zone.id).into_iter().flat_map(ResourceList::iter) {
                let Some(free) = zone.free.get_mut(name) else { continue };
                free.add(amount);
                if *free > report.allocatable(zone.id, name) {
                    return Err("resource release request exceeds NUMA allocatable");
                }
            }
        }
        Ok(())
    }

    /// What the victims have for themselves, by zone.
    fn freed(
        &self,
        report: &NodeResourceTopology,
        victims: &Victims,
    ) -> BTreeMap<usize, ResourceList> {
        let mut freed = BTreeMap::<usize, ResourceList>::new();
        for pod in victims.0.values() {
            let class = qos_class(pod);
            for container in &pod.spec.containers {
                let own = exclusive_requests(class, container, report);
                if let Some(zone) = self.zone(container_hash(pod, &container.name))
                    && !own.is_empty()
                {
                    add(freed.entry(zone).or_default(), &own);
                }
            }
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_distances_in_printable_characters() {
        for (list, expected) in [
            ("", Some(vec![])),
            ("!", Some(vec![0])),
            ("$", Some(vec![2])),
            // The characters that JSON escapes have no value.
            ("#", Some(vec![1])),
            ("!%", Some(vec![0, 3])),
            ("'", Some(vec![4])),
            ("e", Some(vec![63])),
            ("f!", Some(vec![64])),
            ("~e", Some(vec![1663])),
            ("ff!!", Some(vec![64, 64])),
            ("\"", None),
            ("é", None),
            ("f", None),
        ] {
            assert_eq!(positions(list), expected, "{list:?}");
        }
    }
}
