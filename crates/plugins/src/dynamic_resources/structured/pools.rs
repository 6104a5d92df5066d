//! The pools of devices that a node can use.
//!
//! Upstream: `pools_incubating.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use crate::dynamic_resources::structured::Features;
use crate::dynamic_resources::structured::device::PreparedSlice;
use kubestep_api::intern::Symbol;
use kubestep_api::{CounterSet, Name, Node, ResourceSlice};
use kubestep_framework::dra::PoolId;
use kubestep_framework::dra::taint_rules::tainted_slices;
use kubestep_framework::error::PluginError;
use kubestep_framework::objects::Objects;

/// Whether a pool is complete and valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PoolState {
    /// The pool is complete and valid.
    Usable,
    /// Some slices of its generation are missing.
    Incomplete,
    /// Its slices contradict each other; upstream's message.
    Invalid(String),
}

/// A pool as seen from one node.
#[derive(Clone, Debug)]
pub struct DevicePool {
    /// The driver and name.
    pub id: PoolId,
    /// Whether it can be used; if not, the other fields are empty (since 1.35).
    pub state: PoolState,
    /// The slices with devices for the node, sorted by name.
    pub slices: Vec<Arc<PreparedSlice>>,
    /// Slices with devices for other nodes, which consume the same counters.
    pub other_node_slices: Vec<Arc<PreparedSlice>>,
    /// The counter sets that its devices consume.
    pub counters: BTreeMap<Symbol, CounterSet>,
}

/// The pools that a node can use.
#[derive(Debug)]
pub struct NodePools {
    /// The node of which they were computed.
    node: Arc<Node>,
    pools: Vec<DevicePool>,
}

impl Deref for NodePools {
    type Target = [DevicePool];

    fn deref(&self) -> &[DevicePool] {
        &self.pools
    }
}

/// All slices of the cluster, indexed by node and by pool.
#[derive(Default, Debug)]
pub struct Slices {
    all: Vec<Arc<PreparedSlice>>,
    on_node: HashMap<Name, Vec<usize>>,
    anywhere: Vec<usize>,
    by_pool: BTreeMap<PoolId, Vec<usize>>,
    /// The pools of nodes, by the node's name, as far as they were asked for. They depend on nothing
    /// but these slices and the node, so they save only time.
    of_nodes: Mutex<HashMap<Name, KeptPools>>,
    /// The number of the slices among those that were prepared one after the other.
    generation: u64,
}

/// The pools of a node, and for which slices they were computed last.
#[derive(Clone, Debug)]
struct KeptPools {
    pools: Arc<NodePools>,
    generation: u64,
}

impl Slices {
    /// The slices of the cluster; with `taint_rules`, patched with the taints of DeviceTaintRules.
    /// What did not change since the `former` ones is taken from them.
    pub fn new(objects: &Objects, taint_rules: bool, former: Option<&Slices>) -> Slices {
        match taint_rules {
            true => Slices::of(tainted_slices(objects), former),
            false => Slices::of(objects.resource_slices.values().cloned(), former),
        }
    }

    /// Groups slices by driver and pool; their selectors are compiled once.
    pub(super) fn of(
        written: impl IntoIterator<Item = Arc<ResourceSlice>>,
        former: Option<&Slices>,
    ) -> Slices {
        let mut slices = Slices::default();
        let mut prepared = HashMap::new();
        if let Some(former) = former {
            prepared.extend(former.all.iter().map(|one| (Arc::as_ptr(&one.slice), one)));
            slices.generation = former.generation + 1;
            slices.of_nodes = Mutex::new(former.of_nodes().clone());
        }
        for slice in written {
            slices.add(match prepared.get(&Arc::as_ptr(&slice)) {
                Some(prepared) => Arc::clone(prepared),
                None => Arc::new(PreparedSlice::new(slice)),
            });
        }
        slices
    }

