//! The instance types that are known: those of the catalogue, and those of nodes and node claims.
//!
//! Of a catalogue in the format of karpenter's kwok provider come capacities, and as there 100m CPU
//! and 10Mi memory of each are reserved. Where the cluster has a node of the type, its allocatable
//! amounts are used instead.
//!
//! Upstream: `kwok/cloudprovider/helpers.go` and `pkg/controllers/nodeoverlay` of
//! kubernetes-sigs/karpenter.

use std::collections::BTreeMap;

use super::requirement::{Offered, allows, allows_some, values};
use kubestep_api::intern::Symbol;
use kubestep_api::{
    InstanceType, LabelRequirement, Labels, Name, NodeOverlay, Quantity, ResourceList,
};
use kubestep_cluster::World;

pub(super) const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";
pub(super) const REGION: &str = "topology.kubernetes.io/region";
pub(super) const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
const ARCH: &str = "kubernetes.io/arch";
const OS: &str = "kubernetes.io/os";
/// What kwok's provider reserves of each resource.
const RESERVED: [(&str, &str); 2] = [("cpu", "100m"), ("memory", "10Mi")];
/// Labels of instance types begin like this, those of karpenter itself with its own group.
const OF_PROVIDERS: &str = "karpenter.";
const OF_KARPENTER: &str = "karpenter.sh/";

/// An instance type of the catalogue, or one that nodes and node claims have.
#[derive(Clone, Debug)]
pub(super) struct CatalogueType {
    pub name: Name,
    /// Its labels; one with several values has one of them.
    pub labels: Offered,
    pub capacity: ResourceList,
    pub allocatable: ResourceList,
    pub offerings: Vec<CatalogueOffering>,
    /// A node of the type.
    pub node: Option<Name>,
}

/// A zone and capacity type in which an instance type is offered.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct CatalogueOffering {
    pub labels: Offered,
    /// The price of an hour.
    pub price: Option<f64>,
}

/// All known types: those of the catalogue first.
pub(super) fn known_types(world: &World) -> Vec<CatalogueType> {
    let seen = seen_types(world);
    let mut types: Vec<CatalogueType> =
        world.provisioning().instance_types.iter().map(of_catalogue).collect();
    for mut found in seen.into_values() {
        match types.iter_mut().find(|known| known.name == found.name) {
            Some(known) => {
                known.node = found.node;
                known.capacity = found.capacity;
                known.allocatable = found.allocatable;
            }
            None => {
                found.offerings.dedup();
                types.push(found);
            }
        }
    }
    types
}

fn of_catalogue(listed: &InstanceType) -> CatalogueType {
    let mut capacity = listed.resources.clone();
    if capacity.get_str("pods").is_none() {
        capacity.insert("pods".into(), quantity("110"));
    }
    let mut allocatable = capacity.clone();
    for (resource, amount) in RESERVED {
        if let Some(there) = allocatable.get_mut(resource.into()) {
            *there = difference(there, &quantity(amount));
        }
    }
    let amount = |resource: &str| {
        let amount = capacity.get_str(resource).map(ToString::to_string);
        Name::new(&amount.unwrap_or_default())
    };
    let (cpu, memory) = (amount("cpu"), amount("memory"));
    let one = |key: &str, value: Name| (Symbol::new(key), vec![value]);
    let labels = vec![
        one(INSTANCE_TYPE, listed.name),
        one(ARCH, listed.architecture),
        (Symbol::new(OS), listed.operating_systems.clone()),
        one("karpenter.kwok.sh/instance-size", size(&listed.name.text()).unwrap_or(cpu)),
        one("karpenter.kwok.sh/instance-family", family(&listed.name.text())),
        one("karpenter.kwok.sh/instance-cpu", cpu),
        one("karpenter.kwok.sh/instance-memory", memory),
    ];
    let offered = |requirements: &[LabelRequirement]| -> Offered {
        let known = requirements.iter().filter(|requirement| requirement.operator == "In");
        known.map(|requirement| (requirement.key, requirement.values.clone())).collect()
    };
    let offerings = listed.offerings.iter().map(|offering| CatalogueOffering {
        labels: offered(&offering.requirements),
        price: offering.price,
    });
    let offerings = offerings.collect();
    CatalogueType { name: listed.name, labels, capacity, allocatable, offerings, node: None }
}

/// The size in a name such as `m5.2xlarge`.
fn size(name: &str) -> Option<Name> {
    let (_, size) = name.split_once('.')?;
    let number = size.strip_suffix("xlarge").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    let is_size = number || ["nano", "micro", "small", "medium", "large", "metal"].contains(&size);
    is_size.then(|| Name::new(size))
}

/// The part of a name before its first dot or dash, or its first letter.
fn family(name: &str) -> Name {
    match name.split_once(['.', '-']) {
        Some((family, _)) => Name::new(family),
        None => name.get(..1).map_or(Name::EMPTY, Name::new),
    }
}

/// The types of the nodes of the cluster, and of karpenter's claims that have a size.
fn seen_types(world: &World) -> BTreeMap<Name, CatalogueType> {
    let mut seen = BTreeMap::new();
    let mut nodes: Vec<_> = world.api().nodes().collect();
    nodes.sort_unstable_by_key(|node| node.metadata.name);
    for node in nodes {
        let (metadata, status) = (&node.metadata, &node.status);
        let allocatable = status.allocatable.as_ref().or(status.capacity.as_ref());
        let capacity = status.capacity.as_ref().or(allocatable);
        if let Some(sizes) = capacity.zip(allocatable) {
            see(&mut seen, &metadata.labels, sizes, Some(metadata.name));
        }
    }
    for claim in &world.provisioning().node_claims {
        let status = &claim.status;
        if let Some(sizes) = status.capacity.as_ref().zip(status.allocatable.as_ref()) {
            see(&mut seen, &claim.metadata.labels, sizes, None);
        }
    }
    seen
}

