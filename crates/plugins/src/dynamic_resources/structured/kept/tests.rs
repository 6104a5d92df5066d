//! What is kept equals what is computed again, whatever changed in between.

use serde_json::{Value, json};

use super::*;
use crate::dynamic_resources::structured::AllocationError;
use kubestep_api::intern::Symbol;
use kubestep_config::{FeatureGates, KubeVersion};
use kubestep_framework::testing::{Cluster, decoded, object};

const NODES: u64 = 6;

/// A cluster, the plugin's memory, and a sequence of numbers.
struct Case {
    cluster: Cluster,
    kept: KeptDevices,
    allocated: AllocatedDevices,
    random: u64,
}

/// A slice of two devices of a node's own pool, of which the second may be another model.
fn slice(node: u64, generation: u64, model: &str) -> Value {
    let device =
        |name: &str, model: &str| json!({"name": name, "attributes": {"model": {"string": model}}});
    json!({
        "kind": "ResourceSlice", "metadata": {"name": format!("s{node}")},
        "spec": {
            "driver": "d", "nodeName": format!("n{node}"),
            "pool": {"name": format!("p{node}"), "generation": generation, "resourceSliceCount": 1},
            "devices": [device("a", "small"), device("b", model)],
        },
    })
}

fn node(number: u64, zone: u64) -> Value {
    json!({
        "kind": "Node", "metadata": {
            "name": format!("n{number}"), "labels": {"zone": format!("z{zone}")},
        },
    })
}

/// A slice that all nodes of a zone reach.
fn zonal(zone: u64) -> Value {
    let zone = json!({"key": "zone", "operator": "In", "values": [format!("z{zone}")]});
    json!({
        "kind": "ResourceSlice", "metadata": {"name": "zonal"},
        "spec": {
            "driver": "d", "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]},
            "pool": {"name": "zonal", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "z", "attributes": {"model": {"string": "large"}}}],
        },
    })
}