    fn add(&mut self, slice: Arc<PreparedSlice>) {
        let (at, spec) = (self.all.len(), &slice.slice.spec);
        match spec.node_name.filter(|name| !name.is_empty()) {
            Some(name) if spec.shared_counters.is_empty() => {
                self.on_node.entry(name).or_default().push(at);
            }
            _ => self.anywhere.push(at),
        }
        self.by_pool.entry(slice.of_pool()).or_default().push(at);
        self.all.push(slice);
    }

    /// The pools that the node can use: the same ones until the node or its pools change.
    /// `features` must be those of all other calls, also for the former slices.
    ///
    /// # Errors
    /// A node selector is invalid.
    pub fn pools_of(
        &self,
        node: &Arc<Node>,
        features: &Features,
    ) -> Result<Arc<NodePools>, PluginError> {
        let (name, generation) = (node.metadata.name, self.generation);
        let is_its = |kept: &&KeptPools| Arc::ptr_eq(&kept.pools.node, node);
        let known = self.of_nodes().get(&name).filter(is_its).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.generation == generation) {
            let is_equal = |pools: Vec<DevicePool>| pools == known.pools.pools;
            debug_assert!(self.pools(node, features).is_ok_and(is_equal));
            return Ok(known.pools.clone());
        }
        let pools = self.pools(node, features)?;
        let pools = match known.filter(|known| known.pools.pools == pools) {
            Some(known) => known.pools,
            None => Arc::new(NodePools { node: node.clone(), pools }),
        };
        self.of_nodes().insert(name, KeptPools { pools: pools.clone(), generation });
        Ok(pools)
    }

    fn of_nodes(&self) -> MutexGuard<'_, HashMap<Name, KeptPools>> {
        self.of_nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the kept pools of all nodes if there are more than `most`: most of these nodes no
    /// longer exist.
    pub(super) fn forget_nodes_beyond(&self, most: usize) {
        let mut kept = self.of_nodes();
        if kept.len() > most {
            kept.clear();
        }
    }

    /// The pools that the node can use: sorted by driver and name, but pools with a device that has
    /// binding conditions come last.
    ///
    /// # Errors
    /// A node selector is invalid.
    pub(super) fn pools(
        &self,
        node: &Node,
        features: &Features,
    ) -> Result<Vec<DevicePool>, PluginError> {
        let partitionable = features.partitionable;
        let mut found: BTreeMap<PoolId, Vec<&Arc<PreparedSlice>>> = BTreeMap::new();
        let local = self.on_node.get(&node.metadata.name).into_iter().flatten();
        for slice in local.chain(&self.anywhere).filter_map(|at| self.all.get(*at)) {
            let spec = &slice.slice.spec;
            let partitioned =
                spec.per_device_node_selection.is_some() || !spec.shared_counters.is_empty();
            if (partitionable || !partitioned) && slice.reaches(node)? {
                keep_newest(found.entry(slice.of_pool()).or_default(), slice);
            }
        }
        let pools = found.into_iter();
        let pools: Vec<DevicePool> =
            pools.filter_map(|(id, slices)| self.pool(id, slices, features)).collect();
        let (last, mut first): (Vec<_>, Vec<_>) =
            pools.into_iter().partition(DevicePool::has_binding_conditions);
        first.extend(last);
        Ok(first)
    }

    /// The pool of these slices; `None` if a newer generation of the pool exists.
    fn pool(
        &self,
        id: PoolId,
        slices: Vec<&Arc<PreparedSlice>>,
        features: &Features,
    ) -> Option<DevicePool> {
        let written = slices.first()?.slice.spec.pool.clone();
        let is_complete = |count: usize| count as i64 == written.resource_slice_count;
        let (is_seen_whole, partitionable) = (is_complete(slices.len()), features.partitionable);
        if is_seen_whole || !features.rules.skips_unusable {
            let pool = DevicePool::new(id, slices, Vec::new(), partitionable);
            return Some(if is_seen_whole { pool } else { pool.seen_in_part() });
        }
        let all = self.by_pool.get(&id)?.iter().filter_map(|at| self.all.get(*at));
        let generation = |slice: &PreparedSlice| slice.slice.spec.pool.generation;
        if all.clone().any(|slice| generation(slice) > written.generation) {
            return None;
        }
        let all: Vec<_> = all.filter(|slice| generation(slice) == written.generation).collect();
        if !is_complete(all.len()) {
            return Some(DevicePool::unusable(id, PoolState::Incomplete));
        }
        Some(DevicePool::new(id, slices, all, partitionable))
    }
}