fn see(
    seen: &mut BTreeMap<Name, CatalogueType>,
    labels: &Labels,
    (capacity, allocatable): (&ResourceList, &ResourceList),
    node: Option<Name>,
) {
    let Some(name) = labels.get_str(INSTANCE_TYPE).copied() else { return };
    let is_of_type = |key: Symbol| {
        [INSTANCE_TYPE, ARCH, OS].contains(&key.as_str())
            || key.starts_with(OF_PROVIDERS) && !key.starts_with(OF_KARPENTER)
    };
    let is_of_offering = |key: Symbol| [ZONE, REGION, CAPACITY_TYPE].contains(&key.as_str());
    let offered = |of: &dyn Fn(Symbol) -> bool| -> Offered {
        let known = labels.iter().filter(|(key, _)| of(*key));
        known.map(|(key, value)| (key, vec![*value])).collect()
    };
    let offering = CatalogueOffering { labels: offered(&is_of_offering), price: None };
    let known = seen.entry(name).or_insert_with(|| CatalogueType {
        name,
        labels: offered(&is_of_type),
        capacity: capacity.clone(),
        allocatable: allocatable.clone(),
        offerings: Vec::new(),
        node,
    });
    if !known.offerings.contains(&offering) {
        known.offerings.push(offering);
    }
}

impl CatalogueType {
    /// The type with the corrections that apply to it in a pool with these labels.
    pub fn overlaid(&self, overlays: &[NodeOverlay], pool: &Offered) -> CatalogueType {
        let mut corrected = self.clone();
        let mut overlays: Vec<&NodeOverlay> = overlays.iter().collect();
        overlays.sort_by(|a, b| {
            let key = |overlay: &NodeOverlay| (overlay.spec.weight, overlay.metadata.name);
            key(b).cmp(&key(a))
        });
        let mut is_priced = vec![false; self.offerings.len()];
        for overlay in overlays {
            let spec = &overlay.spec;
            let matching = self.matching(&spec.requirements, pool);
            for at in &matching {
                let price = spec.price.as_deref().or(spec.price_adjustment.as_deref());
                if let (Some(price), false) = (price, is_priced[*at]) {
                    let old = corrected.offerings[*at].price;
                    corrected.offerings[*at].price = adjusted(old, price);
                    is_priced[*at] = true;
                }
            }
            for (resource, amount) in spec.capacity.iter().flat_map(|amounts| amounts.iter()) {
                if !matching.is_empty() && !corrected.capacity.contains_key(resource) {
                    corrected.capacity.insert(resource, amount.clone());
                    corrected.allocatable.insert(resource, amount.clone());
                }
            }
        }
        corrected
    }

    /// The offerings that meet all requirements, by position.
    fn matching(&self, requirements: &[LabelRequirement], pool: &Offered) -> Vec<usize> {
        let meets = |offering: &CatalogueOffering| {
            requirements.iter().all(|requirement| {
                let key = requirement.key;
                let offered = values(&offering.labels, key).or(values(&self.labels, key));
                match offered.or(values(pool, key)) {
                    Some(values) => allows_some(requirement, values),
                    None => allows(requirement, None),
                }
            })
        };
        (0..self.offerings.len()).filter(|at| meets(&self.offerings[*at])).collect()
    }
}

/// The price after a correction: an absolute price, a signed amount or a signed percentage.
fn adjusted(price: Option<f64>, change: &str) -> Option<f64> {
    if !change.starts_with(['+', '-']) {
        return change.parse().ok().or(price);
    }
    let price = price?;
    let new = match change.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| price * (1.0 + percent / 100.0)),
        None => change.parse::<f64>().map(|amount| price + amount),
    };
    Some(new.map_or(price, |new| new.max(0.0)))
}

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_default()
}

/// What is left of an amount, not below zero.
pub(super) fn difference(amount: &Quantity, less: &Quantity) -> Quantity {
    let mut left = amount.clone();
    left.sub(less);
    if left.sign().is_lt() { Quantity::default() } else { left }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_give_size_and_family() {
        let of = |name: &str| (size(name).map(|s| s.to_string()), family(name).to_string());
        assert_eq!(of("m5.2xlarge"), (Some("2xlarge".into()), "m5".into()));
        assert_eq!(of("c-4x-amd64-linux"), (None, "c".into()));
        assert_eq!(of("n2-standard-8"), (None, "n2".into()));
        assert_eq!(of("custom"), (None, "c".into()));
    }

    #[test]
    fn prices_are_corrected() {
        for (change, new) in
            [("0.5", 0.5), ("+10%", 1.1), ("-25%", 0.75), ("-0.25", 0.75), ("-3", 0.0), ("x", 1.0)]
        {
            let found = adjusted(Some(1.0), change).unwrap();
            assert!((found - new).abs() < 1e-9, "{change}: {found}");
        }
        assert_eq!(adjusted(None, "+1"), None);
        assert_eq!(adjusted(None, "2"), Some(2.0));
    }
}
