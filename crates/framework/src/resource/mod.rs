//! Amounts of resources as the scheduler counts them: CPU in millicores, everything else in whole
//! units, rounded up.
//!
//! Upstream: `Resource` in `pkg/scheduler/framework/types.go`.

pub mod amount;

use smallvec::SmallVec;

use kubestep_api::intern::Symbol;
use kubestep_api::selector::{is_dns_subdomain, is_label_text};
use kubestep_api::{Quantity, ResourceList};

/// Resource amounts of a node or of a pod.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Resource {
    /// CPU in millicores.
    pub milli_cpu: i64,
    /// Memory in bytes.
    pub memory: i64,
    /// Ephemeral storage in bytes.
    pub ephemeral_storage: i64,
    /// Maximum number of pods of a node; 0 for a pod's request.
    pub allowed_pods: i64,
    /// Extended resources, huge pages and other scalars in units, sorted by name.
    pub scalars: SmallVec<[(Symbol, i64); 2]>,
}

impl Resource {
    /// The amounts of a resource list. Names that the scheduler does not count are left out.
    pub fn from_list(list: &ResourceList) -> Resource {
        let mut resource = Resource::default();
        resource.add_list(list);
        resource
    }

    /// Adds a resource list.
    pub fn add_list(&mut self, list: &ResourceList) {
        for (name, quantity) in list.iter() {
            self.add_quantity(name, quantity);
        }
    }

    fn add_quantity(&mut self, name: Symbol, quantity: &Quantity) {
        match name.as_str() {
            "cpu" => self.milli_cpu = self.milli_cpu.wrapping_add(quantity.milli_value()),
            "memory" => self.memory = self.memory.wrapping_add(quantity.value()),
            "ephemeral-storage" => {
                self.ephemeral_storage = self.ephemeral_storage.wrapping_add(quantity.value());
            }
            "pods" => self.allowed_pods = self.allowed_pods.wrapping_add(quantity.value()),
            text if is_scalar_name(text) => self.add_scalar(name, quantity.value()),
            _ => {}
        }
    }

    /// Adds `amount` of the scalar `name`. As upstream, a result of 0 stays as an entry.
    pub fn add_scalar(&mut self, name: Symbol, amount: i64) {
        match self.scalars.binary_search_by(|(other, _)| other.cmp(&name)) {
            Ok(at) => self.scalars[at].1 = self.scalars[at].1.wrapping_add(amount),
            Err(at) => self.scalars.insert(at, (name, amount)),
        }
    }

    /// The amount of the scalar `name`, 0 if it has no entry.
    pub fn scalar(&self, name: Symbol) -> i64 {
        self.scalars.iter().find(|(other, _)| *other == name).map_or(0, |(_, amount)| *amount)
    }

    /// The amount by resource name; CPU in millicores.
    pub fn amount(&self, name: Symbol) -> i64 {
        match name.as_str() {
            "cpu" => self.milli_cpu,
            "memory" => self.memory,
            "ephemeral-storage" => self.ephemeral_storage,
            "pods" => self.allowed_pods,
            _ => self.scalar(name),
        }
    }

    /// Adds `other` `sign` times (1 or -1), except `allowed_pods`.
    pub fn accumulate(&mut self, other: &Resource, sign: i64) {
        self.milli_cpu = self.milli_cpu.wrapping_add(sign * other.milli_cpu);
        self.memory = self.memory.wrapping_add(sign * other.memory);
        self.ephemeral_storage =
            self.ephemeral_storage.wrapping_add(sign * other.ephemeral_storage);
        for (name, amount) in &other.scalars {
            self.add_scalar(*name, sign * amount);
        }
    }

    /// Whether nothing is requested: all amounts are 0 and there is no scalar, not even one of 0.
    pub fn is_empty_request(&self) -> bool {
        self.milli_cpu == 0
            && self.memory == 0
            && self.ephemeral_storage == 0
            && self.scalars.is_empty()
    }
}

/// Whether a resource is counted as a scalar: an extended resource, huge pages, a native one with
/// prefix, or an attachable-volumes limit.
pub fn is_scalar_name(name: &str) -> bool {
    is_extended_name(name)
        || name.starts_with("hugepages-")
        || name.contains("kubernetes.io/")
        || name.starts_with("attachable-volumes-")
}

/// Whether `name` is an extended resource: qualified, outside `kubernetes.io/` and not a
/// quota name (`requests.`). Upstream: `v1helper.IsExtendedResourceName`.
pub fn is_extended_name(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    !native && !name.starts_with("requests.") && is_qualified_name(&format!("requests.{name}"))
}

/// A name of at most 63 characters behind an optional DNS-subdomain prefix of at most 253.
fn is_qualified_name(name: &str) -> bool {
    let (prefix, rest) = match name.split_once('/') {
        Some((prefix, rest)) => (Some(prefix), rest),
        None => (None, name),
    };
    let prefix_is_good = |prefix: &str| prefix.len() <= 253 && is_dns_subdomain(prefix);
    rest.len() <= 63 && is_label_text(rest) && prefix.is_none_or(prefix_is_good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalar_names() {
        for name in
            ["example.com/gpu", "hugepages-2Mi", "attachable-volumes-csi-x", "kubernetes.io/batch"]
        {
            assert!(is_scalar_name(name), "{name}");
        }
        for name in
            ["cpu", "gpu", "requests.example.com/gpu", "example.com/", "example..com/gpu", "/gpu"]
        {
            assert!(!is_scalar_name(name), "{name}");
        }
    }

    #[test]
    fn a_scalar_back_at_zero_keeps_its_entry() {
        let mut held = Resource::default();
        let gpu = Symbol::new("example.com/gpu");
        let mut one = Resource { milli_cpu: 500, memory: 10, ..Resource::default() };
        one.add_scalar(gpu, 2);
        held.accumulate(&one, 1);
        assert_eq!((held.milli_cpu, held.scalar(gpu)), (500, 2));
        held.accumulate(&one, -1);
        assert_eq!(held.scalars.as_slice(), &[(gpu, 0)]);
        assert!(!held.is_empty_request());
    }
}