/// Adds the slice, keeping only slices of the highest generation.
fn keep_newest<'a>(slices: &mut Vec<&'a Arc<PreparedSlice>>, slice: &'a Arc<PreparedSlice>) {
    let generation = |slice: &PreparedSlice| slice.slice.spec.pool.generation;
    let known = slices.first().map(|first| generation(first));
    if known.is_some_and(|known| generation(slice) > known) {
        slices.clear();
    }
    if known.is_none_or(|known| generation(slice) >= known) {
        slices.push(slice);
    }
}

impl PartialEq for DevicePool {
    fn eq(&self, other: &DevicePool) -> bool {
        let same = |a: &[Arc<PreparedSlice>], b: &[Arc<PreparedSlice>]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
        };
        (self.id, &self.state, &self.counters) == (other.id, &other.state, &other.counters)
            && same(&self.slices, &other.slices)
            && same(&self.other_node_slices, &other.other_node_slices)
    }
}

impl DevicePool {
    fn unusable(id: PoolId, state: PoolState) -> DevicePool {
        let (slices, other_node_slices) = (Vec::new(), Vec::new());
        DevicePool { id, state, slices, other_node_slices, counters: BTreeMap::new() }
    }

    /// A complete pool; `all` holds all its slices if the node sees only some of them.
    fn new(
        id: PoolId,
        mut slices: Vec<&Arc<PreparedSlice>>,
        all: Vec<&Arc<PreparedSlice>>,
        partitionable: bool,
    ) -> DevicePool {
        slices.sort_by_key(|slice| slice.slice.metadata.name);
        let seen: BTreeSet<Name> = slices.iter().map(|slice| slice.slice.metadata.name).collect();
        let other_node_slices: Vec<_> = match partitionable && slices.len() != all.len() {
            true => all,
            false => Vec::new(),
        };
        let unseen = |slice: &&Arc<PreparedSlice>| !seen.contains(&slice.slice.metadata.name);
        let mut pool = DevicePool {
            id,
            state: PoolState::Usable,
            slices: slices.into_iter().cloned().collect(),
            other_node_slices: other_node_slices.into_iter().filter(unseen).cloned().collect(),
            counters: BTreeMap::new(),
        };
        match pool.check(partitionable) {
            Ok(()) => pool,
            Err(reason) => DevicePool::unusable(id, PoolState::Invalid(reason.to_string())),
        }
    }

    /// Finds duplicate device names and counter sets, and references to missing counters.
    fn check(&mut self, partitionable: bool) -> Result<(), PluginError> {
        let (with_counters, with_devices): (Vec<_>, Vec<_>) = std::mem::take(&mut self.slices)
            .into_iter()
            .partition(|slice| partitionable && !slice.slice.spec.shared_counters.is_empty());
        check_names(&with_devices)?;
        if partitionable {
            self.counters = counter_sets(&with_counters)?;
            check_consumption(&self.counters, &with_counters)?;
            check_consumption(&self.counters, &with_devices)?;
            check_consumption(&self.counters, &self.other_node_slices)?;
        }
        self.slices = with_devices;
        Ok(())
    }

    /// Up to 1.34 a pool of which the node does not see all slices is incomplete, yet in use.
    fn seen_in_part(self) -> DevicePool {
        match self.state {
            PoolState::Usable => DevicePool { state: PoolState::Incomplete, ..self },
            _ => self,
        }
    }