fn class(expression: &str) -> Value {
    json!({
        "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    })
}

/// A claim for `count` devices of a model.
fn claim(name: &str, model: &str, count: u64) -> Arc<ResourceClaim> {
    let expression = format!("device.attributes[\"d\"].model == \"{model}\"");
    let exactly = json!({
        "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count,
        "selectors": [{"cel": {"expression": expression}}],
    });
    Arc::new(decoded(json!({
        "metadata": {"namespace": "d", "name": name, "uid": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    })))
}

fn features() -> Features {
    Features::of(&FeatureGates::of(KubeVersion::of_minor(36).unwrap()))
}

impl Case {
    fn new(seed: u64) -> Case {
        let nodes = (0..NODES).map(|number| node(number, number % 2)).collect();
        let mut cluster = Cluster::of(nodes, vec![]);
        cluster.objects.insert(object(class("true")));
        for number in 0..NODES {
            cluster.objects.insert(object(slice(number, 1, "large")));
        }
        let (kept, allocated) = (KeptDevices::default(), AllocatedDevices::default());
        Case { cluster, kept, allocated, random: 2 * seed + 1 }
    }

    /// The next number below `end`.
    fn next(&mut self, end: u64) -> u64 {
        let next = self.random.wrapping_mul(0x5851_F42D_4C95_7F2D);
        self.random = next.wrapping_add(0x1405_7B7E_F767_814F);
        (self.random >> 33) % end
    }

    /// One change of anything that the search depends on.
    fn change(&mut self) {
        let (number, other) = (self.next(NODES), self.next(3));
        let models = ["small", "large", "other"];
        let classes = ["true", "device.driver == 'd'", "device.attributes['x'].missing"];
        let what = self.next(12);
        let objects = &mut self.cluster.objects;
        match what {
            0 => _ = objects.insert(object(slice(number, other, models[other as usize]))),
            1 => _ = objects.remove(&object(slice(number, 1, "large"))),
            2 => _ = objects.insert(object(zonal(other))),
            3 => _ = objects.remove(&object(zonal(other))),
            4 => {
                let changed = Arc::new(decoded(node(number, other)));
                self.cluster.edit_node(number as u32, |info| info.node = Some(changed));
            }
            5 => _ = objects.insert(object(class(classes[other as usize]))),
            6 => _ = objects.insert(object(class("true"))),
            _ => self.take_or_free(&format!("p{number}"), ["a", "b", "z"][other as usize].into()),
        }
    }

    /// Allocates a device, or frees it if it is allocated.
    fn take_or_free(&mut self, pool: &str, device: Symbol) {
        let pool = if device == "z" { "zonal" } else { pool };
        let id = PoolId { driver: "d".into(), name: pool.into() };
        self.allocated.change(id, |pool| {
            if !pool.dedicated.remove(&device) {
                pool.dedicated.insert(device);
            }
        });
    }

    fn allocator(&self, slices: Arc<Slices>) -> Allocator {
        let classes = self.cluster.objects.device_classes.clone();
        Allocator::new(features(), Arc::new(self.allocated.clone()), classes, slices, 0)
    }

    /// Compares all nodes with a search from the beginning. The results, by node.
    fn compare(&self, claims: &[Arc<ResourceClaim>]) -> Vec<Result<Found, AllocationError>> {
        let objects = &self.cluster.objects;
        let fresh = self.allocator(Arc::new(Slices::new(objects, false, None)));
        let allocator = self.allocator(self.kept.slices(objects, features(), NODES as usize));
        let demand = self.kept.demand(objects, claims).unwrap();
        let fits = demand.pass(&allocator, &self.cluster.snapshot, claims);
        let mut all = Vec::new();
        for (slot, node) in nodes_of(&self.cluster.snapshot) {
            let expected = fresh.allocate(node, claims);
            let found = allocator.allocate_for(&demand, (slot, node), claims);
            assert_eq!(found.clone().map(|found| found.as_deref().cloned()), expected);
            match &fits {
                Some(fits) => assert_eq!(Ok(fits[slot.index()]), expected.map(|it| it.is_some())),
                None => assert!(self.has_error(&fresh, claims)),
            }
            all.push(found);
        }
        all
    }

    fn has_error(&self, fresh: &Allocator, claims: &[Arc<ResourceClaim>]) -> bool {
        nodes_of(&self.cluster.snapshot).any(|(_, node)| fresh.allocate(node, claims).is_err())
    }
}

/// How many results are the very same ones, not only equal.
fn taken(
    before: &[Result<Found, AllocationError>],
    now: &[Result<Found, AllocationError>],
) -> usize {
    let is_same = |(before, now): &(&Result<Found, _>, &Result<Found, _>)| match (before, now) {
        (Ok(Some(before)), Ok(Some(now))) => Arc::ptr_eq(before, now),
        _ => false,
    };
    before.iter().zip(now).filter(is_same).count()
}

#[test]
fn what_is_kept_is_what_a_search_finds_after_any_change() {
    let (mut kept, mut failed) = (0, 0);
    for seed in 0..20 {
        let mut case = Case::new(seed);
        let mut before = Vec::new();
        for step in 0..60 {
            case.change();
            // Others of the same spec share what is found.
            let [one, both, large] = [("small", 1), ("small", 2), ("large", 2)]
                .map(|(model, count)| [claim(&format!("c{step}"), model, count)]);
            let found = case.compare(&one);
            failed += found.iter().filter(|found| found.is_err()).count();
            kept += taken(&before, &found);
            case.compare(&both);
            case.compare(&large);
            before = found;
        }
    }
    assert!(kept > 500 && failed > 100, "{kept} {failed}");
}

#[test]
fn an_allocation_changes_only_what_is_found_on_its_node() {
    let mut case = Case::new(0);
    let claims = [claim("c", "small", 1)];
    let first = case.compare(&claims);
    assert_eq!(taken(&first, &case.compare(&[claim("other", "small", 1)])), NODES as usize);
    case.take_or_free("p2", "a".into());
    let second = case.compare(&claims);
    assert_eq!(taken(&first, &second), NODES as usize - 1);
    assert_eq!((first[2].clone().map(|it| it.is_some()), &second[2]), (Ok(true), &Ok(None)));
    // Another slice keeps the pools of other nodes; another class keeps nothing.
    case.cluster.objects.insert(object(slice(3, 2, "large")));
    let third = case.compare(&claims);
    assert_eq!(taken(&second, &third), NODES as usize - 2);
    case.cluster.objects.insert(object(class("device.driver == 'd'")));
    assert_eq!(taken(&third, &case.compare(&claims)), 0);
}

#[test]
fn copies_of_a_cluster_do_not_see_what_the_other_found() {
    let mut case = Case::new(0);
    let claims = [claim("c", "small", 1)];
    case.compare(&claims);
    let copy = case.allocated.clone();
    for number in 0..NODES {
        case.take_or_free(&format!("p{number}"), "a".into());
        let changed = std::mem::replace(&mut case.allocated, copy.clone());
        assert!(case.compare(&claims).iter().all(|found| *found != Ok(None)));
        case.allocated = changed;
        let none = case.compare(&claims).iter().filter(|found| **found == Ok(None)).count();
        assert_eq!(none as u64, number + 1);
    }
}

#[test]
fn shares_are_named_after_their_claim_and_not_kept() {
    let mut case = Case::new(0);
    let mut shared = slice(0, 1, "large");
    shared["spec"]["devices"][0]["allowMultipleAllocations"] = json!(true);
    case.cluster.objects.insert(object(shared));
    let objects = &case.cluster.objects;
    let allocator = case.allocator(case.kept.slices(objects, features(), NODES as usize));
    let ids = ["one", "two"].map(|name| {
        let claims = [claim(name, "small", 1)];
        let demand = case.kept.demand(objects, &claims).unwrap();
        let (slot, node) = nodes_of(&case.cluster.snapshot).next().unwrap();
        assert!(demand.pass(&allocator, &case.cluster.snapshot, &claims).is_none());
        let found = allocator.allocate_for(&demand, (slot, node), &claims).unwrap().unwrap();
        found[0].devices.results[0].share_id.unwrap()
    });
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn only_so_many_demands_are_kept() {
    let case = Case::new(0);
    let claims = |count| [claim("c", "small", count)];
    let first = case.compare(&claims(1));
    let others: Vec<_> = (2..=DEMANDS as u64).collect();
    others.iter().for_each(|count| _ = case.compare(&claims(*count)));
    assert_eq!(taken(&first, &case.compare(&claims(1))), NODES as usize);
    others.iter().for_each(|count| _ = case.compare(&claims(*count)));
    case.compare(&claims(DEMANDS as u64 + 1));
    assert_eq!(taken(&first, &case.compare(&claims(1))), 0);
}