    /// Whether its devices can be allocated.
    pub fn is_usable(&self) -> bool {
        self.state == PoolState::Usable
    }

    fn has_binding_conditions(&self) -> bool {
        let mut devices = self.slices.iter().flat_map(|slice| &slice.slice.spec.devices);
        devices.any(|device| !device.binding_conditions.is_empty())
    }
}

fn check_names(slices: &[Arc<PreparedSlice>]) -> Result<(), PluginError> {
    let mut names = BTreeSet::new();
    for device in slices.iter().flat_map(|slice| &slice.slice.spec.devices) {
        if !names.insert(device.name) {
            return Err(format!("duplicate device name {}", device.name).into());
        }
    }
    Ok(())
}

fn counter_sets(
    slices: &[Arc<PreparedSlice>],
) -> Result<BTreeMap<Symbol, CounterSet>, PluginError> {
    let mut sets = BTreeMap::new();
    for set in slices.iter().flat_map(|slice| &slice.slice.spec.shared_counters) {
        if sets.insert(set.name, set.clone()).is_some() {
            return Err(format!("duplicate counter set name {}", set.name).into());
        }
    }
    Ok(sets)
}

fn check_consumption(
    sets: &BTreeMap<Symbol, CounterSet>,
    slices: &[Arc<PreparedSlice>],
) -> Result<(), PluginError> {
    let devices = slices.iter().flat_map(|slice| &slice.slice.spec.devices);
    for consumed in devices.flat_map(|device| &device.consumes_counters) {
        let name = consumed.counter_set;
        let set = sets.get(&name).ok_or_else(|| format!("counter set {name} not found"))?;
        let missing = consumed.counters.keys().find(|name| !set.counters.contains_key(name));
        if let Some(counter) = missing {
            return Err(format!("counter {counter} not found in counter set {name}").into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use kubestep_api::Object;
    use kubestep_config::{FeatureGates, KubeVersion};

    fn slices(specs: &[(&str, Value)]) -> Slices {
        let mut objects = Objects::default();
        for (name, spec) in specs {
            let json = json!({"metadata": {"name": name}, "spec": spec});
            let slice = Arc::new(serde_json::from_value(json).unwrap());
            objects.insert(Object::ResourceSlice(slice));
        }
        Slices::new(&objects, false, None)
    }

    fn spec(pool: (&str, i64, i64), node: &str, devices: Value) -> Value {
        let (name, generation, count) = pool;
        json!({
            "driver": "d", "nodeName": node, "devices": devices,
            "pool": {"name": name, "generation": generation, "resourceSliceCount": count},
        })
    }

    /// Each pool as `name: state or devices`.
    fn pools(slices: &Slices, node: &str) -> Vec<String> {
        pools_in(36, slices, node)
    }

    fn pools_in(minor: u8, slices: &Slices, node: &str) -> Vec<String> {
        let gates = FeatureGates::of(KubeVersion::of_minor(minor).unwrap());
        let features = Features { partitionable: true, ..Features::of(&gates) };
        let json = json!({"metadata": {"name": node, "labels": {"zone": "a"}}});
        let node: Node = serde_json::from_value(json).unwrap();
        let pools = slices.pools(&node, &features).unwrap();
        let describe = |pool: &DevicePool| match &pool.state {
            PoolState::Usable => {
                let devices = pool.slices.iter().flat_map(|slice| &slice.slice.spec.devices);
                let names: Vec<_> = devices.map(|device| device.name.as_str()).collect();
                format!("{}: {}", pool.id.name, names.join(" "))
            }
            other => format!("{}: {other:?}", pool.id.name),
        };
        pools.iter().map(describe).collect()
    }

    #[test]
    fn pools_come_by_name_and_slices_too_those_with_binding_conditions_last() {
        let slices = slices(&[
            ("s2", spec(("b", 1, 2), "n", json!([{"name": "b2"}]))),
            ("s1", spec(("b", 1, 2), "n", json!([{"name": "b1"}]))),
            ("s3", spec(("a", 1, 1), "n", json!([{"name": "a", "bindingConditions": ["x"]}]))),
            ("s4", spec(("c", 1, 1), "other", json!([{"name": "c"}]))),
        ]);
        assert_eq!(pools(&slices, "n"), ["b: b1 b2", "a: a"]);
        assert_eq!(pools(&slices, "other"), ["c: c"]);
    }

    #[test]
    fn only_the_newest_generation_counts_and_all_its_slices_must_be_there() {
        let slices = slices(&[
            ("s1", spec(("old", 1, 1), "n", json!([{"name": "x"}]))),
            ("s2", spec(("old", 2, 1), "n", json!([{"name": "y"}]))),
            ("s3", spec(("part", 1, 2), "n", json!([{"name": "x"}]))),
            // The slice of another node shows that the node's own slice is outdated.
            ("s4", spec(("moved", 1, 2), "n", json!([{"name": "x"}]))),
            ("s5", spec(("moved", 2, 1), "other", json!([{"name": "y"}]))),
        ]);
        assert_eq!(pools(&slices, "n"), ["old: y", "part: Incomplete"]);
        let moved = ["moved: Incomplete", "old: y", "part: Incomplete"];
        assert_eq!(pools_in(34, &slices, "n"), moved);
    }

    #[test]
    fn slices_that_contradict_each_other_make_a_pool_invalid() {
        let twice = json!([{"name": "x"}, {"name": "x"}]);
        let consumes = |set: &str, counter: &str| {
            json!([{"name": "x", "consumesCounters": [
                {"counterSet": set, "counters": {counter: {"value": "1"}}},
            ]}])
        };
        let counters = |name: &str| {
            let mut spec = spec((name, 1, 2), "", json!([]));
            spec["sharedCounters"] = json!([{"name": "set", "counters": {"c": {"value": "4"}}}]);
            spec
        };
        let slices = slices(&[
            ("s1", spec(("a", 1, 1), "n", twice)),
            ("s2", spec(("b", 1, 1), "n", consumes("set", "c"))),
            ("s3", spec(("c", 1, 2), "n", consumes("set", "z"))),
            ("s4", counters("c")),
            ("s5", spec(("d", 1, 2), "n", consumes("set", "c"))),
            ("s6", counters("d")),
        ]);
        assert_eq!(
            pools(&slices, "n"),
            [
                "a: Invalid(\"duplicate device name x\")",
                "b: Invalid(\"counter set set not found\")",
                "c: Invalid(\"counter z not found in counter set set\")",
                "d: x",
            ]
        );
    }

    #[test]
    fn nodes_are_named_selected_all_or_said_for_each_device() {
        let mut selected = spec(("a", 1, 1), "", json!([{"name": "a"}]));
        let zone = |zone: &str| {
            json!({"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "zone", "operator": "In", "values": [zone]},
            ]}]})
        };
        selected["nodeSelector"] = zone("a");
        let mut other_node_slices = spec(("b", 1, 1), "", json!([{"name": "b"}]));
        other_node_slices["nodeSelector"] = zone("b");
        let mut everywhere = spec(("c", 1, 1), "", json!([{"name": "c"}]));
        everywhere["allNodes"] = json!(true);
        let devices = json!([{"name": "d", "nodeName": "x"}, {"name": "e", "nodeName": "n"}]);
        let mut each = spec(("d", 1, 1), "", devices);
        each["perDeviceNodeSelection"] = json!(true);
        let nowhere = spec(("e", 1, 1), "", json!([{"name": "f"}]));
        let slices = slices(&[
            ("s1", selected),
            ("s2", other_node_slices),
            ("s3", everywhere),
            ("s4", each),
            ("s5", nowhere),
        ]);
        assert_eq!(pools(&slices, "n"), ["a: a", "c: c", "d: d e"]);
        assert_eq!(pools(&slices, "m"), ["a: a", "c: c"]);
    }
}
